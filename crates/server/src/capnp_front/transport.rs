//! One connection: bytes in, bytes out, and what a peer may do to them.
//!
//! Who does not log in in time, or fails too often, is let go.

use super::{Connected, Remotes, gate::GateServer, remotes};
use crate::standing::{ConnectionSettings, Standing};
use capnp_rpc::{Disconnector, RpcSystem, rpc_twoparty_capnp::Side};
use coracle_schema::gate;
use coracle_transport::server_network;
use futures::{
    FutureExt,
    io::{AsyncRead, AsyncWrite},
};
use std::{
    cell::{Cell, RefCell},
    panic::AssertUnwindSafe,
    rc::Rc,
};

/// Empties a connection's tables when it is left, for whatever reason. They refer to calls under way, which refer to the
/// connection: without this, a connection with a call would live for ever, and its socket with it. What the client calls
/// its own object may be the promise of one of ours, which is such a circle, too.
struct HangUp {
    connected: Rc<Connected>,
    disconnector: Option<Disconnector<Side>>,
}

impl Drop for HangUp {
    fn drop(&mut self) {
        self.connected.remotes.forget_all();
        if let Some(disconnector) = self.disconnector.take() {
            // The first poll empties the tables; nobody waits for the peer to read what it is told.
            let _ = AssertUnwindSafe(disconnector).catch_unwind().now_or_never();
        }
    }
}

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(stream: S, settings: ConnectionSettings)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let standing = Rc::new(Standing::default());
    let (remotes, commands) = Remotes::new();
    let connected = Rc::new(Connected {
        service: settings.service,
        holdings: Rc::clone(&settings.holdings),
        remotes,
        targets: RefCell::default(),
        loaders: RefCell::default(),
        owner: RefCell::default(),
        targets_made: Cell::new(0),
    });
    let remote_calls = remotes::serve(Rc::clone(&connected), commands);
    tokio::pin!(remote_calls);
    let gate: gate::Client = capnp_rpc::new_client(GateServer {
        connected: Rc::clone(&connected),
        tokens: settings.tokens,
        peer: settings.peer,
        standing: Rc::clone(&standing),
    });
    let network = server_network(stream, settings.holdings);
    // What a peer sends must not be able to make the RPC layer panic; if it does, this connection pays for it.
    let system = RpcSystem::new(Box::new(network), Some(gate.client));
    let disconnector = system.get_disconnector();
    let system = AssertUnwindSafe(system).catch_unwind();
    tokio::pin!(system);
    let _hang_up = HangUp {
        connected: Rc::clone(&connected),
        disconnector: Some(disconnector),
    };

    // Whoever does not log in in time, or fails too often, is let go.
    let deadline = tokio::time::sleep(settings.login_deadline);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            biased;
            outcome = &mut system => {
                match outcome {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%error, "connection ended"),
                    Err(_) => connected.service.metrics().panicked(),
                }
                return;
            }
            () = &mut remote_calls => {}
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
