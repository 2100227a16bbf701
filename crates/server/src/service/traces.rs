//! What is noted for tails while calls run. Nothing is, and nothing costs, where a worker has none.

use super::{Pending, Service, State, Waiting};
use crate::{
    session::OutCall,
    tails::{DEPTH_MAX, Ending, Tail, Telling, Tellings, Trace},
};
use coracle_isolate::{Aftermath, Bytes, Call, Log, Outcome, Report};
use coracle_loader::{CallId, WorkerId};
use std::sync::Arc;

/// Bytes of a result that are kept to see whether it is a response, and which.
const RESPONSE_BYTES_MAX: usize = 64 << 10;

impl State {
    /// Keeps how a call ended that is held.
    pub(super) fn keep_report(&mut self, call: CallId, report: &Report) {
        if let Some(held) = self.calls.get_mut(&call)
            && held.trace.is_some()
        {
            held.report = Some(Box::new(copy(report)));
        }
    }
}

impl Service {
    pub(crate) fn tellings(&self) -> &Tellings {
        &self.tellings
    }

    pub(crate) fn itself(&self) -> Option<Arc<Self>> {
        self.itself.upgrade()
    }

    /// Calls a tail. Not while the state is held.
    pub(crate) fn place_for_tail(&self, call: OutCall, tail: &Arc<Tail>, depth: u8) {
        let answer_to = Waiting::Tail(Arc::clone(tail));
        self.with(|state| self.place(state, call, answer_to, depth));
    }

    /// A client has answered a call of a tail.
    pub(crate) fn answer_tail(&self, tail: Arc<Tail>, delivered: bool) {
        drop(self.tellings.note(Telling::Answered(tail, delivered)));
        self.tell_tails();
    }

    pub(super) fn note(&self, state: &mut State, telling: Telling) {
        if let Some(untold) = self.tellings.note(telling) {
            self.metrics.tail_events_dropped(1);
            state.discard(untold);
        }
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

    pub(super) fn trace_logs(&self, state: &mut State, invocation: u64, logs: Vec<Log>) {
        let pending = state.calls.get(&CallId(invocation));
        if let Some(trace) = pending.and_then(|pending| pending.trace.clone()) {
            self.note(state, Telling::Logs(trace, logs));
        }
    }

    /// A call is over; one that was held is lost.
    pub(super) fn trace_end(&self, state: &mut State, pending: &Pending, report: &Report) {
        let Some(trace) = pending.trace.clone() else {
            return;
        };
        let ending = match (&pending.report, &report.outcome) {
            (Some(before), Outcome::Verdict(verdict)) => {
                let lost = Aftermath {
                    verdict: Some(verdict.clone()),
                    usage: report.usage,
                    logs: Vec::new(),
                    log_bytes_dropped: 0,
                };
                Ending::new((**before).clone(), Some(lost))
            }
            _ => Ending::new(copy(report), None),
        };
        self.note(state, Telling::Ended(trace, ending));
    }

    /// A call that was held is over.
    pub(super) fn trace_aftermath(
        &self,
        state: &mut State,
        mut pending: Pending,
        aftermath: Aftermath,
    ) {
        if let (Some(trace), Some(report)) = (pending.trace.take(), pending.report.take()) {
            self.note(
                state,
                Telling::Ended(trace, Ending::new(*report, Some(aftermath))),
            );
        }
        state.discard(pending);
    }
}

/// A report without its result, but for what may be a response.
fn copy(report: &Report) -> Report {
    Report {
        outcome: match &report.outcome {
            Outcome::Value(value) if value.bytes.len() <= RESPONSE_BYTES_MAX => {
                Outcome::Value(Bytes::data(value.form, value.bytes.clone()))
            }
            Outcome::Value(_) => Outcome::Value(Bytes::UNDEFINED),
            other => other.clone(),
        },
        logs: report.logs.clone(),
        ..*report
    }
}
