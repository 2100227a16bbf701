//! TypeScript and JSX, and code that something has generated: they run, and errors name the places that people know.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use base64::{Engine, prelude::BASE64_STANDARD};
use coracle_client::{Coracle, ModuleBody, Outcome, Payload, Thrown, Value, WorkerCode, args};
use std::process::{Command, Output};
use support::{PATIENCE, Server, answer, client, load, value, verdict, within};

/// The first call's end.
async fn run(coracle: &Coracle, code: WorkerCode) -> Outcome {
    let entrypoint = coracle.load(code).entrypoint("default");
    // One argument, as handlers that are no class get.
    let argument = args![Value::Undefined];
    answer(&entrypoint, "run", argument).await.outcome
}

async fn thrown(coracle: &Coracle, code: WorkerCode) -> Thrown {
    match run(coracle, code).await {
        Outcome::Threw(thrown) => *thrown,
        other => panic!("an exception was expected, not {other:?}"),
    }
}

fn place(thrown: &Thrown) -> (&str, u32, u32) {
    (&thrown.module, thrown.line, thrown.column)
}

const AGENT: &str = "\
import { WorkerEntrypoint } from 'cloudflare:workers';
import type { Env } from './env.ts';
import { double } from './lib/double.mts';

interface Task {
  id: number;
}

export default class extends WorkerEntrypoint<Env> {
  private tasks: Task[] = [{ id: 21 }];

  async run(): Promise<number> {
    return double(this.tasks[0]!.id) as number;
  }

  fail(task: Task | null): never {
    const message: string = `no ${(task as any)?.id}`; throw new TypeError('no task: ' + message);
  }
}
";

fn agent() -> WorkerCode {
    WorkerCode::new("agent.ts")
        .es_module("agent.ts", AGENT)
        .es_module(
            "lib/double.mts",
            "export const double = <T extends number>(n: T): number => n * 2;",
        )
}

/// Types are taken away, an import of nothing but types is none, and an error is where the author has it.
#[tokio::test]
async fn typescript_runs_and_its_errors_name_the_authors_line_and_column() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = coracle.load(agent()).entrypoint("default");
    assert_eq!(
        value(answer(&entrypoint, "run", args![]).await),
        Value::from(42)
    );
    let Outcome::Threw(thrown) = answer(&entrypoint, "fail", args![Value::Null])
        .await
        .outcome
    else {
        panic!("it throws");
    };
    assert_eq!(
        (&thrown.name[..], &thrown.message[..]),
        ("TypeError", "no task: no undefined")
    );
    let line = AGENT.lines().nth(16).unwrap();
    // Of a `new`, the engine remembers what it read last before it, in JavaScript as well.
    let column = line.rfind("message").unwrap() as u32 + 1;
    assert_eq!(place(&thrown), ("agent.ts", 17, column), "{thrown:?}");
}

/// What needs code gets it: enums, namespaces, parameter properties, JSX; and places are mapped back.
#[tokio::test]
async fn what_needs_code_runs_and_its_errors_are_mapped_back() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source = "\
enum Colour { Red, Green = 'g' }

namespace Words { export const one: string = 'one'; }

class Box { constructor(readonly colour: Colour) {} }

export default {
  run(): unknown {
    const all = [Colour.Red, Colour[0], new Box(Colour.Green).colour, Words.one];
    if (all.length === 4) throw new RangeError(all.join());
  },
};
";
    let code = WorkerCode::new("main.ts").es_module("main.ts", source);
    let failed = thrown(&coracle, code).await;
    assert_eq!(failed.message, "0,Red,g,one");
    assert_eq!(
        (&failed.module[..], failed.line),
        ("main.ts", 10),
        "{failed:?}"
    );

    let source = "\
const React = { createElement: (type, props, ...children) => ({ type, ...props, children }) };

export default {
  run() {
    const tree = <a b={1}>text<c/></a>;
    throw new Error(JSON.stringify(tree));
  },
};
";
    let expected = r#"{"type":"a","b":1,"children":["text",{"type":"c","children":[]}]}"#;
    for name in ["main.jsx", "main.tsx"] {
        let failed = thrown(&coracle, WorkerCode::new(name).es_module(name, source)).await;
        assert_eq!(failed.message, expected);
        assert_eq!((&failed.module[..], failed.line), (name, 6), "{failed:?}");
    }
}

/// What can't be read is the first call's exception, with its place, as it is for JavaScript.
#[tokio::test]
async fn a_syntax_error_names_module_line_and_column() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let code = agent().es_module("extra.tsx", "const a: number = 1;\nlet b: = <c/>;\n");
    let failed = thrown(&coracle, code).await;
    assert_eq!(
        (&failed.name[..], failed.during_load),
        ("SyntaxError", true)
    );
    assert_eq!(place(&failed), ("extra.tsx", 2, 8), "{failed:?}");
}

/// Where generated code comes from, as a bundler writes it: line 2 of the bundle is line 5 of the source.
const MAP: &str = r#"{"version":3,"sourceRoot":"","sources":["../src/agent.ts"],"sourcesContent":["// one\n// two\nexport default {\n  run(): never {\n    throw new Error(`no`);\n  },\n};\n"],"names":[],"mappings":";AAIU,cAAM"}"#;
const BUNDLE: &str = "export default { run() {\nthrow new Error(`no`); } };\n";

/// A source map is honoured, inline and as a module of the worker, in the place and in the stack that the worker sees.
#[tokio::test]
async fn the_stack_of_bundled_code_names_its_sources() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let data = BASE64_STANDARD.encode(MAP);
    let inline =
        format!("{BUNDLE}//# sourceMappingURL=data:application/json;charset=utf-8;base64,{data}\n");
    let beside = format!("{BUNDLE}//# sourceMappingURL=main.js.map");
    for code in [
        WorkerCode::new("dist/main.js").es_module("dist/main.js", &inline),
        WorkerCode::new("dist/main.js")
            .es_module("dist/main.js", &beside)
            .module("dist/main.js.map", ModuleBody::Json(MAP.into())),
        WorkerCode::new("dist/main.js")
            .es_module("dist/main.js", &beside)
            .module("dist/main.js.map", ModuleBody::Data(MAP.into())),
    ] {
        let failed = thrown(&coracle, code).await;
        assert_eq!(
            (&failed.module[..], failed.line),
            ("src/agent.ts", 5),
            "{failed:?}"
        );
        assert!(
            failed.stack.contains("at run (src/agent.ts:5:"),
            "{failed:?}"
        );
    }
    // One that is not there, or not to be read, is none.
    for map in [
        "{",
        "[]",
        r#"{"mappings":"!!"}"#,
        r#"{"mappings":";AAIU","sources":[]}"#,
    ] {
        let code = WorkerCode::new("dist/main.js")
            .es_module("dist/main.js", &beside)
            .module("dist/main.js.map", ModuleBody::Text(map.into()));
        let failed = thrown(&coracle, code).await;
        assert_eq!(
            (&failed.module[..], failed.line),
            ("dist/main.js", 2),
            "{map}: {failed:?}"
        );
    }
}

/// Workers that workers load are TypeScript as well.
#[tokio::test]
async fn a_worker_loads_typescript() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let parent = "\
import { WorkerEntrypoint } from 'cloudflare:workers';
export default class extends WorkerEntrypoint {
  async run() {
    const child = this.env.LOADER.load({
      compatibilityDate: '2026-06-01',
      mainModule: 'child.ts',
      modules: { 'child.ts': 'export default { double(n: number): number { return n * 2; } }' },
    });
    return child.getEntrypoint().double(21);
  }
}
";
    let mut env = Payload::default();
    let loader = env.external(&coracle.loader());
    env.value = Value::object([("LOADER", loader)]);
    let code = WorkerCode::new("main.js")
        .es_module("main.js", parent)
        .env(env);
    assert_eq!(run(&coracle, code).await, Outcome::Value(Value::from(42)));
}

/// What is nested too deeply, and what takes too long, ends by the name of its limit, and who is served beside it is not
/// kept waiting.
#[tokio::test]
async fn a_bomb_ends_by_the_name_of_its_limit_beside_a_client_that_is_served() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let other = client(server.address()).await;
    let served = load(&other, "run() { return 1; }");
    assert_eq!(value(answer(&served, "run", args![]).await), Value::from(1));

    let nested = format!(
        "export default {}1{};",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    let long =
        "export default { a: 1 as number };\n// \n".to_owned() + &"f<A>(b as C);\n".repeat(600_000);
    let bombs = async {
        let failed = thrown(&coracle, WorkerCode::new("a.ts").es_module("a.ts", &nested)).await;
        assert_eq!(failed.name, "RangeError");
        assert!(
            failed.message.contains("transpiler_stack_bytes"),
            "{failed:?}"
        );
        let code = WorkerCode::new("a.ts").es_module("a.ts", &long);
        let entrypoint = coracle.load(code).entrypoint("default");
        let stopped = answer(&entrypoint, "run", args![]).await;
        let (_, limit) = verdict(&stopped);
        assert!(
            ["startup_fuel_max", "memory_bytes_max", "cpu_ms_max"].contains(&limit),
            "{limit}"
        );
    };
    let others = async {
        for _ in 0..50 {
            assert_eq!(value(answer(&served, "run", args![]).await), Value::from(1));
        }
    };
    within(PATIENCE * 3, "both", async { tokio::join!(bombs, others) }).await;
}

/// The command line takes TypeScript, and shows the code around an error: the author's, also of a bundle.
#[test]
fn run_and_check_show_the_authors_code() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "agent.ts",
        "interface A { b: string }\n\nexport default { run(a: A): never {\n  throw new Error(a.b as string);\n} };\n",
    );
    let ran = coracle(
        &["run", "agent.ts", "--args", r#"[{"b":"seen"}]"#],
        folder.path(),
    );
    let shown = String::from_utf8_lossy(&ran.stderr);
    assert!(shown.contains("Error: seen"), "{shown}");
    assert!(
        shown.contains("4 |   throw new Error(a.b as string);"),
        "{shown}"
    );

    write("wrong.tsx", "const a = <b>;\n");
    let checked = coracle(&["check", "wrong.tsx"], folder.path());
    let shown = String::from_utf8_lossy(&checked.stderr).into_owned()
        + &String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("SyntaxError") && shown.contains("1 | const a = <b>;"),
        "{shown}"
    );

    let data = BASE64_STANDARD.encode(MAP.replace("../src/", ""));
    write(
        "main.js",
        &format!("{BUNDLE}//# sourceMappingURL=data:application/json;base64,{data}\n"),
    );
    let ran = coracle(&["run", "main.js"], folder.path());
    let shown = String::from_utf8_lossy(&ran.stderr);
    assert!(shown.contains("5 |     throw new Error(`no`);"), "{shown}");
}

fn coracle(arguments: &[&str], folder: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coracle"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}
