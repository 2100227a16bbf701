//! What must hold: for a call that arrives, for a slot that is given away, and for everything after
//! each event.

use super::*;

/// What the model knows must become of a call that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    Lost,
    Refused(Refusal),
    /// It would have to wait for longer than it may.
    RefusedForWait,
    Into(IsolateId),
    IntoFresh,
    Waits,
    /// Its tenant has used up what it may in a time.
    Pauses,
    /// It is one too many: one out of `victims` is refused.
    OneTooMany,
}

impl Model {
    pub(super) fn time_passes(&mut self, now_ms: u64) {
        for tenant in self.tenants.values_mut() {
            tenant.time_passes(now_ms - self.now_ms);
        }
        self.now_ms = now_ms;
    }

    pub(super) fn expect(&mut self, call: CallId, worker: WorkerId, wait_ms_max: u64) -> Expected {
        let Some(known) = self.workers.get(&worker).filter(|known| !known.released) else {
            return Expected::Lost;
        };
        let tenant = known.tenant;
        let CoreConfig {
            calls_in_flight_max,
            calls_in_flight_per_session_max,
            ..
        } = self.config;
        if self.draining {
            return Expected::Refused(Refusal::Draining);
        }
        if self.wait_known(tenant, worker) > wait_ms_max {
            return Expected::RefusedForWait;
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
        let pauses = self.tenants[&tenant].in_debt() || self.paused_of(tenant).next().is_some();
        if !pauses {
            if let Some(isolate) = self.live_isolate_of(worker) {
                return Expected::Into(isolate);
            }
            let slot_is_free = (self.isolates.len() as u64) < self.config.isolates_max;
            if slot_is_free && self.lines_of(tenant) == 0 && self.room(tenant, 1) > 0 {
                let others: BTreeSet<TenantId> = self.waiting_tenants();
                if others.into_iter().all(|other| self.room(other, 1) == 0) {
                    return Expected::IntoFresh;
                }
            }
        }
        if (self.waiting().count() as u64) < self.config.calls_queued_max {
            return match pauses {
                true => Expected::Pauses,
                false => Expected::Waits,
            };
        }
        self.victims = self.victims_for(call, tenant);
        Expected::OneTooMany
    }

    /// How long a call would have to wait for its tenant, as far as is known.
    fn wait_known(&self, tenant: TenantId, worker: WorkerId) -> u64 {
        let known = &self.tenants[&tenant];
        let needs_isolate =
            self.live_isolate_of(worker).is_none() && self.workers[&worker].waiting_since.is_none();
        let load_ms = match needs_isolate {
            true => known.load_ms(self.lines_of(tenant) + 1),
            false => 0,
        };
        known.debt_ms().max(load_ms)
    }

    /// Workers of a tenant's that wait for an isolate.
    fn lines_of(&self, tenant: TenantId) -> u64 {
        let waits = |known: &&Worker| known.tenant == tenant && known.waiting_since.is_some();
        self.workers.values().filter(waits).count() as u64
    }

    fn waiting_tenants(&self) -> BTreeSet<TenantId> {
        let waiting = self.workers.values();
        waiting
            .filter(|known| known.waiting_since.is_some())
            .map(|known| known.tenant)
            .collect()
    }

    pub(super) fn paused_of(&self, tenant: TenantId) -> impl Iterator<Item = CallId> + '_ {
        self.calls
            .iter()
            .filter(move |(_, known)| {
                let of_tenant = |known: &Worker| known.tenant == tenant;
                known.paused
                    && known.place == Where::Waiting
                    && self.workers.get(&known.worker).is_some_and(of_tenant)
            })
            .map(|(call, _)| *call)
    }

    fn held(&self, tenant: TenantId) -> impl Iterator<Item = &Isolate> {
        let all = self.isolates.values();
        all.filter(move |inside| inside.tenant == tenant)
    }

    /// How many isolates a tenant could be given one after the other, `most` at most, if slots were free.
    pub(super) fn room(&self, tenant: TenantId, most: u64) -> u64 {
        let known = &self.tenants[&tenant];
        let taken = self.held(tenant).count() as u64;
        let busy = |inside: &&Isolate| !inside.ending && !inside.calls.is_empty();
        let of_others = self.isolates.values().filter(|one| one.tenant != tenant);
        let busy_of_others = of_others.filter(busy).count() as u64;
        (0..most)
            .find(|more| {
                let taken = taken + more;
                let left = self
                    .config
                    .isolates_max
                    .saturating_sub(taken + busy_of_others);
                // An eighth of what others leave is left to others.
                let shares = taken == 0 || taken < 7 * left;
                !(shares && known.may_have_one_more(taken, *more))
            })
            .unwrap_or(most)
    }

    /// Who may not begin does not, and of those that had to wait for it the first goes first.
    pub(super) fn check_dispatch(
        &self,
        call: CallId,
        tenant: TenantId,
        was_paused: bool,
    ) -> Result<(), String> {
        rule!(
            !self.tenants[&tenant].in_debt(),
            "{call} begins although tenant {tenant} has used up what it may"
        );
        rule!(
            !was_paused || self.paused_of(tenant).next() == Some(call),
            "{call} begins before one that has waited longer"
        );
        Ok(())
    }

    /// A refusal names what is used up, and is not without need.
    pub(super) fn check_refusal(&self, call: CallId, refusal: Refusal) -> Result<(), String> {
        let Some(known) = self.calls.get(&call) else {
            return Err(format!("{call} is not in flight"));
        };
        let waited_ms = self.now_ms - known.arrived_ms;
        let overdue = waited_ms >= known.wait_ms_max;
        let Some(worker) = self.workers.get(&known.worker) else {
            return Ok(());
        };
        let tenant = worker.tenant;
        let taken = self.held(tenant).count() as u64;
        let vague = 100..=60_000;
        match refusal {
            Refusal::Quota {
                quota,
                limit,
                used,
                retry_after_ms,
            } => {
                let of_tenant = &self.tenants[&tenant];
                rule!(
                    of_tenant.used_up(quota, taken) == Some((limit, used)),
                    "{call} is refused for {refusal:?}, there is {:?}",
                    of_tenant.used_up(quota, taken)
                );
                let position = match self.known_before.contains(&call) {
                    true => 1,
                    false => self.lines_of(tenant) + 1,
                };
                let is_exact = match quota {
                    Quota::CpuSecondsPerMinute | Quota::BytesOutPerMinute => {
                        retry_after_ms == of_tenant.debt_ms()
                    }
                    Quota::LoadsPerSecond => [1, position]
                        .map(|at| of_tenant.load_ms(at))
                        .contains(&retry_after_ms),
                    Quota::Isolates | Quota::MemoryBytes => vague.contains(&retry_after_ms),
                };
                rule!(
                    is_exact,
                    "{call} should come again after another time: {refusal:?}"
                );
                let too_long =
                    retry_after_ms > known.wait_ms_max - waited_ms.min(known.wait_ms_max);
                let is_new = !self.known_before.contains(&call);
                rule!(
                    overdue || self.queue_is_full || is_new && too_long,
                    "{call} is refused although it may wait"
                );
            }
            Refusal::QueueWait {
                waited_ms: told,
                retry_after_ms,
                ..
            } => {
                rule!(overdue, "{call} is refused before its time");
                rule!(
                    told == waited_ms && vague.contains(&retry_after_ms),
                    "{call} waited {waited_ms} ms: {refusal:?}"
                );
            }
            Refusal::Isolates { retry_after_ms, .. } => {
                rule!(
                    self.queue_is_full && vague.contains(&retry_after_ms),
                    "{call} is refused although it may wait: {refusal:?}"
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// The one that goes has rested longest among its tenant's, and is of the tenant that has most for its weight, unless its
    /// tenant needs it for its own.
    pub(super) fn check_eviction(&self, isolate: IsolateId) -> Result<(), String> {
        let Some(goes) = self.isolates.get(&isolate) else {
            return Err(format!("{isolate} is gone"));
        };
        let is_idle = |inside: &&Isolate| !inside.ending && inside.calls.is_empty();
        let oldest = self.held(goes.tenant).filter(is_idle);
        let oldest = oldest.map(|inside| inside.idle_since).min();
        rule!(
            oldest == Some(goes.idle_since),
            "{isolate} is evicted before others that were idle for longer"
        );
        // One that came just now is not in line yet.
        let needs_own = self.waiting().any(|call| {
            let worker = self.workers.get(&call.worker);
            !call.paused && worker.is_some_and(|worker| worker.tenant == goes.tenant)
        });
        if needs_own || self.tenants[&goes.tenant].is_memory_short() {
            return Ok(());
        }
        let live = |tenant| self.held(tenant).filter(|inside| !inside.ending).count() as u64;
        let weight = |tenant: TenantId| u64::from(self.tenants[&tenant].policy.weight);
        for other in self.idle().map(|inside| inside.tenant) {
            rule!(
                live(other) * weight(goes.tenant) <= live(goes.tenant) * weight(other),
                "{isolate} is evicted although tenant {other} has more for its weight"
            );
        }
        Ok(())
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

    /// Nobody of the same tenant waited longer, and no other tenant that could have been served was passed over more often
    /// than the weights say.
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
        for (other, since) in &waiting {
            rule!(
                *other != tenant || waiting_since.is_some_and(|own| *since >= own),
                "a worker of tenant {tenant} jumped the line"
            );
        }
        let others: BTreeSet<TenantId> = waiting
            .into_iter()
            .map(|(other, _)| other)
            .filter(|other| *other != tenant)
            .collect();
        let weight = |tenant: TenantId| self.tenants[&tenant].policy.weight;
        let own_weight = weight(tenant);
        for other in others {
            if self.room(other, 1) == 0 {
                self.overtaken.remove(&(other, tenant));
                continue;
            }
            rule!(
                waiting_since.is_some(),
                "a call that came just now was served before those that wait"
            );
            let most = own_weight.div_ceil(weight(other));
            let count = self.overtaken.entry((other, tenant)).or_default();
            *count += 1;
            rule!(
                *count <= most,
                "tenant {tenant} was served {count} times while tenant {other} waited"
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
                [Effect::StartIsolate { .. }, Effect::Dispatch { call: first, .. }, ..]
                    if *first == call
            ),
            // Time may have brought along what it waits for; then it has been served in its turn.
            Expected::Waits | Expected::Pauses => place.is_some(),
            Expected::RefusedForWait => effects.iter().any(|effect| {
                matches!(effect, Effect::RefuseCall { call: refused, refusal: Refusal::Quota { .. } }
                    if *refused == call)
            }),
            Expected::OneTooMany => match effects {
                [
                    Effect::RefuseCall {
                        call: refused,
                        refusal: Refusal::Isolates { .. } | Refusal::Quota { .. },
                    },
                    ..,
                ] => self.victims.contains(refused),
                _ => false,
            },
        };
        rule!(holds, "{call} should be {expected:?}, got {effects:?}");
        Ok(())
    }

    pub(super) fn check_everything(&mut self, core: &Core) -> Result<(), String> {
        self.tidy();
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
        self.check_waiting(core, ending as u64)?;
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
            rule!(!inside.spoiled, "{id} lives on after what a call did to it");
            let is_awaited = self
                .calls
                .values()
                .any(|call| call.worker == inside.worker && call.place == Where::Waiting);
            rule!(
                !worker.released || !inside.calls.is_empty() || is_awaited,
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

    /// Nothing waits without need, and nothing for longer than it may.
    fn check_waiting(&self, core: &Core, ending: u64) -> Result<(), String> {
        let lines: Vec<(TenantId, u64)> = self
            .waiting_tenants()
            .into_iter()
            .map(|tenant| (tenant, self.lines_of(tenant)))
            .collect();
        let wanted: u64 = lines
            .iter()
            .map(|(tenant, line)| self.room(*tenant, *line))
            .sum();
        if wanted > 0 {
            rule!(
                self.isolates.len() as u64 == self.config.isolates_max,
                "calls wait while a slot is free"
            );
            rule!(
                ending >= wanted || self.idle().count() == 0,
                "calls wait while an isolate is idle"
            );
        }
        for (tenant, line) in lines {
            let known = &self.tenants[&tenant];
            let own_ending = self.held(tenant).filter(|one| one.ending).count() as u64;
            let waits_for_time = known.in_debt() || known.load_ms(1) > 0;
            rule!(
                self.room(tenant, 1) > 0
                    || waits_for_time
                    || own_ending >= line
                    || self.idle().all(|inside| inside.tenant != tenant),
                "calls of tenant {tenant} wait at its quota while an isolate of its is idle"
            );
        }
        let wake_at_ms = core.wake_at_ms().unwrap_or(u64::MAX);
        for (call, known) in self.calls.iter() {
            if known.place != Where::Waiting {
                continue;
            }
            let deadline_ms = known.arrived_ms + known.wait_ms_max;
            rule!(self.now_ms < deadline_ms, "{call} waits for too long");
            rule!(
                wake_at_ms > self.now_ms && wake_at_ms <= deadline_ms,
                "nobody looks after {call} in time"
            );
            let tenant = &self.tenants[&self.workers[&known.worker].tenant];
            rule!(
                !known.paused || tenant.in_debt(),
                "{call} is held back without need"
            );
            rule!(
                !known.paused || wake_at_ms <= self.now_ms + tenant.debt_ms(),
                "nobody looks after {call} when its quota allows it"
            );
        }
        Ok(())
    }

    /// Removes what must be gone by now; whatever still hangs on it is found by the checks.
    fn tidy(&mut self) {
        for call in self.calls.values_mut() {
            let tenant = self.workers.get(&call.worker).map(|known| known.tenant);
            call.paused &= tenant.is_some_and(|tenant| self.tenants[&tenant].in_debt());
        }
        let (calls, sessions, now) = (&self.calls, &self.sessions, self.now);
        self.workers.retain(|id, known| {
            let in_use = !known.released || calls.values().any(|call| call.worker == *id);
            in_use && sessions.contains_key(&known.session)
        });
        for (id, known) in &mut self.workers {
            let waits = calls
                .values()
                .any(|call| call.worker == *id && call.place == Where::Waiting && !call.paused);
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
