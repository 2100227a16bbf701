//! Waiting: for what a tenant may use in a time, and no longer than a call may.

use super::tenant::Exceeded;
#[cfg(test)]
use super::tests::Mutation;
use super::{CallId, Core, Effect, EndCause, LossCause, Place, Refusal, Seat, TenantId, WorkerId};
use crate::core::slots::SlotState;

/// Who is told to come again is told to do so after this long at least and at most, where nobody knows when there will be
/// something.
const RETRY_MS_MIN: u64 = 100;
const RETRY_MS_MAX: u64 = 60_000;

impl Core {
    /// Whether calls of a tenant may begin: it has waited off what was used before, and none of its calls is waiting for that.
    pub(super) fn may_begin(&self, tenant: TenantId) -> bool {
        self.in_debt(tenant).is_none() && self.queue.paused_ends(tenant).is_none()
    }

    fn in_debt(&self, tenant: TenantId) -> Option<Exceeded> {
        self.tenants.get(&tenant)?.in_debt(self.now_ms)
    }

    /// The wait of a call that arrives now for what its tenant may use in a time, and for which quota.
    pub(super) fn wait_known(&self, tenant: TenantId, worker: WorkerId) -> Option<(Exceeded, u64)> {
        let debt = self.in_debt(tenant);
        let needs_isolate = self
            .workers
            .get(&worker)
            .is_some_and(|known| known.place == Place::Nowhere);
        // Those of its tenant's workers that stand before it are loaded before it.
        let position = self.queue.workers_of(tenant) as u64 + 1;
        let known = self.tenants.get(&tenant).filter(|_| needs_isolate);
        let no_load = known.and_then(|known| known.no_loads(position, self.now_ms));
        let exceeded = debt.into_iter().chain(no_load);
        exceeded
            .filter_map(|one| Some((one, one.wait_ms?)))
            .max_by_key(|(_, wait_ms)| *wait_ms)
    }

    /// Puts a call that is known among those that may not begin, or refuses one if too many wait.
    pub(super) fn pause(&mut self, call: CallId, worker: WorkerId, effects: &mut Vec<Effect>) {
        let Some(tenant) = self.workers.get(&worker).map(|known| known.tenant) else {
            return;
        };
        if !self.has_room_for(call, tenant, effects) {
            return;
        }
        if let Some(known) = self.workers.get_mut(&worker) {
            known.paused.insert(call);
        }
        if let Some(known) = self.calls.get_mut(&call) {
            known.seat = Seat::Paused;
            self.deadlines.insert((known.deadline_ms, call));
        }
        self.queue.pause(tenant, call);
    }

    /// Lets those begin whose tenant may use something again, in the order in which they came.
    pub(super) fn resume_paused(&mut self, effects: &mut Vec<Effect>) {
        let tenants: Vec<TenantId> = self.queue.tenants_paused().collect();
        for tenant in tenants {
            while self.in_debt(tenant).is_none()
                && let Some((first, _)) = self.queue.paused_ends(tenant)
            {
                #[cfg(test)]
                let first = match self.queue.paused_ends(tenant) {
                    Some((_, last)) if self.is_broken(Mutation::LastResumedFirst) => last,
                    _ => first,
                };
                let Some(worker) = self.take_paused(first) else {
                    return;
                };
                self.place(first, worker, effects);
            }
        }
    }

    /// Refuses those that have waited for as long as they may.
    pub(super) fn refuse_overdue(&mut self, effects: &mut Vec<Effect>) {
        while let Some((deadline_ms, call)) = self.deadlines.first().copied()
            && deadline_ms <= self.now_ms
        {
            let refusal = self.refusal_of(call, true);
            self.leave_queue(call, effects);
            effects.push(Effect::RefuseCall { call, refusal });
        }
    }

    /// When the core wants to be told that time has passed, in milliseconds, if nothing happens before: a call may begin or
    /// has waited long enough. `None` while nothing waits for time.
    pub fn wake_at_ms(&self) -> Option<u64> {
        let deadline = self.deadlines.first().map(|(deadline_ms, _)| *deadline_ms);
        let of_paused = self.queue.tenants_paused().filter_map(|tenant| {
            let wait_ms = self.in_debt(tenant)?.wait_ms?;
            Some(self.now_ms.saturating_add(wait_ms))
        });
        let of_lines = self.queue.tenants().filter_map(|tenant| {
            let wait_ms = self.no_room(tenant)?.wait_ms?;
            Some(self.now_ms.saturating_add(wait_ms))
        });
        deadline.into_iter().chain(of_paused).chain(of_lines).min()
    }

    /// Why a call that waits, or comes to where too many wait, is refused. `overdue`: it has waited for as long as it may.
    pub(super) fn refusal_of(&self, call: CallId, overdue: bool) -> Refusal {
        let limit = self.config.isolates_max;
        let known = self.calls.get(&call);
        let waited_ms = known.map_or(0, |known| self.now_ms - known.arrived_ms);
        let worker = known.and_then(|known| self.workers.get(&known.worker));
        let Some(tenant) = worker.map(|worker| worker.tenant) else {
            return Refusal::SessionClosed;
        };
        let exceeded = self.no_room(tenant);
        let longest_ms = self.waited_longest_ms(tenant).max(waited_ms);
        let retry_after_ms = longest_ms.clamp(RETRY_MS_MIN, RETRY_MS_MAX);
        match exceeded {
            Some(exceeded) => Refusal::Quota {
                quota: exceeded.quota,
                limit: exceeded.limit,
                used: exceeded.used,
                retry_after_ms: exceeded.wait_ms.unwrap_or(retry_after_ms),
            },
            None if overdue => Refusal::QueueWait {
                limit,
                waited_ms,
                retry_after_ms,
            },
            None => Refusal::Isolates {
                limit,
                retry_after_ms,
            },
        }
    }

    /// How long the first in a tenant's line has waited.
    fn waited_longest_ms(&self, tenant: TenantId) -> u64 {
        let first = self.queue.first_of(tenant);
        let call = first.and_then(|worker| self.first_waiting(worker));
        let known = call.and_then(|call| self.calls.get(&call));
        known.map_or(0, |known| self.now_ms - known.arrived_ms)
    }

    /// Takes a call out of those that may not begin. It stays in the books: it is about to be placed.
    fn take_paused(&mut self, call: CallId) -> Option<WorkerId> {
        let known = self.calls.get_mut(&call)?;
        known.seat = Seat::Waiting;
        self.deadlines.remove(&(known.deadline_ms, call));
        let id = known.worker;
        let worker = self.workers.get_mut(&id)?;
        worker.paused.remove(&call);
        self.queue.unpause(worker.tenant, call);
        Some(id)
    }

    /// Takes a call that waits out of where it waits and out of the books.
    pub(super) fn leave_queue(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(known) = self.calls.get(&call) else {
            return;
        };
        let (id, is_paused) = (known.worker, matches!(known.seat, Seat::Paused));
        self.deadlines.remove(&(known.deadline_ms, call));
        if is_paused {
            self.take_paused(call);
            self.forget_call(call);
            self.end_if_released(id, effects);
            return;
        }
        self.forget_call(call);
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let Place::Waiting(ticket) = worker.place else {
            return;
        };
        if !worker.waiting.remove(&call) {
            return;
        }
        self.queue.call_gone(worker.tenant);
        if worker.waiting.is_empty() {
            worker.place = Place::Nowhere;
            self.queue.remove(worker.tenant, ticket);
            self.forget_worker_if_done(id);
        }
    }

    /// A released worker has one call less that wants it.
    fn end_if_released(&mut self, worker: WorkerId, effects: &mut Vec<Effect>) {
        let Some(known) = self.workers.get(&worker) else {
            return;
        };
        match known.place {
            Place::Live(slot)
                if known.released
                    && known.paused.is_empty()
                    && self.slots.get(slot).state == SlotState::Idle =>
            {
                let (cause, loss) = (EndCause::WorkerReleased, LossCause::Cancelled);
                self.end_isolate(slot, cause, loss, effects);
            }
            _ => self.forget_worker_if_done(worker),
        }
    }

    pub(super) fn first_waiting(&self, worker: WorkerId) -> Option<CallId> {
        self.workers.get(&worker)?.waiting.first().copied()
    }

    pub(super) fn last_waiting(&self, worker: WorkerId) -> Option<CallId> {
        self.workers.get(&worker)?.waiting.last().copied()
    }
}
