//! What is noted of an invocation for the tails of its worker.

use super::Tail;
use coracle_isolate::{Aftermath, Call, CallAccess, Report, Verdict};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// Bytes of the arguments of `fetch` that are looked at for what was asked for.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// An invocation that is told of.
pub(crate) struct Trace {
    pub(super) tails: Arc<[Arc<Tail>]>,
    pub(super) invocation: u64,
    pub(super) entrypoint: Arc<str>,
    pub(super) path: Vec<String>,
    pub(super) access: CallAccess,
    /// The arguments of a call of `fetch`.
    pub(super) request: Option<Vec<u8>>,
    pub(super) begun_ms: f64,
    /// How many calls of tails have led to it.
    pub(super) depth: u8,
    /// Events that were streamed.
    sequence: AtomicU64,
}

impl Trace {
    pub(crate) fn new(tails: &Arc<[Arc<Tail>]>, call: &Call, depth: u8) -> Arc<Self> {
        let is_fetch = call.path == ["fetch"] && call.args.bytes.len() <= REQUEST_BYTES_MAX;
        Arc::new(Self {
            tails: Arc::clone(tails),
            invocation: call.invocation,
            entrypoint: Arc::clone(&call.entrypoint),
            path: call.path.clone(),
            access: call.access,
            request: is_fetch.then(|| call.args.bytes.clone()),
            begun_ms: now_ms(),
            depth,
            sequence: AtomicU64::new(0),
        })
    }

    pub(super) fn is_fetch(&self) -> bool {
        self.path == ["fetch"]
    }

    pub(super) fn next(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }
}

/// How an invocation ended, and what it did after that.
pub(crate) struct Ending {
    /// Of a value only what a response says of itself.
    pub(super) report: Report,
    pub(super) aftermath: Option<Aftermath>,
    pub(super) ended_ms: f64,
}

impl Ending {
    pub(crate) fn new(report: Report, aftermath: Option<Aftermath>) -> Box<Self> {
        Box::new(Self {
            report,
            aftermath,
            ended_ms: now_ms(),
        })
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        let after = self.aftermath.as_ref();
        let after = after.and_then(|aftermath| aftermath.verdict.as_ref());
        match &self.report.outcome {
            coracle_isolate::Outcome::Verdict(verdict) => Some(verdict),
            _ => after,
        }
    }
}

pub(super) fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_millis() as f64)
}
