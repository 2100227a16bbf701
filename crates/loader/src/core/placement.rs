//! Where a call runs: a live isolate, a fresh one, or the queue for a slot; and who has to go for it.

use super::tenant::{Exceeded, Tenant};
#[cfg(test)]
use super::tests::Mutation;
use super::{
    CallId, Core, Effect, EndCause, LossCause, Place, Seat, SlotIndex, TenantId, WorkerId,
};

/// Isolates that a tenant may have for each that others could still have: the greediest leaves them an eighth, the next an
/// eighth of that.
const SHARE_OF_WHAT_IS_LEFT: u64 = 7;

impl Core {
    /// Finds a place for a call that is known and may begin.
    pub(super) fn place(&mut self, call: CallId, worker: WorkerId, effects: &mut Vec<Effect>) {
        let Some(known) = self.workers.get(&worker) else {
            return;
        };
        let (place, tenant) = (known.place, known.tenant);
        match place {
            Place::Live(slot) => self.dispatch(call, slot, effects),
            Place::Nowhere if self.may_start_at_once(tenant) => {
                self.start_isolate(worker, &[call], effects);
            }
            Place::Nowhere | Place::Waiting(_) => self.enter_queue(call, worker, effects),
        }
    }

    /// Whether an isolate is there for a worker of a tenant's, and nobody waits who should have it before.
    fn may_start_at_once(&self, tenant: TenantId) -> bool {
        self.slots.has_free()
            && self.queue.workers_of(tenant) == 0
            && self.room(tenant) > 0
            && self.next_in_turn().is_none()
    }

    /// How many more isolates a tenant may have now, if slots are free.
    fn room(&self, tenant: TenantId) -> u64 {
        let Some(known) = self.tenants.get(&tenant) else {
            return 0;
        };
        if known.in_debt(self.now_ms).is_some() {
            return 0;
        }
        let taken = self.slots.held(tenant).taken;
        known.room(taken, self.now_ms).min(self.share_left(tenant))
    }

    /// How many more isolates a tenant may have without taking what others could need. Where there is nobody else, it
    /// leaves nothing.
    fn share_left(&self, tenant: TenantId) -> u64 {
        if self.tenants.len() < 2 {
            return u64::MAX;
        }
        #[cfg(test)]
        if self.is_broken(Mutation::NothingLeftForOthers) {
            return u64::MAX;
        }
        let held = self.slots.held(tenant);
        // Idle ones of others would go for it, and those that are ending do.
        let busy = self.slots.busy_count() as u64;
        let busy_of_others = busy - held.busy();
        let left = (self.slots.slots_max() as u64).saturating_sub(held.taken + busy_of_others);
        let more = (left * SHARE_OF_WHAT_IS_LEFT).saturating_sub(held.taken);
        let more = more.div_ceil(SHARE_OF_WHAT_IS_LEFT + 1);
        more.max(u64::from(held.taken == 0))
    }

    /// Which quota keeps the first worker in a tenant's line from having an isolate.
    pub(super) fn no_room(&self, tenant: TenantId) -> Option<Exceeded> {
        let taken = self.slots.held(tenant).taken;
        let known = self.tenants.get(&tenant)?;
        let debt = known.in_debt(self.now_ms);
        debt.or_else(|| known.no_room(taken, self.now_ms))
    }

    /// Puts a call that is known into a live isolate.
    pub(super) fn dispatch(&mut self, call: CallId, slot: SlotIndex, effects: &mut Vec<Effect>) {
        let position = self.slots.enter(slot, call);
        if let Some(known) = self.calls.get_mut(&call) {
            known.seat = Seat::Running {
                slot,
                position,
                dropped: false,
            };
        }
        effects.push(Effect::Dispatch {
            call,
            isolate: self.slots.get(slot).isolate,
        });
    }

    /// Starts an isolate in a slot that must be free, and puts calls that are known into it.
    pub(super) fn start_isolate(
        &mut self,
        worker: WorkerId,
        calls: &[CallId],
        effects: &mut Vec<Effect>,
    ) {
        let Some(known) = self.workers.get_mut(&worker) else {
            return;
        };
        let Some(slot) = self.slots.take(worker, known.tenant) else {
            return;
        };
        known.place = Place::Live(slot);
        if let Some(tenant) = self.tenants.get_mut(&known.tenant) {
            tenant.started(self.now_ms);
        }
        effects.push(Effect::StartIsolate {
            isolate: self.slots.get(slot).isolate,
            worker,
        });
        for call in calls {
            self.dispatch(*call, slot, effects);
        }
    }

    /// Puts a call that is known into the queue, or refuses one if the queue is full.
    pub(super) fn enter_queue(
        &mut self,
        call: CallId,
        worker: WorkerId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(tenant) = self.workers.get(&worker).map(|known| known.tenant) else {
            return;
        };
        if !self.has_room_for(call, tenant, effects) {
            return;
        }
        let weight = self.weight_of(tenant);
        let Some(known) = self.workers.get_mut(&worker) else {
            return;
        };
        if known.place == Place::Nowhere {
            known.place = Place::Waiting(self.queue.push(tenant, weight, worker));
        }
        known.waiting.insert(call);
        if let Some(known) = self.calls.get(&call) {
            self.deadlines.insert((known.deadline_ms, call));
        }
        self.queue.call_came(tenant);
    }

    /// Whether one more call may wait. In a full queue one is refused: `call`, or one of a tenant with more calls there.
    pub(super) fn has_room_for(
        &mut self,
        call: CallId,
        tenant: TenantId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if (self.queue.calls_count() as u64) < self.config.calls_queued_max {
            return true;
        }
        let longest = self.queue.must_make_room_for(tenant);
        #[cfg(test)]
        let longest = longest.filter(|_| !self.is_broken(Mutation::RoomNotMade));
        let victim = longest.and_then(|tenant| match self.queue.paused_ends(tenant) {
            Some((_, last)) => Some(last),
            None => self.last_waiting(self.queue.last_of(tenant)?),
        });
        let refused = victim.unwrap_or(call);
        let refusal = self.refusal_of(refused, false);
        match victim {
            Some(victim) => self.leave_queue(victim, effects),
            None => self.forget_call(call),
        }
        effects.push(Effect::RefuseCall {
            call: refused,
            refusal,
        });
        victim.is_some()
    }

    /// Gives free slots to those whose turn it is, and makes idle isolates go for the others.
    pub(super) fn serve_queue(&mut self, effects: &mut Vec<Effect>) {
        while self.slots.has_free()
            && let Some((tenant, worker)) = self.next_in_turn()
        {
            let turn = self.queue.turn_of(tenant);
            let calls = self.take_waiting(worker);
            self.start_isolate(worker, &calls, effects);
            #[cfg(test)]
            if self.is_broken(Mutation::TurnsNotTaken) {
                continue;
            }
            self.queue.rotate(tenant, turn, self.weight_of(tenant));
        }
        self.evict_for_own(effects);
        self.evict_for_others(effects);
    }

    /// The worker that gets the next free slot.
    fn next_in_turn(&self) -> Option<(TenantId, WorkerId)> {
        let tenant = self.queue.tenants().find(|tenant| self.room(*tenant) > 0)?;
        Some((tenant, self.queue.first_of(tenant)?))
    }

    /// Where a tenant may have no more isolates and some of its workers wait, those of its own that are idle go for them.
    fn evict_for_own(&mut self, effects: &mut Vec<Effect>) {
        #[cfg(test)]
        if self.is_broken(Mutation::OwnIdleKept) {
            return;
        }
        let tenants: Vec<TenantId> = self.queue.tenants().collect();
        for tenant in tenants {
            // Time alone ends such a wait, and no eviction does.
            let is_for_time = |exceeded: Exceeded| exceeded.wait_ms.is_some();
            while self.room(tenant) == 0
                && !self.no_room(tenant).is_some_and(is_for_time)
                && self.slots.held(tenant).ending < self.queue.workers_of(tenant) as u64
                && let Some(slot) = self.slots.idle_oldest_of(tenant)
            {
                self.evict(slot, effects);
            }
        }
    }

    /// Where a tenant's isolates have almost as much memory as they may, one of its own that is idle goes. It is measured
    /// again with its next call.
    pub(super) fn evict_if_short(&mut self, tenant: TenantId, effects: &mut Vec<Effect>) {
        let known = self.tenants.get(&tenant);
        if known.is_some_and(Tenant::is_memory_short)
            && let Some(slot) = self.slots.idle_oldest_of(tenant)
        {
            self.evict(slot, effects);
        }
    }

    /// Where slots are all that is wanting, idle isolates go, one for each worker that waits.
    fn evict_for_others(&mut self, effects: &mut Vec<Effect>) {
        if self.slots.has_free() {
            return;
        }
        let wanted_by = |tenant| self.room(tenant).min(self.queue.workers_of(tenant) as u64);
        let wanted: u64 = self.queue.tenants().map(wanted_by).sum();
        for _ in self.slots.ending_count() as u64..wanted {
            self.evict_one(effects);
        }
    }

    /// Ends an idle isolate, if there is one: of the tenant that has most for its weight.
    pub(super) fn evict_one(&mut self, effects: &mut Vec<Effect>) {
        if let Some(slot) = self.slots.idle_to_go(|tenant| self.weight_of(tenant)) {
            self.evict(slot, effects);
        }
    }

    fn evict(&mut self, slot: SlotIndex, effects: &mut Vec<Effect>) {
        #[cfg(test)]
        let slot = match self.is_broken(Mutation::NewestEvicted) {
            true => self
                .slots
                .idle_newest_of(self.slots.get(slot).tenant)
                .unwrap_or(slot),
            false => slot,
        };
        // No call is in it that could be lost.
        self.end_isolate(slot, EndCause::Evicted, LossCause::IsolateEvicted, effects);
    }

    pub(super) fn weight_of(&self, tenant: TenantId) -> u32 {
        self.tenants
            .get(&tenant)
            .map_or(1, |known| known.policy.weight)
    }

    /// Takes all waiting calls of a worker out of the queue. They stay in the books: they are about
    /// to be dispatched.
    fn take_waiting(&mut self, worker: WorkerId) -> Vec<CallId> {
        let Some(known) = self.workers.get_mut(&worker) else {
            return Vec::new();
        };
        let Place::Waiting(ticket) = known.place else {
            return Vec::new();
        };
        let calls: Vec<CallId> = std::mem::take(&mut known.waiting).into_iter().collect();
        known.place = Place::Nowhere;
        let tenant = known.tenant;
        for call in &calls {
            self.queue.call_gone(tenant);
            if let Some(known) = self.calls.get(call) {
                self.deadlines.remove(&(known.deadline_ms, *call));
            }
        }
        self.queue.remove(tenant, ticket);
        calls
    }

    /// Takes a call out of the books: it has its answer.
    pub(super) fn forget_call(&mut self, call: CallId) {
        #[cfg(test)]
        if self.is_broken(Mutation::QuotaLeaks) {
            self.calls.remove(&call);
            return;
        }
        if let Some(known) = self.calls.remove(&call)
            && let Some(owner) = self.sessions.get_mut(&known.session)
        {
            owner.calls_count -= 1;
        }
    }
}
