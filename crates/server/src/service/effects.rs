//! Doing what the core decides.

use super::{Service, State, Waiting};
use crate::{outcome::Answered, tables::Table};
use coracle_isolate::{Bytes, Message, Outcome, Report, Usage, Verdict, VerdictKind};
use coracle_loader::{Effect, LossCause, Refusal};
use std::sync::Arc;

impl Service {
    /// Lets go what was sent to isolates on a thread that delivers at rest.
    pub(crate) fn deliver(&self) {
        if let Some(scheduler) = self.scheduler.get() {
            scheduler.deliver();
        }
    }

    pub(super) fn send(&self, state: &State, message: Message) {
        if state.assisting {
            self.scheduler().send_unheard(message);
        } else {
            self.scheduler().send(message);
        }
    }

    pub(super) fn act_on(&self, state: &mut State, effect: Effect) {
        match effect {
            Effect::StartIsolate { isolate, worker } => {
                let Some(loaded) = state.workers.get(&worker) else {
                    return;
                };
                let spec = loaded.spec.clone();
                let table = Table::new(isolate.0, &loaded.hold, &loaded.facts, &loaded.grants);
                state.tables.insert(isolate.0, table);
                self.metrics.isolate_started();
                self.send(
                    state,
                    Message::Start {
                        isolate: isolate.0,
                        worker: spec,
                    },
                );
            }
            Effect::Dispatch { call, isolate } => {
                let Some(pending) = state.calls.get_mut(&call) else {
                    return;
                };
                pending.isolate = Some(isolate);
                let waited_ms = self.timekeeper.now_ms().saturating_sub(pending.arrived_ms);
                if waited_ms > 0 && pending.call.is_some() {
                    self.metrics.queue_waited(waited_ms);
                }
                if let Some(trace) = &pending.trace {
                    self.trace_onset(trace);
                }
                if let Some(mut call) = pending.call.take() {
                    let args = std::mem::take(&mut pending.args);
                    let props = Arc::clone(&pending.props);
                    let mut refused = Vec::new();
                    if let Some(table) = state.tables.get_mut(&isolate.0) {
                        call.args.externals = table.offer(args, &mut refused);
                        if !props.is_empty() {
                            let externals = table.offer(props.to_vec(), &mut refused);
                            call.props = Arc::new(Bytes {
                                externals,
                                ..(*call.props).clone()
                            });
                        }
                    }
                    state.discard(refused);
                    self.send(
                        state,
                        Message::Call {
                            isolate: isolate.0,
                            call,
                        },
                    );
                }
            }
            Effect::RefuseCall { call, refusal } => {
                if let Some(pending) = state.take_call(call) {
                    self.metrics.refused(refusal_name(refusal));
                    if let Refusal::Quota { quota, .. } = refusal {
                        self.metrics.quota_refused(quota);
                    }
                    self.answer(state, pending, Err(refusal));
                }
            }
            Effect::LoseCall { call, cause } => {
                let Some(mut pending) = state.take_call(call) else {
                    return;
                };
                let report = lost(cause, pending.call.is_none());
                self.trace_end(&mut pending, &report);
                if let Waiting::Nobody = pending.answer_to {
                    return state.discard(pending);
                }
                self.metrics.invocation(&report);
                self.answer(state, pending, Ok(Answered::of(report)));
            }
            Effect::EndIsolate { isolate, cause } => {
                self.metrics.isolate_ended(cause.as_str());
                state.ending.insert(isolate.0);
                self.send(state, Message::End { isolate: isolate.0 });
            }
            Effect::RefuseWorker { .. } => {}
            Effect::DrainComplete => {
                state.drain_complete = true;
                self.drained.notify_waiters();
            }
        }
    }
}

pub(super) fn lost(cause: LossCause, dispatched: bool) -> Report {
    let kind = match cause {
        LossCause::IsolateLost => VerdictKind::IsolateLost,
        LossCause::IsolateEvicted => VerdictKind::IsolateEvicted,
        LossCause::Cancelled => VerdictKind::Cancelled,
    };
    Report {
        outcome: Outcome::Verdict(Verdict::without_limit(kind, dispatched)),
        usage: Usage::default(),
        logs: Vec::new(),
        log_bytes_dropped: 0,
    }
}

/// A refusal's name in metrics.
pub(crate) fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Draining => "draining",
        Refusal::SessionClosed => "session_closed",
        Refusal::CallsInFlight { .. } => "calls_in_flight",
        Refusal::SessionCalls { .. } => "session_calls",
        Refusal::Workers { .. } => "workers",
        Refusal::Isolates { .. } => "isolates",
        Refusal::QueueWait { .. } => "queue_wait",
        Refusal::Quota { .. } => "quota",
    }
}
