//! Who runs when, and that everyone is answered once: slices, lanes, stacks, panics, and random histories.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test waits for threads that it can't see into"
)]

use crate::lab::{HIGH, Lab, TestClock, limits, sandbox, text, verdict};
use crate::support::{Bench, value, worker, worker_with};
use coracle_isolate::{
    Call, CallAccess, Clock, Event, Message, Outcome, Report, Scheduler, SystemClock, Threads,
    ThreadsConfig, VerdictKind,
};
use coracle_loader::Limits;
use coracle_value::Value;
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

const SLICE: u64 = coracle_isolate::FUEL_SLICE;

fn run(body: &str) -> String {
    format!("export default {{ async run(x) {{ {body} }} }}")
}

/// Loops that do nothing but call the host, each in another way.
const HOST_CALL_LOOPS: [&str; 6] = [
    "for (;;) console.log('x')",
    "for (;;) console.log('x'.repeat(60_000))",
    "const bytes = new Uint8Array(65_536); for (;;) crypto.getRandomValues(bytes)",
    "for (;;) crypto.randomUUID()",
    "for (;;) clearTimeout(setTimeout(() => {}, 1000))",
    "for (;;) Math.random()",
];

// --- slices ---

/// Case L23, and what is more: loops of host calls yield as well, although charging them sets the fuel anew.
#[test]
fn two_endless_loops_of_host_calls_and_a_third_job_that_ends_share_a_thread() {
    for body in HOST_CALL_LOOPS {
        let lab = Lab::new();
        let high = limits(|limits| {
            limits.fuel_max = 1 << 40;
            limits.cpu_ms_max = 1_000_000;
        });
        let loops = [0, 1].map(|_| {
            let isolate = lab.isolate(worker_with(&[("main.js", &run(body))], high));
            let call = lab.call_of("run", Value::Null);
            lab.send(isolate, call)
        });
        for _ in 0..10 {
            assert!(lab.step());
        }
        let third = lab.source(&run(
            "let n = 0; for (let i = 0; i < x; i++) n += i; return n",
        ));
        let call = lab.call_of("run", Value::from(30_000));
        let third = lab.send(third, call);
        let mut steps = 0;
        while !lab.has_report(third) {
            assert!(lab.step());
            steps += 1;
            assert!(steps < 60, "{body}: the third job does not get its turns");
        }
        let slices = lab.report(third).usage.fuel_run / SLICE;
        assert!(
            steps <= 3 * (slices + 4),
            "{body}: {steps} turns for {slices} slices"
        );
        assert!(loops.iter().all(|call| !lab.has_report(*call)));
    }
}

/// The same on a real thread, where a loop that did not yield would keep the others out for good.
#[test]
fn on_one_real_thread_as_well() {
    let bench = Bench::with(|config| config.threads = 1);
    let endless = limits(|limits| {
        limits.fuel_max = 1 << 45;
        limits.cpu_ms_max = 3_600_000;
        limits.wall_ms_max = 3_600_000;
    });
    let loops: Vec<u64> = HOST_CALL_LOOPS
        .iter()
        .chain(&["for (;;);", "for (;;) await 0"])
        .map(|body| {
            let isolate = bench.isolate(worker_with(&[("main.js", &run(body))], endless));
            let mut call = bench.call_of("run", &[Value::Null]);
            call.limits = HIGH;
            bench.send(isolate, call);
            isolate
        })
        .collect();
    let isolate = bench.isolate(worker(&[("main.js", &run("return x + 1"))]));
    for x in 0..20 {
        let report = bench.call(isolate, "run", &[Value::from(x)]);
        assert_eq!(value(&report), Value::from(x + 1));
    }
    for isolate in loops.into_iter().chain([isolate]) {
        bench.threads().send(Message::End { isolate });
    }
    until(|| bench.threads().stats().is_empty());
}

fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "it takes too long"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

// --- lanes ---

fn spinning(lab: &Lab, count: usize) -> Vec<(u64, u64)> {
    let endless = limits(|limits| {
        limits.fuel_max = 1 << 40;
        limits.cpu_ms_max = 1_000_000;
        limits.wall_ms_max = 80_000_000;
    });
    let spec = worker_with(&[("main.js", &run("for (;;);"))], endless);
    (0..count)
        .map(|_| {
            let isolate = lab.isolate(spec.clone());
            let call = lab.call_of("run", Value::Null);
            (isolate, lab.send(isolate, call))
        })
        .collect()
}

#[test]
fn a_short_call_goes_before_a_hundred_loops() {
    let lab = Lab::with(sandbox(128, 128), 4 << 30);
    spinning(&lab, 100);
    for _ in 0..400 {
        lab.step();
    }
    let isolate = lab.source(&run("return x"));
    for x in 0..20 {
        let call = lab.call_of("run", Value::from(x));
        let call = lab.send(isolate, call);
        // Its own turn, and one of a loop's where that is due.
        lab.step();
        if !lab.has_report(call) {
            lab.step();
        }
        assert!(lab.has_report(call));
    }
}

#[test]
fn a_long_job_goes_on_while_short_calls_keep_coming() {
    let lab = Lab::new();
    let long = lab.source(&run(
        "let n = 0; for (let i = 0; i < x; i++) n += i; return n",
    ));
    let short: Vec<u64> = (0..20).map(|_| lab.source(&run("return x"))).collect();
    let call = lab.call_of("run", Value::from(1_000_000));
    let long = lab.send(long, call);
    // There is always one of them in line.
    for isolate in &short {
        let call = lab.call_of("run", Value::Null);
        lab.send(*isolate, call);
    }
    let mut steps = 0;
    while !lab.has_report(long) {
        let call = lab.call_of("run", Value::Null);
        lab.send(short[steps % 20], call);
        lab.step();
        steps += 1;
        assert!(steps < 5_000);
    }
    let slices = lab.report(long).usage.fuel_run / SLICE;
    assert!(slices > 10, "the job is long");
    assert!(
        steps as u64 <= 9 * (slices + 3),
        "{steps} turns for {slices} slices"
    );
}

#[test]
fn ending_cancelling_and_wall_time_go_before_everyone() {
    let lab = Lab::new();
    let spinning = spinning(&lab, 40);
    for _ in 0..200 {
        lab.step();
    }
    let (ended, _) = spinning[30];
    lab.end(ended);
    lab.step();
    assert!(lab.has_ended(ended));

    let (isolate, cancelled) = spinning[20];
    lab.cancel(isolate, cancelled);
    lab.step();
    assert_eq!(verdict(&lab.report(cancelled)).kind, VerdictKind::Cancelled);

    let isolate = lab.source(&run("await new Promise((done) => setTimeout(done, 1e6))"));
    let mut call = lab.call_of("run", Value::Null);
    call.limits.wall_ms_max = 500;
    let timed = lab.send(isolate, call);
    for _ in 0..5 {
        lab.step();
    }
    lab.clock.pass(Duration::from_millis(500));
    lab.step();
    assert_eq!(verdict(&lab.report(timed)).kind, VerdictKind::Wall);
    assert!(lab.has_ended(isolate));
}

#[test]
fn urgent_mail_buys_no_extra_turns() {
    let lab = Lab::new();
    let spinning = spinning(&lab, 2);
    let (pushy, _) = spinning[0];
    for _ in 0..10 {
        lab.step();
    }
    for _ in 0..50 {
        lab.cancel(pushy, 999_999);
        lab.step();
    }
    lab.end(spinning[1].0);
    lab.end(pushy);
    lab.run();
    // Had each of them brought a slice, it would show in nothing but this.
    lab.assert_empty();
}

#[test]
fn timers_that_are_due_at_the_same_time_all_come_in_order() {
    let lab = Lab::new();
    let plenty = limits(|limits| limits.fuel_max = 1 << 40);
    let source = run(
        "const order = []; await Promise.all(Array.from({ length: 2_500 }, (_, i) => \
         new Promise((done) => setTimeout(() => { order.push(i); done() }, 10)))); \
         return order.every((value, index) => value === index) && order.length",
    );
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], plenty));
    let report = lab.call(isolate, "run", Value::Null);
    assert_eq!(value(&report), Value::from(2_500));
    assert_eq!(report.usage.wall_us, 10_000);
}

// --- stacks ---

#[test]
fn no_more_isolates_are_in_the_middle_of_running_than_there_are_stacks() {
    let lab = Lab::with(sandbox(32, 3), 4 << 30);
    let few = limits(|limits| limits.fuel_max = 20 * SLICE);
    let spec = worker_with(&[("main.js", &run("if (x) return x; for (;;);"))], few);
    let calls: Vec<(i32, u64)> = (0..12)
        .map(|number| {
            let isolate = lab.isolate(spec.clone());
            let x = if number % 4 == 3 { number } else { 0 };
            let call = lab.call_of("run", Value::from(x));
            (x, lab.send(isolate, call))
        })
        .collect();
    let mut at_most = 0;
    while lab.step() {
        at_most = at_most.max(lab.stats().running);
    }
    assert_eq!(at_most, 3);
    // Nobody was refused for want of a stack; they waited.
    for (x, call) in calls {
        let report = lab.report(call);
        match x {
            0 => assert_eq!(verdict(&report).kind, VerdictKind::Fuel),
            _ => assert_eq!(value(&report), Value::from(x)),
        }
    }
}

/// A store keeps the stack that it last ran on. Isolates that rest must give theirs up when others need one.
#[test]
fn more_isolates_can_be_alive_than_there_are_stacks() {
    let lab = Lab::with(sandbox(32, 2), 4 << 30);
    let isolates: Vec<u64> = (0..32)
        .map(|_| lab.source("let n = 0; export default { next(_) { return ++n } }"))
        .collect();
    for round in 1..5 {
        for isolate in &isolates {
            let report = lab.call(*isolate, "next", Value::Null);
            assert_eq!(value(&report), Value::from(round));
        }
    }
    // Also all at once, and in the other order.
    let calls: Vec<u64> = isolates
        .iter()
        .rev()
        .map(|isolate| {
            let call = lab.call_of("next", Value::Null);
            lab.send(*isolate, call)
        })
        .collect();
    for call in calls {
        assert_eq!(value(&lab.report_now(call)), Value::from(5));
    }
    isolates.iter().for_each(|isolate| lab.end(*isolate));
    lab.assert_empty();
}

#[test]
fn more_isolates_than_stacks_on_threads_too() {
    let events = Events::default();
    let threads = threads(sandbox(32, 2), Arc::new(SystemClock::default()), 2, &events);
    let spec = worker(&[(
        "main.js",
        "let n = 0; export default { async run(x) { for (let i = 0; i < 1e5; i++); await new Promise((r) => setTimeout(r, x % 3)); return ++n } }",
    )]);
    for isolate in 1..=32 {
        threads.send(Message::Start {
            isolate,
            worker: spec.clone(),
        });
    }
    for invocation in 1..=320 {
        let isolate = 1 + invocation % 32;
        threads.send(call(isolate, invocation, "run"));
    }
    until(|| threads.stats().calls == 0);
    let events = events.take();
    for invocation in 1..=320 {
        value(&events.reports[&invocation]);
    }
    assert_eq!(threads.stats().panics, 0);
}

// --- assistance ---

/// The machine's clock, for code that takes no CPU time: a turn ends when there is nothing more to do.
#[derive(Default)]
struct FastClock(SystemClock);

impl Clock for FastClock {
    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn epoch_ms(&self) -> f64 {
        self.0.epoch_ms()
    }

    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

/// Threads that have nothing to do, and sleep.
fn sleeping(events: &Events) -> Threads {
    let threads = threads(sandbox(8, 8), Arc::new(FastClock::default()), 2, events);
    std::thread::sleep(Duration::from_millis(20));
    threads
}

#[test]
fn who_waits_for_a_short_call_can_run_it() {
    let events = Events::default();
    let threads = sleeping(&events);
    threads.send(Message::Start {
        isolate: 1,
        worker: worker(&[("main.js", &run("return x"))]),
    });
    threads.send_unheard(call(1, 1, "run"));
    threads.assist();
    until(|| threads.stats().calls == 0);
    assert_eq!(value(&events.take().reports[&1]), Value::from(7));
    // With nothing to do it does nothing.
    threads.assist();
}

/// Whatever an assisted turn leaves is noticed by the threads, although nothing was posted to them.
#[test]
fn what_an_assisted_call_waits_for_comes_in_time() {
    for body in [
        "await new Promise((done) => setTimeout(done, 20)); return x",
        "await fetch('https://a.example/').catch(() => {}); return x",
        "for (let i = 0; i < 2e5; i++); return x",
    ] {
        let events = Events::default();
        let threads = sleeping(&events);
        threads.send(Message::Start {
            isolate: 1,
            worker: worker(&[("main.js", &run(body))]),
        });
        // Loads, so that the call itself is what is assisted.
        threads.send(call(1, 1, "run"));
        until(|| threads.stats().calls == 0);
        std::thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        threads.send_unheard(call(1, 2, "run"));
        threads.assist();
        until(|| threads.stats().calls == 0);
        let took = start.elapsed();
        assert!(took < Duration::from_millis(500), "{body}: {took:?}");
    }
}

#[test]
fn an_assisted_turn_of_an_endless_loop_comes_back_and_its_wall_time_is_kept() {
    let events = Events::default();
    let threads = sleeping(&events);
    let hurried = limits(|limits| limits.wall_ms_max = 100);
    for (isolate, body) in [
        (1, "for (;;);"),
        (2, "await new Promise((done) => setTimeout(done, 1e6))"),
    ] {
        threads.send(Message::Start {
            isolate,
            worker: worker_with(&[("main.js", &run(body))], hurried),
        });
        std::thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        threads.send_unheard(call(isolate, isolate, "run"));
        threads.assist();
        assert!(start.elapsed() < Duration::from_millis(80));
        until(|| threads.stats().calls == 0);
        assert!(start.elapsed() < Duration::from_millis(600));
    }
    let seen = events.take();
    for invocation in [1, 2] {
        assert_eq!(verdict(&seen.reports[&invocation]).kind, VerdictKind::Wall);
    }
}

// --- what goes wrong on our side ---

/// Panics while an isolate is in its turn, on demand.
#[derive(Default)]
struct PanickingClock {
    clock: TestClock,
    armed: AtomicBool,
}

impl Clock for PanickingClock {
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn epoch_ms(&self) -> f64 {
        assert!(
            !self.armed.swap(false, Ordering::Relaxed),
            "the test wants a panic"
        );
        self.clock.epoch_ms()
    }

    fn thread_cpu(&self) -> Duration {
        self.clock.thread_cpu()
    }
}

#[test]
fn a_panic_of_the_host_costs_the_isolate_and_nobody_else() {
    let clock = Arc::new(PanickingClock::default());
    let events = Events::default();
    let threads = threads(sandbox(8, 8), Arc::clone(&clock) as _, 1, &events);
    let spec = worker(&[(
        "main.js",
        "let n = 0; export default { run(_) { return ++n }, async wait(_) { await new Promise((r) => setTimeout(r, 1e6)) } }",
    )]);
    for isolate in [1, 2] {
        threads.send(Message::Start {
            isolate,
            worker: spec.clone(),
        });
    }
    threads.send(call(1, 10, "run"));
    threads.send(call(2, 20, "run"));
    threads.send(call(1, 11, "wait"));
    until(|| threads.stats().calls == 1);

    clock.armed.store(true, Ordering::Relaxed);
    threads.send(call(1, 12, "run"));
    until(|| threads.stats().isolates == 1);
    // What comes for it now is lost, and the other one still has its state, on the same thread.
    threads.send(call(1, 13, "run"));
    threads.send(call(2, 21, "run"));
    until(|| threads.stats().calls == 0);
    let seen = events.take();
    assert_eq!(value(&seen.reports[&10]), Value::from(1));
    for invocation in [11, 12] {
        let broken = verdict(&seen.reports[&invocation]);
        assert_eq!(broken.kind, VerdictKind::Trap);
        assert!(broken.detail.contains("the host failed"), "{broken:?}");
    }
    let lost = verdict(&seen.reports[&13]);
    assert_eq!((lost.kind, lost.started), (VerdictKind::IsolateLost, false));
    assert_eq!(value(&seen.reports[&21]), Value::from(2));
    assert_eq!(seen.ended, BTreeSet::from([1]));

    threads.send(Message::End { isolate: 2 });
    until(|| threads.stats().isolates == 0);
    let stats = threads.stats();
    assert_eq!((stats.panics, stats.memory_bytes), (1, 0));
    assert_eq!((stats.alarms, stats.running, stats.queued), (0, 0, 0));
}

#[test]
fn a_panic_in_the_sink_is_contained_too() {
    let (sender, receiver) = mpsc::channel();
    let threads = Threads::start(
        sandbox(8, 8),
        Arc::new(SystemClock::default()),
        config(1),
        move |event| {
            if let Event::Finished { invocation, .. } = event {
                sender.send(invocation).unwrap();
                assert!(invocation != 1, "the test wants a panic");
            }
        },
    );
    threads.send(Message::Start {
        isolate: 1,
        worker: worker(&[("main.js", &run("return 1"))]),
    });
    for invocation in [1, 2] {
        threads.send(call(1, invocation, "run"));
        let told = receiver.recv_timeout(Duration::from_secs(20));
        assert_eq!(told, Ok(invocation));
    }
    assert_eq!(threads.stats().panics, 1);
}

/// Keeps a thread inside of its turn, on demand.
#[derive(Default)]
struct StuckClock {
    clock: TestClock,
    /// Whether threads get no core.
    starved: AtomicBool,
    stuck: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Clock for StuckClock {
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn epoch_ms(&self) -> f64 {
        let stuck = self.stuck.lock().unwrap().take();
        if let Some(release) = stuck {
            let _ = release.recv();
        }
        self.clock.epoch_ms()
    }

    fn thread_cpu(&self) -> Duration {
        self.clock.thread_cpu()
    }

    fn cpu_of(&self, _thread: i32) -> Option<Duration> {
        match self.starved.load(Ordering::Relaxed) {
            true => Some(Duration::ZERO),
            false => Some(self.clock.monotonic()),
        }
    }
}

/// A thread that works on and on in one turn is lost after a second; one that gets no core is not, for half a minute.
#[test]
fn a_thread_that_is_stuck_in_a_turn_is_reported_as_lost() {
    for starved in [false, true] {
        a_thread_is_lost(starved);
    }
}

fn a_thread_is_lost(starved: bool) {
    let clock = Arc::new(StuckClock::default());
    clock.starved.store(starved, Ordering::Relaxed);
    let (release, stuck) = mpsc::channel();
    *clock.stuck.lock().unwrap() = Some(stuck);
    let events = Events::default();
    let threads = threads(sandbox(8, 8), Arc::clone(&clock) as _, 2, &events);
    let lost = || threads.health().threads_lost;
    assert_eq!((threads.health().threads, lost()), (2, 0));
    threads.send(Message::Start {
        isolate: 1,
        worker: worker(&[("main.js", &run("return 1"))]),
    });
    threads.send(call(1, 1, "run"));
    until(|| clock.stuck.lock().is_ok_and(|stuck| stuck.is_none()));
    clock.clock.pass(Duration::from_millis(1_000));
    assert_eq!(lost(), 0);
    clock.clock.pass(Duration::from_millis(2));
    // The first look says only that it is long.
    assert_eq!(lost(), 0);
    clock.clock.pass(Duration::from_millis(100));
    assert_eq!(lost(), usize::from(!starved));
    clock.clock.pass(Duration::from_secs(28));
    assert_eq!(lost(), usize::from(!starved));
    clock.clock.pass(Duration::from_secs(2));
    assert_eq!(lost(), 1);
    drop(release);
    until(|| threads.stats().calls == 0);
    until(|| lost() == 0);
}

#[test]
fn threads_that_are_dropped_end_what_runs_and_come_home() {
    for body in ["for (;;);", "await new Promise((r) => setTimeout(r, 1e6))"] {
        let events = Events::default();
        let sandbox = sandbox(4, 4);
        let threads = threads(
            Arc::clone(&sandbox),
            Arc::new(SystemClock::default()),
            2,
            &events,
        );
        let endless = limits(|limits| {
            limits.fuel_max = 1 << 45;
            limits.cpu_ms_max = 3_600_000;
        });
        for isolate in 1..=4 {
            threads.send(Message::Start {
                isolate,
                worker: worker_with(&[("main.js", &run(body))], endless),
            });
            threads.send(call(isolate, isolate, "run"));
        }
        std::thread::sleep(Duration::from_millis(30));
        let start = Instant::now();
        drop(threads);
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(events.take().reports.is_empty());
        // The pool is whole again.
        let lab = Lab::with(sandbox, 4 << 30);
        let isolates = [0; 4].map(|_| lab.source(&run("return 1")));
        for isolate in isolates {
            assert_eq!(
                value(&lab.call(isolate, "run", Value::Null)),
                Value::from(1)
            );
        }
    }
}

#[test]
fn what_makes_no_sense_is_ignored_or_answered_once() {
    let lab = Lab::new();
    let isolate = lab.source("let n = 0; export default { next(_) { return ++n } }");
    assert_eq!(
        value(&lab.call(isolate, "next", Value::Null)),
        Value::from(1)
    );
    // An id that exists does not become another isolate.
    lab.stepper.send(Message::Start {
        isolate,
        worker: worker(&[("main.js", "export default {}")]),
    });
    assert_eq!(
        value(&lab.call(isolate, "next", Value::Null)),
        Value::from(2)
    );
    // Invocation 0 stands for the load, and can't be called.
    let mut zero = lab.call_of("next", Value::Null);
    zero.invocation = 0;
    lab.send(isolate, zero);
    let zero = verdict(&lab.report_now(0));
    assert_eq!((zero.kind, zero.started), (VerdictKind::IsolateLost, false));
    assert_eq!(
        value(&lab.call(isolate, "next", Value::Null)),
        Value::from(3)
    );
}

// --- random histories ---

/// Everything that can become of a call.
const ANYTHING: &str = "let free = []; export default {
    quick: (x) => x,
    fail(x) { throw new Error('' + x) },
    async wait(x) { await new Promise((done) => setTimeout(done, x)); return x },
    hang: (_) => new Promise(() => {}),
    spin(_) { for (;;); },
    fill(_) { const all = []; for (;;) all.push(new Uint8Array(1e5)); },
    leave(x) { setTimeout(() => {}, x); (async () => { for (let i = 0; i < 9; i++) await 0; for (;;); })(); return x },
    tidy(x) { setInterval(() => {}, x); return x },
    deep(_) { return (function f() { return f() })() },
    talk(x) { for (let i = 0; i < x; i++) console.log('x'.repeat(100)); },
    big: (_) => 'x'.repeat(2000),
    async ask(x) { await Promise.allSettled(Array.from({ length: x }, () => fetch('https://a.example/'))); return x },
    async work(x) { for (let i = 0; i < x * 1000; i++); return x },
    block: (_) => new Promise((done) => free.push(done)),
    unblock(x) { for (const done of free.splice(0)) done(x); },
}";
const METHODS: [&str; 15] = [
    "quick", "fail", "wait", "hang", "spin", "fill", "leave", "tidy", "deep", "talk", "big", "ask",
    "work", "block", "unblock",
];
const SOURCES: [&str; 6] = [
    ANYTHING,
    "for (let i = 0; i < 3e4; i++); export default { quick: (x) => x }",
    "for (;;);",
    "await new Promise(() => {});",
    "throw new Error('no')",
    "const all = []; for (;;) all.push(new Uint8Array(1e5))",
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(usize),
    Call {
        isolate: usize,
        method: usize,
        x: i32,
        hurried: bool,
    },
    Cancel(usize),
    End(usize),
    Collect(usize),
    Turns(u8),
    Pass(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..SOURCES.len() + 6).prop_map(|n| Step::Start(n.saturating_sub(6))),
        8 => (any::<usize>(), 0..METHODS.len(), 0..60i32, any::<bool>())
            .prop_map(|(isolate, method, x, hurried)| Step::Call { isolate, method, x, hurried }),
        2 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::Collect),
        6 => (1..12u8).prop_map(Step::Turns),
        2 => (0..80u8).prop_map(Step::Pass),
    ]
}

fn random_limits(hurried: bool) -> Limits {
    limits(|limits| {
        limits.fuel_max = 4 * SLICE;
        limits.startup_fuel_max = 4 * SLICE;
        limits.memory_bytes_max = 6 << 20;
        limits.wall_ms_max = if hurried { 20 } else { 100 };
        limits.result_bytes_max = 1_000;
        limits.log_bytes_max = 2_000;
        limits.subrequests_max = 40;
        limits.subrequests_in_flight_max = 3;
        limits.cpu_ms_max = 3;
    })
}

/// Whether an outcome is one that a method may have.
fn is_allowed(method: &str, outcome: &Outcome) -> bool {
    use VerdictKind::{
        Cancelled, Cpu, Fuel, Hung, IsolateLost, Memory, ResultSize, Startup, Subrequests, Wall,
    };
    let verdict = match outcome {
        Outcome::Value(_) => return !["fail", "hang", "spin", "fill", "big"].contains(&method),
        // A source that throws, or has none of the methods.
        Outcome::Threw(_) => return true,
        Outcome::Verdict(verdict) => verdict,
    };
    if verdict.used < verdict.limit {
        return false;
    }
    match verdict.kind {
        Cancelled | IsolateLost | Wall => true,
        // Of the sources that never come to an end.
        Startup => !verdict.started,
        Hung => !verdict.started || ["hang", "block", "wait", "ask"].contains(&method),
        Memory => !verdict.started || method == "fill",
        ResultSize => method == "big",
        Subrequests => method == "ask",
        Fuel | Cpu => true,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 400, ..ProptestConfig::with_cases(60) })]

    /// Every call is answered once, in an allowed way, unless its isolate is told to end; and then nothing is left.
    #[test]
    fn every_call_is_answered_once_and_nothing_is_left(steps in prop::collection::vec(step(), 1..80)) {
        let lab = Lab::new();
        let mut isolates = Vec::new();
        let mut calls: Vec<(u64, u64, &str)> = Vec::new();
        let mut told_to_end = BTreeSet::new();
        let pick = |index: usize, all: &[u64]| (!all.is_empty()).then(|| all[index % all.len()]);
        for step in steps {
            match step {
                Step::Start(source) if isolates.len() < 60 => {
                    let spec = worker_with(&[("main.js", SOURCES[source])], random_limits(false));
                    isolates.push(lab.isolate(spec));
                }
                Step::Start(_) => {}
                Step::Call { isolate, method, x, hurried } => {
                    let Some(isolate) = pick(isolate, &isolates) else { continue };
                    let mut call = lab.call_of(METHODS[method], Value::from(x));
                    call.limits = random_limits(hurried);
                    calls.push((isolate, lab.send(isolate, call), METHODS[method]));
                }
                Step::Cancel(index) => {
                    if !calls.is_empty() {
                        let (isolate, call, _) = calls[index % calls.len()];
                        lab.cancel(isolate, call);
                    }
                }
                Step::End(index) => {
                    if let Some(isolate) = pick(index, &isolates) {
                        lab.end(isolate);
                        told_to_end.insert(isolate);
                    }
                }
                Step::Collect(index) => {
                    if let Some(isolate) = pick(index, &isolates) {
                        lab.stepper.send(Message::Collect { isolate });
                    }
                }
                Step::Turns(count) => {
                    for _ in 0..count {
                        lab.step();
                    }
                }
                Step::Pass(ms) => lab.clock.pass(Duration::from_millis(ms.into())),
            }
        }
        while lab.run_to_alarm() {}
        prop_assert_eq!(lab.stats().calls, 0);
        for (isolate, call, method) in calls {
            prop_assert!(lab.has_report(call) || told_to_end.contains(&isolate), "{} is not answered", method);
            if lab.has_report(call) {
                let report = lab.report(call);
                prop_assert!(is_allowed(method, &report.outcome), "{}: {:?}", method, report.outcome);
            }
        }
        let stats = lab.stats();
        prop_assert_eq!((stats.running, stats.queued, stats.alarms, stats.panics), (0, 0, 0, 0));
        let alive = isolates.iter().filter(|isolate| !lab.has_ended(**isolate)).count();
        prop_assert_eq!(stats.isolates, alive);
        isolates.iter().for_each(|isolate| lab.end(*isolate));
        lab.assert_empty();
        prop_assert!(isolates.iter().all(|isolate| lab.has_ended(*isolate)));
    }
}

/// The same with real threads and a real clock, from several senders: nothing of it is deterministic, and all of it
/// holds.
#[test]
fn on_threads_every_call_is_answered_once_and_nothing_is_left() {
    const CALLS: u64 = 600;
    let events = Events::default();
    // Room for all: how many are alive at once depends on how fast the machine is.
    let threads = threads(
        sandbox(160, 6),
        Arc::new(SystemClock::default()),
        3,
        &events,
    );
    let threads = &threads;
    std::thread::scope(|scope| {
        for sender in 0..3_u64 {
            scope.spawn(move || {
                let mut seed = sender + 1;
                let mut random = |below: u64| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    seed % below
                };
                // Ids of isolates and calls never meet those of another sender.
                let base = (sender + 1) * 1_000_000;
                let mut isolate = base;
                for number in 0..CALLS {
                    if number % 12 == 0 {
                        // Half of them end in the middle of it all, the others when they have nothing to do.
                        if number > 0 && random(2) == 0 {
                            threads.send(Message::End { isolate });
                        }
                        isolate += 1;
                        let source = SOURCES[random(12).saturating_sub(6) as usize];
                        let worker = worker_with(&[("main.js", source)], random_limits(false));
                        threads.send(Message::Start { isolate, worker });
                    }
                    let method = METHODS[random(METHODS.len() as u64) as usize];
                    let invocation = base + number;
                    let mut message = call(isolate, invocation, method);
                    if let Message::Call { call, .. } = &mut message {
                        call.limits = random_limits(random(2) == 0);
                    }
                    threads.send(message);
                    if random(5) == 0 {
                        let invocation = base + random(number + 1);
                        threads.send(Message::Cancel {
                            isolate,
                            invocation,
                        });
                    }
                    if random(3) == 0 {
                        std::thread::sleep(Duration::from_micros(random(800)));
                    }
                }
            });
        }
    });
    until(|| threads.stats().calls == 0);
    for sender in 1..4 {
        for isolate in sender * 1_000_000..=sender * 1_000_000 + CALLS / 12 {
            threads.send(Message::End { isolate });
        }
    }
    until(|| threads.stats().is_empty());
    // `Events` has refused second reports; what has none was in an isolate that was told to end.
    let seen = events.take();
    assert!(seen.reports.len() > 600, "{} reports", seen.reports.len());
    for report in seen.reports.values() {
        if let Outcome::Verdict(verdict) = &report.outcome {
            assert_ne!(verdict.kind, VerdictKind::Trap, "{verdict:?}");
        }
    }
}

/// What came of threads, each report once.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<SeenOnThreads>>);

#[derive(Default)]
struct SeenOnThreads {
    reports: BTreeMap<u64, Report>,
    ended: BTreeSet<u64>,
    wrong: Vec<String>,
}

impl Events {
    fn note(&self, event: Event) {
        let mut seen = self.0.lock().unwrap();
        match event {
            Event::Finished {
                isolate,
                invocation,
                report,
                isolate_reusable,
                ..
            } => {
                if isolate_reusable && seen.ended.contains(&isolate) {
                    seen.wrong.push(format!("{invocation} after the end"));
                }
                if seen.reports.insert(invocation, *report).is_some() {
                    seen.wrong.push(format!("{invocation} was reported twice"));
                }
            }
            Event::Logged { .. } | Event::Lingered { .. } | Event::OutboundRefused { .. } => {}
            Event::Called { .. }
            | Event::Loading { .. }
            | Event::CallDropped { .. }
            | Event::Released { .. } => {
                seen.wrong.push(format!("nobody calls out here: {event:?}"));
            }
            Event::Ended { isolate } => {
                if !seen.ended.insert(isolate) {
                    seen.wrong.push(format!("{isolate} ended twice"));
                }
            }
        }
    }

    #[track_caller]
    fn take(&self) -> SeenOnThreads {
        let seen = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(seen.wrong, [""; 0]);
        seen
    }
}

fn config(threads: usize) -> ThreadsConfig {
    ThreadsConfig {
        threads,
        niceness: 0,
        pool_memory_bytes_max: 4 << 30,
        seed: None,
    }
}

fn threads(
    sandbox: Arc<coracle_isolate::Sandbox>,
    clock: Arc<dyn Clock>,
    count: usize,
    events: &Events,
) -> Threads {
    let events = events.clone();
    Threads::start(sandbox, clock, config(count), move |event| {
        events.note(event);
    })
}

fn call(isolate: u64, invocation: u64, method: &str) -> Message {
    let call = Call {
        invocation,
        entrypoint: "default".into(),
        export: None,
        path: vec![method.into()],
        access: CallAccess::Call,
        args: coracle_isolate::Bytes {
            form: coracle_isolate::Form::Cbor,
            bytes: coracle_value::encode(&Value::Array(vec![Value::from(7)])),
            externals: Vec::new(),
        },
        props: Arc::new(coracle_isolate::Bytes::UNDEFINED),
        result_form: coracle_isolate::Form::Cbor,
        limits: HIGH,
    };
    Message::Call {
        isolate,
        call: Box::new(call),
    }
}

#[test]
fn the_stepper_repeats_itself() {
    let history = || {
        let lab = Lab::new();
        let isolates = [0; 4]
            .map(|_| lab.isolate(worker_with(&[("main.js", ANYTHING)], random_limits(false))));
        for number in 0..60 {
            let call = lab.call_of(
                METHODS[number * 7 % METHODS.len()],
                Value::from(number as i32),
            );
            lab.send(isolates[number % 4], call);
            if number % 3 == 0 {
                lab.step();
            }
        }
        while lab.run_to_alarm() {}
        let seen = lab.seen.borrow();
        (seen.order.clone(), seen.reports.clone())
    };
    assert_eq!(history(), history());
    assert_eq!(text("x"), Value::from("x"));
}

/// Endless loops of one tenant leave stacks for another one, however many they are.
#[test]
fn loops_of_one_tenant_do_not_take_every_stack() {
    let lab = Lab::with(sandbox(128, 32), 4 << 30);
    let call_of = |tenant: u64, source: &str| {
        let mut spec = worker_with(&[("main.js", source)], Limits::default());
        spec.tenant = tenant;
        let isolate = lab.isolate(spec);
        lab.send(isolate, lab.call_of("run", Value::Null))
    };
    for _ in 0..100 {
        call_of(1, &run("for (;;);"));
    }
    (0..500).for_each(|_| {
        lab.step();
    });
    assert_eq!(lab.stats().running, 28);
    let call = call_of(2, &run("return 'here'"));
    (0..3).for_each(|_| {
        lab.step();
    });
    assert!(lab.has_report(call));
}
