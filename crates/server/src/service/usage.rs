//! What calls have cost, for the ledger.

use super::{Name, Service, State};
use crate::{ledger::UsageLedger, metrics::outcome_name};
use coracle_isolate::{Aftermath, Report};
use coracle_loader::WorkerId;

impl Service {
    /// Writes usage down. Once, before anything is loaded.
    pub(crate) fn attach_ledger(&self, ledger: UsageLedger) {
        let attached = self.ledger.set(ledger);
        debug_assert!(attached.is_ok(), "attached twice");
    }

    /// Writes down what has been counted so far.
    pub(crate) fn flush_ledger(&self) {
        if let Some(ledger) = self.ledger.get() {
            ledger.flush();
        }
    }

    /// A call is over.
    pub(super) fn count_usage(&self, state: &State, worker: WorkerId, report: &Report) {
        if let (Some(ledger), Some(loaded)) = (self.ledger.get(), state.workers.get(&worker)) {
            let name = loaded.name.as_ref().map(Name::text);
            let outcome = outcome_name(&report.outcome);
            ledger.count(loaded.facts.tenant(), name, outcome, &report.usage);
        }
    }

    /// Something of an isolate's was done after the answer.
    pub(super) fn count_aftermath(&self, state: &State, isolate: u64, aftermath: &Aftermath) {
        if let (Some(ledger), Some(table)) = (self.ledger.get(), state.tables.get(&isolate)) {
            let loaded = state.workers.get(&table.worker_id());
            let name = loaded.and_then(|loaded| loaded.name.as_ref());
            ledger.count_after(table.tenant(), name.map(Name::text), &aftermath.usage);
        }
    }
}
