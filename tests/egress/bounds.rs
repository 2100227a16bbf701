//! N14: what a server does without end has one, in bytes and in time, and a word for it.

use crate::support::*;
use async_compression::tokio::write::GzipEncoder;
use bytes::Bytes;
use coracle_outbound::Error;
use futures::StreamExt;
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

const BYTES_MAX: u64 = 1 << 20;

async fn world() -> World {
    let mut config = one_policy(json!([{"allow": ["http://a.test:*"], "private": true}]));
    config["limits"] = json!({
        "response_bytes_max": BYTES_MAX, "request_bytes_max": 1000, "response_ms_max": 300, "idle_ms_max": 200,
    });
    let world = World::with(config).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world
}

/// Fetches all of it; says what it failed with, and how much came before.
async fn failing(world: &World, server: std::net::SocketAddr) -> (Error, u64) {
    let got = get(&world.channel(), url("http", "a.test", server, "/")).await;
    let error = match got {
        Err(error) => error,
        Ok(response) => read(response).await.expect_err("it has no end"),
    };
    let record = world.records.wait_for(1).await.pop().expect("a record");
    assert_eq!(record.error, error.code());
    (error, record.bytes_received)
}

#[tokio::test]
async fn a_body_without_end_ends() {
    let world = world().await;
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let endless = RawServer::saying(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        chunk,
    )
    .await;
    let (error, received) = failing(&world, endless.address).await;
    assert!(
        matches!(
            error,
            Error::TooLarge {
                limit: "response_bytes_max",
                ..
            }
        ),
        "{error}"
    );
    assert!(received <= BYTES_MAX, "{received}");
}

#[tokio::test]
async fn a_body_of_a_length_that_nobody_allows_ends() {
    let world = world().await;
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n",
        // Without a length: until the connection ends, which it does not.
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        let endless = RawServer::saying(head, "x".repeat(0x8000)).await;
        let (error, received) = failing(&world, endless.address).await;
        assert_eq!(error.code(), "too_large", "{error}");
        assert!(received <= BYTES_MAX, "{received}");
    }
}

#[tokio::test]
async fn heads_without_end_end() {
    let world = world().await;
    let line = format!("x: {}\r\n", "y".repeat(1000));
    for first in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nx: "] {
        let server = RawServer::saying(first, line.clone()).await;
        let (error, _) = failing(&world, server.address).await;
        assert_eq!(error.code(), "protocol_failed", "{error}");
    }
    // One megabyte, and an end.
    let long = format!(
        "HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n",
        "y".repeat(1 << 20)
    );
    let many = format!(
        "HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n",
        "x: y\r\n".repeat(300)
    );
    for head in [long, many] {
        let server = RawServer::saying(head, "").await;
        let (error, _) = failing(&world, server.address).await;
        assert_eq!(error.code(), "protocol_failed", "{error}");
    }
}

/// Status after status, and none of them the last.
#[tokio::test]
async fn a_flood_of_interim_responses_ends() {
    let world = world().await;
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n",
    ] {
        let server = RawServer::saying("", interim).await;
        let (error, _) = failing(&world, server.address).await;
        assert!(
            ["too_slow", "protocol_failed"].contains(&error.code()),
            "{error}"
        );
    }
    // Some of them are no harm.
    let some = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3)
        + "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let server = RawServer::saying(some, "").await;
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    assert_eq!(text(response.expect("a response")).await, "ok");
}

/// A head that drips is too slow as a whole; a body that stands still is.
#[tokio::test]
async fn what_drips_or_stands_still_ends() {
    let world = world().await;
    let dripping = RawServer::start(|mut stream| async move {
        read_head(&mut stream).await;
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let mut written = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while written.is_ok() {
            ticks.tick().await;
            written = stream.write_all(b"y").await;
        }
    })
    .await;
    let (error, _) = failing(&world, dripping.address).await;
    assert!(
        matches!(
            error,
            Error::TooSlow {
                limit: "response_ms_max",
                ..
            }
        ),
        "{error}"
    );
    let silent = RawServer::saying("", "").await;
    let (error, _) = failing(&world, silent.address).await;
    assert!(
        matches!(
            error,
            Error::TooSlow {
                limit: "response_ms_max",
                ..
            }
        ),
        "{error}"
    );
    let standing = RawServer::saying("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome", "").await;
    let got = get(
        &world.channel(),
        url("http", "a.test", standing.address, "/"),
    )
    .await;
    let error = read(got.expect("a head"))
        .await
        .expect_err("it stands still");
    assert!(
        matches!(
            error,
            Error::TooSlow {
                limit: "idle_ms_max",
                ..
            }
        ),
        "{error}"
    );
}

/// A thousand times as long unpacked as packed.
#[tokio::test]
async fn a_bomb_is_bounded_unpacked() {
    let world = world().await;
    let zeros = vec![0; 64 << 20];
    let mut gzip = GzipEncoder::new(Vec::new());
    gzip.write_all(&zeros).await.expect("packed");
    gzip.shutdown().await.expect("packed");
    for (encoding, packed) in [("gzip", gzip.into_inner())] {
        let packed = Bytes::from(packed);
        assert!(packed.len() < 100_000, "{encoding}: {}", packed.len());
        let server =
            Server::plain(move |_| answer(200, &[("content-encoding", encoding)], packed.clone()))
                .await;
        let (error, received) = failing(&world, server.address).await;
        assert!(
            matches!(
                error,
                Error::TooLarge {
                    limit: "response_bytes_max",
                    ..
                }
            ),
            "{error}"
        );
        assert!(received <= BYTES_MAX, "{received}");
    }
}

#[tokio::test]
async fn what_is_no_http_is_an_error() {
    let world = world().await;
    for head in [
        "\x16\x03\x01\x02\x00",
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx y: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 999 Strange\r\ncontent-length: 0\r\n\r\n",
        // A protocol that nobody asked for.
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
    ] {
        let server = RawServer::saying(head, "").await;
        let (error, _) = failing(&world, server.address).await;
        assert_eq!(error.code(), "protocol_failed", "{head:?}: {error}");
    }
    // A connection that ends before its time, before the head and after it.
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome"] {
        let server = RawServer::start(move |mut stream| async move {
            read_head(&mut stream).await;
            stream.write_all(head.as_bytes()).await.expect("written");
        })
        .await;
        let (error, _) = failing(&world, server.address).await;
        assert_eq!(error.code(), "protocol_failed", "{head:?}: {error}");
    }
}

/// The other way: what a worker sends is bounded too, whole or streamed.
#[tokio::test]
async fn a_request_that_is_too_long_is_not_sent_whole() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    let asked = |body| {
        let mut asked = request("POST", url("http", "a.test", server.address, "/"));
        asked.body = body;
        asked
    };
    let whole = coracle_outbound::Body::Bytes(Bytes::from_static(&[7; 1001]));
    let stream = streamed(&[
        include_str!("main.rs"),
        include_str!("main.rs"),
        include_str!("main.rs"),
    ]);
    for body in [whole, stream] {
        let error = refused(&world.channel(), asked(body)).await;
        assert!(
            matches!(
                error,
                Error::TooLarge {
                    limit: "request_bytes_max",
                    ..
                }
            ),
            "{error}"
        );
    }
    assert!(server.seen().is_empty());
    let just = coracle_outbound::Body::Bytes(Bytes::from_static(&[7; 1000]));
    fetch(&world.channel(), asked(just))
        .await
        .expect("it is not too long");
}

/// However many come, only so many are read.
#[tokio::test]
async fn answers_before_the_one_that_counts_are_bounded() {
    let world = world().await;
    let flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20_000);
    let server = RawServer::saying(flood, "").await;
    let (error, _) = failing(&world, server.address).await;
    assert_eq!(error.code(), "protocol_failed");
    assert!(
        error.to_string().contains("more than 16 answers"),
        "{error}"
    );
}

/// What bounds the response begins when the request is sent: an upload that takes longer than that, and goes on, is let be.
#[tokio::test]
async fn an_upload_is_not_the_responses_time() {
    let mut config = one_policy(json!([{"allow": ["http://a.test:*"], "private": true}]));
    config["limits"] = json!({"response_ms_max": 300, "idle_ms_max": 20_000});
    let world = World::with(config).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    let server = Server::plain(|seen| answer(200, &[], seen.body.len().to_string())).await;
    let mut asked = request("POST", url("http", "a.test", server.address, "/"));
    // Eight times 60 ms is more than the 300 ms of the response.
    let pieces = futures::stream::unfold(0, |count| async move {
        tokio::time::sleep(Duration::from_millis(60)).await;
        (count < 8).then(|| (Ok(Bytes::from_static(b"piece")), count + 1))
    });
    asked.body = coracle_outbound::Body::Stream(pieces.boxed());
    let response = fetch(&world.channel(), asked).await.expect("it goes on");
    assert_eq!(text(response).await, "40");
}

/// An upload that stands still is given up by its own limit.
#[tokio::test]
async fn an_upload_that_stands_still_ends() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    let mut asked = request("POST", url("http", "a.test", server.address, "/"));
    let first = futures::stream::iter([Ok(Bytes::from_static(b"piece"))]);
    asked.body = coracle_outbound::Body::Stream(first.chain(futures::stream::pending()).boxed());
    let error = fetch(&world.channel(), asked).await.err().expect("it ends");
    assert!(
        matches!(
            error,
            Error::TooSlow {
                limit: "idle_ms_max",
                ..
            }
        ),
        "{error}"
    );
}
