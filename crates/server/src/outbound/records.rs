//! What becomes of records: the log, the metrics, and the tails of the worker.

use crate::{metrics::Metrics, service::Service};
use coracle_outbound::{Audit, Record, RequestDecision};
use std::sync::{Arc, Weak};

/// Where records go.
pub(crate) struct Records {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) service: Weak<Service>,
}

impl Audit for Records {
    fn record(&self, record: Record) {
        self.metrics.outbound(&record);
        log(&record);
        if let Some(service) = self.service.upgrade() {
            service.on_outbound_record(record);
        }
    }
}

fn log(record: &Record) {
    let Record {
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
    let duration_us = duration.as_micros() as u64;
    tracing::info!(
        target: "coracle::outbound",
        tenant, worker, invocation, kind, method, destination, hop, decision = verdict, rule, credential, status, error,
        bytes_sent, bytes_received, redactions, duration_us,
        "{}",
        match decision {
            RequestDecision::Allowed => "a request was let out",
            RequestDecision::Denied => "a request was denied",
            RequestDecision::Failed => "a request failed before it was let out",
        }
    );
}
