//! What isolates report, and what it means for callers, for the core and for other isolates.

use super::{Service, State, outward::adopt};
use crate::outcome::Answered;
use coracle_isolate::{Event as IsolateEvent, Outcome};
use coracle_loader::{CallId, Event, IsolateId};
use std::sync::TryLockError;

impl Service {
    /// Takes an event of an isolate. Never waits for the state: if somebody holds it, they take the event on.
    pub(crate) fn on_isolate_event(&self, event: IsolateEvent) {
        self.inbox().push(event);
        self.take_inbox();
    }

    pub(super) fn take_inbox(&self) {
        loop {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let events = std::mem::take(&mut *self.inbox());
            for event in events {
                self.apply(&mut state, event);
            }
            let garbage = std::mem::take(&mut state.garbage);
            drop(state);
            drop(garbage);
            if self.inbox().is_empty() {
                return;
            }
        }
    }

    fn apply(&self, state: &mut State, event: IsolateEvent) {
        match event {
            IsolateEvent::Finished {
                isolate,
                invocation,
                mut report,
                held,
                isolate_reusable,
            } => {
                let call = CallId(invocation);
                let externals = match &mut report.outcome {
                    Outcome::Value(value) => std::mem::take(&mut value.externals),
                    _ => Vec::new(),
                };
                let externals = adopt(state, isolate, externals);
                let taken = match held {
                    true => state.hold_call(call),
                    false => state.take_call(call),
                };
                if let Some(pending) = taken {
                    self.metrics.invocation(&report);
                    if let Some(loaded) = state.workers.get_mut(&pending.worker) {
                        loaded.last_cpu_us = Some(report.usage.cpu_us);
                    }
                    self.answer(state, pending, Ok(Answered { report, externals }));
                } else {
                    state.discard(externals);
                }
                if !held {
                    let finished = Event::CallFinished {
                        call,
                        isolate_reusable,
                    };
                    state.core.on_event(finished, &mut state.effects);
                }
            }
            IsolateEvent::Lingered {
                invocation,
                aftermath,
                isolate_reusable,
                ..
            } => {
                self.metrics.lingered(&aftermath);
                let call = CallId(invocation);
                if let Some(pending) = state.take_call(call) {
                    state.discard(pending.callee);
                    let finished = Event::CallFinished {
                        call,
                        isolate_reusable,
                    };
                    state.core.on_event(finished, &mut state.effects);
                }
            }
            IsolateEvent::Called {
                isolate,
                operation,
                call,
                ..
            } => self.isolate_calls(state, isolate, operation, *call),
            IsolateEvent::CallDropped { isolate, operation } => {
                let table = state.tables.get_mut(&isolate);
                let outgoing = table.and_then(|table| table.outgoing.remove(&operation));
                self.give_up_outgoing(state, outgoing);
            }
            IsolateEvent::Released { isolate, imports } => {
                if let Some(table) = state.tables.get_mut(&isolate) {
                    let released: Vec<_> = imports
                        .into_iter()
                        .filter_map(|import| table.release(import))
                        .collect();
                    state.discard(released);
                }
            }
            IsolateEvent::Ended { isolate } => {
                if let Some(mut table) = state.tables.remove(&isolate) {
                    for (_, outgoing) in table.outgoing.drain() {
                        self.give_up_outgoing(state, Some(outgoing));
                    }
                    state.discard(table);
                }
                // By itself, unless it was asked to; both are an end.
                if !state.ending.remove(&isolate) {
                    self.metrics.isolate_ended("other");
                }
                state.core.on_event(
                    Event::IsolateEnded {
                        isolate: IsolateId(isolate),
                    },
                    &mut state.effects,
                );
            }
        }
        self.act(state);
    }
}
