//! The heart: feeds the loader's pure core with what happens, and does what it decides.
//!
//! Callers are on RPC threads, isolates on threads of their own; both only hold the lock for the core's decision and
//! for handing messages on, never while anything runs or waits.

mod children;
mod drain;
mod effects;
mod events;
mod in_flight;
mod outward;
mod tenants;
mod time;
mod traces;
mod usage;

pub(crate) use self::{
    effects::refusal_name,
    in_flight::{Arrival, InFlight},
};

use self::{effects::lost, time::Timekeeper};
use crate::{
    ledger::UsageLedger,
    metrics::Metrics,
    named::Name,
    opened::Opened,
    outbound::{Egress, Records},
    outcome::{Answered, CallAnswer},
    room::{Room, Taken},
    router::Address,
    session::{Commons, Facts, Grants, Hold, OutCall, Session, Worker},
    tables::Table,
    tails::{Kept, Tail, TailCall, Tellings, Trace},
};
use coracle_isolate::{Call, Event as IsolateEvent, Message, Scheduler, WorkerSpec};
use coracle_loader::{
    CallId, Core, CoreConfig, Effect, Event, Gauges, IsolateId, Limits, LossCause, Refusal,
    SessionId, Tenancy, TenantId, WorkerId,
};
use coracle_outbound::Audit;
use std::{
    any::Any,
    collections::{BTreeSet, HashMap, HashSet},
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::sync::oneshot;

/// What everything in a server shares.
pub struct Service {
    itself: Weak<Self>,
    state: Mutex<State>,
    /// What waits for whoever holds the state.
    inbox: Mutex<Vec<Notice>>,
    scheduler: OnceLock<Arc<dyn Scheduler>>,
    metrics: Arc<Metrics>,
    limits: Limits,
    /// What each tenant may have.
    tenancy: Tenancy,
    timekeeper: Arc<Timekeeper>,
    drained: tokio::sync::Notify,
    /// Calls between their arrival at the server and their answer.
    arrived: AtomicUsize,
    tellings: Arc<Tellings>,
    /// What the code takes of workers that workers have loaded.
    code_bytes: Arc<Room>,
    code_bytes_per_session_max: u64,
    /// What the logins of each tenant share, as long as there are any.
    commons: Mutex<HashMap<String, Weak<Commons>>>,
    /// Sessions that are no logins.
    sessions_shared: AtomicU64,
    /// Where requests leave by policies, if the server has any.
    egress: OnceLock<Egress>,
    /// Where usage is written, if it is.
    ledger: OnceLock<UsageLedger>,
    /// What is told of requests.
    audit: Arc<dyn Audit>,
    /// Traces of invocations that have sent requests.
    followed: Mutex<HashMap<u64, Arc<Trace>>>,
}

/// Bytes that the code may take of workers that workers load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeBytesMax {
    pub(crate) per_session: u64,
    pub(crate) all: u64,
}

struct State {
    core: Core,
    timekeeper: Arc<Timekeeper>,
    /// When the timekeeper wakes the service.
    wake_at_ms: Option<u64>,
    effects: Vec<Effect>,
    tenants: HashMap<String, TenantId>,
    /// Those of whom something is bounded that has to be measured.
    measured: BTreeSet<TenantId>,
    workers: HashMap<WorkerId, Loaded>,
    calls: HashMap<CallId, Pending>,
    /// What each isolate holds of others.
    tables: HashMap<u64, Table>,
    /// What is dropped once the state is let go: dropping it may need the state again.
    garbage: Vec<Box<dyn Any + Send>>,
    /// Isolates that were asked to end and have not yet.
    ending: HashSet<u64>,
    drain_complete: bool,
    /// Whether who changes the state now assists the scheduler right after.
    assisting: bool,
}

/// The state, held. Who lets it go takes on what isolates reported meanwhile, because they don't wait for it.
struct Locked<'a> {
    service: &'a Service,
    /// There until it is dropped.
    state: Option<MutexGuard<'a, State>>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let garbage = self
            .state
            .take()
            .map(|mut state| std::mem::take(&mut state.garbage));
        self.service.clear(garbage.unwrap_or_default());
        if !self.service.inbox().is_empty() {
            self.service.take_inbox(false);
        }
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("held until it is dropped")
    }
}

/// What is told without waiting for the state.
enum Notice {
    Isolate(IsolateEvent),
    /// Nobody holds a worker any more. Its session goes with it, if nobody holds that either.
    Released {
        worker: WorkerId,
        session: Session,
    },
    /// A request is over that counts: its tenant's bytes are bounded, or it asked for an address that is nobody's business.
    Sent {
        tenant: Arc<str>,
        bytes: u64,
        probed: bool,
    },
    /// Nothing is left of a call that has opened something.
    OpenedOver {
        isolate: u64,
        opened: u64,
    },
}

/// A worker's code, kept while a stub or a call may need it.
struct Loaded {
    spec: WorkerSpec,
    grants: Grants,
    tails: Arc<[Arc<Tail>]>,
    /// The handle that keeps it loaded.
    hold: Weak<Hold>,
    facts: Arc<Facts>,
    /// Room for its code, if a worker has loaded it.
    code_bytes: Option<Taken>,
    /// Its name, if it has one.
    name: Option<Name>,
    calls: usize,
    released: bool,
    /// What its last call cost, if there was one.
    last_cpu_us: Option<u64>,
}

impl Loaded {
    /// Whether its next call is likely to be over within a slice of the RPC thread's.
    fn is_short(&self) -> bool {
        match self.last_cpu_us {
            Some(cpu_us) => cpu_us <= SHORT_CPU_US,
            None => self.spec.load.len() <= SHORT_CODE_BYTES,
        }
    }
}

/// Calls that cost no more, and code that is no longer, are taken to fit into an assisted slice.
const SHORT_CPU_US: u64 = 100;
const SHORT_CODE_BYTES: usize = 700;

/// A call that is not answered yet.
struct Pending {
    worker: WorkerId,
    /// Until it is dispatched.
    call: Option<Box<Call>>,
    args: Vec<Address>,
    props: Arc<[Address]>,
    isolate: Option<IsolateId>,
    answer_to: Waiting,
    /// What is called, kept alive.
    callee: Address,
    /// What is noted for the worker's tails, if it has any.
    trace: Option<Arc<Trace>>,
    /// Of one that is held: how it ended.
    report: Option<Box<Kept>>,
    /// How many calls of tails have led to it.
    depth: u8,
    arrived_ms: u64,
    /// What it has opened, if anything, and what gave it out that it calls.
    opened: Option<Arc<Opened>>,
}

/// Who waits for the answer of a call to a worker.
enum Waiting {
    Caller(oneshot::Sender<CallAnswer>),
    Operation {
        isolate: u64,
        operation: u64,
    },
    /// A tail's queue, which goes on when its call is over.
    Tail(TailCall),
    /// Nobody: it has been answered, and its isolate holds it open. Until that is over it counts as a call under way.
    Nobody,
}

impl State {
    /// Tells the core what happens now.
    fn tell(&mut self, event: Event) {
        let now_ms = self.timekeeper.now_ms();
        self.core.on_event(now_ms, event, &mut self.effects);
    }

    fn take_call(&mut self, call: CallId) -> Option<Pending> {
        let pending = self.calls.remove(&call)?;
        if let Some(loaded) = self.workers.get_mut(&pending.worker) {
            loaded.calls -= 1;
        }
        self.forget_worker_if_done(pending.worker);
        Some(pending)
    }

    /// Takes a call that has an answer and goes on: what is left of it keeps its worker and its place in the isolate.
    fn hold_call(&mut self, call: CallId) -> Option<Pending> {
        let pending = self.calls.get_mut(&call)?;
        let held = Pending {
            worker: pending.worker,
            call: None,
            args: Vec::new(),
            props: Arc::default(),
            isolate: pending.isolate,
            answer_to: Waiting::Nobody,
            callee: pending.callee.clone(),
            trace: pending.trace.clone(),
            report: None,
            depth: pending.depth,
            arrived_ms: pending.arrived_ms,
            opened: pending.opened.clone(),
        };
        Some(std::mem::replace(pending, held))
    }

    fn discard(&mut self, garbage: impl Any + Send) {
        self.garbage.push(Box::new(garbage));
    }

    fn forget_worker_if_done(&mut self, worker: WorkerId) {
        if self
            .workers
            .get(&worker)
            .is_some_and(|loaded| loaded.released && loaded.calls == 0)
        {
            let forgotten = self.workers.remove(&worker);
            self.discard(forgotten);
        }
    }
}

impl Service {
    pub(crate) fn new(
        config: CoreConfig,
        tenancy: Tenancy,
        limits: Limits,
        code_bytes_max: CodeBytesMax,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let timekeeper = Timekeeper::new();
        let service = Arc::new_cyclic(|itself| Self {
            itself: Weak::clone(itself),
            state: Mutex::new(State {
                core: Core::new(config),
                timekeeper: Arc::clone(&timekeeper),
                wake_at_ms: None,
                effects: Vec::new(),
                tenants: HashMap::new(),
                measured: BTreeSet::new(),
                workers: HashMap::new(),
                calls: HashMap::new(),
                tables: HashMap::new(),
                garbage: Vec::new(),
                ending: HashSet::new(),
                drain_complete: false,
                assisting: false,
            }),
            inbox: Mutex::default(),
            scheduler: OnceLock::new(),
            audit: Arc::new(Records {
                metrics: Arc::clone(&metrics),
                service: Weak::clone(itself),
            }),
            followed: Mutex::default(),
            metrics,
            limits,
            tenancy,
            timekeeper,
            drained: tokio::sync::Notify::new(),
            arrived: AtomicUsize::new(0),
            tellings: Tellings::new(),
            code_bytes: Room::new(code_bytes_max.all),
            code_bytes_per_session_max: code_bytes_max.per_session,
            commons: Mutex::default(),
            sessions_shared: AtomicU64::new(0),
            egress: OnceLock::new(),
            ledger: OnceLock::new(),
        });
        service.admit_tenants();
        service
    }

    /// Gives the service its isolates. Once, before anything else is called.
    pub(crate) fn attach(&self, scheduler: Arc<dyn Scheduler>) {
        let attached = self.scheduler.set(scheduler);
        debug_assert!(attached.is_ok(), "attached twice");
    }

    pub(crate) fn audit(&self) -> &Arc<dyn Audit> {
        &self.audit
    }

    pub(crate) fn egress(&self) -> Option<&Egress> {
        self.egress.get()
    }

    pub(crate) fn scheduler(&self) -> &dyn Scheduler {
        &**self.scheduler.get().expect("attached before it is used")
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What every worker is bounded by.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What is alive.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let gauges = self.lock().core.gauges();
        let shared = self.sessions_shared.load(Ordering::Relaxed);
        Gauges {
            sessions: gauges.sessions.saturating_sub(shared),
            ..gauges
        }
    }

    // --- what callers do ---

    /// What the logins of a tenant share.
    pub(crate) fn commons_of(self: &Arc<Self>, tenant: &str) -> Arc<Commons> {
        let mut all = self.commons.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(commons) = all.get(tenant).and_then(Weak::upgrade) {
            return commons;
        }
        all.retain(|_, commons| commons.strong_count() > 0);
        let commons = Commons::new(self, tenant);
        all.insert(tenant.to_owned(), Arc::downgrade(&commons));
        commons
    }

    /// Gives a worker a name, and the room that its code takes.
    pub(crate) fn name(&self, worker: WorkerId, name: Name, code_bytes: Taken) {
        if let Some(loaded) = self.lock().workers.get_mut(&worker) {
            (loaded.name, loaded.code_bytes) = (Some(name), Some(code_bytes));
        }
    }

    /// Whether a worker can still do what it was loaded for.
    pub(crate) fn is_of_use(&self, worker: &Worker) -> bool {
        children::is_of_use(&self.lock(), worker)
    }

    /// `is_shared`: it is no login's.
    pub(crate) fn open_session(&self, tenant: &str, is_shared: bool) -> (SessionId, TenantId) {
        self.sessions_shared
            .fetch_add(u64::from(is_shared), Ordering::Relaxed);
        self.with(|state| {
            let tenant = self.tenant(state, tenant);
            let session = state.core.allocate_session();
            state.tell(Event::SessionOpened { session, tenant });
            (session, tenant)
        })
    }

    pub(crate) fn close_session(&self, session: SessionId, is_shared: bool) {
        match is_shared {
            true => _ = self.sessions_shared.fetch_sub(1, Ordering::Relaxed),
            false => self.metrics.session_closed(),
        }
        self.with(|state| state.tell(Event::SessionClosed { session }));
    }

    pub(crate) fn load(
        &self,
        session: &Session,
        spec: WorkerSpec,
        grants: Grants,
    ) -> Result<Worker, Refusal> {
        let mut grants = grants;
        let env = std::mem::take(&mut grants.env);
        grants.env = env.into_iter().map(children::bound).collect();
        let loaded = self.with(|state| self.take_in(state, session, Vec::new(), spec, grants));
        if let Err(refusal) = loaded {
            self.metrics.request_refused(refusal_name(refusal));
        }
        loaded
    }

    /// Takes a worker in.
    fn take_in(
        &self,
        state: &mut State,
        session: &Session,
        ancestors: Vec<WorkerId>,
        spec: WorkerSpec,
        grants: Grants,
    ) -> Result<Worker, Refusal> {
        let worker = state.core.allocate_worker();
        let loaded = Event::WorkerLoaded {
            worker,
            session: session.id(),
        };
        state.tell(loaded);
        let refusal = state.effects.iter().find_map(|effect| match effect {
            Effect::RefuseWorker {
                worker: refused,
                refusal,
            } if *refused == worker => Some(*refusal),
            _ => None,
        });
        if let Some(refusal) = refusal {
            state.discard(grants);
            return Err(refusal);
        }
        let handle = Worker::new(session, worker, ancestors, spec.limits);
        let grants = grants.held_by(handle.facts());
        let tails = tails_of(&grants, session.tail_bytes());
        state.workers.insert(
            worker,
            Loaded {
                spec,
                grants,
                tails,
                hold: handle.hold(),
                facts: Arc::clone(handle.facts()),
                code_bytes: None,
                name: None,
                calls: 0,
                released: false,
                last_cpu_us: None,
            },
        );
        self.metrics.worker_loaded();
        Ok(handle)
    }

    /// Nobody holds a worker any more: it goes with its last call.
    fn let_worker_go(&self, state: &mut State, worker: WorkerId) {
        let loaded = state.workers.get_mut(&worker);
        let Some(loaded) = loaded.filter(|loaded| !loaded.released) else {
            return;
        };
        loaded.released = true;
        self.metrics.worker_released();
        state.tell(Event::WorkerReleased { worker });
        state.forget_worker_if_done(worker);
    }

    /// Room for the code of workers that the workers of one session load.
    pub(crate) fn code_bytes_of_session(&self) -> Arc<Room> {
        self.code_bytes.part(self.code_bytes_per_session_max)
    }

    /// A call has come in and will be started.
    pub(crate) fn arrive(self: &Arc<Self>) -> Arrival {
        self.metrics.call_started();
        self.arrived.fetch_add(1, Ordering::Relaxed);
        Arrival(Arc::clone(self))
    }

    /// Starts a call.
    ///
    /// A call that is alone in the server begins on this thread, for about 100 µs at most, instead of waking another
    /// one; see docs/decisions/0005-a-call-alone-begins-where-it-came-in.md.
    pub(crate) fn call(&self, arrival: Arrival, call: OutCall) -> InFlight {
        let (answer, receiver) = oneshot::channel();
        let alone = self.is_alone();
        let worker = call.worker.id();
        let memory_is_short = self.scheduler().is_memory_short();
        let id = self.with(|state| {
            if memory_is_short {
                state.tell(Event::MemoryShort);
            }
            state.assisting = alone && state.workers.get(&worker).is_some_and(Loaded::is_short);
            self.place(state, call, Waiting::Caller(answer), 0)
        });
        InFlight {
            arrival,
            call: id,
            answer: receiver,
            done: false,
        }
    }

    /// Whether at most one call is in the server.
    fn is_alone(&self) -> bool {
        self.arrived.load(Ordering::Relaxed) <= 1
    }

    /// Takes a call on and lets the core place it. An object of an isolate's is called there or not at all.
    fn place(&self, state: &mut State, call: OutCall, answer_to: Waiting, depth: u8) -> CallId {
        let OutCall {
            worker,
            isolate,
            mut call,
            args,
            props,
            callee,
        } = call;
        let id = state.core.allocate_call();
        call.invocation = id.0;
        let wall_ms_max = call.limits.wall_ms_max;
        let trace = self.trace(state, worker.id(), &call, depth);
        let opened = match &callee {
            Address::Export(export) => export.opened().map(Arc::clone),
            _ => None,
        };
        let pending = Pending {
            trace,
            report: None,
            depth,
            opened,
            worker: worker.id(),
            call: Some(call),
            args,
            props,
            isolate: None,
            answer_to,
            callee,
            arrived_ms: self.timekeeper.now_ms(),
        };
        let live = state.core.live_isolate(worker.id()).map(|live| live.0);
        let is_loaded = state
            .workers
            .get(&worker.id())
            .is_some_and(|loaded| !loaded.released);
        if !is_loaded || isolate.is_some() && isolate != live {
            let report = lost(LossCause::IsolateLost, false);
            self.answer(state, pending, Ok(Answered::of(report)));
            state.discard(worker);
            return id;
        }
        state.calls.insert(id, pending);
        let mut wait_ms_max = wall_ms_max;
        if let Some(loaded) = state.workers.get_mut(&worker.id()) {
            loaded.calls += 1;
            wait_ms_max = wait_ms_max.min(loaded.spec.limits.wall_ms_max);
            let tenant = TenantId(loaded.spec.tenant);
            self.measure(state, tenant);
        }
        state.tell(Event::CallArrived {
            call: id,
            worker: worker.id(),
            wait_ms_max,
        });
        state.discard(worker);
        id
    }

    fn drop_call(&self, call: CallId) {
        self.with(|state| self.give_up(state, call));
    }

    /// Nobody waits for a call any more.
    fn give_up(&self, state: &mut State, call: CallId) {
        let pending = state.calls.get(&call);
        if pending.is_some_and(|pending| matches!(pending.answer_to, Waiting::Nobody)) {
            return;
        }
        state.tell(Event::CallDropped { call });
        self.act(state);
        // Unless the core has ended the isolate for it: others are inside, and only this call is given up.
        if let Some(isolate) = state.calls.get(&call).and_then(|pending| pending.isolate) {
            self.scheduler().send(Message::Cancel {
                isolate: isolate.0,
                invocation: call.0,
            });
        }
    }

    /// Answers a call that an isolate has made. Not while the state is held. What the isolate does with the answer begins
    /// on this thread, where nothing else is going on, as a call does.
    pub(crate) fn answer_operation(&self, isolate: u64, operation: u64, answer: CallAnswer) {
        let alone = self.is_alone();
        self.with(|state| {
            state.assisting = alone;
            self.settle(state, isolate, operation, answer);
        });
    }

    // --- doing what the core decides ---

    fn lock(&self) -> Locked<'_> {
        // Whole after every event: nothing under this lock panics half way through one.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked {
            service: self,
            state: Some(state),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Vec<Notice>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and does what the core decides.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (outcome, assisting) = {
            let mut state = self.lock();
            let outcome = change(&mut state);
            self.act(&mut state);
            (outcome, std::mem::take(&mut state.assisting))
        };
        if assisting {
            self.scheduler().assist();
        }
        outcome
    }

    fn act(&self, state: &mut State) {
        let mut effects = std::mem::take(&mut state.effects);
        for effect in effects.drain(..) {
            self.act_on(state, effect);
        }
        state.effects = effects;
        let wake_at_ms = state.core.wake_at_ms();
        if wake_at_ms != state.wake_at_ms {
            state.wake_at_ms = wake_at_ms;
            self.timekeeper.wake_at(wake_at_ms);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.tellings.end();
        self.timekeeper.end();
    }
}

fn tails_of(grants: &Grants, room: &Arc<Room>) -> Arc<[Arc<Tail>]> {
    let tails = grants.tails.iter();
    let streaming = grants.streaming_tails.iter();
    tails
        .map(|tail| Tail::new(tail.clone(), false, room))
        .chain(streaming.map(|tail| Tail::new(tail.clone(), true, room)))
        .collect()
}
