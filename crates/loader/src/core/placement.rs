//! Where a call runs: a live isolate, a fresh one, or the queue for a slot.

#[cfg(test)]
use super::tests::Mutation;
use super::{
    CallId, Core, Effect, EndCause, LossCause, Place, Refusal, Seat, SlotIndex, TenantId, WorkerId,
};

impl Core {
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
        let Some(slot) = self.slots.take(worker) else {
            return;
        };
        if let Some(known) = self.workers.get_mut(&worker) {
            known.place = Place::Live(slot);
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
        let full = self.queue.calls_count() as u64 >= self.config.calls_queued_max;
        if full && !self.make_room(call, tenant, effects) {
            return;
        }
        let Some(known) = self.workers.get_mut(&worker) else {
            return;
        };
        if known.place == Place::Nowhere {
            known.place = Place::Waiting(self.queue.push(tenant, worker));
        }
        known.waiting.insert(call);
        self.queue.call_came(tenant);
    }

    /// Refuses one call of a full queue: `call`, or one of a tenant whose line is longer. Returns
    /// whether `call` may stay.
    fn make_room(&mut self, call: CallId, tenant: TenantId, effects: &mut Vec<Effect>) -> bool {
        let longest = self.queue.must_make_room_for(tenant);
        #[cfg(test)]
        let longest = longest.filter(|_| !self.is_broken(Mutation::RoomNotMade));
        let victim = longest.and_then(|worker| self.last_waiting(worker));
        match victim {
            Some(victim) => self.leave_queue(victim),
            None => self.forget_call(call),
        }
        let refusal = Refusal::Isolates {
            limit: self.config.isolates_max,
        };
        effects.push(Effect::RefuseCall {
            call: victim.unwrap_or(call),
            refusal,
        });
        victim.is_some()
    }

    /// Gives free slots to those whose turn it is, and makes idle isolates go for the others.
    pub(super) fn serve_queue(&mut self, effects: &mut Vec<Effect>) {
        while self.slots.has_free()
            && let Some((tenant, _, worker)) = self.queue.next()
        {
            let calls = self.take_waiting(worker);
            self.start_isolate(worker, &calls, effects);
            #[cfg(test)]
            if self.is_broken(Mutation::TurnsNotTaken) {
                continue;
            }
            self.queue.rotate(tenant);
        }
        while self.queue.workers_count() > self.slots.ending_count()
            && let Some(slot) = self.slots.idle_oldest()
        {
            #[cfg(test)]
            let slot = match self.is_broken(Mutation::NewestEvicted) {
                true => self.slots.idle_newest().unwrap_or(slot),
                false => slot,
            };
            // No call is in it that could be lost.
            self.end_isolate(slot, EndCause::Evicted, LossCause::IsolateEvicted, effects);
        }
    }

    /// Ends the isolate that has been idle for longest, if one is idle.
    pub(super) fn evict_oldest(&mut self, effects: &mut Vec<Effect>) {
        if let Some(slot) = self.slots.idle_oldest() {
            self.end_isolate(slot, EndCause::Evicted, LossCause::IsolateEvicted, effects);
        }
    }

    /// Takes a waiting call out of the queue and out of the books.
    pub(super) fn leave_queue(&mut self, call: CallId) {
        let Some(worker) = self.calls.get(&call).map(|known| known.worker) else {
            return;
        };
        self.forget_call(call);
        let Some(known) = self.workers.get_mut(&worker) else {
            return;
        };
        let Place::Waiting(ticket) = known.place else {
            return;
        };
        if !known.waiting.remove(&call) {
            return;
        }
        self.queue.call_gone(known.tenant);
        if known.waiting.is_empty() {
            known.place = Place::Nowhere;
            self.queue.remove(known.tenant, ticket);
            self.forget_worker_if_done(worker);
        }
    }

    pub(super) fn first_waiting(&self, worker: WorkerId) -> Option<CallId> {
        self.workers.get(&worker)?.waiting.first().copied()
    }

    fn last_waiting(&self, worker: WorkerId) -> Option<CallId> {
        self.workers.get(&worker)?.waiting.last().copied()
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
        for _ in &calls {
            self.queue.call_gone(known.tenant);
        }
        self.queue.remove(known.tenant, ticket);
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
