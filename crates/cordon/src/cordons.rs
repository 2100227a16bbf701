//! All cordons of a server: where isolates go, what comes back, and what becomes of those that are lost.

mod keep;
mod voice;

pub use voice::{Heard, Voice};

use crate::{
    cordon::{Cordon, Posted},
    protocol::{Order, SetUp},
};
use coracle_isolate::{
    Clock, Event, HandedDown, Health, Image, Message, SandboxConfig, Scheduler, Stats, TenantUsage,
    ThreadsConfig, WorkerSpec, delivers_at_rest,
};
use coracle_loader::{CordonKey, Sign, Suspicions, TenantId};
use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// How cordons run.
pub struct CordonsConfig {
    /// The executable that has a command `cordon`, which calls [`inside`](crate::inside()).
    pub executable: PathBuf,
    /// The pool of each cordon. How many isolates there are altogether is the sender's business.
    pub sandbox: SandboxConfig,
    /// The threads of each cordon, and the memory of all isolates together.
    pub threads: ThreadsConfig,
    /// Cordons at once, the spare one included; at least 2.
    pub cordons_max: usize,
    /// Bytes that one frame may have: what the limits on code, arguments and results need.
    pub frame_bytes_max: u64,
}

/// Why there are no cordons.
#[derive(Debug, thiserror::Error)]
pub enum CordonsError {
    /// The image does not fit this machine.
    #[error("the image can't be used here: {0}")]
    Image(String),
    /// The first one did not start.
    #[error("a cordon can't be started: {0}")]
    Start(String),
    /// The system refuses what they need.
    #[error("cordons can't be set up: {0}")]
    Io(#[from] io::Error),
}

/// Isolates in processes of their own. Dropping it ends them all, unreported.
pub struct Cordons {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
}

struct Shared {
    itself: Weak<Self>,
    executable: PathBuf,
    image: HandedDown,
    set_up: SetUp,
    cordons_max: usize,
    clock: Arc<dyn Clock>,
    sink: Box<dyn Fn(Event) + Send + Sync>,
    listener: OnceLock<Box<Listener>>,
    /// Cordons that have been posted something which has not been delivered.
    posted: Mutex<Vec<Arc<Cordon>>>,
    places: Mutex<Places>,
    /// Told when a cordon is ready, or is not going to be.
    settled: Condvar,
    closing: AtomicBool,
    closed: Condvar,
    fresh_bytes: AtomicU64,
    lost: AtomicU64,
}

/// Is given what a cordon says, and the pipe that it says it over.
type Listener = dyn Fn(OwnedFd, Voice) + Send + Sync;

/// Who is where.
#[derive(Default)]
struct Places {
    cordons: HashMap<u64, Arc<Cordon>>,
    last_id: u64,
    keys: HashMap<CordonKey, u64>,
    /// Ready before it is needed, so that what is lost is replaced at once.
    spare: Option<u64>,
    isolates: HashMap<u64, Arc<Cordon>>,
    suspicions: Suspicions,
    /// Since when a cordon that belongs to somebody has had no isolate.
    idle_since: HashMap<u64, Duration>,
    /// CPU time that tenants have used in cordons that are gone, in microseconds.
    cpu_us_gone: HashMap<u64, u64>,
    /// What cordons that are gone had counted.
    panics_gone: u64,
    snapshot_hits_gone: u64,
    /// Why the last one did not start.
    failure: Option<Failure>,
}

#[derive(Clone)]
struct Failure {
    image: bool,
    reason: String,
    at: Duration,
}

/// How often cordons are looked after.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// A cordon that has said nothing for so long is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// The same before it is ready: a guest may be slow to map on a busy machine.
const START_MAX: Duration = Duration::from_secs(30);
/// A call whose wall time has been over for so long is not going to be answered.
const OVERDUE_AFTER: Duration = Duration::from_secs(3);
/// A cordon of one tenant or group that has had no isolate for so long is ended.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// After one did not start, the next is tried this much later.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Cordons {
    /// Starts the first cordon, and one to spare. Every event goes to `sink`, on whichever thread it happens; it must not
    /// wait.
    ///
    /// # Errors
    /// See [`CordonsError`].
    pub fn start(
        config: CordonsConfig,
        image: &Image,
        clock: Arc<dyn Clock>,
        sink: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, CordonsError> {
        let CordonsConfig {
            executable,
            sandbox,
            threads,
            cordons_max,
            frame_bytes_max,
        } = config;
        let image = image.hand_down()?;
        let shared = Arc::new_cyclic(|itself| Shared {
            itself: Weak::clone(itself),
            executable,
            image,
            set_up: SetUp {
                isolates_max: sandbox.isolates_max,
                running_max: sandbox.running_max,
                pagemap_scan: sandbox.pagemap_scan,
                threads: u32::try_from(threads.threads).unwrap_or(u32::MAX),
                niceness: threads.niceness,
                pool_memory_bytes_max: threads.pool_memory_bytes_max,
                seed: threads.seed,
                frame_bytes_max,
                snapshots_bytes_max: sandbox.snapshots_bytes_max,
            },
            cordons_max: cordons_max.max(2),
            clock,
            sink: Box::new(sink),
            listener: OnceLock::new(),
            posted: Mutex::default(),
            places: Mutex::default(),
            settled: Condvar::new(),
            closing: AtomicBool::new(false),
            closed: Condvar::new(),
            fresh_bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let watch = thread::Builder::new().name("cordons".into());
        let watched = Arc::clone(&shared);
        let cordons = Self {
            watch: Some(watch.spawn(move || watched.watch())?),
            shared,
        };
        let first = cordons
            .shared
            .assign(&mut cordons.shared.places(), &CordonKey::Shared);
        if let Some(first) = first {
            cordons.shared.wait_for(&first)?;
        }
        Ok(cordons)
    }

    /// From now on what cordons say is heard by `listener`, which is given each once it is ready, with a pipe that does not
    /// wait, and not on threads of their own: a thread that does the rest of the work as well need not be woken for it. Only the first listener counts.
    pub fn hear_on(&self, listener: impl Fn(OwnedFd, Voice) + Send + Sync + 'static) {
        let _ = self.shared.listener.set(Box::new(listener));
    }

    /// The processes that isolates are in, in no order, those that start included.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        let places = self.shared.places();
        let cordons = places.cordons.values();
        cordons.filter_map(|cordon| cordon.pid()).collect()
    }
}

impl Drop for Cordons {
    fn drop(&mut self) {
        {
            // Under the lock, so that nobody looks before and waits after.
            let _places = self.shared.places();
            self.shared.closing.store(true, Ordering::Relaxed);
            self.shared.closed.notify_all();
        }
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        let cordons: Vec<_> = self.shared.places().cordons.values().cloned().collect();
        for cordon in cordons {
            cordon.end("the server ended");
        }
    }
}

impl Scheduler for Cordons {
    fn send(&self, message: Message) {
        self.shared.send(message);
    }

    fn deliver(&self) {
        let posted = std::mem::take(&mut *self.shared.posted());
        for cordon in posted {
            cordon.deliver();
        }
    }

    fn is_memory_short(&self) -> bool {
        let shared = &self.shared;
        let used: u64 = shared.memory_bytes(&shared.places());
        let bytes_max = shared.set_up.pool_memory_bytes_max;
        let fresh = shared.fresh_bytes.load(Ordering::Relaxed);
        let room = (bytes_max / 10).max(fresh.saturating_mul(2));
        used.saturating_add(room) > bytes_max
    }

    fn suspect(&self, tenant: u64, sign: Sign) {
        self.shared.note(TenantId(tenant), sign);
    }

    /// As its cordons last said, which is at most a fifth of a second ago.
    fn usage_of(&self, tenant: u64) -> TenantUsage {
        let places = self.shared.places();
        let mut usage = TenantUsage {
            cpu_us: places.cpu_us_gone.get(&tenant).copied().unwrap_or(0),
            memory_bytes: 0,
            fresh_bytes: self.shared.fresh_bytes.load(Ordering::Relaxed),
        };
        for used in places
            .cordons
            .values()
            .filter_map(|cordon| cordon.used_by(tenant))
        {
            usage.cpu_us = usage.cpu_us.saturating_add(used.cpu_us);
            usage.memory_bytes = usage.memory_bytes.saturating_add(used.memory_bytes);
        }
        usage
    }

    /// Threads of cordons that are stuck don't count: their cordons are ended.
    fn health(&self) -> Health {
        let places = self.shared.places();
        let failing = places.cordons.is_empty() && places.failure.is_some();
        Health {
            threads: self.shared.set_up.threads as usize,
            threads_lost: usize::from(failing),
        }
    }

    fn stats(&self) -> Stats {
        let places = self.shared.places();
        let mut stats = Stats {
            memory_bytes: self.shared.memory_bytes(&places),
            panics: places.panics_gone,
            snapshot_hits: places.snapshot_hits_gone,
            cordons: places.cordons.len(),
            cordons_lost: self.shared.lost.load(Ordering::Relaxed),
            ..Stats::default()
        };
        for cordon in places.cordons.values() {
            let (state, (isolates, calls)) = (cordon.state(), cordon.ledger().counts());
            stats.isolates += isolates;
            stats.calls += calls;
            stats.queued += state.queued as usize;
            stats.running += state.running as usize;
            stats.alarms += state.alarms as usize;
            stats.panics = stats.panics.saturating_add(state.panics);
            stats.snapshot_hits = stats.snapshot_hits.saturating_add(state.snapshot_hits);
            stats.snapshot_bytes = stats.snapshot_bytes.saturating_add(state.snapshot_bytes);
        }
        stats
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, Places> {
        // Nothing under this lock can leave it half done.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn posted(&self) -> MutexGuard<'_, Vec<Arc<Cordon>>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn memory_bytes(&self, places: &Places) -> u64 {
        let cordons = places.cordons.values();
        cordons.map(|cordon| cordon.memory_bytes()).sum()
    }

    // --- in ---

    fn send(&self, message: Message) {
        let isolate = match &message {
            Message::Start { isolate, worker } => return self.start(*isolate, worker),
            Message::Call { isolate, .. }
            | Message::Cancel { isolate, .. }
            | Message::Settle { isolate, .. }
            | Message::Release { isolate, .. }
            | Message::Collect { isolate }
            | Message::End { isolate } => *isolate,
        };
        let cordon = self.places().isolates.get(&isolate).cloned();
        let call = match &message {
            Message::Call { call, .. } => Some((call.invocation, call.limits.wall_ms_max)),
            _ => None,
        };
        if let Some((invocation, wall_ms_max)) = call {
            let overdue_at = self.now() + Duration::from_millis(wall_ms_max) + OVERDUE_AFTER;
            let opened = cordon
                .as_ref()
                .is_some_and(|cordon| cordon.ledger().open(isolate, invocation, overdue_at));
            if !opened {
                return self.answer_lost(isolate, invocation, false, String::new());
            }
        }
        if let Some(cordon) = cordon {
            self.post(&cordon, message);
        }
    }

    /// Sends a message, together with others where this thread delivers them when it comes to rest.
    fn post(&self, cordon: &Arc<Cordon>, message: Message) {
        let order = Order::Message(message);
        if !delivers_at_rest() {
            cordon.send(&order);
        } else if cordon.post(&order) == Posted::First {
            self.posted().push(Arc::clone(cordon));
        }
    }

    /// Makes an isolate in the cordon that its tenant belongs to.
    fn start(&self, isolate: u64, worker: &WorkerSpec) {
        let now = self.now();
        let tenant = TenantId(worker.tenant);
        loop {
            let mut places = self.places();
            let key = places.suspicions.place(tenant, &worker.trust, now);
            let Some(cordon) = self.assign(&mut places, &key) else {
                drop(places);
                tracing::warn!(
                    cordons_max = self.cordons_max,
                    "no cordon is free for a tenant that shares none"
                );
                return self.emit(Event::Ended { isolate });
            };
            if !cordon.ledger().start(isolate, worker.tenant) {
                // It is just going. Whoever buries it waits for the places.
                places.forget(cordon.id);
                continue;
            }
            places.idle_since.remove(&cordon.id);
            places.isolates.insert(isolate, Arc::clone(&cordon));
            drop(places);
            let worker = worker.clone();
            return self.post(&cordon, Message::Start { isolate, worker });
        }
    }

    /// The cordon of a key: the one that it has, the spare one, or a new one. None where there are too many.
    fn assign(&self, places: &mut Places, key: &CordonKey) -> Option<Arc<Cordon>> {
        if let Some(id) = places.keys.get(key)
            && let Some(cordon) = places.cordons.get(id)
        {
            return Some(Arc::clone(cordon));
        }
        let spare = places.spare.take();
        let spare = spare.and_then(|id| places.cordons.get(&id).cloned());
        let cordon = match spare {
            Some(spare) => spare,
            None => self.open(places)?,
        };
        places.keys.insert(key.clone(), cordon.id);
        // The next one is on its way before it is asked for.
        if places.cordons.len() < self.cordons_max {
            places.spare = self.open(places).map(|spare| spare.id);
        }
        self.share_memory(places);
        Some(cordon)
    }

    /// Begins to start a cordon, on a thread of its own.
    fn open(&self, places: &mut Places) -> Option<Arc<Cordon>> {
        if places.cordons.len() >= self.cordons_max || self.is_closing() {
            return None;
        }
        let shared = self.itself.upgrade()?;
        places.last_id += 1;
        let cordon = Arc::new(Cordon::new(places.last_id, self.now()));
        cordon.send(&Order::SetUp(self.set_up));
        let kept = Arc::clone(&cordon);
        let keeper = thread::Builder::new().name(format!("cordon-{}", cordon.id));
        // The process dies with the thread that started it, so this one stays.
        if let Err(error) = keeper.spawn(move || shared.keep(&kept)) {
            tracing::error!(%error, "no thread for a cordon");
            return None;
        }
        places.cordons.insert(cordon.id, Arc::clone(&cordon));
        Some(cordon)
    }

    /// Each cordon that belongs to somebody may use what it has, and its part of what is free. Together they stay within
    /// what all may have, but for what one takes while it is being told.
    fn share_memory(&self, places: &Places) {
        let owned: Vec<_> = places
            .cordons
            .values()
            .filter(|cordon| places.spare != Some(cordon.id))
            .collect();
        let bytes_max = self.set_up.pool_memory_bytes_max;
        let free = bytes_max.saturating_sub(self.memory_bytes(places));
        let part = free / (owned.len() as u64).max(1);
        for cordon in owned {
            let bytes_max = (cordon.memory_bytes() + part).min(bytes_max);
            if cordon.is_told_anew(bytes_max) {
                cordon.send(&Order::PoolMemory { bytes_max });
            }
        }
    }

    // --- looking after them ---

    fn watch(&self) {
        let mut places = self.places();
        while !self.is_closing() {
            places = self
                .closed
                .wait_timeout(places, WATCH_EVERY)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            let now = self.now();
            let mut idle = Vec::new();
            for cordon in places.cordons.values() {
                let allowed = match cordon.is_ready() {
                    true => SILENCE_MAX,
                    false => START_MAX,
                };
                // What it has said and nobody has read is our fault.
                let trouble = if cordon.silence(now) > allowed && !cordon.is_unread() {
                    Some("the process that it was in was stuck")
                } else if cordon.ledger().is_overdue(now) {
                    Some("the process that it was in did not keep to a limit")
                } else {
                    None
                };
                if cordon.is_in_trouble(trouble.is_some(), now) {
                    cordon.end(trouble.unwrap_or_default());
                } else if trouble.is_none() && cordon.ledger().is_empty() {
                    idle.push(cordon.id);
                }
            }
            places.retire(&idle, now);
            self.share_memory(&places);
            let may_try = places
                .failure
                .as_ref()
                .is_none_or(|failure| now.saturating_sub(failure.at) > RETRY_AFTER);
            if places.spare.is_none() && places.cordons.len() < self.cordons_max && may_try {
                places.failure = None;
                places.spare = self.open(&mut places).map(|spare| spare.id);
            }
        }
    }

    /// Waits until a cordon is ready.
    fn wait_for(&self, cordon: &Arc<Cordon>) -> Result<(), CordonsError> {
        let mut places = self.places();
        while !cordon.is_ready() {
            if !places.cordons.contains_key(&cordon.id) {
                return Err(match places.failure.take() {
                    Some(failure) if failure.image => CordonsError::Image(failure.reason),
                    Some(failure) => CordonsError::Start(failure.reason),
                    None => CordonsError::Start("it ended".into()),
                });
            }
            places = self
                .settled
                .wait(places)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

impl Places {
    /// A cordon is gone, or going.
    fn forget(&mut self, id: u64) {
        if let Some(cordon) = self.cordons.remove(&id) {
            let state = cordon.state();
            self.panics_gone = self.panics_gone.saturating_add(state.panics);
            self.snapshot_hits_gone = self.snapshot_hits_gone.saturating_add(state.snapshot_hits);
        }
        self.keys.retain(|_, held| *held != id);
        self.idle_since.remove(&id);
        if self.spare == Some(id) {
            self.spare = None;
        }
    }

    /// Ends those that belong to one tenant or group and have been without an isolate for long.
    fn retire(&mut self, idle: &[u64], now: Duration) {
        self.idle_since.retain(|id, _| idle.contains(id));
        for id in idle {
            let shared = self.keys.get(&CordonKey::Shared) == Some(id);
            if shared || self.spare == Some(*id) {
                continue;
            }
            let since = *self.idle_since.entry(*id).or_insert(now);
            if now.saturating_sub(since) < IDLE_MAX {
                continue;
            }
            if let Some(cordon) = self.cordons.get(id).cloned() {
                self.forget(*id);
                cordon.retire();
            }
        }
    }
}
