//! Requests that leave by a policy: the doors of workers, and what comes back through them.
//!
//! What may leave is decided in `coracle-outbound`; here requests and responses become values and streams. All of it runs
//! on threads of its own, so that neither isolates nor connections wait for the network.

mod ask;
mod door;
mod records;
mod streams;
mod values;

pub(crate) use self::records::Records;

use crate::{host::Host, router::Address};
use coracle_loader::{PolicyAsked, SessionId};
use coracle_outbound::{Asked, Audit, Config, ConfigError, Connections, Outbound, OwnAddresses};
use std::{io, sync::Arc};
use tokio::runtime::{Builder, Handle, Runtime};

/// Where requests leave, for all workers of a server.
pub(crate) struct Egress {
    outbound: Arc<Outbound>,
    runtime: Handle,
}

/// Why it can't be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("can't start a thread: {0}")]
    Thread(#[from] io::Error),
}

impl Egress {
    /// Starts the threads; they end with the runtime that is returned.
    pub(crate) fn start(
        config: Config,
        threads: usize,
        own: OwnAddresses,
        audit: Arc<dyn Audit>,
    ) -> Result<(Self, Runtime), EgressError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("outbound")
            .enable_all()
            .build()?;
        let outbound = {
            let _entered = runtime.enter();
            Outbound::new(config, own, audit)?
        };
        let egress = Self {
            outbound: Arc::new(outbound),
            runtime: runtime.handle().clone(),
        };
        Ok((egress, runtime))
    }

    /// Tells how many connections are open.
    pub(crate) fn connections(&self) -> impl Fn() -> Connections + Send + Sync + use<> {
        let outbound = Arc::clone(&self.outbound);
        move || outbound.connections()
    }

    /// The way out of a worker of that tenant and session. What it is not allowed says why.
    pub(crate) fn door(
        &self,
        tenant: &str,
        session: SessionId,
        asked: &PolicyAsked,
        ask: Option<&Address>,
    ) -> Result<Address, String> {
        let asked = match asked {
            PolicyAsked::Session => Asked::Session,
            PolicyAsked::Named(name) => Asked::Named(name),
            PolicyAsked::Given(rules) => Asked::Given(rules),
        };
        let ask = ask.map(|address| ask::Asker::shared(address.clone()));
        let channel = self.outbound.channel(tenant, asked, ask);
        let channel = channel.map_err(|error| error.to_string())?;
        let channel = channel.of_session(session.0);
        let door = door::Door::new(channel, tenant, &self.runtime);
        Ok(Host::address(Arc::new(door), &self.runtime))
    }
}
