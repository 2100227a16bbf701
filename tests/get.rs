//! `Loader.get`: workers by an id, for clients.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Gauges, PATIENCE, Server, answer, client, eventually, module, threw, value,
    wire::{self, Outcome, Wire},
    within,
};
use coracle_client::{
    Coracle, Error, GetOptions, Limits, Payload, Stub, Thrown, Value, WorkerCode, args,
};
use coracle_schema::{code_source, loader};
use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::LocalSet};

const COUNTER: &str = "let n = 0; export default { next(_) { return ++n } }";

/// A source, and how often it was asked.
#[derive(Clone, Default)]
struct Source(Arc<AtomicU32>);

impl Source {
    fn asked(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Gets a worker with this source, and calls its method `next`.
    async fn next(&self, coracle: &Coracle, id: &str, options: GetOptions) -> Value {
        let asked = Arc::clone(&self.0);
        let worker = coracle.get(id, options, move || {
            asked.fetch_add(1, Ordering::Relaxed);
            async { Ok(module(COUNTER)) }
        });
        value(answer(&worker.entrypoint("default"), "next", args![0]).await)
    }
}

fn versioned(fingerprint: &str) -> GetOptions {
    GetOptions {
        fingerprint: fingerprint.into(),
        ..GetOptions::default()
    }
}

fn with_env(env: Payload) -> GetOptions {
    GetOptions {
        env,
        ..GetOptions::default()
    }
}

fn with_data(data: &str) -> GetOptions {
    with_env(Value::object([("data", data)]).into())
}

fn with_stub(stub: &Stub) -> GetOptions {
    let mut env = Payload::default();
    let tool = env.external(stub);
    env.value = Value::object([("TOOL", tool)]);
    with_env(env)
}

#[tokio::test]
async fn the_same_request_gets_the_same_worker_and_another_gets_another() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source = Source::default();
    for (options, expected, asked) in [
        (versioned("1"), 1, 1),
        (versioned("1"), 2, 1),
        (versioned("2"), 1, 2),
        (versioned("1"), 3, 2),
        (with_data("a"), 1, 3),
        (with_data("b"), 1, 4),
        (with_data("a"), 2, 4),
    ] {
        let next = source.next(&coracle, "a", options.clone()).await;
        assert_eq!(
            (next, source.asked()),
            (expected.into(), asked),
            "{options:?}"
        );
    }
    assert_eq!(source.next(&coracle, "b", versioned("1")).await, 1.into());
    let lower = GetOptions {
        limits: Limits {
            cpu_ms_max: 10,
            ..Limits::default()
        },
        ..versioned("1")
    };
    assert_eq!(source.next(&coracle, "a", lower).await, 1.into());
}

#[tokio::test]
async fn logins_of_a_tenant_share_what_holds_no_capability() {
    let server = Server::start();
    let (one, other) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let source = Source::default();
    assert_eq!(source.next(&one, "a", with_data("x")).await, 1.into());
    assert_eq!(source.next(&other, "a", with_data("x")).await, 2.into());
    assert_eq!(source.asked(), 1);
    drop(one);
    server
        .settles_at(Gauges {
            connections: 1,
            sessions: 1,
            workers: 1,
            isolates: 1,
            calls: 0,
        })
        .await;
    assert_eq!(source.next(&other, "a", with_data("x")).await, 3.into());
    drop(other);
    server.is_empty().await;
}

#[tokio::test]
async fn a_capability_keeps_a_worker_to_its_login_and_is_part_of_what_is_asked_for() {
    let server = Server::start();
    let (one, other) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let source = Source::default();
    let tool =
        |coracle: &Coracle| coracle.function(|_| async { Ok(Payload::from(Value::from(1))) });
    let (of_one, another, of_other) = (tool(&one), tool(&one), tool(&other));
    assert_eq!(source.next(&one, "a", with_stub(&of_one)).await, 1.into());
    assert_eq!(source.next(&one, "a", with_stub(&of_one)).await, 2.into());
    assert_eq!(source.next(&one, "a", with_stub(&another)).await, 1.into());
    assert_eq!(
        source.next(&other, "a", with_stub(&of_other)).await,
        1.into()
    );
    assert_eq!(
        source.next(&one, "a", with_stub(&one.loader())).await,
        1.into()
    );
    assert_eq!(
        source.next(&one, "a", with_stub(&one.loader())).await,
        2.into()
    );
    assert_eq!(source.asked(), 4);
    drop((one, of_one, another));
    drop((other, of_other));
    server.is_empty().await;
}

#[tokio::test]
async fn whoever_asks_meanwhile_waits_for_the_source_that_was_asked_first() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let asked = Arc::new(AtomicU32::new(0));
    let calls = (0..5).map(|_| {
        let asked = Arc::clone(&asked);
        let worker = coracle.get("slow", GetOptions::default(), move || {
            asked.fetch_add(1, Ordering::Relaxed);
            async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(module(COUNTER))
            }
        });
        async move {
            value(answer(&worker.entrypoint("default"), "next", args![0]).await)
                .as_f64()
                .unwrap()
        }
    });
    let mut counts = futures::future::join_all(calls).await;
    counts.sort_by(f64::total_cmp);
    assert_eq!(counts, [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// Gets a worker whose source answers that, and says what comes of a call.
async fn failure(coracle: &Coracle, code: Result<WorkerCode, Thrown>) -> String {
    let worker = coracle.get("a", GetOptions::default(), move || {
        std::future::ready(code.clone())
    });
    match worker.entrypoint("default").call("next", args![0]).await {
        Err(error) => error.to_string(),
        Ok(answered) => format!("{:?}", answered.outcome),
    }
}

#[tokio::test]
async fn what_fails_says_why_and_is_not_kept() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let thrown = failure(&coracle, Err(Thrown::new("RangeError", "no code today"))).await;
    let expected = "the source of the code failed: RangeError: no code today";
    assert!(thrown.contains(expected), "{thrown}");

    let empty = failure(&coracle, Ok(WorkerCode::new("main.js"))).await;
    assert!(empty.contains("the worker can't be loaded"), "{empty}");
    assert!(
        empty.contains("must contain at least one module"),
        "{empty}"
    );

    let env = module(COUNTER).env(Value::object([("a", 1)]));
    let given = failure(&coracle, Ok(env)).await;
    assert!(
        given.contains("answered with env, outbound, limits or tails"),
        "{given}"
    );

    let broken = failure(&coracle, Ok(module("throw new Error('startup')"))).await;
    assert!(broken.contains("startup"), "{broken}");
    eventually("the failed start is forgotten", async || {
        let next = failure(&coracle, Ok(module(COUNTER))).await;
        if next.contains("startup") {
            Err(next)
        } else {
            Ok(())
        }
    })
    .await;
    drop(coracle);
    server.is_empty().await;
}

#[tokio::test]
async fn when_a_client_goes_away_whose_source_was_asked_the_next_is_asked() {
    let server = Server::start();
    let (one, other) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let never = Arc::new(AtomicU32::new(0));
    let asked = Arc::clone(&never);
    let stuck = one.get("a", GetOptions::default(), move || {
        asked.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    });
    let stuck =
        tokio::spawn(async move { stuck.entrypoint("default").call("next", args![0]).await });
    eventually("the first source is asked", async || {
        match never.load(Ordering::Relaxed) {
            0 => Err("not yet".into()),
            _ => Ok(()),
        }
    })
    .await;
    let source = Source::default();
    let waits = {
        let (source, other) = (source.clone(), other.clone());
        tokio::spawn(async move { source.next(&other, "a", GetOptions::default()).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(source.asked(), 0);
    stuck.abort();
    let _ = stuck.await;
    drop(one);
    assert_eq!(
        within(PATIENCE, "the next is asked", waits).await.unwrap(),
        1.into()
    );
    assert_eq!(source.asked(), 1);
    drop(other);
    server.is_empty().await;
}

/// A source that says that it was asked, and whose client goes away when it is told to.
struct Goes {
    asked: Arc<Notify>,
    go: Arc<Notify>,
}

impl code_source::Server for Goes {
    async fn code(
        self: Rc<Self>,
        _params: code_source::CodeParams,
        _results: code_source::CodeResults,
    ) -> Result<(), capnp::Error> {
        self.asked.notify_one();
        self.go.notified().await;
        Err(capnp::Error::disconnected("gone".into()))
    }
}

/// A function of it takes what the raw client sends, which is nothing.
const PLAIN: &str = "import { WorkerEntrypoint } from 'cloudflare:workers';
    export default class extends WorkerEntrypoint { next() { return 1 } }";

#[tokio::test]
async fn a_source_that_is_gone_is_the_error_of_its_own_request_alone() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let (one, other) = (
                Wire::connect(server.address()).await,
                Wire::connect(server.address()).await,
            );
            let ((loader, _session), (other_loader, _other_session)) =
                (one.login(None), other.login(None));
            let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let goes = Goes {
                asked: Arc::clone(&asked),
                go: Arc::clone(&go),
            };
            let first = wire::entrypoint(&got_from(&loader, goes));
            let first = tokio::task::spawn_local(wire::outcome(wire::call(&first, "next")));
            within(PATIENCE, "the first is asked", asked.notified()).await;
            let second = wire::entrypoint(&got(&other_loader, PLAIN));
            let second = tokio::task::spawn_local(wire::outcome(wire::call(&second, "next")));
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!second.is_finished(), "it waits for the first's source");
            go.notify_one();
            let first = within(PATIENCE, "the first", first).await.unwrap();
            let first = first.unwrap_err();
            assert!(
                first.extra.contains("the source of the code is gone"),
                "{first}"
            );
            let second = within(PATIENCE, "the second", second).await.unwrap();
            assert_eq!(second.unwrap(), Outcome::Json("1".into()));
        })
        .await;
    server.is_empty().await;
}

struct Answers(&'static str);

impl code_source::Server for Answers {
    async fn code(
        self: Rc<Self>,
        _params: code_source::CodeParams,
        mut results: code_source::CodeResults,
    ) -> Result<(), capnp::Error> {
        let mut code = results.get().init_code();
        code.set_main_module("main.js");
        let mut module = code.init_modules(1).get(0);
        module.set_name("main.js");
        module.init_body().set_es_module(self.0);
        Ok(())
    }
}

fn got(loader: &loader::Client, source: &'static str) -> coracle_schema::worker::Client {
    got_from(loader, Answers(source))
}

fn got_from(
    loader: &loader::Client,
    source: impl code_source::Server + 'static,
) -> coracle_schema::worker::Client {
    let mut request = loader.get_request();
    request.get().set_id("shared");
    request.get().set_source(capnp_rpc::new_client(source));
    request.send().pipeline.get_worker()
}

#[tokio::test]
async fn a_closed_login_loses_what_it_shares_and_the_others_keep_it() {
    const METHODS: &str = "import { WorkerEntrypoint } from 'cloudflare:workers';
        let n = 0;
        export default class extends WorkerEntrypoint {
            nap() { return new Promise(done => setTimeout(done, 25_000)); }
            count() { return ++n; }
            counter() { return () => ++n; }
        }";
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let (one, other) = (
                Wire::connect(server.address()).await,
                Wire::connect(server.address()).await,
            );
            let ((loader, session), (other_loader, _other_session)) =
                (one.login(None), other.login(None));
            let entrypoint = wire::entrypoint(&got(&loader, METHODS));
            let others = wire::entrypoint(&got(&other_loader, METHODS));
            let count = |target| {
                within(
                    PATIENCE,
                    "a call",
                    wire::outcome(wire::call(target, "count")),
                )
            };
            assert_eq!(count(&entrypoint).await.unwrap(), Outcome::Json("1".into()));
            assert_eq!(count(&others).await.unwrap(), Outcome::Json("2".into()));
            let mut counter = entrypoint.call_request();
            counter.get().init_path(1).set(0, "counter");
            let counter = counter.send().pipeline.get_pipeline();
            let of_counter = within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call_itself(&counter)),
            );
            assert_eq!(of_counter.await.unwrap(), Outcome::Json("3".into()));
            let nap = tokio::task::spawn_local(wire::outcome(wire::call(&entrypoint, "nap")));
            eventually("the nap has begun", async || {
                match server.gauges().await.calls {
                    1 => Ok(()),
                    calls => Err(format!("{calls} calls")),
                }
            })
            .await;
            within(
                PATIENCE,
                "the session closes",
                session.close_request().send().promise,
            )
            .await
            .unwrap();
            let nap = within(PATIENCE, "the nap ends", nap)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(nap, Outcome::Verdict("Cancelled".into()));
            let again = count(&entrypoint).await.unwrap_err();
            assert!(again.extra.contains("the session is closed"), "{again}");
            let of_counter = within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call_itself(&counter)),
            );
            let again = of_counter.await.unwrap_err();
            assert!(again.extra.contains("the session is closed"), "{again}");
            let late = wire::entrypoint(&got(&loader, METHODS));
            let again = count(&late).await.unwrap_err();
            assert!(again.extra.contains("the session is closed"), "{again}");
            // The nap was all that went on in the isolate, which ended with it.
            assert_eq!(count(&others).await.unwrap(), Outcome::Json("1".into()));
        })
        .await;
    server.is_empty().await;
}

#[tokio::test]
async fn a_loader_of_another_login_and_one_in_arguments_are_refused_by_name() {
    let server = Server::start();
    let (one, other) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let worker = one.load(module("export default { run(x) { return typeof x } }"));
    let mut args = Payload::default();
    let loader = args.external(&one.loader());
    args.value = Value::Array(vec![loader]);
    let refused = worker
        .entrypoint("default")
        .call("run", args)
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("those can be passed in env only"),
        "{refused}"
    );
    let foreign = other.get("a", with_stub(&one.loader()), || async {
        Ok(module(COUNTER))
    });
    let refused: Error = foreign
        .entrypoint("default")
        .call("next", args![0])
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("is not set"), "{refused}");
    let thrown = answer(&worker.entrypoint("default"), "nope", args![0]).await;
    assert_eq!(threw(&thrown).0, "TypeError");
}

/// A source that takes its time lets nobody keep as much as they like: what a worker is given counts while it is asked.
#[tokio::test]
async fn what_a_worker_is_given_counts_while_its_source_is_asked() {
    let server = Server::start_with(&[("connection-bytes-max", "67108864")]);
    let coracle = client(server.address()).await;
    let never = Arc::new(Notify::new());
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..6 {
        let env = Value::object([("data", Value::from("x".repeat(20 << 20)))]);
        let never = Arc::clone(&never);
        let worker = coracle.get(&number.to_string(), with_env(env.into()), move || {
            let never = Arc::clone(&never);
            async move {
                never.notified().await;
                Ok(module(COUNTER))
            }
        });
        let entrypoint = worker.entrypoint("default");
        asking.spawn(async move { entrypoint.call("next", args![0]).await });
    }
    let refused = within(PATIENCE, "one is refused", asking.join_next()).await;
    let refused = refused.unwrap().unwrap().unwrap_err();
    assert!(
        refused.to_string().contains("connection_bytes_max"),
        "{refused:?}"
    );
    drop((asking, coracle));
    server.is_empty().await;
}
