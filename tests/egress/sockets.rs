//! Connections of bytes.

use crate::support::*;
use coracle_outbound::{Connection, Error, Kind, RequestDecision};
use rustls::ServerConfig;
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

async fn world(limits: Value) -> World {
    let mut config = one_policy(json!([
        {"allow": ["tcp://a.test:*", "tcp://b.test:*", "http://c.test:*"], "private": true},
    ]));
    config["limits"] = limits;
    let world = World::with(config).await;
    for name in ["a.test", "b.test", "c.test"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    world
}

fn target(name: &str, server: SocketAddr) -> String {
    format!("{name}:{}", server.port())
}

async fn connect(world: &World, target: &str, with_tls: bool) -> Result<Connection, Error> {
    within(world.channel().connect(target, with_tls, &sender())).await
}

async fn echo(stream: impl AsyncRead + AsyncWrite) {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let _ = tokio::io::copy(&mut reading, &mut writing).await;
    let _ = writing.shutdown().await;
}

async fn echoing() -> RawServer {
    RawServer::start(echo).await
}

/// Speaks TLS, at once or after it was asked to.
async fn echoing_in_tls(config: Arc<ServerConfig>, is_asked: bool) -> RawServer {
    RawServer::start(move |mut stream| {
        let acceptor = TlsAcceptor::from(Arc::clone(&config));
        async move {
            if is_asked {
                let mut question = [0; 9];
                stream.read_exact(&mut question).await.expect("asked");
                assert_eq!(&question, b"STARTTLS\n");
                stream.write_all(b"go\n").await.expect("written");
            }
            if let Ok(stream) = acceptor.accept(stream).await {
                echo(stream).await;
            }
        }
    })
    .await
}

async fn check_echo(connection: &mut Connection) {
    connection
        .socket
        .write_all(b"hello")
        .await
        .expect("written");
    connection.socket.flush().await.expect("written");
    let mut echoed = [0; 5];
    within(connection.socket.read_exact(&mut echoed))
        .await
        .expect("read");
    assert_eq!(&echoed, b"hello");
}

#[tokio::test]
async fn bytes_go_both_ways() {
    let world = world(json!({})).await;
    let server = echoing().await;
    let target = target("a.test", server.address);
    let mut connection = connect(&world, &target, false).await.expect("allowed");
    check_echo(&mut connection).await;
    // One side can end before the other.
    connection.socket.write_all(b"bye").await.expect("written");
    connection.socket.shutdown().await.expect("written");
    let mut rest = String::new();
    within(connection.socket.read_to_string(&mut rest))
        .await
        .expect("read");
    assert_eq!(rest, "bye");
    assert!(world.records.all().is_empty());
    drop(connection);
    let record = world.records.one();
    assert_eq!(
        (record.kind, record.decision, record.error),
        (Kind::Connect, RequestDecision::Allowed, "")
    );
    assert_eq!(
        (&*record.method, record.destination),
        ("", format!("tcp://{target}"))
    );
    assert_eq!((record.bytes_sent, record.bytes_received), (8, 8));
}

#[tokio::test]
async fn tls_is_with_who_was_connected_to() {
    let world = world(json!({})).await;
    let config = world.authority.server(&["a.test"]);
    let server = echoing_in_tls(config, false).await;
    let mut connection = connect(&world, &target("a.test", server.address), true)
        .await
        .expect("it is a.test");
    check_echo(&mut connection).await;
    let error = connect(&world, &target("b.test", server.address), true)
        .await
        .err()
        .expect("it is not b.test");
    assert_eq!(error.code(), "tls_failed", "{error}");
    assert_eq!(world.records.wait_for(1).await[0].error, "tls_failed");
    let plain = echoing().await;
    let error = connect(&world, &target("a.test", plain.address), true)
        .await
        .err()
        .expect("it speaks none");
    assert_eq!(error.code(), "tls_failed", "{error}");
}

#[tokio::test]
async fn tls_is_started_later() {
    let world = world(json!({})).await;
    let config = world.authority.server(&["a.test", "other.test"]);
    let server = echoing_in_tls(config, true).await;
    for (expected, is_trusted) in [
        (None, true),
        (Some("other.test"), true),
        (Some("b.test"), false),
    ] {
        let mut connection = connect(&world, &target("a.test", server.address), false)
            .await
            .expect("allowed");
        connection
            .socket
            .write_all(b"STARTTLS\n")
            .await
            .expect("written");
        let mut answer = [0; 3];
        within(connection.socket.read_exact(&mut answer))
            .await
            .expect("read");
        let secured = within(world.channel().start_tls(connection, expected)).await;
        assert_eq!(secured.is_ok(), is_trusted, "{expected:?}");
        if let Ok(mut connection) = secured {
            check_echo(&mut connection).await;
        }
    }
}

/// A server that takes the connection and says nothing does not hold a worker up.
#[tokio::test]
async fn tls_that_does_not_begin_ends() {
    let world = world(json!({"connect_ms_max": 200})).await;
    let silent = RawServer::start(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let error = connect(&world, &target("a.test", silent.address), true)
        .await
        .err()
        .expect("it is late");
    assert!(
        matches!(
            error,
            Error::TooSlow {
                limit: "connect_ms_max",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_rule_for_http_is_none_for_bytes() {
    let world = world(json!({})).await;
    let server = echoing().await;
    for (target, code) in [
        (target("c.test", server.address), "policy_denied"),
        ("d.test:1".into(), "policy_denied"),
        ("a.test".into(), "url_refused"),
        ("a.test:0".into(), "url_refused"),
        ("http://a.test:1".into(), "url_refused"),
        ("u@a.test:1".into(), "url_refused"),
    ] {
        let error = connect(&world, &target, false)
            .await
            .err()
            .expect("refused");
        assert_eq!(error.code(), code, "{target}: {error}");
    }
    let records = world.records.all();
    assert!(
        records
            .iter()
            .all(|record| record.decision == RequestDecision::Denied),
        "{records:?}"
    );
    assert_eq!(world.dns.queries(), Vec::<String>::new());
}

#[tokio::test]
async fn a_tenant_has_so_many_at_once() {
    let world = world(json!({"sockets_max": 2})).await;
    let server = echoing().await;
    let target = target("a.test", server.address);
    let first = connect(&world, &target, false).await.expect("the first");
    let _second = connect(&world, &target, false).await.expect("the second");
    let error = connect(&world, &target, false)
        .await
        .err()
        .expect("the third");
    assert!(
        matches!(
            error,
            Error::Connections {
                limit: "sockets_max",
                max: 2,
                used: 2
            }
        ),
        "{error}"
    );
    // Another tenant has its own.
    let other = world.channel_of("other");
    within(other.connect(&target, false, &sender()))
        .await
        .expect("its own");
    drop(first);
    connect(&world, &target, false)
        .await
        .expect("there is room again");
}

/// All tenants together have so many connections, of which each has its share; those that are idle make room.
#[tokio::test]
async fn a_process_has_so_many_connections() {
    let world = world(json!({
        "outbound_connections_max": 3, "outbound_connections_per_tenant_max": 2, "connect_ms_max": 300,
    }))
    .await;
    let (bytes, website) = (
        echoing().await,
        Server::plain(|_| answer(200, &[], "yes")).await,
    );
    let target = target("a.test", bytes.address);
    let (one, other) = (world.channel_of("one"), world.channel_of("other"));
    let sender = sender();
    let refused = |connected: Result<Connection, Error>| match connected.err() {
        Some(Error::Connections { limit, max, used }) => (limit, max, used),
        error => panic!("{error:?}"),
    };
    let first = within(one.connect(&target, false, &sender)).await;
    let first = first.expect("the first");
    let second = within(one.connect(&target, false, &sender)).await;
    let second = second.expect("the second");
    let third = within(one.connect(&target, false, &sender)).await;
    assert_eq!(
        refused(third),
        ("outbound_connections_per_tenant_max", 2, 2)
    );
    let here = url("http", "c.test", website.address, "/");
    text(get(&other, here.clone()).await.expect("the third")).await;
    let open = world.outbound.connections();
    assert_eq!((open.http, open.socket, open.max), (1, 2, 3));
    // The third is idle by now, and makes room.
    let third = within(other.connect(&target, false, &sender)).await;
    let _third = third.expect("room");
    let fourth = within(other.connect(&target, false, &sender)).await;
    assert_eq!(refused(fourth), ("outbound_connections_max", 3, 3));
    let error = get_refused(&other, here.clone()).await;
    assert!(
        error
            .to_string()
            .contains("3 connections are open, 3 are allowed (outbound_connections_max)"),
        "{error}"
    );
    drop((first, second));
    text(get(&other, here).await.expect("there is room again")).await;
}

/// A name that is none is the caller's mistake, and not the peer's.
#[tokio::test]
async fn tls_with_a_name_that_is_none_is_refused() {
    let world = world(json!({})).await;
    let server = echoing().await;
    let target = target("a.test", server.address);
    let connection = connect(&world, &target, false).await.expect("allowed");
    let error = world.channel().start_tls(connection, Some("")).await.err();
    let error = error.expect("refused").to_string();
    assert!(error.contains("expectedServerHostname is empty"), "{error}");
    assert_eq!(world.records.one().error, "tls_failed");
}

/// What becomes of a connection whose TLS fails later is in its record, of which there is one.
#[tokio::test]
async fn tls_that_fails_later_is_recorded() {
    let world = world(json!({})).await;
    let server = echoing().await;
    let target = target("a.test", server.address);
    let connection = connect(&world, &target, false).await.expect("allowed");
    let failed = within(world.channel().start_tls(connection, None)).await;
    assert_eq!(failed.err().expect("it speaks none").code(), "tls_failed");
    let record = world.records.one();
    assert_eq!(
        (record.decision, record.error),
        (RequestDecision::Allowed, "tls_failed")
    );
    assert!(record.bytes_sent > 0, "{record:?}");
}
