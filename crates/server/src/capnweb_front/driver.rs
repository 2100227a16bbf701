//! Drives a connection of the protocol: does what it says, and tells it what came of that.
//!
//! Knows nothing of sockets: messages are handed in, and those to be sent lie in the outbox.

use super::{
    client::Client,
    convert,
    object::{Asked, Object},
    outbox::Outbox,
    rejection::Rejection,
};
use crate::{
    outcome::Answered,
    router::{AnswerTo, CLIENT_GONE, Payload, RemoteCall, RemoteCommand},
};
use coracle_capnweb::{Access, Closed, Connection, Effect, Limits, Outcome};
use coracle_isolate::{Bytes, CallAccess, Outcome as Ending, Report, Usage};
use coracle_transport::Held;
use futures::FutureExt;
use std::{collections::HashMap, panic::AssertUnwindSafe, rc::Rc};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

/// What happens without a message from the client.
pub(super) enum Event {
    /// A call of the client's is over.
    Answered(u64, Outcome<Object>),
    /// Nobody waits for the client's answer any more.
    GivenUp(u64),
    /// An object of the client's is called or let go of.
    Remote(RemoteCommand),
}

/// Where events come from.
pub(super) struct Events {
    events: mpsc::UnboundedReceiver<Event>,
    commands: mpsc::UnboundedReceiver<RemoteCommand>,
}

impl Events {
    /// What happens next. May be dropped and asked again.
    pub(super) async fn next(&mut self) -> Event {
        // Neither ends: the driver and the client's table of objects have a sender each.
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => event,
            Some(command) = self.commands.recv() => Event::Remote(command),
            else => std::future::pending().await,
        }
    }
}

/// What is left when the connection ends is answered all the same.
impl Drop for Events {
    fn drop(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let RemoteCommand::Call { call, .. } = command {
                call.answer_to.fail(CLIENT_GONE);
            }
        }
    }
}

/// One connection.
pub(super) struct Driver {
    client: Rc<Client>,
    connection: Connection<Object>,
    outbox: Rc<Outbox>,
    /// Calls of the client's that are under way.
    calls: HashMap<u64, AbortHandle>,
    /// Calls of the client's objects, and who waits for them.
    asks: HashMap<u64, AnswerTo>,
    ask_last: u64,
    sender: mpsc::UnboundedSender<Event>,
    /// What the protocol holds for the client.
    held: Option<Held>,
    /// Why it has ended, once it has.
    closed: Option<Closed>,
}

impl Driver {
    pub(super) fn new(
        client: &Rc<Client>,
        commands: mpsc::UnboundedReceiver<RemoteCommand>,
        limits: Limits,
    ) -> (Self, Events) {
        let (sender, events) = mpsc::unbounded_channel();
        let driver = Self {
            client: Rc::clone(client),
            connection: Connection::new(Object::Gate, limits),
            outbox: Rc::default(),
            calls: HashMap::new(),
            asks: HashMap::new(),
            ask_last: 0,
            sender,
            held: None,
            closed: None,
        };
        (driver, Events { events, commands })
    }

    /// What is to be sent.
    pub(super) fn outbox(&self) -> Rc<Outbox> {
        Rc::clone(&self.outbox)
    }

    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Answered(call, outcome) => {
                self.calls.remove(&call);
                self.connection.answer(call, outcome);
            }
            Event::GivenUp(ask) => {
                if self.asks.remove(&ask).is_some() {
                    self.connection.give_up(ask);
                }
            }
            Event::Remote(RemoteCommand::Release(id)) => self.client.remotes.release(id),
            Event::Remote(RemoteCommand::Call {
                target,
                call,
                given_up,
            }) => self.ask(target, call, given_up),
        }
        self.work();
    }

    /// Takes a message of the client's.
    pub(super) fn receive(&mut self, message: &str) {
        self.connection.receive(message);
        self.work();
    }

    /// No more messages come.
    pub(super) fn end_input(&mut self) {
        self.connection.end_input();
        self.work();
    }

    /// Ends the connection, and tells the client why.
    pub(super) fn abort(&mut self, reason: &str) {
        self.connection.abort(reason);
        self.work();
    }

    /// Why it has ended, once it has.
    pub(super) fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// Whether nothing that the client has asked for is left to be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.is_idle()
    }

    /// Whether the client may say more.
    pub(super) fn may_read(&self) -> bool {
        !self.outbox.is_backed_up()
    }

    /// Does all that is to be done.
    fn work(&mut self) {
        while let Some(effect) = self.connection.next_effect() {
            match effect {
                Effect::Send(message) => self.send(message),
                Effect::Call {
                    call,
                    target,
                    access,
                    path,
                    args,
                } => {
                    let asked = Asked { access, path, args };
                    self.begin(call, target, asked);
                }
                Effect::Cancel { call } => {
                    if let Some(call) = self.calls.remove(&call) {
                        call.abort();
                    }
                }
                Effect::Answer { ask, outcome } => self.answered(ask, outcome),
                Effect::Close(reason) => self.closed = Some(reason),
            }
        }
        self.account();
    }

    fn send(&mut self, message: String) {
        if self.connection.is_closed() {
            // That is the last word, which says why.
            return self.outbox.push_last(message);
        }
        if let Err(full) = self.outbox.push(message, &self.client.holdings) {
            self.connection.abort(&full.to_string());
        }
    }

    /// Counts what the protocol holds among all that clients make the server hold.
    fn account(&mut self) {
        self.held = None;
        let bytes = self.connection.held_bytes() as u64;
        if bytes == 0 || self.closed.is_some() {
            return;
        }
        match self.client.holdings.hold(bytes) {
            Ok(held) => self.held = Some(held),
            Err(full) => self.abort(&full.to_string()),
        }
    }

    /// Calls something of the server's. Calls begin in the order in which they are asked for: tasks do.
    fn begin(&mut self, call: u64, target: Object, asked: Asked) {
        let (client, sender) = (Rc::clone(&self.client), self.sender.clone());
        let task = tokio::task::spawn_local(async move {
            let answer = AssertUnwindSafe(target.answer(&client, asked)).catch_unwind();
            let outcome = match answer.await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(rejection)) => rejection.into_outcome(),
                Err(_) => {
                    client.service.metrics().panicked();
                    let what = "the server failed while it served this call; please report it";
                    Rejection::failed(what).into_outcome()
                }
            };
            let _ = sender.send(Event::Answered(call, outcome));
        });
        self.calls.insert(call, task.abort_handle());
    }

    /// Calls an object of the client's for somebody.
    fn ask(&mut self, target: u64, call: RemoteCall, given_up: oneshot::Receiver<()>) {
        let RemoteCall {
            path,
            access,
            args,
            answer_to,
        } = call;
        // What tails are told is given up before a client that does not read has more than its share waiting for it.
        if matches!(answer_to, AnswerTo::Tail(_)) && !self.may_read() {
            return;
        }
        let Some(peer) = self.client.remotes.peer(target) else {
            return answer_to.fail(CLIENT_GONE);
        };
        let args = match convert::web_payload(&self.client, args) {
            Ok(args) => args,
            Err(rejection) => return answer_to.fail(rejection.message()),
        };
        let access = match access {
            CallAccess::Get => Access::Get,
            _ => Access::Call,
        };
        self.ask_last += 1;
        let ask = self.ask_last;
        self.asks.insert(ask, answer_to);
        self.connection.call(ask, &peer, access, &path, args);
        let sender = self.sender.clone();
        tokio::task::spawn_local(async move {
            // Whoever waits for it holds the other end.
            let _ = given_up.await;
            let _ = sender.send(Event::GivenUp(ask));
        });
    }

    fn answered(&mut self, ask: u64, outcome: Outcome<Object>) {
        let Some(answer_to) = self.asks.remove(&ask) else {
            return;
        };
        let answered = match outcome {
            Outcome::Value(payload) => convert::payload(&self.client, payload).map(value),
            Outcome::Threw(payload) => {
                let thrown = convert::thrown_by_client(&payload);
                Ok(ended(Ending::Threw(Box::new(thrown)), Vec::new()))
            }
        };
        match answered {
            Ok(answered) => answer_to.send(Ok(answered)),
            Err(rejection) => answer_to.fail(rejection.message()),
        }
    }
}

fn value(payload: Payload) -> Answered {
    let Payload {
        form,
        bytes,
        externals,
    } = payload;
    ended(Ending::Value(Bytes::data(form, bytes)), externals)
}

fn ended(outcome: Ending, externals: Vec<crate::router::Address>) -> Answered {
    Answered {
        report: Box::new(Report {
            outcome,
            usage: Usage::default(),
            logs: Vec::new(),
            log_bytes_dropped: 0,
        }),
        externals,
    }
}

/// Whatever ends a connection, nothing of it is left: calls are given up, whoever waits for the client is told, and the login
/// is over.
impl Drop for Driver {
    fn drop(&mut self) {
        for (_, call) in self.calls.drain() {
            call.abort();
        }
        for (_, answer_to) in self.asks.drain() {
            answer_to.fail(CLIENT_GONE);
        }
        // The client's objects refer to the connection, and it to what they were given.
        self.connection.disconnected();
        while self.connection.next_effect().is_some() {}
        self.client.remotes.forget_all();
        if let Some(session) = self.client.session.take() {
            session.close();
        }
    }
}
