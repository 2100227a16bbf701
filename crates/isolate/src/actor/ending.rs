//! Reports, each exactly once, and the end of the isolate.

use super::{
    Actor, Alarm, AlarmChange, AlarmOf, Effects, Guest, Life, Mail, Surroundings, Waiting,
};
use crate::{
    invocation::Invocation,
    message::{Event, Outcome, Report, Verdict, VerdictKind},
};
use std::time::Duration;

impl Actor {
    /// With nothing left that could settle a call, it is over; the isolate serves on.
    pub(super) fn end_hung(&mut self, around: &Surroundings<'_>, effects: &mut Effects) {
        // A call of something that was given out may settle what is waited for.
        if self.waits_for_others() || !self.estates.is_empty() {
            return;
        }
        let hung: Vec<u64> = self.invocations.keys().copied().collect();
        for invocation in hung {
            if let Some(books) = self.invocations.get(&invocation) {
                let outcome = Outcome::Verdict(books.verdict_plain(VerdictKind::Hung));
                self.report(invocation, outcome, around, effects);
            }
        }
        self.end_held(around, effects);
    }

    /// Reports an invocation. Its books are closed, unless something of it may still be wanted.
    pub(super) fn report(
        &mut self,
        invocation: u64,
        outcome: Outcome,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let (now, memory) = (around.clock.monotonic(), self.memory());
        let Some(books) = self
            .invocations
            .get_mut(&invocation)
            .filter(|books| !books.reported)
        else {
            return;
        };
        let report = books.report(outcome, now, memory);
        let held = books.held;
        self.served = true;
        self.send(invocation, report, held, true, effects);
        if self.has_open() {
            self.linger(invocation, around, effects);
        } else {
            self.let_all_go(around, effects);
        }
    }

    /// No invocation is open any more: nothing of any is wanted.
    pub(super) fn let_all_go(&mut self, around: &Surroundings<'_>, effects: &mut Effects) {
        let all: Vec<u64> = self.invocations.keys().copied().collect();
        for reported in all {
            self.let_go(reported, around, effects);
        }
    }

    /// What an invocation's entries have started may be what others wait for, or what it is held for: it stays for the rest
    /// of the invocation's wall time. Where there is nothing of the kind, the invocation is let go.
    fn linger(&mut self, invocation: u64, around: &Surroundings<'_>, effects: &mut Effects) {
        match self.invocations.get(&invocation) {
            Some(books) if !books.operations.is_empty() => {
                effects.alarms.push(wall_time(invocation, books));
            }
            _ => self.let_go(invocation, around, effects),
        }
    }

    /// Drops what is left of an invocation that has been reported; its books stay while an entry of its own is under
    /// way, to pay for it, and so does its wall time.
    pub(super) fn let_go(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        self.forget_operations(invocation, effects);
        if matches!(&self.guest, Guest::Running(run) if run.invocation == invocation) {
            // Reporting it has cleared the alarm.
            if let Some(books) = self.invocations.get(&invocation) {
                effects.alarms.push(wall_time(invocation, books));
            }
            return;
        }
        let of = AlarmOf::WallTime(invocation);
        effects.alarms.push(AlarmChange::Clear(of));
        if let Some(mut books) = self.invocations.remove(&invocation) {
            self.tell_aftermath(invocation, &mut books, true, around, effects);
            self.estates.bequeath(invocation, books);
        }
    }

    /// Whether an invocation in the isolate waits for its result, or is held open after it.
    pub(super) fn has_open(&self) -> bool {
        self.invocations.values().any(|books| books.is_open())
    }

    /// Reports an invocation that never got as far as having books in the isolate.
    pub(super) fn report_unbegun(
        &self,
        invocation: u64,
        mut books: Invocation,
        outcome: Outcome,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let report = books.report(outcome, around.clock.monotonic(), self.memory());
        self.send(invocation, report, false, true, effects);
    }

    /// Reports a call that is still in the mailbox.
    pub(super) fn answer_waiting(
        &mut self,
        invocation: u64,
        outcome: Outcome,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        if let Some(books) = self.take_waiting(invocation) {
            self.report_unbegun(invocation, books, outcome, around, effects);
        }
    }

    /// After an entry of an invocation that may have been reported.
    pub(super) fn settle_leftovers(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        if !self.unheld.is_empty() {
            self.close_unheld(around, effects);
        }
        let Some(books) = self.invocations.get(&invocation) else {
            return;
        };
        if books.is_estate {
            match books.operations.is_empty() {
                false => effects.alarms.push(wall_time(invocation, books)),
                true => self.let_go(invocation, around, effects),
            }
            if !self.has_open() {
                self.let_all_go(around, effects);
            }
            return;
        }
        match (books.is_open(), self.has_open()) {
            (true, _) => {}
            (false, true) => self.linger(invocation, around, effects),
            (false, false) => self.let_go(invocation, around, effects),
        }
    }

    /// Ends the isolate: the culprit gets its outcome, unless it had one before; the others are told that they lost it.
    pub(super) fn end(
        &mut self,
        culprit: Option<(u64, Outcome)>,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        self.drop_guest();
        let now = around.clock.monotonic();
        let memory = self.memory();
        let culprit_id = culprit.as_ref().map(|(id, _)| *id);
        let mut culprit_books = None;
        for (invocation, mut books) in std::mem::take(&mut self.invocations) {
            if Some(invocation) == culprit_id {
                culprit_books = Some(books);
                continue;
            }
            let lost = books.verdict_plain(VerdictKind::IsolateLost);
            if books.reported {
                books.stopped = Some(lost);
                self.tell_aftermath(invocation, &mut books, true, around, effects);
                continue;
            }
            let report = books.report(Outcome::Verdict(lost), now, memory);
            self.send(invocation, report, false, true, effects);
        }
        for waiting in self.waiting_calls() {
            // The culprit itself waits in the mailbox while the modules are evaluated for it.
            if Some(waiting) != culprit_id {
                let verdict = Verdict::without_limit(VerdictKind::IsolateLost, false);
                self.answer_waiting(waiting, Outcome::Verdict(verdict), around, effects);
            }
        }
        match (culprit_books, culprit) {
            (Some(mut books), Some((invocation, outcome))) if books.reported => {
                if let Outcome::Verdict(verdict) = outcome {
                    books.stopped = Some(verdict);
                }
                self.tell_aftermath(invocation, &mut books, false, around, effects);
            }
            (Some(mut books), Some((invocation, outcome))) => {
                books.holds = 0;
                let report = books.report(outcome, now, memory);
                self.send(invocation, report, false, false, effects);
            }
            _ => {}
        }
        Life::Ended
    }

    /// Ends the isolate without a word to anyone; whoever asked for it has answered the callers.
    pub(super) fn end_silently(&mut self) -> Life {
        self.drop_guest();
        Life::Ended
    }

    /// Ends the isolate if all that is left in it is an entry that its caller gave up.
    pub(super) fn end_if_abandoned(
        &mut self,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let Guest::Running(run) = &self.guest else {
            return Life::GoesOn;
        };
        let given_up = self
            .invocations
            .get(&run.invocation)
            .is_some_and(|books| books.abandoned);
        if given_up && !self.has_others(run.invocation) {
            self.end(None, around, effects)
        } else {
            Life::GoesOn
        }
    }

    /// Gives the instance back to the pool.
    fn drop_guest(&mut self) {
        self.guest = Guest::Unborn;
        self.operations.clear();
        self.waiting = Waiting::default();
        self.holds = 0;
        self.unheld.clear();
        self.estates.clear();
    }

    fn send(
        &self,
        invocation: u64,
        report: Report,
        held: bool,
        isolate_reusable: bool,
        effects: &mut Effects,
    ) {
        effects.events.push(Event::Finished {
            isolate: self.isolate,
            invocation,
            report: Box::new(report),
            held,
            isolate_reusable,
        });
    }
}

/// The alarm for the end of an invocation's wall time.
fn wall_time(invocation: u64, books: &Invocation) -> AlarmChange {
    AlarmChange::Set(Alarm {
        at: books.arrived + Duration::from_millis(books.limits.wall_ms_max),
        mail: Mail::WallTime { invocation },
    })
}
