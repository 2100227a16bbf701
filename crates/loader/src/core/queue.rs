//! Who gets the next free isolate: the tenants in turn, and within a tenant the worker that has
//! waited longest.
//!
//! What waits are workers, since one isolate serves every call of its worker; what is counted are
//! calls. Only calls that find no slot come here, so trees that allocate are good enough.

use super::{TenantId, WorkerId};
use std::collections::BTreeMap;

/// A place in a line. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

#[derive(Default)]
pub(super) struct FairQueue {
    lines: BTreeMap<TenantId, Line>,
    /// The tenants with a line, in the order in which they will be served.
    turns: BTreeMap<Ticket, TenantId>,
    ticket_last: u64,
    workers_count: usize,
    calls_count: usize,
}

/// The workers of one tenant that wait.
struct Line {
    turn: Ticket,
    workers: BTreeMap<Ticket, WorkerId>,
    calls_count: usize,
}

impl FairQueue {
    /// Puts a worker at the end of its tenant's line, and the tenant at the end of the turns if it
    /// had none.
    pub(super) fn push(&mut self, tenant: TenantId, worker: WorkerId) -> Ticket {
        let ticket = self.ticket();
        let turns = &mut self.turns;
        let line = self.lines.entry(tenant).or_insert_with(|| {
            turns.insert(ticket, tenant);
            Line {
                turn: ticket,
                workers: BTreeMap::new(),
                calls_count: 0,
            }
        });
        line.workers.insert(ticket, worker);
        self.workers_count += 1;
        ticket
    }

    /// The worker whose turn it is. The caller takes its calls off the count with
    /// [`Self::call_gone`], then the worker out with [`Self::remove`], then says that the turn is
    /// over with [`Self::rotate`].
    pub(super) fn next(&self) -> Option<(TenantId, Ticket, WorkerId)> {
        let tenant = *self.turns.first_key_value()?.1;
        let (ticket, worker) = self.lines.get(&tenant)?.workers.first_key_value()?;
        Some((tenant, *ticket, *worker))
    }

    /// The tenant has had its turn and goes to the end, if it still has a line.
    pub(super) fn rotate(&mut self, tenant: TenantId) {
        let turn = self.ticket();
        if let Some(line) = self.lines.get_mut(&tenant) {
            self.turns.remove(&line.turn);
            self.turns.insert(turn, tenant);
            line.turn = turn;
        }
    }

    /// Takes a worker out of its tenant's line, wherever it stands. Its calls must be off the
    /// count.
    pub(super) fn remove(&mut self, tenant: TenantId, ticket: Ticket) {
        let Some(line) = self.lines.get_mut(&tenant) else {
            return;
        };
        if line.workers.remove(&ticket).is_some() {
            self.workers_count -= 1;
        }
        if line.workers.is_empty() {
            self.turns.remove(&line.turn);
            self.lines.remove(&tenant);
        }
    }

    /// Counts one more waiting call of a tenant that has a worker in line.
    pub(super) fn call_came(&mut self, tenant: TenantId) {
        if let Some(line) = self.lines.get_mut(&tenant) {
            line.calls_count += 1;
            self.calls_count += 1;
        }
    }

    /// Counts one waiting call less.
    pub(super) fn call_gone(&mut self, tenant: TenantId) {
        if let Some(line) = self.lines.get_mut(&tenant) {
            line.calls_count -= 1;
            self.calls_count -= 1;
        }
    }

    /// The last worker in the longest line, if that line is longer by two calls or more than
    /// `tenant`'s: then a call of its has to make room, so that one tenant can't fill the queue for
    /// all.
    pub(super) fn must_make_room_for(&self, tenant: TenantId) -> Option<WorkerId> {
        let own_count = self.lines.get(&tenant).map_or(0, |line| line.calls_count);
        let longest = self.lines.values().max_by_key(|line| line.calls_count)?;
        let (_, worker) = longest.workers.last_key_value()?;
        (longest.calls_count > own_count + 1).then_some(*worker)
    }

    pub(super) fn workers_count(&self) -> usize {
        self.workers_count
    }

    pub(super) fn calls_count(&self) -> usize {
        self.calls_count
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.turns.is_empty()
            && self.workers_count == 0
            && self.calls_count == 0
    }

    fn ticket(&mut self) -> Ticket {
        self.ticket_last += 1;
        Ticket(self.ticket_last)
    }
}
