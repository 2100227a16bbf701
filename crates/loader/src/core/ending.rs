//! How calls, isolates, workers and sessions end, each taking along what hangs on it.

use super::slots::SlotState;
#[cfg(test)]
use super::tests::Mutation;
use super::{
    CallId, Core, Effect, EndCause, IsolateId, LossCause, Place, Seat, SessionId, SlotIndex,
    WorkerId,
};

impl Core {
    pub(super) fn call_finished(
        &mut self,
        call: CallId,
        isolate_reusable: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(Seat::Running {
            slot,
            position,
            dropped,
        }) = self.calls.get(&call).map(|known| known.seat)
        else {
            return;
        };
        self.forget_call(call);
        if let Some(moved) = self.slots.leave(slot, position)
            && let Some(Seat::Running {
                position: moved_position,
                ..
            }) = self.calls.get_mut(&moved).map(|known| &mut known.seat)
        {
            *moved_position = position;
        }
        if dropped {
            self.slots.unmark_dropped(slot);
        }
        if !isolate_reusable {
            self.end_isolate(slot, EndCause::NotReusable, LossCause::IsolateLost, effects);
        } else {
            self.settle_slot(slot, effects);
        }
    }

    pub(super) fn call_dropped(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        match self.calls.get_mut(&call).map(|known| &mut known.seat) {
            None => {}
            Some(Seat::Waiting | Seat::Paused) => {
                self.leave_queue(call, effects);
                effects.push(Effect::LoseCall {
                    call,
                    cause: LossCause::Cancelled,
                });
            }
            Some(Seat::Running { slot, dropped, .. }) => {
                let (slot, dropped_before) = (*slot, std::mem::replace(dropped, true));
                if !dropped_before {
                    self.slots.mark_dropped(slot);
                    self.settle_slot(slot, effects);
                }
            }
        }
    }

    pub(super) fn worker_released(&mut self, worker: WorkerId, effects: &mut Vec<Effect>) {
        let Some(known) = self.workers.get_mut(&worker) else {
            return;
        };
        known.released = true;
        match known.place {
            Place::Live(slot)
                if known.paused.is_empty() && self.slots.get(slot).state == SlotState::Idle =>
            {
                self.end_isolate(
                    slot,
                    EndCause::WorkerReleased,
                    LossCause::Cancelled,
                    effects,
                );
            }
            _ => self.forget_worker_if_done(worker),
        }
    }

    pub(super) fn session_closed(&mut self, session: SessionId, effects: &mut Vec<Effect>) {
        let workers = match self.sessions.get_mut(&session) {
            Some(closing) => std::mem::take(&mut closing.workers),
            None => return,
        };
        for worker in workers {
            #[cfg(test)]
            if self.is_broken(Mutation::QueueOutlivesSession)
                && self.first_waiting(worker).is_some()
            {
                continue;
            }
            while let Some(call) = self.first_held_back(worker) {
                self.leave_queue(call, effects);
                effects.push(Effect::LoseCall {
                    call,
                    cause: LossCause::Cancelled,
                });
            }
            if let Some(Place::Live(slot)) = self.workers.get(&worker).map(|known| known.place) {
                self.end_isolate(slot, EndCause::SessionClosed, LossCause::Cancelled, effects);
            }
            self.workers.remove(&worker);
        }
        self.sessions.remove(&session);
    }

    /// The first of a worker's calls that have not begun.
    fn first_held_back(&self, worker: WorkerId) -> Option<CallId> {
        let paused = self.workers.get(&worker)?.paused.first().copied();
        paused.or_else(|| self.first_waiting(worker))
    }

    pub(super) fn isolate_ended(&mut self, isolate: IsolateId, effects: &mut Vec<Effect>) {
        let Some(slot) = self.slots.find(isolate) else {
            return;
        };
        if self.slots.get(slot).state != SlotState::Ending {
            // By itself: whoever was inside is lost, and there is nothing left to take down.
            self.clear_slot(slot, LossCause::IsolateLost, effects);
        }
        self.slots.release(slot);
    }

    /// Ends a live isolate; the calls that are in it are lost.
    pub(super) fn end_isolate(
        &mut self,
        slot: SlotIndex,
        cause: EndCause,
        loss: LossCause,
        effects: &mut Vec<Effect>,
    ) {
        let isolate = self.slots.get(slot).isolate;
        self.clear_slot(slot, loss, effects);
        effects.push(Effect::EndIsolate { isolate, cause });
        #[cfg(test)]
        if self.is_broken(Mutation::SlotFreedTooEarly) {
            self.slots.release(slot);
        }
    }

    /// Forgets a worker of which nothing is left to do.
    pub(super) fn forget_worker_if_done(&mut self, worker: WorkerId) {
        let Some(known) = self.workers.get(&worker) else {
            return;
        };
        if known.released && known.place == Place::Nowhere && known.paused.is_empty() {
            if let Some(owner) = self.sessions.get_mut(&known.session) {
                owner.workers.remove(&worker);
            }
            self.workers.remove(&worker);
        }
    }

    /// Loses the calls of a live isolate, parts it from its worker and leaves the slot in the state
    /// of ending.
    fn clear_slot(&mut self, slot: SlotIndex, loss: LossCause, effects: &mut Vec<Effect>) {
        let calls = self.slots.take_calls(slot);
        for call in &calls {
            self.forget_call(*call);
            #[cfg(test)]
            if self.is_broken(Mutation::LossUnsaid) {
                continue;
            }
            effects.push(Effect::LoseCall {
                call: *call,
                cause: loss,
            });
        }
        self.slots.return_list(slot, calls);
        let worker = self.slots.get(slot).worker;
        self.slots.begin_ending(slot);
        #[cfg(test)]
        if self.is_broken(Mutation::PlaceKept) {
            return;
        }
        if let Some(known) = self.workers.get_mut(&worker) {
            known.place = Place::Nowhere;
            self.forget_worker_if_done(worker);
        }
    }

    /// Decides what becomes of an isolate that has one call less to care for.
    fn settle_slot(&mut self, slot: SlotIndex, effects: &mut Vec<Effect>) {
        let known = self.slots.get(slot);
        let (calls_count, calls_dropped, worker) =
            (known.calls.len(), known.calls_dropped, known.worker);
        if calls_count > calls_dropped {
            return;
        }
        #[cfg(test)]
        if calls_count == 0 && self.is_broken(Mutation::ReleaseForgotten) {
            self.slots.rest(slot);
            return;
        }
        if calls_count > 0 {
            self.end_isolate(slot, EndCause::CallsDropped, LossCause::Cancelled, effects);
        } else if self
            .workers
            .get(&worker)
            .is_some_and(|known| known.released && known.paused.is_empty())
        {
            self.end_isolate(
                slot,
                EndCause::WorkerReleased,
                LossCause::Cancelled,
                effects,
            );
        } else {
            self.slots.rest(slot);
        }
    }
}
