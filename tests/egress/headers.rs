//! Headers both ways.

use crate::support::*;
use coracle_outbound::Error;
use serde_json::json;

async fn world() -> World {
    let world = World::of(json!([{"allow": ["http://a.test:*"], "private": true}])).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world
}

/// N12: what could end a header or a request line is refused, or is written so that it ends nothing.
#[tokio::test]
async fn nothing_that_would_break_a_message_is_sent() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    let channel = world.channel();
    let here = url("http", "a.test", server.address, "/");
    for (name, value) in [
        ("x", "a\r\nY: y"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x y", "a"),
        ("x:", "a"),
        ("", "a"),
        ("x", "ā"),
        ("Host", "a\r\nb"),
        ("x\r\ny", "a"),
    ] {
        let error = refused(
            &channel,
            with_headers(request("GET", here.clone()), &[(name, value)]),
        )
        .await;
        assert!(
            matches!(error, Error::Header { .. }),
            "{name:?} {value:?}: {error}"
        );
    }
    for method in [
        "GET /x HTTP/1.1\r\nX:",
        "",
        "G T",
        "CONNECT",
        "TRACE",
        "trace",
        "TRACK",
        "gét",
    ] {
        let error = refused(&channel, request(method, here.clone())).await;
        assert!(matches!(error, Error::Method(_)), "{method:?}: {error}");
        assert_eq!(error.code(), "request_invalid");
    }
    assert!(server.seen().is_empty());
    assert_eq!(world.dns.queries(), Vec::<String>::new());
    // In a URL they are left out or escaped, by the URL standard.
    for (path, seen) in [
        ("/a\r\nX: y", "/aX:%20y"),
        ("/a b", "/a%20b"),
        ("/a%0d%0ab", "/a%0d%0ab"),
        ("/a?b c\r\nd", "/a?b%20cd"),
        ("/a\0b", "/a%00b"),
        ("/é?é'", "/%C3%A9?%C3%A9%27"),
        ("/{}|^`\"<>", "/%7B%7D|^%60%22%3C%3E"),
        ("?{}|^`\"<>\\", "/?{}|^`%22%3C%3E\\"),
    ] {
        let reached = get(&channel, format!("{}{path}", here.trim_end_matches('/'))).await;
        reached.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(
            server.seen().pop().expect("it arrived").path,
            seen,
            "{path:?}"
        );
    }
}

/// What frames a message is ours; the rest is the worker's, in its order and in its bytes.
#[tokio::test]
async fn headers_arrive_as_they_were_given() {
    let world = world().await;
    let server = Server::plain(|_| {
        answer(
            200,
            &[
                ("x-latin", "caf\u{e9} \u{80}\u{ff}"),
                ("set-cookie", "a=1"),
                ("set-cookie", "b=2"),
                ("keep-alive", "timeout=5"),
                ("x-empty", ""),
            ],
            "",
        )
    })
    .await;
    let asked = request("GET", url("http", "a.test", server.address, "/"));
    let asked = with_headers(
        asked,
        &[
            ("X-Latin", "caf\u{e9} \u{80}\u{ff}"),
            ("Host", "other.test"),
            ("Content-Length", "7"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close, x-latin"),
            ("TE", "trailers"),
            ("Upgrade", "h2c"),
            ("Expect", "100-continue"),
            ("X-Twice", "one"),
            ("X-Twice", "two"),
            ("X-Empty", ""),
        ],
    );
    let response = fetch(&world.channel(), asked).await.expect("a response");
    let seen = server.one();
    assert_eq!(
        seen.headers,
        [
            ("x-latin", "caf\u{e9} \u{80}\u{ff}"),
            ("x-twice", "one"),
            ("x-twice", "two"),
            ("x-empty", ""),
            ("user-agent", "Coracle"),
            ("accept-encoding", "gzip, deflate"),
            ("host", &format!("a.test:{}", server.address.port())),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(header(&response, "x-latin"), Some("caf\u{e9} \u{80}\u{ff}"));
    assert_eq!(header(&response, "keep-alive"), None);
    assert_eq!(header(&response, "x-empty"), Some(""));
    let cookies: Vec<_> = response
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie")
        .collect();
    assert_eq!(cookies.len(), 2);
}

#[tokio::test]
async fn a_worker_may_say_who_it_is() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    let asked = request("GET", url("http", "a.test", server.address, "/"));
    fetch(
        &world.channel(),
        with_headers(asked, &[("User-Agent", "mine")]),
    )
    .await
    .expect("sent");
    assert_eq!(server.one().header("user-agent"), ["mine"]);
}

/// The reason phrase is the server's own where it has one.
#[tokio::test]
async fn the_status_text_is_the_servers() {
    let world = world().await;
    for (line, status, text) in [
        ("HTTP/1.1 200 All right", 200, "All right"),
        ("HTTP/1.1 404 Not Found", 404, "Not Found"),
        ("HTTP/1.1 599 ", 599, ""),
    ] {
        let server = RawServer::saying(format!("{line}\r\ncontent-length: 0\r\n\r\n"), "").await;
        let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
        let response = response.expect("a response");
        assert_eq!((response.status, &*response.status_text), (status, text));
    }
}
