//! A scheduler without threads: whoever holds it runs isolates a turn at a time.

use super::{Health, Scheduler, Stats, TenantUsage, executor::Executor};
use crate::{
    actor::Pace,
    clock::Clock,
    message::{Event, Message},
    sandbox::Sandbox,
};
use std::{sync::Arc, time::Duration};

/// How a [`Stepper`] runs.
pub struct StepperConfig {
    /// Linear memory of all isolates together, in bytes.
    pub pool_memory_bytes_max: u64,
    /// Gives every isolate the same randomness, for runs that must repeat themselves.
    pub seed: Option<u64>,
}

/// Runs isolates on the thread that calls [`Stepper::step`], by the same rules as [`Threads`](super::Threads).
///
/// For simulation, where the clock is not the machine's, and for measuring what a turn costs. With a seed, a clock that
/// stands still and the same messages it does the same every time.
pub struct Stepper(Executor);

impl Stepper {
    /// Makes a scheduler with no isolates. Every event goes to `sink`.
    #[must_use]
    pub fn new(
        sandbox: Arc<Sandbox>,
        clock: Arc<dyn Clock>,
        config: StepperConfig,
        sink: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        Self(Executor::new(
            sandbox,
            clock,
            config.pool_memory_bytes_max,
            config.seed,
            Box::new(sink),
        ))
    }

    /// Gives the isolate that is next its turn, of about a slice. False where none has anything to do at this time.
    pub fn step(&self) -> bool {
        let mut queues = self.0.lock();
        queues.ring(self.0.clock().monotonic());
        let next = queues.take_next();
        drop(queues);
        match next {
            Some(taken) => {
                self.0.run(taken, Pace::OWN_THREAD);
                true
            }
            None => false,
        }
    }

    /// The time of the clock at which there will be something to do, if nothing is sent before.
    #[must_use]
    pub fn alarm_next(&self) -> Option<Duration> {
        self.0.lock().alarm_next()
    }
}

impl Scheduler for Stepper {
    fn send(&self, message: Message) {
        self.0.send(message, |_| {});
    }

    fn usage_of(&self, tenant: u64) -> TenantUsage {
        self.0.usage_of(tenant)
    }

    fn health(&self) -> Health {
        Health {
            threads: 0,
            threads_lost: 0,
        }
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}
