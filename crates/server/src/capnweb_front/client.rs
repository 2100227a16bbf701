//! What everything on one connection shares.

use super::{object::Object, rejection::Rejection, remotes::Remotes};
use crate::{
    auth::{Peer, Tokens},
    router::Address,
    service::Service,
    session::Session,
    standing::Standing,
};
use coracle_capnweb::{Capability, Kind as WebKind};
use coracle_isolate::Kind;
use coracle_transport::{Held, Holdings};
use std::{cell::RefCell, rc::Rc, sync::Arc};

/// What an object that is given out takes besides its data: itself, and its place in the protocol's tables.
const OBJECT_BYTES: u64 = 512;

/// What everything on one connection shares.
pub(super) struct Client {
    pub(super) service: Arc<Service>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) peer: Peer,
    pub(super) holdings: Rc<Holdings>,
    pub(super) standing: Standing,
    /// The token that came with the request, for a login without one.
    pub(super) token: Option<String>,
    /// The client's objects.
    pub(super) remotes: Remotes,
    /// The login that it has or had last. It lasts as long as the connection, whatever the client lets go of.
    pub(super) session: RefCell<Option<Session>>,
}

impl Client {
    /// Counts what an object with that much data holds, for as long as it lives.
    pub(super) fn hold(&self, data_bytes: u64) -> Result<Held, Rejection> {
        let bytes = OBJECT_BYTES.saturating_add(data_bytes);
        self.holdings.hold(bytes).map_err(|full| {
            self.service.metrics().request_refused(full.as_str());
            Rejection::overloaded(full.to_string())
        })
    }

    /// What the client is given for an address: its own object, if it is one of this client's.
    pub(super) fn offer(
        self: &Rc<Self>,
        address: Address,
    ) -> Result<Capability<Object>, Rejection> {
        let kind = match address.kind() {
            Kind::Target | Kind::Loader | Kind::Entrypoint => WebKind::Target,
            Kind::Source => WebKind::Source,
            Kind::Sink => WebKind::Sink,
        };
        if let Address::Remote(remote) = &address
            && let Some(peer) = self.remotes.peer_of(remote)
        {
            return Ok(Capability::Peer { peer, kind });
        }
        let target = Object::of_address(self, address)?;
        Ok(Capability::Host { target, kind })
    }

    /// The address of what the client passes.
    pub(super) fn address(&self, capability: Capability<Object>) -> Result<Address, Rejection> {
        match capability {
            Capability::Peer { peer, kind } => {
                let kind = match kind {
                    WebKind::Target => Kind::Target,
                    WebKind::Source => Kind::Source,
                    WebKind::Sink => Kind::Sink,
                };
                Ok(self.remotes.address(peer, kind, self.hold(0)?))
            }
            Capability::Host { target, .. } => target.address(),
        }
    }
}
