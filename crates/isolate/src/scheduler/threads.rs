//! Isolates on threads of this process.

use super::{
    Health, Scheduler, Stats, TenantUsage,
    executor::Executor,
    queues::{Queues, Taken},
};
use crate::{
    actor::Pace,
    clock::Clock,
    message::{Event, Message},
    pool_memory::PoolMemory,
    sandbox::Sandbox,
};
use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

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

/// Runs isolates on threads of this process. Dropping it ends them all, unreported.
pub struct Threads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    executor: Executor,
    wake: Condvar,
    beats: Vec<Beat>,
    /// Of those who assist, whichever threads they are.
    assistants: [Beat; ASSISTANTS_MAX],
    closing: AtomicBool,
}

/// A thread's turn, for whoever watches.
#[derive(Default)]
struct Beat {
    /// When it began, in milliseconds of the monotonic clock and one more; 0 while the thread waits.
    began: AtomicU64,
    /// The thread's number; 0 before there is one.
    thread: AtomicI32,
    /// The last turn that was found to be long.
    long: Mutex<Option<LongTurn>>,
}

/// A turn that is long, when it was first found to be.
#[derive(Clone, Copy)]
struct LongTurn {
    began: u64,
    at: u64,
    cpu: Duration,
}

impl Beat {
    /// Takes a beat that nobody has, for this thread; false where somebody has it.
    fn claim(&self, now: u64) -> bool {
        let (free, order) = (0, Ordering::Relaxed);
        let is_mine = self.began.compare_exchange(free, now, order, order).is_ok();
        if is_mine {
            self.is_of_this_thread();
        }
        is_mine
    }

    fn is_of_this_thread(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Relaxed);
    }

    fn begin(&self, now: u64) {
        self.began.store(now, Ordering::Relaxed);
    }

    fn end(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// Whether its thread is stuck: in a turn that has taken long, and still works. One that does not work has no core on a
    /// busy machine, most likely, and gets longer. To be asked again and again: what a thread does is seen between two looks.
    fn is_lost(&self, now: u64, clock: &dyn Clock) -> bool {
        let began = self.began.load(Ordering::Relaxed);
        let took = Duration::from_millis(now.saturating_sub(began));
        if began == 0 || took <= TURN_LOST_AFTER {
            return false;
        }
        let Some(cpu) = clock.cpu_of(self.thread.load(Ordering::Relaxed)) else {
            return true;
        };
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        let first = match *long {
            Some(long) if long.began == began => long,
            _ => {
                let at = now;
                *long.insert(LongTurn { began, at, cpu })
            }
        };
        let watched = Duration::from_millis(now - first.at);
        let works = !watched.is_zero() && cpu.saturating_sub(first.cpu) >= watched / 2;
        works || took > TURN_STARVED_MAX
    }
}

/// Threads that assist at once; one more leaves its isolate to a thread of ours.
const ASSISTANTS_MAX: usize = 8;
/// Turns that one assistance takes at most: a call, what follows on it, and the end of the isolate that served the one before.
const ASSISTED_TURNS_MAX: usize = 4;
/// A turn that takes this long while its thread works is a stuck thread.
const TURN_LOST_AFTER: Duration = Duration::from_secs(1);
/// The same where the thread does not work: it waits for a core, or for ever.
const TURN_STARVED_MAX: Duration = Duration::from_secs(30);
/// A thread without work looks around this often, in case the clock was set rather than passed.
const PARKED_MAX: Duration = Duration::from_secs(1);

impl Threads {
    /// Starts the threads. Every event goes to `sink`, on whichever thread it happens; it must not wait.
    #[must_use]
    pub fn start(
        sandbox: Arc<Sandbox>,
        clock: Arc<dyn Clock>,
        config: ThreadsConfig,
        sink: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        let ThreadsConfig {
            threads,
            niceness,
            pool_memory_bytes_max,
            seed,
        } = config;
        let shared = Arc::new(Shared {
            executor: Executor::new(sandbox, clock, pool_memory_bytes_max, seed, Box::new(sink)),
            wake: Condvar::new(),
            beats: (0..threads).map(|_| Beat::default()).collect(),
            assistants: Default::default(),
            closing: AtomicBool::new(false),
        });
        let threads = (0..threads)
            .map(|index| {
                let shared = Arc::clone(&shared);
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

    /// What the isolates of each tenant have used that has had any.
    #[must_use]
    pub fn usages(&self) -> Vec<(u64, TenantUsage)> {
        self.shared.executor.usages()
    }

    /// The account of linear memory that all isolates draw on.
    #[must_use]
    pub fn pool_memory(&self) -> PoolMemory {
        self.shared.executor.pool_memory().clone()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        {
            // Under the lock, so that no thread looks before and falls asleep after.
            let _queues = self.shared.executor.lock();
            self.shared.closing.store(true, Ordering::Relaxed);
            self.shared.wake.notify_all();
        }
        // The last owner may have been an event that one of them was telling of: that one ends by itself.
        let this = thread::current().id();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != this {
                let _ = thread.join();
            }
        }
    }
}

impl Scheduler for Threads {
    fn send(&self, message: Message) {
        self.shared.executor.send(message, |queues| {
            if queues.parked > 0 {
                self.shared.wake.notify_one();
            }
        });
    }

    fn send_unheard(&self, message: Message) {
        self.shared.executor.send(message, |_| {});
    }

    fn assist(&self) {
        let now = self.shared.now();
        let Some(beat) = self.shared.assistants.iter().find(|beat| beat.claim(now)) else {
            self.shared.wake.notify_one();
            return;
        };
        // Only while all threads are at rest: otherwise they come to it by themselves, and soon.
        for _ in 0..ASSISTED_TURNS_MAX {
            let mut queues = self.shared.executor.lock();
            let taken = if queues.parked == self.shared.beats.len() {
                queues.take_fresh()
            } else {
                None
            };
            drop(queues);
            match taken {
                Some(taken) => self.shared.executor.run(taken, Pace::ASSISTED),
                None => break,
            }
        }
        beat.end();
        let queues = self.shared.executor.lock();
        // What was left over, or a time to keep that they do not know of.
        if queues.wants_thread() || queues.would_sleep_through() {
            self.shared.wake.notify_one();
        }
    }

    fn is_memory_short(&self) -> bool {
        self.shared.executor.is_memory_short()
    }

    fn usage_of(&self, tenant: u64) -> TenantUsage {
        self.shared.executor.usage_of(tenant)
    }

    fn health(&self) -> Health {
        let now = self.shared.now();
        let clock = self.shared.executor.clock();
        let beats = self.shared.beats.iter().chain(&self.shared.assistants);
        Health {
            threads: self.shared.beats.len(),
            threads_lost: beats.filter(|beat| beat.is_lost(now, clock)).count(),
        }
    }

    fn stats(&self) -> Stats {
        self.shared.executor.stats()
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.executor.clock().monotonic().as_millis() as u64 + 1
    }

    /// A thread's life.
    fn run(&self, index: usize) {
        self.beats[index].is_of_this_thread();
        while let Some(taken) = self.next() {
            self.beats[index].begin(self.now());
            self.executor.run(taken, Pace::OWN_THREAD);
            self.beats[index].end();
        }
    }

    /// The next isolate to run; waits for one. `None` when it is time to go.
    fn next(&self) -> Option<Taken> {
        let mut queues = self.executor.lock();
        loop {
            if self.closing.load(Ordering::Relaxed) {
                return None;
            }
            let now = self.executor.clock().monotonic();
            queues.ring(now);
            if let Some(taken) = queues.take_next() {
                self.wake_another(&queues);
                return Some(taken);
            }
            let wait = queues
                .alarm_next()
                .map_or(PARKED_MAX, |at| at.saturating_sub(now).min(PARKED_MAX));
            queues.park(now + wait);
            queues = self
                .wake
                .wait_timeout(queues, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            queues.unpark();
        }
    }

    /// Others may be asleep while there is more to do.
    fn wake_another(&self, queues: &Queues) {
        if queues.wants_thread() {
            self.wake.notify_one();
        }
    }
}
