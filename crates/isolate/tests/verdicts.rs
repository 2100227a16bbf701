//! Code that has to be stopped, and how: whatever it catches, the verdict is the true one; whatever it recurses into, it
//! can catch; whatever it waits for in vain, it is told at once.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::lab::{Lab, limits, text, thrown, verdict};
use crate::support::{value, worker_with};
use coracle_isolate::{CallAccess, Outcome, Report, VerdictKind};
use coracle_value::Value;
use std::time::Duration;

const SLICE: u64 = coracle_isolate::FUEL_SLICE;

/// A worker whose method `run` does this.
fn run(body: &str) -> String {
    format!("export default {{ async run(x) {{ {body} }} }}")
}

/// What comes of a method that does this, with little fuel and memory.
fn outcome_of(body: &str) -> Report {
    outcome_with(200 * SLICE, body)
}

fn outcome_with(fuel_max: u64, body: &str) -> Report {
    let lab = Lab::new();
    let other = lab.source(&run("return 'untouched'"));
    let limits = limits(|limits| {
        limits.fuel_max = fuel_max;
        limits.memory_bytes_max = 16 << 20;
    });
    let isolate = lab.isolate(worker_with(&[("main.js", &run(body))], limits));
    let report = lab.call(isolate, "run", Value::Null);
    if let Outcome::Verdict(_) = report.outcome {
        assert!(lab.has_ended(isolate), "{body}");
    }
    assert_eq!(
        value(&lab.call(other, "run", Value::Null)),
        text("untouched")
    );
    lab.end(isolate);
    lab.end(other);
    lab.assert_empty();
    report
}

// --- computing without end ---

#[test]
fn code_that_never_ends_runs_out_of_fuel() {
    for body in [
        "while (true) {}",
        "for (;;) await 0",
        "for (;;) await null",
        "function flood() { Promise.resolve().then(flood) } flood(); await new Promise(() => {})",
        "for (;;) try { while (true) {} } catch {} finally { continue }",
        // Case L05.
        "/^(a+)+$/.test('a'.repeat(40) + '!')",
        "/(x+x+)+y/.exec('x'.repeat(64))",
        "'x'.repeat(40).replace(/(x+)*y/g, '')",
        // Case L06.
        "const all = Array.from({ length: 3e5 }, (_, i) => i); for (;;) all.sort(() => Math.random() - 0.5)",
        "for (;;) new Map(Array.from({ length: 1000 }, (_, i) => [i, i]))",
        "for (;;) JSON.parse(JSON.stringify({ a: [1, 2, 3] }))",
        // The engine looks for cycles at every level, so this is not done in a second.
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)",
        "[1].forEach(() => { for (;;); })",
        "new Proxy({}, { get() { for (;;); } }).x",
        "({ get x() { for (;;); } }).x",
        "({ [Symbol.iterator]() { return { next: () => ({ done: false }) } } }); for (const _ of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) });",
        "new Uint8Array(1e6).sort((a, b) => { for (;;); })",
        "for (let n = 3n; ; n = (n * n) % (2n ** 5000n));",
        "async function* forever() { for (;;) yield 1 } for await (const _ of forever());",
    ] {
        let report = outcome_of(body);
        let verdict = verdict(&report);
        let stopped = matches!(verdict.kind, VerdictKind::Fuel | VerdictKind::Memory);
        assert!(stopped && verdict.started, "{body}: {verdict:?}");
        assert!(verdict.used >= verdict.limit, "{body}: {verdict:?}");
    }
}

/// Case L06: one call of a builtin that would take for ever or for all the memory.
#[test]
fn one_call_of_a_builtin_is_stopped_as_well() {
    for body in [
        "'a'.repeat(2 ** 28).split('')",
        "BigInt(2) ** (2n ** 40n)",
        "'ab'.repeat(1e4).replaceAll(/./g, (x) => x.repeat(1e6))",
        "JSON.stringify(Object.fromEntries(Array.from({ length: 5e6 }, (_, i) => [i, i])))",
        "'x'.repeat(1e6).padEnd(2 ** 30 - 1).length; Array(1e8).join('x')",
        "new Array(2 ** 32 - 1).indexOf(1); Array.from({ length: 2 ** 53 - 1 })",
        "Array(1e9).fill(0)",
        "[...'.'.repeat(1e9)]",
        "Array.prototype.concat.apply([], Array(1e5).fill(Array(1e4).fill(1)))",
        "new Uint8Array(1e9)",
        "Atomics; new SharedArrayBuffer(1e9)",
        "Symbol('x'.repeat(2 ** 29)).toString() + 'x'.repeat(2 ** 29)",
    ] {
        match outcome_of(body).outcome {
            Outcome::Verdict(verdict) => assert!(
                matches!(verdict.kind, VerdictKind::Fuel | VerdictKind::Memory),
                "{body}: {verdict:?}"
            ),
            // Where the engine knows at once that it can't be done.
            Outcome::Threw(thrown) => assert!(
                ["RangeError", "InternalError", "ReferenceError"].contains(&&thrown.name[..]),
                "{body}: {thrown:?}"
            ),
            Outcome::Value(_) => panic!("{body} was done"),
        }
    }
}

/// Case L04.
#[test]
fn a_pattern_that_once_hung_the_engine_has_its_answer() {
    let report = outcome_of("return new RegExp('()*?a').exec(',')");
    assert_eq!(value(&report), Value::Null);
}

// --- memory ---

#[test]
fn memory_that_runs_out_is_a_memory_verdict_whatever_the_script_does_about_it() {
    let fill = "const all = []; for (;;) all.push(new Uint8Array(9e4), {})";
    for body in [
        fill.to_owned(),
        format!("try {{ {fill} }} catch {{}} return 'survived'"),
        format!("try {{ {fill} }} catch {{ throw null }}"),
        format!("for (;;) try {{ {fill} }} catch {{}}"),
        format!("try {{ {fill} }} finally {{ for (;;); }}"),
        format!("try {{ {fill} }} catch {{ await new Promise(() => {{}}) }}"),
        format!("queueMicrotask(() => {{ {fill} }}); return 'first'"),
        format!("await 0; {fill}"),
        "const all = []; for (;;) all.push(new ArrayBuffer(1_000_000))".into(),
        "const all = []; for (;;) all.push(new Uint8Array(10_000).fill(all.length))".into(),
        "let text = 'x'; for (;;) text = [text, text].join()".into(),
        "const all = new Map(); for (;;) all.set({}, new Uint8Array(1e3))".into(),
        "let chain = () => {}; for (;;) chain = chain.bind(null, chain)".into(),
        "const all = []; for (;;) all.push(new Promise(() => {}))".into(),
        "const all = []; for (;;) all.push(Promise.resolve().then(() => {}))".into(),
        "const object = {}; for (let i = 0; ; i++) object['key' + i] = i".into(),
        "let list = null; for (;;) list = { list }".into(),
        "for (let i = 0; ; i++) globalThis['g' + i] = new Uint8Array(1e4)".into(),
        "const all = []; for (;;) { const b = new Uint8Array(65536); crypto.getRandomValues(b); all.push(b) }".into(),
        // Case M02.
        "new Array(1024 * 1024 * 60).fill()".into(),
        "Array(1e9).fill(0)".into(),
    ] {
        let report = outcome_with(10_000 * SLICE, &body);
        let verdict = verdict(&report);
        assert_eq!(verdict.kind, VerdictKind::Memory, "{body}: {verdict:?}");
        assert_eq!(verdict.limit_name, "memory_bytes_max");
        assert!(verdict.used > verdict.limit && verdict.started, "{body}");
        assert!(report.usage.memory_denied > 0, "{body}");
        assert!(report.usage.memory_peak_bytes <= 16 << 20, "{body}");
    }
}

/// Case M05: what can never be had is refused by the engine itself, and is no denied growth.
#[test]
fn a_buffer_beyond_any_address_is_a_range_error() {
    for body in ["new ArrayBuffer(2 ** 53)", "new Uint8Array(-1)"] {
        let report = outcome_of(&format!("try {{ {body} }} catch (e) {{ return e.name }}"));
        assert_eq!(value(&report), text("RangeError"), "{body}");
        assert_eq!(report.usage.memory_denied, 0);
    }
}

#[test]
fn memory_can_also_run_out_in_module_scope_in_a_timer_and_on_the_arguments() {
    let lab = Lab::new();
    let little = limits(|limits| limits.memory_bytes_max = 8 << 20);
    let source = "const all = []; for (;;) all.push(new Uint8Array(9e4), {}); export default {}";
    let isolate = lab.isolate(worker_with(&[("main.js", source)], little));
    let loading = verdict(&lab.call(isolate, "run", Value::Null));
    assert_eq!(
        (loading.kind, loading.started),
        (VerdictKind::Memory, false)
    );

    let source = run(
        "await new Promise((done) => setTimeout(done, 5)); const all = []; for (;;) all.push(new Uint8Array(9e4), {})",
    );
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], little));
    let later = verdict(&lab.call(isolate, "run", Value::Null));
    assert_eq!((later.kind, later.started), (VerdictKind::Memory, true));

    // The message itself does not fit.
    let isolate = lab.isolate(worker_with(&[("main.js", &run("return 1"))], little));
    let lengthy = Value::from("x".repeat(20 << 20));
    let report = lab.call(isolate, "run", lengthy);
    assert_eq!(verdict(&report).kind, VerdictKind::Memory);
    assert!(report.usage.memory_denied > 0);
    lab.assert_empty();
}

// --- recursion ---

#[test]
fn recursion_of_all_sorts_is_a_range_error_that_can_be_caught_and_the_isolate_serves_on() {
    for body in [
        "function f() { f() } f()",
        "function f() { return f() + 1 } f()",
        "const f = () => [1].map(f); f()",
        "async function f() { await f() } await f()",
        "function* f() { yield* f() } [...f()]",
        "const o = { toString() { return '' + o } }; '' + o",
        "const o = { valueOf() { return +o } }; +o",
        "const o = { get x() { return o.x } }; o.x",
        "const o = { toJSON() { return JSON.stringify(o) } }; JSON.stringify(o)",
        "const p = new Proxy({}, { get(_, key) { return p[key] } }); p.x",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = Object.create(new Proxy(p, {})); p.x",
        "const again = (a, b) => [2, 1].sort(again); [2, 1].sort(again)",
        "const again = () => 'x'.replace(/x/, again); 'x'.replace(/x/, again)",
        "let f = () => 1; for (let i = 0; i < 1e5; i++) f = ((g) => () => g())(f); f()",
        "class A { constructor() { new A() } } new A()",
        "class A { get [Symbol.toStringTag]() { return '' + this } } '' + new A()",
        "Reflect.apply(function f() { Reflect.apply(f, null, []) }, null, [])",
        "const a = []; a[0] = a; a.flat(Infinity)",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; '' + a",
        // Case M10.
        "JSON.parse('['.repeat(1e5))",
        "JSON.parse('['.repeat(1e6))",
        "JSON.parse('{\"a\":'.repeat(1e5))",
        "JSON.parse('[1,[2]]', function revive(k, v) { return JSON.parse('[1]', revive) })",
        "let e = new Error('0'); for (let i = 0; i < 1e4; i++) e = new Error('n', { cause: e }); structuredClone(e)",
        // Case M13.
        "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))",
        "new RegExp('(?:'.repeat(1e5) + ')'.repeat(1e5))",
        "new RegExp('(?='.repeat(1e5) + ')'.repeat(1e5))",
        "new RegExp('[' .repeat(1e5), 'v')",
        "new RegExp(Array.from({ length: 1e5 }, (_, i) => `(?<n${i}>x)`).join(''))",
        "const i = { [Symbol.iterator]() { return [...i] } }; [...i]",
        "let g = []; g = new Proxy([], { get(t, k) { return k === 'length' ? g.length : t[k] } }); g.length",
    ] {
        let lab = Lab::new();
        let isolate = lab.source(&format!(
            "let served = 0; export default {{ async run(_) {{ try {{ {body}; return 'no error' }} \
             catch (e) {{ return e === null ? 'null' : e.name }} }}, count(_) {{ return ++served }} }}"
        ));
        let report = lab.call(isolate, "run", Value::Null);
        let name = match &report.outcome {
            Outcome::Value(_) => value(&report),
            other => panic!("{body}: {other:?}"),
        };
        let caught = ["RangeError", "SyntaxError", "DataCloneError"].map(text);
        assert!(caught.contains(&name), "{body}: {name:?}");
        assert_eq!(
            value(&lab.call(isolate, "count", Value::Null)),
            Value::from(1),
            "{body}"
        );
    }
}

/// Uncaught, it is an exception like any other.
#[test]
fn recursion_that_nobody_catches_is_thrown() {
    let report = outcome_of("(function f() { f() })()");
    assert_eq!(thrown(&report).0, "RangeError");
}

/// Case M11: source that is nested deeply.
#[test]
fn deeply_nested_source_is_a_load_error_and_never_worse() {
    let lab = Lab::new();
    for depth in [5_000, 20_000, 200_000] {
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{ a: ", "1", "}"),
            ("1 ? ", "1", ": 1"),
            ("`${", "1", "}`"),
            ("-", "1", ""),
            ("() => ", "1", ""),
            ("f(", "1", ")"),
            ("async () => { await ", "1", "}"),
        ] {
            let nested = format!(
                "const f = (x) => x; export const value = {}{inner}{}; export default {{ run(_) {{ return 1 }} }}",
                open.repeat(depth),
                close.repeat(depth)
            );
            let isolate = lab.source(&nested);
            let report = lab.call(isolate, "run", Value::Null);
            match &report.outcome {
                Outcome::Threw(thrown) => assert!(
                    ["RangeError", "SyntaxError", "InternalError"].contains(&&thrown.name[..]),
                    "{open} {depth}: {thrown:?}"
                ),
                Outcome::Verdict(verdict) => assert!(
                    matches!(verdict.kind, VerdictKind::Memory | VerdictKind::Startup),
                    "{open} {depth}: {verdict:?}"
                ),
                Outcome::Value(_) => {}
            }
            lab.end(isolate);
        }
    }
    lab.assert_empty();
}

// --- waiting in vain ---

#[test]
fn a_call_that_nothing_can_settle_is_told_at_once_and_the_isolate_serves_on() {
    let lab = Lab::new();
    let isolate = lab.source(
        "let n = 0; export default { wait(_) { n++; return new Promise(() => {}) }, count(_) { return n } }",
    );
    for _ in 0..3 {
        let call = lab.call_of("wait", Value::Null);
        let report = lab.report_now(lab.send(isolate, call));
        let hung = verdict(&report);
        assert_eq!(hung.kind, VerdictKind::Hung);
        assert!(hung.started && hung.limit_name.is_empty());
        assert_eq!(report.usage.wall_us, 0);
    }
    assert_eq!(
        value(&lab.call(isolate, "count", Value::Null)),
        Value::from(3)
    );
    assert!(!lab.has_ended(isolate));
}

#[test]
fn a_call_waits_as_long_as_another_one_may_settle_it() {
    let lab = Lab::new();
    let isolate = lab.source(
        "let free; export default { \
           wait(_) { return new Promise((done) => { free = done }) }, \
           async later(_) { await new Promise((done) => setTimeout(done, 1000)); }, \
           free(_) { free('freed'); return 'done' } }",
    );
    // Alone it would be hung; the second one, which has a timer, could still settle it.
    let (first, second) = (
        lab.call_of("wait", Value::Null),
        lab.call_of("later", Value::Null),
    );
    let first = lab.send(isolate, first);
    let second = lab.send(isolate, second);
    lab.run();
    assert!(!lab.has_report(first) && !lab.has_report(second));
    assert_eq!(value(&lab.call(isolate, "free", Value::Null)), text("done"));
    assert_eq!(value(&lab.report_now(first)), text("freed"));
    // And when the last one that could is through, the next is told.
    let third = lab.call_of("wait", Value::Null);
    let third = lab.send(isolate, third);
    assert_eq!(value(&lab.report(second)), Value::Undefined);
    assert_eq!(verdict(&lab.report_now(third)).kind, VerdictKind::Hung);
}

#[test]
fn a_module_that_awaits_in_vain_is_hung_without_having_started() {
    let lab = Lab::new();
    for source in [
        "await new Promise(() => {}); export default {}",
        "import './other.js'; export default {}",
    ] {
        let modules = [
            ("main.js", source),
            ("other.js", "await new Promise(() => {})"),
        ];
        let isolate = lab.isolate(worker_with(&modules, limits(|_| {})));
        // All who wait for the same modules have the same answer.
        let calls: Vec<u64> = (0..3)
            .map(|_| {
                let call = lab.call_of("run", Value::Null);
                lab.send(isolate, call)
            })
            .collect();
        for call in calls {
            let report = lab.report_now(call);
            let hung = verdict(&report);
            assert_eq!((hung.kind, hung.started), (VerdictKind::Hung, false));
        }
        assert!(lab.has_ended(isolate));
    }
    lab.assert_empty();
}

/// Case L12.
#[test]
fn waiting_again_and_again_runs_out_of_wall_time_and_uses_little_cpu() {
    let lab = Lab::new();
    let isolate = lab.source(&run(
        "for (;;) await new Promise((done) => setTimeout(done, 1000))",
    ));
    let report = lab.call(isolate, "run", Value::Null);
    let stopped = verdict(&report);
    assert_eq!((stopped.kind, stopped.used), (VerdictKind::Wall, 30_000));
    assert!(report.usage.cpu_us < 10_000);
}

// --- cancelling and ending ---

#[test]
fn cancelling_the_only_call_ends_the_isolate() {
    let lab = Lab::new();
    for body in [
        "await new Promise((done) => setTimeout(done, 1000))",
        "for (;;);",
        "for (;;) await 0",
    ] {
        let isolate = lab.source(&run(body));
        let call = lab.call_of("run", Value::Null);
        let call = lab.send(isolate, call);
        for _ in 0..3 {
            lab.step();
        }
        lab.cancel(isolate, call);
        lab.step();
        assert!(lab.has_report(call) && lab.has_ended(isolate), "{body}");
        assert_eq!(verdict(&lab.report(call)).kind, VerdictKind::Cancelled);
        assert!(!lab.is_reusable_after(call));
    }
    lab.assert_empty();
}

#[test]
fn cancelling_one_of_several_leaves_the_others_alone() {
    let lab = Lab::new();
    let isolate = lab.source(
        "export default { async wait(x) { await new Promise((done) => setTimeout(done, x)); return x } }",
    );
    let [first, second, third] = [100, 200, 300].map(|ms| {
        let call = lab.call_of("wait", Value::from(ms));
        lab.send(isolate, call)
    });
    lab.run();
    lab.cancel(isolate, second);
    let report = lab.report_now(second);
    let cancelled = verdict(&report);
    assert_eq!(
        (cancelled.kind, cancelled.started),
        (VerdictKind::Cancelled, true)
    );
    assert!(lab.is_reusable_after(second));
    assert_eq!(value(&lab.report(first)), Value::from(100));
    assert_eq!(value(&lab.report(third)), Value::from(300));
    assert!(!lab.has_ended(isolate));
    // Its timer went with it.
    assert_eq!(lab.stats().alarms, 0);
}

#[test]
fn a_call_that_is_cancelled_before_its_turn_has_not_started() {
    let lab = Lab::new();
    let isolate = lab.source(&run("return x"));
    let [first, second] = [1, 2].map(|x| {
        let call = lab.call_of("run", Value::from(x));
        lab.send(isolate, call)
    });
    lab.cancel(isolate, second);
    let cancelled = verdict(&lab.report_now(second));
    assert_eq!(
        (cancelled.kind, cancelled.started),
        (VerdictKind::Cancelled, false)
    );
    assert_eq!(value(&lab.report(first)), Value::from(1));
    // One that is over, or never was, is nobody's business.
    lab.cancel(isolate, first);
    lab.cancel(isolate, 999);
    lab.cancel(999, 999);
    assert_eq!(
        value(&lab.call(isolate, "run", Value::from(3))),
        Value::from(3)
    );
}

#[test]
fn a_call_that_is_cancelled_while_the_modules_are_evaluated_for_it_leaves_them_to_the_others() {
    let lab = Lab::new();
    let isolate = lab.source(&format!(
        "for (let i = 0; i < 1e6; i++); {}",
        run("return x")
    ));
    let [first, second] = [1, 2].map(|x| {
        let call = lab.call_of("run", Value::from(x));
        lab.send(isolate, call)
    });
    lab.step();
    lab.step();
    assert!(!lab.has_report(first));
    lab.cancel(isolate, first);
    let cancelled = verdict(&lab.report_now(first));
    assert_eq!(
        (cancelled.kind, cancelled.started),
        (VerdictKind::Cancelled, false)
    );
    let report = lab.report(second);
    assert_eq!(value(&report), Value::from(2));
    assert_eq!(report.usage.fuel_load, 0);

    // Alone it takes the isolate along.
    let isolate = lab.source("for (;;);");
    let call = lab.call_of("run", Value::Null);
    let call = lab.send(isolate, call);
    lab.step();
    lab.cancel(isolate, call);
    lab.step();
    assert!(lab.has_ended(isolate));
    assert_eq!(verdict(&lab.report(call)).kind, VerdictKind::Cancelled);
}

#[test]
fn a_cancelled_loop_runs_only_as_long_as_others_wait_behind_it() {
    let lab = Lab::new();
    let isolate = lab.source("export default { spin(_) { for (;;); }, fine(_) { return 1 } }");
    let spin = lab.call_of("spin", Value::Null);
    let spin = lab.send(isolate, spin);
    lab.step();
    lab.step();
    let fine = lab.call_of("fine", Value::Null);
    let fine = lab.send(isolate, fine);
    lab.cancel(isolate, spin);
    lab.step();
    assert_eq!(verdict(&lab.report(spin)).kind, VerdictKind::Cancelled);
    assert!(!lab.has_ended(isolate) && !lab.has_report(fine));
    // Nobody waits for anything of it now.
    lab.cancel(isolate, fine);
    lab.step();
    assert_eq!(verdict(&lab.report(fine)).kind, VerdictKind::Cancelled);
    assert!(lab.has_ended(isolate));

    // With someone who does, its limit stops it in the end.
    let isolate = lab.source("export default { spin(_) { for (;;); }, fine(_) { return 1 } }");
    let spin = lab.call_of("spin", Value::Null);
    let spin = lab.send(isolate, spin);
    lab.step();
    lab.step();
    let fine = lab.call_of("fine", Value::Null);
    let fine = lab.send(isolate, fine);
    lab.cancel(isolate, spin);
    assert_eq!(verdict(&lab.report(fine)).kind, VerdictKind::IsolateLost);
    assert!(lab.has_ended(isolate));
    lab.assert_empty();
}

#[test]
fn ending_an_isolate_reports_nothing_and_what_comes_later_is_lost() {
    let lab = Lab::new();
    let isolate = lab.source(
        "export default { spin(_) { for (;;); }, async wait(_) { await new Promise((r) => setTimeout(r, 1e6)) } }",
    );
    let before = ["wait", "wait", "spin", "wait"].map(|method| {
        let call = lab.call_of(method, Value::Null);
        lab.send(isolate, call)
    });
    for _ in 0..6 {
        lab.step();
    }
    lab.end(isolate);
    let after = lab.call_of("wait", Value::Null);
    let after = lab.send(isolate, after);
    lab.run();
    assert!(lab.has_ended(isolate));
    assert!(before.iter().all(|call| !lab.has_report(*call)));
    for call in [
        after,
        lab.send(isolate, lab.call_of("wait", Value::Null)),
        lab.send(999, lab.call_of("wait", Value::Null)),
    ] {
        let lost = verdict(&lab.report_now(call));
        assert_eq!((lost.kind, lost.started), (VerdictKind::IsolateLost, false));
        assert!(!lab.is_reusable_after(call));
    }
    // Ending what is gone changes nothing.
    lab.end(isolate);
    lab.assert_empty();
}

// --- together in one isolate ---

const TOGETHER: &str = "export default {
    async wait(x) { console.log('wait ' + x); await new Promise((done) => setTimeout(done, x));
                    console.log('waited ' + x); return x },
    burn(_) { console.log('burn'); for (;;); },
    fill(_) { console.log('fill'); const all = []; for (;;) all.push(new Uint8Array(9e4), {}); },
    big(_) { return 'x'.repeat(1e6) },
    work(x) { console.log('work'); let n = 0; for (let i = 0; i < x; i++) n += i; return n },
}";

#[test]
fn the_culprit_gets_its_verdict_and_the_others_lose_the_isolate() {
    for (method, kind) in [
        ("burn", VerdictKind::Fuel),
        ("fill", VerdictKind::Memory),
        ("big", VerdictKind::ResultSize),
    ] {
        let lab = Lab::new();
        let limits = limits(|limits| {
            limits.fuel_max = 100 * SLICE;
            limits.memory_bytes_max = 8 << 20;
            limits.result_bytes_max = 1_000;
        });
        let isolate = lab.isolate(worker_with(&[("main.js", TOGETHER)], limits));
        let waiting = lab.call_of("wait", Value::from(1_000));
        let waiting = lab.send(isolate, waiting);
        lab.run();
        let culprit = lab.call_of(method, Value::Null);
        let culprit = lab.send(isolate, culprit);
        let behind = lab.call_of("wait", Value::from(1));
        let behind = lab.send(isolate, behind);
        let report = lab.report_now(culprit);
        assert_eq!(verdict(&report).kind, kind);
        for (call, started) in [(waiting, true), (behind, false)] {
            let report = lab.report_now(call);
            let lost = verdict(&report);
            assert_eq!(
                (lost.kind, lost.started),
                (VerdictKind::IsolateLost, started)
            );
        }
        // What was lost keeps its logs, and is told before the culprit; the isolate's end comes last.
        assert_eq!(lab.report(waiting).logs[0].message, "wait 1000");
        let order = lab.seen.borrow().order.clone();
        let of_isolate = |call| (isolate, call);
        assert_eq!(
            order,
            [Some(waiting), Some(behind), Some(culprit), None].map(of_isolate)
        );
        assert!(lab.is_reusable_after(waiting) && !lab.is_reusable_after(culprit));
        lab.assert_empty();
    }
}

#[test]
fn logs_and_fuel_go_to_the_invocation_whose_entry_it_is() {
    let alone = |method: &str, x: i32| {
        let lab = Lab::new();
        let isolate = lab.source(TOGETHER);
        lab.call(isolate, "work", Value::from(0));
        lab.call(isolate, method, Value::from(x))
    };
    let lab = Lab::new();
    let isolate = lab.source(TOGETHER);
    lab.call(isolate, "work", Value::from(0));
    let calls = [
        ("wait", 30),
        ("work", 20_000),
        ("wait", 10),
        ("work", 200_000),
        ("wait", 20),
    ];
    let sent = calls.map(|(method, x)| {
        let call = lab.call_of(method, Value::from(x));
        (method, x, lab.send(isolate, call))
    });
    for (method, x, call) in sent {
        let (together, alone) = (lab.report(call), alone(method, x));
        assert_eq!(together.outcome, alone.outcome);
        let messages = |report: &Report| {
            let messages = report.logs.iter().map(|log| log.message.clone());
            messages.collect::<Vec<_>>()
        };
        assert_eq!(messages(&together), messages(&alone));
        // The engine's own bookkeeping differs a little with what was there before.
        let (together, alone) = (together.usage.fuel_run, alone.usage.fuel_run);
        assert!(
            together.abs_diff(alone) < 20_000 + alone / 50,
            "{method} {x}: {together} together, {alone} alone"
        );
    }
}

/// Case M19.
#[test]
fn logs_come_back_with_a_failure_too() {
    let lab = Lab::new();
    for (body, kind) in [
        ("console.log('before'); throw new Error('no')", None),
        ("console.log('before'); for (;;);", Some(VerdictKind::Fuel)),
        (
            "console.log('before'); await new Promise(() => {})",
            Some(VerdictKind::Hung),
        ),
        (
            "console.log('before'); await new Promise((done) => setTimeout(done, 1e6))",
            Some(VerdictKind::Wall),
        ),
    ] {
        let isolate = lab.source(&run(body));
        let report = lab.call(isolate, "run", Value::Null);
        assert_eq!(report.logs[0].message, "before");
        if let Some(kind) = kind {
            assert_eq!(verdict(&report).kind, kind);
        }
    }
}

// --- after the result ---

#[test]
fn what_a_call_leaves_running_is_stopped_without_a_second_report() {
    for (leftover, ends) in [
        ("setInterval(() => {}, 1)", false),
        ("setTimeout(() => { globalThis.ran = true }, 1)", false),
        (
            "(async () => { for (let i = 0; i < 20; i++) await 0; for (;;); })()",
            true,
        ),
        (
            "(async () => { for (let i = 0; i < 20; i++) await 0; for (;;) await 0; })()",
            true,
        ),
        (
            "(async () => { for (let i = 0; i < 20; i++) await 0; const all = []; for (;;) all.push(new Uint8Array(1e5)) })()",
            true,
        ),
        (
            "(async () => { for (let i = 0; i < 20; i++) await 0; for (let i = 0; i < 3e5; i++); setTimeout(() => {}, 10); })()",
            false,
        ),
    ] {
        let lab = Lab::new();
        let limits = limits(|limits| {
            limits.fuel_max = 100 * SLICE;
            limits.memory_bytes_max = 16 << 20;
        });
        let source = format!(
            "export default {{ async run(_) {{ {leftover}; return 'result' }}, ran(_) {{ return globalThis.ran ?? false }} }}"
        );
        let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits));
        let report = lab.call(isolate, "run", Value::Null);
        assert_eq!(value(&report), text("result"), "{leftover}");
        while lab.run_to_alarm() {}
        assert_eq!(lab.has_ended(isolate), ends, "{leftover}");
        assert_eq!(lab.stats().alarms, 0, "{leftover}");
        if !ends {
            let report = lab.call(isolate, "ran", Value::Null);
            assert_eq!(value(&report), Value::Bool(false), "{leftover}");
        }
        lab.end(isolate);
        lab.assert_empty();
    }
}

/// The first call asks for a token, the others wait for the same promise: their own requests begin in the first one's
/// entry, and must not end with it.
#[test]
fn calls_that_await_the_same_promise_all_get_on() {
    let lab = Lab::new();
    let isolate = lab.source(
        "let token; const pause = (ms) => new Promise((done) => setTimeout(done, ms));
         export default { async run(x) {
           token ??= pause(10).then(() => 'token');
           const mine = await token;
           if (x > 0) { console.log('went on ' + x); await pause(x); await fetch('https://a.example/').catch(() => {}); await pause(x) }
           console.log('done ' + x);
           return mine + x;
         } }",
    );
    let calls = [0, 30, 20, 500].map(|x| {
        let call = lab.call_of("run", Value::from(x));
        (x, lab.send(isolate, call))
    });
    for (x, call) in calls {
        let report = lab.report(call);
        assert_eq!(value(&report), text(&format!("token{x}")));
        // Its own last line is in its own output, or in that of one who was there at the time.
        assert!(report.usage.wall_us >= 10_000);
    }
    let seen = lab.seen.borrow();
    let lines: Vec<&str> = seen
        .reports
        .values()
        .flat_map(|reports| &reports[0].logs)
        .map(|log| &log.message[..])
        .collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
    drop(seen);
    assert_eq!(lab.stats().alarms, 0);
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn what_a_call_leaves_is_kept_for_the_others_within_its_wall_time() {
    let lab = Lab::new();
    let isolate = lab.source(
        "let ticks = 0; export default {
           leave(_) { setInterval(() => { ticks++ }, 100); return 'left' },
           async wait(x) { await new Promise((done) => setTimeout(done, x)); return ticks } }",
    );
    let waits = [1_000, 5_000].map(|x| {
        let call = lab.call_of("wait", Value::from(x));
        lab.send(isolate, call)
    });
    let mut leave = lab.call_of("leave", Value::Null);
    leave.limits.wall_ms_max = 2_000;
    let leave = lab.send(isolate, leave);
    assert_eq!(value(&lab.report_now(leave)), text("left"));
    // It ticks while others are there, and until its own two seconds are up.
    let ticks = |call| match value(&lab.report(call)) {
        Value::Number(ticks) => ticks,
        other => panic!("{other:?}"),
    };
    assert!((9.0..=10.0).contains(&ticks(waits[0])));
    assert!((18.0..=20.0).contains(&ticks(waits[1])));
    // With nobody else there it goes with its result.
    assert_eq!(
        value(&lab.call(isolate, "leave", Value::Null)),
        text("left")
    );
    assert_eq!(lab.stats().alarms, 0);
    assert!((18.0..=20.0).contains(&ticks({
        let call = lab.call_of("wait", Value::from(1_000));
        lab.send(isolate, call)
    })));
    lab.end(isolate);
    lab.assert_empty();
}

// --- the same again ---

#[test]
fn the_same_run_burns_the_same_fuel() {
    let once = || {
        let lab = Lab::new();
        let isolate = lab.source(&run(
            "const bytes = crypto.getRandomValues(new Uint8Array(16)); \
             const all = Array.from({ length: 500 }, () => Math.random()).sort(); \
             await new Promise((done) => setTimeout(done, 7)); console.log(Date.now()); \
             return JSON.stringify([...bytes, all])",
        ));
        (0..3)
            .map(|_| lab.call(isolate, "run", Value::Null))
            .collect::<Vec<_>>()
    };
    assert_eq!(once(), once());
}

#[test]
fn a_call_of_ready_after_the_load_costs_nothing() {
    let lab = Lab::new();
    let isolate = lab.source(&run("return 1"));
    lab.call(isolate, "run", Value::Null);
    let mut ready = lab.call_of("", Value::Null);
    ready.access = CallAccess::Ready;
    let report = lab.report_now(lab.send(isolate, ready));
    assert_eq!(value(&report), Value::Undefined);
    assert_eq!(report.usage.fuel_load + report.usage.fuel_run, 0);
    assert!(report.usage.isolate_reused);
}

#[test]
fn a_collection_of_garbage_changes_nothing_that_can_be_seen() {
    use coracle_isolate::{Message, Scheduler};
    let lab = Lab::new();
    let isolate = lab.source(
        "let kept = 0; export default { run(x) { for (let i = 0; i < x; i++) { const o = {}; o.o = o; kept++ } return kept },
         async wait(_) { await new Promise((done) => setTimeout(done, 10)); return kept } }",
    );
    let collect = || {
        lab.stepper.send(Message::Collect { isolate });
        lab.run();
    };
    // Before it is alive, at rest, and while something waits.
    collect();
    assert_eq!(
        value(&lab.call(isolate, "run", Value::from(1000))),
        Value::from(1000)
    );
    collect();
    let waiting = lab.call_of("wait", Value::Null);
    let waiting = lab.send(isolate, waiting);
    lab.run();
    collect();
    lab.clock.pass(Duration::from_millis(10));
    let report = lab.report_now(waiting);
    assert_eq!(value(&report), Value::from(1000));
    lab.end(isolate);
    collect();
    lab.assert_empty();
}
