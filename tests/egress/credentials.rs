//! Credentials from the configuration to the server that they are bound to, and back to nobody.

use crate::support::*;
use async_compression::tokio::write::GzipEncoder;
use bytes::Bytes;
use coracle_outbound::Channel;
use futures::StreamExt;
use serde_json::{Value, json};
use std::{
    os::unix::fs::PermissionsExt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const SECRET: &str = "s3cr3t/Value+of=all";

struct Vault {
    folder: tempfile::TempDir,
}

impl Vault {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn secret(&self, name: &str, text: &str) -> Value {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a file");
        json!({"file": path})
    }
}

/// A world where a.test has that credential at every path, b.test has one of its own, and c.test has none; rule by rule
/// d.test has that of a.test, which is not bound to it.
async fn world(vault: &Vault, form: Value) -> World {
    let private = |host: &str| json!({"allow": [format!("http://{host}:*")], "private": true});
    let with = |host: &str, credential: &str| {
        let mut rule = private(host);
        rule["credential"] = json!(credential);
        rule
    };
    let mut config = one_policy(json!([
        with("a.test", "own"),
        with("b.test", "other"),
        private("c.test"),
        with("d.test", "own")
    ]));
    config["credentials"] = json!({
        "own": {"secret": vault.secret("own", SECRET), "to": ["http://a.test:*"], "as": form, "plain_http": true},
        "other": {"secret": vault.secret("other", "another-secret"), "to": ["http://b.test:*"], "as": "bearer", "plain_http": true},
    });
    let world = World::with(config).await;
    for name in ["a.test", "b.test", "c.test", "d.test", "tokens.test"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    world
}

async fn server() -> Server {
    Server::plain(|seen| match seen.path.strip_prefix("/to?") {
        Some(location) => redirect(307, location.split("&key=").next().expect("a place")),
        None => answer(200, &[], "yes"),
    })
    .await
}

fn no_secret(text: &str) {
    assert!(!text.contains("s3cr3t"), "{text}");
    assert!(!text.contains("another-secret"), "{text}");
}

#[tokio::test]
async fn a_credential_is_put_in_in_each_form() {
    let vault = Vault::new();
    for (form, name, value) in [
        (json!("bearer"), "authorization", format!("Bearer {SECRET}")),
        (
            json!({"header": {"name": "X-Api-Key", "prefix": "key "}}),
            "x-api-key",
            format!("key {SECRET}"),
        ),
        (
            json!({"basic": {"user": "me"}}),
            "authorization",
            "Basic bWU6czNjcjN0L1ZhbHVlK29mPWFsbA==".into(),
        ),
    ] {
        let (world, server) = (world(&vault, form).await, server().await);
        let asked = request("GET", url("http", "a.test", server.address, "/x?y=1"));
        // The worker's own, in whatever spelling, is taken out.
        let asked = with_headers(
            asked,
            &[
                ("Authorization", "mine"),
                ("X-Api-Key", "mine"),
                ("X_Api_Key", "mine"),
            ],
        );
        let response = fetch(&world.channel(), asked).await.expect("reached");
        assert_eq!(
            response.url,
            url("http", "a.test", server.address, "/x?y=1")
        );
        let seen = server.one();
        assert_eq!(seen.header(name), [value], "{name}");
        assert_eq!(seen.path, "/x?y=1");
        drop(response);
        let record = world.records.one();
        assert_eq!(record.credential, "own");
        no_secret(&format!("{record:?}"));
    }
}

/// In a query the worker does not see it either: not in the URL of the response, and not where the server redirects.
#[tokio::test]
async fn a_credential_in_the_query_stays_there() {
    let vault = Vault::new();
    let (world, server) = (
        world(&vault, json!({"query": {"name": "key"}})).await,
        server().await,
    );
    let channel = world.channel();
    let escaped = "s3cr3t%2FValue%2Bof%3Dall";
    let here = url(
        "http",
        "a.test",
        server.address,
        "/x?a=1&key=mine&key=other&b=2",
    );
    let response = fetch(&channel, request("GET", here.clone()))
        .await
        .expect("reached");
    assert_eq!(response.url, here);
    let seen = server.one();
    assert_eq!(seen.path.matches("key=").count(), 1, "{}", seen.path);
    assert!(seen.path.contains(escaped), "{}", seen.path);
    assert!(!seen.path.contains("mine"), "{}", seen.path);
}

/// A server that keeps the query where it redirects has the credential again, and nobody else gets it.
#[tokio::test]
async fn a_redirect_that_quotes_the_query_gives_nothing_away() {
    let vault = Vault::new();
    let world = world(&vault, json!({"query": {"name": "key"}})).await;
    let server = Server::plain(|seen| {
        let query = seen.path.split_once('?').map_or("", |(_, query)| query);
        match &*seen.path {
            path if path.starts_with("/same") => redirect(302, &format!("/end?{query}")),
            path if path.starts_with("/other") => {
                let port = seen.host.rsplit(':').next().expect("a port");
                redirect(302, &format!("http://c.test:{port}/end?{query}"))
            }
            _ => answer(200, &[], "yes"),
        }
    })
    .await;
    let channel = world.channel();
    let response = get(&channel, url("http", "a.test", server.address, "/same"))
        .await
        .expect("reached");
    no_secret(&response.url);
    let end = server.seen().pop().expect("it arrived");
    assert_eq!(
        end.path.matches("s3cr3t%2FValue%2Bof%3Dall").count(),
        1,
        "{}",
        end.path
    );
    let response = get(&channel, url("http", "a.test", server.address, "/other"))
        .await
        .expect("reached");
    no_secret(&response.url);
    let end = server.seen().pop().expect("it arrived");
    assert!(end.host.starts_with("c.test"), "{end:?}");
    no_secret(&end.path);
}

/// N02: which credential is put in is decided at each hop anew.
#[tokio::test]
async fn each_hop_has_its_own_credential_or_none() {
    let vault = Vault::new();
    let (world, server) = (world(&vault, json!("bearer")).await, server().await);
    let channel = world.channel();
    let port = server.address.port();
    let to = |location: String| url("http", "a.test", server.address, &format!("/to?{location}"));
    for (host, authorization) in [
        ("a.test", vec![format!("Bearer {SECRET}")]),
        ("b.test", vec!["Bearer another-secret".into()]),
        ("c.test", vec![]),
    ] {
        get(&channel, to(format!("http://{host}:{port}/end")))
            .await
            .expect("reached");
        let seen = server.seen();
        let [first, last] = &seen[seen.len() - 2..] else {
            panic!("two")
        };
        assert_eq!(first.header("authorization"), [format!("Bearer {SECRET}")]);
        assert_eq!(
            (last.header("authorization"), &*last.path),
            (authorization.iter().map(String::as_str).collect(), "/end")
        );
    }
    // The binding holds where a rule is wrong, and nothing is sent.
    let before = server.seen().len();
    let error = get_refused(&channel, url("http", "d.test", server.address, "/")).await;
    assert_eq!(error.code(), "credential_failed", "{error}");
    no_secret(&error.to_string());
    let error = get_refused(&channel, to(format!("http://d.test:{port}/end"))).await;
    assert_eq!(error.code(), "credential_failed", "{error}");
    assert_eq!(server.seen().len(), before + 1);
}

#[tokio::test]
async fn a_part_is_not_fetched_with_a_credential() {
    let vault = Vault::new();
    let (world, server) = (world(&vault, json!("bearer")).await, server().await);
    let asked = request("GET", url("http", "a.test", server.address, "/"));
    let error = refused(
        &world.channel(),
        with_headers(asked, &[("Range", "bytes=0-1")]),
    )
    .await;
    assert_eq!(error.code(), "credential_failed", "{error}");
    assert!(server.seen().is_empty());
}

/// N18: over plain http nothing is put in that nobody said so of.
#[tokio::test]
async fn a_credential_is_not_sent_in_plain() {
    let vault = Vault::new();
    let mut config =
        one_policy(json!([{"allow": ["http://a.test:*"], "private": true, "credential": "own"}]));
    let credential = |to: &str| json!({"own": {"secret": vault.secret("own", SECRET), "to": [to], "as": "bearer"}});
    config["credentials"] = credential("https://a.test:*");
    let world = World::with(config.clone()).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    let server = server().await;
    let error = get_refused(&world.channel(), url("http", "a.test", server.address, "/")).await;
    assert_eq!(error.code(), "credential_failed", "{error}");
    assert!(server.seen().is_empty());
    config["credentials"] = credential("http://a.test:*");
    let config = coracle_outbound::Config::of_json(&config.to_string()).expect("JSON");
    let made =
        coracle_outbound::Outbound::new(config, Default::default(), Arc::<Records>::default());
    let told = made.err().expect("it is wrong").to_string();
    assert!(told.contains("plain_http"), "{told}");
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_no_request() {
    let vault = Vault::new();
    let (world, server) = (world(&vault, json!("bearer")).await, server().await);
    std::fs::remove_file(vault.folder.path().join("own")).expect("it is gone");
    let error = get_refused(&world.channel(), url("http", "a.test", server.address, "/")).await;
    assert_eq!(error.code(), "credential_failed", "{error}");
    assert!(server.seen().is_empty());
    assert_eq!(world.records.one().error, "credential_failed");
}

/// What a server echoes comes back without the secret: in a header, in a body in pieces, in one that is packed.
#[tokio::test]
async fn echoes_are_redacted() {
    let vault = Vault::new();
    let world = world(&vault, json!("bearer")).await;
    let mut gzip = GzipEncoder::new(Vec::new());
    gzip.write_all(format!("{}you sent {SECRET}!", "x".repeat(100_000)).as_bytes())
        .await
        .expect("packed");
    gzip.shutdown().await.expect("packed");
    let packed = Bytes::from(gzip.into_inner());
    let server = Server::plain(move |seen| match &*seen.path {
        "/header" => answer(200, &[("x-echo", seen.header("authorization")[0])], ""),
        "/packed" => answer(200, &[("content-encoding", "gzip")], packed.clone()),
        "/strange" => answer(200, &[("content-encoding", "zstd")], SECRET),
        "/status" => answer(
            401,
            &[("www-authenticate", &format!("no {SECRET}"))],
            SECRET,
        ),
        _ => {
            let pieces = SECRET
                .bytes()
                .map(|byte| Ok(http_body::Frame::data(Bytes::copy_from_slice(&[byte]))));
            let body =
                http_body_util::StreamBody::new(futures::stream::iter(pieces.collect::<Vec<_>>()));
            with_body(200, &[], http_body_util::BodyExt::boxed_unsync(body))
        }
    })
    .await;
    let channel = world.channel();
    let fetched = |path| get(&channel, url("http", "a.test", server.address, path));
    let response = fetched("/header").await.expect("reached");
    assert_eq!(header(&response, "x-echo"), Some("Bearer [redacted]"));
    drop(response);
    assert_eq!(
        text(fetched("/pieces").await.expect("reached")).await,
        "[redacted]"
    );
    let whole = text(fetched("/packed").await.expect("reached")).await;
    assert!(
        whole.ends_with("xyou sent [redacted]!"),
        "{}",
        &whole[whole.len() - 40..]
    );
    let response = fetched("/status").await.expect("reached");
    assert_eq!(header(&response, "www-authenticate"), Some("no [redacted]"));
    assert_eq!(text(response).await, "[redacted]");
    let redactions: Vec<u64> = world
        .records
        .wait_for(4)
        .await
        .iter()
        .map(|record| record.redactions)
        .collect();
    assert_eq!(redactions, [1, 1, 1, 2]);
    // What we can't look into is not passed on.
    let error = get_refused(&channel, url("http", "a.test", server.address, "/strange")).await;
    assert_eq!(error.code(), "protocol_failed", "{error}");
}

/// A server of tokens, each another; and one that takes only the last of them.
async fn tokens() -> (Server, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&given);
    let server = Server::plain(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let token = json!({"access_token": format!("token-number-{number}"), "token_type": "Bearer", "expires_in": 3600});
        answer(200, &[("content-type", "application/json")], token.to_string())
    })
    .await;
    (server, given)
}

async fn with_tokens(vault: &Vault, tokens: &Server) -> World {
    let token_url = url("http", "tokens.test", tokens.address, "/token");
    let grant =
        json!({"token_url": token_url, "client_id": "me", "scope": "read", "plain_http": true});
    world(vault, json!({"oauth2_client_credentials": grant})).await
}

#[tokio::test]
async fn tokens_are_fetched_once_and_sent() {
    let vault = Vault::new();
    let (tokens, given) = tokens().await;
    let (world, server) = (with_tokens(&vault, &tokens).await, server().await);
    let channel = world.channel();
    let gets = (0..5).map(|_| get(&channel, url("http", "a.test", server.address, "/")));
    for response in futures::future::join_all(gets).await {
        response.expect("reached");
    }
    assert_eq!(given.load(Ordering::SeqCst), 1);
    for seen in server.seen() {
        assert_eq!(seen.header("authorization"), ["Bearer token-number-1"]);
    }
    let asked = tokens.one();
    assert_eq!(
        (&*asked.method, &*asked.path, &*asked.body),
        (
            "POST",
            "/token",
            &b"grant_type=client_credentials&scope=read"[..]
        )
    );
    assert!(asked.header("authorization")[0].starts_with("Basic "));
    // The operator's own requests are of no worker's, and have no records.
    assert_eq!(world.records.wait_for(5).await.len(), 5);
}

/// Posts to a server that takes no token but the second.
async fn post(channel: &Channel, server: &Server, is_stream: bool) -> u16 {
    let mut asked = request("POST", url("http", "a.test", server.address, "/"));
    asked = with_request_body(asked, b"body");
    if is_stream {
        asked.body = streamed(&["body"]);
    }
    let response = fetch(channel, asked).await.expect("a response");
    response.status
}

/// A token that a server refuses is fetched anew and the request is sent once more, though not as often as a worker has a
/// server refuse one, and not where the body is gone.
#[tokio::test]
async fn a_token_that_is_refused_is_fetched_anew() {
    let vault = Vault::new();
    let (tokens, given) = tokens().await;
    let world = with_tokens(&vault, &tokens).await;
    let server = Server::plain(|seen| match seen.header("authorization")[..] {
        ["Bearer token-number-2"] => answer(200, &[], seen.body.clone()),
        _ => answer(401, &[], "no"),
    })
    .await;
    let channel = world.channel();
    for _ in 0..3 {
        assert_eq!(post(&channel, &server, false).await, 401);
    }
    assert_eq!((given.load(Ordering::SeqCst), server.seen().len()), (1, 3));
    // What is younger than ten seconds is not fetched anew.
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(10_050)).await;
    tokio::time::resume();
    assert_eq!(post(&channel, &server, true).await, 401);
    assert_eq!((given.load(Ordering::SeqCst), server.seen().len()), (1, 4));
    assert_eq!(post(&channel, &server, false).await, 200);
    assert_eq!((given.load(Ordering::SeqCst), server.seen().len()), (2, 6));
    assert_eq!(&*server.seen().pop().expect("it arrived").body, b"body");
    assert_eq!(post(&channel, &server, false).await, 200);
    assert_eq!(server.seen().len(), 7);
}

/// A server that refuses a token and is gone when it is asked once more has had the first request all the same: budgets give
/// back the second alone.
#[tokio::test]
async fn what_the_first_try_sent_is_not_given_back() {
    let vault = Vault::new();
    let (tokens, given) = tokens().await;
    let grant = json!({"token_url": url("http", "tokens.test", tokens.address, "/token"), "client_id": "me", "plain_http": true});
    let mut config = one_policy(json!([
        {"allow": ["http://a.test:*"], "private": true, "credential": "own", "budget": {"bytes_max": 100, "per_seconds": 3600}}
    ]));
    config["credentials"] = json!({"own": {
        "secret": vault.secret("own", SECRET), "to": ["http://a.test:*"], "plain_http": true,
        "as": {"oauth2_client_credentials": grant},
    }});
    let world = World::with(config).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world.dns.set("tokens.test", &["127.0.0.1"]);
    let (channel, other) = (world.channel(), server().await);
    get(&channel, url("http", "a.test", other.address, "/"))
        .await
        .expect("it brings the token");
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(10_050)).await;
    tokio::time::resume();

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let leaving = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        drop(listener);
        read_head(&mut stream).await;
        stream.read_exact(&mut [0; 40]).await.expect("the body");
        let no = b"HTTP/1.1 401 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(no).await.expect("it reads");
    });
    let posted = |body: &'static [u8]| {
        let asked = request("POST", url("http", "a.test", leaving, "/"));
        refused(&channel, with_request_body(asked, body))
    };
    assert_eq!(posted(&[7; 40]).await.code(), "connect_failed");
    assert_eq!(given.load(Ordering::SeqCst), 2);
    let record = world.records.wait_for(2).await.pop().expect("a record");
    assert_eq!((record.bytes_sent, record.error), (40, "connect_failed"));
    // Of a hundred, sixty are left.
    assert_eq!(posted(&[7; 61]).await.code(), "budget_exceeded");
}

/// A body that is redacted is still a stream, of which the end is held back: as much whatever it says, or guesses that are
/// echoed would tell how right they are.
#[tokio::test]
async fn of_a_redacted_body_as_much_is_held_back_whatever_it_says() {
    let vault = Vault::new();
    let world = world(&vault, json!("bearer")).await;
    let mut lengths = Vec::new();
    for end in ["s3cr3t/Va", "~~~~~~~~~"] {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n";
        let server = RawServer::saying(format!("{head}{}{end}", "x".repeat(1_000)), "").await;
        let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
        let mut body = response.expect("a head").body.expect("a body");
        let piece = within(body.next()).await.expect("a piece");
        lengths.push(piece.expect("a piece").len());
    }
    assert_eq!(lengths[0], lengths[1]);
    assert!((500..1_000).contains(&lengths[0]), "{lengths:?}");
}

/// What could carry the secret where nobody looks for it.
#[tokio::test]
async fn an_answer_that_can_t_be_searched_is_refused() {
    let vault = Vault::new();
    let world = world(&vault, json!("bearer")).await;
    let gets = async |server: Server| {
        get(&world.channel(), url("http", "a.test", server.address, "/")).await
    };
    for (status, name, value) in [
        (206, "content-range", "bytes 0-3/20"),
        (200, "content-range", "bytes 0-3/20"),
        (200, "content-encoding", "br"),
        (200, "content-encoding", "zstd"),
    ] {
        let server = Server::plain(move |_| answer(status, &[(name, value)], "part")).await;
        let refused = gets(server).await.map(|response| response.status);
        let error = refused.expect_err(value);
        assert_eq!(error.code(), "protocol_failed", "{status} {name}: {error}");
    }
    // As nothing else than what it is.
    let plain = Server::plain(|_| answer(200, &[("content-encoding", "identity")], "whole")).await;
    assert_eq!(text(gets(plain).await.expect("a response")).await, "whole");
    let raw = RawServer::saying(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "",
    )
    .await;
    let packed = get(&world.channel(), url("http", "a.test", raw.address, "/")).await;
    let error = packed.map(|response| response.status).expect_err("packed");
    assert!(error.to_string().contains("transfer coding"), "{error}");
    // A name is in lower case, and so is what is looked for in it.
    let raw = RawServer::saying(
        "HTTP/1.1 200 s3cr3t/Value+of=all\r\nx-another-secret-x: 1\r\ncontent-length: 0\r\n\r\n",
        "",
    )
    .await;
    let response = get(&world.channel(), url("http", "b.test", raw.address, "/")).await;
    let response = response.expect("a response");
    assert_eq!(header(&response, "x-another-secret-x"), None);
}
