//! Random events from a seed, a runtime of random speed, and every rule checked after every event.

use super::super::*;
use super::Mutation;
use super::model::{Model, Where};

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
    core: Core,
    model: Model,
    tenants: [TenantId; 3],
    drains: bool,
    /// Everything that was ever done, in order.
    trace: Vec<(Event, Vec<Effect>)>,
}

impl Simulation {
    fn new(seed: u64, broken: Option<Mutation>) -> Self {
        let mut random = Random::new(seed);
        let config = CoreConfig {
            isolates_max: 1 + random.below(5),
            calls_in_flight_max: 4 + random.below(14),
            calls_in_flight_per_session_max: 2 + random.below(8),
            workers_per_session_max: 1 + random.below(5),
            calls_queued_max: random.below(8),
        };
        let mut core = Core::new(config);
        core.broken = broken;
        let tenants = [
            core.allocate_tenant(),
            core.allocate_tenant(),
            core.allocate_tenant(),
        ];
        let drains = random.chance(50);
        Self {
            random,
            core,
            model: Model::new(config),
            tenants,
            drains,
            trace: Vec::new(),
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

    fn step(&mut self, event: Event) -> Result<(), String> {
        let mut effects = Vec::new();
        let outcome = self.model.step(&mut self.core, event, &mut effects);
        self.trace.push((event, effects));
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
        if self.core.is_empty() {
            Ok(())
        } else {
            Err(format!("left behind: {:?}", self.core.gauges()))
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
                let session = self.core.allocate_session();
                let tenant = random.pick(self.tenants.iter().copied())?;
                Some(Event::SessionOpened { session, tenant })
            }
            3..4 => Some(Event::SessionClosed {
                session: random.pick(model.sessions.keys().copied())?,
            }),
            4..12 => {
                let worker = self.core.allocate_worker();
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
                let call = self.core.allocate_call();
                let worker = match random.chance(2) {
                    true => WorkerId(u64::MAX),
                    false => random.pick(model.workers.keys().copied())?,
                };
                Some(Event::CallArrived { call, worker })
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
            78..97 => {
                let ending = model.isolates.iter().filter(|(_, inside)| inside.ending);
                Some(Event::IsolateEnded {
                    isolate: random.pick(ending.map(|(isolate, _)| *isolate))?,
                })
            }
            97 => Some(Event::IsolateEnded {
                isolate: random.pick(model.isolates.keys().copied())?,
            }),
            98 if random.chance(30) => Some(Event::MemoryShort),
            _ => self.stale_event(),
        }
    }

    /// Something that was true once, or an answer that comes twice.
    fn stale_event(&mut self) -> Option<Event> {
        let (event, _) = *self.random.pick(self.trace.iter())?;
        match event {
            Event::CallFinished { .. } | Event::IsolateEnded { .. } | Event::CallDropped { .. } => {
                Some(event)
            }
            Event::SessionClosed { .. } | Event::WorkerReleased { .. } => Some(event),
            _ => None,
        }
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
            panic!(
                "seed {seed}, step {}: {broken_rule}\n{:#?}",
                simulation.trace.len(),
                &simulation.trace[tail..]
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
