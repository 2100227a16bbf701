//! Who runs next, under a clock that the tests move: turns cost what they are said to cost, and no guest runs.

use super::*;
use crate::message::TenantShare;
use coracle_loader::Limits;
use std::sync::Arc;

const SLICE: Duration = Duration::from_micros(200);

/// Queues, and threads that take turns from them one after the other.
struct Machine {
    queues: Queues,
    isolate_last: u64,
    turns: Vec<Turned>,
}

/// A turn that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turned {
    isolate: u64,
    tenant: u64,
}

impl Machine {
    fn new() -> Self {
        Self {
            queues: Queues::new(10_000, PoolMemory::new(1_000)),
            isolate_last: 0,
            turns: Vec::new(),
        }
    }

    fn start(&mut self, tenant: u64, weight: u32) -> u64 {
        self.isolate_last += 1;
        let worker = WorkerSpec {
            load: Arc::default(),
            tenant,
            trust: coracle_loader::Trust::Shared,
            share: TenantShare {
                weight,
                ..TenantShare::default()
            },
            outbound_refusal: None,
            logs_streamed: false,
            limits: Limits::default(),
        };
        self.queues.start(self.isolate_last, worker);
        self.isolate_last
    }

    /// A new isolate that has something to do.
    fn call(&mut self, tenant: u64, weight: u32) -> u64 {
        let isolate = self.start(tenant, weight);
        self.mail(isolate);
        isolate
    }

    fn mail(&mut self, isolate: u64) {
        let exports = Vec::new();
        self.queues.post(isolate, Mail::Release { exports });
    }

    fn take(&mut self) -> Taken {
        let taken = self.queues.take_next().expect("somebody is ready");
        let tenant = self.queues.isolates[&taken.isolate].tenant;
        let isolate = taken.isolate;
        self.turns.push(Turned { isolate, tenant });
        taken
    }

    fn put_back(&mut self, taken: Taken, cpu: Duration, turn: Turn) {
        self.queues.charge(taken.isolate, cpu);
        self.queues.put_back(taken.isolate, taken.actor, turn);
    }

    /// So many turns, one at a time, of isolates that never end, each of which costs what its tenant's turns do.
    fn run(&mut self, turns: usize, cost_of: impl Fn(u64) -> Duration) {
        for _ in 0..turns {
            let taken = self.take();
            let cpu = cost_of(self.queues.isolates[&taken.isolate].tenant);
            self.put_back(taken, cpu, Turn::More);
        }
    }

    /// Turns of a tenant among the last ones.
    fn turns_of(&self, tenant: u64, among: usize) -> usize {
        let last = &self.turns[self.turns.len() - among..];
        last.iter().filter(|turned| turned.tenant == tenant).count()
    }
}

/// One tenant's endless loops, however many, hold another one's call up for three slices at most, on one thread and on
/// several.
#[test]
fn a_call_beside_a_hundred_endless_loops_runs_within_three_slices() {
    for threads in [1, 2, 4] {
        let mut machine = Machine::new();
        for _ in 0..100 {
            machine.call(1, 1);
        }
        for round in 0..50 {
            machine.run(37 * (round % 3), |_| SLICE);
            let mut busy: VecDeque<Taken> = (0..threads).map(|_| machine.take()).collect();
            let call = machine.call(2, 1);
            let slices = (1..).find(|_| {
                let done = busy.pop_front().expect("a thread");
                machine.put_back(done, SLICE, Turn::More);
                busy.push_back(machine.take());
                busy.back().is_some_and(|taken| taken.isolate == call)
            });
            assert!(slices <= Some(3), "{threads} threads: {slices:?} slices");
            for taken in busy {
                let turn = if taken.isolate == call {
                    Turn::Idle
                } else {
                    Turn::More
                };
                machine.put_back(taken, SLICE, turn);
            }
        }
    }
}

/// What tenants get of the CPU follows their weights, whatever their turns cost and however many isolates they have.
#[test]
fn shares_follow_the_weights_within_a_tenth_over_a_thousand_slices() {
    let cases: [&[(usize, u32, u32)]; 6] = [
        // Isolates, weight, and what a turn costs in hundredths of a slice.
        &[(100, 1, 100), (1, 1, 100)],
        &[(100, 1, 100), (3, 2, 100), (1, 4, 100)],
        &[(10, 1, 100), (10, 1, 20)],
        &[(1, 7, 13), (50, 3, 100)],
        &[(5, 1, 500), (5, 1, 100), (5, 2, 100)],
        &[(1, 1, 100), (1, 1, 100), (1, 1, 100), (200, 10, 100)],
    ];
    for tenants in cases {
        let mut machine = Machine::new();
        let mut cost_of = HashMap::new();
        for (index, (isolates, weight, cost)) in tenants.iter().enumerate() {
            for _ in 0..*isolates {
                machine.call(index as u64, *weight);
            }
            cost_of.insert(index as u64, SLICE * *cost / 100);
        }
        // A thousand slices, which are more turns where turns are short.
        while (0..tenants.len() as u64)
            .map(|tenant| machine.queues.cpu_of(tenant))
            .sum::<Duration>()
            < SLICE * 1_000
        {
            machine.run(1, |tenant| cost_of[&tenant]);
        }
        let weights: u32 = tenants.iter().map(|(_, weight, _)| weight).sum();
        for (index, (_, weight, _)) in tenants.iter().enumerate() {
            let got = machine.queues.cpu_of(index as u64).as_secs_f64();
            let due = (SLICE * 1_000 * *weight / weights).as_secs_f64();
            assert!(
                (got / due - 1.0).abs() < 0.1,
                "{tenants:?}: tenant {index} got {got} of {due}"
            );
        }
    }
}

/// A stream of calls that are all new goes no more often before another tenant's loops than its share allows.
#[test]
fn new_calls_of_one_tenant_do_not_push_out_another_ones_loop() {
    let mut machine = Machine::new();
    let looping = machine.call(1, 1);
    let fresh: Vec<u64> = (0..20).map(|_| machine.start(2, 1)).collect();
    for turn in 0..1_000 {
        machine.mail(fresh[turn % fresh.len()]);
        let taken = machine.take();
        let turn = match taken.isolate == looping {
            true => Turn::More,
            false => Turn::Ready,
        };
        machine.put_back(taken, SLICE, turn);
    }
    let share = machine.turns_of(1, 1_000);
    assert!((450..=550).contains(&share), "{share} of 1,000 turns");
}

/// Who was idle for long is served first, but has not saved up for more than two milliseconds.
#[test]
fn an_idle_tenant_saves_up_two_milliseconds_at_most() {
    let mut machine = Machine::new();
    machine.call(1, 1);
    let idle = machine.call(2, 1);
    machine.run(10, |_| SLICE);
    // It comes to rest.
    loop {
        let taken = machine.take();
        let turn = match taken.isolate == idle {
            true => Turn::Idle,
            false => Turn::More,
        };
        let at_rest = taken.isolate == idle;
        machine.put_back(taken, SLICE, turn);
        if at_rest {
            break;
        }
    }
    machine.run(100_000, |_| SLICE);
    machine.mail(idle);
    machine.run(100, |_| SLICE);
    let of_idle = machine.turns_of(2, 100);
    // Ten slices are two milliseconds; half of the rest is its own.
    assert!((50..=57).contains(&of_idle), "{of_idle} of 100 turns");
    let first = machine.turns[machine.turns.len() - 100];
    assert_eq!(first.tenant, 2);
}

/// Within a tenant who is new goes before who has used a whole slice, eight times in a row and no more.
#[test]
fn within_a_tenant_the_new_go_first_but_not_always() {
    let mut machine = Machine::new();
    let looping = machine.call(1, 1);
    machine.run(1, |_| SLICE);
    for _ in 0..20 {
        machine.call(1, 1);
    }
    let mut order = Vec::new();
    for _ in 0..18 {
        let taken = machine.take();
        order.push(taken.isolate == looping);
        let turn = match taken.isolate == looping {
            true => Turn::More,
            false => Turn::Idle,
        };
        machine.put_back(taken, SLICE, turn);
    }
    let at: Vec<usize> = (0..18).filter(|index| order[*index]).collect();
    // The loop's own first turn was one of the eight.
    assert_eq!(at, [7, 16]);
}

/// What the tenants have used is what their turns cost, whatever was expected.
#[test]
fn cpu_is_counted_as_it_was_used() {
    let mut machine = Machine::new();
    machine.call(1, 3);
    machine.call(2, 1);
    machine.run(100, |tenant| SLICE * tenant as u32);
    let turns = |tenant| machine.turns_of(tenant, 100) as u32;
    assert_eq!(machine.queues.cpu_of(1), SLICE * turns(1));
    assert_eq!(machine.queues.cpu_of(2), SLICE * 2 * turns(2));
    assert_eq!(machine.queues.cpu_of(3), Duration::ZERO);
}

impl Machine {
    fn end(&mut self, isolate: u64) {
        self.queues.end(isolate);
        self.queues.post(isolate, Mail::End);
    }

    /// After how many turns of others an isolate is ended.
    fn turns_until_ended(&mut self, isolate: u64) -> usize {
        let turns = (0..).find(|_| {
            let taken = self.take();
            if taken.isolate == isolate {
                assert!(taken.urgent, "it has no code to run any more");
                self.queues.remove(isolate);
                return true;
            }
            self.put_back(taken, SLICE, Turn::More);
            false
        });
        turns.expect("it is ended")
    }
}

/// Nobody waits for the end of an isolate that rests, so others go first, but not for long.
#[test]
fn who_rests_is_ended_after_those_who_run_but_soon() {
    let mut machine = Machine::new();
    let resting = machine.start(1, 1);
    machine.end(resting);
    assert_eq!(
        machine.turns_until_ended(resting),
        0,
        "nobody else is there"
    );
    let resting = machine.start(1, 1);
    machine.end(resting);
    machine.call(2, 1);
    let turns = machine.turns_until_ended(resting);
    assert_eq!(turns, BEFORE_ENDING_MAX as usize);
}

/// They do not pile up: the memory that they have is somebody else's next.
#[test]
fn of_those_who_rest_and_have_to_be_ended_few_wait() {
    let mut machine = Machine::new();
    machine.call(2, 1);
    let ending: Vec<u64> = (0..=ENDING_MAX).map(|_| machine.start(1, 1)).collect();
    for isolate in &ending {
        machine.end(*isolate);
    }
    assert_eq!(machine.turns_until_ended(ending[0]), 0);
}

/// Memory that somebody may need is given back at once: the pool's where half of it is taken, and what a tenant has a quota of.
#[test]
fn who_has_what_may_be_short_is_ended_at_once() {
    let mut machine = Machine::new();
    machine.call(2, 1);
    let resting = machine.start(1, 1);
    let mut purse = machine.queues.pool_memory.purse(2, u64::MAX);
    purse.take(501).expect("there is room");
    machine.end(resting);
    assert_eq!(machine.turns_until_ended(resting), 0);
    drop(purse);
    let resting = machine.start(1, 1);
    let slot = machine.queues.isolates.get_mut(&resting);
    slot.expect("it is there").has_quota = true;
    machine.end(resting);
    assert_eq!(machine.turns_until_ended(resting), 0);
}

/// One that is in the middle of running code is ended before it goes on.
#[test]
fn who_runs_is_ended_at_once() {
    let mut machine = Machine::new();
    machine.call(2, 1);
    let running = machine.start(1, 1);
    machine.queues.set_running(running, true);
    machine.end(running);
    assert_eq!(machine.turns_until_ended(running), 0);
}
