//! Runs turns and acts on what comes of them: the same on threads and step by step.
//!
//! Holds the promise that every call is answered exactly once, whatever its isolate does and whatever goes wrong here.

use super::{
    Stats, TenantUsage,
    queues::{Queues, Taken},
};
use crate::{
    actor::{Actor, Effects, Mail, Pace, Surroundings, Turn},
    clock::Clock,
    message::{Event, Message, Outcome, Report, Usage, Verdict, VerdictKind},
    pool_memory::PoolMemory,
    sandbox::Sandbox,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

type Sink = Box<dyn Fn(Event) + Send + Sync>;

pub(super) struct Executor {
    queues: Mutex<Queues>,
    sandbox: Arc<Sandbox>,
    clock: Arc<dyn Clock>,
    pool_memory: PoolMemory,
    seed: Option<u64>,
    sink: Sink,
    panics: AtomicU64,
}

impl Executor {
    pub(super) fn new(
        sandbox: Arc<Sandbox>,
        clock: Arc<dyn Clock>,
        pool_memory_bytes_max: u64,
        seed: Option<u64>,
        sink: Sink,
    ) -> Self {
        let stacks_max = sandbox.config().running_max as usize;
        let pool_memory = PoolMemory::new(pool_memory_bytes_max);
        Self {
            queues: Mutex::new(Queues::new(stacks_max, pool_memory.clone())),
            sandbox,
            clock,
            pool_memory,
            seed,
            sink,
            panics: AtomicU64::new(0),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing that runs under this lock can leave it half done.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn pool_memory(&self) -> &PoolMemory {
        &self.pool_memory
    }

    pub(super) fn is_memory_short(&self) -> bool {
        self.pool_memory.is_short(self.sandbox.fresh_bytes())
    }

    pub(super) fn usage_of(&self, tenant: u64) -> TenantUsage {
        TenantUsage {
            cpu_us: self.lock().cpu_of(tenant).as_micros() as u64,
            memory_bytes: self.pool_memory.used_by(tenant),
            fresh_bytes: self.sandbox.fresh_bytes(),
        }
    }

    pub(super) fn usages(&self) -> Vec<(u64, TenantUsage)> {
        let tenants = self.pool_memory.tenants().into_iter();
        tenants
            .map(|tenant| (tenant, self.usage_of(tenant)))
            .collect()
    }

    pub(super) fn stats(&self) -> Stats {
        let queues = self.lock();
        Stats {
            isolates: queues.isolates(),
            queued: queues.queued(),
            running: queues.running(),
            calls: queues.calls(),
            alarms: queues.alarms(),
            memory_bytes: self.pool_memory.used(),
            panics: self.panics.load(Ordering::Relaxed),
            snapshot_hits: self.sandbox.snapshots.hits(),
            snapshot_bytes: self.sandbox.snapshots.bytes(),
            ..Stats::default()
        }
    }

    /// Takes a message in. `wake` is called, under the lock, where an isolate has become ready to run.
    pub(super) fn send(&self, message: Message, wake: impl FnOnce(&Queues)) {
        let now = self.clock.monotonic();
        let mut queues = self.lock();
        let (isolate, mail) = match message {
            Message::Start { isolate, worker } => return queues.start(isolate, worker),
            Message::Call { isolate, call } => {
                if call.invocation == 0 || !queues.open(isolate, &call, now) {
                    drop(queues);
                    return self.emit(lost(isolate, call.invocation));
                }
                (isolate, Mail::Call { call, arrived: now })
            }
            Message::Cancel {
                isolate,
                invocation,
            } => (isolate, Mail::Cancel { invocation }),
            Message::Settle {
                isolate,
                operation,
                answer,
            } => (isolate, Mail::Answer { operation, answer }),
            Message::Release { isolate, exports } => (isolate, Mail::Release { exports }),
            Message::Collect { isolate } => (isolate, Mail::Collect),
            Message::End { isolate } => {
                queues.end(isolate);
                (isolate, Mail::End)
            }
        };
        if queues.post(isolate, mail) {
            wake(&queues);
        }
    }

    /// Gives an isolate its turn.
    pub(super) fn run(&self, taken: Taken, pace: Pace) {
        let Taken {
            isolate,
            mut actor,
            urgent,
            stack_from,
        } = taken;
        if let Some((resting, mut actor)) = stack_from {
            self.contain(|| actor.give_back_stack());
            self.lock().put_back_without_stack(resting, actor);
        }
        let mut effects = Effects::default();
        let around = Surroundings {
            sandbox: &self.sandbox,
            clock: &*self.clock,
            pool_memory: &self.pool_memory,
            seed: self.seed,
            pace,
        };
        let turn = catch_unwind(AssertUnwindSafe(|| {
            if urgent {
                actor.turn_urgent(&around, &mut effects)
            } else {
                actor.turn(&around, &mut effects)
            }
        }));
        match turn {
            Ok(turn) => self.after_turn(isolate, actor, turn, effects),
            Err(_) => self.after_panic(isolate, actor, effects),
        }
    }

    fn after_turn(&self, isolate: u64, actor: Box<Actor>, turn: Turn, effects: Effects) {
        // Before anyone else can run the isolate, so that its events stay in order.
        self.report(isolate, effects.events);
        let mut queues = self.lock();
        queues.charge(isolate, effects.cpu);
        for change in effects.alarms {
            queues.change_alarm(isolate, change);
        }
        if turn != Turn::Ended {
            return queues.put_back(isolate, actor, turn);
        }
        let unserved = queues.remove(isolate);
        drop(queues);
        drop(actor);
        for invocation in unserved {
            self.emit(lost(isolate, invocation));
        }
        self.emit(Event::Ended { isolate });
    }

    /// A panic is a fault of ours. It costs the isolate, and nobody else.
    fn after_panic(&self, isolate: u64, actor: Box<Actor>, effects: Effects) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        // What is left of the isolate goes first: its place is free when that is said.
        self.contain(|| drop(actor));
        self.report(isolate, effects.events);
        let mut queues = self.lock();
        queues.charge(isolate, effects.cpu);
        let unserved = queues.remove(isolate);
        drop(queues);
        for invocation in unserved {
            let verdict = Verdict {
                detail: "the host failed; the isolate was given up".into(),
                ..Verdict::without_limit(VerdictKind::Trap, true)
            };
            self.emit(finished(isolate, invocation, verdict));
        }
        self.emit(Event::Ended { isolate });
    }

    /// Passes reports on, of calls that have not been answered.
    fn report(&self, isolate: u64, mut events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut queues = self.lock();
        events.retain(|event| match event {
            Event::Finished { invocation, .. } => queues.close(isolate, *invocation),
            Event::Logged { .. }
            | Event::Lingered { .. }
            | Event::Called { .. }
            | Event::CallDropped { .. }
            | Event::OutboundRefused { .. }
            | Event::Loading { .. }
            | Event::Released { .. } => true,
            Event::Ended { .. } => false,
        });
        drop(queues);
        for event in events {
            self.emit(event);
        }
    }

    fn emit(&self, event: Event) {
        self.contain(|| (self.sink)(event));
    }

    /// Keeps a panic from taking the thread along.
    fn contain(&self, act: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(act)).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
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
        held: false,
        isolate_reusable: false,
    }
}
