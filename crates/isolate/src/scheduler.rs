//! Running isolates: the [`Scheduler`] trait, and [`Threads`], which runs them in this process.
//!
//! Isolates share a few threads. Each runs for about a millisecond at a time; who is new or was waiting goes before who
//! has just used a whole slice, though not always, so that neither can starve the other.

use crate::{
    actor::{Actor, Alarm, Effects, Mail, Surroundings, Turn},
    border::PoolMemory,
    clock::Clock,
    message::{Event, Message, Outcome, Report, Usage, Verdict, VerdictKind},
    sandbox::Sandbox,
};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Where isolates run. What is sent is bytes and numbers, so that it can be a thread or another process.
pub trait Scheduler: Send + Sync {
    /// Sends a message. Never waits.
    fn send(&self, message: Message);
    /// Whether it is well.
    fn health(&self) -> Health;
    /// Figures for metrics.
    fn stats(&self) -> Stats;
}

/// Whether a scheduler is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Threads that run isolates.
    pub threads: usize,
    /// Threads that have been in one slice for longer than a second: they are stuck, and the process should end.
    pub threads_lost: usize,
}

/// Figures for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Isolates that exist.
    pub isolates: usize,
    /// Isolates that wait for a thread.
    pub queued: usize,
    /// Isolates in the middle of running code.
    pub running: usize,
    /// Linear memory of all isolates in bytes.
    pub memory_bytes: u64,
    /// Panics of the host that were contained. Each is a fault of ours.
    pub panics: u64,
}

/// How [`Threads`] runs.
pub struct ThreadsConfig {
    /// Threads; a core each is right.
    pub threads: usize,
    /// How far their priority is lowered, so that the threads which serve the network come first.
    pub niceness: i32,
    /// Linear memory of all isolates together, in bytes.
    pub pool_memory_bytes_max: u64,
    /// Gives every isolate the same randomness, for runs that must repeat themselves.
    pub seed: Option<u64>,
}

/// Runs isolates on threads of this process.
pub struct Threads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

type Sink = Box<dyn Fn(Event) + Send + Sync>;

struct Shared {
    queues: Mutex<Queues>,
    wake: Condvar,
    sandbox: Arc<Sandbox>,
    clock: Arc<dyn Clock>,
    pool_memory: PoolMemory,
    seed: Option<u64>,
    sink: Sink,
    beats: Vec<Beat>,
    panics: AtomicU64,
    closing: AtomicBool,
}

/// When a thread began its slice, in milliseconds of the monotonic clock and one more; 0 while it waits.
#[derive(Default)]
struct Beat(AtomicU64);

#[derive(Default)]
struct Queues {
    isolates: HashMap<u64, Slot>,
    /// New, or were waiting.
    fresh: VecDeque<u64>,
    /// Have used a whole slice.
    used: VecDeque<u64>,
    fresh_in_a_row: u32,
    alarms: BTreeMap<(Duration, u64), (u64, Mail)>,
    alarm_count: u64,
    parked: usize,
    stacks_held: usize,
}

/// An isolate, as the queues know it.
struct Slot {
    /// Away while a thread runs it.
    actor: Option<Box<Actor>>,
    inbox: Vec<Mail>,
    queued: bool,
    holds_stack: bool,
    /// Alarms that are set, so that none outlives its reason.
    alarms: HashMap<AlarmOf, (Duration, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum AlarmOf {
    WallTime(u64),
    Operation(u64),
}

/// After this many isolates that were waiting, one that has used a whole slice gets its turn.
const FRESH_IN_A_ROW_MAX: u32 = 8;
/// A slice that takes this long is a stuck thread.
const SLICE_LOST_AFTER: Duration = Duration::from_secs(1);
const WATCHDOG_PERIOD: Duration = Duration::from_millis(200);

impl Threads {
    /// Starts the threads. Every event goes to `sink`, on whichever thread it happens; it must not wait.
    #[must_use]
    pub fn start(
        sandbox: Arc<Sandbox>,
        clock: Arc<dyn Clock>,
        config: ThreadsConfig,
        sink: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            wake: Condvar::new(),
            sandbox,
            clock,
            pool_memory: PoolMemory::new(config.pool_memory_bytes_max),
            seed: config.seed,
            sink: Box::new(sink),
            beats: (0..config.threads).map(|_| Beat::default()).collect(),
            panics: AtomicU64::new(0),
            closing: AtomicBool::new(false),
        });
        let threads = (0..config.threads)
            .map(|index| {
                let shared = Arc::clone(&shared);
                let niceness = config.niceness;
                thread::Builder::new()
                    .name(format!("isolates-{index}"))
                    .spawn(move || {
                        // On Linux the priority is the thread's; without the right to lower it nothing is lost.
                        let _ = rustix::process::setpriority_process(
                            Some(rustix::thread::gettid()),
                            niceness,
                        );
                        shared.run(index);
                    })
                    .expect("a thread can be started")
            })
            .collect();
        Self { shared, threads }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Scheduler for Threads {
    fn send(&self, message: Message) {
        self.shared.send(message);
    }

    fn health(&self) -> Health {
        let now = self.shared.clock.monotonic().as_millis() as u64 + 1;
        let lost = |beat: &&Beat| {
            let began = beat.0.load(Ordering::Relaxed);
            began > 0 && now.saturating_sub(began) > SLICE_LOST_AFTER.as_millis() as u64
        };
        Health {
            threads: self.shared.beats.len(),
            threads_lost: self.shared.beats.iter().filter(lost).count(),
        }
    }

    fn stats(&self) -> Stats {
        let queues = self.shared.lock();
        Stats {
            isolates: queues.isolates.len(),
            queued: queues.fresh.len() + queues.used.len(),
            running: queues.stacks_held,
            memory_bytes: self.shared.pool_memory.used(),
            panics: self.shared.panics.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing that runs under this lock can leave it half done.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: Message) {
        let now = self.clock.monotonic();
        let mut queues = self.lock();
        match message {
            Message::Start { isolate, worker } => {
                queues
                    .isolates
                    .insert(isolate, Slot::new(Actor::new(isolate, worker)));
            }
            Message::Call { isolate, call } => {
                let invocation = call.invocation;
                if !queues.isolates.contains_key(&isolate) {
                    drop(queues);
                    (self.sink)(lost(isolate, invocation));
                    return;
                }
                let alarm = Alarm {
                    at: now + Duration::from_millis(call.limits.wall_ms_max),
                    mail: Mail::WallTime { invocation },
                };
                queues.set_alarm(isolate, alarm);
                self.post(&mut queues, isolate, Mail::Call { call, arrived: now });
            }
            Message::Cancel {
                isolate,
                invocation,
            } => self.post(&mut queues, isolate, Mail::Cancel { invocation }),
            Message::End { isolate } => self.post(&mut queues, isolate, Mail::End),
        }
    }

    fn post(&self, queues: &mut Queues, isolate: u64, mail: Mail) {
        if queues.post(isolate, mail) && queues.parked > 0 {
            self.wake.notify_one();
        }
    }

    /// A thread's life.
    fn run(&self, index: usize) {
        let mut effects = Effects::default();
        while let Some((isolate, mut actor)) = self.next() {
            self.beats[index].0.store(
                self.clock.monotonic().as_millis() as u64 + 1,
                Ordering::Relaxed,
            );
            let around = Surroundings {
                sandbox: &self.sandbox,
                clock: &*self.clock,
                pool_memory: &self.pool_memory,
                seed: self.seed,
            };
            let turn = catch_unwind(AssertUnwindSafe(|| actor.turn(&around, &mut effects)));
            self.beats[index].0.store(0, Ordering::Relaxed);
            match turn {
                Ok(turn) => self.after_turn(isolate, actor, turn, &mut effects),
                Err(_) => {
                    self.panics.fetch_add(1, Ordering::Relaxed);
                    effects = Effects::default();
                    self.after_panic(isolate);
                }
            }
        }
    }

    /// The next isolate to run; waits for one. `None` when it is time to go.
    fn next(&self) -> Option<(u64, Box<Actor>)> {
        let mut queues = self.lock();
        loop {
            if self.closing.load(Ordering::Relaxed) {
                return None;
            }
            let now = self.clock.monotonic();
            queues.ring(now);
            let stacks_left = queues.stacks_held < self.sandbox.config().running_max as usize;
            if let Some(next) = queues.take_next(stacks_left) {
                // Others may be asleep while there is more to do.
                if queues.parked > 0 && !(queues.fresh.is_empty() && queues.used.is_empty()) {
                    self.wake.notify_one();
                }
                return Some(next);
            }
            queues.parked += 1;
            let wait = queues
                .alarms
                .keys()
                .next()
                .map_or(WATCHDOG_PERIOD * 5, |(at, _)| at.saturating_sub(now));
            queues = self
                .wake
                .wait_timeout(queues, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            queues.parked -= 1;
        }
    }

    fn after_turn(&self, isolate: u64, actor: Box<Actor>, turn: Turn, effects: &mut Effects) {
        let mut unserved = Vec::new();
        {
            let mut queues = self.lock();
            for event in &effects.events {
                if let Event::Finished { invocation, .. } = event {
                    queues.clear_alarm(isolate, AlarmOf::WallTime(*invocation));
                }
            }
            for operation in effects.alarms_cancelled.drain(..) {
                queues.clear_alarm(isolate, AlarmOf::Operation(operation));
            }
            for alarm in effects.alarms.drain(..) {
                queues.set_alarm(isolate, alarm);
            }
            if turn == Turn::Ended {
                unserved = queues.remove(isolate);
            } else if queues.put_back(isolate, actor, turn == Turn::More) && queues.parked > 0 {
                self.wake.notify_one();
            }
        }
        for event in effects.events.drain(..) {
            (self.sink)(event);
        }
        for invocation in unserved {
            (self.sink)(lost(isolate, invocation));
        }
    }

    /// A panic is a fault of ours. It costs the isolate, and nobody else.
    fn after_panic(&self, isolate: u64) {
        let unserved = {
            let mut queues = self.lock();
            let mut invocations: Vec<u64> = queues
                .isolates
                .get(&isolate)
                .map(|slot| {
                    slot.alarms
                        .keys()
                        .filter_map(|of| match of {
                            AlarmOf::WallTime(invocation) => Some(*invocation),
                            AlarmOf::Operation(_) => None,
                        })
                        .collect()
                })
                .unwrap_or_default();
            invocations.sort_unstable();
            queues.remove(isolate);
            invocations
        };
        let verdict = Verdict {
            detail: "the host failed; the isolate was given up".into(),
            ..Verdict::without_limit(VerdictKind::Trap, true)
        };
        for invocation in unserved {
            (self.sink)(finished(isolate, invocation, verdict.clone()));
        }
        (self.sink)(Event::Ended { isolate });
    }
}

/// A call came for an isolate that is no more: none of its code ran.
fn lost(isolate: u64, invocation: u64) -> Event {
    finished(
        isolate,
        invocation,
        Verdict::without_limit(VerdictKind::IsolateLost, false),
    )
}

fn finished(isolate: u64, invocation: u64, verdict: Verdict) -> Event {
    let report = Report {
        outcome: Outcome::Verdict(verdict),
        usage: Usage::default(),
        logs: Vec::new(),
        log_bytes_dropped: 0,
    };
    Event::Finished {
        isolate,
        invocation,
        report: Box::new(report),
        isolate_reusable: false,
    }
}

impl Slot {
    fn new(actor: Actor) -> Self {
        Self {
            actor: Some(Box::new(actor)),
            inbox: Vec::new(),
            queued: false,
            holds_stack: false,
            alarms: HashMap::new(),
        }
    }
}

impl Queues {
    /// Returns whether an isolate has become ready to run.
    fn post(&mut self, isolate: u64, mail: Mail) -> bool {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return false;
        };
        slot.inbox.push(mail);
        if slot.queued || slot.actor.is_none() {
            return false;
        }
        slot.queued = true;
        self.fresh.push_back(isolate);
        true
    }

    fn set_alarm(&mut self, isolate: u64, alarm: Alarm) {
        let of = match &alarm.mail {
            Mail::WallTime { invocation } => AlarmOf::WallTime(*invocation),
            Mail::Settle { operation, .. } => AlarmOf::Operation(*operation),
            Mail::Call { .. } | Mail::Cancel { .. } | Mail::End => return,
        };
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return;
        };
        self.alarm_count += 1;
        let key = (alarm.at, self.alarm_count);
        slot.alarms.insert(of, key);
        self.alarms.insert(key, (isolate, alarm.mail));
    }

    fn clear_alarm(&mut self, isolate: u64, of: AlarmOf) {
        if let Some(key) = self
            .isolates
            .get_mut(&isolate)
            .and_then(|slot| slot.alarms.remove(&of))
        {
            self.alarms.remove(&key);
        }
    }

    /// Posts the mail of every alarm that is due.
    fn ring(&mut self, now: Duration) {
        while let Some(entry) = self.alarms.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let (isolate, mail) = entry.remove();
            if let Some(slot) = self.isolates.get_mut(&isolate) {
                match &mail {
                    Mail::WallTime { invocation } => {
                        slot.alarms.remove(&AlarmOf::WallTime(*invocation))
                    }
                    Mail::Settle { operation, .. } => {
                        slot.alarms.remove(&AlarmOf::Operation(*operation))
                    }
                    Mail::Call { .. } | Mail::Cancel { .. } | Mail::End => None,
                };
            }
            self.post(isolate, mail);
        }
    }

    /// Takes the isolate whose turn it is. Without stacks left only those that hold one can go on.
    fn take_next(&mut self, stacks_left: bool) -> Option<(u64, Box<Actor>)> {
        loop {
            let used_is_due = self.fresh_in_a_row >= FRESH_IN_A_ROW_MAX && !self.used.is_empty();
            let from_fresh = stacks_left && !self.fresh.is_empty() && !used_is_due;
            let isolate = if from_fresh {
                self.fresh_in_a_row += 1;
                self.fresh.pop_front()?
            } else {
                self.fresh_in_a_row = 0;
                self.used.pop_front()?
            };
            let Some(slot) = self.isolates.get_mut(&isolate) else {
                continue;
            };
            slot.queued = false;
            let Some(mut actor) = slot.actor.take() else {
                continue;
            };
            for mail in slot.inbox.drain(..) {
                actor.post(mail);
            }
            return Some((isolate, actor));
        }
    }

    /// Returns whether the isolate is ready to run again.
    fn put_back(&mut self, isolate: u64, actor: Box<Actor>, used_slice: bool) -> bool {
        let Some(slot) = self.isolates.get_mut(&isolate) else {
            return false;
        };
        let holds = actor.holds_stack();
        match (slot.holds_stack, holds) {
            (false, true) => self.stacks_held += 1,
            (true, false) => self.stacks_held -= 1,
            _ => {}
        }
        slot.holds_stack = holds;
        slot.actor = Some(actor);
        if used_slice {
            slot.queued = true;
            self.used.push_back(isolate);
        } else if !slot.inbox.is_empty() {
            slot.queued = true;
            self.fresh.push_back(isolate);
        }
        slot.queued
    }

    /// Forgets an isolate; returns the calls that came while it ended.
    fn remove(&mut self, isolate: u64) -> Vec<u64> {
        let Some(slot) = self.isolates.remove(&isolate) else {
            return Vec::new();
        };
        if slot.holds_stack {
            self.stacks_held -= 1;
        }
        for key in slot.alarms.values() {
            self.alarms.remove(key);
        }
        slot.inbox
            .into_iter()
            .filter_map(|mail| match mail {
                Mail::Call { call, .. } => Some(call.invocation),
                _ => None,
            })
            .collect()
    }
}
