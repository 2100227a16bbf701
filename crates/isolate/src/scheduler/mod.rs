//! Running isolates: the [`Scheduler`] trait; [`Threads`], which runs them in this process; and [`Stepper`], which runs
//! them a turn at a time where time must stand still.
//!
//! `queues` decides who runs next and `shares` which tenant's turn it is, `executor` runs a turn and acts on what comes of it; both are the same for the two.

mod alarms;
mod executor;
mod queues;
mod shares;
mod stepper;
mod threads;

pub use stepper::{Stepper, StepperConfig};
pub use threads::{Threads, ThreadsConfig};

use crate::message::Message;
use coracle_loader::Sign;
use std::cell::Cell;

/// Where isolates run. What is sent is bytes and numbers, so that it can be a thread or another process.
pub trait Scheduler: Send + Sync {
    /// Sends a message. Never waits. On a thread that [delivers at rest](deliver_at_rest) it may go no sooner than then.
    fn send(&self, message: Message);
    /// Lets what was sent go. To be called whenever a thread that delivers at rest comes to rest.
    fn deliver(&self) {}
    /// As [`Scheduler::send`], by somebody who calls [`Scheduler::assist`] right after: no thread needs to be woken.
    fn send_unheard(&self, message: Message) {
        self.send(message);
    }
    /// Runs what is ready on the calling thread, for about 100 µs, if nobody else is there to run it at once; what is
    /// left goes to those whose work it is. For a caller who has nothing else to do than to wait for the answer.
    fn assist(&self) {}
    /// Whether the isolates together have so much memory that soon one can't have more.
    fn is_memory_short(&self) -> bool {
        false
    }
    /// Something outside speaks against a tenant. What is done about it is to keep its isolates apart from others', where
    /// isolates are in several processes.
    fn suspect(&self, _tenant: u64, _sign: Sign) {}
    /// What the isolates of a tenant have used, for those who bound it.
    fn usage_of(&self, tenant: u64) -> TenantUsage {
        let _ = tenant;
        TenantUsage::default()
    }
    /// Whether it is well.
    fn health(&self) -> Health;
    /// Figures for metrics.
    fn stats(&self) -> Stats;
}

thread_local! {
    static DELIVERS_AT_REST: Cell<bool> = const { Cell::new(false) };
}

/// Promises that this thread calls [`Scheduler::deliver`] whenever it comes to rest, so that messages which it sends in the
/// meantime may go together.
pub fn deliver_at_rest() {
    DELIVERS_AT_REST.set(true);
}

/// Whether this thread has [promised](deliver_at_rest) to.
#[must_use]
pub fn delivers_at_rest() -> bool {
    DELIVERS_AT_REST.get()
}

/// Whether a scheduler is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Threads that run isolates.
    pub threads: usize,
    /// Threads that have been in one slice for longer than a second: they are stuck, and the process should end.
    pub threads_lost: usize,
}

/// What the isolates of a tenant have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantUsage {
    /// CPU time since the scheduler was made, in microseconds. That of a call under way counts as it goes.
    pub cpu_us: u64,
    /// Linear memory at this moment, in bytes.
    pub memory_bytes: u64,
    /// What a fresh isolate takes of it before it runs anything.
    pub fresh_bytes: u64,
}

/// Figures for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Isolates that exist.
    pub isolates: usize,
    /// Isolates that wait for a thread.
    pub queued: usize,
    /// Isolates in the middle of running code.
    pub running: usize,
    /// Calls that have not been answered.
    pub calls: usize,
    /// Times that something waits for: timers, and the wall time of every call.
    pub alarms: usize,
    /// Linear memory of all isolates in bytes.
    pub memory_bytes: u64,
    /// Panics of the host that were contained. Each is a fault of ours.
    pub panics: u64,
    /// Workers that were loaded from a snapshot of an earlier load.
    pub snapshot_hits: u64,
    /// Bytes that such snapshots take.
    pub snapshot_bytes: u64,
    /// Processes that isolates are in; 0 where they are in this one.
    pub cordons: usize,
    /// Of these, how many were lost so far.
    pub cordons_lost: u64,
}

impl Stats {
    /// Whether nothing is left of any isolate, and none has broken anything. What is kept for later isolates does not count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let isolates = Self {
            snapshot_hits: 0,
            snapshot_bytes: 0,
            ..*self
        };
        isolates == Self::default()
    }
}
