//! `Gate` and `Session`: getting in, and the lifetime of a login.

use super::{Connected, guarded, loader::LoaderServer, pipelined::pipelined};
use crate::{
    auth::{Credentials, Peer, Tokens},
    session::Session,
    standing::Standing,
};
use capnp::Error;
use coracle_schema::{credentials, gate, session};
use coracle_transport::Held;
use std::{cell::Cell, rc::Rc, sync::Arc};

/// What connections hold before they have logged in.
pub(super) struct GateServer {
    pub(super) connected: Rc<Connected>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) peer: Peer,
    pub(super) standing: Rc<Standing>,
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
                let (metrics, peer) = (service.metrics(), this.peer);
                let admitted = this
                    .standing
                    .admit(metrics, &this.tokens, peer, &credentials);
                let mut admission = admitted
                    .await
                    .map_err(|refused| Error::failed(refused.to_string()))?;
                let (held_loader, held_session) =
                    (this.connected.hold(0)?, this.connected.hold(0)?);
                let session = Session::open(service, std::mem::take(&mut admission.tenant));
                *this.connected.owner.borrow_mut() = Some(session.owner());
                admission.opened(&session);
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
