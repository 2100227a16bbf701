//! A runtime that does what the core says, and checks with books of its own that it may say so.
//!
//! It states the rules in another way than the core does: plain maps, walks over everything, no
//! concern for speed.

macro_rules! rule {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}

mod rules;
mod tenants;

use super::super::*;
use super::broken::Subject;
use rules::Expected;
use std::collections::{BTreeMap, BTreeSet};
pub(super) use tenants::Tenant;

pub(super) struct Isolate {
    pub(super) worker: WorkerId,
    pub(super) tenant: TenantId,
    pub(super) calls: BTreeSet<CallId>,
    pub(super) ending: bool,
    /// A call left it in a state in which nothing may run again.
    spoiled: bool,
    idle_since: u64,
}

pub(super) struct Worker {
    pub(super) session: SessionId,
    tenant: TenantId,
    pub(super) released: bool,
    waiting_since: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Where {
    Waiting,
    In(IsolateId),
}

pub(super) struct Call {
    pub(super) worker: WorkerId,
    pub(super) place: Where,
    pub(super) dropped: bool,
    /// It waits for what its tenant has used up.
    paused: bool,
    arrived_ms: u64,
    wait_ms_max: u64,
}

#[derive(Default)]
pub(super) struct Model {
    config: CoreConfig,
    pub(super) tenants: BTreeMap<TenantId, Tenant>,
    pub(super) sessions: BTreeMap<SessionId, TenantId>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    pub(super) calls: BTreeMap<CallId, Call>,
    pub(super) isolates: BTreeMap<IsolateId, Isolate>,
    isolate_last: Option<IsolateId>,
    /// Counts events.
    now: u64,
    pub(super) now_ms: u64,
    pub(super) draining: bool,
    complete: bool,
    /// How often the second tenant got a slot while the first one waited.
    overtaken: BTreeMap<(TenantId, TenantId), u32>,
    /// The calls of which one may be refused so that a full queue takes the one that arrives.
    victims: BTreeSet<CallId>,
    /// The calls that were there before this event.
    known_before: BTreeSet<CallId>,
    /// Whether as many calls wait as may, as the event comes.
    queue_is_full: bool,
    /// Which effects were seen, by name: the simulation must reach them all.
    pub(super) seen: BTreeSet<String>,
}

impl Model {
    pub(super) fn new(config: CoreConfig, tenants: BTreeMap<TenantId, Tenant>) -> Self {
        Self {
            config,
            tenants,
            ..Self::default()
        }
    }

    /// Hands the event to the core and checks all that comes of it.
    pub(super) fn step(
        &mut self,
        core: &mut Subject,
        now_ms: u64,
        event: Event,
        effects: &mut Vec<Effect>,
    ) -> Result<(), String> {
        self.now += 1;
        self.time_passes(now_ms);
        self.known_before = self.calls.keys().copied().collect();
        self.queue_is_full = self.waiting().count() as u64 >= self.config.calls_queued_max;
        let idle_before = self.idle().count();
        let own_idle_before: BTreeSet<TenantId> = self.idle().map(|inside| inside.tenant).collect();
        let expected = self.note(event);
        effects.clear();
        core.on_event(now_ms, event, effects);
        for effect in effects.iter() {
            self.seen.insert(name_of(effect));
            self.perform(*effect)?;
        }
        if let (Some(expected), Event::CallArrived { call, .. }) = (expected, event) {
            self.check_arrival(call, expected, effects)?;
        }
        if event == Event::MemoryShort && idle_before > 0 {
            let evicts = |effect: &Effect| {
                let cause = EndCause::Evicted;
                matches!(effect, Effect::EndIsolate { cause: found, .. } if *found == cause)
            };
            rule!(
                effects.iter().any(evicts),
                "memory is short and nobody goes"
            );
        }
        if let Event::TenantMeasured { tenant, .. } = event
            && self.tenants[&tenant].is_memory_short()
            && own_idle_before.contains(&tenant)
        {
            let goes = |effect: &Effect| match effect {
                Effect::EndIsolate { isolate, .. } => self.isolates[isolate].tenant == tenant,
                _ => false,
            };
            rule!(
                effects.iter().any(goes),
                "memory of tenant {tenant} is short and none of its isolates goes"
            );
        }
        if event == Event::DrainDeadline {
            rule!(
                self.calls.is_empty(),
                "calls outlive the deadline of the drain"
            );
        }
        self.check_everything(core.core())
    }

    /// Books what the event says by itself.
    fn note(&mut self, event: Event) -> Option<Expected> {
        match event {
            Event::SessionOpened { session, tenant } => {
                self.sessions.insert(session, tenant);
            }
            Event::SessionClosed { session } => {
                self.sessions.remove(&session);
            }
            Event::WorkerLoaded { worker, session } => {
                if let Some(tenant) = self.sessions.get(&session) {
                    let tenant = *tenant;
                    self.workers.insert(
                        worker,
                        Worker {
                            session,
                            tenant,
                            released: false,
                            waiting_since: None,
                        },
                    );
                }
            }
            Event::WorkerReleased { worker } => {
                if let Some(known) = self.workers.get_mut(&worker) {
                    known.released = true;
                }
            }
            Event::CallArrived {
                call,
                worker,
                wait_ms_max,
            } => {
                let wait_ms_max = wait_ms_max.min(self.config.queue_wait_ms_max);
                let expected = self.expect(call, worker, wait_ms_max);
                self.calls.insert(
                    call,
                    Call {
                        worker,
                        place: Where::Waiting,
                        dropped: false,
                        paused: matches!(expected, Expected::Pauses),
                        arrived_ms: self.now_ms,
                        wait_ms_max,
                    },
                );
                return Some(expected);
            }
            Event::CallDropped { call } => {
                if let Some(known) = self.calls.get_mut(&call) {
                    known.dropped = true;
                }
            }
            Event::CallFinished {
                call,
                isolate_reusable,
            } => {
                if let Some(Call {
                    place: Where::In(isolate),
                    ..
                }) = self.calls.get(&call)
                {
                    let isolate = *isolate;
                    self.calls.remove(&call);
                    self.vacate(isolate, call);
                    if let Some(inside) = self.isolates.get_mut(&isolate) {
                        inside.spoiled |= !isolate_reusable;
                    }
                }
            }
            Event::IsolateEnded { isolate } => {
                self.isolates.remove(&isolate);
            }
            Event::TenantMeasured {
                tenant,
                cpu_us,
                memory_bytes,
                fresh_bytes,
            } => {
                if let Some(known) = self.tenants.get_mut(&tenant) {
                    known.measured(cpu_us, memory_bytes, fresh_bytes);
                }
            }
            Event::BytesSent { tenant, bytes } => {
                if let Some(known) = self.tenants.get_mut(&tenant) {
                    known.sent(bytes);
                }
            }
            Event::TimePassed | Event::MemoryShort => {}
            Event::DrainStarted | Event::DrainDeadline => self.draining = true,
        }
        None
    }

    fn perform(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::StartIsolate { isolate, worker } => self.start(isolate, worker),
            Effect::Dispatch { call, isolate } => {
                let Some(known) = self.calls.get_mut(&call) else {
                    return Err(format!("{call} is not in flight"));
                };
                rule!(known.place == Where::Waiting, "{call} is dispatched twice");
                let (worker, was_paused) = (known.worker, known.paused);
                let tenant = self.workers.get(&worker).map(|known| known.tenant);
                if let Some(tenant) = tenant {
                    self.check_dispatch(call, tenant, was_paused)?;
                }
                let Some(known) = self.calls.get_mut(&call) else {
                    return Err(format!("{call} is not in flight"));
                };
                let Some(inside) = self.isolates.get_mut(&isolate) else {
                    return Err(format!("{isolate} is gone"));
                };
                rule!(
                    !inside.ending,
                    "{call} is dispatched into {isolate}, which is ending"
                );
                rule!(
                    inside.worker == known.worker,
                    "{call} is dispatched into the isolate of another worker"
                );
                inside.calls.insert(call);
                known.place = Where::In(isolate);
                Ok(())
            }
            Effect::RefuseCall { call, refusal } => {
                self.check_refusal(call, refusal)?;
                let Some(known) = self.calls.remove(&call) else {
                    return Err(format!("{call} is not in flight"));
                };
                rule!(
                    known.place == Where::Waiting,
                    "{call} is refused while it runs"
                );
                Ok(())
            }
            Effect::RefuseWorker { worker, refusal } => {
                let session = self.workers.remove(&worker).map(|known| known.session);
                match refusal {
                    Refusal::SessionClosed => {
                        rule!(session.is_none(), "the session of {worker} is open")
                    }
                    Refusal::Draining => {
                        rule!(self.draining, "{worker} is refused without a drain")
                    }
                    Refusal::Workers { limit } => {
                        let count = self
                            .workers
                            .values()
                            .filter(|known| Some(known.session) == session)
                            .count();
                        rule!(
                            count as u64 == limit && limit == self.config.workers_per_session_max,
                            "{worker} is refused at {count} workers"
                        );
                    }
                    other => return Err(format!("{worker} is refused for {other:?}")),
                }
                Ok(())
            }
            Effect::LoseCall { call, cause } => {
                let Some(known) = self.calls.remove(&call) else {
                    return Err(format!("{call} is not in flight"));
                };
                match known.place {
                    Where::Waiting => rule!(
                        cause == LossCause::Cancelled,
                        "{call} is lost for {cause:?} as it waits"
                    ),
                    Where::In(isolate) => self.vacate(isolate, call),
                }
                Ok(())
            }
            Effect::EndIsolate { isolate, cause } => self.end(isolate, cause),
            Effect::DrainComplete => {
                rule!(
                    self.draining && !self.complete,
                    "the drain is complete out of turn"
                );
                rule!(
                    self.calls.is_empty(),
                    "the drain is complete with calls in flight"
                );
                self.complete = true;
                Ok(())
            }
        }
    }

    fn start(&mut self, isolate: IsolateId, worker: WorkerId) -> Result<(), String> {
        rule!(
            self.isolate_last.is_none_or(|last| last < isolate),
            "{isolate} is an old id"
        );
        rule!(
            (self.isolates.len() as u64) < self.config.isolates_max,
            "no slot is free for {isolate}"
        );
        rule!(
            self.live_isolate_of(worker).is_none(),
            "{worker} has an isolate already"
        );
        let Some(known) = self.workers.get(&worker) else {
            return Err(format!("{worker} is gone"));
        };
        self.isolate_last = Some(isolate);
        let (tenant, waiting_since) = (known.tenant, known.waiting_since);
        rule!(
            self.room(tenant, 1) == 1,
            "tenant {tenant} gets an isolate that it may not have"
        );
        self.check_turn(tenant, waiting_since)?;
        if let Some(known) = self.tenants.get_mut(&tenant) {
            known.loaded();
        }
        if let Some(known) = self.workers.get_mut(&worker) {
            known.waiting_since = None;
        }
        let calls = BTreeSet::new();
        self.isolates.insert(
            isolate,
            Isolate {
                worker,
                tenant,
                calls,
                ending: false,
                spoiled: false,
                idle_since: self.now,
            },
        );
        Ok(())
    }

    fn end(&mut self, isolate: IsolateId, cause: EndCause) -> Result<(), String> {
        if cause == EndCause::Evicted {
            self.check_eviction(isolate)?;
        }
        let Some(ending) = self.isolates.get_mut(&isolate) else {
            return Err(format!("{isolate} is gone"));
        };
        rule!(!ending.ending, "{isolate} is ended twice");
        rule!(ending.calls.is_empty(), "{isolate} ends with calls inside");
        ending.ending = true;
        Ok(())
    }

    fn vacate(&mut self, isolate: IsolateId, call: CallId) {
        if let Some(inside) = self.isolates.get_mut(&isolate) {
            inside.calls.remove(&call);
            inside.idle_since = self.now;
        }
    }

    fn live_isolate_of(&self, worker: WorkerId) -> Option<IsolateId> {
        self.isolates
            .iter()
            .find(|(_, inside)| inside.worker == worker && !inside.ending)
            .map(|(id, _)| *id)
    }

    fn calls_of(&self, session: SessionId) -> u64 {
        let of_session = |call: &&Call| {
            self.workers
                .get(&call.worker)
                .is_some_and(|known| known.session == session)
        };
        self.calls.values().filter(of_session).count() as u64
    }

    fn waiting(&self) -> impl Iterator<Item = &Call> {
        self.calls
            .values()
            .filter(|call| call.place == Where::Waiting)
    }

    fn idle(&self) -> impl Iterator<Item = &Isolate> {
        self.isolates
            .values()
            .filter(|inside| !inside.ending && inside.calls.is_empty())
    }
}

/// The effect's variant with its reasons and without its ids and numbers.
fn name_of(effect: &Effect) -> String {
    match effect {
        Effect::StartIsolate { .. } => "StartIsolate".to_owned(),
        Effect::Dispatch { .. } => "Dispatch".to_owned(),
        Effect::RefuseCall { refusal, .. } => format!("RefuseCall {}", variant(refusal)),
        Effect::RefuseWorker { refusal, .. } => format!("RefuseWorker {}", variant(refusal)),
        Effect::LoseCall { cause, .. } => format!("LoseCall {cause:?}"),
        Effect::EndIsolate { cause, .. } => format!("EndIsolate {cause:?}"),
        Effect::DrainComplete => "DrainComplete".to_owned(),
    }
}

fn variant(refusal: &Refusal) -> String {
    if let Refusal::Quota { quota, .. } = refusal {
        return format!("Quota {quota}");
    }
    format!("{refusal:?}")
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}
