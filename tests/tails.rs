//! What tails are told of a worker's invocations, and that telling them costs nobody anything.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Neighbour, Server, answer, class, client, eventually, growth_at_rest, module, resident_bytes,
    threw, value, verdict, within,
};
use coracle_client::{
    Coracle, Entrypoint, Limits, Payload, Request, Stub, Target, Thrown, Value, args,
};
use futures::future::BoxFuture;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A client's tail, which passes on what it is told.
struct Tail(UnboundedSender<(String, Value)>);

impl Target for Tail {
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        if let Some(Value::Array(events)) = args.value.index(0).cloned() {
            for event in events {
                let _ = self.0.send((path.join("."), event));
            }
        }
        Box::pin(async { Ok(Payload::default()) })
    }
}

fn tail(coracle: &Coracle) -> (Stub, UnboundedReceiver<(String, Value)>) {
    let (sender, events) = unbounded_channel();
    (coracle.serve(Tail(sender)), events)
}

async fn next(events: &mut UnboundedReceiver<(String, Value)>) -> (String, Value) {
    within(Duration::from_secs(20), "an event", events.recv())
        .await
        .unwrap()
}

/// What is at a path of names in an event.
#[track_caller]
fn at<'a>(event: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(event, |value, name| {
        let member = match name.parse::<usize>() {
            Ok(index) => value.index(index),
            Err(_) => value.get(name),
        };
        member.unwrap_or_else(|| panic!("{path} is not in {event:?}"))
    })
}

const WORKER: &str = "
    run(tail) {
        console.log('L', { a: 1 }, 5, [1n, undefined, new Map([[1, 2]])]);
        console.error('E %s', 'formatted');
        console.info(() => 1, Symbol('s'));
        return 'result';
    }
    boom() { console.warn('W'); throw new TypeError('tb') }
    later() {
        this.ctx.waitUntil(new Promise((done) => setTimeout(done, 100)).then(() => console.log('after')));
        return 1;
    }
    loop() { console.log('before'); for (;;); }
    shared() { const x = { n: 1 }; console.log([x, x], x); console.log([x, x]) }";

#[tokio::test]
async fn a_tail_is_told_what_was_called_what_was_written_and_how_it_ended() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (stub, mut events) = tail(&coracle);
    let code = module(&class(WORKER)).tail(stub).limits(Limits {
        fuel_max: 100_000_000,
        ..Limits::default()
    });
    let worker = coracle.load(code).entrypoint("default");

    assert_eq!(
        value(answer(&worker, "run", args![]).await),
        "result".into()
    );
    let (method, event) = next(&mut events).await;
    assert_eq!(method, "tail");
    assert_eq!(at(&event, "outcome"), &"ok".into());
    assert_eq!(at(&event, "event.rpcMethod"), &"run".into());
    assert_eq!(at(&event, "entrypoint"), &"default".into());
    assert_eq!(at(&event, "executionModel"), &"stateless".into());
    assert_eq!(at(&event, "truncated"), &false.into());
    assert_eq!(at(&event, "logs.0.level"), &"log".into());
    let expected = Value::Array(vec![
        "L".into(),
        Value::object([("a", 1)]),
        5.into(),
        Value::Array(vec![
            Value::BigInt(1u64.into()),
            Value::Undefined,
            Value::Map(vec![(1.into(), 2.into())]),
        ]),
    ]);
    assert_eq!(at(&event, "logs.0.message"), &expected);
    let expected = Value::array(["E %s", "formatted"]);
    assert_eq!(at(&event, "logs.1.message"), &expected);
    assert_eq!(at(&event, "logs.1.level"), &"error".into());
    // What can't be copied is what the console shows.
    assert_eq!(at(&event, "logs.2.message.1"), &"Symbol(s)".into());
    assert!(at(&event, "usage.fuelRun").as_f64() > Some(0.0));
    assert!(at(&event, "eventTimestamp").as_f64() > Some(1.7e12));
    assert_eq!(at(&event, "verdict"), &Value::Null);

    // What a method throws was delivered.
    assert_eq!(
        threw(&answer(&worker, "boom", args![]).await),
        ("TypeError", "tb")
    );
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "outcome"), &"ok".into());
    assert_eq!(at(&event, "exceptions"), &Value::Array(Vec::new()));
    assert_eq!(at(&event, "logs.0.message"), &Value::array(["W"]));

    // What runs on after the answer is in it.
    answer(&worker, "later", args![]).await;
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "logs.0.message"), &Value::array(["after"]));
    assert!(at(&event, "wallTime").as_f64() >= Some(100.0));

    // Objects that are written twice.
    answer(&worker, "shared", args![]).await;
    let (_, event) = next(&mut events).await;
    assert!(matches!(at(&event, "logs.0.message"), Value::Array(all) if all.len() == 2));

    assert_eq!(
        verdict(&answer(&worker, "loop", args![]).await),
        ("fuel", "fuel_max")
    );
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "outcome"), &"exceededCpu".into());
    assert_eq!(at(&event, "verdict.limitName"), &"fuel_max".into());
    assert_eq!(at(&event, "logs.0.message"), &Value::array(["before"]));
}

#[tokio::test]
async fn a_load_that_fails_and_a_call_that_is_cancelled_are_told() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (stub, mut events) = tail(&coracle);
    let source = "console.log('loading'); throw new RangeError('boom')";
    let worker = coracle
        .load(module(source).tail(stub.clone()))
        .entrypoint("default");
    let failed = answer(&worker, "run", args![]).await;
    assert_eq!(threw(&failed), ("RangeError", "boom"));
    assert_eq!(
        failed.logs[0].message, "loading",
        "logs come back with a load that fails"
    );
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "outcome"), &"exception".into());
    assert_eq!(at(&event, "exceptions.0.name"), &"RangeError".into());
    assert_eq!(at(&event, "logs.0.message"), &Value::array(["loading"]));

    let forever = class("run() { return new Promise((done) => setTimeout(done, 25_000)) }");
    let worker = coracle
        .load(module(&forever).tail(stub))
        .entrypoint("default");
    let call = worker.call("run", args![]);
    assert!(
        tokio::time::timeout(Duration::from_millis(300), call)
            .await
            .is_err()
    );
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "outcome"), &"canceled".into());
    assert_eq!(at(&event, "verdict.kind"), &"cancelled".into());
}

#[tokio::test]
async fn a_request_is_told_with_its_status_and_what_a_handler_throws_is_an_exception() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (stub, mut events) = tail(&coracle);
    let source = class(
        "fetch(request) {
            if (request.url.endsWith('/no')) throw new RangeError('no');
            return new Response('f', { status: 201 });
        }",
    );
    let worker = coracle
        .load(module(&source).tail(stub))
        .entrypoint("default");
    let mut request = Request::get("http://a.example/x");
    let headers = [("X-Twice", "one"), ("accept", "a/b"), ("x-twice", "two")];
    request.headers = headers
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    worker.fetch(request).await.unwrap();
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "outcome"), &"ok".into());
    let url = at(&event, "event.request.url");
    assert_eq!(url, &"http://a.example/x".into());
    assert_eq!(at(&event, "event.request.method"), &"GET".into());
    // Headers that are there several times are joined: an object has one property of a name.
    let expected = Value::object([("x-twice", "one, two"), ("accept", "a/b")]);
    assert_eq!(at(&event, "event.request.headers"), &expected);
    assert_eq!(at(&event, "event.response.status"), &201.into());
    let _ = worker.fetch(Request::get("http://a.example/no")).await;
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "outcome"), &"exception".into());
    assert_eq!(at(&event, "exceptions.0.name"), &"RangeError".into());
    assert_eq!(at(&event, "exceptions.0.message"), &"no".into());
}

/// A tail that never answers.
struct Dead;

impl Target for Dead {
    fn call(&self, _: Vec<String>, _: Payload) -> BoxFuture<'static, Result<Payload, Thrown>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn what_a_tail_misses_that_does_not_answer_is_counted() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let code = module(&class("run() { return 1 }")).tail(coracle.serve(Dead));
    let worker = coracle.load(code).entrypoint("default");
    for _ in 0..1_100 {
        answer(&worker, "run", args![]).await;
    }
    // 1,000 wait, and as many as had gathered were sent.
    eventually("what is lost is counted", async || {
        match server.metric("coracle_tail_events_dropped_total").await {
            dropped if (50.0..100.0).contains(&dropped) => Ok(()),
            other => Err(format!("{other} were dropped")),
        }
    })
    .await;
    drop((coracle, worker));
    server.is_empty().await;
}

/// What takes many times as much when it is decoded, and as much as a call may write.
const LOGGER: &str = "run() {
    for (let line = 0; line < 6; line += 1) console.log(new Array(16_000).fill(0));
    return 1;
}";

#[tokio::test]
async fn tails_that_do_not_answer_cost_little_delay_nobody_and_leave_other_sessions_theirs() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let load = |dead: usize| {
        let mut code = module(&class(LOGGER));
        for _ in 0..dead {
            code = code.tail(coracle.serve(Dead));
        }
        if dead > 0 {
            code.streaming_tails.push(coracle.serve(Dead));
        }
        coracle.load(code).entrypoint("default")
    };
    // What isolates take and what is allocated for good is there before.
    let warm: Vec<Entrypoint> = (0..4).map(|_| load(0)).collect();
    for worker in &warm {
        answer(worker, "run", args![]).await;
    }
    let before = resident_bytes(server.pid());

    let neighbour = Neighbour::of(server.address()).await;
    let other = client(server.address()).await;
    let (stub, mut events) = tail(&other);
    let told = with_tail(&other, &class("run(n) { console.log(n) }"), &stub);
    let loggers: Vec<_> = (0..4)
        .map(|_| {
            let worker = load(12);
            tokio::spawn(async move {
                for _ in 0..100 {
                    answer(&worker, "run", args![]).await;
                }
                worker
            })
        })
        .collect();
    let mut count = 0;
    while count < 20 || loggers.iter().any(|logger| !logger.is_finished()) {
        answer(&told, "run", args![count]).await;
        let (_, event) = next(&mut events).await;
        assert_eq!(
            at(&event, "logs.0.message"),
            &Value::Array(vec![count.into()])
        );
        assert!(event.get("dropped").is_none(), "{event:?}");
        count += 1;
    }
    neighbour.was_served().await;
    let grown = growth_at_rest(&server, before).await;
    // 4 MiB of it is what waits; the rest is isolates and what allocators keep.
    assert!(
        grown < 64 << 20,
        "the server has grown by {} MiB",
        grown >> 20
    );
    let dropped = server.metric("coracle_tail_events_dropped_total").await;
    assert!(dropped > 1_000.0, "{dropped}");
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    drop((coracle, other, stub, told, warm, loggers));
    server.is_empty().await;
}

/// A tail that answers all calls but the first.
struct Late(AtomicBool, Tail);

impl Target for Late {
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        match self.0.swap(true, Ordering::Relaxed) {
            false => Box::pin(std::future::pending()),
            true => self.1.call(path, args),
        }
    }
}

#[tokio::test]
async fn a_tail_that_has_not_answered_for_long_is_called_again_and_knows_what_it_missed() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (sender, mut events) = unbounded_channel();
    let stub = coracle.serve(Late(AtomicBool::new(false), Tail(sender)));
    let worker = with_tail(&coracle, &class("one() {} two() {}"), &stub);
    answer(&worker, "one", args![]).await;
    // The first event has been sent, or both would be lost.
    tokio::time::sleep(Duration::from_secs(1)).await;
    answer(&worker, "two", args![]).await;
    let patience = Duration::from_secs(60);
    let (_, event) = within(patience, "the next call", events.recv())
        .await
        .unwrap();
    assert_eq!(at(&event, "event.rpcMethod"), &"two".into());
    assert_eq!(at(&event, "dropped"), &1.into());
    let dropped = server.metric("coracle_tail_events_dropped_total").await;
    assert_eq!(dropped, 1.0);
}

fn with_tail(coracle: &Coracle, source: &str, tail: &Stub) -> Entrypoint {
    coracle
        .load(module(source).tail(tail.clone()))
        .entrypoint("default")
}

#[tokio::test]
async fn a_worker_is_a_tail_and_a_chain_of_tails_comes_to_an_end() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (stub, mut events) = tail(&coracle);
    let handler = "export default { tail(events, env, ctx) { console.log(events.length, events[0].event.rpcMethod) } }";
    let first = with_tail(&coracle, handler, &stub);
    let second = with_tail(&coracle, handler, first.stub());
    let worker = with_tail(&coracle, &class("run() { return 1 }"), second.stub());
    answer(&worker, "run", args![]).await;
    // The worker is told of to the second, that to the first, and that to the client.
    let (_, event) = next(&mut events).await;
    assert_eq!(at(&event, "event.rpcMethod"), &"tail".into());
    let expected = Value::Array(vec![1.into(), "tail".into()]);
    assert_eq!(at(&event, "logs.0.message"), &expected);
    assert_eq!(
        server.metric("coracle_tail_events_dropped_total").await,
        0.0
    );
    // One link more is one too many.
    let third = with_tail(&coracle, handler, second.stub());
    let longer = with_tail(&coracle, &class("run() { return 1 }"), third.stub());
    answer(&longer, "run", args![]).await;
    eventually("the chain ends", async || {
        match server.metric("coracle_tail_events_dropped_total").await {
            1.0 => Ok(()),
            other => Err(format!("{other} were dropped")),
        }
    })
    .await;
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn a_streaming_tail_is_told_while_it_runs_in_order() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (stub, mut events) = tail(&coracle);
    let source = class(
        "async run() { console.log('one', 1); await new Promise((done) => setTimeout(done, 25_000)) }
         quick() { console.log('two'); return 2 }",
    );
    let mut code = module(&source);
    code.streaming_tails.push(stub);
    let worker = coracle.load(code).entrypoint("default");
    let running = worker.clone();
    let call = tokio::spawn(async move { running.call("run", args![]).await });
    let (method, onset) = next(&mut events).await;
    assert_eq!(method, "tailStream");
    assert_eq!(at(&onset, "event.type"), &"onset".into());
    assert_eq!(at(&onset, "event.info.rpcMethod"), &"run".into());
    let (_, log) = next(&mut events).await;
    assert_eq!(at(&log, "event.type"), &"log".into());
    let expected = Value::Array(vec!["one".into(), 1.into()]);
    assert_eq!(at(&log, "event.message"), &expected);
    assert!(!call.is_finished(), "it is told while the call runs");
    assert_eq!(at(&log, "invocation"), at(&onset, "invocation"));

    answer(&worker, "quick", args![]).await;
    let mut seen = Vec::new();
    for sequence in 0..3 {
        let (_, event) = next(&mut events).await;
        assert_ne!(at(&event, "invocation"), at(&onset, "invocation"));
        assert_eq!(at(&event, "sequence"), &sequence.into());
        seen.push(at(&event, "event.type").clone());
    }
    assert_eq!(
        Value::Array(seen),
        Value::array(["onset", "log", "outcome"])
    );
    call.abort();
    let (_, last) = next(&mut events).await;
    assert_eq!(at(&last, "event.outcome"), &"canceled".into());
}
