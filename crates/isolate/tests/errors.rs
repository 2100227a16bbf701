//! What workers throw: name, message, place and value, whatever it is that was thrown.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, logs, thrown, worker};
use coracle_isolate::{LogLevel, Report, Thrown};
use coracle_value::{Bounds, Value, decode};

/// Calls `run()` of the first module's default export.
fn run(bench: &Bench, modules: &[(&str, &str)]) -> Report {
    let isolate = bench.isolate(worker(modules));
    bench.call(isolate, "run", &[Value::Undefined])
}

fn place(thrown: &Thrown) -> (&str, u32, u32) {
    (&thrown.module, thrown.line, thrown.column)
}

/// The value that was thrown, if it could be copied.
fn thrown_value(thrown: &Thrown) -> Option<Value> {
    (!thrown.value.is_empty()).then(|| decode(&thrown.value, &Bounds::default()).unwrap())
}

#[test]
fn a_throw_is_reported_with_its_place_and_the_way_there() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import { outer } from './lib/a.js';\nexport default {\n  run() {\n    return outer(1);\n  },\n};\n",
        ),
        (
            "lib/a.js",
            "import inner from './b.js';\nexport function outer(n) {\n  return [n].map((x) => inner(x));\n}\n",
        ),
        (
            "lib/b.js",
            "export default function inner(x) {\n  null.property;\n}\n",
        ),
    ];
    let error = thrown(&run(&bench, &modules));
    assert_eq!(error.name, "TypeError");
    assert_eq!(error.message, "cannot read property 'property' of null");
    assert_eq!(place(&error), ("lib/b.js", 2, 3));
    let stack = "    at inner (lib/b.js:2:3)\n    at <anonymous> (lib/a.js:3:31)\n    at outer (lib/a.js:3:14)\n    at run (main.js:4:12)";
    assert_eq!(error.stack, stack);
    assert!(!error.during_load);
}

#[test]
fn a_throw_in_an_async_function_is_reported_where_it_was_thrown() {
    let bench = Bench::new();
    let source = "const later = async () => {\n  await null;\n  throw new RangeError('late');\n};\nexport default {\n  async run() {\n    await null;\n    await later();\n  },\n};\n";
    let error = thrown(&run(&bench, &[("main.js", source)]));
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "late")
    );
    assert_eq!(place(&error), ("main.js", 3, 13));
    assert_eq!(error.stack, "    at later (main.js:3:13)");
}

#[test]
fn columns_are_counted_in_utf_16_units_from_one() {
    let bench = Bench::new();
    let place_of = |source: &str| {
        let error = thrown(&run(&bench, &[("main.js", source)]));
        (error.line, error.column, error.stack)
    };
    let at = |source: &str| {
        // Where `throwHere` stands, as an editor counts.
        let index = source.find("throwHere(").unwrap();
        let (before, line) = (&source[..index], source[..index].matches('\n').count() + 1);
        let column = before.rsplit('\n').next().unwrap().encode_utf16().count() + 1;
        (line as u32, column as u32)
    };
    for source in [
        "export default { run() { throwHere(); } };",
        "\nexport default { run() { throwHere(); } };",
        "export default { run() { const é = '日本😀'; throwHere(); } };",
        "// 😀😀\nexport default { run() { /* é😀 */ throwHere(); } };",
        "\r\nexport default {\r\n  run() { 'é'; throwHere(); } };",
        "export default { run() { `é\n😀`; throwHere(); } };",
        "export default { run() {\t\tthrowHere(); } };",
        "#!shebang é\nexport default { run() { 'é'; throwHere(); } };",
        "\u{2028}export default { run() { 'é'; throwHere(); } };",
    ] {
        let (line, column, stack) = place_of(source);
        let expected = at(&source.replace('\u{2028}', "\n"));
        assert_eq!((line, column), expected, "{source:?}");
        assert_eq!(stack, format!("    at run (main.js:{line}:{column})"));
    }
}

#[test]
fn a_place_in_a_large_module_costs_no_more_than_one_look_at_it() {
    let bench = Bench::new();
    // One line of a megabyte, not all of it ASCII.
    let filler = "/* é and more of what minifiers leave, which is not much */".repeat(17_000);
    let source = format!(
        "{filler} const throwHere = () => {{ null.x; }}; export default {{ run() {{ for (let i = 0; i < 20; i++) try {{ throwHere(); }} catch (error) {{ error.stack; }} throwHere(); }} }};"
    );
    let report = run(&bench, &[("main.js", &source)]);
    let error = thrown(&report);
    let column = source.find("null.x").unwrap();
    assert_eq!(
        (error.line, error.column as usize),
        (1, source[..column].encode_utf16().count() + 1)
    );
    assert!(
        report.usage.fuel_run < 500_000_000,
        "{}",
        report.usage.fuel_run
    );
}

#[test]
fn a_commonjs_module_has_the_lines_and_columns_of_its_source() {
    let bench = Bench::new();
    let place_of = |cjs: &str| {
        let modules = [
            (
                "main.js",
                "import f from './a.cjs'; export default { run() { f(); } };",
            ),
            ("a.cjs", cjs),
        ];
        let error = thrown(&run(&bench, &modules));
        (
            error.module.clone(),
            error.line,
            error.column,
            error.stack.lines().next().unwrap_or_default().to_owned(),
        )
    };
    let first = place_of("module.exports = () => nope();");
    assert_eq!(
        first,
        (
            "a.cjs".into(),
            1,
            24,
            "    at <anonymous> (a.cjs:1:24)".into()
        )
    );
    let second = place_of("// é\nmodule.exports = () => { 'é😀'; nope(); };");
    assert_eq!((second.1, second.2), (2, 33));
    let at_top = place_of("'é'; nope();");
    assert_eq!((at_top.0.as_str(), at_top.1, at_top.2), ("a.cjs", 1, 6));
    // There are no other frames in it: the engine evaluates it without code in between.
    let modules = [
        ("main.js", "import './a.cjs';"),
        ("a.cjs", "require('./b.cjs');"),
        ("b.cjs", "\n nope();"),
    ];
    let error = thrown(&run(&bench, &modules));
    assert_eq!(
        error.stack,
        "    at <anonymous> (b.cjs:2:2)\n    at <anonymous> (a.cjs:1:1)"
    );
}

#[test]
fn anything_can_be_thrown() {
    let bench = Bench::new();
    let check = |expression: &str, message: &str, value: Option<Value>| {
        let error = thrown(&bench.run(&format!("throw {expression};")));
        assert_eq!(
            (error.name.as_str(), error.message.as_str()),
            ("Error", message),
            "{expression}"
        );
        assert_eq!(thrown_value(&error), value, "{expression}");
        assert_eq!(
            (error.module.as_str(), error.stack.as_str()),
            ("", ""),
            "{expression}"
        );
    };
    check("'text'", "text", Some("text".into()));
    check("''", "", Some("".into()));
    check("5", "5", Some(5.into()));
    check("-0", "-0", Some(Value::from(-0.0)));
    check(
        "10n",
        "10n",
        Some(Value::BigInt(coracle_value::BigInt::new(false, &[10]))),
    );
    check("null", "null", Some(Value::Null));
    check("undefined", "undefined", Some(Value::Undefined));
    check("true", "true", Some(true.into()));
    check("Symbol('s')", "Symbol(s)", None);
    check("({ a: 1 })", "{ a: 1 }", Some(Value::object([("a", 1)])));
    check(
        "[1, 'b']",
        "[ 1, 'b' ]",
        Some(Value::Array(vec![1.into(), "b".into()])),
    );
    check("(() => 1)", "[Function (anonymous)]", None);
    check("class X {}", "[class X]", None);
    check("new (class Odd { x = 1 })()", "Odd { x: 1 }", None);
    check(
        "({ message: 'm', code: 7 })",
        "m",
        Some(Value::object([
            ("message", Value::from("m")),
            ("code", 7.into()),
        ])),
    );
    check(
        "new Map([[1, 2]])",
        "Map(1) { 1 => 2 }",
        Some(Value::Map(vec![(1.into(), 2.into())])),
    );
    check("new Proxy({}, {})", "{}", None);
    check(
        "new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 } })",
        "[inspection failed]",
        None,
    );
    check(
        "'\\ud800'",
        "\u{fffd}\u{fffd}\u{fffd}",
        Some(Value::String(
            coracle_value::Text::from_wtf8(b"\xed\xa0\x80".to_vec()).unwrap(),
        )),
    );
    // What it is called is its own affair.
    let named = thrown(&bench.run("throw { name: 'Custom', message: 'm' };"));
    assert_eq!(
        (named.name.as_str(), named.message.as_str()),
        ("Custom", "m")
    );
}

#[test]
fn errors_of_the_workers_own_classes_keep_name_and_fields() {
    let bench = Bench::new();
    let error = thrown(&bench.run(
        "class HttpError extends Error {
           constructor(status, options) { super(`status ${status}`, options); this.name = 'HttpError'; this.status = status; }
           method() {}
         }
         throw new HttpError(404, { cause: new TypeError('why') });",
    ));
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("HttpError", "status 404")
    );
    // Where it was made, not where its constructor is.
    assert_eq!((error.module.as_str(), error.line), ("main.js", 5));
    let Some(Value::Error(copy)) = thrown_value(&error) else {
        panic!("{error:?}");
    };
    assert_eq!(
        (copy.name.as_str(), copy.message.as_str()),
        (Some("HttpError"), Some("status 404"))
    );
    assert_eq!(copy.props, [("status".into(), 404.into())]);
    assert_eq!(
        copy.cause.as_ref().unwrap().as_error().unwrap().message,
        "why"
    );
    let stack = copy.stack.as_ref().unwrap().as_str().unwrap();
    assert!(
        stack.starts_with("HttpError: status 404\n    at run (main.js:5:"),
        "{stack}"
    );
    assert!(!stack.contains("coracle"), "{stack}");
    // Constructors that nobody wrote, and functions that make errors.
    let made = "class A extends Error {} class B extends A {}\nconst make = () => new B('m');\nthrow make();";
    let error = thrown(&bench.run(made));
    assert_eq!(
        (error.module.as_str(), error.line, error.column),
        ("main.js", 2, 24)
    );
    assert_eq!(
        error.stack,
        "    at make (main.js:2:24)\n    at run (main.js:3:7)"
    );
    // A class that names itself by a getter.
    let error = thrown(&bench.run("throw new (class extends Error { get name() { return 'Getter' } get message() { return 'gotten' } })();"));
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("Getter", "gotten")
    );
}

#[test]
fn getters_and_properties_of_an_error_cannot_keep_it_from_being_reported() {
    let bench = Bench::new();
    let check = |setup: &str, name: &str, message: &str| {
        let error = thrown(&bench.run(&format!(
            "const error = new RangeError('m');\n{setup};\nthrow error;"
        )));
        assert_eq!(
            (error.name.as_str(), error.message.as_str()),
            (name, message),
            "{setup}"
        );
        assert_eq!(place(&error), ("main.js", 1, 63), "{setup}");
        assert_eq!(error.stack, "    at run (main.js:1:63)", "{setup}");
        error
    };
    check("error.name = Symbol()", "Error", "m");
    check("error.name = { toString() { throw 1 } }", "Error", "m");
    check(
        "error.message = 5",
        "RangeError",
        "RangeError\n    at run (main.js:1:63)",
    );
    check(
        "Object.defineProperty(error, 'name', { get() { throw error } })",
        "Error",
        "m",
    );
    check(
        "Object.defineProperty(error, 'stack', { get() { throw error } })",
        "RangeError",
        "m",
    );
    check(
        "error.stack = 'forged\\n    at evil (secret.js:1:1)\\n    at fake (main.js:9:9)'",
        "RangeError",
        "m",
    );
    check(
        "Object.defineProperty(error, 'stack', { value: 5 })",
        "RangeError",
        "m",
    );
    check("delete error.message", "RangeError", "");
    check("Object.setPrototypeOf(error, null)", "Error", "m");
    check("Object.freeze(error)", "RangeError", "m");
    check(
        "Object.defineProperty(Error.prototype, 'name', { get() { throw 1 } })",
        "RangeError",
        "m",
    );
    check(
        "Error.prototype.toString = () => { throw 1 }",
        "RangeError",
        "m",
    );
    check(
        "Object.defineProperty(Error.prototype, 'stack', { get() { throw 1 } })",
        "RangeError",
        "m",
    );
    // Its fields may fail; then it has no copy, but is reported.
    let error = check(
        "Object.defineProperty(error, 'x', { get() { throw 1 }, enumerable: true })",
        "RangeError",
        "m",
    );
    assert_eq!(thrown_value(&error), None);
    let error = check("error.f = { deep: Symbol() }", "RangeError", "m");
    assert_eq!(thrown_value(&error), None);
    let error = check("error.self = error", "RangeError", "m");
    assert!(thrown_value(&error).is_some());
    let error = check("error.big = 'x'.repeat(300 * 1024)", "RangeError", "m");
    assert_eq!(thrown_value(&error), None);
}

#[test]
fn what_prepares_stacks_prepares_nothing_for_us() {
    let bench = Bench::new();
    for prepare in [
        "() => 5",
        "() => 'forged\\n    at evil (main.js:9:9)'",
        "() => { throw new Error('inside') }",
        "(_, sites) => sites",
        "(_, sites) => sites.map((site) => String(site)).join()",
    ] {
        let body = format!("Error.prepareStackTrace = {prepare}; throw new RangeError('m');");
        let error = thrown(&bench.run(&body));
        assert_eq!(
            (error.name.as_str(), error.message.as_str()),
            ("RangeError", "m"),
            "{prepare}"
        );
    }
    let prepared = "Error.prepareStackTrace = (error, sites) => `${error.message} from ${sites[0].getFunctionName()}`; return new Error('m').stack;";
    assert_eq!(bench.eval(prepared), "m from run".into());
    let limit = "Error.stackTraceLimit = 0; throw new RangeError('m');";
    let error = thrown(&bench.run(limit));
    assert_eq!((error.message.as_str(), error.stack.as_str()), ("m", ""));
    let error = thrown(
        &bench.run("Error.stackTraceLimit = { valueOf() { throw 1 } }; throw new RangeError('m');"),
    );
    assert_eq!(error.message, "m");
}

#[test]
fn texts_are_cut_where_they_are_too_long() {
    let bench = Bench::new();
    let error = thrown(&bench.run("throw new Error('é'.repeat(100_000));"));
    assert_eq!(error.message, "é".repeat(8 * 1024));
    let error =
        thrown(&bench.run("throw Object.assign(new Error('m'), { name: 'n'.repeat(100_000) });"));
    assert_eq!(error.name.len(), 16 * 1024);
    let error = thrown(&bench.run("throw Array.from({ length: 10_000 }, (_, i) => 'item ' + i);"));
    assert!(error.message.len() <= 16 * 1024);
}

#[test]
fn a_stack_shows_the_workers_own_modules_and_nothing_else() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import './a (b).js'; import './c:1:2.js'; import './d e.js';
             export default { run() {
               const stacks = [];
               stacks.push(new Error('m').stack);
               console.log(new Proxy({}, { ownKeys() { stacks.push(new Error('m').stack); return []; } }));
               [3, 1].sort(() => { stacks.push(new Error('m').stack); return 0; });
               ({ 'f (main.js:9:9)'() { stacks.push(new Error('m').stack); } })['f (main.js:9:9)']();
               const holder = {}; Error.captureStackTrace(holder); stacks.push(holder.stack);
               try { setTimeout('code'); } catch (error) { stacks.push(error.stack); }
               try { structuredClone(() => 1); } catch (error) { stacks.push(error.stack); }
               stacks.push(globalThis.paren(), globalThis.colon(), globalThis.space());
               return stacks;
             } };",
        ),
        ("a (b).js", "globalThis.paren = () => new Error('m').stack;"),
        ("c:1:2.js", "globalThis.colon = () => new Error('m').stack;"),
        ("d e.js", "globalThis.space = () => new Error('m').stack;"),
    ];
    let stacks = crate::support::value(&run(&bench, &modules));
    let stacks: Vec<&str> = stacks
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| stack.as_str().unwrap())
        .collect();
    assert_eq!(stacks.len(), 10);
    for stack in &stacks {
        for line in stack.lines().filter(|line| line.starts_with("    at ")) {
            let known = ["main.js", "a (b).js", "c:1:2.js", "d e.js"]
                .iter()
                .any(|module| line.contains(module));
            assert!(known || line.ends_with("(native)"), "{line} in {stack}");
        }
        assert!(
            !stack.contains("coracle") && !stack.contains(".rs") && !stack.contains("wasm"),
            "{stack}"
        );
    }
    assert_eq!(stacks[0], "Error: m\n    at run (main.js:4:32)");
    assert_eq!(
        stacks[1],
        "Error: m\n    at ownKeys (main.js:5:72)\n    at run (main.js:5:32)"
    );
    assert!(
        stacks[7].starts_with("Error: m\n    at <anonymous> (a (b).js:1:"),
        "{}",
        stacks[7]
    );
    // And so do the places of what is thrown from there.
    for (name, module) in [
        ("paren", "a (b).js"),
        ("colon", "c:1:2.js"),
        ("space", "d e.js"),
    ] {
        let main = format!("import './{module}'; export default {{ run() {{ {name}(); }} }};");
        let body = format!("globalThis.{name} = () => {{ throw new Error('m'); }};");
        let error = thrown(&run(&bench, &[("main.js", &main), (module, &body)]));
        assert_eq!((error.module.as_str(), error.line), (module, 1));
        assert_eq!(error.stack.lines().count(), 2, "{}", error.stack);
    }
}

#[test]
fn what_nobody_catches_is_on_the_console() {
    let bench = Bench::new();
    // E16
    let report = bench.run("(async () => { adfasdfsa })();\nreturn 1;");
    assert_eq!(crate::support::value(&report), 1.into());
    assert_eq!(
        logs(&report),
        [
            "Error: Uncaught (in promise) ReferenceError: adfasdfsa is not defined\n    at <anonymous> (main.js:1:60)\n    at run (main.js:1:70)"
        ]
    );
    assert_eq!(report.logs[0].level, LogLevel::Error);

    let quiet = bench.run(
        "const p = Promise.reject(1); await null; await null; p.catch(() => {});
         Promise.reject(2).catch(() => {}); try { await Promise.reject(3); } catch {} await Promise.allSettled([Promise.reject(4)]);",
    );
    assert_eq!(logs(&quiet), [] as [&str; 0]);

    let imported = [
        (
            "main.js",
            "export default { async run() { import('./a.js'); import('./nope.js'); await null; } };",
        ),
        ("a.js", "throw new RangeError('top');"),
    ];
    let report = run(&bench, &imported);
    assert_eq!(
        logs(&report),
        [
            "Error: Uncaught (in promise) [Error: No such module \"./nope.js\".\n  imported from \"main.js\"]",
            "Error: Uncaught (in promise) RangeError: top\n    at <anonymous> (a.js:1:11)"
        ]
    );

    let several = bench.run("Promise.reject('a'); Promise.reject(new Proxy({}, { ownKeys() { throw 1; } })); new Promise(() => { throw null; });");
    assert_eq!(
        logs(&several),
        [
            "Error: Uncaught (in promise) 'a'",
            "Error: Uncaught (in promise) [inspection failed]",
            "Error: Uncaught (in promise) null"
        ]
    );

    let job = bench.run("queueMicrotask(() => { throw new RangeError('job'); }); await null;");
    assert!(
        logs(&job)[0]
            .starts_with("Error: Uncaught RangeError: job\n    at <anonymous> (main.js:1:"),
        "{:?}",
        logs(&job)
    );

    let timer = bench.run("setTimeout(() => { throw new RangeError('timer'); }, 0); await new Promise((go) => setTimeout(go, 5)); return 1;");
    assert_eq!(crate::support::value(&timer), 1.into());
    assert!(
        logs(&timer)[0]
            .starts_with("Error: Uncaught RangeError: timer\n    at <anonymous> (main.js:1:"),
        "{:?}",
        logs(&timer)
    );

    let flood = bench.run("for (let i = 0; i < 1000; i++) Promise.reject(i);");
    assert_eq!(flood.logs.len(), 100);
}

#[test]
fn a_promise_that_is_handled_late_is_forgotten_by_itself_only() {
    let bench = Bench::new();
    // Promises come and go at the same address.
    let report = bench.run(
        "for (let i = 0; i < 50; i++) { Promise.reject(i); const p = Promise.reject('handled'); p.catch(() => {}); }",
    );
    assert_eq!(report.logs.len(), 50, "{:?}", logs(&report));
}

#[test]
fn no_failure_leaves_anything_behind_for_the_next_call() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[
        (
            "main.js",
            "export default { async run(kind) {
               switch (kind) {
                 case 0: throw { get name() { throw 1; }, get message() { throw 2; } };
                 case 1: return { get x() { throw 3; } };
                 case 2: return Symbol();
                 case 3: queueMicrotask(() => { throw 4; }); return 1;
                 case 4: Promise.reject(5); return 1;
                 case 5: setTimeout(() => { throw 6; }, 0); await new Promise((go) => setTimeout(go, 2)); return 1;
                 case 6: return Object.assign(new Error('x'), { toJSON() { throw 7; } });
                 case 7: console.log(new Proxy({}, { get() { throw 8; }, ownKeys() { throw 9; } })); return 1;
               }
               return (await import('./other.js')).default;
             } };",
        ),
        ("other.js", "export default 'imported';"),
    ]));
    for kind in 0..8 {
        bench.call(isolate, "run", &[kind.into()]);
        // The engine's module loader takes an exception that was left behind for its own.
        assert_eq!(
            crate::support::value(&bench.call(isolate, "run", &[8.into()])),
            "imported".into(),
            "{kind}"
        );
    }
}

#[test]
fn recursion_without_end_is_an_error_that_can_be_caught() {
    let bench = Bench::new();
    for body in [
        "(function f() { f(); })();",
        "const o = { toString() { return '' + o; } }; '' + o;",
        "const o = { get x() { return o.x; } }; o.x;",
        "const o = { toJSON() { return JSON.stringify(o); } }; JSON.stringify(o);",
        "let p = {}; for (let i = 0; i < 100000; i++) p = new Proxy(p, {}); p.x;",
        "const a = []; a[0] = a; a.toString(); let d = []; for (let i = 0; i < 100000; i++) d = [d]; JSON.stringify(d);",
        "JSON.parse('['.repeat(100000));",
        "const f = () => [0].map(f); f();",
        "new RegExp('('.repeat(100000));",
        "const o = { get x() { return structuredClone(o); } }; structuredClone(o);",
        "const f = (n) => { try { f(n + 1); } finally { f(n + 1); } }; let budget = 1e4; try { (function g() { if (budget-- > 0) g(); else throw 1; })(); } catch {} (function h() { h(); })();",
    ] {
        let report = bench.run(&format!(
            "let name; try {{ {body} }} catch (error) {{ name = error.name; }} return [name, 1 + 1];"
        ));
        let result = crate::support::value(&report);
        let name = result.index(0).and_then(Value::as_str).unwrap_or_default();
        assert!(
            ["RangeError", "SyntaxError", "InternalError"].contains(&name),
            "{body}: {result:?}"
        );
        assert_eq!(result.index(1), Some(&2.into()), "{body}");
    }
    // Uncaught, it is an exception like any other.
    let error = thrown(&bench.run("(function f() { f(); })();"));
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "Maximum call stack size exceeded")
    );
}
