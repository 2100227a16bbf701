//! What a worker finds around it: the globals, what they do, and what they keep from it.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, REFUSED, logs, thrown, thrown_text, value, worker};
use coracle_isolate::{Clock, Outcome, Report};
use coracle_value::Value;
use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

const WALK: &str = include_str!("walk.js");

fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name]
        .iter()
        .collect()
}

/// Compares a list with the file that holds it. With `CORACLE_GOLDEN_REWRITE` set, the file is rewritten.
fn assert_golden(name: &str, list: &BTreeSet<String>) {
    let path = golden(name);
    if std::env::var_os("CORACLE_GOLDEN_REWRITE").is_some() {
        let lines: String = list.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, lines).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let expected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let added: Vec<&String> = list.difference(&expected).collect();
    assert!(added.is_empty(), "not in {name}: {added:#?}");
    // An older engine may have less.
    if std::env::var_os("CORACLE_TEST_GUEST").is_none() {
        let missing: Vec<&String> = expected.difference(list).collect();
        assert!(missing.is_empty(), "only in {name}: {missing:#?}");
    }
}

fn list(value: &Value, key: &str) -> BTreeSet<String> {
    let list = value.get(key).unwrap().as_array().unwrap();
    list.iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn everything_that_can_be_reached_is_on_the_list_and_nothing_of_it_makes_code_from_strings() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[("walk.js", WALK)]));
    let found = value(&bench.call(isolate, "run", &[Value::Undefined]));
    assert_golden("globals.txt", &list(&found, "globals"));
    assert_golden("functions.txt", &list(&found, "functions"));
    assert_eq!(found.get("pwned"), Some(&Value::Undefined));
    // What calling them brought to light is what each call makes anew.
    for line in list(&found, "more") {
        let is_bound = line.contains(" bound ");
        let is_method = [
            ".next next",
            ".return return",
            ".resolve ",
            ".reject ",
            ".revoke ",
        ]
        .iter()
        .any(|end| line.ends_with(end));
        assert!(is_bound || is_method, "{line}");
    }
    // Functions that show their source are the walk's own.
    for text in list(&found, "texts") {
        assert!(WALK.contains(&text), "{text}");
    }
}

#[test]
fn code_from_strings_is_refused_on_every_way() {
    let bench = Bench::new();
    for attempt in [
        "eval('1')",
        "(0, eval)('1')",
        "globalThis.eval('1')",
        "Reflect.apply(eval, undefined, ['1'])",
        "Function('return 1')",
        "new Function('return 1')",
        "Function.prototype.constructor('return 1')",
        "(() => {}).constructor('return 1')",
        "({}).constructor.constructor('return globalThis')()",
        "this.constructor.constructor('return globalThis')()",
        "(async () => {}).constructor('return 1')",
        "(function* () {}).constructor('yield 1')",
        "(async function* () {}).constructor('yield 1')",
        "new (Object.getPrototypeOf(async () => {}).constructor)('return 1')",
        "Reflect.construct(Function, ['return 1'])",
        "Reflect.construct(Function, ['return 1'], Object)",
        "Function.call(null, 'return 1')",
        "Function.bind(null, 'return 1')()",
        "new (class extends Function {})('return 1')",
        "Array.from(['return 1'], Function)[0]()",
        "Map.constructor('return 1')",
        "ctx.waitUntil.constructor('return 1')",
        "console.log.constructor('return 1')",
    ] {
        let report = bench.run(&format!("return {attempt};"));
        let expected = "EvalError: Code generation from strings disallowed for this context";
        assert_eq!(thrown_text(&report), expected, "{attempt}");
        assert_eq!(thrown(&report).module, "main.js", "{attempt}");
    }
    for check in [
        "(() => 1) instanceof Function",
        "(async () => 1) instanceof Function",
        "Function.prototype === Object.getPrototypeOf(() => 1)",
        "Function.length === 1 && Function.name === 'Function' && eval.length === 1",
        "Object.getPrototypeOf(Object.getPrototypeOf(async () => 1).constructor) === Function",
        "String(Function) === 'function Function() {\\n    [native code]\\n}'",
        "String(setTimeout).includes('[native code]')",
        "(() => 1).fileName === undefined && setTimeout.fileName === undefined",
    ] {
        assert_eq!(
            bench.eval(&format!("return {check};")),
            true.into(),
            "{check}"
        );
    }
}

/// As in Workers: module scope makes code of text, and what it has kept to do so is refused like everything else in a call.
#[test]
fn code_from_strings_is_made_in_module_scope_and_nowhere_else() {
    let bench = Bench::new();
    let source = "
        const kept = eval, Kept = Function;
        const attempt = (make) => { try { return make(); } catch (error) { return error.name; } };
        const local = 1;
        const made = [
          eval('local + 1'), (0, eval)('typeof local'), new Function('a', 'return a + 3')(1), Function('return this')() === globalThis,
          await (async () => (await null, eval('5')))(),
        ];
        const later = new Function('return eval(\"1\")');
        export default { run() {
          return [...made, attempt(() => kept('1')), attempt(() => eval('1')), attempt(() => new Kept('')), attempt(() => eval(1)), attempt(later)];
        } };
    ";
    let report = bench.run_module(source, Value::Null);
    let refused = || Value::from("EvalError");
    assert_eq!(
        value(&report),
        Value::Array(vec![
            2.into(),
            "undefined".into(),
            4.into(),
            true.into(),
            5.into(),
            refused(),
            refused(),
            refused(),
            refused(),
            refused(),
        ])
    );
}

#[test]
fn call_sites_tell_places_and_give_nothing_away() {
    let bench = Bench::new();
    let source = "
        const names = new Set();
        export default { async run() {
          Error.prepareStackTrace = (_error, sites) => sites;
          let found = 0;
          const look = () => { for (const site of new Error().stack) {
            for (let it = site; it !== null; it = Object.getPrototypeOf(it)) for (const key of Reflect.ownKeys(it)) names.add(String(key));
            for (const method of ['getThis', 'getFunction', 'getEvalOrigin', 'getTypeName']) if (typeof site[method] === 'function') found++;
            found += [site.getFileName(), site.getFunctionName(), site.getLineNumber(), site.getColumnNumber(), site.isNative()]
              .filter((it) => typeof it === 'object' && it !== null || typeof it === 'function').length;
          } };
          look(); [1, 2].sort(look); console.log(new Proxy({}, { ownKeys() { look(); return []; } })); await null; look();
          setTimeout(look, 0); await new Promise((go) => setTimeout(go, 2)); structuredClone({ get x() { look(); return 1; } });
          Error.prepareStackTrace = undefined;
          return [found, names.has('getFunction'), names.has('getFileName')];
        } };";
    assert_eq!(
        value(&bench.run_module(source, Value::Null)),
        Value::Array(vec![0.into(), false.into(), true.into()])
    );
}

#[test]
fn the_engines_own_globals_and_other_runtimes_are_not_there() {
    let bench = Bench::new();
    for name in [
        "process",
        "require",
        "module",
        "exports",
        "std",
        "os",
        "bjson",
        "scriptArgs",
        "print",
        "__loadScript",
        "Javy",
        "Deno",
        "Bun",
        "Buffer",
        "global",
        "window",
        "host",
        "hooks",
        "Atomics",
        "SharedArrayBuffer",
        "WebAssembly",
        "Worker",
        "XMLHttpRequest",
        "gc",
        "Intl",
        "importScripts",
        "load",
        "readFile",
        "__dirname",
        "__filename",
        "inspect",
        "waiting",
        "timerOperations",
    ] {
        let body = format!("return typeof {name} + ('{name}' in globalThis);");
        assert_eq!(bench.eval(&body), "undefinedfalse".into(), "{name}");
    }
    // `this` of a module is nothing, and sloppy functions see the global object.
    assert_eq!(
        bench.eval(
            "return (() => { 'use strict'; return this === undefined })() || typeof this.run;"
        ),
        "function".into()
    );
}

#[test]
fn inputs_that_broke_engines_get_the_languages_answer_here() {
    let bench = Bench::new();
    for (body, expected) in [
        // E03: a comparator that resizes what is being sorted.
        (
            "const b = new ArrayBuffer(64, { maxByteLength: 128 }), u = new Uint8Array(b); u.sort((x, y) => { b.resize(4); return x - y; }); return u.length;",
            "4",
        ),
        (
            "const b = new ArrayBuffer(64, { maxByteLength: 128 }), u = new Uint8Array(b); u.fill({ valueOf() { b.resize(0); return 1; } }); return u.length;",
            "0",
        ),
        (
            "const u = new Uint8Array(8); u.set({ length: 8, get 0() { u.buffer.transfer(); return 1; } }); return u.length;",
            "0",
        ),
        // E05: flags decide what is a pattern.
        (
            "try { new RegExp('[', 'v'); } catch (error) { return error.name; }",
            "'SyntaxError'",
        ),
        (
            "try { new RegExp('(?<a>.)'.repeat(100000)); } catch (error) { return error.name; }",
            "'SyntaxError'",
        ),
        // A string has so many characters, and one more is out of range.
        (
            "let text = 'x'.repeat(1 << 20); try { for (;;) text += text; } catch (error) { return [error instanceof RangeError, error.message]; }",
            "[ true, 'Invalid string length' ]",
        ),
        // E07: holes stay holes.
        (
            "const a = [0]; a.length = 245; a.push(2); return [a.length, 100 in a, a[245]];",
            "[ 246, false, 2 ]",
        ),
        // E09: symbols in weak collections and cycles through registries.
        (
            "const m = new WeakMap(), s = Symbol('s'); m.set(s, m); const r = new FinalizationRegistry(() => {}); const o = { r, m }; r.register(o, m, o); return m.get(s) === m;",
            "true",
        ),
        // E11: what a trap may say.
        (
            "try { Reflect.ownKeys(new Proxy({}, { ownKeys: () => 1 })); } catch (error) { return error.name; }",
            "'TypeError'",
        ),
        (
            "try { Object.keys(new Proxy(Object.freeze({ a: 1 }), { ownKeys: () => [] })); } catch (error) { return error.name; }",
            "'TypeError'",
        ),
        (
            "try { new Proxy(Object.freeze({ a: 1 }), { get: () => 2 }).a; } catch (error) { return error.name; }",
            "'TypeError'",
        ),
        // E13 and E15: dates and numbers know no locale.
        (
            "return [Date.parse('1065873600'), new Date(0).getTimezoneOffset()];",
            "[ NaN, 0 ]",
        ),
        (
            "return typeof (1234.5).toLocaleString('de-DE');",
            "'string'",
        ),
        // X07: prototypes are the worker's own affair.
        (
            "Object.setPrototypeOf(Promise.resolve(1), null); ({}).__proto__ = null; return 1;",
            "1",
        ),
        // Large and odd, but finite.
        (
            "return [...'ab'].length + Array.from({ length: 1e5 }).length;",
            "100002",
        ),
        (
            "return 'x'.repeat(1 << 14).replace(/x/g, 'yy').length;",
            "32768",
        ),
        (
            "try { new Array(-1); } catch (error) { return error.name; }",
            "'RangeError'",
        ),
        (
            "try { 'x'.repeat(2 ** 30); } catch (error) { return error.name; }",
            "'RangeError'",
        ),
        (
            "try { new ArrayBuffer(2 ** 53); } catch (error) { return error.name; }",
            "'RangeError'",
        ),
    ] {
        let report = bench.run(&format!("console.log(await (async () => {{ {body} }})());"));
        let shown = expected.trim_matches('\'');
        assert_eq!(
            logs(&report),
            [format!("Log: {shown}")],
            "{body}: {:?}",
            report.outcome
        );
    }
}

#[test]
fn twice_as_many_timers_cost_twice_as_much() {
    let fuel = |count: u32| {
        let body = format!("for (let i = 0; i < {count}; i++) setTimeout(() => {{}}, 1e6);");
        Bench::new().run(&body).usage.fuel_run
    };
    // The second takes more than a slice, after which its result is reported before its entry is over.
    let (once, twice) = (fuel(2_000), fuel(4_000));
    assert!(
        once < twice && twice < once * 5 / 2,
        "{once} fuel for 2,000, {twice} for 4,000"
    );
}

#[test]
fn timers_run_in_order_with_their_arguments() {
    let bench = Bench::new();
    let body = "
        const seen = [];
        const note = (...args) => seen.push(args.join());
        setTimeout(note, 3, 'late'); setTimeout(note, 1, 'a', 1, null); setTimeout(note, 1, 'b'); setTimeout(note, 0, 'now');
        setTimeout(note); setTimeout(note, undefined, 'undefined'); setTimeout(note, -5, 'negative'); setTimeout(note, NaN, 'NaN');
        setTimeout(note, '2', 'text'); setTimeout(note, { valueOf() { return 2; } }, 'object'); setTimeout(note, 2 ** 40, 'overflow');
        setTimeout(() => { note('outer'); setTimeout(note, 0, 'inner'); queueMicrotask(() => note('microtask')); }, 1);
        note('sync'); queueMicrotask(() => note('job'));
        await new Promise((go) => setTimeout(go, 20));
        return seen;";
    let expected = [
        "sync",
        "job",
        "now",
        "",
        "undefined",
        "negative",
        "NaN",
        "overflow",
        "a,1,",
        "b",
        "outer",
        "microtask",
        "inner",
        "text",
        "object",
        "late",
    ];
    let seen = bench.eval(body);
    let seen: Vec<&str> = seen
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let index = |name: &str| {
        seen.iter()
            .position(|it| *it == name)
            .unwrap_or_else(|| panic!("{name} in {seen:?}"))
    };
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    // Those for the same time keep their order; a later time is later.
    for pair in [
        ["sync", "job"],
        ["job", "now"],
        ["now", ""],
        ["", "undefined"],
        ["undefined", "negative"],
        ["negative", "NaN"],
        ["NaN", "overflow"],
        ["now", "a,1,"],
        ["a,1,", "b"],
        ["b", "outer"],
        ["outer", "microtask"],
        ["microtask", "inner"],
        ["b", "text"],
        ["text", "object"],
        ["object", "late"],
    ] {
        assert!(index(pair[0]) < index(pair[1]), "{pair:?} in {seen:?}");
    }
}

#[test]
fn intervals_repeat_until_they_are_cleared() {
    let bench = Bench::new();
    assert_eq!(
        bench.eval(
            "let n = 0; return await new Promise((go) => { const id = setInterval((by) => { n += by; if (n === 6) { clearInterval(id); go(n); } }, 1, 2); });"
        ),
        6.into()
    );
    assert_eq!(
        bench.eval(
            "let n = 0; const id = setInterval(() => n++, 1), other = setTimeout(() => n++, 1); clearTimeout(id); clearInterval(other);
             await new Promise((go) => setTimeout(go, 5)); return n;"
        ),
        0.into()
    );
    assert_eq!(
        bench.eval(
            "const first = setTimeout(() => {}, 1), second = setTimeout(() => {}, 1);
             clearTimeout(first); clearTimeout(first); clearTimeout(undefined); clearTimeout({}); clearTimeout('x'); clearTimeout(1e9); clearTimeout();
             const third = setTimeout(() => {}, 1); clearTimeout(second); clearTimeout(third);
             return [typeof first, second - first, third - second];"
        ),
        Value::Array(vec!["number".into(), 1.into(), 1.into()])
    );
    for (call, text) in [
        (
            "setTimeout('code', 1)",
            "TypeError: Failed to execute 'setTimeout': parameter 1 is not of type 'Function'.",
        ),
        (
            "setInterval()",
            "TypeError: Failed to execute 'setInterval': parameter 1 is not of type 'Function'.",
        ),
        (
            "setTimeout(() => 1, 5n)",
            "TypeError: bigint argument with unary +",
        ),
        (
            "setTimeout(() => 1, { valueOf() { throw new RangeError('no'); } })",
            "RangeError: no",
        ),
    ] {
        assert_eq!(thrown_text(&bench.run(call)), text, "{call}");
    }
}

#[test]
fn what_an_invocation_leaves_waiting_is_forgotten_by_the_guest_too() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[(
        "main.js",
        "const alive = []; export default {
           leave(_) { const big = { bytes: new Uint8Array(1 << 20) }; alive.push(new WeakRef(big)); setTimeout(() => big, 60000); },
           count(_) { return alive.filter((ref) => ref.deref() !== undefined).length; } };",
    )]));
    for _ in 0..200 {
        // 200 MiB in all; the isolate may have 64.
        assert_eq!(
            value(&bench.call(isolate, "leave", &[Value::Null])),
            Value::Undefined
        );
    }
    assert_eq!(
        value(&bench.call(isolate, "count", &[Value::Null])),
        0.into()
    );
}

#[test]
fn module_scope_may_not_wait_ask_or_be_random() {
    let bench = Bench::new();
    let text = "Error: Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), setting a \
                timeout, and generating random values are not allowed within global scope. To fix this error, perform this \
                operation within a handler.";
    for call in [
        "setTimeout(() => {}, 1)",
        "setInterval(() => {}, 1)",
        "crypto.getRandomValues(new Uint8Array(1))",
        "crypto.randomUUID()",
        "await fetch('https://example.com/')",
        "await Promise.resolve().then(() => setTimeout(() => {}))",
    ] {
        let report = bench.run_module(
            &format!("{call}; export default {{ run() {{}} }};"),
            Value::Null,
        );
        assert_eq!(thrown_text(&report), text, "{call}");
        assert!(thrown(&report).during_load);
    }
    // A fetch that nobody looks at, Math.random and the clock do not keep a worker from starting.
    let source = "const refused = fetch('https://example.com/').catch((error) => error.message); const n = Math.random(); const now = Date.now();
        export default { async run() { return [(await refused).startsWith('Disallowed'), n >= 0 && n < 1, typeof now]; } };";
    let report = bench.run_module(source, Value::Null);
    assert_eq!(
        value(&report),
        Value::Array(vec![true.into(), true.into(), "number".into()])
    );
    assert_eq!(report.logs, []);
    let unheard = bench.run_module(
        "fetch('https://example.com/'); export default { run() { return 1; } };",
        Value::Null,
    );
    assert_eq!(value(&unheard), 1.into());
    assert_eq!(unheard.logs.len(), 1);
}

#[test]
fn the_clock_stands_still_while_code_runs_and_goes_on_when_it_waits() {
    let bench = Bench::new();
    let body = "
        const start = Date.now(), precise = performance.now();
        let spins = 0;
        for (let i = 0; i < 3e5; i++) { spins += i; if (Date.now() !== start || performance.now() !== precise) return 'moved'; }
        await null; await null;
        if (Date.now() !== start || new Date().getTime() !== start) return 'moved in a microtask';
        await new Promise((go) => setTimeout(go, 5));
        return [Date.now() - start >= 4, performance.now() - precise >= 4, start > 1.7e12, Number.isInteger(start)];";
    assert_eq!(bench.eval(body), Value::array([true; 4]));
}

/// A clock that a test sets.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn epoch_ms(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn dates_are_those_of_the_hosts_clock_in_utc() {
    let clock = Arc::new(SetClock(AtomicU64::new(1_000_000_000_000)));
    let bench = Bench::with_clock(clock.clone(), |_| {});
    let isolate = bench.isolate(worker(&[(
        "main.js",
        "const loaded = Date.now(); export default { run(_) { return [loaded, Date.now(), new Date().toISOString(), new Date().getTimezoneOffset(), performance.now(), String(new Date(0))]; } };",
    )]));
    let expected = |loaded: f64, now: f64, text: &str| {
        let epoch = "Thu Jan 01 1970 00:00:00 GMT+0000";
        Value::Array(vec![
            loaded.into(),
            now.into(),
            text.into(),
            0.into(),
            now.into(),
            epoch.into(),
        ])
    };
    let run = || value(&bench.call(isolate, "run", &[Value::Null]));
    assert_eq!(run(), expected(1e12, 1e12, "2001-09-09T01:46:40.000Z"));
    clock.0.store(1_700_000_000_123, Ordering::Relaxed);
    assert_eq!(
        run(),
        expected(1e12, 1_700_000_000_123.0, "2023-11-14T22:13:20.123Z")
    );
}

#[test]
fn randomness_differs_from_isolate_to_isolate() {
    let bench = Bench::new();
    let body = "return [Math.random(), Math.random(), [...crypto.getRandomValues(new Uint8Array(16))].join(), crypto.randomUUID()];";
    let mut seen = BTreeSet::new();
    for _ in 0..8 {
        for item in bench.eval(body).as_array().unwrap() {
            assert!(seen.insert(format!("{item:?}")), "{item:?} twice");
        }
    }
    let spread = "const n = Array.from({ length: 1000 }, Math.random); return [n.every((x) => x >= 0 && x < 1), n.filter((x) => x < 0.5).length > 400, new Set(n).size];";
    assert_eq!(
        bench.eval(spread),
        Value::Array(vec![true.into(), true.into(), 1000.into()])
    );
}

#[test]
fn crypto_fills_integer_arrays_and_makes_uuids() {
    let bench = Bench::new();
    for check in [
        "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
        "(() => { const a = new Uint32Array(8); return crypto.getRandomValues(a) === a && a.some((n) => n !== 0) })()",
        "(() => { const b = new ArrayBuffer(64); crypto.getRandomValues(new Uint8Array(b, 16, 32)); const u = new Uint8Array(b);
           return u.subarray(0, 16).every((n) => n === 0) && u.subarray(48).every((n) => n === 0) && u.subarray(16, 48).some((n) => n !== 0) })()",
        "crypto.getRandomValues(new BigInt64Array(2)).length === 2",
        "crypto.getRandomValues(new Uint8Array(0)).length === 0",
        "crypto.getRandomValues(new Uint8Array(65536)).some((n) => n !== 0)",
        "(() => { const b = new ArrayBuffer(8, { maxByteLength: 64 }); const u = new Uint8Array(b); b.resize(40); crypto.getRandomValues(u); return u.length === 40 && u.subarray(20).some((n) => n !== 0) })()",
        "Object.prototype.toString.call(crypto) === '[object Crypto]'",
    ] {
        assert_eq!(bench.eval(&format!("return {check};")), true.into(), "{check}");
    }
    for (call, name) in [
        (
            "crypto.getRandomValues(new Uint8Array(65537))",
            "QuotaExceededError",
        ),
        (
            "crypto.getRandomValues(new Float32Array(1))",
            "TypeMismatchError",
        ),
        (
            "crypto.getRandomValues(new DataView(new ArrayBuffer(1)))",
            "TypeMismatchError",
        ),
        ("crypto.getRandomValues([1])", "TypeMismatchError"),
        ("crypto.getRandomValues()", "TypeMismatchError"),
        (
            "crypto.getRandomValues(new Proxy(new Uint8Array(1), {}))",
            "TypeMismatchError",
        ),
    ] {
        let error = thrown(&bench.run(call));
        assert_eq!(error.name, name, "{call}");
        assert_eq!(error.module, "main.js", "{call}");
    }
}

#[test]
fn fetch_is_refused_with_the_hosts_text() {
    let bench = Bench::new();
    let refused = |argument: &str| bench.run(&format!("await fetch({argument});"));
    for argument in [
        "'https://example.com/'",
        "{ toString() { return 'https://example.com/'; } }",
        "new URL('https://example.com/')",
        "new Request('https://example.com/')",
    ] {
        let report = refused(argument);
        assert_eq!(
            thrown_text(&report),
            format!("Error: {REFUSED}"),
            "{argument}"
        );
        assert_eq!(report.usage.subrequests, 1);
    }
    assert_eq!(
        thrown_text(&refused("{ toString() { throw new RangeError('no'); } }")),
        "RangeError: no"
    );
    assert_eq!(
        thrown_text(&refused("Symbol()")),
        "TypeError: A symbol can't be converted to a string."
    );
    assert_eq!(
        thrown_text(&refused("'/relative'")),
        "TypeError: Invalid URL: /relative"
    );
    let body = "const p = fetch('https://a/'); return [p instanceof Promise, await p.catch((error) => error instanceof Error), (await Promise.allSettled([fetch('https://b/'), fetch('https://c/')])).length];";
    assert_eq!(
        bench.eval(body),
        Value::Array(vec![true.into(), true.into(), 2.into()])
    );
}

#[test]
fn microtasks_run_before_anything_else() {
    let bench = Bench::new();
    let body = "const seen = []; queueMicrotask(() => { seen.push(1); queueMicrotask(() => seen.push(3)); }); Promise.resolve().then(() => seen.push(2));
        await new Promise((go) => setTimeout(go, 0)); return seen;";
    assert_eq!(bench.eval(body), Value::array([1, 2, 3]));
    assert_eq!(
        thrown(&bench.run("queueMicrotask('code');")).name,
        "TypeError"
    );
}

/// Runs `patches` in module scope of a worker with handlers of many kinds, and checks that they answer as ever.
fn assert_survives(bench: &Bench, patches: &str) {
    let source = format!(
        "import {{ WorkerEntrypoint }} from 'cloudflare:workers';
         const {{ apply }} = Reflect, RealPromise = Promise, realTimeout = setTimeout;
         {patches}
         export default {{
           sync: (x) => x,
           async: async (x) => x,
           object: async (x) => ({{ x }}),
           nested: {{ method: (x) => x }},
           timer: (x) => new RealPromise((go) => realTimeout(go, 0, x)),
           throws: (x) => {{ throw new RangeError('m'); }},
           rejects: async (x) => {{ throw new RangeError('m'); }},
           logs: (x) => {{ console.log('text', {{ a: [1] }}); return x; }},
         }};
         export class Class extends WorkerEntrypoint {{ method(x) {{ return x; }} async later(x) {{ return x; }} }}"
    );
    let isolate = bench.isolate(worker(&[("main.js", &source)]));
    let call = |entrypoint: &str, path: &str| -> Report {
        let mut call = bench.call_of("", &[7.into()]);
        call.entrypoint = entrypoint.into();
        call.path = path.split('.').map(str::to_owned).collect();
        bench.report(bench.send(isolate, call))
    };
    for (entrypoint, path) in [
        ("default", "sync"),
        ("default", "async"),
        ("default", "nested.method"),
        ("default", "timer"),
        ("default", "logs"),
        ("Class", "method"),
        ("Class", "later"),
    ] {
        let report = call(entrypoint, path);
        assert!(
            matches!(report.outcome, Outcome::Value(_)),
            "{path} with {patches}: {:?}",
            report.outcome
        );
        assert_eq!(value(&report), 7.into(), "{path} with {patches}");
    }
    assert_eq!(
        value(&call("default", "object")),
        Value::object([("x", 7)]),
        "{patches}"
    );
    for path in ["throws", "rejects"] {
        let report = call("default", path);
        assert_eq!(thrown(&report).message, "m", "{path} with {patches}");
    }
    assert_eq!(
        logs(&call("default", "logs")),
        ["Log: text { a: [ 1 ] }"],
        "{patches}"
    );
}

#[test]
fn whatever_a_worker_does_to_the_built_ins_its_results_arrive() {
    let bench = Bench::new();
    assert_survives(&bench, "");
    for patches in [
        "Promise.prototype.then = function () { throw 1; };",
        "Promise.prototype.then = () => {}; Promise.prototype.catch = () => {}; Promise.prototype.finally = () => {};",
        "Object.defineProperty(Promise.prototype, 'constructor', { get() { return function () { throw 1; }; } });",
        "Object.defineProperty(Promise.prototype, 'constructor', { value: 5 });",
        "Promise.prototype.constructor = class { constructor(executor) { executor(() => {}, () => {}); } }; Promise.prototype.then = () => {};",
        "delete Promise.prototype.then; delete Promise.prototype.constructor; Promise.resolve = Promise.reject = () => { throw 1; };",
        "Object.defineProperty(Promise, Symbol.species, { get() { throw 1; } }); globalThis.Promise = undefined;",
        "for (const name of Object.getOwnPropertyNames(Array.prototype)) if (name !== 'length') Array.prototype[name] = () => { throw 1; }; Array.prototype[Symbol.iterator] = () => { throw 1; };",
        "for (const name of Object.getOwnPropertyNames(String.prototype)) if (name !== 'length') String.prototype[name] = () => { throw 1; };",
        "for (const name of Object.getOwnPropertyNames(Function.prototype)) try { Function.prototype[name] = () => { throw 1; }; } catch {}",
        "for (const name of Object.getOwnPropertyNames(Reflect)) Reflect[name] = () => { throw 1; }; for (const name of Object.getOwnPropertyNames(Object)) try { Object[name] = () => { throw 1; }; } catch {}",
        "for (const type of [Map, Set, Error, RegExp, Number, Symbol, Date]) for (const name of Object.getOwnPropertyNames(type.prototype)) try { type.prototype[name] = () => { throw 1; }; } catch {}",
        "for (const name of Object.getOwnPropertyNames(globalThis)) if (!['Infinity', 'NaN', 'undefined', 'console', 'RangeError', 'globalThis'].includes(name)) try { globalThis[name] = () => { throw 1; }; } catch {}",
        "Object.setPrototypeOf(globalThis, null); globalThis.globalThis = undefined;",
        "for (const name of ['value', 'get', 'set', 'writable', 'enumerable', 'configurable', 'x', '0', '1', 'a', 'reply', 'path', 'depth', 'run', 'timer', 'length', 'stack', 'props', 'waitUntil'])
           Object.defineProperty(Object.prototype, name, { __proto__: null, get() { return undefined; }, set() { throw 1; }, configurable: true });",
        "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Promise.prototype); Object.freeze(Function.prototype);",
        "JSON.stringify = JSON.parse = Math.floor = Date.now = () => { throw 1; };",
        "Error.prepareStackTrace = () => { throw 1; }; Error.stackTraceLimit = 0; Error.captureStackTrace = undefined;",
    ] {
        assert_survives(&bench, patches);
    }
}

#[test]
fn patched_built_ins_are_handed_nothing_of_ours() {
    let bench = Bench::new();
    // Whatever is called or read while the runtime works for a call: by identity, it must be known to the worker.
    let source = "
        const strangers = [];
        const { apply, ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect;
        const known = new WeakSet(); const isObject = (it) => typeof it === 'object' && it !== null || typeof it === 'function';
        const add = WeakSet.prototype.add.bind(known), has = WeakSet.prototype.has.bind(known);
        const queue = [globalThis, (async () => {}).constructor, Object.getPrototypeOf(Uint8Array), [][Symbol.iterator]().__proto__];
        for (let i = 0; i < queue.length; i++) { const it = queue[i]; if (!isObject(it) || has(it)) continue; add(it);
          for (const key of ownKeys(it)) { const p = getOwnPropertyDescriptor(it, key); queue.push(p.value, p.get, p.set); } queue.push(Object.getPrototypeOf(it)); }
        let on = false; let calls = 0;
        const note = (where, self, args) => { if (!on) return; calls++;
          const all = [self]; for (let i = 0; i < args.length; i++) all[all.length] = args[i];
          for (let i = 0; i < all.length; i++) if (typeof all[i] === 'function' && !has(all[i])) strangers[strangers.length] = where + ' got ' + all[i].name + ' ' + String.prototype.slice.call(Function.prototype.toString.call(all[i]), 0, 60); };
        for (const object of [Promise.prototype, Array.prototype, Function.prototype, Map.prototype, Set.prototype, String.prototype, Object.prototype, Promise, Object, Reflect, JSON, RegExp.prototype, Error.prototype, Number.prototype, Date.prototype, WeakMap.prototype]) {
          for (const key of ownKeys(object)) {
            if (object === Function.prototype && (key === 'toString' || key === Symbol.hasInstance)) continue;
            const p = getOwnPropertyDescriptor(object, key);
            if (typeof p.value !== 'function' || !p.configurable) continue;
            const original = p.value, where = String(key);
            const stand = function (...args) { note(where, this, args); return new.target ? Reflect.construct(original, args, new.target) : apply(original, this, args); };
            add(stand); defineProperty(object, key, { ...p, value: stand });
          }
        }
        for (const name of ['then', 'constructor', 'get', 'set', 'value', 'reply', 'run', 'timer', 'path', 'isPromise', 'finish'])
          if (!Object.hasOwn(Object.prototype, name)) defineProperty(Object.prototype, name, { __proto__: null, configurable: true,
            get() { note('get ' + name, this, []); }, set(value) { note('set ' + name, this, [value]); defineProperty(this, name, { __proto__: null, value, writable: true, configurable: true, enumerable: true }); } });
        export default {
          async run(kind) { on = true; console.log('a %s', { b: [1] }, new Error('m')); setTimeout(() => {}, 0); fetch('https://x/').catch; crypto.randomUUID(); structuredClone({ a: new Map([[1, new Set([2])]]) });
            if (kind === 1) throw new TypeError('m'); return { a: [1, new Map([[1, 2]]), new Error('m', { cause: 1 })] }; },
          report(_) { on = false; return [strangers, calls > 0]; } };";
    let isolate = bench.isolate(worker(&[("main.js", source)]));
    bench.call(isolate, "run", &[0.into()]);
    bench.call(isolate, "run", &[1.into()]);
    let result = value(&bench.call(isolate, "report", &[Value::Null]));
    assert_eq!(result.index(0), Some(&Value::Array(vec![])));
}
