//! Admission, placement, eviction, quotas and drain: `(state, event) -> effects`.
//!
//! The server tells [`Core::on_event`] what happened and does what it answers, in order. The core
//! never waits and knows no clock; a simulation drives it in the tests exactly as the server does.
//! One caller owns it; a server with several threads puts a lock around it, which is held for the
//! length of an event.
//!
//! The rules:
//!
//! - A worker has at most one live isolate, and an isolate serves one worker. Calls of a worker
//!   share its isolate.
//! - A call to a worker without one takes a free slot; if there is none, the isolate that has been
//!   idle for longest is evicted; if none is idle, the call waits, the tenants taking turns.
//! - A slot stays taken until the runtime confirms that its isolate is gone.
//! - Every call gets one answer: it is refused, or lost, or it finishes after its dispatch.
//!
//! A call into a live idle isolate and the first call of a fresh worker cost a few hash lookups
//! each and allocate nothing, but for a table that doubles now and then.
//!
//! It does not promise that a waiting call gets an isolate while calls keep every one of them busy:
//! the limits of the calls that run bound that.

mod admission;
mod config;
mod ending;
mod event;
mod id;
mod placement;
mod queue;
mod slots;

pub use config::{CORE_CONFIG_SPECS, CoreConfig, CoreConfigSpec, core_config_table_markdown};
pub use event::{Effect, EndCause, Event, LossCause, Refusal};
pub use id::{CallId, IsolateId, SessionId, TenantId, WorkerId};

use id::{IdMap, Next};
use queue::{FairQueue, Ticket};
use slots::{SlotIndex, Slots};
use std::collections::BTreeSet;

/// The state of the loader.
pub struct Core {
    config: CoreConfig,
    ids_last: IdsLast,
    drain: Drain,
    sessions: IdMap<SessionId, Session>,
    workers: IdMap<WorkerId, Worker>,
    calls: IdMap<CallId, Call>,
    slots: Slots,
    queue: FairQueue,
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
    seat: Seat,
}

#[derive(Clone, Copy)]
enum Seat {
    /// In its worker's `waiting`.
    Waiting,
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
    /// Of these: waiting for an isolate.
    pub calls_waiting: u64,
}

impl Core {
    /// A core that holds nothing yet.
    pub fn new(config: CoreConfig) -> Self {
        Self {
            config,
            ids_last: IdsLast::default(),
            drain: Drain::No,
            sessions: IdMap::default(),
            workers: IdMap::default(),
            calls: IdMap::default(),
            slots: Slots::new(config.isolates_max),
            queue: FairQueue::default(),
            #[cfg(test)]
            broken: None,
        }
    }

    /// Takes one event and appends what is to be done about it to `effects`. The only way the state
    /// advances.
    pub fn on_event(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::SessionOpened { session, tenant } => self.session_opened(session, tenant),
            Event::SessionClosed { session } => self.session_closed(session, effects),
            Event::WorkerLoaded { worker, session } => self.worker_loaded(worker, session, effects),
            Event::WorkerReleased { worker } => self.worker_released(worker, effects),
            Event::CallArrived { call, worker } => self.call_arrived(call, worker, effects),
            Event::CallDropped { call } => self.call_dropped(call, effects),
            Event::CallFinished {
                call,
                isolate_reusable,
            } => self.call_finished(call, isolate_reusable, effects),
            Event::IsolateEnded { isolate } => self.isolate_ended(isolate, effects),
            Event::MemoryShort => self.evict_oldest(effects),
            Event::DrainStarted => self.drain_started(),
            Event::DrainDeadline => self.drain_deadline(effects),
        }
        self.serve_queue(effects);
        self.complete_drain(effects);
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

    /// A tenant id that no one had before.
    pub fn allocate_tenant(&mut self) -> TenantId {
        TenantId::next(&mut self.ids_last.tenant)
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
        while let Some((_, _, worker)) = self.queue.next() {
            while let Some(call) = self.first_waiting(worker) {
                self.leave_queue(call);
                effects.push(Effect::RefuseCall {
                    call,
                    refusal: Refusal::Draining,
                });
            }
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
