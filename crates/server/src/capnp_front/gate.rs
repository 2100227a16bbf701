//! `Gate` and `Session`: getting in, and the lifetime of a login.

use super::{Connected, guarded, loader::LoaderServer, pipelined::pipelined};
use crate::{
    auth::{self, Credentials, Peer, Tokens},
    router::Owner,
    session::Session,
};
use capnp::Error;
use coracle_schema::{credentials, gate, session};
use coracle_transport::Held;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// Logins that may fail on one connection before it is given up.
const FAILURES_MAX: u32 = 5;
/// How long a failed login is held back, so that guessing is slow.
const FAILURE_DELAY: Duration = Duration::from_millis(300);

/// What connections hold before they have logged in.
pub(super) struct GateServer {
    pub(super) connected: Rc<Connected>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) peer: Peer,
    pub(super) standing: Rc<Standing>,
}

/// How a connection has behaved so far.
#[derive(Default)]
pub(super) struct Standing {
    /// The session that it has or had.
    session: RefCell<Option<Owner>>,
    failures: Cell<u32>,
    /// Logins are looked at one after the other, so that guessing in parallel is no faster.
    turn: tokio::sync::Mutex<()>,
    pub(super) changed: tokio::sync::Notify,
}

impl Standing {
    pub(super) fn logged_in(&self) -> bool {
        self.session.borrow().is_some()
    }

    fn has_session(&self) -> bool {
        let session = self.session.borrow();
        session.as_ref().is_some_and(|owner| !owner.is_revoked())
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.failures.get() >= FAILURES_MAX
    }
}

impl gate::Server for GateServer {
    async fn login(
        self: Rc<Self>,
        params: gate::LoginParams,
        results: gate::LoginResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
                let service = &this.connected.service;
                let credentials = match params.get()?.get_credentials()?.which()? {
                    credentials::None(()) => Credentials::None,
                    credentials::BearerToken(token) => {
                        Credentials::BearerToken(super::convert::text(token?)?)
                    }
                };
                drop(params);
                let _turn = this.standing.turn.lock().await;
                // What a session may hold is bounded; how many a connection has must be too.
                if this.standing.has_session() {
                    return Err(Error::failed(
                        "this connection has a session; close it, or connect once more for another"
                            .into(),
                    ));
                }
                let outcome = auth::login(&this.tokens, this.peer, &credentials);
                service.metrics().login(outcome.is_ok());
                let tenant = match outcome {
                    Ok(tenant) => tenant,
                    Err(refusal) => {
                        tokio::time::sleep(FAILURE_DELAY).await;
                        this.standing.failures.set(this.standing.failures.get() + 1);
                        this.standing.changed.notify_one();
                        return Err(Error::failed(refusal.to_string()));
                    }
                };
                let (held_loader, held_session) =
                    (this.connected.hold(0)?, this.connected.hold(0)?);
                let session = Session::open(service, tenant);
                *this.standing.session.borrow_mut() = Some(session.owner());
                *this.connected.owner.borrow_mut() = Some(session.owner());
                this.standing.changed.notify_one();
                this.connected.holdings.introduce();
                let mut builder = results.get();
                let loader = LoaderServer::new(&this.connected, &session, held_loader);
                let loader = this.connected.loaders.borrow_mut().new_client(loader);
                builder.set_loader(loader);
                let handle: session::Client = capnp_rpc::new_client(SessionServer {
                    connected: Rc::clone(&this.connected),
                    session,
                    used: Cell::new(false),
                    _held: held_session,
                });
                builder.set_session(handle);
                Ok(())
            },
        )
        .await
    }
}

struct SessionServer {
    connected: Rc<Connected>,
    session: Session,
    /// Whether the client knows that it holds this.
    used: Cell<bool>,
    _held: Held,
}

impl session::Server for SessionServer {
    async fn tenant(
        self: Rc<Self>,
        _params: session::TenantParams,
        mut results: session::TenantResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.connected.service.metrics(), async move {
            this.used.set(true);
            results.get().set_name(this.session.tenant());
            Ok(())
        })
        .await
    }

    async fn close(
        self: Rc<Self>,
        _params: session::CloseParams,
        _results: session::CloseResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.connected.service.metrics(), async move {
            this.session.close();
            Ok(())
        })
        .await
    }
}

impl Drop for SessionServer {
    fn drop(&mut self) {
        // Without that it was dropped unseen, by a client that pipelined through `login`.
        if self.used.get() {
            self.session.close();
        }
    }
}
