//! Host operations: what invocations wait for.
//!
//! An operation belongs to the invocation whose entry started it. Who really waits for it can't be known
//! (docs/decisions/0003-charging-jobs.md), so it outlives that invocation's result while others are in the isolate.

use super::{Actor, Alarm, AlarmChange, AlarmOf, Effects, Mail, Surroundings};
use crate::{
    border::{self, Started},
    instance::Entry,
};
use std::time::Duration;

/// A host operation that the guest waits for.
pub(super) struct Operation {
    invocation: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Timer,
    FetchHeld,
    FetchInFlight,
}

/// The longest that a timer waits: what fits `setTimeout`'s 31 bits. A broken guest may ask for anything.
const TIMER_MS_MAX: f64 = 2_147_483_647.0;

impl Actor {
    pub(super) fn start_operation(
        &mut self,
        start: Started,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let wanted = self.has_unreported();
        let Some(books) = self.invocations.get_mut(&invocation).filter(|_| wanted) else {
            // Nobody is there to wait for it.
            if let Started::Timer { .. } = start {
                border::lock(&self.outbox).timer_done();
            }
            return;
        };
        match start {
            Started::Timer { operation, ms } => {
                books.operations.insert(operation);
                let kind = Kind::Timer;
                self.operations
                    .insert(operation, Operation { invocation, kind });
                let ms = ms.clamp(0.0, TIMER_MS_MAX);
                // NaN is clamped to itself, and is no wait.
                let delay = Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::ZERO);
                effects.alarms.push(AlarmChange::Set(Alarm {
                    at: around.clock.monotonic() + delay,
                    mail: Mail::Settle {
                        operation,
                        bytes: Vec::new(),
                    },
                }));
            }
            Started::Fetch { operation, url } => {
                books.operations.insert(operation);
                books.subrequests += 1;
                books.fetches_held.push_back(operation);
                let kind = Kind::FetchHeld;
                self.operations
                    .insert(operation, Operation { invocation, kind });
                // Nothing is granted yet: every request is refused, and says where it wanted to go.
                tracing::debug!(isolate = self.isolate, url, "outbound request refused");
                self.send_held_fetches(invocation, around, effects);
            }
        }
    }

    /// Sends as many of an invocation's fetches as may be in flight.
    fn send_held_fetches(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        while books.fetches_in_flight < books.limits.subrequests_in_flight_max
            && let Some(operation) = books.fetches_held.pop_front()
        {
            let Some(known) = self.operations.get_mut(&operation) else {
                // Dropped while it waited.
                continue;
            };
            known.kind = Kind::FetchInFlight;
            books.fetches_in_flight += 1;
            effects.alarms.push(AlarmChange::Set(Alarm {
                at: around.clock.monotonic(),
                mail: Mail::Settle {
                    operation,
                    bytes: self.spec.outbound_refusal.as_bytes().to_vec(),
                },
            }));
        }
    }

    /// An operation is done: tells the guest.
    pub(super) fn settle(
        &mut self,
        operation: u64,
        bytes: Vec<u8>,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        // Its alarm may have crossed the end of its invocation.
        let Some(invocation) = self.remove_operation(operation) else {
            return;
        };
        self.send_held_fetches(invocation, around, effects);
        self.enter(Entry::Settle(operation, bytes), invocation, around);
    }

    /// The guest does not want to hear of an operation any more.
    pub(super) fn drop_operation(
        &mut self,
        operation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        if let Some(invocation) = self.remove_operation(operation) {
            effects
                .alarms
                .push(AlarmChange::Clear(AlarmOf::Operation(operation)));
            self.send_held_fetches(invocation, around, effects);
        }
    }

    /// Takes an operation off the books; returns whose it was.
    fn remove_operation(&mut self, operation: u64) -> Option<u64> {
        let Operation { invocation, kind } = self.operations.remove(&operation)?;
        if kind == Kind::Timer {
            border::lock(&self.outbox).timer_done();
        }
        if let Some(books) = self.invocations.get_mut(&invocation) {
            books.operations.remove(&operation);
            if kind == Kind::FetchInFlight {
                books.fetches_in_flight -= 1;
            }
        }
        Some(invocation)
    }

    /// Drops everything that an invocation's entries have started and that is not settled.
    pub(super) fn forget_operations(&mut self, invocation: u64, effects: &mut Effects) {
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        for operation in std::mem::take(&mut books.operations) {
            self.remove_operation(operation);
            self.forgotten.push(operation);
            let of = AlarmOf::Operation(operation);
            effects.alarms.push(AlarmChange::Clear(of));
        }
    }
}
