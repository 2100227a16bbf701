//! What a connection is served with, and how it has behaved so far, whatever it speaks: whether it has logged in, and how often it has tried in vain.

use crate::{
    auth::{self, Credentials, LoginRefused, Peer, Tokens},
    metrics::Metrics,
    router::Owner,
    service::Service,
    session::Session,
};
use coracle_transport::Holdings;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::sync::{MutexGuard, Notify};

/// Logins that may fail on one connection before it is given up.
const FAILURES_MAX: u32 = 5;
/// How long a failed login is held back, so that guessing is slow.
pub(crate) const FAILURE_DELAY: Duration = Duration::from_millis(300);

/// What a connection is served with.
pub(crate) struct ConnectionSettings {
    pub(crate) service: Arc<Service>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) peer: Peer,
    pub(crate) holdings: Rc<Holdings>,
    pub(crate) login_deadline: Duration,
}

/// How a connection has behaved so far.
#[derive(Default)]
pub(crate) struct Standing {
    /// The session that it has or had.
    session: RefCell<Option<Owner>>,
    failures: Cell<u32>,
    /// Logins are looked at one after the other, so that guessing in parallel is no faster.
    turn: tokio::sync::Mutex<()>,
    /// Told of every change.
    pub(crate) changed: Notify,
}

/// Why a connection may not log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAdmitted {
    // What a session may hold is bounded; how many a connection has must be too.
    #[error("this connection has a session; close it, or connect once more for another")]
    HasSession,
    #[error(transparent)]
    Refused(#[from] LoginRefused),
}

/// The right to open a session now.
pub(crate) struct Admission<'a> {
    standing: &'a Standing,
    /// For whom.
    pub(crate) tenant: String,
    _turn: MutexGuard<'a, ()>,
}

impl Standing {
    pub(crate) fn logged_in(&self) -> bool {
        self.session.borrow().is_some()
    }

    fn has_session(&self) -> bool {
        let session = self.session.borrow();
        session.as_ref().is_some_and(|owner| !owner.is_revoked())
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.failures.get() >= FAILURES_MAX
    }

    /// Looks at credentials. A refusal takes its time.
    pub(crate) async fn admit(
        &self,
        metrics: &Metrics,
        tokens: &Tokens,
        peer: Peer,
        credentials: &Credentials,
    ) -> Result<Admission<'_>, NotAdmitted> {
        let turn = self.turn.lock().await;
        if self.has_session() {
            return Err(NotAdmitted::HasSession);
        }
        let outcome = auth::login(tokens, peer, credentials);
        metrics.login(outcome.is_ok());
        match outcome {
            Ok(tenant) => Ok(Admission {
                standing: self,
                tenant,
                _turn: turn,
            }),
            Err(refusal) => {
                tokio::time::sleep(FAILURE_DELAY).await;
                self.failures.set(self.failures.get() + 1);
                self.changed.notify_one();
                Err(refusal.into())
            }
        }
    }
}

impl Admission<'_> {
    /// The session has been opened.
    pub(crate) fn opened(self, session: &Session) {
        *self.standing.session.borrow_mut() = Some(session.owner());
        self.standing.changed.notify_one();
    }
}
