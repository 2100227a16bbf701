//! Programs as models write them, in modules whose names end in `.program.ts`: what they compute, and where their errors are.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, thrown, value, worker};
use coracle_isolate::{Message, Outcome, Report, Scheduler};
use coracle_value::Value;
use proptest::prelude::*;

const MAIN: &str = "import program from './a.program.ts'; export default { run: () => program() };";

fn run(bench: &Bench, program: &str) -> Report {
    let modules = [
        ("main.js", MAIN),
        ("a.program.ts", program),
        (
            "lib.js",
            "export const seven = 7; export default (n) => n * 2;",
        ),
    ];
    let isolate = bench.isolate(worker(&modules));
    bench.call(isolate, "run", &[Value::Undefined])
}

/// A value as JSON, for the tables.
fn json(report: &Report, program: &str) -> String {
    match &report.outcome {
        Outcome::Value(_) => match value(report) {
            Value::Undefined => "undefined".into(),
            value => coracle_value::to_json(&value).unwrap(),
        },
        other => format!("{program}: {other:?}"),
    }
}

/// Whatever shape it has that models write, its result comes back.
#[test]
fn every_shape_of_a_program_gives_its_result() {
    let table = [
        // Nothing, expressions, statements with an expression at the end.
        ("", "undefined"),
        ("  \n", "undefined"),
        ("// nothing", "undefined"),
        ("42", "42"),
        ("42;", "42"),
        ("'text'", "\"text\""),
        ("\"use strict\"; 5", "5"),
        ("const a = 1; a + 1", "2"),
        ("const a = 1\na + 1 // two", "2"),
        ("const a = 1; a + 1;;", "2"),
        ("const a = await Promise.resolve(3); return a;", "3"),
        ("await Promise.resolve(4)", "4"),
        ("if (true) return 5; 6", "5"),
        ("let a = 1; if (a) { a = 2 }", "undefined"),
        ("[1, 2].map((n) => n * 2)", "[2,4]"),
        ("#!/usr/bin/env node\n1 + 1", "2"),
        // Functions, which are called.
        ("async () => 1", "1"),
        ("async () => 1;", "1"),
        ("// a comment\nasync () => { return 1; };\n", "1"),
        ("() => 1", "1"),
        ("(async () => 1)", "1"),
        ("(async () => 1)()", "1"),
        ("(async () => { return 1 })();", "1"),
        ("async function(){ return 2 }", "2"),
        ("async function(){ return 2 };", "2"),
        ("function () { return 2 }", "2"),
        ("(function () { return 2 })", "2"),
        ("async () => 1; async () => 2", "2"),
        ("const a = 3; async () => a", "3"),
        ("const f = async () => 1", "1"),
        ("const f = async () => 1; f()", "1"),
        ("async function main(){ return 4 }", "4"),
        ("function f(){return 1}\nf()", "1"),
        ("f()\nfunction f(){return 1}", "1"),
        (
            "const A = 2; const twice = (n) => n * A;\nasync function main() { return twice(2) }\nfunction b() {}",
            "4",
        ),
        (
            "let calls = 0; const r = main(); function main() { return ++calls }",
            "undefined",
        ),
        // Objects, which read as blocks.
        ("{ a: 1 }", r#"{"a":1}"#),
        ("{ a: 1, b: [2] }", r#"{"a":1,"b":[2]}"#),
        ("{ a: await Promise.resolve(1) };", r#"{"a":1}"#),
        ("{}", "{}"),
        ("({ a: 1 })", r#"{"a":1}"#),
        ("{ const a = 1; a }", "undefined"),
        // Default exports.
        ("export default 42", "42"),
        ("export default 42;\nconst rest = 1;", "42"),
        ("export default async () => 3", "3"),
        (
            "export default async () => helper();\nconst helper = () => 3;",
            "3",
        ),
        ("export default function () { return 3 }\n(1)", "3"),
        ("export default async function main() { return 3 }", "3"),
        (
            "const a = 3; export default function main() { return a }",
            "3",
        ),
        ("const result$ = 5; export default result$", "5"),
        (
            "export const a = 1; export function f() { return a } f()",
            "1",
        ),
        ("const a = 1; export { a }; a", "1"),
        // Imports.
        (
            "import double, { seven } from './lib.js';\ndouble(seven)",
            "14",
        ),
        (
            "const a = 1;\nimport { seven } from './lib.js';\na + seven",
            "8",
        ),
        (
            "import { seven } from './lib.js'\nexport default async () => seven",
            "7",
        ),
        ("export { seven } from './lib.js'\n1", "1"),
        ("const { seven } = await import('./lib.js'); seven", "7"),
        // Fences and prose.
        ("```js\nasync () => 1\n```", "1"),
        ("```typescript\nconst a: number = 1;\na\n```\n", "1"),
        ("```\n1 + 1\n```", "2"),
        ("```ts\n1 + 1", "2"),
        (
            "Here is the program:\n\n```javascript\nconst a = 1;\nreturn a;\n```\nIt returns one.",
            "1",
        ),
        ("Code:\n```js\n5\n```", "5"),
        (
            "First:\n```sh\nnpm install x\n```\nThen:\n```ts\n6\n```",
            "6",
        ),
        ("/*\n```js\n1\n```\n*/\n2", "2"),
        ("const text = `\n\\`\\`\\`js\n`; text.length", "7"),
        // TypeScript.
        (
            "const f = async (a: number): Promise<number> => a!;\nawait f(1 as number)",
            "1",
        ),
        (
            "interface A { a: number }\ntype B = A['a'];\nconst a: A = { a: 1 };\na.a satisfies B",
            "1",
        ),
        ("enum A { B = 7 }\nA.B", "7"),
        ("namespace A { export const b = 8 }\nA.b", "8"),
        ("declare const tools: any;\nconst a: number = 9; a", "9"),
        (
            "export type A = number; export interface B {} \n10 as A",
            "10",
        ),
        (
            "import type { T } from './nowhere.js'; const t: T = 1; t",
            "1",
        ),
        ("async ({ a }: { a?: number } = {}) => a ?? 11", "11"),
    ];
    let mut wrong = Vec::new();
    // An isolate for each, and a bench has room for so many.
    for part in table.chunks(50) {
        let bench = Bench::new();
        for (program, expected) in part {
            let got = json(&run(&bench, program), program);
            if got != *expected {
                wrong.push(format!("{program:?}: {got}, and not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Errors point into the text as the model wrote it.
#[test]
fn errors_are_where_the_author_sees_them() {
    let table = [
        ("const a = null;\na.b", 2, 1),
        ("const a = null; a.b", 1, 17),
        ("async () => {\n  null.b;\n}", 2, 3),
        ("const é = '日😀', a = null; a.b", 1, 28),
        ("Text.\n```js\nconst a = null;\n  a.b\n```", 4, 3),
        (
            "const a: any = null;\nimport { seven } from './lib.js';\nseven; a.b",
            3,
            8,
        ),
        ("enum A { B }\nconst a: any = null;\na.b.c", 3, 1),
        (
            "export default function () {\r\n  const a = null; a.b }",
            2,
            19,
        ),
        // Those of the parser.
        ("const a = 1;\nconst = 2;", 2, 7),
        ("Text:\n```js\nlet a = 1;\n  let = = 2;\n```", 4, 9),
        ("{ a: 1, b: = }", 1, 10),
        // One that only the engine sees.
        ("let a = 1;\nlet a = 2;", 2, 7),
    ];
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for (program, line, column) in table {
        let report = run(&bench, program);
        let error = thrown(&report);
        let place = (&error.module[..], error.line, error.column);
        if place != ("a.program.ts", line, column) {
            wrong.push(format!(
                "{program:?}: {place:?} {}: {}",
                error.name, error.message
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is nested too deeply for the parser ends as it does for any module, and harms nobody.
#[test]
fn hostile_programs_end_in_the_sandbox() {
    let bench = Bench::new();
    for program in [
        format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{{{}", "{a:".repeat(50_000)),
        "```\n".repeat(100_000),
        "export default 1;\n".repeat(1_000),
        format!("{}\n```js\n(", "`".repeat(10_001)),
    ] {
        let report = run(&bench, &program);
        assert!(
            !matches!(report.outcome, Outcome::Value(_)),
            "{}",
            &program[..40]
        );
    }
    assert_eq!(json(&run(&bench, "1"), "1"), "1");
}

/// Statements that end, whatever order they come in, and leave what they did in `a`, `b`, `s` and `list`.
fn statement() -> impl Strategy<Value = String> {
    let leaves = [
        "a = (a * 31 + b) % 1000;",
        "b += 1\n",
        "s += \"return 5; // '\";",
        "s = `${s}:${a}\\n}`",
        "s = `\n`.concat(s);",
        "s += `${`nested ${b} `}`;",
        "list.push(a);",
        "list = list\n  .map((n) => n + 1)\n  .filter((n) => n % 5)\n",
        ";[a, b] = [b, a];",
        "({ a, b } = { a: b + 1, b: a });",
        "a += await Promise.resolve(b);",
        "a = await (async () => { return a + 2 })();",
        "a += /re[/\"]turn}/g.test(s) ? 1 : 2;",
        "s += String(/* export default 3 */ a / 2 / 1);",
        "// return 1\n",
        "/* ``` */",
        "\"use nothing\";",
        ";;",
        "a > 900 && (a -= 900)\n",
        "b = b?.toFixed?.(0).length ?? 3;",
        "{ function f(x) { return x + 1 } a = f(a) }",
        "{ class C { #n = a; get n() { return this.#n } static { b += 1 } } a = new C().n + 1 }",
        "{ const { x = 4, ...rest } = { y: b }; a += x + rest.y }",
        "{ function* g() { yield a; return b } list.push(...g()) }",
        "if (list.length > 40) return [s.length, list.length];",
        "s += typeof undeclared;",
        "for await (const n of [b, Promise.resolve(1)]) a += n;",
        "s += ((...all) => all.length)`a${b}c`;",
        "b = (a, b + 1);",
        "void (a = -a);",
    ];
    prop::sample::select(leaves.to_vec())
        .prop_map(str::to_owned)
        .prop_recursive(3, 12, 3, |inner| {
            let block = prop::collection::vec(inner, 0..3).prop_map(|inner| inner.join("\n"));
            (0..9, block.clone(), block).prop_map(|(kind, one, other)| match kind {
                0 => format!("if (a % 2) {{ {one} }} else {{ {other} }}"),
                1 => format!("for (let i = 0; i < 3; i++) {{ {one}\n if (i) continue; {other} }}"),
                2 => format!("for (const n of list.slice(0, 3)) {{ a += n; {one} }}\n{other}"),
                3 => format!("switch (a % 3) {{ case 0: {one}\n case 1: {other}\n break; default: a++ }}"),
                4 => format!("try {{ {one}\n throw new Error('e') }} catch ({{ message }}) {{ s += message; {other} }}"),
                5 => format!("try {{ {one} }} finally {{ {other} }}"),
                6 => format!("await (async () => {{ outer: for (const n of [1, 2]) {{ for (;;) {{ {one}\n if (n > 1) break outer; continue outer }} }} }})();\n{other}"),
                7 => format!("do {{ {one} }} while (false)\n{other}"),
                _ => format!("{{ let k = 2; while (k-- > 0) {{ {one} }}\n{other} }}"),
            })
        })
}

/// The shapes that a program may have which does `body` and then gives `result`.
fn shapes(body: &str, result: &str) -> [String; 9] {
    [
        format!("{body}\nreturn {result};"),
        format!("{body}\n;({result})"),
        format!("{body}\n;({result});\n// the end"),
        format!("async () => {{ {body}\n return {result} }}"),
        format!("(async function () {{ {body}\n return {result} }})();"),
        format!("async function main() {{ {body}\n return {result} }}"),
        format!("export default async () => {{ {body}\n return {result} }}"),
        format!(
            "Here it is:\n\n```ts\n{body}\nconst all: unknown = {result};\nall\n```\nThat is all."
        ),
        format!(
            "const done = await (async (): Promise<unknown> => {{ {body}\n return {result} }})(); done"
        ),
    ]
}

thread_local! {
    static BENCH: Bench = Bench::new();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// What a valid program computes is what it computes as it stands in a function of a module, in whatever shape it is written.
    #[test]
    fn a_program_computes_what_it_says(statements in prop::collection::vec(statement(), 0..6)) {
        let body = format!(
            "let a = 1, b = 2, s = '', list = [3, 1, 2];\n{}",
            statements.join("\n")
        );
        let result = "{ a, b, s, list }";
        let shapes = shapes(&body, result);
        let names: Vec<String> = (0..shapes.len()).map(|at| format!("s{at}.program.ts")).collect();
        let imports: String = (0..shapes.len())
            .map(|at| format!("import s{at} from './{}';\n", names[at]))
            .collect();
        let all: String = (0..shapes.len()).map(|at| format!(", s{at}")).collect();
        // What it throws counts as well.
        let main = format!(
            "{imports}async function main() {{ {body}\n return {result} }}\n\
             const outcome = (program) => program().then(JSON.stringify, (error) => `${{error}}`);\n\
             export default {{ run: () => Promise.all([main{all}].map(outcome)) }};"
        );
        let mut modules = vec![("main.js", &main[..])];
        modules.extend(names.iter().map(String::as_str).zip(shapes.iter().map(String::as_str)));
        let report = BENCH.with(|bench| {
            let isolate = bench.isolate(worker(&modules));
            let report = bench.call(isolate, "run", &[Value::Undefined]);
            bench.threads().send(Message::End { isolate });
            report
        });
        let Outcome::Value(_) = &report.outcome else {
            panic!("{body}\n{:?}", report.outcome);
        };
        let results = value(&report);
        let results = results.as_array().unwrap();
        for (shape, given) in shapes.iter().zip(&results[1..]) {
            prop_assert_eq!(given, &results[0], "{}", shape);
        }
    }
}
