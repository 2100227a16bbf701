//! Entries into the guest: on what terms they begin, and what each slice of them leaves behind.

use super::{Actor, Effects, EntryKind, Guest, Life, NOBODY, Paying, Run, Surroundings};
use crate::{
    border::{self, Abort, Allowance, Started},
    fuel,
    instance::{Done, Entry, Running, Terms},
    message::{Event, External, Outcome, Verdict, VerdictKind},
};
use coracle_abi as abi;
use std::time::Duration;

impl Actor {
    /// Begins an entry into the instance, which is at rest; without one nothing happens.
    pub(super) fn enter(&mut self, entry: Entry, invocation: u64, around: &Surroundings<'_>) {
        let mut terms = self.terms(EntryKind::Run, invocation, around);
        let housekeeping = match &entry {
            Entry::Release(_) => fuel::HOUSEKEEPING,
            _ => 0,
        };
        terms.fuel = terms.fuel.saturating_add(housekeeping);
        let books = self.invocations.get(&invocation);
        self.paying = Paying {
            invocation,
            fuel_before: books.map_or(0, |books| books.fuel_run),
        };
        self.guest = match std::mem::replace(&mut self.guest, Guest::Unborn) {
            Guest::Resting(instance) => {
                let running = instance.enter(entry, terms);
                Guest::Running(Run {
                    housekeeping,
                    ..Run::new(running, EntryKind::Run, invocation, terms)
                })
            }
            other => other,
        };
    }

    pub(super) fn terms(
        &self,
        kind: EntryKind,
        invocation: u64,
        around: &Surroundings<'_>,
    ) -> Terms {
        let now_ms = around.clock.epoch_ms();
        let Some(books) = self.invocations.get(&invocation) else {
            let allowance = Allowance {
                memory_bytes_max: self.spec.limits.memory_bytes_max,
                // Nobody is there who would be answered: it is dropped.
                subrequests_max: u64::MAX,
                ..Allowance::default()
            };
            return Terms {
                fuel: fuel::COLLECTION,
                slice: around.pace.slice,
                now_ms,
                allowance,
            };
        };
        Terms {
            fuel: match kind {
                EntryKind::Load => books.limits.startup_fuel_max,
                EntryKind::Run => books.fuel_left(),
            },
            slice: around.pace.slice,
            now_ms,
            allowance: Allowance {
                log_bytes: self
                    .invocations
                    .get(&self.console_of(invocation))
                    .map_or(0, |books| books.log_bytes_left),
                subrequests_sent: books.subrequests,
                subrequests_max: books.limits.subrequests_max,
                memory_bytes_max: books.limits.memory_bytes_max,
            },
        }
    }

    /// After a slice that did not end the entry.
    pub(super) fn after_slice(
        &mut self,
        spent: Duration,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let Guest::Running(run) = &mut self.guest else {
            return Life::GoesOn;
        };
        run.slices += 1;
        let (kind, invocation) = (run.kind, run.invocation);
        // As near as can be told before the entry is over.
        let burnt = run.fuel.min(run.slices * run.slice);
        self.charge_cpu(invocation, kind, spent);
        self.charge_fuel(invocation, kind, burnt);
        match kind {
            EntryKind::Load => self.take_what_a_load_said(invocation, effects),
            EntryKind::Run => {
                if self.deliver(invocation, around, effects) == Life::Ended {
                    return Life::Ended;
                }
            }
        }
        self.end_if_cpu_is_used_up(invocation, around, effects)
    }

    /// After an entry has ended.
    pub(super) fn after_entry(
        &mut self,
        done: Done,
        spent: Duration,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let guest = match done.instance {
            Some(instance) => Guest::Resting(instance),
            None => Guest::Unborn,
        };
        let Guest::Running(run) = std::mem::replace(&mut self.guest, guest) else {
            return Life::GoesOn;
        };
        let (kind, invocation) = (run.kind, run.invocation);
        let burnt = run.fuel - done.fuel_left.min(run.fuel);
        // What only takes note of something costs nobody anything.
        let is_charged = run.housekeeping == 0 || burnt > run.housekeeping;
        let charged = burnt.saturating_sub(run.housekeeping);
        if is_charged {
            self.charge_cpu(invocation, kind, spent);
            self.charge_fuel(invocation, kind, charged);
        }
        if kind == EntryKind::Load {
            self.take_what_a_load_said(invocation, effects);
        } else if self.deliver(invocation, around, effects) == Life::Ended {
            return Life::Ended;
        }
        if is_charged {
            // A report has what had been burnt when the guest said so; the rest comes on top.
            self.charge_fuel(invocation, kind, charged);
        }
        if let Err(error) = done.outcome {
            if let Some(Abort(thrown)) = error.downcast_ref() {
                return self.abort(invocation, thrown, around, effects);
            }
            let outcome = self.outcome_of_failure(&error, kind, invocation);
            return self.end(Some((invocation, outcome)), around, effects);
        }
        if kind == EntryKind::Load {
            return self.after_load(invocation, around, effects);
        }
        if self.end_if_cpu_is_used_up(invocation, around, effects) == Life::Ended {
            return Life::Ended;
        }
        self.settle_leftovers(invocation, around, effects);
        Life::GoesOn
    }

    fn charge_cpu(&mut self, invocation: u64, kind: EntryKind, spent: Duration) {
        if let Some(books) = self.invocations.get_mut(&invocation) {
            match kind {
                EntryKind::Load => books.cpu_load += spent,
                EntryKind::Run => books.cpu_run += spent,
            }
        }
    }

    /// Charges what the entry has burnt so far.
    pub(super) fn charge_fuel(&mut self, invocation: u64, kind: EntryKind, burnt: u64) {
        let before = self.paying.fuel_before;
        if let Some(books) = self.invocations.get_mut(&invocation) {
            match kind {
                EntryKind::Load => books.fuel_load = burnt,
                EntryKind::Run => books.fuel_run = before + burnt,
            }
        }
    }

    fn end_if_cpu_is_used_up(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let verdict = self
            .invocations
            .get(&invocation)
            .and_then(|books| books.verdict_on_cpu());
        match verdict {
            Some(verdict) => {
                let culprit = (invocation, Outcome::Verdict(verdict));
                self.end(Some(culprit), around, effects)
            }
            None => Life::GoesOn,
        }
    }

    /// Whose console an entry writes to: that of the invocation that pays, or once that is over, of one that is not.
    fn console_of(&self, invocation: u64) -> u64 {
        let payer = self.invocations.get(&invocation);
        if payer.is_none_or(|books| books.is_open()) {
            return invocation;
        }
        let mut all = self.invocations.iter();
        let open = all.find(|(_, books)| books.is_open());
        open.map_or(invocation, |(other, _)| *other)
    }

    /// Console output of the slice, into the books of whose it is.
    fn take_logs(&mut self, invocation: u64, effects: &mut Effects) {
        let invocation = self.console_of(invocation);
        let mut outbox = border::lock(&self.outbox);
        let logs = std::mem::take(&mut outbox.logs);
        let dropped = std::mem::take(&mut outbox.log_bytes_dropped);
        if let Some(books) = self.invocations.get_mut(&invocation) {
            let kept = books.logs.len();
            books.log_bytes_dropped += dropped;
            logs.into_iter().for_each(|log| books.keep_log(log));
            let logs = &books.logs[kept..];
            if self.spec.logs_streamed && !logs.is_empty() {
                effects.events.push(Event::Logged {
                    isolate: self.isolate,
                    invocation,
                    logs: logs.to_vec(),
                });
            }
        }
    }

    /// A load can only log and say how it went, once; what else a broken guest does in it is not taken.
    fn take_what_a_load_said(&mut self, invocation: u64, effects: &mut Effects) {
        self.take_logs(invocation, effects);
        let mut outbox = border::lock(&self.outbox);
        for started in std::mem::take(&mut outbox.started) {
            match started {
                Started::Timer { .. } => outbox.timer_done(),
                Started::Hold { .. } => outbox.hold_done(),
                Started::Call { .. } | Started::Loading { .. } => {}
            }
        }
        outbox.cancelled.clear();
        outbox
            .finished
            .retain(|finished| finished.invocation == NOBODY);
        outbox.finished.truncate(1);
    }

    /// The guest has reported how the load went, as the outcome of invocation 0; or it hangs.
    fn after_load(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let said = border::lock(&self.outbox).finished.pop();
        if let Some(said) = &said
            && matches!(said.kind, abi::finish::UNDEFINED | abi::finish::LOADED_NOW)
        {
            // Or the call would have a slice of its own on top of the one that was too much.
            if self.end_if_cpu_is_used_up(invocation, around, effects) == Life::Ended {
                return Life::Ended;
            }
            self.settle_leftovers(invocation, around, effects);
            return Life::GoesOn;
        }
        let outcome = self.outcome_of_load(said, invocation);
        // Every call that waits for the same modules has the same outcome.
        for other in self.waiting_calls() {
            if other != invocation {
                self.answer_waiting(other, outcome.clone(), around, effects);
            }
        }
        self.end(Some((invocation, outcome)), around, effects)
    }

    /// Acts on what the guest asked for in a slice.
    fn deliver(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        self.take_logs(invocation, effects);
        let (finished, started, cancelled, released) = {
            let mut outbox = border::lock(&self.outbox);
            (
                std::mem::take(&mut outbox.finished),
                std::mem::take(&mut outbox.started),
                std::mem::take(&mut outbox.cancelled),
                std::mem::take(&mut outbox.released),
            )
        };
        for start in started {
            for table in start.given_out() {
                if self.give_out(table, invocation, around, effects) == Life::Ended {
                    return Life::Ended;
                }
            }
            self.start_operation(start, invocation, around, effects);
        }
        for operation in cancelled {
            self.drop_operation(operation, around, effects);
        }
        for finished in finished {
            if self.finish(finished, around, effects) == Life::Ended {
                return Life::Ended;
            }
        }
        self.release_imports(&released, effects);
        Life::GoesOn
    }

    /// The guest gives objects out; too many at once end it.
    pub(super) fn give_out(
        &mut self,
        externals: &[External],
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        for external in externals {
            if let External::Export(export, _) = external {
                self.estates.give_out(*export, invocation);
            }
        }
        let (used, limit) = (self.estates.len() as u64, self.spec.limits.exports_max);
        if used <= limit {
            return Life::GoesOn;
        }
        let verdict = match self.invocations.get(&invocation) {
            Some(books) => books.verdict(VerdictKind::Exports, "exports_max", used, limit),
            None => Verdict::without_limit(VerdictKind::Exports, true),
        };
        self.end(
            Some((invocation, Outcome::Verdict(verdict))),
            around,
            effects,
        )
    }
}

impl Run {
    pub(super) fn new(running: Running, kind: EntryKind, invocation: u64, terms: Terms) -> Self {
        Self {
            running,
            kind,
            invocation,
            fuel: terms.fuel,
            slice: terms.slice,
            slices: 0,
            housekeeping: 0,
        }
    }
}
