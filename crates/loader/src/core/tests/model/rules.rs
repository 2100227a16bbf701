//! What must hold: for a call that arrives, for a slot that is given away, and for everything after
//! each event.

use super::*;

/// What the model knows must become of a call that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    Lost,
    Refused(Refusal),
    Into(IsolateId),
    IntoFresh,
    Waits,
    /// It is one too many: one out of `victims` is refused.
    OneTooMany,
}

impl Model {
    pub(super) fn expect(&mut self, call: CallId, worker: WorkerId) -> Expected {
        let Some(known) = self.workers.get(&worker).filter(|known| !known.released) else {
            return Expected::Lost;
        };
        let CoreConfig {
            calls_in_flight_max,
            calls_in_flight_per_session_max,
            ..
        } = self.config;
        if self.draining {
            return Expected::Refused(Refusal::Draining);
        }
        if self.calls.len() as u64 >= calls_in_flight_max {
            return Expected::Refused(Refusal::CallsInFlight {
                limit: calls_in_flight_max,
            });
        }
        if self.calls_of(known.session) >= calls_in_flight_per_session_max {
            return Expected::Refused(Refusal::SessionCalls {
                limit: calls_in_flight_per_session_max,
            });
        }
        if let Some(isolate) = self.live_isolate_of(worker) {
            return Expected::Into(isolate);
        }
        if (self.isolates.len() as u64) < self.config.isolates_max {
            return Expected::IntoFresh;
        }
        if (self.waiting().count() as u64) < self.config.calls_queued_max {
            return Expected::Waits;
        }
        let tenant = known.tenant;
        self.victims = self.victims_for(call, tenant);
        Expected::OneTooMany
    }

    /// The calls in the longest line, if it is longer by two or more than the tenant's own; else
    /// the call itself.
    fn victims_for(&self, call: CallId, tenant: TenantId) -> BTreeSet<CallId> {
        let mut lines: BTreeMap<TenantId, BTreeSet<CallId>> = BTreeMap::new();
        for (id, known) in self
            .calls
            .iter()
            .filter(|(_, known)| known.place == Where::Waiting)
        {
            lines
                .entry(self.workers[&known.worker].tenant)
                .or_default()
                .insert(*id);
        }
        let own = lines.get(&tenant).map_or(0, BTreeSet::len);
        let longest = lines.values().map(BTreeSet::len).max().unwrap_or(0);
        if longest <= own + 1 {
            return BTreeSet::from([call]);
        }
        lines
            .into_values()
            .filter(|line| line.len() == longest)
            .flatten()
            .collect()
    }

    /// Nobody of the same tenant waited longer, and no other tenant was passed over twice.
    pub(super) fn check_turn(
        &mut self,
        tenant: TenantId,
        waiting_since: Option<u64>,
    ) -> Result<(), String> {
        let waiting: Vec<(TenantId, u64)> = self
            .workers
            .values()
            .filter_map(|known| Some((known.tenant, known.waiting_since?)))
            .collect();
        let Some(waiting_since) = waiting_since else {
            rule!(
                waiting.is_empty(),
                "a call that came just now was served before those that wait"
            );
            return Ok(());
        };
        for (other, since) in &waiting {
            rule!(
                *other != tenant || *since >= waiting_since,
                "a worker of tenant {tenant} jumped the line"
            );
        }
        let others: BTreeSet<TenantId> = waiting
            .into_iter()
            .map(|(other, _)| other)
            .filter(|other| *other != tenant)
            .collect();
        for other in others {
            let count = self.overtaken.entry((other, tenant)).or_default();
            *count += 1;
            rule!(
                *count == 1,
                "tenant {tenant} was served twice while tenant {other} waited"
            );
        }
        self.overtaken.retain(|(who, _), _| *who != tenant);
        Ok(())
    }

    pub(super) fn check_arrival(
        &self,
        call: CallId,
        expected: Expected,
        effects: &[Effect],
    ) -> Result<(), String> {
        let place = self.calls.get(&call).map(|known| known.place);
        let holds = match expected {
            Expected::Lost => effects.contains(&Effect::LoseCall {
                call,
                cause: LossCause::Cancelled,
            }),
            Expected::Refused(refusal) => effects.contains(&Effect::RefuseCall { call, refusal }),
            Expected::Into(isolate) => place == Some(Where::In(isolate)),
            Expected::IntoFresh => matches!(
                effects,
                [Effect::StartIsolate { .. }, Effect::Dispatch { .. }]
            ),
            Expected::Waits => place == Some(Where::Waiting),
            Expected::OneTooMany => {
                let refused = effects.iter().filter_map(|effect| match effect {
                    Effect::RefuseCall {
                        call,
                        refusal: Refusal::Isolates { .. },
                    } => Some(call),
                    _ => None,
                });
                let refused: Vec<&CallId> = refused.collect();
                refused.len() == 1 && self.victims.contains(refused[0])
            }
        };
        rule!(holds, "{call} should be {expected:?}, got {effects:?}");
        Ok(())
    }

    pub(super) fn check_everything(&mut self, core: &Core) -> Result<(), String> {
        self.tidy();
        let waiting_workers = self
            .workers
            .values()
            .filter(|known| known.waiting_since.is_some())
            .count();
        let ending = self
            .isolates
            .values()
            .filter(|inside| inside.ending)
            .count();
        rule!(
            self.waiting().count() as u64 <= self.config.calls_queued_max,
            "the queue is too long"
        );
        rule!(
            self.isolates.len() as u64 <= self.config.isolates_max,
            "more isolates than slots"
        );
        if waiting_workers > 0 {
            rule!(
                self.isolates.len() as u64 == self.config.isolates_max,
                "calls wait while a slot is free"
            );
            rule!(
                ending >= waiting_workers || self.idle().count() == 0,
                "calls wait while an isolate is idle"
            );
        }
        for (call, known) in &self.calls {
            rule!(
                self.workers.contains_key(&known.worker),
                "{call} outlives its worker"
            );
            if let Where::In(isolate) = known.place {
                let live = self
                    .isolates
                    .get(&isolate)
                    .is_some_and(|inside| !inside.ending);
                rule!(live, "{call} is left in {isolate}, which is not live");
            }
        }
        for (id, inside) in self.isolates.iter().filter(|(_, inside)| !inside.ending) {
            let Some(worker) = self.workers.get(&inside.worker) else {
                return Err(format!("{id} outlives its worker"));
            };
            rule!(
                !worker.released || !inside.calls.is_empty(),
                "{id} is idle and its worker released"
            );
            let wanted = inside.calls.is_empty()
                || inside.calls.iter().any(|call| !self.calls[call].dropped);
            rule!(wanted, "{id} runs calls that nobody waits for");
        }
        rule!(
            !self.draining || self.complete || !self.calls.is_empty(),
            "the drain is complete and not said to be"
        );
        let gauges = self.gauges(ending);
        rule!(
            core.gauges() == gauges,
            "the core counts {:?}, there are {gauges:?}",
            core.gauges()
        );
        Ok(())
    }

    /// Removes what must be gone by now; whatever still hangs on it is found by the checks.
    fn tidy(&mut self) {
        let (calls, sessions, now) = (&self.calls, &self.sessions, self.now);
        self.workers.retain(|id, known| {
            let in_use = !known.released || calls.values().any(|call| call.worker == *id);
            in_use && sessions.contains_key(&known.session)
        });
        for (id, known) in &mut self.workers {
            let waits = calls
                .values()
                .any(|call| call.worker == *id && call.place == Where::Waiting);
            known.waiting_since = waits.then(|| known.waiting_since.unwrap_or(now));
        }
        let workers = &self.workers;
        self.overtaken.retain(|(who, _), _| {
            workers
                .values()
                .any(|known| known.tenant == *who && known.waiting_since.is_some())
        });
    }

    fn gauges(&self, ending: usize) -> Gauges {
        Gauges {
            sessions: self.sessions.len() as u64,
            workers: self.workers.len() as u64,
            isolates: self.isolates.len() as u64,
            isolates_idle: self.idle().count() as u64,
            isolates_ending: ending as u64,
            calls: self.calls.len() as u64,
            calls_waiting: self.waiting().count() as u64,
        }
    }
}
