//! Methods whose answers have capabilities that a client uses before it has the answer.

use super::guarded;
use crate::metrics::Metrics;
use capnp::{Error, capability::Results, traits::Owned};
use coracle_schema::{call_results, gate, loader, session, target, worker};
use std::rc::Rc;

/// The capabilities of a method's answer.
pub(super) trait Capabilities: Owned {
    /// Puts capabilities into the answer whose every call fails in that way.
    fn set_broken(results: Self::Builder<'_>, broken: &Broken);
}

/// Runs a method as [`guarded`] does; when it fails, so do the calls that were sent ahead to what it was to answer with,
/// and in the same way. Of itself, `capnp-rpc` tells them of a null pointer where the client had let go of the call by
/// then.
pub(super) async fn pipelined<T: Capabilities>(
    metrics: &Metrics,
    mut results: Results<T>,
    method: impl AsyncFnOnce(&mut Results<T>) -> Result<(), Error>,
) -> Result<(), Error> {
    let outcome = guarded(metrics, method(&mut results)).await;
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => Broken(error).fail(results),
    }
}

/// What is in place of a capability that there was to be.
#[derive(Clone)]
pub(super) struct Broken(Error);

impl Broken {
    fn fail<T: Capabilities>(&self, mut results: Results<T>) -> Result<(), Error> {
        T::set_broken(results.get(), self);
        results.set_pipeline()?;
        Err(self.0.clone())
    }
}

impl Capabilities for gate::login_results::Owned {
    fn set_broken(mut results: Self::Builder<'_>, broken: &Broken) {
        results.set_loader(capnp_rpc::new_client(broken.clone()));
        results.set_session(capnp_rpc::new_client(broken.clone()));
    }
}

impl Capabilities for loader::load_results::Owned {
    fn set_broken(mut results: Self::Builder<'_>, broken: &Broken) {
        results.set_worker(capnp_rpc::new_client(broken.clone()));
    }
}

impl Capabilities for loader::get_results::Owned {
    fn set_broken(mut results: Self::Builder<'_>, broken: &Broken) {
        results.set_worker(capnp_rpc::new_client(broken.clone()));
    }
}

impl Capabilities for worker::get_entrypoint_results::Owned {
    fn set_broken(mut results: Self::Builder<'_>, broken: &Broken) {
        results.set_entrypoint(capnp_rpc::new_client(broken.clone()));
    }
}

impl Capabilities for call_results::Owned {
    fn set_broken(mut results: Self::Builder<'_>, broken: &Broken) {
        results.set_pipeline(capnp_rpc::new_client(broken.clone()));
    }
}

impl session::Server for Broken {
    async fn tenant(
        self: Rc<Self>,
        _params: session::TenantParams,
        _results: session::TenantResults,
    ) -> Result<(), Error> {
        Err(self.0.clone())
    }

    async fn close(
        self: Rc<Self>,
        _params: session::CloseParams,
        _results: session::CloseResults,
    ) -> Result<(), Error> {
        Err(self.0.clone())
    }
}

impl loader::Server for Broken {
    async fn load(
        self: Rc<Self>,
        _params: loader::LoadParams,
        results: loader::LoadResults,
    ) -> Result<(), Error> {
        self.fail(results)
    }

    async fn get(
        self: Rc<Self>,
        _params: loader::GetParams,
        results: loader::GetResults,
    ) -> Result<(), Error> {
        self.fail(results)
    }
}

impl worker::Server for Broken {
    async fn get_entrypoint(
        self: Rc<Self>,
        _params: worker::GetEntrypointParams,
        results: worker::GetEntrypointResults,
    ) -> Result<(), Error> {
        self.fail(results)
    }

    async fn ready(
        self: Rc<Self>,
        _params: worker::ReadyParams,
        results: worker::ReadyResults,
    ) -> Result<(), Error> {
        self.fail(results)
    }
}

impl target::Server for Broken {
    async fn call(
        self: Rc<Self>,
        _params: target::CallParams,
        results: target::CallResults,
    ) -> Result<(), Error> {
        self.fail(results)
    }

    async fn get(
        self: Rc<Self>,
        _params: target::GetParams,
        results: target::GetResults,
    ) -> Result<(), Error> {
        self.fail(results)
    }
}
