//! The time as the core is told it, and who wakes up when nothing else happens.
//!
//! Calls that wait for a quota or for an isolate begin, or are refused, at times that the core names. One thread waits for
//! them; it holds the service only while it tells it that time has passed.

use super::Service;
use coracle_loader::Event;
use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Tells the time, and wakes the service at the next one that it waits for.
pub(super) struct Timekeeper {
    start: Instant,
    wake: Mutex<Wake>,
    changed: Condvar,
}

#[derive(Default)]
struct Wake {
    at_ms: Option<u64>,
    is_over: bool,
}

impl Timekeeper {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            wake: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Milliseconds since the service was made.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When to wake the service next; `None` is not at all.
    pub(super) fn wake_at(&self, at_ms: Option<u64>) {
        self.lock().at_ms = at_ms;
        self.changed.notify_one();
    }

    /// The service is gone.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_one();
    }

    /// Waits for the time to wake the service; false when it is over.
    fn wait(&self) -> bool {
        let mut wake = self.lock();
        loop {
            if wake.is_over {
                return false;
            }
            let now_ms = self.now_ms();
            let left = match wake.at_ms {
                Some(at_ms) if at_ms <= now_ms => {
                    wake.at_ms = None;
                    return true;
                }
                // A clock that counts whole milliseconds is up to one behind.
                Some(at_ms) => Duration::from_millis(at_ms - now_ms),
                None => Duration::MAX,
            };
            let waited = self.changed.wait_timeout(wake, left);
            wake = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wake> {
        self.wake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Starts the thread that tells the core of time. It ends with the service.
    ///
    /// # Errors
    /// There can be no thread.
    pub(crate) fn start_time(self: &Arc<Self>) -> io::Result<()> {
        let (timekeeper, service) = (Arc::clone(&self.timekeeper), Arc::downgrade(self));
        let keep = move || {
            while timekeeper.wait() {
                match service.upgrade() {
                    Some(service) => service.time_passed(),
                    None => return,
                }
            }
        };
        thread::Builder::new().name("time".into()).spawn(keep)?;
        Ok(())
    }

    fn time_passed(&self) {
        self.with(|state| {
            for tenant in state.measured.clone() {
                self.measure(state, tenant);
            }
            state.tell(Event::TimePassed);
            // Whatever it was woken for is done: the next time is a new one.
            state.wake_at_ms = None;
        });
    }
}
