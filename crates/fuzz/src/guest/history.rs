//! A module and calls into it.

use super::module::{HONEST_LOAD_BYTES, Hostile};
use crate::{
    Reached, Source,
    lab::{Lab, limits_high, sandbox},
};
use coracle_isolate::{
    Clock, Guest, Image, Message, Outcome, Report, SystemClock, VerdictKind, WorkerSpec,
};
use coracle_loader::Limits;
use coracle_value::Value;
use std::{collections::BTreeSet, time::Duration};

const SLICE: u64 = coracle_isolate::FUEL_SLICE;
/// CPU time that a turn may take, of which a slice is a fifth of a millisecond; the watchdog gives a thread a second.
const TURN_MAX: Duration = Duration::from_millis(500);
const ISOLATES_MAX: u32 = 8;
const RUNNING_MAX: u32 = 3;
const MEMORY_BYTES_MAX: u64 = 4 << 20;
const POOL_MEMORY_BYTES_MAX: u64 = 24 << 20;

/// Panics where anything is not as it must be.
pub(super) fn run(hostile: &Hostile, choices: Source<'_>) -> Reached {
    let image = Image::compile_as_it_is(&Guest::from_wasm(hostile.wasm.clone()))
        .unwrap_or_else(|error| panic!("the generator made no module: {error}"));
    let mut run = History {
        random: choices,
        lab: Lab::with(
            sandbox(&image, ISOLATES_MAX, RUNNING_MAX),
            POOL_MEMORY_BYTES_MAX,
        ),
        honest: None,
        isolates: Vec::new(),
        calls: Vec::new(),
        told_to_end: BTreeSet::new(),
        reached: Reached::default(),
    };
    let cpu_a_slice = run.random.pick(&[0, 100, 1_100]);
    run.lab
        .clock
        .set_a_slice(Duration::from_micros(cpu_a_slice), Duration::ZERO);
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
    run.reached
}

struct History<'a> {
    random: Source<'a>,
    lab: Lab,
    honest: Option<u64>,
    isolates: Vec<u64>,
    calls: Vec<(u64, u64, Limits)>,
    told_to_end: BTreeSet<u64>,
    reached: Reached,
}

/// A worker is just a length here: the guest does not read it.
fn spec(load_bytes: usize, limits: Limits) -> WorkerSpec {
    WorkerSpec {
        load: vec![7; load_bytes].into(),
        tenant: 1,
        share: coracle_isolate::TenantShare::default(),
        trust: coracle_loader::Trust::Shared,
        outbound_refusal: Some("outbound requests are denied".into()),
        logs_streamed: false,
        limits,
    }
}

/// What an isolate may do; a call may ask for less.
fn widest() -> Limits {
    Limits {
        fuel_max: 300 * SLICE,
        startup_fuel_max: 10 * SLICE,
        cpu_ms_max: 1_000,
        wall_ms_max: 400,
        memory_bytes_max: MEMORY_BYTES_MAX,
        result_bytes_max: 5_000,
        log_bytes_max: 3_000,
        subrequests_max: 20,
        subrequests_in_flight_max: 4,
        ..Limits::default()
    }
}

fn lower(random: &mut Source<'_>) -> Limits {
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
        assert!(
            stats.running <= RUNNING_MAX as usize && stats.memory_bytes <= POOL_MEMORY_BYTES_MAX,
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
                let call = self.lab.call_of("anything", vec!["x".into()], limits);
                let invocation = self.lab.call(isolate, call);
                self.calls.push((isolate, invocation, limits));
            }
            6 if !self.calls.is_empty() => {
                let (isolate, invocation, _) = self.random.pick(&self.calls);
                self.lab.send(Message::Cancel {
                    isolate,
                    invocation,
                });
            }
            7 if !self.isolates.is_empty() && self.random.once_in(2) => {
                let isolate = self.random.pick(&self.isolates);
                self.lab.send(Message::End { isolate });
                self.told_to_end.insert(isolate);
            }
            8 if !self.isolates.is_empty() => {
                let isolate = self.random.pick(&self.isolates);
                self.lab.send(Message::Collect { isolate });
            }
            9 => self
                .lab
                .clock
                .pass(Duration::from_millis(self.random.below(120) as u64)),
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
        let call = self
            .lab
            .call_of("anything", vec![Value::Null], limits_high());
        let report = self.lab.report(self.lab.call(isolate, call));
        match &report.outcome {
            // It came to life when the others had taken all that there is for all of them.
            Outcome::Verdict(verdict)
                if verdict.limit_name == "pool_memory_bytes_max"
                    || verdict.kind == VerdictKind::Wall =>
            {
                self.honest = None;
            }
            Outcome::Value(value) => {
                assert_eq!(value.bytes, coracle_value::encode(&"honest".into()));
                self.reached.note("honest");
            }
            other => panic!("the honest isolate ends with {other:?}"),
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
            let Some(report) = self.lab.report_so_far(*invocation) else {
                assert!(self.told_to_end.contains(isolate), "a call is not answered");
                continue;
            };
            assert_within_limits(&report, limits);
            note(&report, &mut self.reached);
        }
        self.call_honest();
        let stats = self.lab.stats();
        assert_eq!((stats.calls, stats.alarms, stats.running), (0, 0, 0));
        for (isolate, invocation, _) in &self.calls {
            let told = self.told_to_end.contains(isolate) || !self.lab.is_held(*invocation);
            assert!(told, "what {invocation} did after its report is not told");
        }
        for isolate in self.isolates.iter().chain(&self.honest) {
            self.lab.send(Message::End { isolate: *isolate });
        }
        while self.turn() {}
        let left = self.lab.stats();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn note(report: &Report, reached: &mut Reached) {
    for _ in &report.logs {
        reached.note("log");
    }
    match &report.outcome {
        Outcome::Value(_) => reached.note("value"),
        Outcome::Threw(_) => reached.note("threw"),
        Outcome::Verdict(verdict) => {
            // Numbers differ; what was wrong is the rest.
            let is_number = |c: char| c.is_ascii_digit() || c == '-';
            let words: String = verdict.detail.split(is_number).collect();
            reached.note(format!("{}: {words}", verdict.kind.as_str()));
        }
    }
}

fn assert_within_limits(report: &Report, limits: &Limits) {
    let usage = &report.usage;
    assert!(usage.fuel_run <= limits.fuel_max + SLICE, "{usage:?}");
    assert!(
        usage.fuel_load <= limits.startup_fuel_max + SLICE,
        "{usage:?}"
    );
    assert!(usage.memory_peak_bytes <= MEMORY_BYTES_MAX, "{usage:?}");
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
