//! The time, behind a trait, because decisions depend on it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the time comes from. Simulated in tests.
pub trait Clock: Send + Sync + 'static {
    /// A time that never goes back, from any fixed point on.
    fn monotonic(&self) -> Duration;
    /// Milliseconds since the epoch: what the guest's `Date.now()` shows. Whole, because finer time would help a
    /// worker to measure what it should not.
    fn epoch_ms(&self) -> f64;
    /// CPU time of the calling thread.
    fn thread_cpu(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn epoch_ms(&self) -> f64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_millis() as f64)
    }

    fn thread_cpu(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_nsec.unsigned_abs() as u32,
        )
    }
}
