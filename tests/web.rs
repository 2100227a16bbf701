//! Cap'n Web: the npm package, and peers that are none.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use futures::{SinkExt, StreamExt};
use std::{
    io::Write,
    net::SocketAddr,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};
use support::{PATIENCE, Server, eventually, growth_at_rest, resident_bytes, within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest},
};

const MIB: usize = 1 << 20;
const TOKEN: &str = "0123456789abcdef0123";

#[test]
fn the_npm_package_passes_its_own_tests() {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/typescript/check");
    let output = Command::new(check)
        .arg(env!("CARGO_BIN_EXE_coracle"))
        .output()
        .expect("the check can be started");
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{}\n{told}", output.status);
}

/// A server that speaks Cap'n Web, and where.
fn start(settings: &[(&str, &str)]) -> (Server, SocketAddr) {
    let mut all = vec![("listen-web", "127.0.0.1:0")];
    all.extend(settings);
    let server = Server::start_with(&all);
    let web = server.web();
    (server, web)
}

struct Peer(WebSocketStream<TcpStream>);

impl Peer {
    async fn connect(web: SocketAddr) -> Self {
        let stream = TcpStream::connect(web).await.unwrap();
        let request = format!("ws://{web}/rpc").into_client_request().unwrap();
        let (socket, _) = within(PATIENCE, "a handshake", client_async(request, stream))
            .await
            .unwrap();
        Self(socket)
    }

    /// Logged in, with the loader as import 1.
    async fn logged_in(web: SocketAddr) -> Self {
        let mut peer = Self::connect(web).await;
        peer.says(r#"["push",["pipeline",0,["login"],[]]]"#).await;
        peer
    }

    async fn says(&mut self, message: &str) {
        self.0.send(Message::text(message)).await.unwrap();
    }

    /// The next message.
    async fn hears(&mut self) -> String {
        let next = within(PATIENCE, "a message", self.0.next()).await;
        match next.expect("there is one").unwrap() {
            Message::Text(text) => text.to_string(),
            other => panic!("{other:?} instead of a message"),
        }
    }

    /// What it is told at the end, which has to come.
    async fn is_cut_off(&mut self) -> String {
        let mut last = String::new();
        loop {
            match within(PATIENCE, "the end", self.0.next()).await {
                Some(Ok(Message::Text(text))) => last = text.to_string(),
                Some(Ok(Message::Close(_))) | None => return last,
                Some(Ok(_)) => {}
                Some(Err(error)) => panic!("{error} after {last:?}"),
            }
        }
    }
}

/// What a worker is made of that has these methods, as an expression.
fn code(methods: &str) -> String {
    let source = support::class(methods);
    let source = serde_json::to_string(&source).unwrap();
    format!(r#"{{"mainModule":"m.js","modules":{{"m.js":{source}}}}}"#)
}

/// Pushes a load of a worker with these methods, and its entrypoint: imports 2 and 3.
async fn loads(peer: &mut Peer, methods: &str) {
    let code = code(methods);
    peer.says(&format!(r#"["push",["pipeline",1,["load"],[{code}]]]"#))
        .await;
    peer.says(r#"["push",["pipeline",2,["getEntrypoint"],[]]]"#)
        .await;
}

/// The server has lost nothing to anybody, and serves on.
async fn still_serves(server: &Server, web: SocketAddr) {
    server.is_empty().await;
    let mut peer = Peer::logged_in(web).await;
    loads(&mut peer, "one() { return 1 }").await;
    peer.says(r#"["push",["pipeline",3,["one"],[]]]"#).await;
    peer.says(r#"["pull",4]"#).await;
    assert_eq!(peer.hears().await, r#"["resolve",4,1]"#);
    drop(peer);
    server.is_empty().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
}

#[tokio::test]
async fn a_whole_chain_takes_one_round_trip() {
    let (server, web) = start(&[]);
    still_serves(&server, web).await;
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_the_connection_with_the_reason() {
    let (server, web) = start(&[]);
    for (message, told) in [
        ("[", "a message is not JSON"),
        (r#"{"push":1}"#, "bad RPC message"),
        (r#"["shout",1]"#, "its kind is unknown"),
        (r#"["pull",7]"#, "no such entry on exports table: 7"),
        (r#"["release",7,1]"#, "no such entry on exports table: 7"),
        (r#"["release",1,2]"#, "refcount would go negative"),
        (r#"["resolve",-1,1]"#, "-1"),
        (
            r#"["push",["import",-9]]"#,
            "no such entry on exports table: -9",
        ),
        (
            r#"["push",["export",3]]"#,
            "3 is not an id for an export of the sender's",
        ),
        (r#"["push",["readable",4]]"#, "export 4 is not a pipe"),
    ] {
        let mut peer = Peer::logged_in(web).await;
        peer.says(message).await;
        let last = peer.is_cut_off().await;
        assert!(last.starts_with(r#"["abort","#), "{message}: {last:?}");
        assert!(last.contains(told), "{message}: {last:?}");
    }
    let mut deep = Peer::logged_in(web).await;
    deep.says(&format!(r#"["push",{}"#, "[".repeat(MIB))).await;
    assert!(deep.is_cut_off().await.contains("abort"));
    let mut binary = Peer::connect(web).await;
    binary.0.send(Message::binary(&b"[]"[..])).await.unwrap();
    assert!(binary.is_cut_off().await.contains("spoken in text"));
    still_serves(&server, web).await;
}

#[tokio::test]
async fn a_released_object_is_gone() {
    let (server, web) = start(&[]);
    let mut peer = Peer::logged_in(web).await;
    peer.says(r#"["pull",1]"#).await;
    assert_eq!(peer.hears().await, r#"["resolve",1,["export",-1]]"#);
    peer.says(r#"["release",-1,1]"#).await;
    peer.says(r#"["push",["pipeline",-1,["tenant"],[]]]"#).await;
    assert!(
        peer.is_cut_off()
            .await
            .contains("no such entry on exports table: -1")
    );
    still_serves(&server, web).await;
}

#[tokio::test]
async fn a_request_that_is_wrong_is_refused_by_itself() {
    let (server, web) = start(&[]);
    let mut peer = Peer::logged_in(web).await;
    for (id, (expression, told)) in (2..).zip([
        (r#"["pipeline",0,["login"],[]]"#, "this connection has a session"),
        (r#"["pipeline",0,["logon"],[]]"#, r#"does not implement the method \"logon\""#),
        (r#"["pipeline",0,["login"],[5]]"#, "the token is a string"),
        (r#"["pipeline",1,["load"],[]]"#, "WorkerCode: an object is expected"),
        (r#"["pipeline",1,["load"],[{"modules":3}]]"#, "modules: an object of modules"),
        (r#"["pipeline",1,["load"],[{"mainModule":"a","modules":{"a":""},"env":{"x":["pipeline",1]},"tails":[[1]]}]]"#, "tails: an array of objects"),
        (r#"["pipeline",1,["get"],["id"]]"#, "the source of the code is a function"),
        (r#"["pipeline",1,["report"],[["pipeline",0],"run"]]"#, "the target is an entrypoint"),
        (r#"["pipeline",1,["tenant"]]"#, r#"does not implement the method \"tenant\""#),
    ]) {
        peer.says(&format!(r#"["push",{expression}]"#)).await;
        peer.says(&format!(r#"["pull",{id}]"#)).await;
        let answer = peer.hears().await;
        assert!(answer.starts_with(&format!(r#"["reject",{id},"#)), "{expression}: {answer}");
        assert!(answer.contains(told), "{expression}: {answer}");
        assert!(answer.contains(r#""refusal""#), "{expression}: {answer}");
    }
    drop(peer);
    still_serves(&server, web).await;
}

#[tokio::test]
async fn a_message_of_100_mb_is_not_taken() {
    let (server, web) = start(&[]);
    still_serves(&server, web).await;
    let before = resident_bytes(server.pid());
    let mut peer = Peer::logged_in(web).await;
    peer.says(r#"["pull",1]"#).await;
    peer.hears().await;
    let large = format!(r#"["push","{}"]"#, "x".repeat(100 * MIB));
    // What is left of it finds nobody.
    let sending = within(PATIENCE * 2, "sending", peer.0.send(Message::text(large))).await;
    if sending.is_ok() {
        let last = peer.is_cut_off().await;
        assert!(last.contains("message_bytes_max"), "{last}");
    }
    drop(peer);
    still_serves(&server, web).await;
    let grown = growth_at_rest(&server, before).await;
    assert!(grown < 64 << 20, "{} MiB", grown >> 20);
}

/// The request itself, and the answer's status.
async fn asks(web: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(web).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    // A WebSocket stays open after its head.
    loop {
        let read = within(PATIENCE, "an answer", stream.read(&mut piece)).await;
        let read = read.unwrap_or(0);
        answer.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&answer);
        if read == 0 || text.starts_with("HTTP/1.1 101") && text.contains("\r\n\r\n") {
            break;
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer:?}")), answer)
}

fn handshake(host: &str, more: &str) -> String {
    format!(
        "GET /rpc HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

fn post(host: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!("POST /rpc HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{more}\r\n{body}")
}

/// Pages that a browser shows reach the server's port as the browser's machine does.
#[tokio::test]
async fn foreign_pages_and_rebound_names_are_turned_away() {
    let (server, web) = start(&[
        ("web-host", "coracle.example"),
        ("web-origin", "https://app.example"),
    ]);
    let own = web.to_string();
    let body = r#"["push",["pipeline",0,["login"],[]]]"#;
    for (host, more, expected) in [
        (&own[..], "", 200),
        ("coracle.example", "", 200),
        ("localhost:1", "", 200),
        ("evil.example", "", 421),
        (&own, "Host: evil.example\r\n", 400),
        (&own, "Origin: https://app.example\r\n", 200),
        ("coracle.example", "Origin: http://coracle.example\r\n", 200),
        (&own, "Origin: http://evil.example\r\n", 403),
        (&own, "Origin: null\r\n", 403),
        (&own, "Origin: http://localhost:3000\r\n", 403),
        (
            &own,
            "Origin: https://app.example\r\nOrigin: http://evil.example\r\n",
            403,
        ),
    ] {
        let (status, answer) = asks(web, &post(host, more, body)).await;
        assert_eq!(status, expected, "batch: {host} {more}: {answer}");
        let expected = if expected == 200 { 101 } else { expected };
        let (status, answer) = asks(web, &handshake(host, more)).await;
        assert_eq!(status, expected, "WebSocket: {host} {more}: {answer}");
    }
    let allowed = post(&own, "Origin: https://app.example\r\n", "");
    let (_, answer) = asks(web, &allowed).await;
    assert!(
        answer
            .to_lowercase()
            .contains("access-control-allow-origin: https://app.example"),
        "{answer}"
    );
    still_serves(&server, web).await;
}

#[tokio::test]
async fn requests_that_are_none_are_answered_in_words() {
    let (server, web) = start(&[]);
    let own = web.to_string();
    let host = format!("Host: {own}\r\n");
    for (request, expected) in [
        (format!("GET /rpc HTTP/1.1\r\n{host}\r\n"), 405),
        (format!("DELETE /rpc HTTP/1.1\r\n{host}\r\n"), 405),
        (format!("GET / HTTP/1.1\r\n{host}\r\n"), 404),
        (
            format!("GET /rpc HTTP/1.1\r\n{host}Upgrade: websocket\r\n\r\n"),
            400,
        ),
        (post(&own, "Authorization: Basic YTpi\r\n", ""), 400),
        (handshake(&own, "Authorization: Basic YTpi\r\n"), 400),
        (
            format!("POST /rpc HTTP/1.1\r\n{host}Content-Length: 104857600\r\n\r\n"),
            413,
        ),
        ("NONSENSE\r\n\r\n".to_owned(), 400),
        (
            format!(
                "GET /rpc HTTP/1.1\r\n{host}X: {}\r\n\r\n",
                "x".repeat(64 << 10)
            ),
            431,
        ),
    ] {
        let (status, answer) = asks(web, &request).await;
        assert_eq!(
            status,
            expected,
            "{}: {answer}",
            &request[..30.min(request.len())]
        );
    }
    let mut broken = post(&own, "", "xx").into_bytes();
    let end = broken.len() - 2;
    broken[end..].copy_from_slice(&[0xff, 0xfe]);
    let mut stream = TcpStream::connect(web).await.unwrap();
    stream.write_all(&broken).await.unwrap();
    let mut answer = String::new();
    within(PATIENCE, "an answer", stream.read_to_string(&mut answer))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    still_serves(&server, web).await;
}

fn token_file() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "acme:{TOKEN}").unwrap();
    file
}

#[tokio::test]
async fn a_token_is_taken_where_it_belongs_and_nowhere_else() {
    let file = token_file();
    let (server, web) = start(&[("token-file", file.path().to_str().unwrap())]);
    let own = web.to_string();
    let body = concat!(
        r#"["push",["pipeline",0,["login"],[]]]"#,
        "\n",
        r#"["push",["pipeline",1,["tenant"],[]]]"#,
        "\n",
        r#"["pull",2]"#,
    );
    let (status, answer) = asks(
        web,
        &post(&own, &format!("Authorization: Bearer {TOKEN}\r\n"), body),
    )
    .await;
    assert_eq!(status, 200);
    assert!(answer.ends_with(r#"["resolve",2,"acme"]"#), "{answer}");
    let began = Instant::now();
    let (status, _) = asks(web, &post(&own, "Authorization: Bearer wrong\r\n", body)).await;
    assert_eq!(status, 401);
    assert!(
        began.elapsed() >= Duration::from_millis(300),
        "guessing is slow"
    );
    let (status, _) = asks(web, &handshake(&own, "Authorization: Bearer wrong\r\n")).await;
    assert_eq!(status, 401);
    let (_, answer) = asks(web, &post(&own, "", body)).await;
    assert!(
        answer.contains("this server wants a bearer token"),
        "{answer}"
    );
    let query = post(&own, "", body).replace("/rpc", &format!("/rpc?token={TOKEN}"));
    assert_eq!(asks(web, &query).await.0, 400);
    let (_, answer) = asks(
        web,
        &post(&own, &format!("Cookie: token={TOKEN}\r\n"), body),
    )
    .await;
    assert!(
        answer.contains("this server wants a bearer token"),
        "{answer}"
    );
    // Who needs a token and has none has little to say.
    let long = post(&own, "", &"x".repeat(100_000));
    assert_eq!(asks(web, &long).await.0, 413);
    // Five attempts are enough.
    let mut peer = Peer::connect(web).await;
    for _ in 0..6 {
        peer.says(r#"["push",["pipeline",0,["login"],["wrong"]]]"#)
            .await;
    }
    assert!(
        peer.is_cut_off()
            .await
            .contains("too many logins have failed")
    );
    let mut peer = Peer::connect(web).await;
    peer.says(&format!(r#"["push",["pipeline",0,["login"],["{TOKEN}"]]]"#))
        .await;
    peer.says(r#"["push",["pipeline",1,["tenant"],[]]]"#).await;
    peer.says(r#"["pull",2]"#).await;
    assert_eq!(peer.hears().await, r#"["resolve",2,"acme"]"#);
    drop(peer);
    server.is_empty().await;
}

/// Sockets that never say anything, that stop in the middle of a request, and that never log in.
#[tokio::test]
async fn half_open_sockets_are_let_go() {
    let (server, web) = start(&[("login-deadline-ms", "1500"), ("connections-max", "300")]);
    let mut sockets = Vec::new();
    for index in 0..250 {
        let mut stream = TcpStream::connect(web).await.unwrap();
        let own = web.to_string();
        let said = match index % 3 {
            0 => String::new(),
            1 => format!("POST /rpc HTTP/1.1\r\nHost: {own}\r\n"),
            _ => handshake(&own, ""),
        };
        stream.write_all(said.as_bytes()).await.unwrap();
        sockets.push(stream);
    }
    server.is_empty().await;
    for mut stream in sockets {
        let mut rest = Vec::new();
        let ended = within(PATIENCE, "the end", stream.read_to_end(&mut rest)).await;
        let rest = String::from_utf8_lossy(&rest);
        assert!(
            ended.is_err() || rest.is_empty() || rest.starts_with("HTTP/1.1"),
            "{rest}"
        );
    }
    still_serves(&server, web).await;
}

/// Who is not logged in is not read from beyond what a login takes.
#[tokio::test]
async fn a_stranger_has_little_to_say() {
    let (server, web) = start(&[("login-deadline-ms", "1500")]);
    let mut peer = Peer::connect(web).await;
    let message = format!(r#"["push","{}"]"#, "x".repeat(30_000));
    for _ in 0..2 {
        peer.says(&message).await;
    }
    peer.says(&format!(r#"["push","{}"]"#, "x".repeat(500_000)))
        .await;
    peer.says(r#"["push",["pipeline",0,["login"],[]]]"#).await;
    let last = peer.is_cut_off().await;
    assert!(last.contains("no login in time"), "{last:?}");
    still_serves(&server, web).await;
}

#[tokio::test]
async fn a_client_that_never_reads_makes_the_server_hold_little() {
    let (server, web) = start(&[]);
    still_serves(&server, web).await;
    let before = resident_bytes(server.pid());
    let mut peer = Peer::logged_in(web).await;
    loads(&mut peer, "much() { return 'x'.repeat(1 << 20) }").await;
    let mut asked = 0;
    // It is no longer read from, or cut off: results that wait for it have a bound as well.
    let flood = async {
        for id in 4.. {
            let call = r#"["push",["pipeline",3,["much"],[]]]"#.to_owned();
            for message in [call, format!(r#"["pull",{id}]"#)] {
                if peer.0.send(Message::text(message)).await.is_err() {
                    return;
                }
            }
            asked = id;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), flood).await;
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(grown < 512 << 20, "{asked} calls, {} MiB", grown >> 20);
    drop(peer);
    still_serves(&server, web).await;
}

/// What is under way ends with the socket, and what it held with it.
#[tokio::test]
async fn a_session_ends_with_its_socket() {
    let (server, web) = start(&[]);
    let mut peer = Peer::logged_in(web).await;
    loads(
        &mut peer,
        "wait() { return new Promise(() => setTimeout(() => {}, 30_000)) } keep(f) { globalThis.f = f; return f() }",
    )
    .await;
    peer.says(r#"["push",["pipeline",3,["wait"],[]]]"#).await;
    // The client's function is called, and never answers.
    peer.says(r#"["push",["pipeline",3,["keep"],[["export",-1]]]]"#)
        .await;
    assert_eq!(peer.hears().await, r#"["push",["pipeline",-1,[],[]]]"#);
    eventually("two calls are under way", async || {
        match server.gauges().await.calls {
            2 => Ok(()),
            calls => Err(format!("there are {calls}")),
        }
    })
    .await;
    drop(peer);
    still_serves(&server, web).await;
}

/// Many come and go, in the middle of whatever they do.
#[tokio::test]
async fn nothing_is_left_of_many_that_came_and_went() {
    let (server, web) = start(&[]);
    for round in 0..30 {
        let mut peer = Peer::logged_in(web).await;
        loads(&mut peer, "one() { return { f() { return 1 } } } stream() { return new Response('x'.repeat(1 << 20)).body }").await;
        peer.says(r#"["push",["pipeline",3,["one"],[]]]"#).await;
        peer.says(r#"["pull",4]"#).await;
        peer.says(r#"["push",["pipeline",3,["stream"],[]]]"#).await;
        peer.says(r#"["pull",5]"#).await;
        for _ in 0..round % 4 {
            peer.hears().await;
        }
        if round % 2 == 0 {
            let _ = peer.0.close(None).await;
        }
    }
    still_serves(&server, web).await;
}
