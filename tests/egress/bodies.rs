//! Bodies both ways: whole, streamed, packed, or none.

use crate::support::*;
use async_compression::tokio::write::{DeflateEncoder, GzipEncoder, ZlibEncoder};
use bytes::Bytes;
use coracle_outbound::{Body, Error};
use futures::StreamExt;
use serde_json::json;
use tokio::io::AsyncWriteExt;

async fn world() -> World {
    let world = World::of(json!([{"allow": ["http://a.test:*"], "private": true}])).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world
}

/// A text packed in that way.
async fn packed(encoding: &str, text: &[u8]) -> Bytes {
    macro_rules! with {
        ($encoder:ident) => {{
            let mut encoder = $encoder::new(Vec::new());
            encoder.write_all(text).await.expect("packed");
            encoder.shutdown().await.expect("packed");
            encoder.into_inner().into()
        }};
    }
    match encoding {
        "gzip" => with!(GzipEncoder),
        "deflate" => with!(ZlibEncoder),
        "deflate, bare" => with!(DeflateEncoder),
        other => panic!("{other}"),
    }
}

/// A server whose answers are all this.
async fn saying(encoding: &'static str, body: Bytes) -> Server {
    Server::plain(move |_| answer(200, &[("content-encoding", encoding)], body.clone())).await
}

#[tokio::test]
async fn packed_bodies_are_unpacked() {
    let world = world().await;
    let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    for (kind, encoding) in [
        ("gzip", "gzip"),
        ("gzip", "x-gzip"),
        ("gzip", "GZIP"),
        ("deflate", "deflate"),
        // Some servers leave out what the standard puts around it, and browsers read it.
        ("deflate, bare", "deflate"),
    ] {
        let server = saying(encoding, packed(kind, &text).await).await;
        let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
        let response = response.expect("a response");
        for name in ["content-encoding", "content-length"] {
            assert_eq!(header(&response, name), None, "{kind} {encoding}");
        }
        assert_eq!(read(response).await.expect(kind), text, "{kind} {encoding}");
        assert_eq!(server.one().header("accept-encoding"), ["gzip, deflate"]);
    }
    // What follows the first member is left out: any number of empty ones would be work for nothing.
    let two = [packed("gzip", b"one").await, packed("gzip", b"two").await].concat();
    let server = saying("gzip", two.into()).await;
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    assert_eq!(text_of(response).await, "one");
}

async fn text_of(response: Result<coracle_outbound::Response, Error>) -> String {
    text(response.expect("a response")).await
}

/// What says it is packed and is nothing is nothing.
#[tokio::test]
async fn an_empty_body_is_empty_however_it_is_packed() {
    let world = world().await;
    for encoding in ["gzip", "deflate"] {
        let server = saying(encoding, Bytes::new()).await;
        let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
        assert_eq!(text_of(response).await, "", "{encoding}");
    }
}

#[tokio::test]
async fn a_body_that_is_packed_badly_is_an_error() {
    let world = world().await;
    let whole = packed("gzip", &[7; 5_000]).await;
    for (encoding, body) in [
        ("gzip", Bytes::from_static(b"this is no gzip at all")),
        ("deflate", Bytes::from_static(b"\x78\x9cno")),
        ("gzip", whole.slice(..whole.len() - 10)),
    ] {
        let server = saying(encoding, body).await;
        let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
        let error = read(response.expect("a response"))
            .await
            .expect_err(encoding);
        assert_eq!(error.code(), "protocol_failed", "{encoding}: {error}");
    }
}

/// What we have not asked for is the worker's to unpack, with what says how.
#[tokio::test]
async fn what_is_packed_in_another_way_is_passed_on() {
    let world = world().await;
    for encoding in ["zstd", "gzip, gzip", "br"] {
        let server = saying(encoding, Bytes::from_static(b"as it is")).await;
        let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
        let response = response.expect("a response");
        assert_eq!(header(&response, "content-encoding"), Some(encoding));
        assert_eq!(text(response).await, "as it is");
    }
    let server = Server::plain(|_| {
        answer(
            200,
            &[("content-encoding", "gzip"), ("content-encoding", "br")],
            "as it is",
        )
    })
    .await;
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    assert_eq!(text_of(response).await, "as it is");
}

/// Offsets are of the bytes that are sent, so these may not be packed.
#[tokio::test]
async fn a_part_is_asked_for_unpacked() {
    let world = world().await;
    let server = Server::plain(|_| answer(206, &[("content-range", "bytes 0-1/9")], "ab")).await;
    let asked = request("GET", url("http", "a.test", server.address, "/"));
    let asked = with_headers(
        asked,
        &[("Range", "bytes=0-1"), ("Accept-Encoding", "gzip")],
    );
    let response = fetch(&world.channel(), asked).await.expect("a response");
    assert_eq!(
        (response.status, header(&response, "content-length")),
        (206, Some("2"))
    );
    let seen = server.one();
    assert_eq!(seen.header("accept-encoding"), ["identity"]);
    assert_eq!(seen.header("range"), ["bytes=0-1"]);
}

/// Responses that have no body by the standard, whatever they say of one.
#[tokio::test]
async fn some_responses_have_no_body() {
    let world = world().await;
    let server = Server::plain(|seen| {
        let status = seen.path[1..].parse().expect("a status");
        answer(status, &[("content-encoding", "gzip"), ("x-own", "1")], "")
    })
    .await;
    let channel = world.channel();
    for (method, status) in [
        ("GET", 204),
        ("GET", 205),
        ("GET", 304),
        ("POST", 204),
        ("HEAD", 200),
        ("HEAD", 404),
    ] {
        let asked = request(
            method,
            url("http", "a.test", server.address, &format!("/{status}")),
        );
        let response = fetch(&channel, asked).await.expect("a response");
        assert_eq!(response.status, status);
        assert!(response.body.is_none(), "{method} {status}");
        assert_eq!(
            header(&response, "content-encoding"),
            Some("gzip"),
            "{method} {status}"
        );
        assert_eq!(header(&response, "x-own"), Some("1"));
    }
    assert_eq!(world.records.all().len(), 6);
}

/// The length of a body is ours to say: of bytes it is said, of a stream it is not, and of none where one is expected.
#[tokio::test]
async fn the_length_of_a_body_is_said_where_it_is_known() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    let channel = world.channel();
    let asked = |method| request(method, url("http", "a.test", server.address, "/"));
    fetch(&channel, with_request_body(asked("POST"), b"four"))
        .await
        .expect("sent");
    fetch(&channel, asked("POST")).await.expect("sent");
    fetch(&channel, asked("GET")).await.expect("sent");
    let mut stream = asked("PUT");
    stream.body = streamed(&["one", "", "two"]);
    fetch(&channel, stream).await.expect("sent");
    let seen: Vec<_> = server
        .seen()
        .into_iter()
        .map(|seen| {
            (
                seen.header("content-length").join(","),
                seen.header("transfer-encoding").join(","),
                seen.body,
            )
        })
        .collect();
    let expected = [
        ("4", "", "four"),
        ("0", "", ""),
        ("", "", ""),
        ("", "chunked", "onetwo"),
    ];
    let expected = expected
        .map(|(length, coding, body)| (length.to_owned(), coding.to_owned(), Bytes::from(body)));
    assert_eq!(seen, expected);
    let sent: Vec<u64> = world
        .records
        .wait_for(4)
        .await
        .iter()
        .map(|record| record.bytes_sent)
        .collect();
    assert_eq!(sent, [4, 0, 0, 6]);
}

/// What a worker's own stream fails with is said, and the server gets no request that looks whole.
#[tokio::test]
async fn a_body_that_fails_breaks_the_request_off() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    let mut asked = request("POST", url("http", "a.test", server.address, "/"));
    let pieces = [
        Ok(Bytes::from_static(b"one")),
        Err("the worker's own words".to_owned()),
    ];
    asked.body = Body::Stream(futures::stream::iter(pieces).boxed());
    let error = refused(&world.channel(), asked).await;
    assert!(
        matches!(&error, Error::Body(reason) if reason == "the worker's own words"),
        "{error}"
    );
    assert_eq!(world.records.wait_for(1).await[0].error, "body_failed");
    assert!(server.seen().is_empty());
}

/// A response comes as it is sent, not when it is whole.
#[tokio::test]
async fn a_response_is_streamed() {
    let world = world().await;
    let (piece, pieces) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let pieces = std::sync::Mutex::new(Some(pieces));
    let server = Server::plain(move |_| {
        let pieces = pieces
            .lock()
            .expect("no panic")
            .take()
            .expect("one request");
        let pieces = futures::stream::unfold(pieces, async |mut pieces| {
            let piece = pieces.recv().await?;
            Some((Ok(http_body::Frame::data(piece)), pieces))
        });
        let body = http_body_util::StreamBody::new(pieces);
        with_body(200, &[], http_body_util::BodyExt::boxed_unsync(body))
    })
    .await;
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    let mut body = response.expect("a response").body.expect("a body");
    for text in ["one", "two"] {
        piece
            .send(Bytes::from_static(text.as_bytes()))
            .expect("it is read");
        let came = within(body.next())
            .await
            .expect("a piece")
            .expect("a piece");
        assert_eq!(came, text);
    }
    drop(piece);
    assert!(within(body.next()).await.is_none());
    drop(body);
    assert_eq!(world.records.one().bytes_received, 6);
}

/// A server that has answered gets no more of what is sent, and the record has all that it got.
#[tokio::test]
async fn a_body_that_is_sent_ends_with_the_response() {
    let world = world().await;
    let server = RawServer::saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "").await;
    let (sender, pieces) = tokio::sync::mpsc::unbounded_channel::<Result<Bytes, String>>();
    let pieces = futures::stream::unfold(pieces, async |mut pieces| {
        Some((pieces.recv().await?, pieces))
    });
    let mut asked = request("POST", url("http", "a.test", server.address, "/"));
    asked.body = Body::Stream(pieces.boxed());
    sender.send(Ok(Bytes::from_static(b"some"))).expect("taken");
    let response = fetch(&world.channel(), asked).await.expect("a response");
    assert_eq!(text(response).await, "ok");
    // Whoever would send more finds that nobody takes it.
    within(sender.closed()).await;
    let record = &world.records.wait_for(1).await[0];
    assert_eq!(
        (record.bytes_sent, record.status, record.error),
        (4, 200, "")
    );
}
