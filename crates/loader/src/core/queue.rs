//! What waits: each tenant has lines of its own, and the tenants take turns by their weights. Within a
//! tenant, who waits longest is first.
//!
//! Two lines each. In one stand workers that need an isolate, since one isolate serves every call of its
//! worker; in the other calls that may not begin, wherever they run, because their tenant has used up
//! what it may in a time. What is counted are calls. Only calls that can't begin at once come here, so
//! trees that allocate are good enough.

use super::{CallId, TenantId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// A place in a line. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// When a tenant's turn is: it goes on with each turn, and the slower the more weight the tenant has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Pass(u64);

impl Pass {
    /// What a turn of a tenant with the weight 1 takes. Weights that divide it lose nothing to rounding.
    const TURN: u64 = 1 << 24;

    fn after_a_turn(self, weight: u32) -> Self {
        Self(self.0 + Self::TURN / u64::from(weight.max(1)))
    }
}

#[derive(Default)]
pub(super) struct FairQueue {
    lines: BTreeMap<TenantId, Line>,
    /// The tenants whose workers wait, in the order in which they will be served.
    turns: BTreeMap<(Pass, Ticket), TenantId>,
    /// Tenants with calls that are paused.
    paused: BTreeSet<TenantId>,
    ticket_last: u64,
    /// The pass of whoever was served last: nobody's next turn is before it, so that who could not be
    /// served for a while has not saved up turns.
    served: Pass,
    calls_count: usize,
}

/// What waits of one tenant.
#[derive(Default)]
struct Line {
    /// Its place in `turns`; none while no worker waits.
    turn: Option<(Pass, Ticket)>,
    workers: BTreeMap<Ticket, WorkerId>,
    paused: BTreeSet<CallId>,
    calls_count: usize,
}

impl FairQueue {
    /// Puts a worker at the end of its tenant's line, and the tenant at the end of the turns if no
    /// worker of its waited.
    pub(super) fn push(&mut self, tenant: TenantId, weight: u32, worker: WorkerId) -> Ticket {
        let ticket = self.ticket();
        let line = self.lines.entry(tenant).or_default();
        if line.turn.is_none() {
            let turn = (self.served.after_a_turn(weight), ticket);
            line.turn = Some(turn);
            self.turns.insert(turn, tenant);
        }
        line.workers.insert(ticket, worker);
        ticket
    }

    /// The tenants whose workers wait, in the order of their turns.
    pub(super) fn tenants(&self) -> impl Iterator<Item = TenantId> + '_ {
        self.turns.values().copied()
    }

    /// The worker of a tenant's that waits longest. The caller takes its calls off the count with
    /// [`Self::call_gone`], then the worker out with [`Self::remove`], then says that the turn is over
    /// with [`Self::rotate`].
    pub(super) fn first_of(&self, tenant: TenantId) -> Option<WorkerId> {
        let line = self.lines.get(&tenant)?;
        line.workers.values().next().copied()
    }

    /// The tenant has its turn, and the next one later, if it still has a line.
    pub(super) fn rotate(&mut self, tenant: TenantId, turn: Turn, weight: u32) {
        self.served = self.served.max(turn.0);
        let ticket = self.ticket();
        if let Some(line) = self.lines.get_mut(&tenant)
            && let Some(before) = line.turn
        {
            let next = (self.served.after_a_turn(weight), ticket);
            self.turns.remove(&before);
            self.turns.insert(next, tenant);
            line.turn = Some(next);
        }
    }

    /// The turn that a tenant has next.
    pub(super) fn turn_of(&self, tenant: TenantId) -> Turn {
        let turn = self.lines.get(&tenant).and_then(|line| line.turn);
        Turn(turn.map_or(self.served, |(pass, _)| pass))
    }

    /// Takes a worker out of its tenant's line, wherever it stands. Its calls must be off the count.
    pub(super) fn remove(&mut self, tenant: TenantId, ticket: Ticket) {
        let Some(line) = self.lines.get_mut(&tenant) else {
            return;
        };
        line.workers.remove(&ticket);
        if line.workers.is_empty()
            && let Some(turn) = line.turn.take()
        {
            self.turns.remove(&turn);
        }
        self.forget_if_empty(tenant);
    }

    /// Counts one more waiting call of a tenant that has a worker in line.
    pub(super) fn call_came(&mut self, tenant: TenantId) {
        self.lines.entry(tenant).or_default().calls_count += 1;
        self.calls_count += 1;
    }

    /// Counts one waiting call less.
    pub(super) fn call_gone(&mut self, tenant: TenantId) {
        if let Some(line) = self.lines.get_mut(&tenant) {
            line.calls_count -= 1;
            self.calls_count -= 1;
        }
    }

    /// Puts a call among those of its tenant that may not begin, and counts it.
    pub(super) fn pause(&mut self, tenant: TenantId, call: CallId) {
        self.call_came(tenant);
        self.paused.insert(tenant);
        self.lines.entry(tenant).or_default().paused.insert(call);
    }

    /// Takes a call from there.
    pub(super) fn unpause(&mut self, tenant: TenantId, call: CallId) {
        let Some(line) = self.lines.get_mut(&tenant) else {
            return;
        };
        if line.paused.remove(&call) {
            if line.paused.is_empty() {
                self.paused.remove(&tenant);
            }
            self.call_gone(tenant);
            self.forget_if_empty(tenant);
        }
    }

    /// Tenants with calls that are paused.
    pub(super) fn tenants_paused(&self) -> impl Iterator<Item = TenantId> + '_ {
        self.paused.iter().copied()
    }

    /// The first and the last of a tenant's calls that are paused.
    pub(super) fn paused_ends(&self, tenant: TenantId) -> Option<(CallId, CallId)> {
        let paused = &self.lines.get(&tenant)?.paused;
        Some((*paused.first()?, *paused.last()?))
    }

    /// The tenant with most calls here, if it has two or more than `tenant`: then a call of its has to
    /// make room, so that one tenant can't fill the queue for all.
    pub(super) fn must_make_room_for(&self, tenant: TenantId) -> Option<TenantId> {
        let own_count = self.lines.get(&tenant).map_or(0, |line| line.calls_count);
        let by_count = |(_, line): &(&TenantId, &Line)| line.calls_count;
        let (longest, line) = self.lines.iter().max_by_key(by_count)?;
        (line.calls_count > own_count + 1).then_some(*longest)
    }

    /// The last worker in a tenant's line.
    pub(super) fn last_of(&self, tenant: TenantId) -> Option<WorkerId> {
        let line = self.lines.get(&tenant)?;
        line.workers.values().next_back().copied()
    }

    pub(super) fn workers_of(&self, tenant: TenantId) -> usize {
        self.lines.get(&tenant).map_or(0, |line| line.workers.len())
    }

    pub(super) fn calls_count(&self) -> usize {
        self.calls_count
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.turns.is_empty()
            && self.paused.is_empty()
            && self.calls_count == 0
    }

    fn forget_if_empty(&mut self, tenant: TenantId) {
        let line = self.lines.get(&tenant);
        if line.is_some_and(|line| line.workers.is_empty() && line.paused.is_empty()) {
            self.lines.remove(&tenant);
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.ticket_last += 1;
        Ticket(self.ticket_last)
    }
}

/// A turn, as the queue hands it out and takes it back.
#[derive(Clone, Copy)]
pub(super) struct Turn(Pass);
