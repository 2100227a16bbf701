//! What becomes of TypeScript and JSX, and what of those who want too much of it.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use super::*;
use crate::{
    border::Allowance, fuel, image::Guest, image::Image, pool_memory::PoolMemory, sandbox::Sandbox,
    sandbox::SandboxConfig,
};
use coracle_loader::Limits;
use std::{
    path::PathBuf,
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    let image = Image::obtain(&Guest::embedded(), cache.as_deref()).unwrap();
    let config = SandboxConfig {
        isolates_max: 8,
        running_max: 8,
        pagemap_scan: false,
        snapshots_bytes_max: 0,
    };
    Sandbox::new(config, &image).unwrap()
});

const PLENTY: u64 = 100_000_000_000;

/// How it went, and the fuel that it took.
fn transpile_within(name: &str, source: &str, fuel: u64, memory: u64) -> (Result<Outcome>, u64) {
    let ours = SANDBOX.transpiler.as_ref().unwrap();
    transpile_with(ours, name, source, fuel, memory)
}

fn transpile_with(
    transpiler: &Transpiler,
    name: &str,
    source: &str,
    fuel: u64,
    memory: u64,
) -> (Result<Outcome>, u64) {
    let module = abi::Module {
        name,
        kind: match name.ends_with(".cts") {
            true => abi::ModuleKind::CommonJs,
            false => abi::ModuleKind::EsModule,
        },
        body: source.as_bytes().into(),
        mappings: "",
    };
    let load = abi::Load {
        main_module: name,
        modules: vec![module],
        env: abi::Encoded {
            form: abi::Form::Undefined,
            bytes: [][..].into(),
            externals: Vec::new(),
        },
        value_depth_max: 512,
        code_bytes_max: 10 << 20,
        env_bytes_max: 1 << 20,
        log_arguments: false,
    };
    let load = minicbor::to_vec(load).unwrap();
    assert!(is_needed(&load), "{name}");
    let purse = PoolMemory::new(u64::MAX).purse(1, u64::MAX);
    let state = State::new(Arc::default(), &Limits::default(), purse, Some(1));
    let mut store = Store::new(&SANDBOX.engine, state);
    store.limiter(|state| state);
    store.set_fuel(fuel).unwrap();
    let allowance = Allowance {
        memory_bytes_max: memory,
        ..Allowance::default()
    };
    store.data_mut().begin(fuel, fuel::SLICE, 0.0, allowance);
    let outcome = {
        let running = pin!(transpiler.run(&mut store, &load));
        match running.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("nothing yields here"),
        }
    };
    (outcome, fuel - store.get_fuel().unwrap())
}

/// The text and the mappings.
fn code_of(name: &str, source: &str) -> (String, String) {
    match transpile_within(name, source, PLENTY, 1 << 30).0.unwrap() {
        Outcome::Load(load) => {
            let load: abi::Load<'_> = minicbor::decode(&load).unwrap();
            let module = &load.modules[0];
            let text = String::from_utf8(module.body.to_vec()).unwrap();
            (text, module.mappings.to_owned())
        }
        Outcome::Threw(thrown) => panic!("{source}: {thrown:?}"),
    }
}

fn thrown_by(name: &str, source: &str) -> Thrown {
    match transpile_within(name, source, PLENTY, 1 << 30).0.unwrap() {
        Outcome::Threw(thrown) => *thrown,
        Outcome::Load(_) => panic!("{source} should not have been taken"),
    }
}

/// Types become blanks and nothing else moves; where JavaScript would read on over what was a border, a semicolon keeps it.
#[test]
fn types_become_blanks() {
    let table = [
        ("const a: number = 1;", "const a         = 1;"),
        ("let a!: T, b: U;", "let a    , b   ;"),
        (
            "a = b\ntype X = {\n  y: 1\n}\n(c)",
            "a = b\n;         \n      \n \n(c)",
        ),
        (
            "interface A extends B { c: D }",
            ";                             ",
        ),
        (
            "declare const a: T; declare global {}",
            ";                   ;                ",
        ),
        (
            "function f<T>(this: X, a?: T, ...b: T[]): a is U {}",
            "function f   (         a    , ...b     )         {}",
        ),
        (
            "function f(a: T): void; function f(a) {}",
            ";                       function f(a) {}",
        ),
        (
            "f<T>(a as U, b!, c satisfies V);",
            "f   (a     , b , c            );",
        ),
        ("a = b as T\n(c)", "a = b;    \n(c)"),
        (
            "a = <T>b; new A<T>(); f<T>`x`",
            "a =    b; new A   (); f   `x`",
        ),
        (
            "f((a: X): {\n  b: 1\n} => a)",
            "f((a       \n      \n) => a)",
        ),
        ("async <T>(a: T) => a", "async    (a   ) => a"),
        (
            "try {} catch (e: unknown) {}",
            "try {} catch (e         ) {}",
        ),
        (
            "for (const a of b as T[]) {}",
            "for (const a of b       ) {}",
        ),
        (
            "const é: '日本😀' = 1; type 日 = 1",
            "const é         = 1; ;         ",
        ),
        (
            "import type { A } from 'a'; f()",
            ";                           f()",
        ),
        (
            "import { A, type B, c } from 'a'; c; let d: A",
            "import {            c } from 'a'; c; let d   ",
        ),
        (
            "import A, * as B from 'a'; A; let d: B",
            "import A         from 'a'; A; let d   ",
        ),
        (
            "import { A } from 'a'; let d: A",
            ";                      let d   ",
        ),
        (
            "import 'a'; export type { B } from 'b'",
            "import 'a'; ;                         ",
        ),
        (
            "interface A {} const b = 1; export { A, b }",
            ";              const b = 1; export {    b }",
        ),
        (
            "export default interface A {}",
            ";                            ",
        ),
        (
            "export type A = 1; export const b = 1 as A",
            ";                  export const b = 1     ",
        ),
        (
            "export declare class A {} export abstract class B {}",
            ";                         export          class B {}",
        ),
        (
            "class A<T> extends B<T> implements C, D { }",
            "class A    extends B                    { }",
        ),
        (
            "class A { public x?: T = 1; readonly #y!: T; static override z: T }",
            "class A { ;      x     = 1; ;        #y    ; static          z    }",
        ),
        (
            "class A { x = 1\n  readonly ['y'] = 2 }",
            "class A { x = 1\n  ;        ['y'] = 2 }",
        ),
        (
            "class A { get: T\n  b() {} }",
            "class A { get;  \n  b() {} }",
        ),
        (
            "abstract class A { declare x: T; abstract y(): T; [k: string]: T; z(): T { } }",
            "         class A { ;             ;                ;               z()    { } }",
        ),
        (
            "class A { constructor(a: T); constructor(a?: T) {} }",
            "class A { ;                  constructor(a    ) {} }",
        ),
        (
            "class A { private async *f<T>(): T {} }",
            "class A { ;       async *f   ()    {} }",
        ),
        ("#!/bin/x\nlet a: T", "#!/bin/x\nlet a   "),
    ];
    let mut wrong = Vec::new();
    for (source, expected) in table {
        let (text, mappings) = code_of("main.ts", source);
        if text != expected || !mappings.is_empty() {
            wrong.push(format!("{source}\n  {text:?}\n  {expected:?}"));
        }
        // Nothing has moved.
        let columns = |text: &str| -> Vec<usize> {
            text.lines()
                .map(|line| line.encode_utf16().count())
                .collect()
        };
        assert_eq!(columns(&text), columns(source), "{source}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What has to be something at run time is written in JavaScript, with mappings back.
#[test]
fn what_needs_code_is_rewritten_with_mappings() {
    for (name, source, parts) in [
        (
            "a.ts",
            "enum A { B, C = 'c' }",
            &["A[\"B\"] = 0", "A[\"C\"] = \"c\""][..],
        ),
        ("a.ts", "namespace A { export const b = 1 }", &["A.b = 1"]),
        (
            "a.ts",
            "class A { constructor(private b: T) {} }",
            &["this.b = b"],
        ),
        ("a.ts", "f = () => <T>{ a: 1 }", &["({ a: 1 })"]),
        (
            "a.tsx",
            "const a: T = <b c={d as T}>e</b>",
            &["React.createElement(\"b\", { c: d }, \"e\")"],
        ),
        ("a.jsx", "<></>", &["React.createElement(React.Fragment"]),
        ("a.jsx", "/** @jsx h */ <b/>", &["h(\"b\""]),
        (
            "a.jsx",
            "/** @jsxImportSource preact */ <b/>",
            &["from \"preact/jsx-runtime\""],
        ),
        (
            "a.cts",
            "enum A { B }; module.exports = A; return",
            &["module.exports = A"],
        ),
    ] {
        let (text, mappings) = code_of(name, source);
        for part in parts {
            assert!(text.contains(part), "{source}\n{text}");
        }
        assert!(!mappings.is_empty(), "{source}");
    }
    // JSX that has none is left as it is.
    assert_eq!(
        code_of("a.jsx", "let a  = 1"),
        ("let a  = 1".into(), String::new())
    );
}

/// What can't be read names its module, line and column, in UTF-16 code units.
#[test]
fn what_can_not_be_read_is_a_syntax_error_with_its_place() {
    for (name, source, line, column) in [
        ("a.ts", "let a: number = ;", 1, 17),
        ("a.ts", "const b = '日😀'; let 9;", 1, 22),
        ("lib/b.tsx", "\r\n<a>\u{2028}</b>", 3, 3),
        ("a.ts", "class A {\n  @b c() {}\n}", 2, 3),
    ] {
        let thrown = thrown_by(name, source);
        assert_eq!(thrown.name, "SyntaxError", "{thrown:?}");
        assert_eq!(
            (&thrown.module[..], thrown.line, thrown.column),
            (name, line, column),
            "{thrown:?}"
        );
        assert_eq!(thrown.stack, format!("    at {name}:{line}:{column}"));
        assert!(thrown.during_load && !thrown.message.is_empty());
    }
}

/// The parser recurses, and so may the input: what is nested too deeply is refused by the name of the limit, whatever it is
/// nested with, and this process lives.
#[test]
fn what_is_nested_too_deeply_is_refused_by_name() {
    const DEPTH: usize = 100_000;
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("a<", ">"),
        ("!", ""),
        ("a?", ""),
        ("<a>", "</a>"),
    ] {
        let source = format!("x = {}1{}", open.repeat(DEPTH), close.repeat(DEPTH));
        let (outcome, _) = transpile_within("a.tsx", &source, PLENTY, 1 << 30);
        match outcome.unwrap() {
            Outcome::Threw(thrown) if thrown.name == "RangeError" => {
                assert!(
                    thrown.message.contains("transpiler_stack_bytes"),
                    "{open}: {thrown:?}"
                );
                assert_eq!(thrown.module, "a.tsx");
            }
            // What is no expression ends before it is deep.
            Outcome::Threw(thrown) => assert_eq!(thrown.name, "SyntaxError", "{open}"),
            Outcome::Load(_) => panic!("{open} should not have been taken"),
        }
    }
    let nested = format!("x = {}1{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(code_of("a.ts", &nested).0, nested);
}

/// Fuel and memory are the worker's own, and what is too much ends by their names.
#[test]
fn fuel_and_memory_are_limits() {
    let source = "const a: number = 1;\n".repeat(10_000);
    let (outcome, burnt) = transpile_within("a.ts", &source, 1_000_000, 1 << 30);
    let error = outcome.err().unwrap();
    assert_eq!(error.downcast_ref(), Some(&Trap::OutOfFuel));
    assert_eq!(burnt, 1_000_000);
    let (outcome, _) = transpile_within("a.ts", &source, PLENTY, 4 << 20);
    let error = outcome.err().unwrap();
    let stop: &Stop = error.downcast_ref().unwrap();
    assert_eq!((stop.limit_name, stop.limit), ("memory_bytes_max", 4 << 20));
}

/// The same module takes the same fuel, however often.
#[test]
fn fuel_is_deterministic() {
    let source = "enum A { B }\nclass C<T> { d: T; constructor(private e: A) {} }\n".repeat(50);
    let fuel = |_| transpile_within("a.ts", &source, PLENTY, 1 << 30).1;
    let burnt: Vec<u64> = (0..3).map(fuel).collect();
    assert!(
        burnt[0] > 0 && burnt.iter().all(|it| *it == burnt[0]),
        "{burnt:?}"
    );
}

/// As much source as a worker may have is no trouble, where its limits allow for it.
#[test]
fn ten_mebibytes_are_transpiled() {
    let line = "export function f(a: number, b?: string): void { return a as any; } // é\n";
    let source = line.repeat((10 << 20) / line.len());
    let source = source.replace("export function f", "function f");
    let (text, mappings) = code_of("a.ts", &source);
    assert!(mappings.is_empty());
    assert_eq!(text.lines().count(), source.lines().count());
    assert!(
        text.starts_with("function f(a        , b         )       { return a       ; } // é\n")
    );
}

/// Another module in the transpiler's place, whose `transpile` does this with a memory that starts with those bytes.
fn stand_in(body: &str, bytes: &[u8]) -> Result<Transpiler> {
    let data: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (data (i32.const 0) "{data}")
            (func (export "allocate") (param i32) (result i32) (i32.const 32768))
            (func $again (result i64) (call $again))
            (func (export "transpile") (param i32 i32) (result i64) {body}))"#
    );
    let module = Module::new(&SANDBOX.engine, wat::parse_str(&text).unwrap())?;
    Transpiler::new(&SANDBOX.engine, &module)
}

/// The transpiler is taken for broken: whatever it does or says is an error of that load, and nothing worse.
#[test]
fn nothing_that_a_broken_transpiler_does_harms_the_host() {
    let answer = minicbor::to_vec(Transpiled::Code {
        text: "let a",
        mappings: "",
    })
    .unwrap();
    let length = answer.len();
    let run = |body: &str, bytes: &[u8]| {
        let transpiler = stand_in(body, bytes).unwrap();
        transpile_with(&transpiler, "a.ts", "let a: T", 1_000_000, 1 << 20).0
    };
    // One that is honest, to show that the others are told apart.
    let Outcome::Load(load) = run(&format!("(i64.const {length})"), &answer).unwrap() else {
        panic!("it answers");
    };
    let load: abi::Load<'_> = minicbor::decode(&load).unwrap();
    assert_eq!(&load.modules[0].body[..], b"let a");

    for (body, bytes, expected) in [
        ("(i64.const -1)", &answer[..], "outside of its memory"),
        ("(i64.const 0x1_0000_0001)", &answer, ""),
        ("(i64.const 3)", &answer, ""),
        ("(i64.const 4)", b"\x82\x07\x01\x02", ""),
        ("unreachable", b"", "unreachable"),
        ("(loop (br 0)) (i64.const 0)", b"", "fuel"),
        (
            "(drop (memory.grow (i32.const 100))) (i64.const 0)",
            b"",
            "memory",
        ),
    ] {
        let error = run(body, bytes).err().unwrap_or_else(|| panic!("{body}"));
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{body}: {error}");
    }
    for body in ["(call $again)", "(i64.load (i32.const -8))"] {
        let Outcome::Threw(thrown) = run(body, b"").unwrap() else {
            panic!("{body} is an overflow");
        };
        assert_eq!(thrown.name, "RangeError");
    }
}

/// It can reach nothing: one that imports anything is no transpiler.
#[test]
fn a_transpiler_that_imports_something_is_refused() {
    let text = r#"(module (import "coracle" "start" (func)) (memory (export "memory") 1))"#;
    let module = Module::new(&SANDBOX.engine, wat::parse_str(text).unwrap()).unwrap();
    assert!(Transpiler::new(&SANDBOX.engine, &module).is_err());
}

mod programs;
