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
    /// CPU time of a thread of this process, by its number (`gettid`); none of one that has ended. Where time is simulated,
    /// threads use all of it.
    fn cpu_of(&self, _thread: i32) -> Option<Duration> {
        Some(self.monotonic())
    }
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

    fn cpu_of(&self, thread: i32) -> Option<Duration> {
        // As in the kernel's include/linux/posix-timers.h: the number's complement, one thread's, what it ran.
        const OF_A_THREAD_AS_SCHEDULED: i32 = 4 | 2;
        let clock = (!thread << 3) | OF_A_THREAD_AS_SCHEDULED;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        #[expect(unsafe_code, reason = "rustix has no clocks of other threads")]
        // SAFETY: `time` is there to be written to, and a clock that there is not is an error.
        let told = unsafe { libc::clock_gettime(clock, &raw mut time) };
        (told == 0).then(|| {
            Duration::new(
                time.tv_sec.unsigned_abs(),
                time.tv_nsec.unsigned_abs() as u32,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_threads_cpu_time_is_that_of_what_it_did() {
        let clock = SystemClock::default();
        let (tell, told) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let working = std::thread::spawn(move || {
            let clock = SystemClock::default();
            while clock.thread_cpu() < Duration::from_millis(20) {}
            tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                .expect("somebody listens");
            // It rests, and uses no more.
            let _ = released.recv();
        });
        let thread = told.recv().expect("it works");
        let used = clock.cpu_of(thread).expect("it is there");
        assert!(used >= Duration::from_millis(20), "{used:?}");
        drop(release);
        working.join().expect("whole");
        assert_eq!(clock.cpu_of(i32::MAX >> 4), None);
    }
}
