//! What a server and its cordons say to each other.

use coracle_isolate::{Event, Message};
use minicbor::{Decode, Encode};

/// To a cordon.
#[derive(Debug, Encode, Decode)]
pub(crate) enum Order {
    /// The first one: how to run.
    #[n(0)]
    SetUp(#[n(0)] SetUp),
    /// For an isolate.
    #[n(1)]
    Message(#[n(0)] Message),
    /// What all isolates of this cordon may have together from now on.
    #[n(2)]
    PoolMemory {
        /// Bytes of linear memory.
        #[n(0)]
        bytes_max: u64,
    },
}

/// How a cordon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SetUp {
    /// Isolates alive at once.
    #[n(0)]
    pub(crate) isolates_max: u32,
    /// Isolates in the middle of running code at once.
    #[n(1)]
    pub(crate) running_max: u32,
    /// Whether slots are reset by the kernel's list of dirty pages.
    #[n(2)]
    pub(crate) pagemap_scan: bool,
    /// Threads that run isolates.
    #[n(3)]
    pub(crate) threads: u32,
    /// How far their priority is lowered.
    #[n(4)]
    pub(crate) niceness: i32,
    /// Bytes of linear memory of all isolates together.
    #[n(5)]
    pub(crate) pool_memory_bytes_max: u64,
    /// Gives every isolate the same randomness.
    #[n(6)]
    pub(crate) seed: Option<u64>,
    /// Bytes that one frame from the server may have.
    #[n(7)]
    pub(crate) frame_bytes_max: u64,
    /// Bytes that may be kept of workers that have been loaded.
    #[n(8)]
    pub(crate) snapshots_bytes_max: u64,
}

/// From a cordon. Everything in it is the word of a process that may be a stranger's by now.
#[derive(Debug, Encode, Decode)]
pub(crate) enum Told {
    /// It is confined, and takes messages.
    #[n(0)]
    Ready {
        /// Linear memory that an isolate has from the start.
        #[n(0)]
        fresh_bytes: u64,
    },
    /// It can't run, and ends.
    #[n(1)]
    Failed {
        /// Whether the image does not fit this machine.
        #[n(0)]
        image: bool,
        /// Why.
        #[n(1)]
        reason: String,
    },
    /// Of an isolate.
    #[n(2)]
    Event {
        /// The event.
        #[n(0)]
        event: Event,
        /// Linear memory of all its isolates, in bytes.
        #[n(1)]
        memory_bytes: u64,
    },
    /// Now and then, whether there is news or not.
    #[n(3)]
    Alive {
        /// Of the whole of it.
        #[n(0)]
        state: State,
        /// Of tenants whose isolates have used something since the last time.
        #[n(1)]
        tenants: Vec<Used>,
    },
}

/// What the isolates of a tenant have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Used {
    /// The tenant.
    #[n(0)]
    pub(crate) tenant: u64,
    /// CPU time since the cordon began, in microseconds.
    #[n(1)]
    pub(crate) cpu_us: u64,
    /// Linear memory at this moment, in bytes.
    #[n(2)]
    pub(crate) memory_bytes: u64,
}

/// How a cordon is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct State {
    /// Isolates that wait for a thread.
    #[n(0)]
    pub(crate) queued: u32,
    /// Isolates in the middle of running code.
    #[n(1)]
    pub(crate) running: u32,
    /// Times that something waits for.
    #[n(2)]
    pub(crate) alarms: u32,
    /// Linear memory of all isolates, in bytes.
    #[n(3)]
    pub(crate) memory_bytes: u64,
    /// Panics that were contained.
    #[n(4)]
    pub(crate) panics: u64,
    /// Threads that have been in one slice for longer than a second.
    #[n(5)]
    pub(crate) threads_lost: u32,
    /// Workers that were loaded from a snapshot.
    #[n(6)]
    pub(crate) snapshot_hits: u64,
    /// Bytes that snapshots take.
    #[n(7)]
    pub(crate) snapshot_bytes: u64,
}
