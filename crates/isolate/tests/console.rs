//! The console: what is written is in the report, as people read it, with level and time.

use crate::support::{Bench, logs, value, worker};
use coracle_isolate::{Clock, LogLevel, Report};
use coracle_value::Value;
use std::{sync::Arc, time::Duration};

fn written(bench: &Bench, body: &str) -> Vec<String> {
    logs(&bench.run(body))
}

#[test]
fn every_level_reaches_the_log() {
    let bench = Bench::new();
    let report = bench.run(
        "console.debug('d'); console.info('i'); console.log('l'); console.warn('w'); console.error('e'); console.trace('t'); console.dir({ a: 1 });",
    );
    let levels: Vec<LogLevel> = report.logs.iter().map(|log| log.level).collect();
    use LogLevel::{Debug, Error, Info, Log, Warn};
    assert_eq!(levels, [Debug, Info, Log, Warn, Error, Log, Log]);
    let messages: Vec<&str> = report.logs.iter().map(|log| &*log.message).collect();
    assert_eq!(messages[..5], ["d", "i", "l", "w", "e"]);
    assert_eq!(messages[5], "Trace: t\n    at run (main.js:1:149)");
    assert_eq!(messages[6], "{ a: 1 }");
}

#[test]
fn values_are_written_as_people_read_them() {
    let bench = Bench::new();
    for (arguments, text) in [
        ("", ""),
        (
            "'text', 1, -0, 10n, true, null, undefined, Symbol('s')",
            "text 1 -0 10n true null undefined Symbol(s)",
        ),
        (
            "{ a: 1, b: ['x', { c: undefined }] }",
            "{ a: 1, b: [ 'x', { c: undefined } ] }",
        ),
        (
            "[1, , 3], new Map([['k', new Set([1])]])",
            "[ 1, <1 empty item>, 3 ] Map(1) { 'k' => Set(1) { 1 } }",
        ),
        (
            "new Date(0), /x/gi, new Uint8Array(2)",
            "1970-01-01T00:00:00.000Z /x/gi Uint8Array(2) [ 0, 0 ]",
        ),
        (
            "() => 1, class X {}, Math.max",
            "[Function (anonymous)] [class X] [Function: max]",
        ),
        (
            "'%s is %d and %i, %j %o %%', 'x', 1.5, '7px', { a: 1 }, [1], 'more'",
            "x is 1.5 and 7, {\"a\":1} [ 1 ] % more",
        ),
        (
            "'\\ud800 grüße 😀\\0'",
            "\u{fffd}\u{fffd}\u{fffd} grüße 😀\0",
        ),
        (
            "Promise.resolve(1), new WeakMap()",
            "Promise {…} WeakMap {…}",
        ),
        (
            "Object.create(null), new (class Foo { x = 1 })()",
            "[Object: null prototype] {} Foo { x: 1 }",
        ),
    ] {
        assert_eq!(
            written(&bench, &format!("console.log({arguments});")),
            [format!("Log: {text}")],
            "{arguments}"
        );
    }
}

#[test]
fn errors_are_written_with_their_own_frames_and_causes() {
    let bench = Bench::new();
    let text = &written(
        &bench,
        "console.error(new TypeError('m', { cause: new Error('why') }));",
    )[0];
    assert_eq!(
        text,
        "Error: TypeError: m\n    at run (main.js:1:91) {\n  [cause]: Error: why\n      at run (main.js:1:91)\n}"
    );
    let custom = "class HttpError extends Error { name = 'HttpError'; status = 404; } console.log(new HttpError('gone'));";
    let text = &written(&bench, custom)[0];
    assert_eq!(
        text,
        "Log: HttpError: gone\n    at run (main.js:1:129) {\n  status: 404\n}"
    );
    let cloned = "try { structuredClone(() => 1); } catch (error) { console.log(error); }";
    let text = &written(&bench, cloned)[0];
    assert!(
        text.starts_with("Log: DataCloneError: A function could not be cloned"),
        "{text}"
    );
    assert!(!text.contains("coracle"), "{text}");
    let made = "console.log(new DOMException('m', 'AbortError'));";
    let text = &written(&bench, made)[0];
    assert_eq!(text, "Log: AbortError: m\n    at run (main.js:1:61)");
    let aggregate = "console.log(new AggregateError([new Error('a'), 5], 'm'));";
    let text = &written(&bench, aggregate)[0];
    assert!(
        text.contains("[errors]: [") && text.contains("Error: a") && text.contains('5'),
        "{text}"
    );
}

#[test]
fn groups_counters_and_timers_keep_their_state_in_the_isolate() {
    let bench = Bench::new();
    let lines = written(
        &bench,
        "console.group('outer'); console.log('a\\nb'); console.groupCollapsed(); console.warn('deep'); console.groupEnd(); console.groupEnd(); console.groupEnd(); console.log('out');
         console.count(); console.count('x'); console.count(); console.countReset(); console.count(); console.countReset('none');
         console.time('t'); console.timeEnd('t'); console.timeEnd('t'); console.assert(true, 'no'); console.assert(false, 'yes', 1); console.assert();",
    );
    assert_eq!(
        lines,
        [
            "Log: outer",
            "Log:   a\n  b",
            "Warn:     deep",
            "Log: out",
            "Log: default: 1",
            "Log: x: 1",
            "Log: default: 2",
            "Log: default: 1",
            "Warn: Count for 'none' does not exist",
            "Log: t: 0ms",
            "Warn: Timer 't' does not exist",
            "Error: Assertion failed: yes 1",
            "Error: Assertion failed"
        ]
    );
}

#[test]
fn tables_are_drawn() {
    let bench = Bench::new();
    let text = &written(&bench, "console.table([{ a: 1, b: 'x' }, { a: 2 }]);")[0];
    assert!(
        text.contains("(index)") && text.contains("'x'") && text.lines().count() == 6,
        "{text}"
    );
}

#[test]
fn what_is_written_in_module_scope_is_part_of_the_first_call() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[(
        "main.js",
        "console.log('load'); export default { run(_) { console.log('run'); } };",
    )]));
    assert_eq!(
        logs(&bench.call(isolate, "run", &[Value::Null])),
        ["Log: load", "Log: run"]
    );
    assert_eq!(
        logs(&bench.call(isolate, "run", &[Value::Null])),
        ["Log: run"]
    );
}

#[test]
fn logs_come_with_the_failure_too() {
    let bench = Bench::new();
    let report = bench.run("console.log('before'); throw new Error('m');");
    assert_eq!(logs(&report), ["Log: before"]);
    let report = bench.run("console.log('before'); while (true) {}");
    assert_eq!(logs(&report), ["Log: before"]);
    let report = bench.run_module("console.log('before'); throw new Error('m');", Value::Null);
    assert_eq!(logs(&report), ["Log: before"]);
}

#[test]
fn what_is_written_while_a_call_ends_is_still_its_own() {
    let bench = Bench::new();
    let body = "Promise.resolve().then(() => {}).then(() => {}).then(() => {}).then(() => console.log('after')); queueMicrotask(() => console.log('soon')); return 1;";
    let report = bench.run(body);
    assert_eq!(value(&report), 1.into());
    assert_eq!(logs(&report), ["Log: soon", "Log: after"]);
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn epoch_ms(&self) -> f64 {
        1_234_567.0
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_line_has_the_time_that_the_worker_saw() {
    let bench = Bench::with_clock(Arc::new(Still), |_| {});
    let report = bench.run("console.log(Date.now());");
    assert_eq!(report.logs[0].timestamp_ms, 1_234_567.0);
    assert_eq!(report.logs[0].message, "1234567");
}

#[test]
fn what_inspects_a_value_runs_none_of_its_code() {
    let bench = Bench::new();
    let body = "
        let ran = 0; const run = () => { ran++; throw 1; };
        const value = { get a() { run(); }, toString: run, toJSON: run, valueOf: run, [Symbol.toPrimitive]: run, [Symbol.for('nodejs.util.inspect.custom')]: run, inspect: run };
        Object.defineProperty(value, 'constructor', { get: run }); Object.defineProperty(value, Symbol.toStringTag, { get: run });
        const error = Object.defineProperty(new Error('m'), 'name', { get: run }); Object.defineProperty(error, 'message', { get: run }); Object.defineProperty(error, 'stack', { get: run });
        class List extends Array { get length() { run(); } } const map = new Map([[1, 2]]); map[Symbol.iterator] = map.entries = map.forEach = run;
        console.log(value, error, new List(), map); console.log('%s %d %o %i', value, value, value, error); console.dir(value); console.table(value); console.table([value, map]);
        return ran;";
    let report = bench.run(body);
    assert_eq!(value(&report), 0.into());
    assert_eq!(report.logs.len(), 5);
}

#[test]
fn no_value_is_written_without_end() {
    let bench = Bench::new();
    let longest = |report: &Report| {
        report
            .logs
            .iter()
            .map(|log| log.message.len())
            .max()
            .unwrap_or_default()
    };
    for body in [
        "console.log('x'.repeat(1e6));",
        "console.log(new Array(1e6).fill('some text'));",
        "console.log(Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ['key' + i, i])));",
        "const a = []; for (let i = 0, it = a; i < 1e5; i++) it.push(it = []); console.log(a);",
        "const o = {}; o.o = o; console.log(o, [o, { o }]);",
        "console.log(new Proxy({}, { ownKeys() { return Array.from({ length: 1e4 }, (_, i) => 'k' + i); }, getOwnPropertyDescriptor() { return { value: 1, enumerable: true, configurable: true }; } }));",
        "console.log(...new Array(1e4).fill('argument'));",
        "for (let i = 0; i < 1e4; i++) console.group(); console.log('a\\n'.repeat(1000));",
    ] {
        let report = bench.run(body);
        assert_eq!(value(&report), Value::Undefined, "{body}");
        assert!(longest(&report) <= 66_000, "{body}: {}", longest(&report));
    }
}
