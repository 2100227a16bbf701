//! The border: what the guest can reach of the host, and what the host keeps about it.
//!
//! Every pointer, length, id and byte that arrives here is hostile. The imports check, charge and note down; the actor
//! acts on the notes after the slice.

mod imports;
mod loading;
mod meter;
mod outbox;

pub(crate) use imports::{linker, log_cost, snapshot_linker};
pub(crate) use outbox::{Finished, Outbox, Started, lock};

use crate::{
    fuel,
    message::{Log, Thrown, VerdictKind},
    pool_memory::{PoolMemory, Purse},
    sandbox::{MEMORY_BYTES_CEILING, TABLE_ELEMENTS_MAX},
    snapshots::Snapshot,
};
use coracle_loader::Limits;
use meter::Meter;
use std::sync::{Arc, Mutex, MutexGuard};
use wasmtime::{Memory, ResourceLimiter};

/// Why the host itself ended an entry; found in the error that the entry returns.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) kind: VerdictKind,
    pub(crate) limit_name: &'static str,
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "stopped: {}", self.kind.as_str())
    }
}

impl std::error::Error for Stop {}

/// The guest ends its isolate with this; found in the error that the entry returns.
#[derive(Debug)]
pub(crate) struct Abort(pub(crate) Box<Thrown>);

impl std::fmt::Display for Abort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("aborted by the guest")
    }
}

impl std::error::Error for Abort {}

/// What an entry may do.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowance {
    pub(crate) log_bytes: u64,
    pub(crate) subrequests_sent: u64,
    pub(crate) subrequests_max: u64,
    pub(crate) memory_bytes_max: u64,
}

/// What a store holds.
pub(crate) struct State {
    outbox: Arc<Mutex<Outbox>>,
    memory: Option<Memory>,
    result_bytes_max: usize,
    limits: Limits,
    purse: Purse,
    operation_last: u64,
    allowance: Allowance,
    now_ms: f64,
    /// What the entry may burn.
    fuel: u64,
    meter: Meter,
    /// Host operations have used up the slice.
    slice_over: bool,
    /// `None`: the system's randomness.
    seed: Option<u64>,
    /// What a load writes to the console, as long as it does nothing that could not be done in its place another time.
    load_logs: Option<Vec<Log>>,
}

impl State {
    pub(crate) fn new(
        outbox: Arc<Mutex<Outbox>>,
        limits: &Limits,
        purse: Purse,
        seed: Option<u64>,
    ) -> Self {
        Self {
            outbox,
            memory: None,
            result_bytes_max: usize::try_from(limits.result_bytes_max).unwrap_or(usize::MAX),
            limits: *limits,
            purse,
            operation_last: 0,
            allowance: Allowance::default(),
            now_ms: 0.0,
            fuel: 0,
            meter: Meter::begin(0, fuel::SLICE),
            slice_over: false,
            seed,
            load_logs: None,
        }
    }

    /// For an instance that nothing runs in.
    pub(crate) fn for_comparison() -> Self {
        Self::for_snapshot()
    }

    /// The load that comes now may be repeated by its snapshot.
    pub(crate) fn record_load(&mut self) {
        self.load_logs = Some(Vec::new());
    }

    /// What a load that is over has written to the console, where that is all that it has done outside.
    pub(crate) fn logs_of_repeatable_load(&self) -> Option<Vec<Log>> {
        let logs = self.load_logs.clone()?;
        self.outbox().is_repeatably_loaded().then_some(logs)
    }

    /// A load has done what is not repeated with its snapshot.
    fn spoil_load(&mut self) {
        self.load_logs = None;
    }

    /// Says in the guest's place what it said when the worker was loaded before.
    pub(crate) fn replay(&self, snapshot: &Snapshot, now_ms: f64) {
        snapshot.replay(&mut self.outbox(), now_ms);
    }

    /// For the guest's set-up at build time: bound by nothing.
    pub(crate) fn for_snapshot() -> Self {
        let mut state = Self::new(
            Arc::default(),
            &Limits::default(),
            PoolMemory::new(u64::MAX).purse(0, u64::MAX),
            Some(1),
        );
        state.allowance.log_bytes = Limits::default().log_bytes_max;
        state.allowance.memory_bytes_max = MEMORY_BYTES_CEILING;
        state
    }

    /// What the guest's set-up wrote before it failed.
    pub(crate) fn setup_log(&self) -> Vec<String> {
        self.outbox()
            .logs
            .iter()
            .map(|log| log.message.clone())
            .collect()
    }

    pub(crate) fn set_memory(&mut self, memory: Memory) {
        self.memory = Some(memory);
    }

    /// See [`Outbox::load_threw`].
    pub(crate) fn load_threw(&self, thrown: &Thrown) {
        self.outbox().load_threw(thrown);
    }

    /// Bytes of linear memory that the instance may have.
    pub(crate) fn memory_bytes_max(&self) -> u64 {
        self.allowance.memory_bytes_max.min(MEMORY_BYTES_CEILING)
    }

    /// Leaves the instance that it was with, which is gone, for another one.
    pub(crate) fn leave_instance(&mut self) {
        self.memory = None;
        self.purse.empty();
    }

    /// Prepares an entry that may burn `fuel`, in slices of `slice`.
    pub(crate) fn begin(&mut self, fuel: u64, slice: u64, now_ms: f64, allowance: Allowance) {
        self.now_ms = now_ms;
        self.allowance = allowance;
        self.fuel = fuel;
        self.meter = Meter::begin(fuel, slice);
        self.slice_over = false;
    }

    /// An id that was never used in this isolate.
    fn next_operation(&mut self) -> u64 {
        self.operation_last += 1;
        self.operation_last
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    /// Ends the entry. A script could catch a failed growth and go on in an engine that has run out of memory, which
    /// is where engines break; so it does not come to that.
    fn deny_memory(&self, limit_name: &'static str, used: u64, limit: u64) -> wasmtime::Error {
        self.outbox().memory_denied += 1;
        Stop {
            kind: VerdictKind::Memory,
            limit_name,
            used,
            limit,
        }
        .into()
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let (wanted, more) = (desired as u64, desired.saturating_sub(current) as u64);
        let limit = self.memory_bytes_max();
        if wanted > limit {
            return Err(self.deny_memory("memory_bytes_max", wanted, limit));
        }
        if let Err(full) = self.purse.take(more) {
            return Err(self.deny_memory(full.limit_name, full.used, full.limit));
        }
        self.outbox().memory_bytes = wanted;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // More than the address space of the guest, more than its module allows itself, or the kernel has no more. What
        // was taken from the pool for it is given back with the rest: the isolate ends here.
        tracing::debug!(error = format!("{error:#}"), "memory could not be grown");
        let limit = self.memory_bytes_max();
        Err(self.deny_memory("memory_bytes_max", limit + 1, limit))
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let limit = maximum
            .unwrap_or(TABLE_ELEMENTS_MAX)
            .min(TABLE_ELEMENTS_MAX);
        // Nothing of ours asks for it yet; who asks for too much has broken out of the engine.
        if desired > limit {
            return Err(wasmtime::Error::msg(format!(
                "the guest asked for a table of {desired} elements"
            )));
        }
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }
}
