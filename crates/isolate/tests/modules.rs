//! A worker's modules: how they find each other, what they are to each other, and what is not to be found.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, Source, thrown, thrown_text, value, worker, worker_of};
use coracle_abi::ModuleKind;
use coracle_isolate::{CallAccess, Report};
use coracle_value::Value;

/// Calls `run()` of the first module's default export.
fn run(bench: &Bench, modules: &[(&str, &str)]) -> Report {
    let isolate = bench.isolate(worker(modules));
    bench.call(isolate, "run", &[Value::Undefined])
}

fn eval(bench: &Bench, modules: &[(&str, &str)]) -> Value {
    value(&run(bench, modules))
}

fn source<'a>(name: &'a str, kind: ModuleKind, body: &'a str) -> Source<'a> {
    Source {
        name,
        kind,
        body: body.as_bytes(),
    }
}

#[test]
fn modules_import_each_other_statically_and_dynamically() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import two, { one } from './lib/numbers.js';
             import * as numbers from 'lib/numbers.js';
             export { three } from '/lib/deep/three.js';
             export default { async run() {
               const dynamic = await import('./lib/deep/three.js');
               const self = await import('main.js');
               return [one, two, Object.keys(numbers), dynamic.three, self.three, numbers === await import('lib/numbers.js')];
             } };",
        ),
        ("lib/numbers.js", "export const one = 1; export default 2;"),
        ("lib/deep/three.js", "import two, { one } from '../numbers.js'; export const three = one + two;"),
    ];
    let keys = Value::array(["default", "one"]);
    let expected = Value::Array(vec![
        1.into(),
        2.into(),
        keys,
        3.into(),
        3.into(),
        true.into(),
    ]);
    assert_eq!(eval(&bench, &modules), expected);
}

#[test]
fn a_module_is_evaluated_once_and_only_if_it_is_imported() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import './a.js'; import './b.js'; export default { async run() { await import('./a.js'); return globalThis.order; } };",
        ),
        (
            "a.js",
            "import './b.js'; (globalThis.order ??= []).push('a');",
        ),
        ("b.js", "(globalThis.order ??= []).push('b');"),
        ("unused.js", "throw new Error('evaluated');"),
        ("broken.js", "this is no JavaScript"),
    ];
    assert_eq!(eval(&bench, &modules), Value::array(["b", "a"]));
}

#[test]
fn import_cycles_end_as_the_language_says() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import { even } from './even.js'; import { self as me } from './main.js'; export const self = 7;
             export default { run() { return [even(10), even(7), me]; } };",
        ),
        ("even.js", "import { odd } from './odd.js'; export const even = (n) => n === 0 || odd(n - 1);"),
        ("odd.js", "import { even } from './even.js'; export const odd = (n) => n !== 0 && even(n - 1);"),
    ];
    let expected = Value::Array(vec![true.into(), false.into(), 7.into()]);
    assert_eq!(eval(&bench, &modules), expected);
    // A binding is dead until its module has been evaluated.
    let dead = [
        (
            "main.js",
            "import './a.js'; export const x = 1; export default {};",
        ),
        ("a.js", "import { x } from './main.js'; x;"),
    ];
    let error = thrown(&run(&bench, &dead));
    assert_eq!(
        (error.name.as_str(), error.module.as_str()),
        ("ReferenceError", "a.js")
    );
    assert!(error.during_load);
}

#[test]
fn top_level_await_waits_for_what_settles_by_itself() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import { slow } from './slow.js'; const more = await Promise.resolve(slow + 1);
             export default { run() { return [slow, more]; } };",
        ),
        (
            "slow.js",
            "export const slow = await (async () => { await null; await null; return 1; })();",
        ),
    ];
    assert_eq!(eval(&bench, &modules), Value::array([1, 2]));

    let rejected = [(
        "main.js",
        "await null; await Promise.reject(new RangeError('late')); export default {};",
    )];
    let report = run(&bench, &rejected);
    assert_eq!(thrown_text(&report), "RangeError: late");
    assert!(thrown(&report).during_load);
    assert_eq!(report.logs, [], "said once is enough");

    let report = run(
        &bench,
        &[("main.js", "await new Promise(() => {}); export default {};")],
    );
    assert!(
        format!("{:?}", report.outcome).contains("Hung"),
        "{:?}",
        report.outcome
    );
}

#[test]
fn an_es_module_may_have_any_name() {
    let bench = Bench::new();
    let modules = [
        source(
            "entry",
            ModuleKind::EsModule,
            "import a from './x.txt'; import b from 'ein modül.ts'; import c from './日本'; export default { run() { return [a, b, c]; } };",
        ),
        source("x.txt", ModuleKind::EsModule, "export default 1;"),
        source("ein modül.ts", ModuleKind::EsModule, "export default 2;"),
        source(
            "日本",
            ModuleKind::EsModule,
            "#!/usr/bin/env js\nexport default 3;",
        ),
    ];
    let isolate = bench.isolate(worker_of(&modules, &Value::Object(vec![])));
    assert_eq!(
        value(&bench.call(isolate, "run", &[Value::Null])),
        Value::array([1, 2, 3])
    );
}

#[test]
fn text_json_and_data_are_default_exports() {
    let bench = Bench::new();
    let modules = [
        source(
            "main.js",
            ModuleKind::EsModule,
            "import text from './a.txt'; import empty from './empty'; import object from 'object.json'; import string from 'string.json';
             import data from './bytes.bin'; import * as all from './a.txt'; import again from './object.json' with { type: 'json' };
             export default { async run() { return [
               text, empty, object, typeof string, string, data instanceof ArrayBuffer, [...new Uint8Array(data)],
               Object.keys(all), (await import('./bytes.bin')).default === data, again === object, object.__proto__,
             ]; } };",
        ),
        source("a.txt", ModuleKind::Text, "grüße\n\u{0}\u{feff}"),
        source("empty", ModuleKind::Text, ""),
        source("object.json", ModuleKind::Json, "{\"a\": [1, null, \"é\"], \"__proto__\": 5}"),
        source("string.json", ModuleKind::Json, "\"{}\""),
        Source {
            name: "bytes.bin",
            kind: ModuleKind::Data,
            body: &[0, 255, 10],
        },
    ];
    let isolate = bench.isolate(worker_of(&modules, &Value::Object(vec![])));
    let a = Value::Array(vec![1.into(), Value::Null, "é".into()]);
    let expected = Value::Array(vec![
        "grüße\n\u{0}\u{feff}".into(),
        "".into(),
        Value::object([("a", a), ("__proto__", 5.into())]),
        "string".into(),
        "{}".into(),
        true.into(),
        Value::array([0, 255, 10]),
        Value::array(["default"]),
        true.into(),
        true.into(),
        5.into(),
    ]);
    assert_eq!(value(&bench.call(isolate, "run", &[Value::Null])), expected);
}

#[test]
fn json_that_is_none_names_its_module() {
    let bench = Bench::new();
    let report = run(
        &bench,
        &[
            ("main.js", "import './x.json'; export default {};"),
            ("x.json", "{\"a\": }"),
        ],
    );
    let text = thrown_text(&report);
    assert!(
        text.starts_with("SyntaxError: The module \"x.json\" is not JSON: "),
        "{text}"
    );
}

#[test]
fn commonjs_modules_have_module_exports_require_and_their_names() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import whole from './lib/whole.cjs'; import * as all from './lib/parts.cjs';
             export default { async run() { return [whole, Object.keys(all), all.default, (await import('lib/whole.cjs')).default === whole]; } };",
        ),
        (
            "lib/whole.cjs",
            "const parts = require('./parts.cjs');
             module.exports = [parts.answer, parts === require('/lib/parts.cjs'), __filename, __dirname,
               this === exports, module.exports === exports, typeof require, arguments.length];",
        ),
        ("lib/parts.cjs", "exports.answer = 42; exports.file = __filename;"),
    ];
    let whole = Value::Array(vec![
        42.into(),
        true.into(),
        "/lib/whole.cjs".into(),
        "/lib".into(),
        true.into(),
        true.into(),
        "function".into(),
        5.into(),
    ]);
    let parts = Value::object([
        ("answer", Value::from(42)),
        ("file", "/lib/parts.cjs".into()),
    ]);
    let expected = Value::Array(vec![whole, Value::array(["default"]), parts, true.into()]);
    assert_eq!(eval(&bench, &modules), expected);
}

#[test]
fn require_finds_modules_of_every_kind() {
    let bench = Bench::new();
    let modules = [
        ("main.js", "import all from './all.cjs'; export default { run() { return all; } };"),
        (
            "all.cjs",
            "const esm = require('./esm.js'), again = require('./esm.js');
             module.exports = [
               esm.name, esm === again, require('./none.js'), require('./a.txt'), require('./b.json').x,
               require('./b.json') === require('b.json'), new Uint8Array(require('./c.bin'))[0],
               Object.keys(require('cloudflare:workers')).includes('WorkerEntrypoint'),
             ];",
        ),
        ("esm.js", "import text from './a.txt'; export default { name: 'esm ' + text }; export const other = 1;"),
        ("none.js", "export const other = 1;"),
        ("a.txt", "text"),
        ("b.json", "{\"x\": 5}"),
        ("c.bin", "A"),
    ];
    let expected = Value::Array(vec![
        "esm text".into(),
        true.into(),
        Value::Undefined,
        "text".into(),
        5.into(),
        true.into(),
        65.into(),
        true.into(),
    ]);
    assert_eq!(eval(&bench, &modules), expected);
}

#[test]
fn a_required_es_module_is_the_one_that_is_imported() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import '/a.cjs'; import { counter } from './esm.js'; export default { run() { return [counter.n, globalThis.evaluated]; } };",
        ),
        ("a.cjs", "require('./esm.js').n++; require('esm.js').n++;"),
        (
            "esm.js",
            "globalThis.evaluated = (globalThis.evaluated ?? 0) + 1; export const counter = { n: 0 }; export default counter;",
        ),
    ];
    assert_eq!(eval(&bench, &modules), Value::array([2, 1]));
}

#[test]
fn commonjs_cycles_see_what_is_exported_so_far() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import a from './a.cjs'; export default { run() { return a; } };",
        ),
        (
            "a.cjs",
            "exports.early = 1; const b = require('./b.cjs'); exports.seen = b.seen; exports.late = 2;",
        ),
        (
            "b.cjs",
            "const a = require('./a.cjs'); exports.seen = Object.keys(a);",
        ),
    ];
    let expected = Value::object([
        ("early", 1.into()),
        ("seen", Value::array(["early"])),
        ("late", 2.into()),
    ]);
    assert_eq!(eval(&bench, &modules), expected);
}

#[test]
fn an_es_module_that_is_being_evaluated_cannot_be_required() {
    let bench = Bench::new();
    let refused = |name: &str| {
        format!(
            "Error: The module \"{name}\" can't be required now: it is still being evaluated, or imports a module that is."
        )
    };
    let main = "globalThis.evaluated = (globalThis.evaluated ?? 0) + 1; export default { run() { return globalThis.evaluated; } };";
    // From a CommonJS module that it imports, directly or not.
    let direct = [
        ("main.js", &*format!("import './a.cjs'; {main}")),
        ("a.cjs", "require('./main.js');"),
    ];
    assert_eq!(
        thrown_text(&run(&bench, &direct)),
        refused("./main.js").replace("./", "")
    );
    let indirect = [
        ("main.js", &*format!("import './a.cjs'; {main}")),
        ("a.cjs", "require('./b.js');"),
        ("b.js", "import './main.js'; export default 1;"),
    ];
    assert_eq!(thrown_text(&run(&bench, &indirect)), refused("b.js"));
    // From a function of a CommonJS module, called in module scope.
    let late = [
        (
            "main.js",
            &*format!("import load from './a.cjs'; load(); {main}"),
        ),
        ("a.cjs", "module.exports = () => require('./b.js');"),
        ("b.js", "import './main.js'; export default 1;"),
    ];
    assert_eq!(thrown_text(&run(&bench, &late)), refused("b.js"));
    // However deep on the stack.
    let deep = [
        (
            "main.js",
            &*format!(
                "import load from './a.cjs'; (function go(n) {{ n > 0 ? [0].map(() => go(n - 1)) : load(); }})(100); {main}"
            ),
        ),
        ("a.cjs", "module.exports = () => require('./main.js');"),
    ];
    assert_eq!(thrown_text(&run(&bench, &deep)), refused("main.js"));
    // Through a dynamic import, too.
    let dynamic = [
        (
            "main.js",
            "export default { async run() { await import('./b.js'); } };",
        ),
        ("b.js", "import './a.cjs'; export default 1;"),
        ("a.cjs", "require('./b.js');"),
    ];
    assert_eq!(thrown_text(&run(&bench, &dynamic)), refused("b.js"));
}

#[test]
fn an_es_module_that_has_been_evaluated_can_be_required_and_is_not_evaluated_again() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import load from './a.cjs'; globalThis.evaluated = (globalThis.evaluated ?? 0) + 1;
             export default { run() { return [load('./main.js') === this, load('./b.js'), globalThis.evaluated]; } };",
        ),
        ("a.cjs", "module.exports = (name) => require(name);"),
        ("b.js", "import main from './main.js'; export default typeof main.run;"),
    ];
    let expected = Value::Array(vec![true.into(), "function".into(), 1.into()]);
    assert_eq!(eval(&bench, &modules), expected);
}

#[test]
fn a_commonjs_module_that_threw_is_tried_again() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import load from './load.cjs'; export default { run() { return [load(), load(), load()]; } };",
        ),
        (
            "load.cjs",
            "module.exports = () => { try { return require('./flaky.cjs'); } catch (error) { return error.message; } };",
        ),
        (
            "flaky.cjs",
            "globalThis.tries = (globalThis.tries ?? 0) + 1; if (globalThis.tries < 2) throw new Error('not yet'); module.exports = globalThis.tries;",
        ),
    ];
    let expected = Value::Array(vec!["not yet".into(), 2.into(), 2.into()]);
    assert_eq!(eval(&bench, &modules), expected);
}

#[test]
fn require_says_what_is_wrong() {
    let bench = Bench::new();
    let outcome = |body: &str, more: &[(&str, &str)]| {
        let mut modules = vec![
            ("main.js", "import './lib/a.cjs'; export default {};"),
            ("lib/a.cjs", body),
        ];
        modules.extend_from_slice(more);
        thrown(&run(&bench, &modules))
    };
    let text = |body: &str, more: &[(&str, &str)]| {
        let error = outcome(body, more);
        format!("{}: {}", error.name, error.message)
    };
    assert_eq!(
        text("require('./nope.js')", &[]),
        "Error: No such module \"./nope.js\".\n  imported from \"lib/a.cjs\""
    );
    assert_eq!(
        text("require('fs')", &[]),
        "Error: No such module \"fs\".\n  imported from \"lib/a.cjs\""
    );
    assert_eq!(
        text("require(5)", &[]),
        "TypeError: require: the name of a module is a string, not 5."
    );
    assert_eq!(
        text(
            "require('wait.js')",
            &[("wait.js", "await new Promise(() => {}); export default 1;")]
        ),
        "Error: The module \"wait.js\" can't be required: it uses top-level await."
    );
    assert_eq!(
        text(
            "require('throws.js')",
            &[("throws.js", "throw new RangeError('boom');")]
        ),
        "RangeError: boom"
    );
    assert_eq!(
        text("require('bad.js')", &[("bad.js", "let let = 1;")])
            .split(':')
            .next(),
        Some("SyntaxError")
    );
    assert_eq!(
        text("require('./b.cjs')", &[("lib/b.cjs", "throw null;")]),
        "Error: null"
    );
    // The place is in the module that did it.
    let error = outcome("const x = 1;\n  require('./nope.js');", &[]);
    assert_eq!(
        (error.module.as_str(), error.line, error.column),
        ("lib/a.cjs", 2, 3)
    );
}

/// The resolver's vectors, which the loader's crate holds.
fn specifiers() -> Vec<(String, String, Option<String>)> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../loader/tests/specifiers.json"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let vectors = coracle_value::from_json(&text, &coracle_value::Bounds::default()).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut rows = Vec::new();
    for (_, group) in vectors.get("rows").unwrap().as_object().unwrap() {
        for row in group.as_array().unwrap() {
            let cell = |index: usize| row.index(index).unwrap();
            rows.push((
                text(cell(0)).unwrap(),
                text(cell(1)).unwrap(),
                text(cell(2)),
            ));
        }
    }
    assert!(rows.len() > 30);
    rows
}

#[test]
fn specifiers_mean_what_the_loader_says_they_mean() {
    let bench = Bench::new();
    for (importer, specifier, name) in specifiers() {
        if specifier.contains('\0') || name.as_deref() == Some("cloudflare:workers") {
            // The first reaches the guest cut off, because it is a C string on its way there; the second is ours.
            continue;
        }
        let quoted = coracle_value::to_json(&Value::from(specifier.as_str())).unwrap();
        let main = format!(
            "export default {{ async run() {{ try {{ return (await import({quoted})).default; }} catch (error) {{ return error.message; }} }} }};"
        );
        let mut modules = vec![source(&importer, ModuleKind::EsModule, &main)];
        if let Some(name) = name.as_ref().filter(|name| **name != importer) {
            modules.push(source(name, ModuleKind::Text, "found"));
        }
        let isolate = bench.isolate(worker_of(&modules, &Value::Object(vec![])));
        let found = value(&bench.call(isolate, "run", &[Value::Null]));
        let expected = match name {
            Some(_) => "found".into(),
            None => format!("No such module \"{specifier}\".\n  imported from \"{importer}\""),
        };
        assert_eq!(found, Value::from(expected), "{specifier} in {importer}");
    }
}

#[test]
fn what_is_not_there_has_one_error_whatever_it_is_called() {
    let bench = Bench::new();
    for specifier in [
        "nope.js",
        "./nope.js",
        "../x",
        "/x",
        "file:///etc/passwd",
        "http://h/x.js",
        "https://h/x.js",
        "node:fs",
        "fs",
        "data:text/javascript,export default 1",
        "cloudflare:email",
        "coracle:prelude",
        "std",
        "os",
        "bjson",
        "",
        ".",
        "..",
        "a\\b",
        "日本",
        "%2e%2e/x",
        "main.js?x",
        "main.js#x",
    ] {
        let quoted = coracle_value::to_json(&Value::from(specifier)).unwrap();
        let message = format!("No such module \"{specifier}\".\n  imported from \"lib/main.js\"");
        let statically = run(
            &bench,
            &[(
                "lib/main.js",
                &format!("import {quoted}; export default {{}};"),
            )],
        );
        let error = thrown(&statically);
        assert_eq!((error.name.as_str(), &error.message), ("Error", &message));
        assert!(error.during_load);
        let dynamically = [(
            "lib/main.js",
            &*format!("export default {{ async run() {{ await import({quoted}); }} }};"),
        )];
        let error = thrown(&run(&bench, &dynamically));
        assert_eq!((error.name.as_str(), &error.message), ("Error", &message));
        assert!(!error.during_load);
    }
}

#[test]
fn a_missing_module_names_who_asked_for_it() {
    let bench = Bench::new();
    let modules = [
        ("main.js", "import './lib/a.js'; export default {};"),
        ("lib/a.js", "import '../b.js';"),
        ("b.js", "import { x } from './lib/gone.js';"),
    ];
    let expected = "Error: No such module \"./lib/gone.js\".\n  imported from \"b.js\"";
    assert_eq!(thrown_text(&run(&bench, &modules)), expected);
}

#[test]
fn a_specifier_that_is_no_text_is_refused_like_any_other() {
    let bench = Bench::new();
    for (specifier, text) in [
        (
            "'\\ud800'",
            "Error: No such module \"\u{fffd}\u{fffd}\u{fffd}\".\n  imported from \"main.js\"",
        ),
        (
            "undefined",
            "Error: No such module \"undefined\".\n  imported from \"main.js\"",
        ),
        (
            "{ toString() { throw new RangeError('no'); } }",
            "RangeError: no",
        ),
        ("Symbol()", "TypeError: cannot convert symbol to string"),
    ] {
        let report = bench.run(&format!("await import({specifier});"));
        assert_eq!(thrown_text(&report), text, "{specifier}");
    }
}

#[test]
fn a_missing_export_names_the_module() {
    let bench = Bench::new();
    let modules = [
        (
            "main.js",
            "import { zzz } from './a.js'; export default {};",
        ),
        ("a.js", "export const a = 1;"),
    ];
    let error = thrown(&run(&bench, &modules));
    assert_eq!(error.name, "SyntaxError");
    assert!(
        error.message.contains("'zzz'") && error.message.contains("'a.js'"),
        "{}",
        error.message
    );
}

#[test]
fn a_syntax_error_names_module_line_and_column() {
    let bench = Bench::new();
    for (modules, place) in [
        (&[("main.js", "let x = ;")][..], ("main.js", 1, 9)),
        (
            &[("main.js", "\n\nexport default {\n  run( { }\n}")],
            ("main.js", 5, 1),
        ),
        (
            &[
                ("main.js", "import './lib/a.js'; export default {};"),
                ("lib/a.js", "\r\nconst a = 1;\r\n  const a = 2;"),
            ],
            ("lib/a.js", 3, 11),
        ),
        (
            &[
                ("main.js", "import './a.cjs'; export default {};"),
                ("a.cjs", "let x = ;"),
            ],
            ("a.cjs", 1, 9),
        ),
        (
            &[("main.js", "const é = '日本😀'; let 9;")],
            ("main.js", 1, 23),
        ),
    ] {
        let report = run(&bench, modules);
        let error = thrown(&report);
        assert_eq!(
            (error.module.as_str(), error.line, error.column),
            place,
            "{modules:?}: {}",
            error.message
        );
        assert_eq!(error.name, "SyntaxError");
        assert!(error.during_load);
        assert_eq!(
            error.stack,
            format!("    at {}:{}:{}", place.0, place.1, place.2)
        );
    }
}

#[test]
fn bytes_that_are_no_source_are_a_syntax_error() {
    let bench = Bench::new();
    // The engine's bytecode, a Wasm module, text that is not UTF-8: E26.
    for body in [
        &b"\x18\x03\x0amain.js\x00\x00"[..],
        b"\0asm\x01\0\0\0",
        b"export default 1; \xff\xfe",
        b"\0",
        b"let x = '\xed\xa0\x80'; \xc3",
    ] {
        let modules = [Source {
            name: "main.js",
            kind: ModuleKind::EsModule,
            body,
        }];
        let isolate = bench.isolate(worker_of(&modules, &Value::Object(vec![])));
        let error = thrown(&bench.call(isolate, "run", &[Value::Null]));
        assert_eq!(
            (
                error.name.as_str(),
                error.module.as_str(),
                error.during_load
            ),
            ("SyntaxError", "main.js", true),
            "{body:02x?}"
        );
    }
}

#[test]
fn source_that_nests_without_end_is_a_load_error_and_the_next_worker_runs() {
    let bench = Bench::new();
    for source in [
        format!(
            "export default {}1{};",
            "(".repeat(20_000),
            ")".repeat(20_000)
        ),
        format!(
            "export default {}{};",
            "[".repeat(20_000),
            "]".repeat(20_000)
        ),
        format!("export default {}1;", "1 ? 1 : ".repeat(20_000)),
        format!(
            "export default {}{};",
            "`${".repeat(20_000),
            "}`".repeat(20_000)
        ),
        format!("export default {}1;", "!".repeat(50_000)),
        format!("{}{}", "{".repeat(50_000), "}".repeat(50_000)),
        format!("import {{ {} }} from 'x'", "a,".repeat(100_000)),
    ] {
        let report = run(&bench, &[("main.js", &source)]);
        let text = format!("{:?}", report.outcome);
        assert!(
            text.contains("during_load: true") || text.contains("Startup"),
            "{}",
            &text[..200.min(text.len())]
        );
    }
    assert_eq!(bench.eval("return 1;"), 1.into());
}

#[test]
fn what_a_module_throws_while_it_is_evaluated_is_the_outcome_of_the_call() {
    let bench = Bench::new();
    let modules = [
        ("main.js", "import './a.js'; export default {};"),
        ("a.js", "\n  throw new RangeError('boom at top');"),
    ];
    let report = run(&bench, &modules);
    let error = thrown(&report);
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "boom at top")
    );
    assert_eq!((error.module.as_str(), error.line), ("a.js", 2));
    assert!(error.during_load);
    assert_eq!(report.logs, []);
}

#[test]
fn a_worker_is_ready_or_says_why_not() {
    let bench = Bench::new();
    let ready = |source: &str| {
        let isolate = bench.isolate(worker(&[("main.js", source)]));
        let mut call = bench.call_of("", &[]);
        call.access = CallAccess::Ready;
        bench.report(bench.send(isolate, call))
    };
    assert_eq!(value(&ready("export default {};")), Value::Undefined);
    assert_eq!(value(&ready("")), Value::Undefined);
    assert_eq!(thrown_text(&ready("throw new Error('no');")), "Error: no");
    let logged = ready("console.log('loaded'); export default {};");
    assert_eq!(crate::support::logs(&logged), ["Log: loaded"]);
}

#[test]
fn import_meta_tells_nothing() {
    let bench = Bench::new();
    let modules = [(
        "main.js",
        "export default { run() { return [Reflect.ownKeys(import.meta), Object.getPrototypeOf(import.meta)]; } };",
    )];
    assert_eq!(
        eval(&bench, &modules),
        Value::Array(vec![Value::Array(vec![]), Value::Null])
    );
}

#[test]
fn a_main_module_that_is_not_there_does_not_break_the_guest() {
    let bench = Bench::new();
    let modules = [
        source("main.js", ModuleKind::Text, "no module"),
        source("other.js", ModuleKind::EsModule, ""),
    ];
    // A main module of another kind has no entrypoints but its value.
    let isolate = bench.isolate(worker_of(&modules, &Value::Object(vec![])));
    let text = thrown_text(&bench.call(isolate, "run", &[Value::Null]));
    assert!(
        text.contains("can't be an entrypoint: it is string"),
        "{text}"
    );
    // The loader checks that the main module is one of the modules; the guest does not rely on it.
    let load = coracle_abi::Load {
        main_module: "gone.js",
        modules: vec![],
        env: coracle_abi::Encoded {
            form: coracle_abi::Form::Undefined,
            bytes: [][..].into(),
            externals: Vec::new(),
        },
        value_depth_max: 512,
        code_bytes_max: 10 << 20,
        env_bytes_max: 1 << 20,
        log_arguments: false,
    };
    let mut spec = worker(&[("main.js", "")]);
    spec.load = minicbor::to_vec(&load).unwrap().into();
    let isolate = bench.isolate(spec);
    assert_eq!(
        thrown_text(&bench.call(isolate, "run", &[])),
        "Error: No such module \"gone.js\"."
    );
}
