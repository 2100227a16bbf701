//! What a client is told of its mistakes: code, names and sizes that are wrong.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    PATIENCE, Server, answer, class, client, load, module, threw, value, verdict, within,
};
use coracle_client::{Error, Limits, ModuleBody, Outcome, Thrown, Value, WorkerCode, args};

/// What the first call of a worker ends with.
async fn first_call(code: WorkerCode) -> Outcome {
    let server = Server::start();
    let coracle = client(server.address()).await;
    answer(&coracle.load(code).entrypoint("default"), "run", args![])
        .await
        .outcome
}

/// What keeps a worker from being loaded.
async fn load_error(code: WorkerCode) -> String {
    let server = Server::start();
    let coracle = client(server.address()).await;
    match within(PATIENCE, "ready", coracle.load(code).ready()).await {
        Err(Error::Failed(text)) => text,
        other => panic!("it should not have been loaded: {other:?}"),
    }
}

#[track_caller]
fn thrown(outcome: Outcome) -> Thrown {
    match outcome {
        Outcome::Threw(thrown) => *thrown,
        other => panic!("an exception was expected, not {other:?}"),
    }
}

#[tokio::test]
async fn a_module_that_does_not_parse_is_an_exception_with_its_place() {
    let thrown = thrown(first_call(module("export default {\n  run() { return 1 +; }\n}")).await);
    assert_eq!(
        (&thrown.name[..], thrown.during_load),
        ("SyntaxError", true)
    );
    assert_eq!(
        (&thrown.module[..], thrown.line),
        ("main.js", 2),
        "{thrown:?}"
    );
    assert!(thrown.column > 0, "{thrown:?}");
}

#[tokio::test]
async fn an_import_of_nothing_names_what_is_missing() {
    let thrown = thrown(first_call(module("import './missing.js';\nexport default {}")).await);
    assert!(thrown.during_load, "{thrown:?}");
    assert!(thrown.message.contains("missing.js"), "{thrown:?}");
}

#[tokio::test]
async fn a_module_may_import_itself() {
    let source = format!(
        "import * as self from './main.js'; export const n = 7;\n{}",
        class("run() { return self.n; }")
    );
    assert_eq!(
        first_call(module(&source)).await,
        Outcome::Value(Value::from(7))
    );
}

#[tokio::test]
async fn a_module_that_throws_is_an_exception_of_the_first_call_and_of_ready() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = coracle.load(module("throw new TypeError('not today');"));
    let ready = within(PATIENCE, "ready", worker.ready()).await.unwrap();
    assert_eq!(threw(&ready), ("TypeError", "not today"));
    assert_eq!(
        threw(&answer(&worker.entrypoint("default"), "run", args![]).await),
        ("TypeError", "not today")
    );
}

#[tokio::test]
async fn a_missing_main_module_is_refused_with_the_names_that_there_are() {
    let text =
        load_error(WorkerCode::new("mian.js").es_module("main.js", "export default {}")).await;
    assert!(
        text.contains("No such module: mian.js") && text.contains("main.js"),
        "{text}"
    );
}

#[tokio::test]
async fn all_that_is_wrong_with_a_worker_is_told_at_once() {
    let code = WorkerCode {
        compatibility_date: "yesterday".into(),
        compatibility_flags: vec!["warp_drive".into()],
        main_module: "main.js".into(),
        modules: vec![
            ("data.json".into(), ModuleBody::Json("{".into())),
            ("data.json".into(), ModuleBody::Text(String::new())),
            ("node:fs".into(), ModuleBody::Text(String::new())),
            ("".into(), ModuleBody::Text(String::new())),
        ],
        env: Value::from(7),
        ..WorkerCode::default()
    };
    let text = load_error(code).await;
    for problem in [
        "/compatibilityDate",
        "/compatibilityFlags",
        "No such module: main.js",
        "\"data.json\" is not valid JSON",
        "\"data.json\" is used more than once",
        "\"node:fs\" is reserved",
        "\"\" is empty",
        "/env",
    ] {
        assert!(text.contains(problem), "{problem:?} is not in:\n{text}");
    }
}

#[tokio::test]
async fn code_over_its_limit_is_refused_and_code_at_the_limit_is_not() {
    const CODE_BYTES_MAX: usize = 10 * 1024 * 1024;
    let source = |bytes: usize| {
        let code = format!("{} //", class("run() { return 1; }"));
        format!("{code}{}", "x".repeat(bytes - code.len()))
    };
    assert_eq!(
        first_call(module(&source(CODE_BYTES_MAX))).await,
        Outcome::Value(Value::from(1))
    );
    let text = load_error(module(&source(CODE_BYTES_MAX + 1))).await;
    assert!(
        text.contains("10485761 bytes") && text.contains("code_bytes_max"),
        "{text}"
    );
}

#[tokio::test]
async fn an_env_over_its_limit_is_refused() {
    let text =
        load_error(module("export default {}").env(object("text", "x".repeat(1024 * 1024 + 1))))
            .await;
    assert!(
        text.contains("env size") && text.contains("1048576"),
        "{text}"
    );
}

fn object(name: &str, value: impl Into<Value>) -> Value {
    Value::Object(vec![(name.into(), value.into())])
}

#[tokio::test]
async fn an_entrypoint_that_is_not_exported_is_an_exception() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = coracle.load(module("export const there = { run(_) { return 1; } }"));
    assert_eq!(
        value(answer(&worker.entrypoint("there"), "run", args![0]).await),
        Value::from(1)
    );
    let elsewhere = answer(&worker.entrypoint("elsewhere"), "run", args![0]).await;
    let (name, message) = threw(&elsewhere);
    assert!(message.contains("elsewhere"), "{name}: {message}");
}

#[tokio::test]
async fn a_method_that_there_is_not_is_an_exception() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, "run() { return 1; }");
    let answer = answer(&entrypoint, "walk", args![]).await;
    let expected = "The RPC receiver does not implement the method \"walk\".";
    assert_eq!(threw(&answer), ("TypeError", expected));
}

#[tokio::test]
async fn arguments_and_results_over_their_limits_are_verdicts() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let limits = Limits {
        args_bytes_max: 1_000,
        result_bytes_max: 2_000,
        ..Limits::default()
    };
    let methods = "twice(text) { return text + text; } thrice(text) { return text + text + text; }";
    let entrypoint = coracle
        .load(module(&class(methods)).limits(limits))
        .entrypoint("default");

    let fits = "x".repeat(900);
    assert_eq!(
        value(answer(&entrypoint, "twice", args![&fits[..]]).await),
        Value::from(fits.repeat(2))
    );
    let too_large = answer(&entrypoint, "twice", args!["x".repeat(1_001)]).await;
    assert_eq!(verdict(&too_large), ("args_size", "args_bytes_max"));
    let result = answer(&entrypoint, "thrice", args![&fits[..]]).await;
    assert_eq!(verdict(&result), ("result_size", "result_bytes_max"));
    let Outcome::Verdict(verdict) = too_large.outcome else {
        unreachable!()
    };
    assert!(
        !verdict.started && verdict.used > 1_000 && verdict.limit == 1_000,
        "{verdict:?}"
    );
}

#[tokio::test]
async fn a_value_nested_too_deep_never_reaches_a_parser_that_recurses() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, "run(value) { return 1; }");
    let mut deep = Value::Null;
    for _ in 0..600 {
        deep = Value::Array(vec![deep]);
    }
    let answer = answer(&entrypoint, "run", vec![deep]).await;
    assert_eq!(verdict(&answer), ("value_depth", "value_depth_max"));
}

#[tokio::test]
async fn the_lower_of_two_limits_holds() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    for (of_worker, of_entrypoint) in [(50, 10), (10, 50), (10, 0), (0, 10)] {
        let limits = |cpu_ms_max| Limits {
            cpu_ms_max,
            ..Limits::default()
        };
        let worker = coracle.load(module(&class("run() { for (;;); }")).limits(limits(of_worker)));
        let options = coracle_client::EntrypointOptions {
            limits: limits(of_entrypoint),
            ..Default::default()
        };
        let answer = answer(&worker.entrypoint_with("default", options), "run", args![]).await;
        assert_eq!(verdict(&answer), ("cpu", "cpu_ms_max"));
        let Outcome::Verdict(verdict) = answer.outcome else {
            unreachable!()
        };
        assert_eq!(
            verdict.limit, 10,
            "worker {of_worker}, entrypoint {of_entrypoint}"
        );
    }
}
