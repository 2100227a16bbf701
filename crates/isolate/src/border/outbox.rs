//! What a guest asked for in a slice, for its actor to act on.

use crate::{
    loading::Loading,
    message::{External, Log, OutwardCall, Thrown},
};
use coracle_abi::{HOLDS_MAX, TIMERS_MAX, finish};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by the actor and the store, because the actor can't reach the store while an entry is suspended.
///
/// Its size is bounded: every addition is priced, and the actor empties it after each slice.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) finished: Vec<Finished>,
    pub(crate) started: Vec<Started>,
    pub(crate) cancelled: Vec<u64>,
    /// Imports that the guest lets go of. Acted on last: a result may refer to one of them.
    pub(crate) released: Vec<u64>,
    pub(crate) logs: Vec<Log>,
    /// Values of the line that comes next.
    pub(super) log_arguments: Vec<Vec<u8>>,
    pub(crate) log_bytes_dropped: u64,
    /// Growths of memory that were refused; the first ends the isolate.
    pub(crate) memory_denied: u32,
    pub(crate) memory_bytes: u64,
    timers: usize,
    holds: usize,
}

impl Outbox {
    /// Says in the guest's place that a load went well, which burnt so much.
    pub(crate) fn loaded(&mut self, fuel_burnt: u64) {
        self.finished.push(Finished {
            invocation: 0,
            kind: finish::UNDEFINED,
            bytes: Vec::new(),
            length: 0,
            fuel_burnt,
        });
    }

    /// Whether the guest has said that a load went well and would go so at any time, and nothing else.
    pub(super) fn is_repeatably_loaded(&self) -> bool {
        let said = matches!(&self.finished[..], [said] if said.invocation == 0 && said.kind == finish::UNDEFINED);
        said && self.started.is_empty()
            && self.cancelled.is_empty()
            && self.released.is_empty()
            && self.log_arguments.is_empty()
    }

    /// Says in the guest's place how a load ended that it never saw.
    pub(crate) fn load_threw(&mut self, thrown: &Thrown) {
        // Encoding into a Vec can't fail.
        let bytes = minicbor::to_vec(thrown).unwrap_or_default();
        self.finished.push(Finished {
            invocation: 0,
            kind: finish::THREW,
            length: bytes.len(),
            bytes,
            fuel_burnt: 0,
        });
    }

    /// Counts one more pending timer; false, and not counted, where there are as many as may be.
    pub(super) fn timer_started(&mut self) -> bool {
        let room = self.timers < TIMERS_MAX;
        self.timers += usize::from(room);
        room
    }

    /// A timer is not pending any more, for whatever reason.
    pub(crate) fn timer_done(&mut self) {
        self.timers = self.timers.saturating_sub(1);
    }

    /// Counts one more hold; false, and not counted, where there are as many as may be.
    pub(super) fn hold_started(&mut self) -> bool {
        let room = self.holds < HOLDS_MAX;
        self.holds += usize::from(room);
        room
    }

    /// A hold is over, for whatever reason.
    pub(crate) fn hold_done(&mut self) {
        self.holds = self.holds.saturating_sub(1);
    }
}

/// The guest says how an invocation ended.
pub(crate) struct Finished {
    pub(crate) invocation: u64,
    pub(crate) kind: u32,
    pub(crate) bytes: Vec<u8>,
    /// Fuel that the entry had burnt by then.
    pub(crate) fuel_burnt: u64,
    /// The length that the guest gave; more than `bytes` where they were not worth copying.
    pub(crate) length: usize,
}

/// The guest started a host operation.
pub(crate) enum Started {
    Timer {
        operation: u64,
        ms: f64,
    },
    Call {
        operation: u64,
        call: Box<OutwardCall>,
    },
    /// Of an invocation of the guest's choice.
    Hold {
        operation: u64,
        invocation: u64,
    },
    Loading {
        operation: u64,
        request: Loading,
    },
}

impl Started {
    /// The tables of what is given out with it.
    pub(crate) fn given_out(&self) -> Vec<&[External]> {
        match self {
            Self::Timer { .. } | Self::Hold { .. } => Vec::new(),
            Self::Call { call, .. } => vec![&call.args.externals],
            Self::Loading { request, .. } => request.given_out(),
        }
    }
}

/// The outbox is plain data: what a panicking thread left in it is still whole.
pub(crate) fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}
