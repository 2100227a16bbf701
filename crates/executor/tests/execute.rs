//! Programs with tools of this process, in sandboxes of this process.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use coracle_client::{Coracle, ModuleBody};
use coracle_codemode::{Limits, Schema, ToolPolicyConfig, ToolSchemas};
use coracle_executor::{
    CallStatus, ErrorCode, ExecuteOptions, Execution, Executor, Namespace, Output, Provider,
    ToolError, ToolInfo, Toolbox,
};
use coracle_isolate::Machine;
use coracle_server::ServerConfig;
use futures::future::BoxFuture;
use serde_json::{Value as Json, json};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Tools that do what their names say.
#[derive(Default)]
struct Kit {
    underway: AtomicUsize,
    underway_max: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

const TOOLS: [&str; 8] = [
    "echo",
    "add",
    "fail",
    "nap",
    "bytes",
    "large",
    "delete-all",
    "never",
];

impl Provider for Kit {
    fn tools(&self) -> Vec<ToolInfo> {
        let tools = TOOLS.map(|name| ToolInfo {
            name: name.into(),
            description: format!("Does {name}."),
            parameters: Vec::new(),
        });
        tools.into()
    }

    fn schemas(&self, tool: &str) -> Result<ToolSchemas, String> {
        let number = json!({"type": "number"});
        let schema = match tool {
            "add" => json!({
                "type": "object",
                "properties": {"a": number, "b": number},
                "required": ["a", "b"],
                "additionalProperties": false,
            }),
            _ => return Ok(ToolSchemas::default()),
        };
        let input = Schema::new(schema, &Limits::default()).map_err(|error| error.to_string())?;
        Ok(ToolSchemas {
            input: Some(input),
            ..ToolSchemas::default()
        })
    }

    fn call(&self, tool: &str, arguments: Json) -> BoxFuture<'static, Result<Output, ToolError>> {
        let answer = match tool {
            "echo" | "delete-all" => Ok(Output::Json(arguments)),
            "add" => {
                let number = |name: &str| arguments[name].as_f64().unwrap();
                Ok(Output::Json((number("a") + number("b")).into()))
            }
            "bytes" => Ok(Output::Bytes(vec![1, 2, 3])),
            "large" => Ok(Output::Json("x".repeat(5_000_000).into())),
            "fail" => Err(ToolError::new("tool_failed", "it does not work")),
            _ => Ok(Output::Json(Json::Null)),
        };
        let wait = match tool {
            "nap" => Duration::from_millis(50),
            "never" => Duration::from_secs(3_600),
            _ => return Box::pin(std::future::ready(answer)),
        };
        let underway = self.underway.fetch_add(1, Ordering::SeqCst) + 1;
        self.underway_max.fetch_max(underway, Ordering::SeqCst);
        let done = Arc::clone(&self.done);
        // The count of those that are underway goes down by the test's own clock only: the limit is what holds it.
        let sleep = tokio::time::sleep(wait);
        Box::pin(async move {
            sleep.await;
            done.fetch_add(1, Ordering::SeqCst);
            answer
        })
    }
}

struct Bench {
    executor: Executor,
    toolbox: Arc<Toolbox>,
    done: Arc<AtomicUsize>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(None, Limits::default()).await
    }

    async fn with(policy: Option<Json>, limits: Limits) -> Self {
        let mut config = ServerConfig::for_machine(&Machine::read());
        config.cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
        config.core.isolates_max = 64;
        let coracle = Coracle::embedded(config).await.unwrap();
        let kit = Kit::default();
        let done = Arc::clone(&kit.done);
        let namespace = Namespace {
            name: "kit".into(),
            provider: Arc::new(kit),
        };
        let policy =
            policy.map(|policy| serde_json::from_value::<ToolPolicyConfig>(policy).unwrap());
        Self {
            executor: Executor::new(coracle),
            toolbox: Arc::new(Toolbox::new(vec![namespace], policy, limits).unwrap()),
            done,
        }
    }

    async fn run(&self, code: &str) -> Execution {
        self.run_with(code, &ExecuteOptions::default()).await
    }

    async fn run_with(&self, code: &str, options: &ExecuteOptions) -> Execution {
        self.executor.execute(code, &self.toolbox, options).await
    }

    async fn result(&self, code: &str) -> Json {
        let execution = self.run(code).await;
        assert_eq!(execution.error, None, "{code}");
        execution.result
    }

    async fn error(&self, code: &str) -> coracle_executor::ExecutionError {
        let execution = self.run(code).await;
        execution
            .error
            .unwrap_or_else(|| panic!("{code}: {:?}", execution.result))
    }
}

#[tokio::test]
async fn a_program_calls_tools_and_its_result_comes_back() {
    let bench = Bench::new().await;
    let execution = bench
        .run("```ts\nconst sum: number = await kit.add({ a: 1, b: 2 });\nconsole.log('sum', sum);\n({ sum, at: new Date(0) })\n```")
        .await;
    assert_eq!(execution.error, None);
    assert_eq!(
        execution.result,
        json!({"sum": 3, "at": "1970-01-01T00:00:00.000Z"})
    );
    assert_eq!(execution.logs[0].message, "sum 3");
    let [call] = &execution.calls[..] else {
        panic!("{:?}", execution.calls);
    };
    assert_eq!((&call.tool[..], call.status), ("kit.add", CallStatus::Ok));
    assert!(
        !call.unawaited && call.arguments_bytes == 13 && call.result_bytes == 3,
        "{call:?}"
    );
    assert!(execution.usage.fuel_run > 0 && execution.truncated.is_none());
    let document = execution.to_json();
    assert_eq!(document["calls"][0]["status"], "ok");
    assert_eq!(document["error"], Json::Null);
}

/// Each run is in a sandbox of its own.
#[tokio::test]
async fn nothing_of_one_run_is_in_another() {
    let bench = Bench::new().await;
    assert_eq!(bench.result("globalThis.left = 1; left").await, 1);
    assert_eq!(bench.result("typeof left").await, "undefined");
}

/// What goes through and comes back is what it was.
#[tokio::test]
async fn values_pass_both_ways() {
    let bench = Bench::new().await;
    let table = [
        ("await kit.echo()", json!({})),
        (
            "await kit.echo({ a: [1, null, 'é'], b: undefined })",
            json!({"a": [1, null, "é"]}),
        ),
        (
            "const a = [1]; await kit.echo({ a, b: a })",
            json!({"a": [1], "b": [1]}),
        ),
        (
            "await kit.echo({ a: new Map([['b', new Set([1])]]) })",
            json!({"a": {"b": [1]}}),
        ),
        (
            "await kit.echo({ a: new Uint8Array([1]) })",
            json!({"a": {"$bytes": "AQ=="}}),
        ),
        (
            "const b = await kit.bytes(); [b instanceof Uint8Array, ...b]",
            json!([true, 1, 2, 3]),
        ),
        ("123n", json!("123")),
        ("undefined", json!(null)),
        // Promises that were forgotten in a result are waited for.
        (
            "({ a: kit.add({ a: 1, b: 1 }), b: [Promise.resolve(2)] })",
            json!({"a": 2, "b": [2]}),
        ),
        (
            "[kit.add({ a: 1, b: 1 }), kit.add({ a: 2, b: 2 })]",
            json!([2, 4]),
        ),
        // What the language looks for in an object is no tool.
        ("await kit === kit", json!(true)),
        (
            "[typeof kit.then, typeof kit.toJSON, typeof kit[Symbol.iterator], 'echo' in kit]",
            json!(["undefined", "undefined", "undefined", true]),
        ),
        ("Object.keys(kit).length", json!(8)),
        ("kit.delete_all({ a: 1 })", json!({"a": 1})),
    ];
    for (code, expected) in table {
        assert_eq!(bench.result(code).await, expected, "{code}");
    }
}

/// Whatever is thrown, there is an error, with name, message, and the program's own line.
#[tokio::test]
async fn errors_are_told_with_their_place() {
    use ErrorCode::{Exception, ResultInvalid, SyntaxError, ToolError};
    let bench = Bench::new().await;
    let table = [
        (
            "throw new RangeError('far')",
            Exception,
            "RangeError",
            "far",
            (1, 11),
        ),
        (
            "const a = null;\na.b",
            Exception,
            "TypeError",
            "null",
            (2, 1),
        ),
        ("throw 'boom'", Exception, "", "boom", (0, 0)),
        ("throw null", Exception, "", "null", (0, 0)),
        ("throw new Error('')", Exception, "Error", "", (1, 11)),
        ("throw { code: 5 }", Exception, "", "", (0, 0)),
        ("const a = ;", SyntaxError, "SyntaxError", "", (1, 11)),
        (
            "const a = 1;\nawait kit.fail()",
            ToolError,
            "ToolError",
            "it does not work",
            (2, 11),
        ),
        (
            "await kit.add({ a: 1 })",
            ToolError,
            "ToolError",
            "input.b is missing",
            (1, 11),
        ),
        (
            "await kit.ecko({})",
            ToolError,
            "ToolError",
            "did you mean kit.echo?",
            (1, 11),
        ),
        (
            "await kit.add(1, 2)",
            Exception,
            "TypeError",
            "takes one argument",
            (1, 11),
        ),
        (
            "await kit.echo({ a: () => 1 })",
            ToolError,
            "ToolError",
            "input.a is a function",
            (1, 11),
        ),
        (
            "kit.echo = 1",
            Exception,
            "TypeError",
            "can't be changed",
            (1, 1),
        ),
        (
            "({ a: { b: () => 1 } })",
            Exception,
            "TypeError",
            "result.a.b is a function",
            (0, 0),
        ),
        (
            "const a = {}; a.b = a; a",
            ResultInvalid,
            "TypeError",
            "result.b refers to what it is in",
            (0, 0),
        ),
        (
            "import a from './nowhere.js'; a",
            Exception,
            "",
            "nowhere",
            (1, 1),
        ),
    ];
    let mut wrong = Vec::new();
    for (code, kind, name, message, place) in table {
        let error = bench.error(code).await;
        let is_place =
            place == (0, 0) || place == (error.line, error.column) || code.contains("nowhere");
        let is_name = name.is_empty() || error.name == name;
        if error.code != kind || !is_name || !error.message.contains(message) || !is_place {
            wrong.push(format!("{code}: {error:?}"));
        }
        assert!(!error.stack.contains("executor.js"), "{error:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A program can catch what a tool throws, and tell it apart.
#[tokio::test]
async fn errors_of_tools_can_be_caught() {
    let bench = Bench::new().await;
    let code = "try { await kit.fail() } catch (e) { return [e instanceof Error, e.name, e.code, e.message] }";
    let expected = json!([true, "ToolError", "tool_failed", "it does not work"]);
    assert_eq!(bench.result(code).await, expected);
    let code = "const all = await Promise.allSettled([kit.fail(), kit.add({ a: 'x', b: 1 })]); all.map((one) => one.reason.code)";
    assert_eq!(
        bench.result(code).await,
        json!(["tool_failed", "arguments_invalid"])
    );
}

/// A policy hides what it denies, refuses what would need somebody to ask, and counts.
#[tokio::test]
async fn a_policy_decides() {
    let policy = json!({
        "default": "allow",
        "rules": [{"deny": ["kit.delete*"]}, {"ask": ["kit.nap"]}],
        "budgets": {"tools": [{"tools": ["kit.echo"], "calls_max": 2}]},
    });
    let bench = Bench::with(Some(policy), Limits::default()).await;
    let error = bench.error("await kit.delete_all()").await;
    assert_eq!(error.tool_code, "tool_missing");
    assert_eq!(bench.result("'delete_all' in kit").await, false);
    assert_eq!(bench.toolbox.search("delete", 0).total, 0);
    let error = bench.error("await kit.nap()").await;
    assert_eq!(error.tool_code, "tool_needs_approval");
    assert!(error.message.contains("kit.nap"), "{error:?}");
    let error = bench
        .error("await kit.echo(); await kit.echo(); await kit.echo()")
        .await;
    assert_eq!(error.tool_code, "calls_too_many");
    // Another run has a budget of its own.
    assert_eq!(bench.result("await kit.echo()").await, json!({}));
}

/// Calls run at once up to the limit, and the others have their turn after them.
#[tokio::test]
async fn calls_are_concurrent_up_to_a_limit_and_queued_beyond_it() {
    let limits = Limits {
        calls_in_flight_max: 4,
        ..Limits::default()
    };
    let bench = Bench::with(None, limits).await;
    let begun = std::time::Instant::now();
    let execution = bench
        .run("await Promise.all(Array.from({ length: 12 }, () => kit.nap()))")
        .await;
    assert_eq!(execution.error, None);
    assert_eq!(bench.done.load(Ordering::SeqCst), 12);
    // Three rounds of 50 ms: more than two, as no more than four are underway.
    assert!(
        begun.elapsed() >= Duration::from_millis(150),
        "{:?}",
        begun.elapsed()
    );
    let queued = |least: u64| {
        execution
            .calls
            .iter()
            .filter(|call| call.queued_micros >= least)
            .count()
    };
    assert_eq!(queued(40_000), 8, "{:?}", execution.calls);
}

/// What a program did not wait for ends all the same, and is told of.
#[tokio::test]
async fn calls_that_were_not_awaited_are_reported() {
    let limits = Limits {
        unawaited_ms_max: 300,
        ..Limits::default()
    };
    let bench = Bench::with(None, limits).await;
    let execution = bench
        .run("await kit.echo(); kit.nap(); kit.never(); 'done'")
        .await;
    assert_eq!(
        (execution.error.clone(), execution.result.clone()),
        (None, json!("done"))
    );
    let unawaited: Vec<_> = execution
        .unawaited()
        .map(|call| (&call.tool[..], call.status))
        .collect();
    assert_eq!(
        unawaited,
        [
            ("kit.nap", CallStatus::Ok),
            ("kit.never", CallStatus::Unfinished)
        ]
    );
    assert_eq!(bench.done.load(Ordering::SeqCst), 1);
    let execution = bench.run("kit.nap(); throw new Error('early')").await;
    assert_eq!(execution.error.as_ref().unwrap().message, "early");
    assert_eq!(execution.unawaited().count(), 1);
}

/// Limits stop a program by their names, and what it has written is told.
#[tokio::test]
async fn limits_are_named() {
    let bench = Bench::new().await;
    let limits = coracle_client::Limits {
        wall_ms_max: 2_000,
        cpu_ms_max: 100,
        memory_bytes_max: 16 << 20,
        ..coracle_client::Limits::default()
    };
    let options = ExecuteOptions {
        limits,
        ..ExecuteOptions::default()
    };
    let table = [
        (
            "console.log('here'); while (true) {}",
            ErrorCode::CpuLimit,
            "cpu_ms_max",
        ),
        (
            "console.log('here'); const a = []; while (true) a.push(new Uint8Array(1 << 20).fill(1))",
            ErrorCode::MemoryLimit,
            "memory_bytes_max",
        ),
        (
            "console.log('here'); await kit.never()",
            ErrorCode::Timeout,
            "wall_ms_max",
        ),
        (
            "console.log('here'); await new Promise(() => {})",
            ErrorCode::PendingPromise,
            "",
        ),
    ];
    for (code, kind, limit) in table {
        let execution = bench.run_with(code, &options).await;
        let error = execution.error.unwrap();
        assert_eq!(
            (error.code, &error.limit[..]),
            (kind, limit),
            "{code}: {error:?}"
        );
        assert!(error.message.contains(limit), "{error:?}");
        assert_eq!(execution.logs[0].message, "here", "{code}");
    }
}

/// Those of Code Mode are named too.
#[tokio::test]
async fn limits_on_what_passes_are_named() {
    let limits = Limits {
        program_chars_max: 200,
        calls_max: 5,
        call_arguments_bytes_max: 100,
        ..Limits::default()
    };
    let bench = Bench::with(None, limits).await;
    let error = bench.error(&format!("{}1", " ".repeat(200))).await;
    assert_eq!(
        (error.code, &error.limit[..]),
        (ErrorCode::Limit, "program_chars_max")
    );
    for (code, limit) in [
        (
            "await kit.echo({ a: 'x'.repeat(100) })",
            "call_arguments_bytes_max",
        ),
        ("await kit.large()", "call_result_bytes_max"),
        ("for (let i = 0; i < 6; i++) await kit.echo()", "calls_max"),
    ] {
        let error = bench.error(code).await;
        assert_eq!(
            (error.code, &error.tool_code[..]),
            (ErrorCode::ToolError, "limit"),
            "{error:?}"
        );
        assert!(error.message.contains(limit), "{error:?}");
    }
    // A flood is answered, not recorded.
    let execution = bench
        .run("let n = 0; for (let i = 0; i < 200; i++) await kit.echo().catch(() => n++); n")
        .await;
    assert_eq!((execution.result, execution.calls.len()), (json!(195), 5));
}

/// A result is shown within its bound, is valid, and the whole is kept.
#[tokio::test]
async fn results_are_shown_within_their_bound() {
    let limits = Limits::article();
    let bench = Bench::with(None, limits).await;
    let execution = bench
        .run("({ items: Array.from({ length: 5000 }, (_, id) => ({ id })), ok: true })")
        .await;
    let truncated = execution.truncated.unwrap();
    assert!(
        truncated.chars <= 12_000 && truncated.chars_whole > 40_000,
        "{truncated:?}"
    );
    assert_eq!(execution.result["ok"], true);
    assert_eq!(execution.result["items"][0], json!({"id": 0}));
    assert_eq!(
        execution.result_whole["items"].as_array().unwrap().len(),
        5000
    );
    assert!(execution.result.to_string().chars().count() <= 12_000);
}

/// Modules can be given along, and have names of their own.
#[tokio::test]
async fn modules_can_be_imported() {
    let bench = Bench::new().await;
    let module = |name: &str| ExecuteOptions {
        modules: vec![(
            name.into(),
            ModuleBody::EsModule("export const seven = 7;".into()),
        )],
        ..ExecuteOptions::default()
    };
    let code = "import { seven } from './lib.js';\nseven * 6";
    assert_eq!(bench.run_with(code, &module("lib.js")).await.result, 42);
    let error = bench
        .run_with("1", &module("executor.js"))
        .await
        .error
        .unwrap();
    assert!(error.message.contains("executor.js"), "{error:?}");
}

/// A program that breaks what it can reach breaks its own run at most.
#[tokio::test]
async fn hostile_programs_harm_themselves() {
    let bench = Bench::new().await;
    for code in [
        "Promise.prototype.then = null; await kit.echo()",
        "Array.prototype.push = () => { throw 1 }; Object.defineProperty = null; [1]",
        "globalThis.kit = 1",
        "kit.__proto__.x = 1",
        "delete globalThis.kit",
        "await kit['x'.repeat(1e6)]()",
        "const p = {}; let q = p; for (let i = 0; i < 300; i++) { q.q = {}; q = q.q } await kit.echo(p)",
        "Map.prototype.get = () => 1; Set.prototype.has = () => true; await kit.echo()",
    ] {
        let _ = bench.run(code).await;
        assert_eq!(
            bench.result("await kit.add({ a: 1, b: 1 })").await,
            2,
            "{code}"
        );
    }
}
