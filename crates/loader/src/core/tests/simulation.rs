//! Random events from a seed, a runtime of random speed, and every rule checked after every event.

use super::super::*;
use super::Mutation;
use super::broken::Subject;
use super::model::{Model, Tenant, Where};
use std::collections::BTreeMap;

const STEPS: u64 = 1_500;
const SEEDS: std::ops::Range<u64> = 1..201;

/// Seeds that once found something, kept for good.
const SEEDS_KEPT: [u64; 0] = [];

/// xorshift64*: small, the same on every machine, and good enough to shuffle with.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, mut from: impl Iterator<Item = T> + Clone) -> Option<T> {
        let count = from.clone().count() as u64;
        if count == 0 {
            None
        } else {
            from.nth(self.below(count) as usize)
        }
    }
}

struct Simulation {
    random: Random,
    subject: Subject,
    model: Model,
    tenants: [TenantId; 3],
    now_ms: u64,
    drains: bool,
    /// Everything that was ever done, in order.
    trace: Vec<(u64, Event, Vec<Effect>)>,
    /// What the core was made with.
    made_with: (CoreConfig, Vec<TenantPolicy>),
}

impl Simulation {
    fn new(seed: u64, broken: Option<Mutation>) -> Self {
        let mut random = Random::new(seed);
        let config = CoreConfig {
            isolates_max: 1 + random.below(10),
            calls_in_flight_max: 4 + random.below(20),
            calls_in_flight_per_session_max: 2 + random.below(10),
            workers_per_session_max: 1 + random.below(6),
            calls_queued_max: random.below(10),
            queue_wait_ms_max: 1 + random.below(3_000),
        };
        let mut subject = Subject::new(config, broken);
        let (mut tenants, mut policies) = (BTreeMap::new(), Vec::new());
        let ids = [(); 3].map(|()| {
            let policy = policy(&mut random);
            let id = subject.allocate_tenant(policy.clone());
            tenants.insert(id, Tenant::new(policy.clone()));
            policies.push(policy);
            id
        });
        let drains = random.chance(50);
        Self {
            random,
            subject,
            model: Model::new(config, tenants),
            tenants: ids,
            now_ms: 0,
            drains,
            trace: Vec::new(),
            made_with: (config, policies),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            if let Some(event) = self.next_event(step) {
                self.step(event)?;
            }
        }
        self.close()
    }

    /// Time passes by itself, so that what comes of it can be told from what comes of the event. That one event does both as
    /// well is for [`time_takes_effect_before_what_happens`].
    fn step(&mut self, event: Event) -> Result<(), String> {
        let passes_ms = match self.random.below(20) {
            0 => self.random.below(2_000),
            1..4 => self.random.below(100),
            _ => self.random.below(3),
        };
        self.now_ms += passes_ms;
        if passes_ms > 0 {
            self.tell(Event::TimePassed)?;
        }
        self.tell(event)
    }

    fn tell(&mut self, event: Event) -> Result<(), String> {
        let mut effects = Vec::new();
        let (model, subject) = (&mut self.model, &mut self.subject);
        let outcome = model.step(subject, self.now_ms, event, &mut effects);
        self.trace.push((self.now_ms, event, effects));
        outcome
    }

    /// All sessions close, the runtime confirms what it was told to end, and nothing is left.
    fn close(&mut self) -> Result<(), String> {
        let sessions: Vec<SessionId> = self.model.sessions.keys().copied().collect();
        for session in sessions {
            self.step(Event::SessionClosed { session })?;
        }
        let isolates: Vec<IsolateId> = self.model.isolates.keys().copied().collect();
        for isolate in isolates {
            self.step(Event::IsolateEnded { isolate })?;
        }
        let core = self.subject.core();
        match core.is_empty() {
            true => Ok(()),
            false => Err(format!("left behind: {:?}", core.gauges())),
        }
    }

    fn next_event(&mut self, step: u64) -> Option<Event> {
        let Self { random, model, .. } = self;
        if self.drains && step > STEPS * 9 / 10 && random.chance(5) {
            return Some(match model.draining && random.chance(50) {
                true => Event::DrainDeadline,
                false => Event::DrainStarted,
            });
        }
        match random.below(100) {
            0..3 => {
                let session = self.subject.core().allocate_session();
                let tenant = random.pick(self.tenants.iter().copied())?;
                Some(Event::SessionOpened { session, tenant })
            }
            3..4 => Some(Event::SessionClosed {
                session: random.pick(model.sessions.keys().copied())?,
            }),
            4..12 => {
                let worker = self.subject.core().allocate_worker();
                // One in twenty crosses the end of its session.
                let session = match random.chance(5) {
                    true => SessionId(u64::MAX),
                    false => random.pick(model.sessions.keys().copied())?,
                };
                Some(Event::WorkerLoaded { worker, session })
            }
            12..15 => Some(Event::WorkerReleased {
                worker: random.pick(model.workers.keys().copied())?,
            }),
            15..50 => {
                let call = self.subject.core().allocate_call();
                let worker = match random.chance(2) {
                    true => WorkerId(u64::MAX),
                    false => random.pick(model.workers.keys().copied())?,
                };
                let wait_ms_max = match random.chance(30) {
                    true => 1 + random.below(300),
                    false => 100 + random.below(5_000),
                };
                Some(Event::CallArrived {
                    call,
                    worker,
                    wait_ms_max,
                })
            }
            50..54 => Some(Event::CallDropped {
                call: random.pick(model.calls.keys().copied())?,
            }),
            54..78 => {
                let runs = model
                    .calls
                    .iter()
                    .filter(|(_, known)| known.place != Where::Waiting);
                let call = random.pick(runs.map(|(call, _)| *call))?;
                Some(Event::CallFinished {
                    call,
                    isolate_reusable: random.chance(85),
                })
            }
            78..92 => {
                let ending = model.isolates.iter().filter(|(_, inside)| inside.ending);
                Some(Event::IsolateEnded {
                    isolate: random.pick(ending.map(|(isolate, _)| *isolate))?,
                })
            }
            92..95 => {
                let tenant = random.pick(self.tenants.iter().copied())?;
                let known = &model.tenants[&tenant];
                let taken = model.isolates.values().filter(|one| one.tenant == tenant);
                let memory_bytes = taken.count() as u64 * random.below(2 * FRESH_BYTES);
                Some(Event::TenantMeasured {
                    tenant,
                    cpu_us: known.cpu_us + random.below(700_000),
                    memory_bytes,
                    fresh_bytes: FRESH_BYTES,
                })
            }
            95 => Some(Event::BytesSent {
                tenant: random.pick(self.tenants.iter().copied())?,
                bytes: random.below(40),
            }),
            96 => Some(Event::TimePassed),
            97 => Some(Event::IsolateEnded {
                isolate: random.pick(model.isolates.keys().copied())?,
            }),
            98 if random.chance(30) => Some(Event::MemoryShort),
            _ => self.stale_event(),
        }
    }

    /// Something that was true once, or an answer that comes twice.
    fn stale_event(&mut self) -> Option<Event> {
        let (_, event, _) = *self.random.pick(self.trace.iter())?;
        match event {
            Event::CallFinished { .. } | Event::IsolateEnded { .. } | Event::CallDropped { .. } => {
                Some(event)
            }
            Event::SessionClosed { .. } | Event::WorkerReleased { .. } => Some(event),
            _ => None,
        }
    }
}

/// What a fresh isolate takes of memory.
const FRESH_BYTES: u64 = 100;

/// What a tenant may have, some of it bounded so closely that it matters.
fn policy(random: &mut Random) -> TenantPolicy {
    let mut sometimes = |least: u64, span: u64| match random.chance(40) {
        true => Some(least + random.below(span)),
        false => None,
    };
    TenantPolicy {
        isolates_max: sometimes(1, 4),
        cpu_seconds_per_minute_max: sometimes(1, 20),
        loads_per_second_max: sometimes(1, 20),
        memory_bytes_max: sometimes(FRESH_BYTES, 6 * FRESH_BYTES),
        bytes_out_per_minute_max: sometimes(20, 300),
        weight: 1 << random.below(3),
        trust: Trust::Shared,
    }
}

fn run(seed: u64, broken: Option<Mutation>) -> (Simulation, Result<(), String>) {
    let mut simulation = Simulation::new(seed, broken);
    let outcome = simulation.run();
    (simulation, outcome)
}

#[test]
fn every_rule_holds_after_every_event() {
    let mut seen = BTreeSet::new();
    for seed in SEEDS.chain(SEEDS_KEPT) {
        let (simulation, outcome) = run(seed, None);
        if let Err(broken_rule) = outcome {
            let tail = simulation.trace.len().saturating_sub(12);
            let tail: Vec<String> = simulation.trace[tail..]
                .iter()
                .map(|step| format!("{step:?}\n"))
                .collect();
            panic!(
                "seed {seed}, step {}: {broken_rule}\n{}",
                simulation.trace.len(),
                tail.concat()
            );
        }
        seen.extend(simulation.model.seen);
    }
    let expected = [
        "Dispatch",
        "DrainComplete",
        "EndIsolate CallsDropped",
        "EndIsolate DrainDeadline",
        "EndIsolate Evicted",
        "EndIsolate NotReusable",
        "EndIsolate SessionClosed",
        "EndIsolate WorkerReleased",
        "LoseCall Cancelled",
        "LoseCall IsolateEvicted",
        "LoseCall IsolateLost",
        "RefuseCall CallsInFlight",
        "RefuseCall Draining",
        "RefuseCall Isolates",
        "RefuseCall QueueWait",
        "RefuseCall Quota bytes_out_per_minute_max",
        "RefuseCall Quota cpu_seconds_per_minute_max",
        "RefuseCall Quota isolates_max",
        "RefuseCall Quota loads_per_second_max",
        "RefuseCall Quota memory_bytes_max",
        "RefuseCall SessionCalls",
        "RefuseWorker Draining",
        "RefuseWorker SessionClosed",
        "RefuseWorker Workers",
        "StartIsolate",
    ];
    assert_eq!(
        seen.iter().map(String::as_str).collect::<Vec<_>>(),
        expected,
        "the simulation must reach everything"
    );
}

#[test]
fn the_same_events_give_the_same_effects() {
    for seed in [1, 2, 3] {
        assert_eq!(run(seed, None).0.trace, run(seed, None).0.trace);
    }
}

#[test]
fn time_takes_effect_before_what_happens() {
    for seed in [4, 5, 6] {
        let (simulation, _) = run(seed, None);
        let (config, policies) = simulation.made_with;
        let mut core = Core::new(config);
        for policy in policies {
            core.allocate_tenant(policy);
        }
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        let steps = simulation.trace;
        for (index, (now_ms, event, effects)) in steps.iter().enumerate() {
            expected.extend_from_slice(effects);
            let followed = steps.get(index + 1).is_some_and(|next| next.0 == *now_ms);
            if *event != Event::TimePassed || !followed {
                core.on_event(*now_ms, *event, &mut found);
                assert_eq!(found, expected, "step {index}");
            }
        }
    }
}

#[test]
fn each_broken_rule_is_noticed() {
    for mutation in Mutation::ALL {
        let noticed = |seed: &u64| {
            // A broken core may also trip over itself, which is as good as being caught.
            std::panic::catch_unwind(|| run(*seed, Some(mutation)).1.is_err()).unwrap_or(true)
        };
        let first = SEEDS.clone().find(noticed);
        assert!(first.is_some(), "{mutation:?} goes unnoticed");
    }
}
