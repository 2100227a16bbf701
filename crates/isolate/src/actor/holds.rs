//! Holding invocations open: what runs on after the answer, and how that ends.
//!
//! A hold is an operation that nobody settles and the guest cancels. While it is there, the invocation's other operations
//! stay, its code is charged to it, and its wall time runs. It waits for nothing itself, so it keeps nothing from being
//! hung. What came of it is told when it is over, once.

use super::{
    Actor, Effects, Guest, Life, Surroundings,
    operations::{Kind, Operation},
};
use crate::{
    border,
    invocation::Invocation,
    message::{Event, Outcome, Thrown},
};

impl Actor {
    /// The guest holds the invocation that it names. If that is over, the one that pays is held, or else any that is open:
    /// they are of one worker, and its code says that there is something to be done.
    pub(super) fn hold(&mut self, operation: u64, named: u64, payer: u64) {
        let is_open = |invocation: &u64| {
            let books = self.invocations.get(invocation);
            books.is_some_and(|books| books.is_open())
        };
        let chosen = [named, payer].into_iter().find(is_open);
        let held = chosen.or_else(|| self.invocations.keys().copied().find(is_open));
        let Some(books) = held.and_then(|held| self.invocations.get_mut(&held)) else {
            border::lock(&self.outbox).hold_done();
            self.forgotten.push(operation);
            return;
        };
        books.operations.insert(operation);
        books.holds += 1;
        self.holds += 1;
        let hold = Operation::new(held.unwrap_or(payer), Kind::Hold);
        self.operations.insert(operation, hold);
    }

    /// A hold has been taken off the books.
    pub(super) fn hold_is_over(&mut self, invocation: u64) {
        border::lock(&self.outbox).hold_done();
        self.holds -= 1;
        if let Some(books) = self.invocations.get_mut(&invocation) {
            books.holds -= 1;
            self.unheld.push(invocation);
        }
    }

    /// After an entry: closes what is not held any more.
    pub(super) fn close_unheld(&mut self, around: &Surroundings<'_>, effects: &mut Effects) {
        for invocation in std::mem::take(&mut self.unheld) {
            let Some(mut books) = self.invocations.remove(&invocation) else {
                continue;
            };
            if books.held && books.holds == 0 {
                self.tell_aftermath(invocation, &mut books, true, around, effects);
            }
            self.invocations.insert(invocation, books);
        }
        if !self.has_open() {
            self.let_all_go(around, effects);
        }
    }

    /// Nothing is left that could settle what held invocations wait for.
    pub(super) fn end_held(&mut self, around: &Surroundings<'_>, effects: &mut Effects) {
        let all = self.invocations.iter();
        let held: Vec<u64> = all
            .filter_map(|(id, books)| books.held.then_some(*id))
            .collect();
        if held.is_empty() {
            return;
        }
        for invocation in held {
            self.let_go(invocation, around, effects);
        }
        self.let_all_go(around, effects);
    }

    /// The wall time of an invocation that has been reported is over.
    pub(super) fn time_of_reported_is_up(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let now = around.clock.monotonic();
        let is_running = matches!(&self.guest, Guest::Running(run) if run.invocation == invocation);
        if let Some(books) = self.invocations.get_mut(&invocation)
            && (books.held || is_running)
        {
            let verdict = books.verdict_on_wall(now);
            if is_running {
                return self.end(
                    Some((invocation, Outcome::Verdict(verdict))),
                    around,
                    effects,
                );
            }
            books.stopped = Some(verdict);
        }
        self.let_go(invocation, around, effects);
        if !self.has_open() {
            self.let_all_go(around, effects);
        }
        Life::GoesOn
    }

    /// Tells what an invocation has done since its report, where there is anything to tell.
    pub(super) fn tell_aftermath(
        &self,
        invocation: u64,
        books: &mut Invocation,
        isolate_reusable: bool,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        if let Some(aftermath) = books.aftermath(around.clock.monotonic(), self.memory()) {
            effects.events.push(Event::Lingered {
                isolate: self.isolate,
                invocation,
                aftermath: Box::new(aftermath),
                isolate_reusable,
            });
        }
    }

    /// The guest ends its isolate: whoever waits for something in it is told why.
    pub(super) fn abort(
        &mut self,
        invocation: u64,
        thrown: &Thrown,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let outcome = || Outcome::Threw(Box::new(thrown.clone()));
        for waiting in self
            .waiting_calls()
            .into_iter()
            .filter(|id| *id != invocation)
        {
            self.answer_waiting(waiting, outcome(), around, effects);
        }
        let others: Vec<u64> = self.invocations.keys().copied().collect();
        for other in others {
            if other != invocation {
                self.report(other, outcome(), around, effects);
            }
        }
        self.end(Some((invocation, outcome())), around, effects)
    }
}
