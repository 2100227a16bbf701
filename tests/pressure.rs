//! More than there is room for.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{ConnectOptions, Coracle, Entrypoint, Error, Value, args};
use std::time::Duration;
use support::{Gauges, PATIENCE, Server, answer, client, eventually, load, value, within};
use tokio::task::JoinHandle;

const WORKER: &str =
    "rest(ms) { return new Promise(done => setTimeout(() => done('rested'), ms)); }
                      count() { return this.constructor.n = (this.constructor.n ?? 0) + 1; }";

fn resting(entrypoint: &Entrypoint, ms: i32) -> JoinHandle<Value> {
    let entrypoint = entrypoint.clone();
    tokio::spawn(async move { value(answer(&entrypoint, "rest", args![ms]).await) })
}

async fn calls_are(server: &Server, calls: u64) {
    eventually("the calls are in flight", async || {
        match server.gauges().await {
            gauges if gauges.calls == calls => Ok(()),
            gauges => Err(format!("there is {gauges:?}")),
        }
    })
    .await;
}

/// Idle isolates give way before the memory of all of them runs out: a client that keeps its workers must not keep
/// others, or itself, from loading more.
#[tokio::test]
async fn idle_isolates_make_room_where_memory_is_short() {
    let server = Server::start_with(&[("pool-memory-bytes-max", "40000000")]);
    let coracle = client(server.address()).await;
    let workers: Vec<Entrypoint> = (0..60).map(|_| load(&coracle, WORKER)).collect();
    for worker in &workers {
        assert_eq!(
            value(answer(worker, "count", args![]).await),
            Value::from(1)
        );
    }
    let evicted = "coracle_isolates_ended_total{cause=\"evicted\"}";
    assert!(server.metric(evicted).await >= 40.0);
}

#[tokio::test]
async fn an_idle_isolate_makes_room_and_its_worker_starts_anew() {
    let server = Server::start_with(&[("isolates-max", "1")]);
    let coracle = client(server.address()).await;
    let (first, second) = (load(&coracle, WORKER), load(&coracle, WORKER));
    assert_eq!(
        value(answer(&first, "count", args![]).await),
        Value::from(1)
    );
    assert_eq!(
        value(answer(&first, "count", args![]).await),
        Value::from(2)
    );
    assert_eq!(
        value(answer(&second, "count", args![]).await),
        Value::from(1)
    );
    assert_eq!(
        server
            .metric("coracle_isolates_ended_total{cause=\"evicted\"}")
            .await,
        1.0
    );
    let anew = answer(&first, "count", args![]).await;
    assert!(
        !anew.usage.isolate_reused && anew.usage.fuel_load > 0,
        "{:?}",
        anew.usage
    );
    assert_eq!(value(anew), Value::from(1));
    server
        .settles_at(Gauges {
            connections: 1,
            sessions: 1,
            workers: 2,
            isolates: 1,
            calls: 0,
        })
        .await;
}

#[tokio::test]
async fn the_isolate_that_has_been_idle_for_longest_goes_first() {
    let server = Server::start_with(&[("isolates-max", "2")]);
    let coracle = client(server.address()).await;
    let (first, second, third) = (
        load(&coracle, WORKER),
        load(&coracle, WORKER),
        load(&coracle, WORKER),
    );
    for entrypoint in [&first, &second, &first, &third] {
        answer(entrypoint, "count", args![]).await;
    }
    assert_eq!(
        value(answer(&first, "count", args![]).await),
        Value::from(3)
    );
}

#[tokio::test]
async fn a_call_waits_for_a_busy_isolate_and_then_gets_its_turn() {
    let server = Server::start_with(&[("isolates-max", "1")]);
    let coracle = client(server.address()).await;
    let busy = resting(&load(&coracle, WORKER), 700);
    calls_are(&server, 1).await;
    let waiting = resting(&load(&coracle, WORKER), 1);
    calls_are(&server, 2).await;
    assert_eq!(server.gauges().await.isolates, 1);
    assert_eq!(
        within(PATIENCE, "the first", busy).await.unwrap(),
        Value::from("rested")
    );
    assert_eq!(
        within(PATIENCE, "the second", waiting).await.unwrap(),
        Value::from("rested")
    );
}

#[tokio::test]
async fn when_the_queue_is_full_a_call_is_refused_as_overloaded_and_works_later() {
    let server = Server::start_with(&[("isolates-max", "1"), ("calls-queued-max", "1")]);
    let coracle = client(server.address()).await;
    let busy = resting(&load(&coracle, WORKER), 1_000);
    calls_are(&server, 1).await;
    let waiting = resting(&load(&coracle, WORKER), 1);
    calls_are(&server, 2).await;
    let third = load(&coracle, WORKER);
    match within(PATIENCE, "a refusal", third.call("count", args![])).await {
        Err(Error::Overloaded(text)) => assert!(
            text.contains("isolates_max") && text.contains("retry in "),
            "{text}"
        ),
        other => panic!("it should have been refused: {other:?}"),
    }
    assert_eq!(
        server
            .metric("coracle_requests_refused_total{reason=\"isolates\"}")
            .await,
        1.0
    );
    within(PATIENCE, "the others", async {
        (busy.await.unwrap(), waiting.await.unwrap())
    })
    .await;
    assert_eq!(
        value(answer(&third, "count", args![]).await),
        Value::from(1)
    );
}

#[tokio::test]
async fn a_waiting_call_that_is_dropped_leaves_the_queue() {
    let server = Server::start_with(&[("isolates-max", "1")]);
    let coracle = client(server.address()).await;
    let busy = resting(&load(&coracle, WORKER), 1_500);
    calls_are(&server, 1).await;
    let second = load(&coracle, WORKER);
    let waiting =
        tokio::time::timeout(Duration::from_millis(200), second.call("count", args![])).await;
    assert!(waiting.is_err(), "it should be waiting");
    calls_are(&server, 1).await;
    assert_eq!(
        within(PATIENCE, "the first", busy).await.unwrap(),
        Value::from("rested")
    );
    assert_eq!(
        value(answer(&second, "count", args![]).await),
        Value::from(1),
        "the dropped call has not run"
    );
}

#[tokio::test]
async fn one_session_may_have_so_many_calls_and_no_more() {
    let server = Server::start_with(&[("calls-in-flight-per-session-max", "3")]);
    let (greedy, modest) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let entrypoint = load(&greedy, WORKER);
    let resting: Vec<_> = (0..3).map(|_| resting(&entrypoint, 1_000)).collect();
    calls_are(&server, 3).await;
    match within(PATIENCE, "a refusal", entrypoint.call("count", args![])).await {
        Err(Error::Overloaded(text)) => {
            assert!(text.contains("calls_in_flight_per_session_max"), "{text}")
        }
        other => panic!("it should have been refused: {other:?}"),
    }
    assert_eq!(
        value(answer(&load(&modest, WORKER), "count", args![]).await),
        Value::from(1)
    );
    for rest in resting {
        within(PATIENCE, "a rest", rest).await.unwrap();
    }
}

#[tokio::test]
async fn one_connection_more_than_there_may_be_is_turned_away() {
    let server = Server::start_with(&[("connections-max", "2")]);
    let first = client(server.address()).await;
    let second = client(server.address()).await;
    match within(
        PATIENCE,
        "a refusal",
        Coracle::connect(server.address(), ConnectOptions::default()),
    )
    .await
    {
        Err(Error::Disconnected(_) | Error::Connect { .. }) => {}
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a third connection was served"),
    }
    assert_eq!(
        server
            .metric("coracle_connections_refused_total{reason=\"connections_max\"}")
            .await,
        1.0
    );
    assert_eq!(
        value(answer(&load(&first, WORKER), "count", args![]).await),
        Value::from(1)
    );
    drop(second);
    server
        .settles_at(Gauges {
            connections: 1,
            sessions: 1,
            ..Gauges::default()
        })
        .await;
    let third = client(server.address()).await;
    assert_eq!(
        value(answer(&load(&third, WORKER), "count", args![]).await),
        Value::from(1)
    );
}
