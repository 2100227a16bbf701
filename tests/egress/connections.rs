//! Which connections are used again, by whom, and when they end.

use crate::support::*;
use coracle_outbound::Error;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, oneshot},
};

async fn world() -> World {
    let world = World::of(json!([
        {"allow": ["http://a.test:*"], "paths": ["/public/**"]},
        {"allow": ["http://a.test:*"], "private": true},
    ]))
    .await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world
}

#[tokio::test]
async fn a_connection_is_used_again_by_its_tenant_alone() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    for tenant in ["acme", "acme", "other", "acme", "other"] {
        // Another channel of the same tenant is another worker, and shares it.
        let channel = world.channel_of(tenant);
        let response = get(&channel, url("http", "a.test", server.address, "/")).await;
        text(response.expect("reached")).await;
    }
    let connections: Vec<usize> = server.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0, 1, 0, 1]);
    let peers: Vec<_> = server.seen().iter().map(|seen| seen.peer).collect();
    assert!(peers[0] == peers[1] && peers[1] == peers[3] && peers[2] == peers[4]);
    assert_eq!(world.dns.lookups("a.test"), 2);
}

/// A connection to a private address was let through for a rule that names it. It is not used for another.
#[tokio::test]
async fn a_private_connection_is_of_no_use_to_a_public_request() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    let channel = world.channel();
    let response = get(&channel, url("http", "a.test", server.address, "/named")).await;
    text(response.expect("named")).await;
    let error = get_refused(&channel, url("http", "a.test", server.address, "/public/x")).await;
    assert_eq!(error.code(), "address_denied", "{error}");
    assert_eq!(server.one().path, "/named");
}

/// A server that closes a connection that nothing is sent on is asked again on another.
#[tokio::test]
async fn a_connection_that_was_closed_is_made_again() {
    let world = world().await;
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let server = RawServer::start(move |mut stream| {
        let told = Arc::clone(&told);
        async move {
            read_head(&mut stream).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";
            stream.write_all(answer).await.expect("written");
            drop(stream);
            told.notify_one();
        }
    })
    .await;
    let channel = world.channel();
    for _ in 0..3 {
        let response = get(&channel, url("http", "a.test", server.address, "/")).await;
        assert_eq!(text(response.expect("reached")).await, "yes");
        within(closed.notified()).await;
    }
}

/// A server that says when it has a request, and when its connection is over.
async fn watched(head: &'static [u8]) -> (RawServer, oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let (arrived, has_arrived) = oneshot::channel();
    let (over, is_over) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some((arrived, over))));
    let server = RawServer::start(move |mut stream| {
        let tell = Arc::clone(&tell);
        async move {
            let (arrived, over) = tell
                .lock()
                .expect("no panic")
                .take()
                .expect("one connection");
            read_head(&mut stream).await;
            stream.write_all(head).await.expect("written");
            arrived.send(()).expect("it is waited for");
            // (It may be reset, which is an end as well.)
            let _ = stream.read_to_end(&mut Vec::new()).await;
            let _ = over.send(());
        }
    })
    .await;
    (server, has_arrived, is_over)
}

/// A fetch that nobody waits for any longer is over for the server too, and has its record.
#[tokio::test]
async fn a_fetch_that_is_cancelled_is_over() {
    let world = world().await;
    let (server, has_arrived, is_over) = watched(b"").await;
    let channel = world.channel();
    let asked = request("GET", url("http", "a.test", server.address, "/x?y"));
    let sender = sender();
    let fetched = channel.fetch(asked, &sender);
    tokio::select! {
        _ = fetched => panic!("there is no answer"),
        arrived = has_arrived => arrived.expect("it arrived"),
    }
    within(is_over).await.expect("it is over");
    let record = world.records.one();
    assert_eq!((record.error, record.status), ("cancelled", 0));
    assert!(record.destination.ends_with("/x"), "{record:?}");
}

/// So is a body that nobody reads on.
#[tokio::test]
async fn a_body_that_is_let_go_of_is_over() {
    let world = world().await;
    let (server, _arrived, is_over) =
        watched(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nsome").await;
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    drop(response.expect("a head"));
    within(is_over).await.expect("it is over");
    let record = world.records.one();
    assert_eq!((record.error, record.status), ("", 200));
}

/// What is connected to by two who ask at once is two connections at most, and both are answered.
#[tokio::test]
async fn requests_at_once_are_all_answered() {
    let world = world().await;
    let server = Server::plain(|seen| answer(200, &[], seen.path.clone())).await;
    let channel = world.channel();
    let gets = (0..30).map(|index| {
        get(
            &channel,
            url("http", "a.test", server.address, &format!("/{index}")),
        )
    });
    for (index, response) in futures::future::join_all(gets)
        .await
        .into_iter()
        .enumerate()
    {
        assert_eq!(text(response.expect("reached")).await, format!("/{index}"));
    }
    assert_eq!(world.records.wait_for(30).await.len(), 30);
}

/// A tenant has so many connections, whatever it asks for: those that are idle make room, and those in use do not.
#[tokio::test]
async fn a_tenant_has_so_many_connections() {
    let mut config = one_policy(json!([{"allow": ["http://*.test:*"], "private": true}]));
    config["limits"] = json!({"connections_max": 2, "connect_ms_max": 300});
    let world = World::with(config).await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    let channel = world.channel();
    for index in 0..10 {
        let name = format!("h{index}.test");
        world.dns.set(&name, &["127.0.0.1"]);
        let response = get(&channel, url("http", &name, server.address, "/")).await;
        assert_eq!(text(response.expect("an idle one ends")).await, "yes");
    }
    let endless = RawServer::saying("HTTP/1.1 200 OK\r\n\r\n", "").await;
    let here = url("http", "h0.test", endless.address, "/");
    let _first = get(&channel, here.clone()).await.expect("the first");
    let second = get(&channel, here.clone()).await.expect("the second");
    let error = get_refused(&channel, here.clone()).await;
    assert!(
        matches!(
            error,
            Error::Connections {
                limit: "connections_max",
                max: 2,
                used: 2
            }
        ),
        "{error}"
    );
    assert_eq!(error.code(), "budget_exceeded");
    get(&world.channel_of("other"), here.clone())
        .await
        .expect("its own");
    drop(second);
    get(&channel, here).await.expect("there is room again");
}
