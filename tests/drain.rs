//! The way down: SIGTERM.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    PATIENCE, Server, answer, client, eventually, get, load, value, verdict, within,
};
use coracle_client::{Error, Value, args};
use std::time::{Duration, Instant};

const WORKER: &str =
    "rest(ms) { return new Promise(done => setTimeout(() => done('rested'), ms)); }
                      spin() { for (;;); }
                      one() { return 1; }";

async fn has_calls(server: &Server, calls: u64) {
    eventually("the calls are in flight", async || {
        match server.gauges().await {
            gauges if gauges.calls == calls => Ok(()),
            gauges => Err(format!("there is {gauges:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn readiness_goes_first_then_new_work_then_what_runs_finishes() {
    let mut server = Server::start_with(&[("drain-delay-ms", "1500"), ("drain-grace-ms", "20000")]);
    assert_eq!(get(server.admin(), "/readyz").await.0, 200);
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, WORKER);
    let resting = entrypoint.clone();
    let resting = tokio::spawn(async move { answer(&resting, "rest", args![4_000]).await });
    has_calls(&server, 1).await;

    server.terminate();
    let start = Instant::now();
    let reason = eventually("readiness is denied", async || {
        match get(server.admin(), "/readyz").await {
            (503, reason) => Ok(reason),
            (status, body) => Err(format!("it is {status}: {body}")),
        }
    })
    .await;
    assert!(reason.contains("draining"), "{reason}");
    assert_eq!(
        get(server.admin(), "/livez").await.0,
        200,
        "a server that drains is alive"
    );
    assert_eq!(server.metric("coracle_draining").await, 1.0);
    if start.elapsed() < Duration::from_millis(1_000) {
        // Balancers have not noticed yet: whoever comes is still served.
        assert_eq!(
            value(answer(&load(&coracle, WORKER), "one", args![]).await),
            Value::from(1)
        );
    }

    eventually("new workers are refused", async || {
        match within(
            PATIENCE,
            "a load",
            coracle
                .load(crate::support::module("export default {}"))
                .ready(),
        )
        .await
        {
            Err(Error::Disconnected(text)) if text.contains("draining") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    match within(PATIENCE, "a call", entrypoint.call("one", args![])).await {
        Err(Error::Disconnected(text)) => assert!(text.contains("draining"), "{text}"),
        other => panic!("new calls should be refused: {other:?}"),
    }

    assert_eq!(
        value(within(PATIENCE, "the rest", resting).await.unwrap()),
        Value::from("rested")
    );
    let status = server.exits_within(PATIENCE).await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn what_is_left_after_the_grace_is_ended_with_an_answer() {
    let mut server = Server::start_with(&[("drain-delay-ms", "0"), ("drain-grace-ms", "500")]);
    let coracle = client(server.address()).await;
    let (resting, spinning) = (
        load(&coracle, WORKER),
        load(
            &coracle,
            "spin() { return new Promise(d => setTimeout(d, 25000)); }",
        ),
    );
    let resting = tokio::spawn(async move { answer(&resting, "rest", args![25_000]).await });
    let spinning = tokio::spawn(async move { answer(&spinning, "spin", args![]).await });
    has_calls(&server, 2).await;
    server.terminate();
    for left in [resting, spinning] {
        let answer = within(PATIENCE, "an answer", left).await.unwrap();
        assert_eq!(verdict(&answer), ("isolate_evicted", ""));
    }
    let status = server.exits_within(PATIENCE).await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn an_idle_server_goes_at_once() {
    let mut server = Server::start_with(&[("drain-delay-ms", "0"), ("drain-grace-ms", "20000")]);
    let coracle = client(server.address()).await;
    answer(&load(&coracle, WORKER), "one", args![]).await;
    let start = Instant::now();
    server.terminate();
    let status = server.exits_within(PATIENCE).await;
    assert!(status.success(), "{status}");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let mut server =
        Server::start_with(&[("drain-delay-ms", "20000"), ("drain-grace-ms", "20000")]);
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, WORKER);
    let resting = tokio::spawn(async move { entrypoint.call("rest", args![25_000]).await });
    has_calls(&server, 1).await;
    server.terminate();
    eventually("it drains", async || {
        match server.metric("coracle_draining").await {
            1.0 => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    let start = Instant::now();
    server.terminate();
    server.exits_within(Duration::from_secs(10)).await;
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        start.elapsed()
    );
    match within(PATIENCE, "an end", resting).await.unwrap() {
        Err(Error::Disconnected(_)) => {}
        other => panic!("the connection is gone, but: {other:?}"),
    }
}
