//! The border, with an arbitrary Wasm module in QuickJS's place: nothing that a guest does breaks the host, reaches
//! another isolate, or goes beyond its limits.
//!
//! A seed makes a module and a history of calls into it. Some seeds are always run; then random ones for
//! `CORACLE_FUZZ_SECONDS` (default: 8). A seed that fails is printed, and belongs into `tests/seeds/border.txt`.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

#[path = "support/hostile.rs"]
mod hostile;
#[path = "support/lab.rs"]
mod lab;
mod support;

use coracle_isolate::{
    Call, Clock, Guest, Image, Machine, Message, Outcome, Report, Sandbox, SandboxConfig,
    Scheduler, Stats, SystemClock, VerdictKind, WorkerSpec,
};
use coracle_loader::Limits;
use coracle_value::Value;
use hostile::{HONEST_LOAD_BYTES, Random};
use lab::{Lab, limits, text, verdict};
use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use support::value;

const SLICE: u64 = coracle_isolate::FUEL_SLICE;
/// CPU time that a turn may take, of which a slice is a fifth of a millisecond; the watchdog gives a thread a second.
const TURN_MAX: Duration = Duration::from_millis(500);
/// Seeds that are always run, so that what they reach is known.
const ALWAYS: u64 = 300;

#[test]
fn no_guest_breaks_the_host_or_another_isolate_or_its_limits() {
    let honest = Lab::new();
    let neighbour = honest.source("let n = 0; export default { next(_) { return ++n } }");
    let mut reached = Reached::default();
    let mut served = 0;
    let mut try_seed = |seed: u64, reached: &mut Reached| {
        // A crash of the process leaves this behind.
        let _ = std::fs::write(last_seed_file(), seed.to_string());
        let history = AssertUnwindSafe(|| history(seed, reached));
        if let Err(cause) = catch_unwind(history) {
            eprintln!("seed {seed} fails; keep it in tests/seeds/border.txt");
            std::panic::resume_unwind(cause);
        }
        // An isolate with another engine in the same process.
        served += 1;
        let report = honest.call(neighbour, "next", Value::Null);
        assert_eq!(value(&report), Value::from(served), "after seed {seed}");
    };
    for seed in kept_seeds().into_iter().chain(0..ALWAYS) {
        try_seed(seed, &mut reached);
    }
    reached.assert_everything();

    let seconds = std::env::var("CORACLE_FUZZ_SECONDS")
        .map_or(8, |text| text.parse().expect("a number of seconds"));
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut seeds = Random(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64,
    );
    let mut tried = 0;
    while Instant::now() < until {
        try_seed(seeds.next(), &mut reached);
        tried += 1;
    }
    println!("{tried} random seeds");
}

fn kept_seeds() -> Vec<u64> {
    include_str!("seeds/border.txt")
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim())
        .filter(|line| !line.is_empty())
        .map(|line| line.parse().expect("a seed"))
        .collect()
}

fn last_seed_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("border-last-seed")
}

/// What the histories have led to, which shows that they get anywhere.
#[derive(Default)]
struct Reached {
    kinds: BTreeMap<&'static str, u32>,
    values: u32,
    thrown: u32,
    honest: u32,
    logs: usize,
    details: BTreeSet<String>,
}

impl Reached {
    fn note(&mut self, report: &Report) {
        self.logs += report.logs.len();
        match &report.outcome {
            Outcome::Value(_) => self.values += 1,
            Outcome::Threw(_) => self.thrown += 1,
            Outcome::Verdict(verdict) => {
                *self.kinds.entry(verdict.kind.as_str()).or_default() += 1;
                // Numbers differ; what was wrong is the rest.
                let words = verdict
                    .detail
                    .split(|c: char| c.is_ascii_digit() || c == '-');
                self.details
                    .insert(words.filter(|word| !word.is_empty()).collect());
            }
        }
    }

    fn assert_everything(&self) {
        for kind in [
            VerdictKind::Fuel,
            VerdictKind::Cpu,
            VerdictKind::Startup,
            VerdictKind::Wall,
            VerdictKind::Memory,
            VerdictKind::Stack,
            VerdictKind::Subrequests,
            VerdictKind::Timers,
            VerdictKind::ResultSize,
            VerdictKind::ValueDepth,
            VerdictKind::Hung,
            VerdictKind::Cancelled,
            VerdictKind::IsolateLost,
            VerdictKind::Trap,
        ] {
            assert!(
                self.kinds.contains_key(kind.as_str()),
                "{kind:?} is not reached"
            );
        }
        assert!(self.values > 50 && self.thrown > 5 && self.honest > 100 && self.logs > 100);
        for detail in [
            "are outside of the guest's memory",
            "which does not exist",
            "is no number",
            "random bytes at once",
            "outcome that does not exist",
            "a way that can't be read",
            "uses a loader in a way",
            "no room for the message",
            "out of bounds",
            "unreachable",
        ] {
            assert!(
                self.details.iter().any(|seen| seen.contains(detail)),
                "{detail:?} is not reached: {:#?}",
                self.details
            );
        }
    }
}

/// A module and calls into it; panics where anything is not as it must be.
fn history(seed: u64, reached: &mut Reached) {
    let hostile = hostile::module(seed);
    let image = Image::compile_as_it_is(&Guest::from_wasm(hostile.wasm))
        .unwrap_or_else(|error| panic!("the generator made no module: {error}"));
    let config = SandboxConfig {
        isolates_max: 8,
        running_max: 3,
        pagemap_scan: Machine::read().pagemap_scan,
    };
    let sandbox = Arc::new(Sandbox::new(config, &image).unwrap());
    let mut run = History {
        random: Random(seed ^ 0x5eed),
        lab: Lab::with(sandbox, 24 << 20),
        honest: None,
        isolates: Vec::new(),
        calls: Vec::new(),
        told_to_end: BTreeSet::new(),
        reached,
    };
    let cpu_a_slice = run.random.pick(&[0, 100, 1_100]);
    run.lab
        .clock
        .set_cpu_a_slice(Duration::from_micros(cpu_a_slice));
    // Ids of more than one byte, so that a guest's guess is not always right.
    while run.lab.id() < 1_000 {}
    if !hostile.hostile_birth {
        run.honest = Some(run.lab.isolate(spec(HONEST_LOAD_BYTES, widest())));
    }
    run.call_honest();
    for _ in 0..10 + run.random.below(40) {
        run.step();
    }
    run.finish();
}

struct History<'a> {
    random: Random,
    lab: Lab,
    honest: Option<u64>,
    isolates: Vec<u64>,
    calls: Vec<(u64, u64, Limits)>,
    told_to_end: BTreeSet<u64>,
    reached: &'a mut Reached,
}

/// A worker is just a length here: the guest does not read it.
fn spec(load_bytes: usize, limits: Limits) -> WorkerSpec {
    WorkerSpec {
        load: vec![7; load_bytes].into(),
        tenant: 1,
        outbound_refusal: Some("outbound requests are denied".into()),
        logs_streamed: false,
        limits,
    }
}

/// What an isolate may do; a call may ask for less.
fn widest() -> Limits {
    limits(|limits| {
        limits.fuel_max = 300 * SLICE;
        limits.startup_fuel_max = 10 * SLICE;
        limits.cpu_ms_max = 1_000;
        limits.wall_ms_max = 400;
        limits.memory_bytes_max = 4 << 20;
        limits.result_bytes_max = 5_000;
        limits.log_bytes_max = 3_000;
        limits.subrequests_max = 20;
        limits.subrequests_in_flight_max = 4;
    })
}

fn lower(random: &mut Random) -> Limits {
    let mut limits = widest();
    // The most is enough for as many timers as there may be.
    limits.fuel_max = random.pick(&[1, 3, 10, 60, 300]) * SLICE;
    limits.startup_fuel_max = random.pick(&[1, 10]) * SLICE;
    limits.cpu_ms_max = random.pick(&[1, 1_000]);
    limits.wall_ms_max = random.pick(&[1, 50, 400]);
    limits
}

impl History<'_> {
    /// One turn, which must not take long whatever the guest does in it.
    fn turn(&self) -> bool {
        // CPU time, because the machine may have other things to do.
        let clock = SystemClock::default();
        let start = clock.thread_cpu();
        let more = self.lab.step();
        let took = clock.thread_cpu() - start;
        assert!(took < TURN_MAX, "a turn took {took:?}");
        let stats = self.lab.stats();
        assert_eq!(stats.panics, 0);
        assert!(
            stats.running <= 3 && stats.memory_bytes <= 24 << 20,
            "{stats:?}"
        );
        more
    }

    fn step(&mut self) {
        let alive: Vec<u64> = self
            .isolates
            .iter()
            .copied()
            .filter(|isolate| !self.lab.has_ended(*isolate))
            .collect();
        match self.random.below(14) {
            _ if alive.is_empty() => self.start(),
            0 if alive.len() < 7 => self.start(),
            0..=5 => {
                // Sometimes one that is no more.
                let isolate = if self.random.once_in(12) {
                    self.random.pick(&self.isolates)
                } else {
                    self.random.pick(&alive)
                };
                let limits = lower(&mut self.random);
                let call = Call {
                    limits,
                    ..self.lab.call_of("anything", text("x"))
                };
                let invocation = self.lab.send(isolate, call);
                self.calls.push((isolate, invocation, limits));
            }
            6 if !self.calls.is_empty() => {
                let (isolate, invocation, _) = self.random.pick(&self.calls);
                self.lab.cancel(isolate, invocation);
            }
            7 if !self.isolates.is_empty() && self.random.once_in(2) => {
                let isolate = self.random.pick(&self.isolates);
                self.lab.end(isolate);
                self.told_to_end.insert(isolate);
            }
            8 if !self.isolates.is_empty() => {
                let isolate = self.random.pick(&self.isolates);
                self.lab.stepper.send(Message::Collect { isolate });
            }
            9 => self
                .lab
                .clock
                .pass(Duration::from_millis(self.random.below(120))),
            10 => self.call_honest(),
            _ => {
                for _ in 0..self.random.below(12) {
                    self.turn();
                }
            }
        }
    }

    fn start(&mut self) {
        let bytes = self.random.pick(&[1, 30, 3_000, 50_000]);
        self.isolates.push(self.lab.isolate(spec(bytes, widest())));
    }

    /// The isolate beside them answers, as long as it has memory to begin with.
    fn call_honest(&mut self) {
        let Some(isolate) = self.honest else { return };
        let mut call = self.lab.call_of("anything", Value::Null);
        call.limits.wall_ms_max = u64::MAX;
        let report = self.lab.report(self.lab.send(isolate, call));
        match &report.outcome {
            Outcome::Verdict(verdict) if verdict.limit_name == "pool_memory_bytes_max" => {
                // It came to life when the others had taken all that there is for all of them.
                self.honest = None;
            }
            Outcome::Verdict(verdict) if verdict.kind == VerdictKind::Wall => {
                self.honest = None;
            }
            _ => {
                assert_eq!(value(&report), text("honest"));
                self.reached.honest += 1;
            }
        }
    }

    /// Everything comes to an end, and nothing is left.
    fn finish(&mut self) {
        loop {
            while self.turn() {}
            if !self.lab.run_to_alarm() {
                break;
            }
        }
        for (isolate, invocation, limits) in &self.calls {
            if !self.lab.has_report(*invocation) {
                assert!(self.told_to_end.contains(isolate), "a call is not answered");
                continue;
            }
            let report = self.lab.report(*invocation);
            assert_within_limits(&report, limits);
            self.reached.note(&report);
        }
        self.call_honest();
        let stats = self.lab.stats();
        assert_eq!((stats.calls, stats.alarms, stats.running), (0, 0, 0));
        for (isolate, invocation, _) in &self.calls {
            let told = self.told_to_end.contains(isolate) || !self.lab.is_held(*invocation);
            assert!(told, "what {invocation} did after its report is not told");
        }
        for isolate in self.isolates.iter().chain(&self.honest) {
            self.lab.end(*isolate);
        }
        while self.turn() {}
        assert_eq!(self.lab.stats(), Stats::default());
    }
}

fn assert_within_limits(report: &Report, limits: &Limits) {
    let usage = &report.usage;
    assert!(usage.fuel_run <= limits.fuel_max + SLICE, "{usage:?}");
    assert!(
        usage.fuel_load <= limits.startup_fuel_max + SLICE,
        "{usage:?}"
    );
    assert!(usage.memory_peak_bytes <= 4 << 20, "{usage:?}");
    assert!(u64::from(usage.subrequests) <= limits.subrequests_max);
    let log_bytes: usize = report.logs.iter().map(|log| log.message.len()).sum();
    assert!(log_bytes as u64 <= limits.log_bytes_max, "{log_bytes}");
    assert!(report.logs.len() as u64 <= limits.log_bytes_max / 80 + 1);
    match &report.outcome {
        Outcome::Value(value) => {
            assert!(value.bytes.len() as u64 <= limits.result_bytes_max);
        }
        Outcome::Threw(thrown) => assert!(thrown.message.len() <= 1 << 20),
        Outcome::Verdict(verdict) => {
            assert!(
                verdict.limit_name.is_empty() || verdict.used >= verdict.limit,
                "{verdict:?}"
            );
            // A guest can't bring about what only the host decides.
            assert!(
                !matches!(
                    verdict.kind,
                    VerdictKind::ArgsSize | VerdictKind::IsolateEvicted
                ),
                "{verdict:?}"
            );
            assert!(!verdict.detail.contains("the host failed"), "{verdict:?}");
        }
    }
}

// --- by hand ---

/// A sandbox with this module's text in the engine's place.
fn lab_of(module: &str) -> Lab {
    let wasm = wat::parse_str(module).unwrap_or_else(|error| panic!("{error}"));
    let image = Image::compile_as_it_is(&Guest::from_wasm(wasm)).unwrap();
    let config = SandboxConfig {
        isolates_max: 4,
        running_max: 4,
        pagemap_scan: Machine::read().pagemap_scan,
    };
    Lab::with(Arc::new(Sandbox::new(config, &image).unwrap()), 1 << 30)
}

/// A guest whose parts can be replaced.
fn guest(birth: &str, allocate: &str, load: &str, invoke: &str) -> String {
    format!(
        r#"(module
          (import "coracle" "start" (func $start (param i32 i32 i32) (result i64)))
          (import "coracle" "finish" (func $finish (param i64 i32 i32 i32)))
          (import "coracle" "log" (func $log (param i32 i32 i32)))
          (import "coracle" "random" (func $random (param i32 i32)))
          (memory (export "memory") 2)
          (global $runs (mut i32) (i32.const 0))
          (func $deep (param i32) (call $deep (i32.add (local.get 0) (i32.const 1))))
          (func $spin (loop br 0))
          {birth}
          (func (export "allocate") (param i32) (result i32) {allocate})
          (func $load (export "load") (param i32 i32 f64) {load})
          (func $invoke (export "invoke") (param i32 i32 f64) {invoke})
          (func (export "settle") (param i64 i32 i32 f64))
          (func (export "release") (param i32 i32 f64))
          (func (export "collect")))"#
    )
}

const BORN: &str = "(func (export \"reseed\") (param i64))";
const ROOM: &str = "(i32.const 1024)";
const LOADED: &str = "(call $finish (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))";

#[track_caller]
fn only_verdict(lab: &Lab) -> coracle_isolate::Verdict {
    let isolate = lab.isolate(spec(
        10,
        limits(|limits| limits.startup_fuel_max = 10 * SLICE),
    ));
    let mut call = lab.call_of("anything", Value::Null);
    call.limits.fuel_max = 10 * SLICE;
    let report = lab.report(lab.send(isolate, call));
    assert!(lab.has_ended(isolate));
    lab.assert_empty();
    verdict(&report)
}

/// Start function and `reseed` are guest code like any other: metered, in slices, on a stack of the pool's.
#[test]
fn a_guest_that_hangs_or_overflows_at_its_birth_is_stopped_like_any_other() {
    for (birth, kind) in [
        (
            "(func (export \"reseed\") (param i64) (call $spin))",
            VerdictKind::Startup,
        ),
        (
            "(func (export \"reseed\") (param i64) (call $deep (i32.const 0)))",
            VerdictKind::Stack,
        ),
        (
            "(func (export \"reseed\") (param i64) unreachable)",
            VerdictKind::Trap,
        ),
        (
            "(func (export \"reseed\") (param i64) (drop (memory.grow (i32.const 60000))))",
            VerdictKind::Memory,
        ),
        (
            "(func (export \"reseed\") (param i64)) (func $born (call $spin)) (start $born)",
            VerdictKind::Startup,
        ),
        (
            "(func (export \"reseed\") (param i64)) (func $born (call $deep (i32.const 0))) (start $born)",
            VerdictKind::Stack,
        ),
        // The imports are there before the host knows the memory.
        (
            "(func (export \"reseed\") (param i64)) (func $born (call $log (i32.const 0) (i32.const 0) (i32.const 1))) (start $born)",
            VerdictKind::Trap,
        ),
        // A million host calls at birth.
        (
            "(func (export \"reseed\") (param i64) (loop (call $random (i32.const 0) (i32.const 65536)) (br 0)))",
            VerdictKind::Startup,
        ),
    ] {
        let lab = lab_of(&guest(birth, ROOM, LOADED, ""));
        let stopped = only_verdict(&lab);
        assert_eq!((stopped.kind, stopped.started), (kind, false), "{birth}");
    }
}

#[test]
fn a_guest_that_lies_about_a_load_gets_no_call_through() {
    let finish = |invocation: &str, kind: u32| {
        format!(
            "(call $finish (i64.const {invocation}) (i32.const {kind}) (i32.const 0) (i32.const 0))"
        )
    };
    for (load, kind) in [
        // Nothing said, or not of the load.
        (String::new(), VerdictKind::Hung),
        (finish("1", 0), VerdictKind::Hung),
        // A load has no value.
        (finish("0", 1), VerdictKind::Trap),
        (finish("0", 99), VerdictKind::Trap),
        // What comes first counts.
        (finish("0", 99) + LOADED, VerdictKind::Trap),
        ("(loop (call $finish (i64.const 0) (i32.const 1) (i32.const 0) (i32.const 100000)) (br 0))".into(), VerdictKind::Startup),
    ] {
        let lab = lab_of(&guest(BORN, ROOM, &load, ""));
        let stopped = only_verdict(&lab);
        assert_eq!((stopped.kind, stopped.started), (kind, false), "{load}");
    }
}

/// Finishing the call while its modules are still being evaluated would answer it twice.
#[test]
fn a_call_that_is_finished_during_the_load_is_still_made_and_answered_once() {
    // The second id that the lab gives is the call's.
    let load = format!(
        "(local i32) (call $finish (i64.const 2) (i32.const 0) (i32.const 0) (i32.const 0)) \
         (local.set 3 (i32.const 2000000)) (loop (br_if 0 (local.tee 3 (i32.sub (local.get 3) (i32.const 1))))) {LOADED}"
    );
    let invoke = "(call $finish (i64.const 2) (i32.const 0) (i32.const 0) (i32.const 0))";
    let lab = lab_of(&guest(BORN, ROOM, &load, invoke));
    let isolate = lab.isolate(spec(10, Limits::default()));
    let call = lab.call_of("anything", Value::Null);
    assert_eq!(call.invocation, 2);
    let report = lab.report(lab.send(isolate, call));
    assert_eq!(value(&report), Value::Undefined);
    assert!(report.usage.fuel_run > 0);
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn a_buffer_outside_of_the_memory_is_a_trap_of_the_guests() {
    for pointer in ["-1", "131072", "131067", "2147483647"] {
        let lab = lab_of(&guest(BORN, &format!("(i32.const {pointer})"), LOADED, ""));
        let stopped = only_verdict(&lab);
        assert_eq!(stopped.kind, VerdictKind::Trap, "{pointer}");
    }
}

/// A timer that is further away than any clock goes.
#[test]
fn any_number_is_a_time() {
    for ms in [
        "1e300",
        "1.8e19",
        "1.8446744073709549568e22",
        "inf",
        "-inf",
        "nan",
        "-1",
        "-0",
    ] {
        let invoke = format!(
            "(f64.store (i32.const 0) (f64.const {ms})) (drop (call $start (i32.const 1) (i32.const 0) (i32.const 8)))"
        );
        let lab = lab_of(&guest(BORN, ROOM, LOADED, &invoke));
        // Late enough for the sum of the two to be more than there are seconds.
        lab.clock.pass(Duration::from_secs(10_000));
        let isolate = lab.isolate(spec(10, Limits::default()));
        let report = lab.call(isolate, "anything", Value::Null);
        let stopped = verdict(&report);
        // Either it comes at once and settles nothing, or the wall time is up before.
        assert!(
            matches!(stopped.kind, VerdictKind::Hung | VerdictKind::Wall),
            "{ms}: {stopped:?}"
        );
        assert_eq!(lab.stats().panics, 0);
        lab.end(isolate);
        lab.assert_empty();
    }
}

/// Case M23: what one isolate had in its memory, the next one in its place never sees.
#[test]
fn memory_is_clean_when_another_isolate_gets_it() {
    const PAGES: u32 = 40;
    // Looks for anything that is not zero beyond its own first page, reports what it found, and fills all of it.
    let invoke = format!(
        "(local i32 i64)
         (drop (memory.grow (i32.const {PAGES})))
         (local.set 3 (i32.const 65536))
         (loop
           (local.set 4 (i64.or (local.get 4) (i64.load (local.get 3))))
           (local.set 3 (i32.add (local.get 3) (i32.const 8)))
           (br_if 0 (i32.lt_u (local.get 3) (i32.mul (memory.size) (i32.const 65536)))))
         (memory.fill (i32.const 65536) (i32.const 0xaa) (i32.const {}))
         ;; The result is true where something was there.
         (i32.store8 (i32.const 0) (i32.add (i32.const 0xf4) (i64.ne (local.get 4) (i64.const 0))))
         (call $finish (i64.extend_i32_u (i32.load8_u (i32.const 1026))) (i32.const 1) (i32.const 0) (i32.const 1))",
        (PAGES + 1) * 65_536
    );
    let lab = lab_of(&guest(BORN, ROOM, LOADED, &invoke));
    for _ in 0..12 {
        while lab.id() < 30 {}
        let isolates = [0; 4].map(|_| {
            // Not the call's arguments: the message begins with an array's head, and the id in two bytes.
            let isolate = lab.isolate(spec(10, Limits::default()));
            let mut call = lab.call_of("anything", Value::Null);
            call.invocation = 100 + isolate % 100;
            let report = lab.report(lab.send(isolate, call));
            assert_eq!(value(&report), Value::Bool(false));
            isolate
        });
        isolates.iter().for_each(|isolate| lab.end(*isolate));
        lab.run();
    }
    lab.assert_empty();
}

/// A flood of reports costs the host no more memory than one slice of them.
#[test]
fn reports_of_what_is_over_are_thrown_away_as_they_come() {
    let invoke = "(call $finish (i64.const 2) (i32.const 0) (i32.const 0) (i32.const 0)) \
         (loop (call $finish (i64.const 2) (i32.const 1) (i32.const 0) (i32.const 100000)) (br 0))";
    let lab = lab_of(&guest(BORN, ROOM, LOADED, invoke));
    let isolate = lab.isolate(spec(10, limits(|limits| limits.fuel_max = 100 * SLICE)));
    let call = lab.call_of("anything", Value::Null);
    let report = lab.report(lab.send(isolate, call));
    assert_eq!(value(&report), Value::Undefined);
    lab.run();
    assert!(lab.has_ended(isolate));
    lab.assert_empty();
}

/// Instructions that call into the engine's runtime and come back with nothing done are priced by what the call takes.
#[test]
fn a_slice_of_calls_into_the_runtime_is_not_much_longer_than_any_other() {
    let zeros = "(i32.const 0) (i32.const 0) (i32.const 0)";
    for instruction in [
        "(drop (memory.grow (i32.const 0)))".to_owned(),
        format!("(memory.fill {zeros})"),
        format!("(memory.copy {zeros})"),
        format!("(memory.init 0 {zeros})"),
        "(drop (table.grow (ref.null func) (i32.const 0)))".into(),
        "(table.fill (i32.const 0) (ref.null func) (i32.const 0))".into(),
        format!("(table.copy {zeros})"),
        format!("(table.init 0 {zeros})"),
        "(drop (ref.func $spin))".into(),
        "(data.drop 0)".into(),
        "(elem.drop 0)".into(),
    ] {
        let birth = format!("{BORN} (table 4 funcref) (elem func $spin) (data \"some\")");
        let invoke = format!("(loop {} (br 0))", instruction.repeat(20));
        let lab = lab_of(&guest(&birth, ROOM, LOADED, &invoke));
        let isolate = lab.isolate(spec(10, limits(|limits| limits.fuel_max = 20 * SLICE)));
        let call = lab.call_of("anything", Value::Null);
        let call = lab.send(isolate, call);
        let clock = SystemClock::default();
        let mut turns = Vec::new();
        while !lab.has_report(call) {
            let start = clock.thread_cpu();
            assert!(lab.step());
            turns.push(clock.thread_cpu() - start);
        }
        turns.sort_unstable();
        let median = turns[turns.len() / 2];
        assert!(
            median < Duration::from_millis(12),
            "{instruction}: {median:?}"
        );
    }
}
