//! Functions and objects that clients hand to workers, and workers to clients and to each other.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, client, value};
use coracle_client::{
    Coracle, Entrypoint, EntrypointOptions, Outcome, Payload, Stub, Target, Thrown, Value,
    WorkerCode, args,
};
use futures::future::BoxFuture;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

fn load(coracle: &Coracle, source: &str) -> Entrypoint {
    coracle
        .load(WorkerCode::new("main.js").es_module("main.js", source))
        .entrypoint("default")
}

/// Arguments with stubs in them: `build` puts a value together.
fn payload(build: impl FnOnce(&mut Payload) -> Vec<Value>) -> Payload {
    let mut payload = Payload::default();
    let args = build(&mut payload);
    payload.value = Value::Array(args);
    payload
}

fn number(args: &Payload, index: usize) -> f64 {
    args.value.index(index).and_then(Value::as_f64).unwrap()
}

fn adder(coracle: &Coracle, calls: &Arc<AtomicU32>) -> Stub {
    let calls = Arc::clone(calls);
    coracle.function(move |args: Payload| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move {
            Ok(Payload::from(Value::from(
                number(&args, 0) + number(&args, 1),
            )))
        }
    })
}

async fn outcome(entrypoint: &Entrypoint, method: &str, args: Payload) -> Outcome {
    entrypoint.call(method, args).await.unwrap().outcome
}

#[tokio::test]
async fn a_worker_calls_functions_of_the_client_that_are_in_arguments_env_and_props() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let calls = Arc::new(AtomicU32::new(0));
    let add = adder(&coracle, &calls);
    let source = r#"
        import { WorkerEntrypoint } from "cloudflare:workers";
        export default class extends WorkerEntrypoint {
            async fromArguments(tools) { return await tools.math.add(1, 2); }
            async fromEnv() { return await this.env.ADD(3, 4); }
            async fromProps() { return await this.ctx.props.add(5, 6); }
            async many(add) {
                let sum = 0;
                for (let i = 0; i < 10; i++) sum = await add(sum, i);
                return sum;
            }
            async together(add) { return await Promise.all([1, 2, 3].map((n) => add(n, 10))); }
        }"#;
    let mut env = Payload::default();
    let binding = env.external(&add);
    env.value = Value::object([("ADD", binding)]);
    let worker = coracle.load(
        WorkerCode::new("main.js")
            .es_module("main.js", source)
            .env(env),
    );
    let entrypoint = worker.entrypoint_with(
        "default",
        EntrypointOptions {
            props: Value::object([("add", Value::External(0))]),
            props_externals: vec![add.clone()],
            ..EntrypointOptions::default()
        },
    );
    let tools = payload(|payload| {
        let add = payload.external(&add);
        vec![Value::object([("math", Value::object([("add", add)]))])]
    });
    assert_eq!(
        outcome(&entrypoint, "fromArguments", tools).await,
        Outcome::Value(3.into())
    );
    assert_eq!(
        outcome(&entrypoint, "fromEnv", args![].into()).await,
        Outcome::Value(7.into())
    );
    assert_eq!(
        outcome(&entrypoint, "fromProps", args![].into()).await,
        Outcome::Value(11.into())
    );
    let argument = || payload(|payload| vec![payload.external(&add)]);
    assert_eq!(
        outcome(&entrypoint, "many", argument()).await,
        Outcome::Value(45.into())
    );
    let sums = Value::Array(vec![11.into(), 12.into(), 13.into()]);
    assert_eq!(
        outcome(&entrypoint, "together", argument()).await,
        Outcome::Value(sums)
    );
    assert_eq!(calls.load(Ordering::Relaxed), 16);
}

#[tokio::test]
async fn what_a_callback_throws_is_an_error_of_its_class_with_its_properties() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let refuse = coracle.function(|_| async { Err(Thrown::new("RangeError", "no more than ten")) });
    let entrypoint = load(
        &coracle,
        "export default { async run(tool) {
            try { await tool(); } catch (error) {
                return [error instanceof RangeError, error.name, error.message, error.remote];
            }
        } }",
    );
    let argument = payload(|payload| vec![payload.external(&refuse)]);
    let expected = Value::Array(vec![
        true.into(),
        "RangeError".into(),
        "no more than ten".into(),
        true.into(),
    ]);
    assert_eq!(
        outcome(&entrypoint, "run", argument).await,
        Outcome::Value(expected)
    );
}

/// A client's object with methods, which keeps what it was given.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Vec<Kept>>>);

/// A path and what was sent there.
type Kept = (Vec<String>, Payload);

impl Target for Store {
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        let kept = self.0.clone();
        Box::pin(async move {
            let count = {
                let mut kept = kept.lock().unwrap();
                kept.push((path, args));
                kept.len()
            };
            Ok(Value::from(count as f64).into())
        })
    }
}

#[tokio::test]
async fn functions_and_objects_of_a_worker_are_called_by_the_client_and_keep_their_state() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source = r#"
        import { RpcTarget } from "cloudflare:workers";
        class Counter extends RpcTarget {
            #n = 0;
            increment(by = 1) { return this.#n += by; }
            get value() { return this.#n; }
        }
        export default {
            make(_) { return { counter: new Counter(), double: (n) => n * 2, plain: 1 }; },
            async give(store) { return await store.keep((n) => n + 100, { at: "home" }); },
        };"#;
    let entrypoint = load(&coracle, source);
    let made = entrypoint
        .call("make", args![0])
        .await
        .unwrap()
        .payload()
        .unwrap();
    let counter = made
        .stub(made.value.get("counter").unwrap())
        .unwrap()
        .clone();
    let double = made
        .stub(made.value.get("double").unwrap())
        .unwrap()
        .clone();
    assert_eq!(
        value(counter.call("increment", args![]).await.unwrap()),
        1.into()
    );
    assert_eq!(
        value(counter.call("increment", args![5]).await.unwrap()),
        6.into()
    );
    assert_eq!(value(counter.get("value").await.unwrap()), 6.into());
    assert_eq!(value(double.call("", args![21]).await.unwrap()), 42.into());
    let Outcome::Threw(thrown) = counter.call("reset", args![]).await.unwrap().outcome else {
        panic!("there is no such method");
    };
    assert_eq!(
        thrown.message,
        "The RPC receiver does not implement the method \"reset\"."
    );

    let store = Store::default();
    let stub = coracle.serve(store.clone());
    let argument = payload(|payload| vec![payload.external(&stub)]);
    assert_eq!(
        outcome(&entrypoint, "give", argument).await,
        Outcome::Value(1.into())
    );
    let (path, kept) = store.0.lock().unwrap().pop().unwrap();
    assert_eq!(path, ["keep"]);
    let function = kept.stub(kept.value.index(0).unwrap()).unwrap().clone();
    // It was given away in a call that is over, and works as long as it is held.
    assert_eq!(
        value(function.call("", args![1]).await.unwrap()),
        101.into()
    );
}

#[tokio::test]
async fn workers_call_each_other_through_stubs_and_entrypoints() {
    let server = Server::start();
    let one = client(server.address()).await;
    let service = load(
        &one,
        "let n = 0; export default { next(by) { return n += by; }, fail(_) { throw new TypeError('no'); } };",
    );
    let source = "export default {
        async run(service) { return [await service.next(1), await service.next(10)]; },
        async fails(service) { try { await service.fail(0); } catch (error) { return `${error.name} ${error.message}`; } },
        lend(_) { return { twice(f) { const kept = f.dup(); return async (x) => kept(await kept(x)); } }; },
    };";
    let caller = load(&one, source);
    let argument = || payload(|payload| vec![payload.external(service.stub())]);
    let both = Value::Array(vec![1.into(), 11.into()]);
    assert_eq!(
        outcome(&caller, "run", argument()).await,
        Outcome::Value(both)
    );
    assert_eq!(
        outcome(&caller, "fails", argument()).await,
        Outcome::Value("TypeError no".into())
    );

    // A function that a worker returned, given to another worker, which calls it.
    let lent = caller
        .call("lend", args![0])
        .await
        .unwrap()
        .payload()
        .unwrap();
    let twice = lent.stub(lent.value.get("twice").unwrap()).unwrap().clone();
    let other = load(
        &one,
        "export default { async use(twice) { const f = await twice((x) => x * 3); return await f(7); } }",
    );
    let argument = payload(|payload| vec![payload.external(&twice)]);
    assert_eq!(
        outcome(&other, "use", argument).await,
        Outcome::Value(63.into())
    );
}

#[tokio::test]
async fn everything_is_back_to_nothing_when_the_client_has_gone() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let calls = Arc::new(AtomicU32::new(0));
    let add = adder(&coracle, &calls);
    let entrypoint = load(
        &coracle,
        "const kept = []; export default { keep(f) { kept.push(f.dup()); return { back: () => kept.length, f }; } }",
    );
    for _ in 0..5 {
        let argument = payload(|payload| vec![payload.external(&add)]);
        let made = entrypoint
            .call("keep", argument)
            .await
            .unwrap()
            .payload()
            .unwrap();
        assert_eq!(made.externals.len(), 2);
    }
    drop((coracle, add, entrypoint));
    server.is_empty().await;
}

/// A function that never answers, and tells when its call is given up.
fn endless(coracle: &Coracle, given_up: &Arc<AtomicU32>) -> Stub {
    struct GivenUp(Arc<AtomicU32>);
    impl Drop for GivenUp {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let given_up = Arc::clone(given_up);
    coracle.function(move |_| {
        let given_up = GivenUp(Arc::clone(&given_up));
        async move {
            std::future::pending::<()>().await;
            drop(given_up);
            Ok(Payload::default())
        }
    })
}

#[tokio::test]
async fn a_stub_of_another_connection_is_refused_before_it_is_sent() {
    let server = Server::start();
    let (owner, tool) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let add = adder(&tool, &Arc::default());
    let lender = load(&owner, "export default { keep(f) { return typeof f; } }");
    let argument = payload(|payload| vec![payload.external(&add)]);
    let refused = lender.call("keep", argument).await;
    assert!(
        refused.is_err(),
        "a stub of another connection is refused: {refused:?}"
    );
}

#[tokio::test]
async fn a_callback_that_nobody_waits_for_any_more_is_given_up() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let given_up = Arc::new(AtomicU32::new(0));
    let never = endless(&coracle, &given_up);
    let entrypoint = coracle
        .load(WorkerCode::new("main.js").es_module(
            "main.js",
            "export default { async run(f) { return await f(); } }",
        ))
        .entrypoint_with(
            "default",
            EntrypointOptions {
                limits: coracle_client::Limits {
                    wall_ms_max: 300,
                    ..coracle_client::Limits::default()
                },
                ..EntrypointOptions::default()
            },
        );
    let argument = payload(|payload| vec![payload.external(&never)]);
    let Outcome::Verdict(verdict) = outcome(&entrypoint, "run", argument).await else {
        panic!("the wall time is up before");
    };
    assert_eq!((&verdict.kind[..], verdict.subrequests_sent), ("wall", 1));
    // The client dropping its own call gives the callback up as well.
    let argument = payload(|payload| vec![payload.external(&never)]);
    let call = entrypoint.call("run", argument);
    let _ = tokio::time::timeout(std::time::Duration::from_millis(100), call).await;
    for _ in 0..100 {
        if given_up.load(Ordering::Relaxed) == 2 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{} of 2 were given up", given_up.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_stub_in_arguments_is_disposed_of_when_the_call_returns_and_a_dup_is_not() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let calls = Arc::new(AtomicU32::new(0));
    let add = adder(&coracle, &calls);
    let entrypoint = load(
        &coracle,
        "let bare, kept; export default {
            keep(f) { bare = f; kept = f.dup(); },
            async use(_) {
                let refused;
                try { await bare(1, 2); } catch (error) { refused = error.message; }
                const sum = await kept(1, 2);
                kept[Symbol.dispose]();
                let disposed;
                try { await kept(1, 2); } catch (error) { disposed = error.message; }
                return [refused, sum, disposed];
            },
        };",
    );
    let argument = payload(|payload| vec![payload.external(&add)]);
    outcome(&entrypoint, "keep", argument).await;
    let expected = Value::Array(vec![
        "RPC stub used after being disposed.".into(),
        3.into(),
        "RPC stub used after being disposed.".into(),
    ]);
    assert_eq!(
        outcome(&entrypoint, "use", args![0].into()).await,
        Outcome::Value(expected)
    );
}

#[tokio::test]
async fn in_a_worker_a_promise_of_a_call_is_called_through_before_it_is_settled() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "export default {
            async chain(make) { return await make().counter.add(2); },
            make(_) { let n = 40; return { counter: { add: (by) => n + by }, nested: { f: (x) => [x] } }; },
            self(f) { return f; },
        }",
    );
    let made = entrypoint
        .call("make", args![0])
        .await
        .unwrap()
        .payload()
        .unwrap();
    assert_eq!(made.externals.len(), 2);
    let give = coracle.function(move |_| {
        let made = made.clone();
        async move { Ok(made) }
    });
    let argument = payload(|payload| vec![payload.external(&give)]);
    assert_eq!(
        outcome(&entrypoint, "chain", argument).await,
        Outcome::Value(42.into())
    );
}
