//! What the end-to-end tests share: the real server in a process of its own, readings of it, and clients of several
//! kinds.
//!
//! Nothing here waits for ever: whatever does not happen in time fails the test and says what was there instead.

#![allow(dead_code, unused_imports, reason = "every test file uses some of it")]
#![allow(
    unreachable_pub,
    reason = "what a module offers to its neighbours is its face here too"
)]
#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod admin;
mod cutting;
pub mod frames;
mod neighbour;
mod process;
mod proxy;
mod server;
pub mod site;
pub mod website;
pub mod wire;

pub use admin::{Gauges, get};
pub use cutting::CuttingProxy;
pub use neighbour::Neighbour;
pub use process::{
    Appetite, cordons, family, forget_resident_peak, resident_bytes, resident_bytes_of,
    resident_bytes_peak, status, wanted_ns,
};
pub use proxy::Proxy;
pub use server::Server;

use coracle_client::{
    Answer, ConnectOptions, Coracle, Entrypoint, Error, Limits, Outcome as Ending, Value, Worker,
    WorkerCode,
};
use std::{future::Future, time::Duration};

/// What one step of a test may take on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a step, but not for ever.
pub async fn within<T>(patience: Duration, what: &str, step: impl Future<Output = T>) -> T {
    match tokio::time::timeout(patience, step).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within {patience:?}"),
    }
}

/// Tries until it is so. `look` says what is there instead.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(_) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await
            }
            Err(instead) => panic!("{what}: not within {PATIENCE:?}, but {instead}"),
        }
    }
}

/// Waits until a server's memory does not grow any more, and says how far it has.
pub async fn growth_at_rest(server: &Server, before: u64) -> u64 {
    let mut last = 0;
    eventually("the server's memory comes to rest", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        let at_rest = grown.abs_diff(last) < 1 << 20;
        last = grown;
        if at_rest {
            Ok(grown)
        } else {
            Err(format!("it has grown to {} MiB", grown >> 20))
        }
    })
    .await
}

/// A client on that address, logged in without a token.
pub async fn client(address: &str) -> Coracle {
    within(
        PATIENCE,
        "a client connects",
        Coracle::connect(address, ConnectOptions::default()),
    )
    .await
    .unwrap()
}

/// A worker of one module.
pub fn module(source: &str) -> WorkerCode {
    WorkerCode::new("main.js").es_module("main.js", source)
}

/// A module whose default export is an entrypoint with these methods.
pub fn class(methods: &str) -> String {
    format!(
        "import {{ WorkerEntrypoint }} from 'cloudflare:workers';\n\
         export default class extends WorkerEntrypoint {{ {methods} }}"
    )
}

/// The entrypoint of a new worker that has these methods.
pub fn load(coracle: &Coracle, methods: &str) -> Entrypoint {
    coracle.load(module(&class(methods))).entrypoint("default")
}

/// Calls, and takes any answer for one that has to come.
pub async fn answer(entrypoint: &Entrypoint, method: &str, args: Vec<Value>) -> Answer {
    within(PATIENCE * 3, method, entrypoint.call(method, args))
        .await
        .unwrap()
}

/// Calls, and expects a value.
#[track_caller]
pub fn value(answer: Answer) -> Value {
    match answer.outcome {
        Ending::Value(value) => value,
        other => panic!("a value was expected, not {other:?}"),
    }
}

/// The kind of the verdict that an answer has to be, with the limit's name.
#[track_caller]
pub fn verdict(answer: &Answer) -> (&str, &str) {
    match &answer.outcome {
        Ending::Verdict(verdict) => (&verdict.kind, &verdict.limit_name),
        other => panic!("a verdict was expected, not {other:?}"),
    }
}

/// The name and message of the exception that an answer has to be.
#[track_caller]
pub fn threw(answer: &Answer) -> (&str, &str) {
    match &answer.outcome {
        Ending::Threw(thrown) => (&thrown.name, &thrown.message),
        other => panic!("an exception was expected, not {other:?}"),
    }
}
