//! One connection: bytes in, bytes out, and what a peer may do to them.
//!
//! Who does not log in in time, or fails too often, is let go.

use super::gate::{GateServer, Standing};
use crate::{
    auth::{Peer, Tokens},
    service::Service,
};
use capnp_rpc::{RpcSystem, rpc_twoparty_capnp::Side};
use coracle_schema::gate;
use futures::io::{AsyncRead, AsyncWrite};
use std::{rc::Rc, sync::Arc, time::Duration};

/// What a connection is served with.
pub(crate) struct ConnectionSettings {
    pub(crate) service: Arc<Service>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) peer: Peer,
    pub(crate) message_bytes_max: u64,
    pub(crate) login_deadline: Duration,
}

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(stream: S, settings: ConnectionSettings)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let standing = Rc::new(Standing::default());
    let gate: gate::Client = capnp_rpc::new_client(GateServer {
        service: settings.service,
        tokens: settings.tokens,
        peer: settings.peer,
        standing: Rc::clone(&standing),
    });
    let network = coracle_transport::network(stream, Side::Server, settings.message_bytes_max);
    let system = RpcSystem::new(Box::new(network), Some(gate.client));
    tokio::pin!(system);

    // Whoever does not log in in time, or fails too often, is let go.
    let deadline = tokio::time::sleep(settings.login_deadline);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            biased;
            outcome = &mut system => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = standing.changed.notified() => {
                if standing.is_given_up() {
                    tracing::info!("connection closed after too many failed logins");
                    return;
                }
            }
            () = &mut deadline, if !standing.logged_in() => {
                tracing::debug!("connection closed: no login in time");
                return;
            }
        }
    }
}
