//! Host operations: what invocations wait for.
//!
//! An operation belongs to the invocation whose entry started it. Who really waits for it can't be known
//! (docs/decisions/0003-charging-jobs.md), so it outlives that invocation's result while others are in the isolate.

use super::{Actor, Alarm, AlarmChange, AlarmOf, Effects, Mail, Surroundings, outcome::encoded};
use crate::{
    border::{self, Started},
    instance::Entry,
    message::{Answer, Event, External, Outcome, OutwardCall},
};
use coracle_abi as abi;
use std::time::Duration;

/// A host operation that the guest waits for.
pub(super) struct Operation {
    invocation: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Timer,
    Held,
    FetchInFlight,
    CallInFlight,
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
                // Nothing is granted yet: every request is refused, and says where it wanted to go.
                tracing::debug!(isolate = self.isolate, url, "outbound request refused");
                self.hold_subrequest(operation, None, invocation, around, effects);
            }
            Started::Call { operation, call } => {
                self.hold_subrequest(operation, Some(call), invocation, around, effects);
            }
        }
    }

    /// Takes a subrequest on; it leaves at once if not too many are in flight.
    fn hold_subrequest(
        &mut self,
        operation: u64,
        call: Option<Box<OutwardCall>>,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        books.operations.insert(operation);
        books.subrequests += 1;
        books.subrequests_held.push_back((operation, call));
        let kind = Kind::Held;
        self.operations
            .insert(operation, Operation { invocation, kind });
        self.send_held_subrequests(invocation, around, effects);
    }

    /// Sends as many of an invocation's subrequests as may be in flight.
    fn send_held_subrequests(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        while books.subrequests_in_flight < books.limits.subrequests_in_flight_max
            && let Some((operation, call)) = books.subrequests_held.pop_front()
        {
            let Some(known) = self.operations.get_mut(&operation) else {
                // Dropped while it waited.
                continue;
            };
            books.subrequests_in_flight += 1;
            if let Some(call) = call {
                known.kind = Kind::CallInFlight;
                effects.events.push(Event::Called {
                    isolate: self.isolate,
                    invocation,
                    operation,
                    call,
                });
                continue;
            }
            known.kind = Kind::FetchInFlight;
            let refusal = Answer::Failed(self.spec.outbound_refusal.to_string());
            effects.alarms.push(AlarmChange::Set(Alarm {
                at: around.clock.monotonic(),
                mail: Mail::Settle {
                    operation,
                    bytes: answer_message(&refusal),
                },
            }));
        }
    }

    /// An answer from outside. One that comes too late lets go of what it brings.
    pub(super) fn answered(
        &mut self,
        operation: u64,
        answer: &Answer,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let is_waited_for = self
            .operations
            .get(&operation)
            .is_some_and(|known| known.kind == Kind::CallInFlight);
        if is_waited_for {
            self.settle(operation, answer_message(answer), around, effects);
            return;
        }
        if let Answer::Outcome(Outcome::Value(value)) = answer {
            self.let_imports_go(&value.externals, effects);
        }
    }

    /// Tells that the guest will not have these imports.
    fn let_imports_go(&self, externals: &[External], effects: &mut Effects) {
        let import = |external: &External| match external {
            External::Import(import) => Some(*import),
            _ => None,
        };
        let imports: Vec<u64> = externals.iter().filter_map(import).collect();
        if !imports.is_empty() {
            effects.events.push(Event::Released {
                isolate: self.isolate,
                imports,
            });
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
        self.send_held_subrequests(invocation, around, effects);
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
            self.send_held_subrequests(invocation, around, effects);
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
            if matches!(kind, Kind::FetchInFlight | Kind::CallInFlight) {
                books.subrequests_in_flight -= 1;
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
            let known = self.operations.get(&operation);
            if known.is_some_and(|known| known.kind == Kind::CallInFlight) {
                effects.events.push(Event::CallDropped {
                    isolate: self.isolate,
                    operation,
                });
            }
            self.remove_operation(operation);
            self.forgotten.push(operation);
            let of = AlarmOf::Operation(operation);
            effects.alarms.push(AlarmChange::Clear(of));
        }
    }
}

/// What the guest is told of an answer.
fn answer_message(answer: &Answer) -> Vec<u8> {
    let message;
    let answer = match answer {
        Answer::Outcome(Outcome::Value(value)) => abi::Answer::Value(encoded(value)),
        Answer::Outcome(Outcome::Threw(thrown)) => abi::Answer::Threw((**thrown).clone()),
        Answer::Outcome(Outcome::Verdict(verdict)) => {
            message = verdict.message();
            abi::Answer::Verdict {
                kind: verdict.kind.as_str(),
                limit_name: verdict.limit_name,
                used: verdict.used,
                limit: verdict.limit,
                message: &message,
            }
        }
        Answer::Failed(reason) => abi::Answer::Failed(reason),
    };
    // Encoding into a Vec can't fail.
    minicbor::to_vec(&answer).unwrap_or_default()
}
