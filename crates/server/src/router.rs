//! The addresses of everything that can be called, and what is called through them.
//!
//! An address is authority: who holds one may call it. Isolates hold theirs in a table by small numbers (`tables`), which
//! are all that a guest can name; clients hold theirs as capabilities of their protocol. Calls between isolates go from
//! one to the other through the service, without a protocol in between.

use crate::{
    host::{HOST_GONE, Host, HostCall},
    named::Binding,
    opened::Opened,
    outcome::{Answered, CallAnswer},
    service::Service,
    session::{Entrypoint, Facts, Worker, data_bytes},
    shared::Identity,
    tails::TailCall,
};
use coracle_isolate::{CallAccess, Form, Kind, Message, Outcome, Report, Thrown, Usage};
use coracle_loader::SessionId;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::{Notify, mpsc, oneshot};

/// Where a call goes.
#[derive(Clone)]
pub enum Address {
    /// An export of a worker's main module, in whichever isolate runs the worker at the time.
    Entrypoint(Entrypoint),
    /// An object that an isolate has given out. It is gone with the isolate.
    Export(Export),
    /// An object of a client's.
    Remote(Arc<Remote>),
    /// An object of this process.
    Host(Host),
    /// The authority to load workers into the session of whoever uses it.
    Loader(Arc<Binding>),
    /// A worker that an isolate has loaded.
    Worker(Worker),
    /// What could not be loaded, with the reason.
    Failed(Arc<str>),
    /// What an isolate named that it does not hold.
    Broken,
}

/// A value and what it refers to.
#[derive(Clone)]
pub struct Payload {
    /// What `bytes` are.
    pub form: Form,
    /// Empty for `undefined`.
    pub bytes: Vec<u8>,
    /// What the bytes refer to by index.
    pub externals: Vec<Address>,
}

impl Payload {
    /// The value `undefined`.
    pub const UNDEFINED: Self = Self {
        form: Form::Undefined,
        bytes: Vec::new(),
        externals: Vec::new(),
    };

    /// What it takes of memory.
    pub(crate) fn data_bytes(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add(data_bytes(&self.externals))
    }
}

/// An object that an isolate has given out, held once by all clones together. The isolate is told when the last is dropped.
#[derive(Clone)]
pub struct Export {
    pub(crate) worker: Worker,
    given: Arc<Given>,
}

/// What an isolate has given out once.
struct Given {
    service: Arc<Service>,
    isolate: u64,
    id: u64,
    /// By the guest's word.
    kind: Kind,
    /// Of the call that gave it out.
    opened: Option<Arc<Opened>>,
}

impl Export {
    pub(crate) fn new(
        worker: Worker,
        isolate: u64,
        id: u64,
        kind: Kind,
        opened: Option<Arc<Opened>>,
    ) -> Self {
        let given = Given {
            service: Arc::clone(worker.service()),
            isolate,
            id,
            kind,
            opened,
        };
        Self {
            worker,
            given: Arc::new(given),
        }
    }

    pub(crate) fn isolate(&self) -> u64 {
        self.given.isolate
    }

    pub(crate) fn kind(&self) -> Kind {
        self.given.kind
    }

    /// What the call has opened that gave it out.
    pub(crate) fn opened(&self) -> Option<&Arc<Opened>> {
        self.given.opened.as_ref()
    }

    /// The isolate's own number for it.
    pub(crate) fn id(&self) -> u64 {
        self.given.id
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.service.scheduler().send(Message::Release {
            isolate: self.isolate,
            exports: vec![self.id],
        });
    }
}

/// What a caller of an object is told whose client has gone.
pub(crate) const CLIENT_GONE: &str = "The client that holds this object has disconnected.";

/// An object of a client's, held by the thread that serves the client.
pub struct Remote {
    commands: mpsc::UnboundedSender<RemoteCommand>,
    /// Its place in that thread's table.
    pub(crate) id: u64,
    /// The same for the same object, as long as one of them is kept.
    object: usize,
    /// By the client's word.
    kind: Kind,
}

impl Remote {
    pub(crate) fn new(
        commands: mpsc::UnboundedSender<RemoteCommand>,
        id: u64,
        object: usize,
        kind: Kind,
    ) -> Self {
        Self {
            commands,
            id,
            object,
            kind,
        }
    }

    /// Whether it is held for the client that these commands go to.
    pub(crate) fn is_of(&self, commands: &mpsc::UnboundedSender<RemoteCommand>) -> bool {
        self.commands.same_channel(commands)
    }

    /// Whether its client has gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.commands.is_closed()
    }

    /// Sends a call on its way. It is given up when the sender is dropped that this answers.
    ///
    /// # Errors
    /// The client has gone. Whoever calls may hold the service's state and says so to whoever waits for the answer.
    pub(crate) fn call(&self, call: RemoteCall) -> Result<oneshot::Sender<()>, Unsent> {
        let (kept, given_up) = oneshot::channel();
        let command = RemoteCommand::Call {
            target: self.id,
            call,
            given_up,
        };
        match self.commands.send(command) {
            Ok(()) => Ok(kept),
            Err(mpsc::error::SendError(command)) => Err(Unsent {
                _command: Box::new(command),
            }),
        }
    }
}

/// A call that could not be sent. Not to be dropped while the service's state is held.
pub(crate) struct Unsent {
    _command: Box<RemoteCommand>,
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.commands.send(RemoteCommand::Release(self.id));
    }
}

/// What the thread that serves a client is asked to do.
pub(crate) enum RemoteCommand {
    Call {
        target: u64,
        call: RemoteCall,
        /// Resolves when nobody waits for the answer any more.
        given_up: oneshot::Receiver<()>,
    },
    /// An entry of its table is not needed any more.
    Release(u64),
}

/// A call of a client's object.
pub(crate) struct RemoteCall {
    pub(crate) path: Vec<String>,
    pub(crate) access: CallAccess,
    pub(crate) args: Payload,
    pub(crate) answer_to: AnswerTo,
}

/// Who waits for an answer.
pub(crate) enum AnswerTo {
    /// A caller outside.
    Caller(oneshot::Sender<CallAnswer>),
    /// A call that an isolate made.
    Operation {
        service: Arc<Service>,
        isolate: u64,
        operation: u64,
    },
    /// Who tells a tail.
    Tail(TailCall),
}

impl AnswerTo {
    /// Passes an answer on. Not while the service's state is held.
    pub(crate) fn send(self, answer: CallAnswer) {
        match self {
            Self::Caller(sender) => drop(sender.send(answer)),
            Self::Operation {
                service,
                isolate,
                operation,
            } => service.answer_operation(isolate, operation, answer),
            Self::Tail(call) => call.answer(&answer),
        }
    }

    /// What was called has panicked. Not while the service's state is held.
    pub(crate) fn broke(self) {
        if let Self::Operation { service, .. } = &self {
            service.metrics().panicked();
        }
        self.fail("The server has failed at this call: please report it.");
    }

    /// The call did not come through. Not while the service's state is held.
    pub(crate) fn fail(self, reason: &str) {
        match self {
            Self::Tail(call) => drop(call),
            other => other.send(Ok(threw(reason))),
        }
    }
}

impl Address {
    /// What it is used as.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Export(export) => export.kind(),
            Self::Remote(remote) => remote.kind,
            Self::Host(host) => host.kind(),
            Self::Entrypoint(_) => Kind::Entrypoint,
            Self::Loader(_) => Kind::Loader,
            Self::Worker(_) | Self::Failed(_) | Self::Broken => Kind::Target,
        }
    }

    /// What it takes of memory besides its place in a table.
    pub(crate) fn data_bytes(&self) -> u64 {
        match self {
            Self::Entrypoint(entrypoint) => entrypoint.data_bytes(),
            _ => 0,
        }
    }

    /// Which capability it is, as long as it is kept.
    pub(crate) fn identity(&self) -> Identity {
        match self {
            Self::Entrypoint(entrypoint) => entrypoint.identity(),
            Self::Export(export) => Identity::Export(Arc::as_ptr(&export.given).addr()),
            Self::Remote(remote) => Identity::Remote(remote.object),
            Self::Host(host) => host.identity(),
            Self::Loader(_) => Identity::Loader,
            Self::Worker(_) | Self::Failed(_) | Self::Broken => Identity::Broken,
        }
    }

    /// Whether it belongs to another session than this one's.
    pub(crate) fn is_foreign_to(&self, owner: &Owner) -> bool {
        match self {
            Self::Entrypoint(entrypoint) => entrypoint.worker.owner().session != owner.session,
            Self::Export(export) => export.worker.owner().session != owner.session,
            _ => false,
        }
    }

    /// As a worker holds it: what belongs to those that have loaded it does not keep them loaded.
    pub(crate) fn held_by(self, holder: &Facts) -> Self {
        match self {
            Self::Entrypoint(entrypoint) => Self::Entrypoint(entrypoint.held_by(holder)),
            Self::Export(export) => Self::Export(Export {
                worker: export.worker.held_by(holder),
                ..export
            }),
            other => other,
        }
    }

    /// What whoever is given this can do with it outside of `env`. Loaders and workers are not passed on.
    pub(crate) fn passed(self) -> Self {
        match self {
            Self::Loader(_) | Self::Worker(_) => Self::Broken,
            other => other,
        }
    }

    /// Calls, or reads, what is at `path`. Dropping the future gives the call up.
    pub async fn call(
        &self,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        result_form: Form,
    ) -> CallAnswer {
        match self {
            Self::Entrypoint(entrypoint) => {
                entrypoint.invoke(access, path, args, result_form).await
            }
            Self::Export(export) => {
                let worker = &export.worker;
                worker
                    .invoke_export(export, access, path, args, result_form)
                    .await
            }
            Self::Remote(remote) => {
                let (sender, answer) = oneshot::channel();
                // Where it is not sent, nobody is left who could answer.
                let _kept = remote.call(RemoteCall {
                    path,
                    access,
                    args,
                    answer_to: AnswerTo::Caller(sender),
                });
                let gone = || Ok(threw(CLIENT_GONE));
                answer.await.unwrap_or_else(|_| gone())
            }
            Self::Host(host) => {
                let (sender, answer) = oneshot::channel();
                let call = HostCall {
                    path,
                    access,
                    args,
                    caller: None,
                };
                let _kept = host.call(call, AnswerTo::Caller(sender));
                answer.await.unwrap_or_else(|_| Ok(threw(HOST_GONE)))
            }
            Self::Failed(reason) => Ok(threw(reason)),
            Self::Loader(_) | Self::Worker(_) => Ok(threw(NOT_CALLABLE)),
            Self::Broken => Ok(threw("This capability is not one that the isolate holds.")),
        }
    }
}

/// What calls of loaders and workers are answered with.
pub(crate) const NOT_CALLABLE: &str = "This capability can't be called: it loads workers.";

/// An answer that is an exception of ours.
pub(crate) fn threw(message: &str) -> Answered {
    Answered::of(Report {
        outcome: Outcome::Threw(Box::new(Thrown {
            name: "Error".into(),
            message: message.into(),
            ..Thrown::default()
        })),
        usage: Usage::default(),
        logs: Vec::new(),
        log_bytes_dropped: 0,
    })
}

/// The session that something came from.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) session: SessionId,
    revoked: Arc<Revoked>,
}

#[derive(Debug, Default)]
struct Revoked {
    is_revoked: AtomicBool,
    notify: Notify,
}

impl Owner {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            revoked: Arc::default(),
        }
    }

    /// Makes everything of this owner useless. Returns whether it was the first to do so.
    pub(crate) fn revoke(&self) -> bool {
        !self.revoked.is_revoked.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.is_revoked.load(Ordering::Relaxed)
    }

    /// Tells those who wait for the end, after everything else has been.
    pub(crate) fn announce_end(&self) {
        self.revoked.notify.notify_waiters();
    }

    /// Waits until it is revoked and what belongs to it has ended.
    pub(crate) async fn ended(&self) {
        let mut notified = std::pin::pin!(self.revoked.notify.notified());
        notified.as_mut().enable();
        if !self.is_revoked() {
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revoking_an_owner_reaches_every_copy_of_it() {
        let owner = Owner::new(SessionId(1));
        let copy = owner.clone();
        assert!(owner.revoke());
        assert!(!copy.revoke());
        assert!(copy.is_revoked());
    }
}
