//! Every row of the table in `docs/limits.md`: what goes beyond the limit is stopped, by that name, with true figures,
//! and nobody else notices.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::lab::{Lab, limits, text, thrown, verdict};
use crate::support::{value, worker_with};
use coracle_isolate::{CallAccess, Form, Outcome, Report, Usage, VerdictKind};
use coracle_loader::{LimitName, Limits};
use coracle_value::Value;
use std::time::Duration;

/// Fuel of a slice: what may be burnt beyond a limit that is looked at when a slice ends.
const SLICE: u64 = coracle_isolate::FUEL_SLICE;

/// An invocation that was stopped.
struct Stopped {
    report: Report,
    /// Whether the isolate was to serve on.
    reusable: bool,
}

/// Calls `culprit` of a worker under `limits`, between calls to another isolate; checks that the other one stays what it
/// is, and that the worker's code serves again in a fresh isolate.
#[track_caller]
fn stop(source: &str, limits: Limits, argument: Value) -> Stopped {
    let lab = Lab::new();
    let other = lab.source("let n = 0; export default { count(_) { return ++n; } }");
    assert_eq!(
        value(&lab.call(other, "count", Value::Null)),
        Value::from(1)
    );

    let spec = worker_with(&[("main.js", source)], limits);
    let isolate = lab.isolate(spec.clone());
    let mut call = lab.call_of("culprit", argument);
    call.limits = limits;
    let invocation = lab.send(isolate, call);
    let between = lab.call_of("count", Value::Null);
    let between = lab.send(other, between);
    let report = lab.report(invocation);
    assert_eq!(value(&lab.report(between)), Value::from(2));

    let reusable = lab.is_reusable_after(invocation);
    assert_eq!(lab.has_ended(isolate), !reusable);
    if reusable {
        let served = lab.call(isolate, "fine", Value::Null);
        assert_eq!(value(&served), text("fine"));
        lab.end(isolate);
    }
    // The code itself is not to blame.
    let fresh = lab.isolate(spec);
    let served = lab.call(fresh, "fine", Value::Null);
    if !matches!(&served.outcome, Outcome::Verdict(verdict) if verdict.kind == VerdictKind::Startup)
    {
        assert_eq!(value(&served), text("fine"));
        assert!(!served.usage.isolate_reused);
    }
    lab.end(fresh);
    assert_eq!(
        value(&lab.call(other, "count", Value::Null)),
        Value::from(3)
    );
    lab.end(other);
    lab.assert_empty();
    Stopped { report, reusable }
}

/// A worker with a method that is stopped and one that is fine.
fn worker(culprit: &str) -> String {
    format!(
        "export default {{ async culprit(x, env, ctx) {{ {culprit} }}, fine(_) {{ return 'fine'; }} }}"
    )
}

#[test]
fn every_limit_has_a_case_and_its_verdict_is_the_one_in_the_table() {
    for name in LimitName::ALL {
        let stopped = match name {
            LimitName::FuelMax => fuel(),
            LimitName::CpuMsMax => cpu(),
            LimitName::StartupFuelMax => startup(),
            LimitName::WallMsMax => wall(),
            LimitName::MemoryBytesMax => memory(),
            LimitName::SubrequestsMax => subrequests(),
            LimitName::ArgsBytesMax => args(),
            LimitName::ResultBytesMax => result(),
            LimitName::ValueDepthMax => depth(),
            LimitName::SubrequestsInFlightMax => {
                // Not a verdict: they wait for each other.
                assert!(name.spec().outcome.starts_with("none"));
                in_flight();
                continue;
            }
            LimitName::SubrequestMsMax => {
                // Not a verdict: the call that was not answered throws.
                assert!(name.spec().outcome.starts_with("none"));
                unanswered();
                continue;
            }
            LimitName::LogBytesMax => {
                // Not a verdict: the rest is dropped and counted.
                assert!(name.spec().outcome.starts_with("none"));
                logs();
                continue;
            }
            // Judged before there is an isolate.
            LimitName::CodeBytesMax | LimitName::EnvBytesMax => continue,
            // Nothing can be handed out yet.
            LimitName::ExportsMax => continue,
        };
        let verdict = verdict(&stopped.report);
        assert_eq!(verdict.limit_name, name.as_str());
        assert_eq!(camel_case(verdict.kind.as_str()), name.spec().outcome);
        assert!(
            verdict.used >= verdict.limit,
            "{name}: {verdict:?} is within its limit"
        );
        assert!(
            verdict.message().contains(name.as_str())
                || verdict.message().contains(&verdict.limit.to_string())
        );
    }
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap().to_owned();
    for word in words {
        let (first, rest) = word.split_at(1);
        text += &first.to_uppercase();
        text += rest;
    }
    text
}

fn fuel() -> Stopped {
    let max = 20 * SLICE;
    let limits = limits(|limits| limits.fuel_max = max);
    let stopped = stop(&worker("while (true) {}"), limits, Value::Null);
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Fuel);
    assert!(verdict.started);
    assert!((max..=max + SLICE).contains(&verdict.used), "{verdict:?}");
    let Usage {
        fuel_run,
        fuel_load,
        cpu_us,
        isolate_reused,
        memory_denied,
        ..
    } = stopped.report.usage;
    assert_eq!(fuel_run, verdict.used);
    assert!(fuel_load > 0 && fuel_load < SLICE);
    assert!(cpu_us > 0 && !isolate_reused && memory_denied == 0);
    assert!(!stopped.reusable);
    stopped
}

fn cpu() -> Stopped {
    let limits = limits(|limits| limits.cpu_ms_max = 3);
    // A slice takes 0.1 ms of CPU time here.
    let stopped = stop(&worker("while (true) {}"), limits, Value::Null);
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Cpu);
    assert_eq!((verdict.used, verdict.limit), (3, 3));
    assert!(verdict.started && !stopped.reusable);
    // One slice more than the limit, and the load's.
    assert!((3_100..=3_300).contains(&stopped.report.usage.cpu_us));
    stopped
}

fn startup() -> Stopped {
    let max = 5 * SLICE;
    let limits = limits(|limits| limits.startup_fuel_max = max);
    let stopped = stop("while (true) {}", limits, Value::Null);
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Startup);
    assert!(!verdict.started && !stopped.reusable);
    assert!((max..=max + SLICE).contains(&verdict.used), "{verdict:?}");
    let Usage {
        fuel_load,
        fuel_run,
        ..
    } = stopped.report.usage;
    assert_eq!((fuel_load, fuel_run), (verdict.used, 0));
    stopped
}

fn wall() -> Stopped {
    let limits = limits(|limits| limits.wall_ms_max = 700);
    let waits = worker("await new Promise((done) => setTimeout(done, 5_000))");
    let stopped = stop(&waits, limits, Value::Null);
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Wall);
    // The clock goes where the alarms are, so this is exact.
    assert_eq!((verdict.used, verdict.limit), (700, 700));
    assert_eq!(stopped.report.usage.wall_us, 700_000);
    // Waiting is no CPU time.
    assert!(stopped.report.usage.cpu_us <= 400);
    assert!(verdict.started && !stopped.reusable);
    stopped
}

fn memory() -> Stopped {
    let max = 8 << 20;
    let limits = limits(|limits| limits.memory_bytes_max = max);
    let stopped = stop(
        &worker("const all = []; for (;;) all.push('x'.repeat(1000) + all.length)"),
        limits,
        Value::Null,
    );
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Memory);
    assert!(verdict.used > max && verdict.started && !stopped.reusable);
    let Usage {
        memory_peak_bytes,
        memory_denied,
        ..
    } = stopped.report.usage;
    // No byte of memory beyond the limit was ever there.
    assert!(memory_peak_bytes <= max && memory_peak_bytes > max / 2);
    assert_eq!(memory_denied, 1);
    stopped
}

fn subrequests() -> Stopped {
    let many = worker(
        "for (let i = 0; i < x; i++) fetch('https://a.example/' + i).catch(() => {}); return 'all'",
    );
    // As many as are allowed are no offence.
    let lab = Lab::new();
    let isolate = lab.source(&many);
    let report = lab.call(isolate, "culprit", Value::from(256));
    assert_eq!(value(&report), text("all"));
    assert_eq!(report.usage.subrequests, 256);

    let stopped = stop(&many, Limits::default(), Value::from(257));
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Subrequests);
    assert_eq!((verdict.used, verdict.limit), (257, 256));
    assert_eq!(verdict.subrequests_sent, 256);
    assert_eq!(stopped.report.usage.subrequests, 256);
    assert!(verdict.started && !stopped.reusable);
    stopped
}

fn args() -> Stopped {
    let lengthy = Value::from("x".repeat(5_000));
    let exact = coracle_value::encode(&Value::Array(vec![lengthy.clone()])).len() as u64;
    let source = worker("return x.length");
    let lab = Lab::new();
    let isolate = lab.isolate(worker_with(
        &[("main.js", &source)],
        limits(|limits| limits.args_bytes_max = exact),
    ));
    let report = lab.call(isolate, "culprit", lengthy.clone());
    assert_eq!(value(&report), Value::from(5_000));
    assert_eq!(report.usage.bytes_in, exact);

    let limits = limits(|limits| limits.args_bytes_max = exact - 1);
    let stopped = stop(&source, limits, lengthy);
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::ArgsSize);
    assert_eq!((verdict.used, verdict.limit), (exact, exact - 1));
    // Nothing has run, so the isolate is none the worse for it.
    assert!(!verdict.started && stopped.reusable);
    assert_eq!(stopped.report.usage.fuel_load, 0);
    stopped
}

fn result() -> Stopped {
    let source = worker("return 'x'.repeat(x)");
    let max = 4_003;
    let limits = limits(|limits| limits.result_bytes_max = max);
    let spec = worker_with(&[("main.js", &source)], limits);
    let returned = |length: u64, form: Form| {
        let lab = Lab::new();
        let isolate = lab.isolate(spec.clone());
        let mut call = lab.call_of("culprit", Value::from(length));
        call.result_form = form;
        lab.report(lab.send(isolate, call))
    };
    // JSON's text has two quotes; CBOR's a head of three bytes.
    for (form, fits, too_long) in [
        (Form::Json, max - 2, max - 1),
        (Form::Cbor, max - 3, max - 2),
    ] {
        let report = returned(fits, form);
        assert!(matches!(report.outcome, Outcome::Value(_)), "{report:?}");
        assert_eq!(report.usage.bytes_out, max);
        let verdict = verdict(&returned(too_long, form));
        assert_eq!(verdict.kind, VerdictKind::ResultSize);
        assert!(verdict.used > max, "{verdict:?}");
    }
    let stopped = stop(&source, limits, Value::from(4_001));
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::ResultSize);
    assert_eq!(verdict.limit, max);
    assert!(verdict.used > max && verdict.started && !stopped.reusable);
    assert_eq!(stopped.report.usage.bytes_out, 0);
    stopped
}

fn depth() -> Stopped {
    let nested =
        |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let deep =
        worker("let value = null; for (let i = 0; i < x; i++) value = [value]; return value");
    let limits = limits(|limits| limits.value_depth_max = 20);
    // A result exactly as deep as may be, and one level more.
    let spec = worker_with(&[("main.js", &deep)], limits);
    let levels = (1..40)
        .take_while(|levels| {
            let lab = Lab::new();
            let isolate = lab.isolate(spec.clone());
            let report = lab.call(isolate, "culprit", Value::from(*levels));
            matches!(report.outcome, Outcome::Value(_))
        })
        .count();
    assert!((19..=20).contains(&levels), "{levels} levels are returned");
    let stopped = stop(&deep, limits, Value::from(levels as i32 + 1));
    let result = verdict(&stopped.report);
    assert_eq!(result.kind, VerdictKind::ValueDepth);
    assert_eq!((result.used, result.limit), (21, 20));
    assert!(result.started && !stopped.reusable);

    // The same of arguments, of which the list of arguments is a level; no code has run then, and the isolate is as
    // good as before.
    let takes = worker("return 'taken'");
    let spec = worker_with(&[("main.js", &takes)], limits);
    let taken = (1..40)
        .take_while(|levels| {
            let lab = Lab::new();
            let isolate = lab.isolate(spec.clone());
            let report = lab.call(isolate, "culprit", nested(*levels));
            matches!(report.outcome, Outcome::Value(_))
        })
        .count();
    assert!((18..=20).contains(&taken), "{taken} levels are taken");
    let stopped = stop(&takes, limits, nested(taken + 1));
    let args = verdict(&stopped.report);
    assert_eq!(args.kind, VerdictKind::ValueDepth);
    assert!(!args.started && stopped.reusable);
    stopped
}

fn in_flight() {
    // Ten at once where two may be in flight: all are answered, in order.
    let lab = Lab::new();
    let limits = limits(|limits| limits.subrequests_in_flight_max = 2);
    let source = worker(
        "const order = []; await Promise.all(Array.from({ length: 10 }, (_, i) => \
         fetch('https://a.example/').catch(() => order.push(i)))); return order.join()",
    );
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits));
    let call = lab.call_of("culprit", Value::Null);
    let invocation = lab.send(isolate, call);
    // The call's wall time, and what is in flight.
    lab.step();
    assert_eq!(lab.stats().alarms, 1 + 2);
    let report = lab.report_now(invocation);
    assert_eq!(value(&report), text("0,1,2,3,4,5,6,7,8,9"));
    assert_eq!(report.usage.subrequests, 10);
    lab.end(isolate);
    lab.assert_empty();
}

fn unanswered() {
    // Each has its own time, which begins when it has left; who is not answered says so within the wall time.
    let lab = Lab::new();
    let limits = limits(|limits| {
        limits.subrequest_ms_max = 50;
        limits.subrequests_in_flight_max = 1;
    });
    let source = worker(
        "const told = await Promise.allSettled([1, 2, 3].map(() => fetch('https://a.example/'))); \
         return told.map((one) => one.reason.message).join()",
    );
    let mut spec = worker_with(&[("main.js", &source)], limits);
    spec.outbound_refusal = None;
    let isolate = lab.isolate(spec);
    let invocation = lab.send(isolate, lab.call_of("culprit", Value::Null));
    let report = lab.report(invocation);
    let told = ["No answer came within 50 ms (subrequest_ms_max)."; 3];
    assert_eq!(value(&report), text(&told.join(",")));
    assert_eq!(report.usage.wall_us, 150_000);
    lab.end(isolate);
    lab.assert_empty();
}

fn logs() {
    let max = 1_000;
    let lab = Lab::new();
    let limits = limits(|limits| limits.log_bytes_max = max);
    // Lines of 30 bytes that count 110; what of the text of the last one fits is kept.
    let source = worker(
        "for (let i = 0; i < x; i++) { console.log('é'.repeat(15)); if (i % 10 === 9) await new Promise((r) => setTimeout(r)); }",
    );
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits));
    for lines in [9, 10, 500] {
        let report = lab.call(isolate, "culprit", Value::from(lines));
        assert!(matches!(report.outcome, Outcome::Value(_)));
        let kept: u64 = report.logs.iter().map(|log| log.message.len() as u64).sum();
        let written = 30 * lines as u64;
        // Nine lines leave 10 bytes of the thousand, and five characters of two bytes fit into them.
        assert_eq!(kept, written.min(9 * 30 + 10));
        assert_eq!(report.log_bytes_dropped, written - kept);
        assert!(report.logs.len() <= 10);
    }
    // Empty lines take room, too.
    let source = worker("for (let i = 0; i < 5_000; i++) console.log('')");
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits));
    let report = lab.call(isolate, "culprit", Value::Null);
    assert_eq!(report.logs.len(), 13);
}

/// Case L21: of a worker's and a call's limit the lower one holds, for each limit that stops an invocation.
#[test]
fn of_the_workers_and_the_calls_limit_the_lower_one_holds() {
    let low = limits(|limits| {
        limits.fuel_max = 500 * SLICE;
        limits.memory_bytes_max = 8 << 20;
        limits.wall_ms_max = 100;
        limits.result_bytes_max = 100;
        limits.log_bytes_max = 100;
        limits.subrequests_max = 3;
    });
    let source = r"export default {
        burn(_) { for (;;); },
        fill(_) { const all = []; for (;;) all.push('x'.repeat(1000) + all.length); },
        wait(_) { return new Promise((done) => setTimeout(done, 10_000)); },
        talk(_) { return 'x'.repeat(1000); },
        log(_) { console.log('x'.repeat(1000)); },
        ask(_) { for (let i = 0; i < 9; i++) fetch('https://a.example/').catch(() => {}); },
    }";
    for (of_worker, of_call) in [(low, Limits::default()), (Limits::default(), low)] {
        for (method, kind, limit) in [
            ("burn", VerdictKind::Fuel, low.fuel_max),
            ("fill", VerdictKind::Memory, low.memory_bytes_max),
            ("wait", VerdictKind::Wall, low.wall_ms_max),
            ("talk", VerdictKind::ResultSize, low.result_bytes_max),
            ("ask", VerdictKind::Subrequests, low.subrequests_max),
        ] {
            let lab = Lab::new();
            let isolate = lab.isolate(worker_with(&[("main.js", source)], of_worker));
            let mut call = lab.call_of(method, Value::Null);
            call.limits = of_call;
            let verdict = verdict(&lab.report(lab.send(isolate, call)));
            assert_eq!((verdict.kind, verdict.limit), (kind, limit), "{method}");
        }
        let lab = Lab::new();
        let isolate = lab.isolate(worker_with(&[("main.js", source)], of_worker));
        let mut call = lab.call_of("log", Value::Null);
        call.limits = of_call;
        let report = lab.report(lab.send(isolate, call));
        assert_eq!(report.log_bytes_dropped, 900);
    }
}

/// A worker that can't even be loaded within its memory is stopped by that limit like any other.
#[test]
fn memory_that_is_too_small_for_the_engine_is_a_verdict_too() {
    let lab = Lab::new();
    for bytes in [1, 65_536, 1 << 20] {
        let limits = limits(|limits| limits.memory_bytes_max = bytes);
        let isolate = lab.isolate(worker_with(&[("main.js", "export default {}")], limits));
        let verdict = verdict(&lab.call(isolate, "any", Value::Null));
        assert_eq!(verdict.kind, VerdictKind::Memory);
        assert_eq!(verdict.limit_name, "memory_bytes_max");
        assert!(verdict.used > verdict.limit && !verdict.started);
        assert!(lab.has_ended(isolate));
    }
    lab.assert_empty();
}

/// Many small isolates can't do what one large one may not.
#[test]
fn the_memory_of_all_isolates_together_is_limited() {
    let lab = Lab::with(crate::lab::sandbox(16, 16), 40 << 20);
    let source = worker("globalThis.kept = new Uint8Array(x); return 'kept'");
    let mut kept = Vec::new();
    let stopped = loop {
        let isolate = lab.source(&source);
        let report = lab.call(isolate, "culprit", Value::from(5 << 20));
        match report.outcome {
            Outcome::Value(_) => kept.push(isolate),
            _ => break verdict(&report),
        }
    };
    assert!((3..=7).contains(&kept.len()), "{} were served", kept.len());
    assert_eq!(stopped.kind, VerdictKind::Memory);
    assert_eq!(stopped.limit_name, "pool_memory_bytes_max");
    assert!(stopped.used > stopped.limit);
    assert!(lab.stats().memory_bytes <= 40 << 20);
    // What one gives back another one can have.
    lab.end(kept.pop().unwrap());
    let isolate = lab.source(&source);
    let report = lab.call(isolate, "culprit", Value::from(5 << 20));
    assert_eq!(value(&report), text("kept"));
    lab.end(isolate);
    kept.into_iter().for_each(|isolate| lab.end(isolate));
    lab.assert_empty();
}

/// CPU time is looked at after short entries as well: a thousand of them are not free.
#[test]
fn many_short_entries_use_up_the_cpu_time_like_a_long_one() {
    let lab = Lab::new();
    lab.clock.set_cpu_a_slice(Duration::from_micros(900));
    let limits = limits(|limits| {
        limits.cpu_ms_max = 20;
        limits.wall_ms_max = 1_000_000;
    });
    let source = worker("for (;;) await new Promise((done) => setTimeout(done, 1))");
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits));
    let report = lab.call(isolate, "culprit", Value::Null);
    let verdict = verdict(&report);
    assert_eq!(verdict.kind, VerdictKind::Cpu);
    assert_eq!((verdict.used, verdict.limit), (20, 20));
    // Each entry paid for itself: 22 of them, and the load.
    assert_eq!(report.usage.cpu_us, 23 * 900);
}

/// Case L15: time in a host operation is wall time, never CPU time.
#[test]
fn waiting_is_no_cpu_time() {
    let lab = Lab::new();
    let limits = limits(|limits| limits.cpu_ms_max = 1);
    let source = worker("await new Promise((done) => setTimeout(done, 25_000)); return 'done'");
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits));
    let report = lab.call(isolate, "culprit", Value::Null);
    assert_eq!(value(&report), text("done"));
    assert_eq!(report.usage.wall_us, 25_000_000);
    assert_eq!(report.usage.cpu_us, 300);
}

/// The wall time begins when the call arrives, also for one that waits for its turn.
#[test]
fn a_call_that_waits_in_line_runs_out_of_wall_time_without_having_started() {
    let lab = Lab::new();
    let isolate = lab.source("export default { spin(_) { for (;;); }, fine(_) { return 1; } }");
    let first = lab.call_of("spin", Value::Null);
    let first = lab.send(isolate, first);
    lab.step();
    lab.step();
    let mut second = lab.call_of("fine", Value::Null);
    second.limits.wall_ms_max = 50;
    let second = lab.send(isolate, second);
    lab.clock.pass(Duration::from_millis(50));
    lab.step();
    let report = lab.seen.borrow().reports[&second][0].clone();
    let waited = verdict(&report);
    assert_eq!(waited.kind, VerdictKind::Wall);
    assert!(!waited.started && waited.used == 50);
    assert!(lab.is_reusable_after(second));
    // The one that runs is not touched by it.
    assert!(!lab.has_report(first));
    assert_eq!(verdict(&lab.report(first)).kind, VerdictKind::Fuel);
    lab.assert_empty();
}

#[test]
fn ready_evaluates_the_modules_and_nothing_else() {
    let lab = Lab::new();
    let ready = |source: &str| {
        let isolate = lab.source(source);
        let mut call = lab.call_of("", Value::Null);
        call.access = CallAccess::Ready;
        lab.report(lab.send(isolate, call))
    };
    let report = ready("console.log('loaded'); export default {}");
    assert_eq!(value(&report), Value::Undefined);
    assert_eq!(report.logs[0].message, "loaded");
    assert!(report.usage.fuel_load > 0 && report.usage.fuel_run == 0);
    let report = ready("throw new TypeError('no')");
    assert_eq!(thrown(&report), ("TypeError".into(), "no".into()));
}

#[test]
fn timers_are_limited_by_how_many_are_pending_at_once() {
    let lab = Lab::new();
    let set = worker("for (let i = 0; i < x; i++) setTimeout(() => {}, 1_000); return 'set'");
    let limits = limits(|limits| limits.fuel_max = 100_000 * SLICE);
    let isolate = lab.isolate(worker_with(&[("main.js", &set)], limits));
    let report = lab.call(isolate, "culprit", Value::from(10_000));
    assert_eq!(value(&report), text("set"));
    // They died with their invocation, so there is room for as many again.
    assert_eq!(lab.stats().alarms, 0);
    let report = lab.call(isolate, "culprit", Value::from(1_000));
    assert_eq!(value(&report), text("set"));
    lab.end(isolate);

    let stopped = stop(&set, limits, Value::from(10_001));
    let verdict = verdict(&stopped.report);
    assert_eq!(verdict.kind, VerdictKind::Timers);
    assert_eq!(verdict.limit_name, "timers_max");
    assert_eq!((verdict.used, verdict.limit), (10_001, 10_000));
    assert!(verdict.started && !stopped.reusable);
}

/// A timer that is set and cleared leaves nothing in the host, however far away its time was.
#[test]
fn cleared_timers_leave_nothing_behind() {
    let lab = Lab::new();
    let source = worker(
        "for (let i = 0; i < 30_000; i++) clearTimeout(setTimeout(() => {}, 2_000_000_000)); \
         await new Promise((done) => setTimeout(done, 1)); return 'cleared'",
    );
    let isolate = lab.source(&source);
    let call = lab.call_of("culprit", Value::Null);
    let invocation = lab.send(isolate, call);
    while lab.step() {
        assert!(lab.stats().alarms <= 2, "{:?}", lab.stats());
    }
    assert_eq!(value(&lab.report(invocation)), text("cleared"));
}
