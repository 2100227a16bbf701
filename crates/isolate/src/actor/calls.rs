//! Beginning invocations, and giving them up because of time or their caller.

use super::{
    Actor, Effects, EntryKind, Guest, Life, Mail, NOBODY, Run, Surroundings,
    outcome::invoke_message,
};
use crate::{
    border::State,
    instance::{Entry, Running},
    invocation::Invocation,
    message::{Bytes, Call, CallAccess, Outcome, VerdictKind},
    random,
};
use coracle_abi as abi;
use std::{sync::Arc, time::Duration};

impl Actor {
    /// Begins a call; the guest is not running. The first one also brings the isolate to life.
    pub(super) fn begin_call(
        &mut self,
        call: Box<Call>,
        arrived: Duration,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let id = call.invocation;
        let new = Invocation::new(&call, &self.spec.limits, arrived, self.served);
        // The props are copied for every call, like arguments.
        let size = (call.args.bytes.len() + call.props.bytes.len()) as u64;
        let limit = new.limits.args_bytes_max;
        if size > limit {
            let verdict = new.verdict(VerdictKind::ArgsSize, "args_bytes_max", size, limit);
            self.report_unbegun(id, new, Outcome::Verdict(verdict), around, effects);
            return;
        }
        // They are open already where the modules have just been evaluated for this call.
        let books = self.invocations.entry(id).or_insert_with(|| Box::new(new));
        if matches!(self.guest, Guest::Unborn) {
            self.load(id, around);
            // The call follows once the modules have been evaluated.
            self.mailbox.push_front(Mail::Call { call, arrived });
        } else if call.access == CallAccess::Ready {
            self.report(id, Outcome::Value(Bytes::UNDEFINED), around, effects);
        } else {
            books.started = true;
            let forgotten = std::mem::take(&mut self.forgotten);
            let message = invoke_message(&call, &books.limits, forgotten);
            self.enter(Entry::Invoke(message), id, around);
        }
    }

    /// Brings the isolate to life, for the invocation that pays for it.
    fn load(&mut self, invocation: u64, around: &Surroundings<'_>) {
        let state = State::new(
            Arc::clone(&self.outbox),
            &self.spec.limits,
            around
                .pool_memory
                .purse(self.spec.tenant, self.spec.share.memory_bytes_max),
            around.seed,
        );
        let terms = self.terms(EntryKind::Load, invocation, around);
        let running = Running::birth(
            Arc::clone(around.sandbox),
            self.spec.tenant,
            state,
            around.seed.unwrap_or_else(random::number),
            Arc::clone(&self.spec.load),
            terms,
        );
        self.guest = Guest::Running(Run::new(running, EntryKind::Load, invocation, terms));
    }

    /// Nobody outside holds these exports any more.
    pub(super) fn release(&mut self, exports: Vec<u64>, around: &Surroundings<'_>) {
        let givers = exports.iter();
        let givers: Vec<u64> = givers
            .filter_map(|export| self.estates.let_go(*export))
            .collect();
        let payer = self.payer(&givers, around);
        self.tell_released(exports, None, payer, around);
        for giver in givers {
            self.estates.settle_claim(giver);
        }
    }

    /// Nobody waits for an invocation any more.
    pub(super) fn tell_cancelled(&mut self, invocation: u64, around: &Surroundings<'_>) {
        let payer = self.payer(&[invocation], around);
        self.tell_released(Vec::new(), Some(invocation), payer, around);
        self.estates.settle_claim(invocation);
    }

    /// Tells the guest of what nobody outside holds or waits for.
    fn tell_released(
        &mut self,
        exports: Vec<u64>,
        cancelled: Option<u64>,
        payer: Option<u64>,
        around: &Surroundings<'_>,
    ) {
        // Encoding into a Vec can't fail.
        let message = minicbor::to_vec(abi::Release { exports, cancelled }).unwrap_or_default();
        let payer = payer.unwrap_or(NOBODY);
        self.enter(Entry::Release(message), payer, around);
    }

    pub(super) fn wall_time_is_up(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let now = around.clock.monotonic();
        match self.invocations.get(&invocation) {
            Some(books) if !books.reported => {
                let outcome = Outcome::Verdict(books.verdict_on_wall(now));
                self.end(Some((invocation, outcome)), around, effects)
            }
            // It had its result before; what it left has had its time.
            Some(_) => self.time_of_reported_is_up(invocation, around, effects),
            None => {
                if let Some(books) = self.take_waiting(invocation) {
                    let outcome = Outcome::Verdict(books.verdict_on_wall(now));
                    self.report_unbegun(invocation, books, outcome, around, effects);
                }
                Life::GoesOn
            }
        }
    }

    /// The caller does not want the result any more. The isolate ends if nobody else is in it.
    pub(super) fn cancel(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        match self.invocations.get(&invocation) {
            Some(books) if !books.reported => {
                let outcome = Outcome::Verdict(books.verdict_plain(VerdictKind::Cancelled));
                if !self.has_others(invocation) {
                    return self.end(Some((invocation, outcome)), around, effects);
                }
                // Others are in the isolate, and may wait for what this call's entries have started: that goes on as if
                // the call had ended. Code of it that is in the middle of an entry runs on while others are there.
                self.estates.claim(invocation);
                self.report(invocation, outcome, around, effects);
                if let Some(books) = self.invocations.get_mut(&invocation) {
                    books.abandoned = true;
                }
                self.post(Mail::Cancelled { invocation });
                // Where it was still waiting for the modules, there is no call to follow.
                self.take_waiting(invocation);
                Life::GoesOn
            }
            Some(_) => Life::GoesOn,
            None => {
                if let Some(books) = self.take_waiting(invocation) {
                    let outcome = Outcome::Verdict(books.verdict_plain(VerdictKind::Cancelled));
                    self.report_unbegun(invocation, books, outcome, around, effects);
                }
                Life::GoesOn
            }
        }
    }

    /// Whether an invocation other than this one is to be answered by the isolate, or held open in it.
    pub(super) fn has_others(&self, invocation: u64) -> bool {
        self.invocations
            .iter()
            .any(|(id, books)| *id != invocation && books.is_open())
            || self
                .waiting_calls()
                .iter()
                .any(|other| *other != invocation)
    }

    /// The invocations of the calls in the mailbox, in order.
    pub(super) fn waiting_calls(&self) -> Vec<u64> {
        self.mailbox
            .iter()
            .filter_map(|mail| match mail {
                Mail::Call { call, .. } => Some(call.invocation),
                _ => None,
            })
            .collect()
    }

    /// Takes a call out of the mailbox; returns its books, which are new.
    pub(super) fn take_waiting(&mut self, invocation: u64) -> Option<Invocation> {
        let position = self.mailbox.iter().position(
            |mail| matches!(mail, Mail::Call { call, .. } if call.invocation == invocation),
        )?;
        match self.mailbox.remove(position)? {
            Mail::Call { call, arrived } => Some(Invocation::new(
                &call,
                &self.spec.limits,
                arrived,
                self.served,
            )),
            _ => None,
        }
    }
}
