//! Who runs next, who has been sent what, and when to tell whom the time.
//!
//! Isolates share a few threads. Each runs for a fifth of a millisecond at a time. First comes the tenant that has had least
//! of the CPU for its weight ([`Shares`]); among its isolates, who is new or was waiting goes before who has just used a
//! whole slice, though not always, so that neither can starve the other. Cancelling and wall time come before all of that,
//! and so does ending who is in the middle of running code; none of them runs any. Ending who rests can wait a little. This is plain data under one lock: nothing here runs a guest or calls out.

use super::{alarms::Alarms, shares::Shares};
use crate::{
    actor::{Actor, Alarm, AlarmChange, AlarmOf, Mail, Turn},
    message::{Call, WorkerSpec},
    pool_memory::PoolMemory,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

/// After this many isolates that were waiting, one that has used a whole slice gets its turn.
const FRESH_IN_A_ROW_MAX: u32 = 8;
/// After this many turns of others, an isolate that rests and was told to end is ended,
const BEFORE_ENDING_MAX: u32 = 8;
/// and earlier where there are more of them than this, or memory may be needed.
const ENDING_MAX: usize = 8;
/// A tenant runs at most so many times the isolates that could still run beside: an eighth of the stacks is left by the
/// greediest, an eighth of that by the next.
const SHARE_OF_WHAT_IS_LEFT: usize = 7;
/// Isolates of one tenant that may always be in the middle of running code, if there is a stack at all.
const RUNNING_PER_TENANT_MIN: usize = 8;
/// Isolates that keep their stack, of some 14 KiB, while they rest: it makes their next call quicker.
const RESTING_STACKS_MAX: usize = 64;
/// What a turn is taken to cost until it is over: a slice.
const TURN_EXPECTED: Duration = Duration::from_micros(200);
/// Alarms that ring at once; the lock is given back in between.
const ALARMS_AT_ONCE_MAX: usize = 1_000;

pub(super) struct Queues {
    isolates: HashMap<u64, Slot>,
    urgent: VecDeque<Ticket>,
    ending: VecDeque<Ticket>,
    /// Turns of others since `ending` had one, or was empty.
    before_ending: u32,
    /// The other two lanes of each tenant. One that has been here stays: there are as many as can log in.
    tenants: HashMap<u64, Lanes>,
    /// What each of them has had of the CPU, and so whose turn it is.
    shares: Shares,
    ticket_last: u64,
    queued: usize,
    /// Isolates in the middle of running code, on a thread or between two slices.
    running: usize,
    /// Of these, whose they are.
    running_of: HashMap<u64, usize>,
    /// Stacks that isolates hold, running or resting.
    stacks: usize,
    stacks_max: usize,
    /// Isolates that rest and hold a stack, by when they came to rest.
    resting: BTreeMap<u64, u64>,
    rest_last: u64,
    alarms: Alarms,
    calls: usize,
    pool_memory: PoolMemory,
    /// Threads that wait for work.
    pub(super) parked: usize,
    /// When one of them looks around by itself, as far as that is known.
    parked_until: Duration,
}

/// An isolate's place in a lane. It counts as long as the isolate's slot says so; an isolate may have moved on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    number: u64,
    isolate: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Has mail that is acted on without running code.
    Urgent,
    /// Rests, and has to be ended, which nobody waits for.
    Ending,
    /// New, or was waiting.
    Fresh,
    /// Has used a whole slice.
    Used,
}

/// The isolates of one tenant that wait for a thread.
#[derive(Default)]
struct Lanes {
    fresh: VecDeque<Ticket>,
    used: VecDeque<Ticket>,
    fresh_in_a_row: u32,
}

/// An isolate, as the queues know it.
struct Slot {
    tenant: u64,
    /// What its tenant was charged for the turn under way, before anybody knows what it costs.
    charged: Duration,
    /// Away while a thread runs it.
    actor: Option<Box<Actor>>,
    inbox: Vec<Mail>,
    place: Option<(Lane, Ticket)>,
    /// Counted in `Queues::running`.
    running: bool,
    /// Counted in `Queues::stacks`.
    stack: bool,
    /// Its key in `Queues::resting`.
    rest: Option<u64>,
    /// It was told to end: what comes now comes too late.
    ending: bool,
    /// What it has is part of a quota of its tenant's.
    has_quota: bool,
    wall_ms_max: u64,
    /// Calls that have not been answered. Whatever happens to the actor, each of them is, once.
    open: BTreeSet<u64>,
}

impl Slot {
    /// Where it waits with urgent mail. What belongs to a quota is given back at once: the tenant's next isolate may need it.
    fn urgent_lane(&self) -> Lane {
        match self.ending && !self.running && !self.has_quota {
            true => Lane::Ending,
            false => Lane::Urgent,
        }
    }
}

/// An isolate whose turn it is.
pub(super) struct Taken {
    pub(super) isolate: u64,
    pub(super) actor: Box<Actor>,
    /// Only to act on urgent mail.
    pub(super) urgent: bool,
    /// One that rests, and whose stack it gets: to be put back without it before the turn.
    pub(super) stack_from: Option<(u64, Box<Actor>)>,
}

impl Queues {
    /// `stacks_max`: stacks that there are, so that no more isolates can be in the middle of running code at once.
    pub(super) fn new(stacks_max: usize, pool_memory: PoolMemory) -> Self {
        Self {
            isolates: HashMap::new(),
            urgent: VecDeque::new(),
            ending: VecDeque::new(),
            before_ending: 0,
            tenants: HashMap::new(),
            shares: Shares::default(),
            ticket_last: 0,
            queued: 0,
            running: 0,
            running_of: HashMap::new(),
            stacks: 0,
            stacks_max,
            resting: BTreeMap::new(),
            rest_last: 0,
            alarms: Alarms::default(),
            calls: 0,
            pool_memory,
            parked: 0,
            parked_until: Duration::MAX,
        }
    }

    pub(super) fn isolates(&self) -> usize {
        self.isolates.len()
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    pub(super) fn alarms(&self) -> usize {
        self.alarms.len()
    }

    /// CPU time that the isolates of a tenant have used so far.
    pub(super) fn cpu_of(&self, tenant: u64) -> Duration {
        self.shares.cpu_of(tenant)
    }

    // --- mail ---

    /// Makes a slot. One that is there already stays: ids are never reused.
    pub(super) fn start(&mut self, isolate: u64, worker: WorkerSpec) {
        let (tenant, wall_ms_max) = (worker.tenant, worker.limits.wall_ms_max);
        let has_quota = worker.share.memory_bytes_max < u64::MAX;
        self.shares.set_weight(tenant, worker.share.weight);
        self.isolates.entry(isolate).or_insert_with(|| Slot {
            tenant,
            charged: Duration::ZERO,
            actor: Some(Box::new(Actor::new(isolate, worker))),
            inbox: Vec::new(),
            place: None,
            running: false,
            stack: false,
            rest: None,
            ending: false,
            has_quota,
            wall_ms_max,
            open: BTreeSet::new(),
        });
    }

    /// Notes a call down; false where there is no isolate to serve it, or the call is known.
    pub(super) fn open(&mut self, isolate: u64, call: &Call, now: Duration) -> bool {
        let invocation = call.invocation;
        let Some(slot) = self.isolates.get_mut(&isolate).filter(|slot| !slot.ending) else {
            return false;
        };
        if !slot.open.insert(invocation) {
            return false;
        }
        self.calls += 1;
        let ms = call.limits.wall_ms_max.min(slot.wall_ms_max);
        let alarm = Alarm {
            at: now + Duration::from_millis(ms),
            mail: Mail::WallTime { invocation },
        };
        self.alarms.set(isolate, alarm);
        true
    }

    /// An isolate was told to end: its calls have been answered.
    pub(super) fn end(&mut self, isolate: u64) {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return;
        };
        slot.ending = true;
        self.calls -= std::mem::take(&mut slot.open).len();
    }

    /// A call is answered; false where it was before.
    pub(super) fn close(&mut self, isolate: u64, invocation: u64) -> bool {
        self.alarms.clear(isolate, AlarmOf::WallTime(invocation));
        let was_open = self
            .isolates
            .get_mut(&isolate)
            .is_some_and(|slot| slot.open.remove(&invocation));
        self.calls -= usize::from(was_open);
        was_open
    }

    /// Puts mail into an isolate's inbox. Returns whether the isolate has become ready to run.
    pub(super) fn post(&mut self, isolate: u64, mail: Mail) -> bool {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return false;
        };
        let urgent = mail.is_urgent();
        slot.inbox.push(mail);
        if slot.actor.is_none() {
            return false;
        }
        match slot.place {
            Some((Lane::Urgent | Lane::Ending, _)) => false,
            Some(_) if !urgent => false,
            _ => {
                let lane = if urgent {
                    slot.urgent_lane()
                } else {
                    Lane::Fresh
                };
                self.queue(isolate, lane);
                true
            }
        }
    }

    // --- turns ---

    fn queue(&mut self, isolate: u64, lane: Lane) {
        self.ticket_last += 1;
        let ticket = Ticket {
            number: self.ticket_last,
            isolate,
        };
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return;
        };
        self.queued += usize::from(slot.place.is_none());
        slot.place = Some((lane, ticket));
        let tenant = slot.tenant;
        let lanes = self.tenants.entry(tenant).or_default();
        match lane {
            Lane::Urgent => return self.urgent.push_back(ticket),
            Lane::Ending => return self.ending.push_back(ticket),
            Lane::Fresh => lanes.fresh.push_back(ticket),
            Lane::Used => lanes.used.push_back(ticket),
        }
        self.shares.set_ready(tenant);
    }

    /// Takes the isolate whose turn it is.
    pub(super) fn take_next(&mut self) -> Option<Taken> {
        let urgent = self.first_urgent().or_else(|| self.first_ending_overdue());
        if let Some(isolate) = urgent {
            return self.take(isolate, true);
        }
        // Once every stack is in use, only those that hold one go on.
        let only_with_stack = self.stacks >= self.stacks_max && self.resting.is_empty();
        let isolate = self.first_by_share(|queues, tenant| {
            if only_with_stack {
                return queues.first_used(tenant, true);
            }
            let lanes = queues.tenants.get(&tenant)?;
            if lanes.fresh_in_a_row < FRESH_IN_A_ROW_MAX {
                let fresh = queues.first_fresh(tenant);
                fresh.or_else(|| queues.first_used(tenant, false))
            } else {
                let used = queues.first_used(tenant, false);
                used.or_else(|| queues.first_fresh(tenant))
            }
        });
        self.take_or_end(isolate)
    }

    /// Takes an isolate that is new or was waiting, or has urgent mail: nothing that may be in the middle of something
    /// long.
    pub(super) fn take_fresh(&mut self) -> Option<Taken> {
        let urgent = self.first_urgent().or_else(|| self.first_ending_overdue());
        if let Some(isolate) = urgent {
            return self.take(isolate, true);
        }
        let isolate = match self.stacks < self.stacks_max {
            true => self.first_by_share(Self::first_fresh),
            false => None,
        };
        self.take_or_end(isolate)
    }

    /// Takes an isolate to run, or where there is none the first that has to be ended.
    fn take_or_end(&mut self, isolate: Option<u64>) -> Option<Taken> {
        if let Some(isolate) = isolate {
            self.before_ending += u32::from(!self.ending.is_empty());
            return self.take(isolate, false);
        }
        let ending = self.first_ending()?;
        self.take(ending, true)
    }

    /// What `first_of` finds of the first tenant, in the order of their turns, of which it finds anything.
    fn first_by_share(
        &mut self,
        mut first_of: impl FnMut(&mut Self, u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut turn = self.shares.first();
        while let Some(of) = turn {
            // Before its lanes are looked at, which may show that it has nothing to run.
            let next = self.shares.after(of);
            if let Some(isolate) = first_of(self, of.tenant) {
                self.shares.served(of);
                return Some(isolate);
            }
            let lanes = self.tenants.get(&of.tenant);
            match lanes.is_none_or(|lanes| lanes.fresh.is_empty() && lanes.used.is_empty()) {
                true => self.shares.set_unready(of.tenant),
                false => self.shares.passed_over(of.tenant),
            }
            turn = next;
        }
        None
    }

    fn first_urgent(&mut self) -> Option<u64> {
        let isolates = &self.isolates;
        first_in(isolates, &mut self.urgent, Lane::Urgent, |_| true)
    }

    fn first_ending(&mut self) -> Option<u64> {
        self.before_ending = 0;
        first_in(&self.isolates, &mut self.ending, Lane::Ending, |_| true)
    }

    /// The same, if it has waited for enough others.
    fn first_ending_overdue(&mut self) -> Option<u64> {
        if self.ending.is_empty() {
            return None;
        }
        let overdue = self.before_ending >= BEFORE_ENDING_MAX
            || self.ending.len() > ENDING_MAX
            || self.pool_memory.is_half_used();
        overdue.then(|| self.first_ending())?
    }

    /// The first of a tenant's that has used a whole slice; where `only_with_stack`, of those that hold a stack.
    fn first_used(&mut self, tenant: u64, only_with_stack: bool) -> Option<u64> {
        let lanes = self.tenants.get_mut(&tenant)?;
        let may_go = |slot: &Slot| slot.stack || !only_with_stack;
        let first = first_in(&self.isolates, &mut lanes.used, Lane::Used, may_go)?;
        lanes.fresh_in_a_row = 0;
        Some(first)
    }

    /// The first of a tenant's that is new or was waiting, if the tenant may run one more: endless loops of one can't take
    /// every stack.
    fn first_fresh(&mut self, tenant: u64) -> Option<u64> {
        if !self.may_run(tenant) {
            return None;
        }
        let lanes = self.tenants.get_mut(&tenant)?;
        let first = first_in(&self.isolates, &mut lanes.fresh, Lane::Fresh, |_| true)?;
        lanes.fresh_in_a_row += 1;
        Some(first)
    }

    fn may_run(&self, tenant: u64) -> bool {
        let running = self.running_of.get(&tenant).copied().unwrap_or(0);
        let left = self.stacks_max.saturating_sub(self.running);
        running < (left * SHARE_OF_WHAT_IS_LEFT).max(RUNNING_PER_TENANT_MIN)
    }

    /// An isolate begins or ends to be in the middle of running code.
    fn set_running(&mut self, isolate: u64, running: bool) {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return;
        };
        let (before, tenant) = (std::mem::replace(&mut slot.running, running), slot.tenant);
        self.count_running(before, running, tenant);
    }

    fn count_running(&mut self, before: bool, running: bool, tenant: u64) {
        if before == running {
            return;
        }
        let of_tenant = self.running_of.entry(tenant).or_default();
        if running {
            self.running += 1;
            *of_tenant += 1;
            return;
        }
        self.running -= 1;
        *of_tenant -= 1;
        if *of_tenant == 0 {
            self.running_of.remove(&tenant);
        }
    }

    fn take(&mut self, isolate: u64, urgent: bool) -> Option<Taken> {
        let mut actor = self.take_actor(isolate)?;
        let slot = self.isolates.get_mut(&isolate)?;
        for mail in slot.inbox.drain(..) {
            actor.post(mail);
        }
        let mut stack_from = None;
        if !urgent {
            // Before it has run, so that no other thread takes the tenant's next one on the same account.
            slot.charged = TURN_EXPECTED;
            self.shares.charge(slot.tenant, TURN_EXPECTED);
            self.set_running(isolate, true);
            let slot = self.isolates.get_mut(&isolate)?;
            // The stack is taken before, because whoever runs may end up in the middle of something.
            if !std::mem::replace(&mut slot.stack, true) {
                if self.stacks < self.stacks_max && self.resting.len() < RESTING_STACKS_MAX {
                    self.stacks += 1;
                } else {
                    stack_from = self.take_longest_resting();
                }
            }
        }
        Some(Taken {
            isolate,
            actor,
            urgent,
            stack_from,
        })
    }

    /// Takes an actor out of its slot and out of the lanes.
    fn take_actor(&mut self, isolate: u64) -> Option<Box<Actor>> {
        let slot = self.isolates.get_mut(&isolate)?;
        self.queued -= usize::from(slot.place.take().is_some());
        if let Some(rest) = slot.rest.take() {
            self.resting.remove(&rest);
        }
        slot.actor.take()
    }

    /// Takes the isolate that has rested longest, and its stack.
    fn take_longest_resting(&mut self) -> Option<(u64, Box<Actor>)> {
        let isolate = *self.resting.first_key_value()?.1;
        let slot = self.isolates.get_mut(&isolate)?;
        slot.stack = false;
        let rest = slot.rest.take()?;
        self.resting.remove(&rest);
        Some((isolate, slot.actor.take()?))
    }

    /// A turn is over, and this is what it cost.
    pub(super) fn charge(&mut self, isolate: u64, cpu: Duration) {
        if let Some(slot) = self.isolates.get_mut(&isolate) {
            let charged = std::mem::take(&mut slot.charged);
            self.shares.settle(slot.tenant, charged, cpu);
        }
    }

    pub(super) fn put_back(&mut self, isolate: u64, actor: Box<Actor>, turn: Turn) {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return;
        };
        let (running, stack) = (actor.is_running(), actor.has_stack());
        self.stacks -= usize::from(std::mem::replace(&mut slot.stack, stack));
        self.stacks += usize::from(stack);
        if stack && !running {
            self.rest_last += 1;
            slot.rest = Some(self.rest_last);
            self.resting.insert(self.rest_last, isolate);
        }
        slot.actor = Some(actor);
        self.set_running(isolate, running);
        let Some(slot) = self.isolates.get(&isolate) else {
            return;
        };
        let lane = if slot.inbox.iter().any(Mail::is_urgent) {
            slot.urgent_lane()
        } else {
            match turn {
                Turn::More => Lane::Used,
                // Not held back with those that need a stack: it has one.
                Turn::Ready | Turn::Idle if running => Lane::Used,
                Turn::Ready => Lane::Fresh,
                Turn::Idle | Turn::Ended if slot.inbox.is_empty() => return,
                Turn::Idle | Turn::Ended => Lane::Fresh,
            }
        };
        self.queue(isolate, lane);
    }

    /// Puts an isolate back whose stack went to another one. If it has a place in line it keeps it; mail that came
    /// meanwhile gets it one.
    pub(super) fn put_back_without_stack(&mut self, isolate: u64, actor: Box<Actor>) {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return;
        };
        slot.actor = Some(actor);
        let lane = match slot.place {
            Some((Lane::Urgent | Lane::Ending, _)) => return,
            _ if slot.inbox.iter().any(Mail::is_urgent) => slot.urgent_lane(),
            Some(_) => return,
            None if slot.inbox.is_empty() => return,
            None => Lane::Fresh,
        };
        self.queue(isolate, lane);
    }

    /// Forgets an isolate; returns the calls that were not answered.
    pub(super) fn remove(&mut self, isolate: u64) -> BTreeSet<u64> {
        let Some(slot) = self.isolates.remove(&isolate) else {
            return BTreeSet::new();
        };
        self.count_running(slot.running, false, slot.tenant);
        self.stacks -= usize::from(slot.stack);
        self.queued -= usize::from(slot.place.is_some());
        if let Some(rest) = slot.rest {
            self.resting.remove(&rest);
        }
        self.calls -= slot.open.len();
        self.alarms.clear_all(isolate);
        slot.open
    }

    // --- threads ---

    /// A thread goes to sleep until there is work, or that time.
    pub(super) fn park(&mut self, until: Duration) {
        self.parked += 1;
        self.parked_until = self.parked_until.min(until);
    }

    /// A thread is awake again.
    pub(super) fn unpark(&mut self) {
        self.parked -= 1;
        self.parked_until = Duration::MAX;
    }

    /// Whether there is work for a thread that sleeps.
    pub(super) fn wants_thread(&self) -> bool {
        self.parked > 0 && self.queued > 0
    }

    /// Whether those who sleep would sleep through an alarm.
    pub(super) fn would_sleep_through(&self) -> bool {
        self.parked > 0 && self.alarm_next().is_some_and(|at| at < self.parked_until)
    }

    // --- alarms ---

    /// Changes an alarm of an isolate that is there.
    pub(super) fn change_alarm(&mut self, isolate: u64, change: AlarmChange) {
        match change {
            AlarmChange::Set(alarm) => self.alarms.set(isolate, alarm),
            AlarmChange::Clear(of) => self.alarms.clear(isolate, of),
        }
    }

    /// The time of the next alarm.
    pub(super) fn alarm_next(&self) -> Option<Duration> {
        self.alarms.next()
    }

    /// Posts the mail of the alarms that are due.
    pub(super) fn ring(&mut self, now: Duration) {
        for _ in 0..ALARMS_AT_ONCE_MAX {
            let Some((isolate, mail)) = self.alarms.take_due(now) else {
                return;
            };
            self.post(isolate, mail);
        }
    }
}

/// Takes the first place in a lane that still counts, of an isolate that may go.
fn first_in(
    isolates: &HashMap<u64, Slot>,
    lane: &mut VecDeque<Ticket>,
    of: Lane,
    may_go: impl Fn(&Slot) -> bool,
) -> Option<u64> {
    let mut position = 0;
    loop {
        let ticket = *lane.get(position)?;
        let slot = isolates.get(&ticket.isolate);
        match slot.filter(|slot| slot.place == Some((of, ticket))) {
            // Away, to give its stack back; it keeps its place.
            Some(slot) if slot.actor.is_none() || !may_go(slot) => position += 1,
            Some(_) => {
                lane.remove(position);
                return Some(ticket.isolate);
            }
            None => {
                lane.remove(position);
            }
        }
    }
}

#[cfg(test)]
mod tests;
