//! What becomes of records: the log, the metrics, and the tails of the worker.

use crate::{metrics::Metrics, service::Service};
use coracle_outbound::{Audit, Judge, Record, RequestDecision, Underway};
use std::sync::{Arc, Weak};

/// Where records go.
pub(crate) struct Records {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) service: Weak<Service>,
}

impl Audit for Records {
    fn begun(&self, request: &Arc<Underway>) {
        if let Some(service) = self.service.upgrade() {
            service.on_request_begun(request);
        }
    }

    fn record(&self, record: Record) {
        self.metrics.outbound(&record);
        log(&record);
        if let Some(service) = self.service.upgrade() {
            service.on_request_over(record);
        }
    }
}

fn log(record: &Record) {
    let Record {
        number: _,
        judge,
        sender,
        kind,
        method,
        destination,
        hop,
        decision,
        rule,
        credential,
        status,
        error,
        bytes_sent,
        bytes_received,
        redactions,
        duration,
    } = record;
    let (tenant, worker, invocation) = (&*sender.tenant, sender.worker, sender.invocation);
    let (kind, verdict) = (kind.as_str(), decision.as_str());
    let (method, rule) = (&**method, &**rule);
    let duration_us = duration.as_micros() as u64;
    tracing::info!(
        target: "coracle::outbound",
        tenant, worker, invocation, kind, method, destination, hop, judge = judge.as_str(), decision = verdict, rule,
        credential, status, error, bytes_sent, bytes_received, redactions, duration_us,
        "{}",
        match (judge, decision) {
            (Judge::Gateway, _) => "a request was passed to a gateway",
            (_, RequestDecision::Allowed) => "a request was let out",
            (_, RequestDecision::Denied) => "a request was denied",
            (_, RequestDecision::Failed) => "a request failed before it was let out",
        }
    );
}
