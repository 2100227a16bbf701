//! The Cap'n Proto front end: the schema's interfaces on top of sessions.
//!
//! Everything here lives on one RPC thread. A panic never leaves a method, because it would take the whole connection
//! and leak what it holds; each method goes through [`guarded`].

mod convert;
mod gate;
mod loader;
mod result_target;
mod target;
mod transport;

pub(crate) use self::transport::{ConnectionSettings, serve};

use capnp::Error;
use coracle_loader::Refusal;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;

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
