//! The Cap'n Proto front end: the schema's interfaces on top of sessions.
//!
//! Everything here lives on one RPC thread. A panic never leaves a method, because it would take the whole connection
//! and leak what it holds; each method goes through [`guarded`], most by way of
//! [`pipelined`](pipelined::pipelined).

mod convert;
mod gate;
mod get;
mod loader;
mod pipelined;
mod remotes;
mod result_target;
mod target;
mod transport;

pub(crate) use self::transport::serve;

use self::{loader::LoaderServer, remotes::Remotes, target::TargetServer};
use crate::{router::Owner, service::Service};
use capnp::{Error, capability::FromClientHook, private::capability::ClientHook};
use capnp_rpc::CapabilityServerSet;
use coracle_loader::Refusal;
use coracle_schema as schema;
use coracle_transport::{Full, Held, Holdings};
use futures::FutureExt;
use std::{
    cell::{Cell, RefCell},
    panic::AssertUnwindSafe,
    rc::Rc,
    sync::Arc,
};

/// What everything on one connection shares.
struct Connected {
    service: Arc<Service>,
    holdings: Rc<Holdings>,
    /// The client's objects.
    remotes: Remotes,
    /// Ours that it was given, to know them when they come back.
    targets: RefCell<CapabilityServerSet<TargetServer, schema::target::Client>>,
    /// Those of them that load workers.
    loaders: RefCell<CapabilityServerSet<LoaderServer, schema::loader::Client>>,
    /// The login that it has or had last.
    owner: RefCell<Option<Owner>>,
    /// Targets made since those that are gone were last forgotten.
    targets_made: Cell<u32>,
}

/// Targets after which those that are gone are forgotten: the set would keep their memory for ever.
const TARGETS_MADE_MAX: u32 = 256;

/// What an object on offer takes besides its data: itself, and its place in the RPC layer's tables.
const OBJECT_BYTES: u64 = 1024;

impl Connected {
    /// Counts what an object with that much data holds, for as long as it lives.
    fn hold(&self, data_bytes: u64) -> Result<Held, Error> {
        self.holdings
            .hold(OBJECT_BYTES.saturating_add(data_bytes))
            .map_err(|full| self.refuse(full))
    }

    /// Puts a target up, to be known when it comes back.
    fn offer(&self, target: TargetServer) -> schema::target::Client {
        let mut targets = self.targets.borrow_mut();
        self.targets_made.set(self.targets_made.get() + 1);
        if self.targets_made.get() >= TARGETS_MADE_MAX {
            self.targets_made.set(0);
            targets.gc();
        }
        targets.new_client(target)
    }

    /// Whether a capability is a loader that the client was given, and can still load with.
    fn is_own_loader(&self, loader: schema::loader::Client) -> bool {
        let loader = schema::loader::Client::new(resolved(loader.into_client_hook()));
        let server = self.loaders.borrow().get_local_server_of_resolved(&loader);
        server.is_some_and(|server| server.is_open())
    }

    /// Whether the client may be given more.
    fn check(&self) -> Result<(), Error> {
        self.holdings.check().map_err(|full| self.refuse(full))
    }

    fn refuse(&self, full: Full) -> Error {
        self.service.metrics().request_refused(full.as_str());
        Error::overloaded(full.to_string())
    }
}

/// What a capability is now. It may have been sent before the answer with it had arrived.
fn resolved(mut hook: Box<dyn ClientHook>) -> Box<dyn ClientHook> {
    while let Some(resolved) = hook.get_resolved() {
        hook = resolved;
    }
    hook
}

/// Runs a method so that a panic in it is an error of the call and of nothing else.
async fn guarded<F>(metrics: &crate::metrics::Metrics, method: F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>>,
{
    match AssertUnwindSafe(method).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(_) => {
            metrics.panicked();
            Err(Error::failed(
                "the server failed while it served this call; please report it".into(),
            ))
        }
    }
}

fn refused(refusal: Refusal) -> Error {
    if refusal == Refusal::Draining {
        Error::disconnected(refusal.to_string())
    } else if refusal.retryable() {
        Error::overloaded(refusal.to_string())
    } else {
        Error::failed(refusal.to_string())
    }
}
