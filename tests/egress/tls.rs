//! N24: TLS with who the name says, and with nobody else.

use crate::support::*;
use hyper::Version;
use serde_json::json;
use std::sync::Arc;

async fn world() -> World {
    let world = World::of(json!([
        {"allow": ["https://a.test:*", "https://127.0.0.1:*", "http://a.test:*"], "private": true},
    ]))
    .await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world
}

#[tokio::test]
async fn a_server_proves_its_name() {
    let world = world().await;
    let tls = world.authority.server(&["a.test", "127.0.0.1"]);
    let server = Server::tls(tls, |_| answer(200, &[], "yes")).await;
    for (name, sni) in [("a.test", Some("a.test")), ("127.0.0.1", None)] {
        let response = get(&world.channel(), url("https", name, server.address, "/x?y")).await;
        assert_eq!(text(response.expect(name)).await, "yes");
        let seen = server.seen().pop().expect("it arrived");
        assert_eq!(
            (seen.sni.as_deref(), seen.is_tls, seen.version),
            (sni, true, Version::HTTP_2)
        );
        assert_eq!(seen.host, format!("{name}:{}", server.address.port()));
    }
}

#[tokio::test]
async fn a_server_that_proves_nothing_is_not_spoken_to() {
    let world = world().await;
    let stranger = Authority::new();
    for (config, why) in [
        (world.authority.server(&["b.test"]), "not valid for name"),
        (world.authority.server(&["*.a.test"]), "not valid for name"),
        (world.authority.server_expired(&["a.test"]), "expired"),
        // (An authority of the same name, and another key.)
        (stranger.server(&["a.test"]), "invalid peer certificate: "),
    ] {
        let server = Server::tls(config, |_| answer(200, &[], "")).await;
        let asked = with_headers(
            request("GET", url("https", "a.test", server.address, "/")),
            &[("Authorization", "x")],
        );
        let error = refused(&world.channel(), asked).await;
        assert_eq!(error.code(), "tls_failed", "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(server.seen().is_empty());
    }
}

#[tokio::test]
async fn plain_and_tls_are_not_taken_for_each_other() {
    let world = world().await;
    let tls = world.authority.server(&["a.test"]);
    let secured = Server::tls(tls, |_| answer(200, &[], "")).await;
    let plain = Server::plain(|_| answer(200, &[], "")).await;
    let error = get_refused(&world.channel(), url("https", "a.test", plain.address, "/")).await;
    assert_eq!(error.code(), "tls_failed", "{error}");
    let error = get_refused(
        &world.channel(),
        url("http", "a.test", secured.address, "/"),
    )
    .await;
    assert_eq!(error.code(), "protocol_failed", "{error}");
}

#[tokio::test]
async fn http_1_is_spoken_where_there_is_no_other() {
    let world = world().await;
    let tls = world.authority.server_http1(&["a.test"]);
    let server = Server::tls(tls, |_| answer(200, &[], "yes")).await;
    let response = get(
        &world.channel(),
        url("https", "a.test", server.address, "/"),
    )
    .await;
    assert_eq!(text(response.expect("reached")).await, "yes");
    assert_eq!(server.one().version, Version::HTTP_11);
}

/// Bodies, methods and headers by HTTP/2 are what they are by HTTP/1.1.
#[tokio::test]
async fn http_2_carries_the_same() {
    let world = world().await;
    let tls = world.authority.server(&["a.test"]);
    let server = Server::tls(tls, |seen| {
        answer(201, &[("x-own", "caf\u{e9}")], seen.body.clone())
    })
    .await;
    let channel = world.channel();
    let here = url("https", "a.test", server.address, "/x?y=%20");
    let mut asked = with_headers(
        request("POST", here),
        &[("X-Own", "caf\u{e9}"), ("Connection", "x"), ("TE", "gzip")],
    );
    asked.body = streamed(&["one", "two"]);
    let response = fetch(&channel, asked).await.expect("reached");
    assert_eq!((response.status, &*response.status_text), (201, ""));
    assert_eq!(header(&response, "x-own"), Some("caf\u{e9}"));
    assert_eq!(text(response).await, "onetwo");
    let seen = server.one();
    assert_eq!(
        (seen.version, &*seen.method, &*seen.path),
        (Version::HTTP_2, "POST", "/x?y=%20")
    );
    assert_eq!(seen.header("x-own"), ["caf\u{e9}"]);
    assert_eq!(seen.header("connection"), Vec::<&str>::new());
    // Many at once are on one connection.
    let gets = (0..20).map(|_| get(&channel, url("https", "a.test", server.address, "/")));
    for response in futures::future::join_all(gets).await {
        assert_eq!(response.expect("reached").status, 201);
    }
    assert!(server.seen().iter().all(|seen| seen.connection == 0));
}

/// N24: what is older than 1.2 is neither asked for nor taken.
#[tokio::test]
async fn tls_is_1_2_at_least() {
    use std::sync::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const TLS_1_1: [u8; 2] = [3, 2];
    let world = world().await;
    let hello: Arc<Mutex<Vec<u8>>> = Arc::default();
    let read = Arc::clone(&hello);
    let server = RawServer::start(move |mut stream| {
        let read = Arc::clone(&read);
        async move {
            let mut head = [0; 5];
            stream.read_exact(&mut head).await.expect("a record");
            let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
            stream.read_exact(&mut body).await.expect("its body");
            *read.lock().expect("a lock") = body;
            // A ServerHello of that version (RFC 4346, section 7.4.1.3): a random of zeros, no session, AES128-SHA.
            let mut server_hello = vec![2, 0, 0, 38];
            server_hello.extend(TLS_1_1);
            server_hello.extend([0; 33]);
            server_hello.extend([0, 0x2f, 0]);
            let mut record = vec![22, TLS_1_1[0], TLS_1_1[1], 0, server_hello.len() as u8];
            record.extend(server_hello);
            stream.write_all(&record).await.expect("it is read");
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    })
    .await;
    let asked = url("https", "a.test", server.address, "/");
    let error = get_refused(&world.channel(), asked).await;
    assert_eq!(error.code(), "tls_failed", "{error}");
    // The extension "supported_versions" (43, RFC 8446, section 4.2.1): five bytes of two versions, 1.3 and 1.2.
    let hello = hello.lock().expect("a lock");
    let offered = [0, 43, 0, 5, 4, 3, 4, 3, 3];
    assert!(
        hello.windows(offered.len()).any(|window| window == offered),
        "{hello:?}"
    );
}
