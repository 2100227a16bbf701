//! Through a proxy: it is asked for addresses that were judged, and learns no name.

use crate::support::*;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn config(proxy: &ProxyServer) -> serde_json::Value {
    let mut config =
        one_policy(json!([{"allow": ["http://*.test:*", "https://*.test:*", "tcp://*.test:*"]}]));
    config["proxy"] = json!({"url": format!("http://{}", proxy.address)});
    config
}

#[tokio::test]
async fn a_proxy_is_asked_for_addresses() {
    let proxy = ProxyServer::start().await;
    let world = World::with(config(&proxy)).await;
    let tls = world.authority.server(&["a.test"]);
    let (plain, secured) = (
        Server::plain(|_| answer(200, &[], "plain")).await,
        Server::tls(tls, |_| answer(200, &[], "secured")).await,
    );
    proxy.set("93.184.216.34:80", plain.address);
    proxy.set("93.184.216.34:443", secured.address);
    proxy.set("[2606:2800:220:1::1]:8080", plain.address);
    world.dns.set("a.test", &["93.184.216.34"]);
    world.dns.set("b.test", &["2606:2800:220:1::1"]);
    let channel = world.channel();
    for (url, body) in [
        ("http://a.test/", "plain"),
        ("https://a.test/", "secured"),
        ("http://b.test:8080/", "plain"),
    ] {
        let response = get(&channel, url).await.expect(url);
        assert_eq!(text(response).await, body, "{url}");
    }
    assert_eq!(
        proxy.asked(),
        [
            "93.184.216.34:80",
            "93.184.216.34:443",
            "[2606:2800:220:1::1]:8080"
        ]
    );
    let heads = proxy.heads().concat();
    assert!(!heads.contains("test"), "{heads}");
    assert!(
        !heads.to_ascii_lowercase().contains("proxy-authorization"),
        "{heads}"
    );
    assert_eq!(secured.one().sni.as_deref(), Some("a.test"));
    assert_eq!(plain.seen()[0].host, "a.test");
}

#[tokio::test]
async fn a_proxy_is_asked_only_for_what_may_be_reached() {
    let proxy = ProxyServer::start().await;
    let world = World::with(config(&proxy)).await;
    world.dns.set("inner.test", &["10.0.0.1"]);
    let channel = world.channel();
    for (url, code) in [
        ("http://inner.test/", "address_denied"),
        ("http://denied.example/", "policy_denied"),
        ("http://unknown.test/", "resolve_failed"),
    ] {
        assert_eq!(get_refused(&channel, url).await.code(), code, "{url}");
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_proxy_is_told_what_it_wants_to_be_told() {
    let proxy = ProxyServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("authorization");
    std::fs::write(&file, "Basic dTpw\n").expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("a file");
    let mut config = config(&proxy);
    config["proxy"]["authorization"] = json!({"file": file});
    let world = World::with(config).await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    proxy.set("93.184.216.34:80", server.address);
    world.dns.set("a.test", &["93.184.216.34"]);
    get(&world.channel(), "http://a.test/")
        .await
        .expect("reached");
    let head = proxy.heads().concat().to_ascii_lowercase();
    assert!(
        head.contains("proxy-authorization: basic dtpw\r\n"),
        "{head}"
    );
    assert_eq!(
        server.one().header("proxy-authorization"),
        Vec::<&str>::new()
    );
}

#[tokio::test]
async fn a_proxy_that_says_no_is_told() {
    let proxy = ProxyServer::start().await;
    let world = World::with(config(&proxy)).await;
    world.dns.set("a.test", &["93.184.216.34"]);
    let error = get_refused(&world.channel(), "http://a.test/").await;
    assert_eq!(error.code(), "connect_failed");
    assert!(error.to_string().contains("through the proxy: "), "{error}");
}

/// Connections of bytes go the same way.
#[tokio::test]
async fn sockets_go_through_the_proxy() {
    let proxy = ProxyServer::start().await;
    let world = World::with(config(&proxy)).await;
    let server = RawServer::start(|mut stream| async move {
        stream.write_all(b"hello").await.expect("written");
    })
    .await;
    proxy.set("93.184.216.34:5432", server.address);
    world.dns.set("a.test", &["93.184.216.34"]);
    let connected = within(world.channel().connect("a.test:5432", false, &sender())).await;
    let mut said = String::new();
    within(connected.expect("reached").socket.read_to_string(&mut said))
        .await
        .expect("read");
    assert_eq!(
        (said, proxy.asked()),
        ("hello".into(), vec!["93.184.216.34:5432".into()])
    );
}
