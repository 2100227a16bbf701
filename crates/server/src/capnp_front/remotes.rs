//! Objects of the client's: kept here, on the connection's thread, because capabilities can't leave it.
//!
//! Everybody else has an address with a number, and sends commands. A call of a client's object takes place in a task of
//! its own; it ends when whoever waits for the answer gives it up.

use super::{Connected, convert};
use crate::{
    outcome::Answered,
    router::{Address, AnswerTo, CLIENT_GONE, Remote, RemoteCall, RemoteCommand, threw},
};
use capnp::{Error, capability::FromClientHook};
use coracle_isolate::{CallAccess, Kind, Outcome, Report, Usage};
use coracle_schema::{self as schema, call_results, target};
use coracle_transport::Held;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot};

pub(super) struct Remotes {
    commands: mpsc::UnboundedSender<RemoteCommand>,
    objects: RefCell<HashMap<u64, (target::Client, Held)>>,
    last: Cell<u64>,
}

impl Remotes {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<RemoteCommand>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let remotes = Self {
            commands,
            objects: RefCell::default(),
            last: Cell::new(0),
        };
        (remotes, receiver)
    }

    /// An address for a client's object.
    pub(super) fn address(&self, object: target::Client, kind: Kind, held: Held) -> Address {
        self.last.set(self.last.get() + 1);
        let identity = super::resolved(object.as_client_hook().add_ref()).get_ptr();
        self.objects
            .borrow_mut()
            .insert(self.last.get(), (object, held));
        let remote = Remote::new(self.commands.clone(), self.last.get(), identity, kind);
        Address::Remote(Arc::new(remote))
    }

    /// The client's own object, where the address is of one of this connection's.
    pub(super) fn object_of(&self, remote: &Remote) -> Option<target::Client> {
        if !remote.is_of(&self.commands) {
            return None;
        }
        self.object(remote.id)
    }

    /// The client is gone, and its objects with it.
    pub(super) fn forget_all(&self) {
        let objects = self.objects.take();
        drop(objects);
    }

    fn object(&self, id: u64) -> Option<target::Client> {
        let objects = self.objects.borrow();
        objects.get(&id).map(|(object, _)| object.clone())
    }
}

/// What is left when the connection ends is answered all the same.
struct Commands(mpsc::UnboundedReceiver<RemoteCommand>);

impl Drop for Commands {
    fn drop(&mut self) {
        self.0.close();
        while let Ok(command) = self.0.try_recv() {
            if let RemoteCommand::Call { call, .. } = command {
                call.answer_to.fail(CLIENT_GONE);
            }
        }
    }
}

/// Does what it is asked until the connection ends.
pub(super) async fn serve(
    connected: Rc<Connected>,
    commands: mpsc::UnboundedReceiver<RemoteCommand>,
) {
    let mut commands = Commands(commands);
    while let Some(command) = commands.0.recv().await {
        match command {
            RemoteCommand::Release(id) => {
                let released = connected.remotes.objects.borrow_mut().remove(&id);
                drop(released);
            }
            RemoteCommand::Call {
                target,
                call,
                given_up,
            } => {
                tokio::task::spawn_local(make_call(Rc::clone(&connected), target, call, given_up));
            }
        }
    }
}

async fn make_call(
    connected: Rc<Connected>,
    target: u64,
    call: RemoteCall,
    given_up: oneshot::Receiver<()>,
) {
    let RemoteCall {
        path,
        access,
        args,
        answer_to,
    } = call;
    // What tails are told is given up before a client that does not read has more than its share waiting for it.
    if matches!(answer_to, AnswerTo::Tail(_)) && connected.holdings.check().is_err() {
        return;
    }
    let object = connected.remotes.object(target);
    let answer = async {
        let Some(object) = object else {
            return Err(Error::disconnected("the object is gone".into()));
        };
        let response = if access == CallAccess::Get {
            let mut request = object.get_request();
            convert::write_path(&path, |length| request.get().init_path(length));
            request.send().promise.await?
        } else {
            let mut request = object.call_request();
            convert::write_path(&path, |length| request.get().init_path(length));
            convert::write_payload(&connected, &args, request.get().init_args())?;
            request.send().promise.await?
        };
        read_answer(&connected, response.get()?)
    };
    tokio::select! {
        biased;
        answer = answer => match answer {
            Ok(answer) => answer_to.send(Ok(answer)),
            Err(error) => answer_to.fail(&told(&error)),
        },
        // Dropping the request tells the client.
        _ = given_up => {}
    }
}

/// What a worker is told when its call did not come through.
fn told(error: &Error) -> String {
    match error.kind {
        capnp::ErrorKind::Disconnected => CLIENT_GONE.into(),
        capnp::ErrorKind::Unimplemented => {
            "The RPC receiver does not implement this method.".into()
        }
        _ => error.extra.clone(),
    }
}

fn read_answer(
    connected: &Rc<Connected>,
    results: call_results::Reader<'_>,
) -> Result<Answered, Error> {
    use schema::call_results::outcome;
    let (outcome, externals) = match results.get_outcome().which()? {
        outcome::Value(value) => {
            let payload = convert::payload(connected, value?)?;
            let value = coracle_isolate::Bytes::data(payload.form, payload.bytes);
            (Outcome::Value(value), payload.externals)
        }
        outcome::Threw(thrown) => (
            Outcome::Threw(Box::new(convert::thrown(thrown?)?)),
            Vec::new(),
        ),
        outcome::Verdict(verdict) => {
            let message = convert::text(verdict?.get_message()?)?;
            return Ok(threw(&message));
        }
    };
    let report = Report {
        outcome,
        usage: Usage::default(),
        logs: Vec::new(),
        log_bytes_dropped: 0,
    };
    Ok(Answered {
        report: Box::new(report),
        externals,
    })
}
