//! The handshake of WebSockets, and that what is said afterwards passes.

use crate::support::*;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use coracle_outbound::{Error, Kind, Request};
use serde_json::json;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

async fn world() -> World {
    let mut config = one_policy(json!([
        {"allow": ["http://a.test:*", "https://a.test:*"], "private": true},
    ]));
    config["limits"] = json!({"sockets_max": 1});
    let world = World::with(config).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world
}

fn asked(url: String) -> Request {
    let headers = [
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Protocol", "chat, other"),
        ("Sec-WebSocket-Key", "mine"),
    ];
    with_headers(request("GET", url), &headers)
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines();
    lines.find_map(|line| {
        let (other, value) = line.split_once(": ")?;
        other.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Accepts as the standard says, with these headers besides, and turns every byte that comes into the next.
async fn accept(mut stream: impl AsyncRead + AsyncWrite + Unpin, headers: &str) -> String {
    let head = read_head(&mut stream).await;
    let key = value(&head, "sec-websocket-key").expect("a key");
    assert_eq!(STANDARD.decode(key).expect("a key").len(), 16);
    let accept = STANDARD.encode(Sha1::digest(format!(
        "{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    )));
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: \
         {accept}\r\n{headers}\r\nfirst"
    );
    // (What comes with the head is of the connection already.)
    stream.write_all(answer.as_bytes()).await.expect("written");
    while let Ok(byte) = stream.read_u8().await {
        stream.write_u8(byte + 1).await.expect("written");
    }
    head
}

#[tokio::test]
async fn a_web_socket_is_opened_and_passes_bytes() {
    let world = world().await;
    let heads = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = heads.clone();
    let server = RawServer::start(move |stream| {
        let kept = kept.clone();
        async move {
            let head = accept(stream, "sec-websocket-protocol: chat\r\n").await;
            kept.lock().expect("no panic").push(head);
        }
    })
    .await;
    for scheme in ["ws", "http"] {
        let here = url(scheme, "a.test", server.address, "/chat?room=1");
        let mut response = fetch(&world.channel(), asked(here))
            .await
            .expect("accepted");
        assert_eq!(response.status, 101);
        assert_eq!(header(&response, "sec-websocket-protocol"), Some("chat"));
        assert!(response.body.is_none());
        let mut socket = response.socket.take().expect("a socket");
        let mut first = [0; 5];
        within(socket.read_exact(&mut first)).await.expect("read");
        assert_eq!(&first, b"first");
        socket.write_all(b"abc").await.expect("written");
        let mut next = [0; 3];
        within(socket.read_exact(&mut next)).await.expect("read");
        assert_eq!(&next, b"bcd");
        // The only place that a tenant has here is taken until then.
        let error = refused(
            &world.channel(),
            asked(url("http", "a.test", server.address, "/")),
        )
        .await;
        assert!(
            matches!(
                error,
                Error::Connections {
                    limit: "sockets_max",
                    max: 1,
                    used: 1
                }
            ),
            "{error}"
        );
        drop(socket);
    }
    let records = world.records.wait_for(4).await;
    let open: Vec<_> = records
        .iter()
        .filter(|record| record.status == 101)
        .collect();
    assert_eq!(open.len(), 2);
    for record in open {
        assert_eq!(
            (record.kind, record.bytes_sent, record.bytes_received),
            (Kind::WebSocket, 3, 8)
        );
        assert!(record.destination.ends_with("/chat"), "{record:?}");
    }
    let heads = heads.lock().expect("no panic").clone();
    for head in heads {
        assert!(head.starts_with("GET /chat?room=1 HTTP/1.1\r\n"), "{head}");
        assert_eq!(value(&head, "upgrade"), Some("websocket"));
        assert_eq!(
            value(&head, "connection")
                .map(str::to_ascii_lowercase)
                .as_deref(),
            Some("upgrade")
        );
        assert_eq!(value(&head, "sec-websocket-version"), Some("13"));
        assert_eq!(value(&head, "sec-websocket-protocol"), Some("chat, other"));
        assert_eq!(value(&head, "sec-websocket-extensions"), None);
    }
}

/// `wss:` is by HTTP/1.1 also where the server has HTTP/2, which has no such upgrade.
#[tokio::test]
async fn a_web_socket_is_opened_in_tls() {
    let world = world().await;
    let config = world.authority.server(&["a.test"]);
    let server = RawServer::start(move |stream| {
        let acceptor = tokio_rustls::TlsAcceptor::from(config.clone());
        async move {
            let stream = acceptor.accept(stream).await.expect("TLS");
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            accept(stream, "").await;
        }
    })
    .await;
    let response = fetch(
        &world.channel(),
        asked(url("wss", "a.test", server.address, "/")),
    )
    .await;
    let mut socket = response.expect("accepted").socket.expect("a socket");
    socket.write_all(b"x").await.expect("written");
    socket.flush().await.expect("written");
    let mut came = [0; 6];
    within(socket.read_exact(&mut came)).await.expect("read");
    assert_eq!(&came, b"firsty");
}

#[tokio::test]
async fn what_is_not_accepted_rightly_is_not_opened() {
    let world = world().await;
    let wrong = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n";
    for (head, told) in [
        (format!("{wrong}\r\n"), "did not accept"),
        (
            format!("{wrong}sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
            "did not accept",
        ),
    ] {
        let server = RawServer::saying(head, "").await;
        let error = refused(
            &world.channel(),
            asked(url("ws", "a.test", server.address, "/")),
        )
        .await;
        assert_eq!(error.code(), "protocol_failed");
        assert!(error.to_string().contains(told), "{error}");
    }
    let server = RawServer::start(|stream| async move {
        accept(stream, "sec-websocket-extensions: permessage-deflate\r\n").await;
    })
    .await;
    let error = refused(
        &world.channel(),
        asked(url("ws", "a.test", server.address, "/")),
    )
    .await;
    assert!(
        error
            .to_string()
            .contains("an extension that was not asked for"),
        "{error}"
    );
}

/// A server that answers something else has its answer read as any.
#[tokio::test]
async fn a_response_without_a_web_socket_is_a_response() {
    let world = world().await;
    let server = Server::plain(|_| answer(403, &[], "no sockets here")).await;
    for _ in 0..3 {
        let response = fetch(
            &world.channel(),
            asked(url("ws", "a.test", server.address, "/")),
        )
        .await;
        let response = response.expect("a response");
        assert!(response.socket.is_none());
        assert_eq!(
            (response.status, &*text(response).await),
            (403, "no sockets here")
        );
    }
}

/// Only a GET opens one.
#[tokio::test]
async fn a_post_opens_no_web_socket() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    let mut post = asked(url("http", "a.test", server.address, "/"));
    post.method = "POST".into();
    fetch(&world.channel(), post).await.expect("a response");
    let seen = server.one();
    assert_eq!(seen.header("upgrade"), Vec::<&str>::new());
    assert_eq!(seen.header("sec-websocket-key"), Vec::<&str>::new());
    assert_eq!(world.records.wait_for(1).await[0].kind, Kind::Fetch);
}
