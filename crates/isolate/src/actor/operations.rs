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
use coracle_abi::{self as abi, OUTBOUND};
use std::time::Duration;

/// A host operation that the guest waits for.
pub(super) struct Operation {
    pub(super) invocation: u64,
    pub(super) kind: Kind,
    /// Of its arguments, as long as it may leave or has left.
    pub(super) bytes: u64,
    /// What it is of and refers to, as long as it is held.
    imports: Vec<u64>,
    /// What was given out with it, as long as it has not left: then it is somebody else's to let go of.
    exports: Vec<u64>,
}

impl Operation {
    pub(super) fn new(invocation: u64, kind: Kind) -> Self {
        Self {
            invocation,
            kind,
            bytes: 0,
            imports: Vec::new(),
            exports: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Timer,
    /// Keeps an invocation open; nothing settles it.
    Hold,
    /// A subrequest that waits until fewer are in flight.
    Held,
    /// A call that is told at once that it can't be made.
    Refused,
    /// A request that the worker may not make, which is told as if somebody outside had answered.
    OutboundRefused,
    Subrequest,
    /// A call of a source or a sink.
    Stream,
    /// A worker is asked for by its id.
    Get,
    /// The guest is to load that worker. Nobody settles it.
    Provision,
}

impl Kind {
    /// Whether somebody outside is to answer it.
    fn has_left(self) -> bool {
        matches!(
            self,
            Self::Subrequest | Self::Stream | Self::Get | Self::Provision
        )
    }
}

/// The longest that a timer waits: what fits `setTimeout`'s 31 bits. A broken guest may ask for anything.
const TIMER_MS_MAX: f64 = 2_147_483_647.0;
/// Bytes of arguments that the calls of an isolate that wait for an answer may have together.
const CALL_BYTES_MAX: u64 = 64 << 20;
/// Calls of sources and sinks that may wait for an answer in an isolate.
const STREAM_CALLS_MAX: usize = 1_000;

/// How many calls of an isolate's wait for an answer.
#[derive(Default)]
pub(super) struct Waiting {
    bytes: u64,
    stream_calls: usize,
}

impl Actor {
    pub(super) fn start_operation(
        &mut self,
        start: Started,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        if let Started::Hold {
            operation,
            invocation: named,
        } = start
        {
            return self.hold(operation, named, invocation);
        }
        let wanted = self.has_open();
        let Some(books) = self.invocations.get_mut(&invocation).filter(|_| wanted) else {
            // Nobody is there to wait for it.
            if let Started::Timer { .. } = start {
                border::lock(&self.outbox).timer_done();
            }
            let exports = start.given_out().into_iter().flat_map(exports_of).collect();
            self.take_back(exports);
            return;
        };
        match start {
            Started::Timer { operation, ms } => {
                books.operations.insert(operation);
                let timer = Operation::new(invocation, Kind::Timer);
                self.operations.insert(operation, timer);
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
            Started::Hold { .. } => {}
            Started::Call { operation, call } => {
                books.operations.insert(operation);
                books.subrequests += u64::from(!call.is_stream);
                match self.refusal(&call) {
                    Some(refusal) => {
                        let refused = Operation {
                            exports: exports_of(&call.args.externals).collect(),
                            ..Operation::new(invocation, Kind::Refused)
                        };
                        self.operations.insert(operation, refused);
                        let alarm = refusal_now(operation, refusal, around);
                        effects.alarms.push(alarm);
                    }
                    None => self.take_call_on(operation, call, invocation, around, effects),
                }
            }
            Started::Loading { operation, request } => {
                self.start_loading(operation, request, invocation, effects);
            }
        }
    }

    /// Why a call can't be made, if it can't.
    fn refusal(&self, call: &OutwardCall) -> Option<String> {
        let bytes = self.waiting.bytes + call.bytes();
        if bytes > CALL_BYTES_MAX {
            return Some(format!(
                "The arguments of the calls that wait for an answer have {bytes} bytes, {CALL_BYTES_MAX} are allowed: wait \
                 for some before the next."
            ));
        }
        (call.is_stream && self.waiting.stream_calls >= STREAM_CALLS_MAX)
            .then(|| format!("More than {STREAM_CALLS_MAX} streams are waited for at once."))
    }

    /// Takes a call on. A subrequest leaves when not too many are in flight; the limit is not for streams, which others
    /// wait for and which are pulled one piece at a time.
    fn take_call_on(
        &mut self,
        operation: u64,
        call: Box<OutwardCall>,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let bytes = call.bytes();
        self.waiting.bytes += bytes;
        self.waiting.stream_calls += usize::from(call.is_stream);
        let kind = match call.is_stream {
            true => Kind::Stream,
            false => Kind::Held,
        };
        let mut known = Operation {
            bytes,
            ..Operation::new(invocation, kind)
        };
        if kind == Kind::Held {
            known.imports = call.imports();
            known.exports = exports_of(&call.args.externals).collect();
            self.kept.keep(&known.imports);
        }
        self.operations.insert(operation, known);
        if call.is_stream {
            effects.events.push(Event::Called {
                isolate: self.isolate,
                invocation,
                operation,
                call,
            });
        } else if let Some(books) = self.invocations.get_mut(&invocation) {
            books.subrequests_held.push_back((operation, call));
            self.send_held_subrequests(invocation, around, effects);
        }
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
            let imports = std::mem::take(&mut known.imports);
            self.kept.let_go(&imports);
            if call.import == OUTBOUND
                && let Some(refusal) = &self.spec.outbound_refusal
            {
                known.kind = Kind::OutboundRefused;
                effects
                    .alarms
                    .push(refusal_now(operation, refusal.to_string(), around));
                effects.events.push(Event::OutboundRefused {
                    isolate: self.isolate,
                    invocation,
                    call,
                });
                continue;
            }
            known.kind = Kind::Subrequest;
            known.exports = Vec::new();
            let patience = Duration::from_millis(books.limits.subrequest_ms_max);
            let wall = Duration::from_millis(books.limits.wall_ms_max);
            let at = around.clock.monotonic() + patience;
            // (Else the end of the whole comes first.)
            if at < books.arrived + wall {
                let mail = Mail::Unanswered { operation };
                effects.alarms.push(AlarmChange::Set(Alarm { at, mail }));
            }
            effects.events.push(Event::Called {
                isolate: self.isolate,
                invocation,
                operation,
                call,
            });
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
            .is_some_and(|known| known.kind.has_left() && known.kind != Kind::Provision);
        if is_waited_for && *answer == Answer::Provide {
            self.ask_for_provision(operation, around);
            return;
        }
        if is_waited_for {
            let of = AlarmOf::Operation(operation);
            effects.alarms.push(AlarmChange::Clear(of));
            self.settle(operation, answer_message(answer), around, effects);
            return;
        }
        match answer {
            Answer::Outcome(Outcome::Value(value)) => {
                self.let_imports_go(&value.externals, effects);
            }
            Answer::Worker(import) => effects.events.push(Event::Released {
                isolate: self.isolate,
                imports: vec![*import],
            }),
            Answer::Outcome(_) | Answer::Failed(_) | Answer::Provide => {}
        }
    }

    /// Nobody has answered a subrequest in its time: the guest is told so, and who was asked that nobody waits any more.
    pub(super) fn unanswered(
        &mut self,
        operation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        // The alarm may have crossed the answer.
        let known = self.operations.get(&operation);
        let known = known.filter(|known| known.kind == Kind::Subrequest);
        let Some(books) = known.and_then(|known| self.invocations.get(&known.invocation)) else {
            return;
        };
        let reason = format!(
            "No answer came within {} ms (subrequest_ms_max).",
            books.limits.subrequest_ms_max
        );
        self.call_back(operation, effects);
        let answer = answer_message(&Answer::Failed(reason));
        self.settle(operation, answer, around, effects);
    }

    /// Tells that the guest will not have these imports.
    fn let_imports_go(&self, externals: &[External], effects: &mut Effects) {
        let import = |external: &External| match external {
            External::Import(import, _) => Some(*import),
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
        self.call_back(operation, effects);
        if let Some(invocation) = self.remove_operation(operation) {
            self.send_held_subrequests(invocation, around, effects);
        }
    }

    /// The guest lets go of imports. What a held call is of or refers to is let go of when that has left.
    pub(super) fn release_imports(&mut self, released: &[u64], effects: &mut Effects) {
        self.kept.release(released);
        let imports = self.kept.take_free();
        if !imports.is_empty() {
            effects.events.push(Event::Released {
                isolate: self.isolate,
                imports,
            });
        }
    }

    /// Tells those who would settle an operation that nobody waits for it any more.
    fn call_back(&self, operation: u64, effects: &mut Effects) {
        let known = self.operations.get(&operation);
        if known.is_some_and(|known| known.kind.has_left()) {
            effects.events.push(Event::CallDropped {
                isolate: self.isolate,
                operation,
            });
        }
        let of = AlarmOf::Operation(operation);
        effects.alarms.push(AlarmChange::Clear(of));
    }

    /// What was given out with a call that never left is nobody's: the guest lets go of it.
    fn take_back(&mut self, exports: Vec<u64>) {
        if !exports.is_empty() {
            self.post(Mail::Release { exports });
        }
    }

    /// Takes an operation off the books; returns whose it was.
    pub(super) fn remove_operation(&mut self, operation: u64) -> Option<u64> {
        let Operation {
            invocation,
            kind,
            bytes,
            imports,
            exports,
        } = self.operations.remove(&operation)?;
        self.waiting.bytes -= bytes;
        self.kept.let_go(&imports);
        self.take_back(exports);
        match kind {
            Kind::Timer => border::lock(&self.outbox).timer_done(),
            Kind::Hold => self.hold_is_over(invocation),
            Kind::Stream => self.waiting.stream_calls -= 1,
            Kind::Held
            | Kind::Refused
            | Kind::OutboundRefused
            | Kind::Subrequest
            | Kind::Get
            | Kind::Provision => {}
        }
        if let Some(books) = self.invocations.get_mut(&invocation) {
            books.operations.remove(&operation);
            let was_in_flight = matches!(kind, Kind::OutboundRefused | Kind::Subrequest);
            books.subrequests_in_flight -= u64::from(was_in_flight);
        }
        Some(invocation)
    }

    /// Drops everything that an invocation's entries have started and that is not settled.
    pub(super) fn forget_operations(&mut self, invocation: u64, effects: &mut Effects) {
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        for operation in std::mem::take(&mut books.operations) {
            self.call_back(operation, effects);
            self.remove_operation(operation);
            self.forgotten.push(operation);
        }
        self.release_imports(&[], effects);
    }
}

fn exports_of(externals: &[External]) -> impl Iterator<Item = u64> {
    externals.iter().filter_map(|external| match external {
        External::Export(export, _) => Some(*export),
        External::Import(..) | External::Loopback { .. } => None,
    })
}

/// An answer that is due at once.
fn refusal_now(operation: u64, refusal: String, around: &Surroundings<'_>) -> AlarmChange {
    AlarmChange::Set(Alarm {
        at: around.clock.monotonic(),
        mail: Mail::Settle {
            operation,
            bytes: answer_message(&Answer::Failed(refusal)),
        },
    })
}

/// What the guest is told of an answer.
pub(super) fn answer_message(answer: &Answer) -> Vec<u8> {
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
        Answer::Worker(import) => abi::Answer::Worker(*import),
        Answer::Provide => abi::Answer::Provide,
    };
    // Encoding into a Vec can't fail.
    minicbor::to_vec(&answer).unwrap_or_default()
}
