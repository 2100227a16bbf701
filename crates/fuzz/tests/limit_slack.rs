//! How much more than its limit a call can use: nothing, or one slice. On a corpus of small programs, each of which is run
//! under limits taken from what it uses without any.

use coracle_fuzz::{
    lab::{Lab, limits_high, worker},
    programs,
};
use coracle_isolate::{FUEL_SLICE, Form, Log, Outcome, Report, Verdict, VerdictKind};
use coracle_loader::Limits;
use coracle_value::Value;
use std::{collections::BTreeMap, process::Command, sync::LazyLock, time::Duration};

/// What a slice takes in these tests, so that CPU time is the number of slices.
const CPU_A_SLICE: Duration = Duration::from_millis(1);

/// What each program does without limits.
static FREE: LazyLock<BTreeMap<&str, Report>> = LazyLock::new(|| {
    let run = |(name, body)| (name, run(body, |_| {}));
    programs().map(run).collect()
});

/// Runs a program under the default limits, but for these.
fn run(body: &str, change: impl FnOnce(&mut Limits)) -> Report {
    let lab = Lab::new();
    lab.clock.set_a_slice(CPU_A_SLICE, Duration::ZERO);
    let mut limits = Limits::default();
    change(&mut limits);
    let source = format!("export default {{ async run(arg, env, ctx) {{ {body}\n}} }};");
    let isolate = lab.isolate(worker(&source, limits));
    let call = lab.call_of("run", vec![Value::Null], limits_high());
    lab.report(lab.call(isolate, call))
}

fn verdict(report: &Report) -> &Verdict {
    match &report.outcome {
        Outcome::Verdict(verdict) => verdict,
        other => panic!("not stopped, but {other:?}"),
    }
}

fn output_bytes(report: &Report) -> u64 {
    report.logs.iter().map(Log::bytes).sum::<usize>() as u64
}

/// The corpus is what the other tests stand on: 50 programs, which end by themselves and use what there is to be limited.
#[test]
fn the_programs_do_what_they_say() {
    assert!(FREE.len() >= 50);
    for (name, report) in &*FREE {
        match &report.outcome {
            Outcome::Value(value) => assert_ne!(value.form, Form::Undefined, "{name}"),
            Outcome::Threw(thrown) => {
                assert_eq!(
                    (*name, &*thrown.name),
                    ("throws", "RangeError"),
                    "{thrown:?}"
                );
            }
            Outcome::Verdict(verdict) => panic!("{name} is stopped: {verdict:?}"),
        }
    }
    let count = |of: fn(&Report) -> bool| FREE.values().filter(|report| of(report)).count();
    assert!(count(|report| report.usage.wall_us > 10_000) >= 6);
    assert!(count(|report| output_bytes(report) > 0) >= 3);
    assert!(count(|report| report.usage.fuel_run > 2 * FUEL_SLICE) >= 25);
    assert!(count(|report| report.usage.memory_peak_bytes > 4 << 20) >= 3);
}

/// Fuel is a meter: the same program uses the same, to the unit, and does the same.
#[test]
fn every_program_costs_and_does_the_same_twice() {
    for (name, body) in programs() {
        assert_eq!(run(body, |_| {}), FREE[name], "{name}");
    }
}

/// What the child process prints before its summary.
const MARK: &str = "fuel of a child: ";

fn fuel_of_all() -> String {
    let fuel = |report: &Report| format!("{}+{}", report.usage.fuel_load, report.usage.fuel_run);
    FREE.values().map(fuel).collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "only the next test runs it, in a child process"]
fn child() {
    println!("{MARK}{}", fuel_of_all());
}

/// Nothing of a process, such as where its memory is, is in the fuel.
#[test]
fn every_program_costs_the_same_in_another_process() {
    let own = std::env::current_exe().expect("a test has a file");
    let output = Command::new(own)
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .output()
        .expect("it runs");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs = output.lines().find_map(|line| line.split_once(MARK));
    assert_eq!(
        theirs.map(|(_, fuel)| fuel),
        Some(&*fuel_of_all()),
        "{output}"
    );
}

/// Fuel is exact: what a program uses is enough, and one unit less is not.
#[test]
fn fuel_is_exact() {
    for (name, body) in programs() {
        let used = FREE[name].usage.fuel_run;
        let enough = run(body, |limits| limits.fuel_max = used);
        assert_eq!(enough.outcome, FREE[name].outcome, "{name}");
        let report = run(body, |limits| limits.fuel_max = used - 1);
        assert_eq!(verdict(&report).kind, VerdictKind::Fuel, "{name}");
        assert!(report.usage.fuel_run < used, "{name}: {:?}", report.usage);
    }
}

/// CPU time is looked at after each slice, so that at most one is too much. (A program that ends in that one has ended.)
#[test]
fn cpu_time_is_exceeded_by_at_most_a_slice() {
    let mut stopped = 0;
    for (name, body) in programs() {
        // In whole slices, load and run.
        let used_ms = FREE[name].usage.cpu_us / 1_000;
        let enough = run(body, |limits| limits.cpu_ms_max = used_ms);
        assert_eq!(enough.outcome, FREE[name].outcome, "{name}");
        for limit_ms in (1..used_ms - 1).step_by((used_ms as usize / 3).max(1)) {
            let report = run(body, |limits| limits.cpu_ms_max = limit_ms);
            let verdict = verdict(&report);
            assert_eq!(verdict.kind, VerdictKind::Cpu, "{name}");
            assert_eq!(verdict.used, limit_ms + 1, "{name}");
            assert_eq!(report.usage.cpu_us, (limit_ms + 1) * 1_000, "{name}");
            stopped += 1;
        }
    }
    assert!(stopped >= 60, "only {stopped}");
}

/// The slice in which a load ends is looked at like any other, before code of the call runs.
#[test]
fn a_load_that_takes_all_cpu_time_leaves_none_to_the_call() {
    let lab = Lab::new();
    lab.clock
        .set_a_slice(Duration::from_micros(1_100), Duration::ZERO);
    let limits = Limits {
        cpu_ms_max: 1,
        ..Limits::default()
    };
    let isolate = lab.isolate(worker("export default { run() {} }", limits));
    let call = lab.call_of("run", vec![Value::Null], limits_high());
    let report = lab.report(lab.call(isolate, call));
    let verdict = verdict(&report);
    assert_eq!((verdict.kind, verdict.started), (VerdictKind::Cpu, false));
    assert_eq!((report.usage.cpu_us, report.usage.fuel_run), (1_100, 0));
}

/// Waiting is wall time and never CPU time, however long it is.
#[test]
fn cpu_time_never_includes_waiting() {
    for ms in [0_u32, 1, 1_000, 29_000] {
        let wait = |ms: u32| {
            run(
                &format!("await new Promise((go) => setTimeout(go, {ms})); return 1"),
                |limits| limits.cpu_ms_max = 20,
            )
        };
        let report = wait(ms);
        assert!(report.usage.wall_us >= u64::from(ms) * 1_000);
        assert!(
            report.usage.cpu_us <= wait(0).usage.cpu_us,
            "{:?}",
            report.usage
        );
    }
}

/// Where code takes no time, a call is stopped at the very time that its limit says, and never before.
#[test]
fn wall_time_is_exact() {
    let mut stopped = 0;
    for (name, body) in programs() {
        let used_us = FREE[name].usage.wall_us;
        assert_eq!(used_us % 1_000, 0, "{name}");
        let used_ms = used_us / 1_000;
        if used_ms < 2 {
            continue;
        }
        let enough = run(body, |limits| limits.wall_ms_max = used_ms + 1);
        assert_eq!(enough.outcome, FREE[name].outcome, "{name}");
        for limit_ms in [1, used_ms / 2, used_ms - 1] {
            let report = run(body, |limits| limits.wall_ms_max = limit_ms);
            let verdict = verdict(&report);
            assert_eq!(
                (verdict.kind, verdict.used),
                (VerdictKind::Wall, limit_ms),
                "{name}"
            );
            assert_eq!(report.usage.wall_us, limit_ms * 1_000, "{name}");
            stopped += 1;
        }
    }
    assert!(stopped >= 15, "only {stopped}");
}

/// Where code takes time, a call is stopped within the slice in which its time is up.
#[test]
fn wall_time_is_exceeded_by_less_than_a_slice() {
    const WALL_A_SLICE: Duration = Duration::from_millis(3);
    let lab = Lab::new();
    lab.clock.set_a_slice(CPU_A_SLICE, WALL_A_SLICE);
    for limit_ms in [1, 7, 50] {
        let limits = Limits {
            wall_ms_max: limit_ms,
            ..Limits::default()
        };
        let isolate = lab.isolate(worker("export default { run() { for (;;); } }", limits));
        let call = lab.call_of("run", vec![Value::Null], limits_high());
        let report = lab.report(lab.call(isolate, call));
        assert_eq!(verdict(&report).kind, VerdictKind::Wall);
        let over = report.usage.wall_us - limit_ms * 1_000;
        assert!(
            over <= WALL_A_SLICE.as_micros() as u64,
            "{over} µs too many"
        );
    }
}

/// A result of as many bytes as may be passes, and one of a byte more does not.
#[test]
fn the_result_is_exact() {
    for (name, body) in programs() {
        let bytes = FREE[name].usage.bytes_out;
        if bytes == 0 {
            continue;
        }
        let enough = run(body, |limits| limits.result_bytes_max = bytes);
        assert_eq!(enough.outcome, FREE[name].outcome, "{name}");
        let report = run(body, |limits| limits.result_bytes_max = bytes - 1);
        let verdict = verdict(&report);
        assert_eq!(verdict.kind, VerdictKind::ResultSize, "{name}");
        assert_eq!(report.usage.bytes_out, 0, "{name}");
    }
}

/// Console output stops at its limit, and what is missing is counted to the byte.
#[test]
fn output_is_exact() {
    let mut cut = 0;
    for (name, body) in programs() {
        let whole = output_bytes(&FREE[name]);
        assert_eq!(FREE[name].log_bytes_dropped, 0, "{name}");
        for limit in [whole / 3, whole.saturating_sub(1), 1]
            .into_iter()
            .filter(|limit| *limit < whole)
        {
            let report = run(body, |limits| limits.log_bytes_max = limit);
            assert_eq!(
                report.outcome, FREE[name].outcome,
                "{name}: output is no reason to stop"
            );
            let kept = output_bytes(&report);
            assert!(kept <= limit, "{name}: {kept} of {limit}");
            assert_eq!(kept + report.log_bytes_dropped, whole, "{name}");
            cut += 1;
        }
    }
    assert!(cut >= 9, "only {cut}");
}

/// As much memory as a program needs is enough, a page less is not, and it never has more than it may.
#[test]
fn memory_is_exact() {
    const PAGE: u64 = 64 << 10;
    let at_birth = FREE["adds numbers"].usage.memory_peak_bytes;
    let mut stopped = 0;
    for (name, body) in programs() {
        let peak = FREE[name].usage.memory_peak_bytes;
        assert_eq!(peak % PAGE, 0, "{name}");
        let enough = run(body, |limits| limits.memory_bytes_max = peak);
        assert_eq!(enough.outcome, FREE[name].outcome, "{name}");
        if peak == at_birth {
            continue;
        }
        let limit = peak - PAGE;
        let report = run(body, |limits| limits.memory_bytes_max = limit);
        let verdict = verdict(&report);
        assert_eq!(verdict.kind, VerdictKind::Memory, "{name}");
        assert!(verdict.used > limit, "{name}: {verdict:?}");
        assert!(
            report.usage.memory_peak_bytes <= limit,
            "{name}: {:?}",
            report.usage
        );
        stopped += 1;
    }
    assert!(stopped >= 5, "only {stopped}");
}
