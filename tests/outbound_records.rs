//! What is told of requests: one record for each decision, to the log, the metrics and the tails of the worker.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    answer, class, eventually, module,
    site::{Site, TRY, Tail},
    value,
};
use coracle_client::{Entrypoint, Outbound, Response, Thrown, Value, WorkerCode, args};
use std::sync::{Arc, Mutex};

/// A worker with a tail, and what that is told.
fn told(site: &Site, outbound: Outbound, methods: &str) -> (Entrypoint, Arc<Mutex<Vec<Value>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tail = site.coracle.serve(Tail(Arc::clone(&told)));
    let code = WorkerCode {
        outbound,
        ..module(&class(methods))
    };
    let entrypoint = site.coracle.load(code.tail(tail)).entrypoint("default");
    (entrypoint, told)
}

/// The requests of the next invocation that the tail is told of.
async fn requests(told: &Mutex<Vec<Value>>) -> Vec<Value> {
    let event = eventually("the tail is told", async || {
        let mut told = told.lock().unwrap();
        match told.is_empty() {
            true => Err("nothing".to_owned()),
            false => Ok(told.remove(0)),
        }
    })
    .await;
    event.get("outbound").unwrap().as_array().unwrap().to_vec()
}

#[track_caller]
fn texts<const N: usize>(record: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| {
        let field = record.get(name);
        let text = field.and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("{name} of {record:?}"))
            .into()
    })
}

/// Waits until the log has so many lines with that in them.
async fn logged(site: &Site, part: &str, count: usize) {
    eventually("the log has it", async || {
        let log = site.server.log();
        match log.lines().filter(|line| line.contains(part)).count() {
            found if found == count => Ok(()),
            found => Err(format!("{found} lines")),
        }
    })
    .await;
}

/// A body that outlives its call is told of when the call is over, with what is known then, and once.
#[tokio::test]
async fn a_body_that_outlives_its_call_is_told_of_at_its_end() {
    let site = Site::start().await;
    let (entrypoint, told) = told(
        &site,
        Outbound::Policy,
        "async leave(url) {
            globalThis.reader = (await fetch(url)).body.getReader();
            return new TextDecoder().decode((await globalThis.reader.read()).value);
        }
        async stay() { await scheduler.wait(20_000); }",
    );
    // The isolate goes on, so that it is the call that ends.
    let staying = tokio::spawn({
        let entrypoint = entrypoint.clone();
        async move { drop(entrypoint.call("stay", args![]).await) }
    });
    let url = site.website.url("/stream");
    value(answer(&entrypoint, "leave", args![url.as_str()]).await);
    let records = requests(&told).await;
    assert_eq!(records.len(), 1, "{records:?}");
    let said = texts(&records[0], ["judge", "decision", "destination", "error"]);
    assert_eq!(said, ["policy", "allowed", &*url, ""]);
    assert_eq!(records[0].get("status"), Some(&200.into()));
    let received = records[0].get("bytesReceived").and_then(Value::as_f64);
    assert!(received.is_some_and(|bytes| bytes > 0.0), "{records:?}");
    logged(&site, "a request was let out", 1).await;
    staying.abort();
    drop((entrypoint, site.coracle));
    site.server.is_empty().await;
    let log = site.server.log();
    assert_eq!(log.matches("a request was let out").count(), 1, "{log}");
    let told = told.lock().unwrap();
    let is_told = |event: &Value| {
        let records = event.get("outbound").and_then(Value::as_array);
        records.is_some_and(|records| !records.is_empty())
    };
    assert!(!told.iter().any(is_told), "{told:?}");
}

/// Where there is nowhere to go, that is a decision as well.
#[tokio::test]
async fn what_leads_nowhere_is_told() {
    let site = Site::start().await;
    let (entrypoint, told) = told(&site, Outbound::None, TRY);
    value(answer(&entrypoint, "get", args!["https://a.test/x?secret"]).await);
    let records = requests(&told).await;
    assert_eq!(records.len(), 1, "{records:?}");
    let names = ["judge", "decision", "method", "destination", "error"];
    assert_eq!(
        texts(&records[0], names),
        ["none", "denied", "GET", "https://a.test/x", "policy_denied"]
    );
    let metric = "coracle_outbound_unjudged_total{judge=\"none\"}";
    assert_eq!(site.server.metric(metric).await, 1.0);
    logged(&site, "judge=\"none\"", 1).await;
}

/// What is passed to a gateway is told as passed on, and what came of it.
#[tokio::test]
async fn what_is_passed_to_a_gateway_is_told() {
    let site = Site::start().await;
    let gateway = site
        .coracle
        .gateway(async |request: coracle_client::Request| {
            match request.url.contains("forbidden") {
                true => Err(Thrown::new("Error", "no")),
                false => Ok(Response::new(200, "aye")),
            }
        });
    let (entrypoint, told) = told(&site, Outbound::Gateway(gateway), TRY);
    for (path, error) in [("x", ""), ("forbidden", "gateway_failed")] {
        let url = format!("https://a.test/{path}?secret");
        value(answer(&entrypoint, "get", args![url]).await);
        let records = requests(&told).await;
        assert_eq!(records.len(), 1, "{records:?}");
        let names = ["judge", "kind", "method", "destination", "error"];
        let destination = format!("https://a.test/{path}");
        assert_eq!(
            texts(&records[0], names),
            ["gateway", "fetch", "GET", &*destination, error]
        );
    }
    let metric = "coracle_outbound_unjudged_total{judge=\"gateway\"}";
    assert_eq!(site.server.metric(metric).await, 2.0);
    logged(&site, "a request was passed to a gateway", 2).await;
}
