//! Who is let in: sessions, workers and calls against the quotas.

use super::{
    Call, CallId, Core, Effect, Place, Refusal, Seat, Session, SessionId, TenantId, Worker,
    WorkerId,
};
use std::collections::BTreeSet;

impl Core {
    pub(super) fn session_opened(&mut self, session: SessionId, tenant: TenantId) {
        self.sessions.entry(session).or_insert(Session {
            tenant,
            workers: BTreeSet::new(),
            calls_count: 0,
        });
    }

    pub(super) fn worker_loaded(
        &mut self,
        worker: WorkerId,
        session: SessionId,
        effects: &mut Vec<Effect>,
    ) {
        if self.workers.contains_key(&worker) {
            return;
        }
        match self.admit_worker(session) {
            Ok(owner) => {
                owner.workers.insert(worker);
                let tenant = owner.tenant;
                let (place, waiting) = (Place::Nowhere, BTreeSet::new());
                self.workers.insert(
                    worker,
                    Worker {
                        session,
                        tenant,
                        released: false,
                        place,
                        waiting,
                    },
                );
            }
            Err(refusal) => effects.push(Effect::RefuseWorker { worker, refusal }),
        }
    }

    pub(super) fn call_arrived(
        &mut self,
        call: CallId,
        worker: WorkerId,
        effects: &mut Vec<Effect>,
    ) {
        if self.calls.contains_key(&call) {
            return;
        }
        let Some(Worker {
            session,
            place,
            released: false,
            ..
        }) = self.workers.get(&worker)
        else {
            // The session closed while the call was on its way here.
            effects.push(Effect::LoseCall {
                call,
                cause: super::LossCause::Cancelled,
            });
            return;
        };
        let (session, place) = (*session, *place);
        if let Err(refusal) = self.admit_call(session) {
            effects.push(Effect::RefuseCall { call, refusal });
            return;
        }
        self.calls.insert(
            call,
            Call {
                worker,
                session,
                seat: Seat::Waiting,
            },
        );
        match place {
            Place::Live(slot) => self.dispatch(call, slot, effects),
            Place::Nowhere if self.slots.has_free() => self.start_isolate(worker, &[call], effects),
            Place::Nowhere | Place::Waiting(_) => self.enter_queue(call, worker, effects),
        }
    }

    fn admit_worker(&mut self, session: SessionId) -> Result<&mut Session, Refusal> {
        let limit = self.config.workers_per_session_max;
        let draining = self.is_draining();
        let owner = self
            .sessions
            .get_mut(&session)
            .ok_or(Refusal::SessionClosed)?;
        if draining {
            return Err(Refusal::Draining);
        }
        if owner.workers.len() as u64 >= limit {
            return Err(Refusal::Workers { limit });
        }
        Ok(owner)
    }

    /// Counts the call for its session if there is room for it.
    fn admit_call(&mut self, session: SessionId) -> Result<(), Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        let limit = self.config.calls_in_flight_max;
        if self.calls.len() as u64 >= limit {
            return Err(Refusal::CallsInFlight { limit });
        }
        let limit = self.config.calls_in_flight_per_session_max;
        let owner = self
            .sessions
            .get_mut(&session)
            .ok_or(Refusal::SessionClosed)?;
        if owner.calls_count >= limit {
            return Err(Refusal::SessionCalls { limit });
        }
        owner.calls_count += 1;
        Ok(())
    }
}
