//! What is noted for tails while calls run. Nothing is, and nothing costs, where a worker has none.

use super::{Notice, Pending, Service, State, Waiting};
use crate::{
    session::OutCall,
    tails::{
        DEPTH_MAX, Ending, Kept, TailCall, Telling, Tellings, Trace, logs_bytes, record_bytes,
    },
};
use coracle_isolate::{Aftermath, Call, Log, Outcome, Report};
use coracle_loader::{CallId, WorkerId};
use coracle_outbound::{Record, Underway};
use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard, PoisonError},
};

/// What a request comes to for a loopback, private or metadata address that is not named.
const ADDRESS_DENIED: &str = "address_denied";

impl State {
    /// Keeps how a call ended that is held, if there is room for it.
    pub(super) fn keep_report(&mut self, call: CallId, report: &Report) {
        if let Some(held) = self.calls.get_mut(&call)
            && let Some(trace) = &held.trace
        {
            let room = trace.take_room(trace.report_bytes(report));
            let report = || trace.told_of(report);
            held.report = room.map(|room| {
                Box::new(Kept {
                    report: report(),
                    room,
                })
            });
        }
    }
}

impl Service {
    pub(crate) fn tellings(&self) -> &Arc<Tellings> {
        &self.tellings
    }

    /// Calls a tail. Not while the state is held.
    pub(crate) fn place_for_tail(&self, call: OutCall, answer_to: TailCall, depth: u8) {
        self.with(|state| self.place(state, call, Waiting::Tail(answer_to), depth));
    }

    /// The trace of a call, if there is somebody to be told of it.
    pub(super) fn trace(
        &self,
        state: &State,
        worker: WorkerId,
        call: &Call,
        depth: u8,
    ) -> Option<Arc<Trace>> {
        let tails = &state.workers.get(&worker)?.tails;
        if tails.is_empty() {
            return None;
        }
        if depth >= DEPTH_MAX {
            self.metrics.tail_events_dropped(1);
            return None;
        }
        Some(Trace::new(tails, call, depth))
    }

    /// Notes down what happened, if there is room for so many bytes; else so many events are lost, of those that are
    /// streamed and of those that are told at the end. `telling` is only made where it is noted.
    fn note(
        &self,
        trace: &Arc<Trace>,
        bytes: usize,
        (streamed, finished): (u64, u64),
        telling: impl FnOnce(Arc<Trace>) -> Telling,
    ) {
        match trace.take_room(bytes) {
            Some(room) => self.tellings.note(telling(Arc::clone(trace)), room),
            None => {
                let lost = trace.lose(streamed, finished);
                self.metrics.tail_events_dropped(lost);
            }
        }
    }

    pub(super) fn trace_onset(&self, trace: &Arc<Trace>) {
        if trace.is_streamed() {
            self.note(trace, 0, (1, 0), Telling::Onset);
        }
    }

    pub(super) fn trace_logs(&self, state: &State, invocation: u64, logs: Vec<Log>) {
        let pending = state.calls.get(&CallId(invocation));
        if let Some(trace) = pending.and_then(|pending| pending.trace.as_ref())
            && trace.is_streamed()
        {
            let events = (logs.len() as u64, 0);
            self.note(trace, logs_bytes(&logs), events, |trace| {
                Telling::Logs(trace, logs)
            });
        }
    }

    /// Requests of a call are told to its tails from now on, if it has any.
    pub(super) fn follow(&self, state: &State, invocation: u64) {
        let pending = state.calls.get(&CallId(invocation));
        if let Some(trace) = pending.and_then(|pending| pending.trace.as_ref()) {
            self.followed()
                .entry(invocation)
                .or_insert_with(|| Arc::clone(trace));
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<u64, Arc<Trace>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is under way. Needs no state.
    pub(crate) fn on_request_begun(&self, request: &Arc<Underway>) {
        let followed = self.followed();
        if followed.is_empty() {
            return;
        }
        let (number, invocation) = request.look(|record| (record.number, record.sender.invocation));
        let trace = followed.get(&invocation).map(Arc::clone);
        drop(followed);
        if let Some(trace) = trace {
            trace.begin_request(number, request);
        }
    }

    /// A request is over. Needs no state.
    pub(crate) fn on_request_over(&self, record: Record) {
        let followed = self
            .followed()
            .get(&record.sender.invocation)
            .map(Arc::clone);
        if let Some(trace) = followed {
            trace.end_request(&record, || self.stream_record(&trace, &record));
        }
        let probed = record.error == ADDRESS_DENIED;
        if probed || record.bytes_sent > 0 && self.bounds_bytes_out(&record.sender.tenant) {
            self.inbox().push(Notice::Sent {
                tenant: Arc::clone(&record.sender.tenant),
                bytes: record.bytes_sent,
                probed,
            });
            self.take_inbox(false);
        }
    }

    fn stream_record(&self, trace: &Arc<Trace>, record: &Record) {
        if trace.is_streamed() {
            let told = record.clone();
            self.note(trace, record_bytes(record), (1, 0), |trace| {
                Telling::Outbound(trace, Box::new(told))
            });
        }
    }

    /// A call is over, and so is what is told of its requests.
    fn end_requests(&self, trace: &Arc<Trace>) {
        if self.followed().remove(&trace.invocation()).is_some() {
            trace.end_requests(|record| self.stream_record(trace, record));
        }
    }

    /// A call is over; one that was held is lost.
    pub(super) fn trace_end(&self, pending: &mut Pending, report: &Report) {
        let Some(trace) = &pending.trace else {
            return;
        };
        self.end_requests(trace);
        let is_held = matches!(pending.answer_to, Waiting::Nobody);
        match (is_held, &report.outcome) {
            (true, Outcome::Verdict(verdict)) => {
                let lost = Aftermath {
                    verdict: Some(verdict.clone()),
                    usage: report.usage,
                    logs: Vec::new(),
                    log_bytes_dropped: 0,
                };
                self.note_aftermath(trace, pending.report.take(), lost);
            }
            _ => {
                let events = (trace.outcome_events(&report.outcome), 1);
                self.note(trace, trace.report_bytes(report), events, |trace| {
                    let ending = Ending::new(trace.told_of(report), None);
                    Telling::Ended(trace, ending)
                });
            }
        }
    }

    /// A call that was held is over.
    pub(super) fn trace_aftermath(
        &self,
        state: &mut State,
        mut pending: Pending,
        aftermath: Aftermath,
    ) {
        if let Some(trace) = &pending.trace {
            self.end_requests(trace);
            self.note_aftermath(trace, pending.report.take(), aftermath);
        }
        state.discard(pending);
    }

    /// `kept`: unless there was no room for it.
    fn note_aftermath(&self, trace: &Arc<Trace>, kept: Option<Box<Kept>>, aftermath: Aftermath) {
        let Some(kept) = kept else {
            return self.metrics.tail_events_dropped(trace.lose(1, 1));
        };
        let Kept { report, room } = *kept;
        drop(room);
        let bytes = trace.report_bytes(&report) + logs_bytes(&aftermath.logs);
        let events = (trace.outcome_events(&report.outcome), 1);
        self.note(trace, bytes, events, |trace| {
            Telling::Ended(trace, Ending::new(report, Some(aftermath)))
        });
    }
}
