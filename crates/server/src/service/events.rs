//! What isolates report, and what it means for callers, for the core and for other isolates.

use super::{Notice, Service, State, outward::adopt};
use crate::{named::Asker, outcome::Answered, session::Session};
use coracle_isolate::{Event as IsolateEvent, Outcome, VerdictKind};
use coracle_loader::{CallId, Event, IsolateId, WorkerId};
use coracle_outbound::{Judge, RequestDecision};
use std::{any::Any, cell::Cell, ptr, sync::TryLockError};

thread_local! {
    /// The service whose garbage this thread drops. Only compared.
    static CLEARING: Cell<*const Service> = const { Cell::new(ptr::null()) };
}

/// Puts back what was before.
struct Clearing(*const Service);

impl Drop for Clearing {
    fn drop(&mut self) {
        CLEARING.set(self.0);
    }
}

impl Service {
    /// Takes an event of an isolate. Never waits for the state: if somebody holds it, they take the event on.
    pub(crate) fn on_isolate_event(&self, event: IsolateEvent) {
        self.inbox().push(Notice::Isolate(event));
        self.take_inbox(false);
    }

    /// Nothing is left of a call that has opened something. Never waits for the state, like the above.
    pub(crate) fn on_opened_over(&self, isolate: u64, opened: u64) {
        self.inbox().push(Notice::OpenedOver { isolate, opened });
        self.take_inbox(false);
    }

    /// Nobody holds a worker any more. Whoever lets the last handle go may hold the state.
    pub(crate) fn release_worker(&self, worker: WorkerId, session: Session) {
        let alone = self.is_alone();
        self.inbox().push(Notice::Released { worker, session });
        self.take_inbox(alone);
    }

    /// Acts on what is in the inbox, if nobody holds the state. `assisting`: what isolates do about it begins on this
    /// thread.
    pub(super) fn take_inbox(&self, assisting: bool) {
        if self.is_clearing() {
            // What is dropped brings more, down a chain as long as whoever made it likes: it is taken on further up.
            return;
        }
        loop {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            state.assisting = assisting;
            let notices = std::mem::take(&mut *self.inbox());
            for notice in notices {
                match notice {
                    Notice::Isolate(event) => self.apply(&mut state, event),
                    Notice::Sent {
                        tenant,
                        bytes,
                        probed,
                    } => self.count_request(&mut state, &tenant, bytes, probed),
                    Notice::OpenedOver { isolate, opened } => {
                        self.close_opened(&mut state, isolate, opened);
                    }
                    Notice::Released { worker, session } => {
                        self.let_worker_go(&mut state, worker);
                        self.act(&mut state);
                        state.discard(session);
                    }
                }
            }
            state.assisting = false;
            let garbage = std::mem::take(&mut state.garbage);
            drop(state);
            self.clear(garbage);
            if assisting {
                self.scheduler().assist();
            }
            if self.inbox().is_empty() {
                return;
            }
        }
    }

    /// Drops what may bring notices, which are left in the inbox.
    pub(super) fn clear(&self, garbage: Vec<Box<dyn Any + Send>>) {
        let _clearing = Clearing(CLEARING.replace(ptr::from_ref(self)));
        drop(garbage);
    }

    fn is_clearing(&self) -> bool {
        ptr::eq(CLEARING.get(), self)
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
                let opened = self.opened_by_giver(state, isolate, invocation, &externals);
                let externals = adopt(state, isolate, externals, opened.as_ref());
                let taken = match held {
                    true => state.hold_call(call),
                    false => state.take_call(call),
                };
                if let Some(mut pending) = taken {
                    self.metrics.invocation(&report);
                    self.count_usage(state, pending.worker, &report);
                    match held {
                        true => state.keep_report(call, &report),
                        false => self.trace_end(&mut pending, &report),
                    }
                    if let Some(loaded) = state.workers.get_mut(&pending.worker) {
                        loaded.last_cpu_us = Some(report.usage.cpu_us);
                    }
                    if is_failed_start(&report.outcome) {
                        Self::forget_name(state, pending.worker);
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
                    state.tell(finished);
                }
            }
            IsolateEvent::Lingered {
                isolate,
                invocation,
                aftermath,
                isolate_reusable,
            } => {
                self.metrics.lingered(&aftermath);
                self.count_aftermath(state, isolate, &aftermath);
                let call = CallId(invocation);
                if let Some(pending) = state.take_call(call) {
                    self.trace_aftermath(state, pending, *aftermath);
                    let finished = Event::CallFinished {
                        call,
                        isolate_reusable,
                    };
                    state.tell(finished);
                }
            }
            IsolateEvent::Logged {
                invocation, logs, ..
            } => self.trace_logs(state, invocation, logs),
            IsolateEvent::Called {
                isolate,
                invocation,
                operation,
                call,
            } => self.isolate_calls(state, isolate, invocation, operation, *call),
            IsolateEvent::OutboundRefused {
                isolate,
                invocation,
                call,
            } => {
                let args = &call.args;
                let asked = (&*call.path, &*args.bytes, args.externals.len());
                let trail = self.begin_unjudged(state, Judge::None, (isolate, invocation), asked);
                if let Some(trail) = &trail {
                    trail.note(|record| {
                        record.decision = RequestDecision::Denied;
                        record.error = "policy_denied";
                    });
                }
                state.discard(trail);
            }
            IsolateEvent::Loading {
                isolate,
                operation,
                request,
                ..
            } => self.isolate_loads(state, isolate, operation, request),
            IsolateEvent::CallDropped { isolate, operation } => {
                self.drop_ask(state, Asker { isolate, operation });
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
                    self.end_children(state, isolate, &mut table);
                    state.discard(table);
                }
                // By itself, unless it was asked to; both are an end.
                if !state.ending.remove(&isolate) {
                    self.metrics.isolate_ended("other");
                }
                let isolate = IsolateId(isolate);
                // What it has used, and what it gives back, is known by now.
                if let Some(tenant) = state.core.tenant_of(isolate) {
                    self.measure(state, tenant);
                }
                state.tell(Event::IsolateEnded { isolate });
            }
        }
        self.act(state);
    }
}

/// Whether the modules could not be evaluated.
fn is_failed_start(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Value(_) => false,
        Outcome::Threw(thrown) => thrown.during_load,
        Outcome::Verdict(verdict) => {
            !verdict.started && matches!(verdict.kind, VerdictKind::Startup | VerdictKind::Hung)
        }
    }
}
