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
                self.workers.insert(
                    worker,
                    Worker {
                        session,
                        tenant,
                        released: false,
                        place: Place::Nowhere,
                        waiting: BTreeSet::new(),
                        paused: BTreeSet::new(),
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
        wait_ms_max: u64,
        effects: &mut Vec<Effect>,
    ) {
        if self.calls.contains_key(&call) {
            return;
        }
        let Some(Worker {
            session,
            tenant,
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
        let (session, tenant) = (*session, *tenant);
        let wait_ms_max = wait_ms_max.min(self.config.queue_wait_ms_max);
        let admitted = self
            .admit_wait(tenant, worker, wait_ms_max)
            .and_then(|()| self.admit_call(session));
        if let Err(refusal) = admitted {
            effects.push(Effect::RefuseCall { call, refusal });
            return;
        }
        let seat = Seat::Waiting;
        self.calls.insert(
            call,
            Call {
                worker,
                session,
                arrived_ms: self.now_ms,
                deadline_ms: self.now_ms.saturating_add(wait_ms_max),
                seat,
            },
        );
        if self.may_begin(tenant) {
            self.place(call, worker, effects);
        } else {
            self.pause(call, worker, effects);
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

    /// Refuses a call that would wait for longer than it may, as far as that is known.
    fn admit_wait(
        &self,
        tenant: TenantId,
        worker: WorkerId,
        wait_ms_max: u64,
    ) -> Result<(), Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        match self.wait_known(tenant, worker) {
            Some((exceeded, wait_ms)) if wait_ms > wait_ms_max => Err(Refusal::Quota {
                quota: exceeded.quota,
                limit: exceeded.limit,
                used: exceeded.used,
                retry_after_ms: wait_ms,
            }),
            _ => Ok(()),
        }
    }

    /// Counts the call for its session if there is room for it.
    fn admit_call(&mut self, session: SessionId) -> Result<(), Refusal> {
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
