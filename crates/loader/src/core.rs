//! Admission, placement, eviction, quotas and drain: `(state, event) -> effects`.
//!
//! The server tells [`Core::on_event`] what happened, and when, and does what it answers, in order. The
//! core never waits and knows no clock; a simulation drives it in the tests exactly as the server does.
//! One caller owns it; a server with several threads puts a lock around it, which is held for the
//! length of an event.
//!
//! The rules:
//!
//! - A worker has at most one live isolate, and an isolate serves one worker. Calls of a worker
//!   share its isolate.
//! - A call to a worker without one takes a free slot; if there is none, an idle isolate is evicted; if
//!   none is idle, the call waits, the tenants taking turns by their weights.
//! - A tenant has no more than its quotas, and leaves an eighth of what others leave it. What is beyond
//!   that waits; its own idle isolates go for it.
//! - What a tenant has used of the CPU and sent beyond its quotas is waited off before its next call.
//! - Who has most isolates for its weight gives the idle one that is evicted, the one that rests longest.
//! - No call waits for longer than it may. One that would have to, as far as is known, is refused at
//!   once; a refusal says when to come again.
//! - A slot stays taken until the runtime confirms that its isolate is gone.
//! - Every call gets one answer: it is refused, or lost, or it finishes after its dispatch.
//!
//! A call into a live idle isolate and the first call of a fresh worker cost a few hash lookups
//! each and allocate nothing, but for a table that doubles now and then.
//!
//! It does not promise that a waiting call gets an isolate while calls keep every one of them busy:
//! the limits of the calls that run bound that.

mod admission;
mod bucket;
mod config;
mod ending;
mod event;
mod id;
mod placement;
mod queue;
mod slots;
mod tenancy;
mod tenant;
mod waiting;

pub use config::{CORE_CONFIG_SPECS, CoreConfig, CoreConfigSpec, core_config_table_markdown};
pub use event::{Effect, EndCause, Event, LossCause, Refusal};
pub use id::{CallId, IsolateId, SessionId, TenantId, WorkerId};
pub use tenancy::{Tenancy, TenancyError, WEIGHT_MAX};
pub use tenant::{Quota, TenantPolicy, Trust};

use id::{IdMap, Next};
use queue::{FairQueue, Ticket};
use slots::{SlotIndex, Slots};
use std::collections::BTreeSet;
use tenant::Tenant;

/// The state of the loader.
pub struct Core {
    config: CoreConfig,
    /// The latest time that was told.
    now_ms: u64,
    ids_last: IdsLast,
    drain: Drain,
    tenants: IdMap<TenantId, Tenant>,
    sessions: IdMap<SessionId, Session>,
    workers: IdMap<WorkerId, Worker>,
    calls: IdMap<CallId, Call>,
    slots: Slots,
    queue: FairQueue,
    /// Until when each call that waits may.
    deadlines: BTreeSet<(u64, CallId)>,
    #[cfg(test)]
    broken: Option<tests::Mutation>,
}

#[derive(Default)]
struct IdsLast {
    tenant: u64,
    session: u64,
    worker: u64,
    call: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drain {
    No,
    Started,
    Complete,
}

struct Session {
    tenant: TenantId,
    workers: BTreeSet<WorkerId>,
    calls_count: u64,
}

struct Worker {
    session: SessionId,
    tenant: TenantId,
    /// No stub is left; the worker goes with its last call.
    released: bool,
    place: Place,
    /// Its calls that wait for an isolate; none unless `place` is `Waiting`.
    waiting: BTreeSet<CallId>,
    /// Its calls that may not begin because of what their tenant has used.
    paused: BTreeSet<CallId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No isolate, and none needed.
    Nowhere,
    /// In line for a slot.
    Waiting(Ticket),
    /// The live isolate in this slot.
    Live(SlotIndex),
}

struct Call {
    worker: WorkerId,
    session: SessionId,
    arrived_ms: u64,
    /// Until when it may wait.
    deadline_ms: u64,
    seat: Seat,
}

#[derive(Clone, Copy)]
enum Seat {
    /// In its worker's `waiting`, or about to be placed.
    Waiting,
    /// In its worker's `paused`.
    Paused,
    /// In the list of a slot.
    Running {
        slot: SlotIndex,
        position: usize,
        dropped: bool,
    },
}

/// How much there is of everything at this moment, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Open sessions.
    pub sessions: u64,
    /// Loaded workers.
    pub workers: u64,
    /// Slots taken, by isolates of every kind.
    pub isolates: u64,
    /// Of these: live, without a call.
    pub isolates_idle: u64,
    /// Of these: asked to end and not yet gone.
    pub isolates_ending: u64,
    /// Calls in flight, running or waiting.
    pub calls: u64,
    /// Of these: waiting for an isolate or for a quota.
    pub calls_waiting: u64,
}

impl Core {
    /// A core that holds nothing yet.
    pub fn new(config: CoreConfig) -> Self {
        Self {
            config,
            now_ms: 0,
            ids_last: IdsLast::default(),
            drain: Drain::No,
            tenants: IdMap::default(),
            sessions: IdMap::default(),
            workers: IdMap::default(),
            calls: IdMap::default(),
            slots: Slots::new(config.isolates_max),
            queue: FairQueue::default(),
            deadlines: BTreeSet::new(),
            #[cfg(test)]
            broken: None,
        }
    }

    /// Takes one event, which happened at `now_ms` (milliseconds from any fixed point on), and appends
    /// what is to be done about it to `effects`. The only way the state advances. A time before the
    /// latest one counts as that.
    pub fn on_event(&mut self, now_ms: u64, event: Event, effects: &mut Vec<Effect>) {
        if now_ms > self.now_ms {
            self.now_ms = now_ms;
            // Before the event, which would otherwise get ahead of those that have waited for this time.
            self.attend_waiting(effects);
        }
        match event {
            Event::SessionOpened { session, tenant } => self.session_opened(session, tenant),
            Event::SessionClosed { session } => self.session_closed(session, effects),
            Event::WorkerLoaded { worker, session } => self.worker_loaded(worker, session, effects),
            Event::WorkerReleased { worker } => self.worker_released(worker, effects),
            Event::CallArrived {
                call,
                worker,
                wait_ms_max,
            } => self.call_arrived(call, worker, wait_ms_max, effects),
            Event::CallDropped { call } => self.call_dropped(call, effects),
            Event::CallFinished {
                call,
                isolate_reusable,
            } => self.call_finished(call, isolate_reusable, effects),
            Event::IsolateEnded { isolate } => self.isolate_ended(isolate, effects),
            Event::TenantMeasured {
                tenant,
                cpu_us,
                memory_bytes,
                fresh_bytes,
            } => {
                if let Some(known) = self.tenants.get_mut(&tenant) {
                    known.measured(cpu_us, memory_bytes, fresh_bytes, self.now_ms);
                    self.evict_if_short(tenant, effects);
                }
            }
            Event::BytesSent { tenant, bytes } => {
                if let Some(known) = self.tenants.get_mut(&tenant) {
                    known.sent(bytes, self.now_ms);
                }
            }
            Event::TimePassed => {}
            Event::MemoryShort => self.evict_one(effects),
            Event::DrainStarted => self.drain_started(),
            Event::DrainDeadline => self.drain_deadline(effects),
        }
        self.attend_waiting(effects);
        self.complete_drain(effects);
    }

    /// What waits begins, if it may by now, or has waited for long enough.
    fn attend_waiting(&mut self, effects: &mut Vec<Effect>) {
        self.resume_paused(effects);
        self.serve_queue(effects);
        self.refuse_overdue(effects);
    }

    /// How much there is of everything.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            sessions: self.sessions.len() as u64,
            workers: self.workers.len() as u64,
            isolates: self.slots.taken_count() as u64,
            isolates_idle: self.slots.idle_count() as u64,
            isolates_ending: self.slots.ending_count() as u64,
            calls: self.calls.len() as u64,
            calls_waiting: self.queue.calls_count() as u64,
        }
    }

    /// The live isolate of a worker, if it has one.
    pub fn live_isolate(&self, worker: WorkerId) -> Option<IsolateId> {
        match self.workers.get(&worker)?.place {
            Place::Live(slot) => Some(self.slots.get(slot).isolate),
            Place::Nowhere | Place::Waiting(_) => None,
        }
    }

    /// Whether a drain has started, so that readiness should be denied.
    pub fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Whose isolate it is, while it is there.
    pub fn tenant_of(&self, isolate: IsolateId) -> Option<TenantId> {
        let slot = self.slots.find(isolate)?;
        Some(self.slots.get(slot).tenant)
    }

    /// Makes a tenant, with an id that no one had before.
    pub fn allocate_tenant(&mut self, policy: TenantPolicy) -> TenantId {
        let tenant = TenantId::next(&mut self.ids_last.tenant);
        self.tenants.insert(tenant, Tenant::new(policy));
        tenant
    }

    /// A session id that no one had before.
    pub fn allocate_session(&mut self) -> SessionId {
        SessionId::next(&mut self.ids_last.session)
    }

    /// A worker id that no one had before.
    pub fn allocate_worker(&mut self) -> WorkerId {
        WorkerId::next(&mut self.ids_last.worker)
    }

    /// A call id that no one had before. Calls wait in the order of their ids.
    pub fn allocate_call(&mut self) -> CallId {
        CallId::next(&mut self.ids_last.call)
    }

    fn drain_started(&mut self) {
        if self.drain == Drain::No {
            self.drain = Drain::Started;
        }
    }

    /// What waits is refused, since it may be sent elsewhere; what runs is lost.
    fn drain_deadline(&mut self, effects: &mut Vec<Effect>) {
        self.drain_started();
        let waiting: Vec<CallId> = self.deadlines.iter().map(|(_, call)| *call).collect();
        for call in waiting {
            self.leave_queue(call, effects);
            effects.push(Effect::RefuseCall {
                call,
                refusal: Refusal::Draining,
            });
        }
        let live: Vec<SlotIndex> = self.slots.live().collect();
        for slot in live {
            self.end_isolate(
                slot,
                EndCause::DrainDeadline,
                LossCause::IsolateEvicted,
                effects,
            );
        }
    }

    fn complete_drain(&mut self, effects: &mut Vec<Effect>) {
        if self.drain == Drain::Started && self.calls.is_empty() {
            self.drain = Drain::Complete;
            effects.push(Effect::DrainComplete);
        }
    }

    /// Whether the tests have broken this rule on purpose, to see that the simulation notices.
    #[cfg(test)]
    fn is_broken(&self, mutation: tests::Mutation) -> bool {
        self.broken == Some(mutation)
    }
}

#[cfg(test)]
mod tests;
