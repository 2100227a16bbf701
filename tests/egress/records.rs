//! Each outcome has one record, which says what became of the request and has nothing in it that is not to be shown.

use crate::support::*;
use coracle_outbound::{Kind, RequestDecision};
use serde_json::json;

#[tokio::test]
async fn every_outcome_has_its_record() {
    let mut config = one_policy(json!([
        {"name": "limited", "allow": ["http://limited.test:*"], "private": true, "budget": {"requests_max": 1, "per_seconds": 60}},
        {"name": "in", "allow": ["http://a.test:*", "https://a.test:*"], "private": true},
        {"name": "wide", "allow": ["http://*.test:*"]},
        {"name": "ask", "ask": ["http://ask.example"]},
    ]));
    config["limits"] = json!({"response_ms_max": 200, "response_bytes_max": 5});
    let world = World::with(config).await;
    let server = Server::plain(|seen| match &*seen.path {
        path if path.starts_with("/long") => answer(200, &[], "more than five"),
        _ => answer(201, &[], "ok"),
    })
    .await;
    let silent = RawServer::saying("", "").await;
    let strange = RawServer::saying("no HTTP\r\n\r\n", "").await;
    for name in ["a.test", "b.test", "limited.test"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a listener")
        .local_addr()
        .expect("an address");
    let channel = world.channel();
    let (allowed, denied) = (RequestDecision::Allowed, RequestDecision::Denied);
    let (wide, inner) = (
        "rule 3 \"wide\" of the policy \"main\"",
        "rule 2 \"in\" of the policy \"main\"",
    );
    let limited = "rule 1 \"limited\" of the policy \"main\"";
    for (url, decision, rule, status, error) in [
        (
            url("http", "a.test", server.address, "/x?secret"),
            allowed,
            inner,
            201,
            "",
        ),
        (
            url("http", "a.test", server.address, "/long?secret"),
            allowed,
            inner,
            200,
            "too_large",
        ),
        (
            url("http", "a.test", silent.address, "/?secret"),
            allowed,
            inner,
            0,
            "too_slow",
        ),
        (
            url("http", "a.test", strange.address, "/?secret"),
            allowed,
            inner,
            0,
            "protocol_failed",
        ),
        (
            url("https", "a.test", server.address, "/?secret"),
            allowed,
            inner,
            0,
            "tls_failed",
        ),
        (
            url("http", "a.test", closed, "/?secret"),
            allowed,
            inner,
            0,
            "connect_failed",
        ),
        (
            "http://unknown.test/?secret".into(),
            allowed,
            wide,
            0,
            "resolve_failed",
        ),
        (
            url("http", "b.test", server.address, "/?secret"),
            denied,
            wide,
            0,
            "address_denied",
        ),
        (
            url("http", "limited.test", server.address, "/?secret"),
            allowed,
            limited,
            201,
            "",
        ),
        (
            url("http", "limited.test", server.address, "/?secret"),
            denied,
            limited,
            0,
            "budget_exceeded",
        ),
        (
            "http://ask.example/?secret".into(),
            denied,
            "rule 4 \"ask\" of the policy \"main\"",
            0,
            "ask_denied",
        ),
        (
            "http://no.example/?secret".into(),
            denied,
            "the policy \"main\"",
            0,
            "policy_denied",
        ),
        ("ftp://a.test/?secret".into(), denied, "", 0, "url_refused"),
    ] {
        let before = world.records.all().len();
        let outcome = match get(&channel, url.clone()).await {
            Err(error) => Err(error),
            Ok(response) => read(response).await,
        };
        let record = world
            .records
            .wait_for(before + 1)
            .await
            .pop()
            .expect("a record");
        assert_eq!(
            outcome.err().map_or("", |error| error.code()),
            error,
            "{url}"
        );
        assert_eq!((record.decision, &*record.rule), (decision, rule), "{url}");
        assert_eq!((record.status, record.error), (status, error), "{url}");
        assert_eq!(
            (record.kind, &*record.method, record.hop),
            (Kind::Fetch, "GET", 0)
        );
        assert_eq!(record.sender, sender());
        if error != "url_refused" {
            assert_eq!(record.destination, url.replace("?secret", ""));
        }
        assert!(!format!("{record:?}").contains("secret"), "{record:?}");
    }
    assert_eq!(world.records.all().len(), 13);
}

#[tokio::test]
async fn a_record_has_the_bytes_and_the_time() {
    let world = World::of(json!([{"allow": ["http://a.test:*"], "private": true}])).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    let server = Server::plain(|_| answer(200, &[], "0123456789")).await;
    let asked = request("POST", url("http", "a.test", server.address, "/"));
    let response = fetch(&world.channel(), with_request_body(asked, b"four"))
        .await
        .expect("sent");
    // It is told when the body is over, and not before.
    assert!(world.records.all().is_empty());
    read(response).await.expect("a body");
    let record = world.records.one();
    assert_eq!(
        (record.bytes_sent, record.bytes_received, record.redactions),
        (4, 10, 0)
    );
    assert!(!record.duration.is_zero());
}
