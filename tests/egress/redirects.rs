//! Each place that a redirect leads to is judged as if the worker had asked for it.

use crate::support::*;
use coracle_outbound::{Error, Redirect, RequestDecision};
use serde_json::json;

const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// A world in which a.test, b.test and c.test are this server, and may be reached; and any public address may.
async fn world() -> World {
    let world = World::of(json!([
        {"allow": ["http://a.test:*", "http://b.test:*", "https://b.test:*"], "private": true},
        {"name": "no", "deny": ["http://denied.test:*"]},
        {"allow": ["http://*:*", "https://*:*"]},
    ]))
    .await;
    for name in ["a.test", "b.test", "c.test", "denied.test"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    world
}

/// Answers `/to/302?LOCATION` with that redirect, and everything else with its path.
async fn server() -> Server {
    Server::plain(|seen| {
        let Some(rest) = seen.path.strip_prefix("/to/") else {
            return answer(200, &[], seen.path.clone());
        };
        let (status, location) = rest.split_once('?').expect("a place");
        redirect(
            status.parse().expect("a status"),
            &location.replace("%23", "#"),
        )
    })
    .await
}

fn to(server: &Server, status: u16, location: &str) -> String {
    let location = location.replace('#', "%23");
    url(
        "http",
        "a.test",
        server.address,
        &format!("/to/{status}?{location}"),
    )
}

/// N01: an allowed host leads to what would never have been reached, by each status.
#[tokio::test]
async fn a_redirect_to_a_blocked_address_is_refused_and_named() {
    let (world, server) = (world().await, server().await);
    let channel = world.channel();
    let port = server.address.port();
    for status in REDIRECTS {
        for (location, code, named) in [
            (
                "http://169.254.169.254/latest?x=1".to_owned(),
                "address_denied",
                "169.254.169.254",
            ),
            (
                "https://169.254.169.254/".to_owned(),
                "address_denied",
                "169.254.169.254",
            ),
            (
                "//169.254.169.254/".to_owned(),
                "address_denied",
                "169.254.169.254",
            ),
            (
                format!("http://127.0.0.1:{port}/"),
                "address_denied",
                "127.0.0.1",
            ),
            (
                format!("http://0x7f.1:{port}/"),
                "address_denied",
                "127.0.0.1",
            ),
            (
                format!("http://[::ffff:7f00:1]:{port}/"),
                "address_denied",
                "127.0.0.1",
            ),
            (format!("http://c.test:{port}/"), "address_denied", "c.test"),
            (
                format!("http://denied.test:{port}/x?secret"),
                "policy_denied",
                "rule 2 \"no\"",
            ),
            ("http://u:p@a.test/".to_owned(), "url_refused", "user"),
            ("file:///etc/passwd".to_owned(), "url_refused", "file:"),
            ("data:text/plain,x".to_owned(), "url_refused", "data:"),
            ("http://[".to_owned(), "url_refused", "not a URL"),
        ] {
            let before = server.seen().len();
            let error = get_refused(&channel, to(&server, status, &location)).await;
            assert_eq!(error.code(), code, "{status} {location}: {error}");
            assert!(
                error.to_string().contains(named),
                "{status} {location}: {error}"
            );
            assert!(!error.to_string().contains("secret"), "{error}");
            assert_eq!(server.seen().len(), before + 1, "{status} {location}");
        }
    }
    assert_eq!(world.dns.lookups("denied.test"), 0);
    let records = world.records.all();
    for [first, second] in records.as_chunks::<2>().0 {
        assert_eq!(
            (first.hop, first.decision, first.error),
            (0, RequestDecision::Allowed, "")
        );
        assert_eq!((second.hop, second.decision), (1, RequestDecision::Denied));
        assert_ne!(second.error, "");
    }
}

/// N01: nor is it at the end of several hops.
#[tokio::test]
async fn each_hop_is_judged() {
    let (world, server) = (world().await, server().await);
    let port = server.address.port();
    let last = format!("http://b.test:{port}/to/307?http://169.254.169.254/");
    let error = get_refused(&world.channel(), to(&server, 302, &last)).await;
    assert_eq!(error.code(), "address_denied");
    let seen: Vec<String> = server.seen().into_iter().map(|seen| seen.host).collect();
    assert_eq!(seen, [format!("a.test:{port}"), format!("b.test:{port}")]);
    let hops: Vec<_> = world
        .records
        .all()
        .iter()
        .map(|record| (record.hop, record.error))
        .collect();
    assert_eq!(hops, [(0, ""), (1, ""), (2, "address_denied")]);
}

/// N01: what may be reached is, however it is written.
#[tokio::test]
async fn an_allowed_redirect_is_followed() {
    let (world, server) = (world().await, server().await);
    let channel = world.channel();
    let port = server.address.port();
    let b = format!("http://b.test:{port}/x?y=1");
    for (location, reached) in [
        (b.clone(), b.clone()),
        (format!("{b}#fragment"), b.clone()),
        (format!("//b.test:{port}/x?y=1"), b.clone()),
        (format!("\\\\b.test:{port}\\x?y=1"), b),
        ("/x".into(), format!("http://a.test:{port}/x")),
        ("../x".into(), format!("http://a.test:{port}/x")),
    ] {
        let response = get(&channel, to(&server, 302, &location))
            .await
            .expect("followed");
        assert_eq!(
            (&*response.url, response.redirected),
            (&*reached, true),
            "{location}"
        );
        let path = reached.split_once(&port.to_string()).expect("a port").1;
        assert_eq!(text(response).await, path);
    }
}

/// N01: five are followed, and no more.
#[tokio::test]
async fn five_redirects_are_followed() {
    let world = world().await;
    let server = Server::plain(|seen| {
        match seen
            .path
            .trim_start_matches('/')
            .parse::<u32>()
            .expect("a number")
        {
            0 => answer(200, &[], "here"),
            left => redirect(302, &format!("/{}", left - 1)),
        }
    })
    .await;
    let channel = world.channel();
    let reached = get(&channel, url("http", "a.test", server.address, "/5")).await;
    assert_eq!(text(reached.expect("followed")).await, "here");
    assert_eq!(server.seen().len(), 6);
    let error = get_refused(&channel, url("http", "a.test", server.address, "/6")).await;
    assert!(
        matches!(&error, Error::Redirects(5, from) if from.ends_with("/1")),
        "{error}"
    );
    assert_eq!(server.seen().len(), 12);
    let last = world.records.all().pop().expect("a record");
    assert_eq!(
        (last.hop, last.error, last.status),
        (5, "redirect_refused", 302)
    );
}

/// N02: what is meant for one origin does not go along to another, and does not come back.
#[tokio::test]
async fn secrets_of_the_workers_own_stay_at_their_origin() {
    let (world, server, other) = (world().await, server().await, server().await);
    let channel = world.channel();
    let port = server.address.port();
    let headers = [
        ("Authorization", "Bearer a"),
        ("Cookie", "b=c"),
        ("Proxy-Authorization", "d"),
        ("X-Own", "e"),
    ];
    let back = format!("http://a.test:{port}/end");
    for (location, kept) in [
        ("/end".to_owned(), true),
        (format!("http://A.test.:{port}/end"), true),
        (format!("http://b.test:{port}/end"), false),
        (url("http", "a.test", other.address, "/end"), false),
        (format!("http://b.test:{port}/to/302?{back}"), false),
    ] {
        for status in REDIRECTS {
            let asked = with_headers(request("GET", to(&server, status, &location)), &headers);
            fetch(&channel, asked).await.expect("followed");
            let all = [server.seen(), other.seen()].concat();
            let first = server
                .seen()
                .into_iter()
                .rfind(|seen| seen.path.starts_with("/to/"));
            let last = all
                .iter()
                .rfind(|seen| seen.path == "/end")
                .expect("it arrived");
            let first = first.expect("it was sent");
            assert_eq!(first.header("proxy-authorization"), Vec::<&str>::new());
            let expected = |value| if kept { vec![value] } else { Vec::new() };
            // (Of the chain by b.test the first is the one that came from there.)
            assert_eq!(
                last.header("authorization"),
                expected("Bearer a"),
                "{location}"
            );
            assert_eq!(last.header("cookie"), expected("b=c"), "{location}");
            assert_eq!(last.header("x-own"), ["e"], "{location}");
        }
    }
}

/// The Fetch standard's "HTTP-redirect fetch": which requests become a GET without a body.
#[tokio::test]
async fn methods_change_as_the_standard_says() {
    let (world, server) = (world().await, server().await);
    let channel = world.channel();
    for (status, method, then) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (301, "PUT", "PUT"),
        (302, "PUT", "PUT"),
        (303, "PUT", "GET"),
        (307, "PUT", "PUT"),
        (303, "DELETE", "GET"),
        (302, "GET", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "HEAD", "HEAD"),
    ] {
        let asked = request(method, to(&server, status, "/end"));
        let asked = with_headers(asked, &[("Content-Type", "text/x"), ("X-Own", "1")]);
        let has_body = !["GET", "HEAD"].contains(&method);
        let asked = if has_body {
            with_request_body(asked, b"body")
        } else {
            asked
        };
        fetch(&channel, asked).await.expect("followed");
        let last = server.seen().pop().expect("it arrived");
        let kept = has_body && then == method;
        assert_eq!(last.method, then, "{status} {method}");
        assert_eq!(
            &*last.body,
            if kept { &b"body"[..] } else { b"" },
            "{status} {method}"
        );
        let content_type = if kept || !has_body {
            vec!["text/x"]
        } else {
            vec![]
        };
        assert_eq!(
            last.header("content-type"),
            content_type,
            "{status} {method}"
        );
        assert_eq!(last.header("x-own"), ["1"], "{status} {method}");
    }
}

/// A stream is gone once it is sent: it can't follow, unless the next request has no body.
#[tokio::test]
async fn a_stream_is_not_sent_again() {
    let (world, server) = (world().await, server().await);
    let channel = world.channel();
    for (status, method) in [(307, "POST"), (308, "POST"), (302, "PUT")] {
        let mut asked = request(method, to(&server, status, "/end"));
        asked.body = streamed(&["one", "two"]);
        let error = refused(&channel, asked).await;
        assert!(matches!(error, Error::BodyGone(_)), "{error}");
        assert_eq!(&*server.seen().pop().expect("it arrived").body, b"onetwo");
    }
    let mut asked = request("POST", to(&server, 303, "/end"));
    asked.body = streamed(&["one", "two"]);
    let response = fetch(&channel, asked).await.expect("followed");
    assert_eq!(text(response).await, "/end");
    let last = server.seen().pop().expect("it arrived");
    assert_eq!((&*last.method, &*last.body), ("GET", &b""[..]));
}

#[tokio::test]
async fn a_redirect_is_the_response_or_an_error_where_that_is_asked() {
    let (world, server) = (world().await, server().await);
    let channel = world.channel();
    let blocked = to(&server, 302, "http://169.254.169.254/");
    let mut asked = request("GET", blocked.clone());
    asked.redirect = Redirect::Manual;
    let response = fetch(&channel, asked).await.expect("a response");
    assert_eq!(
        (response.status, response.redirected, &*response.url),
        (302, false, &*blocked)
    );
    assert_eq!(
        header(&response, "location"),
        Some("http://169.254.169.254/")
    );
    assert_eq!(text(response).await, "elsewhere");
    let mut asked = request("GET", to(&server, 302, "/end"));
    asked.redirect = Redirect::Error;
    let error = refused(&channel, asked).await;
    assert!(matches!(error, Error::Redirected(_)), "{error}");
    assert_eq!(server.seen().len(), 2);
    assert_eq!(world.records.all()[1].error, "redirect_refused");
}

/// A status alone redirects nowhere.
#[tokio::test]
async fn a_redirect_without_a_place_is_a_response() {
    let world = world().await;
    let server = Server::plain(|seen| match &*seen.path {
        "/300" => answer(300, &[("location", "/x")], "several"),
        _ => answer(302, &[], "nowhere"),
    })
    .await;
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    let response = response.expect("a response");
    assert_eq!((response.status, response.redirected), (302, false));
    let response = get(
        &world.channel(),
        url("http", "a.test", server.address, "/300"),
    )
    .await;
    assert_eq!(response.expect("a response").status, 300);
}
