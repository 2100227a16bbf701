//! What runs on after the answer: `waitUntil` holds a call open, everything else ends with it, and `abort` ends them all.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::lab::{Lab, limits, text, thrown, verdict};
use crate::support::{value, worker_with};
use coracle_isolate::{Aftermath, VerdictKind};
use coracle_value::Value;
use std::time::Duration;

const SLICE: u64 = coracle_isolate::FUEL_SLICE;

const WORKER: &str = "import { WorkerEntrypoint, waitUntil } from 'cloudflare:workers';
    let state = 'fresh';
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    const never = () => new Promise(() => {});
    export default class extends WorkerEntrypoint {
        state() { return state }
        timer() { state = 'pending'; setTimeout(() => { state = 'done' }, 50); return 1 }
        held() { state = 'pending'; this.ctx.waitUntil(pause(50).then(() => { state = 'done'; console.log('later') })); return 1 }
        imported() { waitUntil(pause(50).then(() => { state = 'done' })); return 1 }
        thrower() { this.ctx.waitUntil(pause(50).then(() => { state = 'done' })); throw new TypeError('no') }
        forever() { this.ctx.waitUntil(never()); return 1 }
        interval() { setInterval(() => { state = 'tick' }, 100); this.ctx.waitUntil(never()); return 1 }
        again() { this.ctx.waitUntil(pause(50).then(() => { this.ctx.waitUntil(pause(50).then(() => { state = 'twice' })) })); return 1 }
        rejected() { this.ctx.waitUntil(pause(50).then(() => { throw new RangeError('late') })); return 1 }
        loop() { this.ctx.waitUntil(pause(50).then(() => { for (;;); })); return 1 }
        wait(ms) { return pause(ms).then(() => state) }
        hang() { return never() }
        many(count) { for (let i = 0; i < count; i++) this.ctx.waitUntil(never()); return 1 }
        odd() {
            this.ctx.waitUntil(undefined); this.ctx.waitUntil(5);
            this.ctx.waitUntil({ get then() { throw new Error('no thenable') } });
            return 1
        }
        detached() { const { waitUntil } = this.ctx; waitUntil(never()) }
        made() { return new this.ctx.constructor({}, 1) }
        abort(message) { this.ctx.abort(new TypeError(message)); return 1 }
        abortEmpty() { this.ctx.abort(); return 1 }
    }";

fn isolate(lab: &Lab) -> u64 {
    lab.source(WORKER)
}

fn start(lab: &Lab, isolate: u64, method: &str, argument: Value) -> u64 {
    let call = lab.call_of(method, argument);
    lab.send(isolate, call)
}

fn state(lab: &Lab, isolate: u64) -> Value {
    value(&lab.report_now(start(lab, isolate, "state", Value::Null)))
}

/// How what runs on after the answer ended.
fn stopped(aftermath: &Aftermath) -> Option<VerdictKind> {
    aftermath.verdict.as_ref().map(|verdict| verdict.kind)
}

#[test]
fn a_timer_dies_with_its_call_and_what_is_waited_for_runs_on() {
    for (method, runs_on) in [
        ("timer", false),
        ("held", true),
        ("imported", true),
        ("thrower", true),
    ] {
        let lab = Lab::new();
        let isolate = isolate(&lab);
        let call = start(&lab, isolate, method, Value::Null);
        let report = lab.report_now(call);
        match method {
            "thrower" => assert_eq!(thrown(&report), ("TypeError".into(), "no".into())),
            _ => assert_eq!(value(&report), 1.into(), "{method}"),
        }
        assert_eq!(lab.is_held(call), runs_on, "{method}");
        assert_ne!(state(&lab, isolate), text("done"), "{method}");
        while lab.run_to_alarm() {}
        assert_eq!(state(&lab, isolate) == text("done"), runs_on, "{method}");
        assert!(!lab.is_held(call));
        lab.end(isolate);
        lab.assert_empty();
    }
}

#[test]
fn what_runs_on_is_charged_and_told_once_with_what_it_wrote() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let call = start(&lab, isolate, "held", Value::Null);
    let report = lab.report_now(call);
    let aftermath = lab.aftermath(call);
    assert!(report.logs.is_empty());
    assert_eq!(aftermath.logs.len(), 1);
    assert_eq!(aftermath.logs[0].message, "later");
    assert!(aftermath.usage.fuel_run > 10_000, "{:?}", aftermath.usage);
    assert!((50_000..60_000).contains(&aftermath.usage.wall_us));
    assert_eq!((aftermath.usage.bytes_in, aftermath.verdict), (0, None));
    while lab.run_to_alarm() {}
    assert_eq!(lab.seen.borrow().aftermaths[&call].len(), 1);
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn what_waits_in_vain_is_over_at_once_and_says_nothing() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let call = start(&lab, isolate, "forever", Value::Null);
    lab.report_now(call);
    assert!(!lab.is_held(call), "nothing is left that could settle it");
    assert_eq!(lab.aftermath(call).verdict, None);
    // A call that waits in vain is told so, too, whatever else is held.
    let held = start(&lab, isolate, "forever", Value::Null);
    let hung = start(&lab, isolate, "hang", Value::Null);
    assert_eq!(verdict(&lab.report_now(hung)).kind, VerdictKind::Hung);
    assert!(!lab.is_held(held));
    assert_eq!(lab.stats().alarms, 0);
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn what_runs_on_ends_with_the_wall_time_of_its_call_and_the_isolate_serves_on() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let mut call = lab.call_of("interval", Value::Null);
    call.limits.wall_ms_max = 1_000;
    let call = lab.send(isolate, call);
    lab.report_now(call);
    let aftermath = lab.aftermath(call);
    assert_eq!(stopped(&aftermath), Some(VerdictKind::Wall));
    assert!((1_000_000..1_010_000).contains(&aftermath.usage.wall_us));
    assert_eq!(state(&lab, isolate), text("tick"));
    assert_eq!(lab.stats().alarms, 0, "the interval is gone");
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn a_limit_that_is_hit_after_the_answer_ends_the_isolate_and_others_lose_it() {
    let lab = Lab::new();
    let limits = limits(|limits| limits.fuel_max = 100 * SLICE);
    let isolate = lab.isolate(worker_with(&[("main.js", WORKER)], limits));
    let call = start(&lab, isolate, "loop", Value::Null);
    assert_eq!(value(&lab.report_now(call)), 1.into());
    let held = start(&lab, isolate, "interval", Value::Null);
    let other = start(&lab, isolate, "wait", 1_000.into());
    assert_eq!(verdict(&lab.report(other)).kind, VerdictKind::IsolateLost);
    assert_eq!(stopped(&lab.aftermath(call)), Some(VerdictKind::Fuel));
    let lost = lab.aftermath(held);
    assert_eq!(stopped(&lost), Some(VerdictKind::IsolateLost));
    assert!(lab.has_ended(isolate));
    lab.assert_empty();
}

#[test]
fn what_runs_on_may_be_held_again_and_may_fail() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let call = start(&lab, isolate, "again", Value::Null);
    lab.report_now(call);
    let wall_us = lab.aftermath(call).usage.wall_us;
    assert!((100_000..110_000).contains(&wall_us), "{wall_us}");
    assert_eq!(state(&lab, isolate), text("twice"));
    let call = start(&lab, isolate, "rejected", Value::Null);
    lab.report_now(call);
    let line = &lab.aftermath(call).logs[0].message;
    assert!(
        line.starts_with("Uncaught (in promise) RangeError: late"),
        "{line}"
    );
    lab.end(isolate);
    lab.assert_empty();
}

/// The rule for others: an operation stays while anybody is there, and a held call is somebody.
#[test]
fn a_held_call_keeps_what_others_left_and_they_keep_nothing_of_it() {
    let lab = Lab::new();
    let isolate = lab.source(
        "let shared; const pause = (ms) => new Promise((done) => setTimeout(done, ms)); let done = false;
         export default {
             first() { shared ??= pause(100); return pause(10).then(() => 'first') },
             second(_, env, ctx) { ctx.waitUntil(shared.then(() => { done = true })); return 'second' },
             done: (_) => done }",
    );
    let first = start(&lab, isolate, "first", Value::Null);
    lab.run();
    let second = start(&lab, isolate, "second", Value::Null);
    assert_eq!(value(&lab.report_now(second)), text("second"));
    assert_eq!(value(&lab.report(first)), text("first"));
    assert_eq!(lab.aftermath(second).verdict, None);
    let done = lab.call(isolate, "done", Value::Null);
    assert_eq!(value(&done), true.into());
    assert_eq!(lab.stats().alarms, 0);
    lab.end(isolate);
    lab.assert_empty();
}

/// `ctx` holds its own call, wherever its code runs.
#[test]
fn a_context_holds_its_own_call_in_the_entry_of_another() {
    let lab = Lab::new();
    let isolate = lab.source(
        "let open; const opened = new Promise((done) => { open = done });
         const pause = (ms) => new Promise((done) => setTimeout(done, ms)); let done = false;
         export default {
             async waits(_, env, ctx) { await opened; ctx.waitUntil(pause(50).then(() => { done = true })); return 1 },
             opens(_) { open(); return pause(10) },
             done: (_) => done }",
    );
    let waits = start(&lab, isolate, "waits", Value::Null);
    let opens = start(&lab, isolate, "opens", Value::Null);
    lab.report_now(waits);
    lab.report(opens);
    assert!(lab.is_held(waits) && !lab.is_held(opens));
    assert_eq!(lab.aftermath(waits).verdict, None);
    let done = lab.call(isolate, "done", Value::Null);
    assert_eq!(value(&done), true.into());
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn a_cancelled_call_is_held_by_nothing() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let other = start(&lab, isolate, "wait", 1_000.into());
    lab.run();
    let call = lab.call_of("interval", Value::Null);
    let call = lab.send(isolate, call);
    lab.cancel(isolate, call);
    lab.run();
    assert!(!lab.is_held(call));
    lab.report(other);
    // One that has been answered can't be cancelled.
    let held = start(&lab, isolate, "held", Value::Null);
    lab.report_now(held);
    lab.cancel(isolate, held);
    while lab.run_to_alarm() {}
    assert_eq!(state(&lab, isolate), text("done"));
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn holds_are_bounded_and_what_is_no_promise_needs_none() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let report = lab.call(isolate, "many", 10_001.into());
    let (name, message) = thrown(&report);
    assert_eq!(name, "RangeError");
    assert!(message.starts_with("More than 10000 promises"), "{message}");
    // Those of the call that failed go when nothing is left that could settle them.
    lab.run();
    let report = lab.call(isolate, "many", 10_000.into());
    assert_eq!(value(&report), 1.into());
    lab.run();
    let odd = start(&lab, isolate, "odd", Value::Null);
    assert_eq!(value(&lab.report_now(odd)), 1.into());
    assert!(!lab.is_held(odd));
    let detached = lab.call(isolate, "detached", Value::Null);
    assert_eq!(thrown(&detached).0, "TypeError");
    let made = lab.call(isolate, "made", Value::Null);
    assert_eq!(
        thrown(&made),
        ("TypeError".into(), "Illegal constructor".into())
    );
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn abort_ends_the_isolate_and_every_call_in_it_with_its_reason() {
    let lab = Lab::new();
    let isolate = isolate(&lab);
    let held = start(&lab, isolate, "interval", Value::Null);
    let waiting = start(&lab, isolate, "wait", 1_000.into());
    lab.run();
    let aborts = start(&lab, isolate, "abort", text("enough"));
    let behind = start(&lab, isolate, "state", Value::Null);
    lab.run();
    for call in [aborts, waiting, behind] {
        let reason = ("TypeError".into(), "enough".into());
        assert_eq!(thrown(&lab.report_now(call)), reason);
    }
    assert!(!lab.is_reusable_after(aborts) && lab.is_reusable_after(waiting));
    assert_eq!(
        stopped(&lab.aftermath(held)),
        Some(VerdictKind::IsolateLost)
    );
    assert!(lab.has_ended(isolate));
    let isolate = self::isolate(&lab);
    let report = lab.call(isolate, "abortEmpty", Value::Null);
    assert_eq!(thrown(&report).1, "The execution context was aborted.");
    lab.clock.pass(Duration::from_secs(60));
    lab.assert_empty();
}
