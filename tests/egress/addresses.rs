//! Which addresses are connected to, and that nothing is asked or sent where none may be.

use crate::support::*;
use coracle_outbound::{Asked, Error, RequestDecision};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A listener that can say whether anybody came.
struct Untouched(std::net::TcpListener);

impl Untouched {
    async fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a listener");
        Self(listener.into_std().expect("a listener"))
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }

    fn check(&self) {
        let error = self.0.accept().expect_err("somebody came");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

fn wide() -> Value {
    json!([{"allow": ["http://*:*", "https://*:*", "tcp://*:*"]}])
}

/// Names lead to a server by a proxy, at addresses that are public.
async fn proxied(rules: Value, proxy: &ProxyServer) -> World {
    let mut config = one_policy(rules);
    config["proxy"] = json!({"url": format!("http://{}", proxy.address)});
    World::with(config).await
}

/// N03, N05: whatever a name leads to, by whatever way an address is written into another, it is looked at before
/// anything is connected to.
#[tokio::test]
async fn names_that_lead_inside_are_refused() {
    let world = World::of(wide()).await;
    let listener = Untouched::at("127.0.0.1:0").await;
    let channel = world.channel();
    for (index, address) in [
        "127.0.0.1",
        "127.255.0.1",
        "10.0.0.1",
        "172.31.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{index}.test");
        world.dns.set(&name, &[address]);
        for scheme in ["http", "https"] {
            let error =
                get_refused(&channel, format!("{scheme}://{name}:{}/", listener.port())).await;
            assert_eq!(error.code(), "address_denied", "{address}: {error}");
        }
        let target = format!("{name}:{}", listener.port());
        let connected = within(channel.connect(&target, false, &sender())).await;
        let error = connected.err().expect("refused");
        assert_eq!(error.code(), "address_denied", "{address}: {error}");
    }
    listener.check();
    assert!(
        world
            .records
            .all()
            .iter()
            .all(|record| record.decision == RequestDecision::Denied)
    );
}

/// N05, N06: one address has one form, whatever it is written as.
#[tokio::test]
async fn spellings_of_inner_addresses_are_refused() {
    let world = World::of(wide()).await;
    let listener = Untouched::at("127.0.0.1:0").await;
    let (channel, port) = (world.channel(), listener.port());
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "0x7f000001",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "0xa9fea9fe",
        "100.64.0.1",
        "[fc00::1]",
        "[fe80::1]",
        "224.0.0.1",
        "192.0.0.8",
        "198.18.0.1",
        "240.0.0.1",
        "0",
        "0.0.0.0",
        "[::]",
    ] {
        let error = get_refused(&channel, format!("http://{host}:{port}/")).await;
        assert_eq!(error.code(), "address_denied", "{host}: {error}");
    }
    for url in [
        format!("http://allowed.com@127.0.0.1:{port}/"),
        format!("http://u:p@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}@x.test/"),
        format!("ftp://127.0.0.1:{port}/"),
        "file:///etc/passwd".into(),
        "data:text/plain,x".into(),
        "blob:http://x.test/1".into(),
        "/relative".into(),
        String::new(),
    ] {
        let error = get_refused(&channel, url.clone()).await;
        assert_eq!(error.code(), "url_refused", "{url}: {error}");
    }
    listener.check();
    assert_eq!(world.dns.queries(), Vec::<String>::new());
}

/// N06: a name too: what the server sees is the form that was judged.
#[tokio::test]
async fn spellings_of_a_name_are_one_destination() {
    let world = World::of(
        json!([{"allow": ["http://allowed.test:*", "http://bücher.test:*"], "private": true}]),
    )
    .await;
    world.dns.set("allowed.test", &["127.0.0.1"]);
    world.dns.set("xn--bcher-kva.test", &["127.0.0.1"]);
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    let port = server.address.port();
    for (host, seen) in [
        ("ALLOWED.test", "allowed.test"),
        ("allowed.test.", "allowed.test"),
        ("ａllowed.test", "allowed.test"),
        ("allowed。test", "allowed.test"),
        ("BÜCHER.test", "xn--bcher-kva.test"),
        ("xn--bcher-kva.test", "xn--bcher-kva.test"),
    ] {
        let response = get(&world.channel(), format!("http://{host}:{port}/a/../b?c#d")).await;
        response.unwrap_or_else(|error| panic!("{host}: {error}"));
        let arrived = server.seen().pop().expect("it arrived");
        assert_eq!(
            (arrived.host, &*arrived.path),
            (format!("{seen}:{port}"), "/b?c"),
            "{host}"
        );
    }
}

/// N07: a name is asked for once for a connection, and the address that was judged is the one that is connected to.
#[tokio::test]
async fn a_name_that_changes_its_mind_is_judged_again() {
    let proxy = ProxyServer::start().await;
    let world = proxied(wide(), &proxy).await;
    let tls = world.authority.server(&["x.test"]);
    let server = Server::tls(tls, |_| answer(200, &[], "yes")).await;
    proxy.set("93.184.216.34:443", server.address);
    world
        .dns
        .set_each("x.test", &[&["93.184.216.34"], &["127.0.0.1"]]);
    let channel = world.channel();
    for _ in 0..3 {
        let response = get(&channel, "https://x.test/y")
            .await
            .expect("it is public");
        assert_eq!(text(response).await, "yes");
    }
    assert_eq!(world.dns.lookups("x.test"), 1);
    assert_eq!(proxy.asked(), ["93.184.216.34:443"]);
    for seen in server.seen() {
        assert_eq!(
            (seen.sni.as_deref(), &*seen.host, &*seen.path),
            (Some("x.test"), "x.test", "/y")
        );
    }
    // Another tenant has a connection of its own, and so another question.
    let error = get_refused(&world.channel_of("other"), "https://x.test/y").await;
    assert_eq!(error.code(), "address_denied", "{error}");
    assert_eq!((world.dns.lookups("x.test"), proxy.asked().len()), (2, 1));
}

/// N07: of several addresses those are connected to that may be.
#[tokio::test]
async fn of_a_mixed_answer_only_what_is_public_is_used() {
    let proxy = ProxyServer::start().await;
    let world = proxied(wide(), &proxy).await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    proxy.set("93.184.216.34:80", server.address);
    let mixed = [
        "127.0.0.1",
        "169.254.169.254",
        "93.184.216.34",
        "10.0.0.1",
        "::1",
        "2606:2800::1",
    ];
    world.dns.set("x.test", &mixed);
    let response = get(&world.channel(), "http://x.test/")
        .await
        .expect("one is public");
    assert_eq!(text(response).await, "yes");
    let mut asked = proxy.asked();
    asked.retain(|asked| asked != "[2606:2800::1]:80");
    assert_eq!(asked, ["93.184.216.34:80"]);
}

/// N07: the same where private addresses are named: metadata are not among them.
#[tokio::test]
async fn of_a_mixed_answer_metadata_are_never_used() {
    let proxy = ProxyServer::start().await;
    let world = proxied(
        json!([{"allow": ["http://x.test"], "private": true}]),
        &proxy,
    )
    .await;
    world.dns.set(
        "x.test",
        &["169.254.169.254", "10.0.0.1", "::ffff:169.254.169.254"],
    );
    let error = get_refused(&world.channel(), "http://x.test/").await;
    assert_eq!(error.code(), "connect_failed", "{error}");
    assert_eq!(proxy.asked(), ["10.0.0.1:80"]);
}

/// N08: a name that is denied is not asked for: the question alone could carry a secret away.
#[tokio::test]
async fn a_denied_name_is_not_asked_for() {
    let world = World::of(json!([
        {"allow": ["http://allowed.test:*"], "private": true},
        {"ask": ["http://ask.test"]},
    ]))
    .await;
    let server = Server::plain(|_| redirect(302, "http://hop.evil.test/")).await;
    world.dns.set("allowed.test", &["127.0.0.1"]);
    let no = Answerer::new(Err("no"));
    let channel = world.asking(no);
    for url in [
        "http://mzxw6ytboi.evil.test/",
        "https://mzxw6ytboi.allowed.test/",
        "http://ask.test/",
        "ws://evil.test/",
    ] {
        get_refused(&channel, url).await;
    }
    assert!(
        within(channel.connect("evil.test:80", false, &sender()))
            .await
            .is_err()
    );
    assert!(
        within(channel.connect("allowed.test:80", false, &sender()))
            .await
            .is_err()
    );
    assert_eq!(world.dns.queries(), Vec::<String>::new());
    get_refused(&channel, url("http", "allowed.test", server.address, "/")).await;
    assert!(
        world
            .dns
            .queries()
            .iter()
            .all(|name| name == "allowed.test"),
        "{:?}",
        world.dns.queries()
    );
}

/// N10: an empty list is no permission, and a wildcard is of whole labels.
#[tokio::test]
async fn lists_mean_what_they_say() {
    for rules in [json!([]), json!([{"allow": []}])] {
        let world = World::of(rules).await;
        let error = get_refused(&world.channel(), "http://x.test/").await;
        assert_eq!(error.code(), "policy_denied", "{error}");
    }
    let world = World::of(json!([{"allow": ["http://*.example.test:*"], "private": true}])).await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    for name in [
        "a.example.test",
        "example.test",
        "evil-example.test",
        "example.test.evil.test",
    ] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    let channel = world.channel();
    let reached = get(&channel, url("http", "a.example.test", server.address, "/")).await;
    assert_eq!(reached.expect("allowed").status, 200);
    for name in [
        "example.test",
        "evil-example.test",
        "example.test.evil.test",
    ] {
        let error = get_refused(&channel, url("http", name, server.address, "/")).await;
        assert_eq!(error.code(), "policy_denied", "{name}: {error}");
        assert_eq!(world.dns.lookups(name), 0);
    }
}

/// N11: an inner service is reached where a rule names it, and metadata are not even then.
#[tokio::test]
async fn an_inner_service_is_reached_by_name() {
    let world = World::of(json!([
        {"allow": ["http://internal-svc.ns.svc:*", "http://127.0.0.1:*", "http://169.254.169.254", "http://meta.test"],
         "private": true},
        {"allow": ["http://other.ns.svc:*"]},
    ]))
    .await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    world.dns.set("internal-svc.ns.svc", &["127.0.0.1"]);
    world.dns.set("other.ns.svc", &["127.0.0.1"]);
    world.dns.set("meta.test", &["169.254.169.254"]);
    let channel = world.channel();
    for host in ["internal-svc.ns.svc", "127.0.0.1", "0x7f.1"] {
        let response = get(&channel, url("http", host, server.address, "/")).await;
        assert_eq!(response.expect("named").status, 200, "{host}");
    }
    let error = get_refused(&channel, url("http", "other.ns.svc", server.address, "/")).await;
    assert!(matches!(error, Error::AddressPrivate { .. }), "{error}");
    assert!(error.to_string().contains("\"private\": true"), "{error}");
    for url in ["http://169.254.169.254/", "http://meta.test/"] {
        let error = get_refused(&channel, url).await;
        assert!(
            matches!(error, Error::AddressNever { .. }),
            "{url}: {error}"
        );
    }
}

/// N19: the server's own listeners are reached by no spelling, whatever a rule names.
#[tokio::test]
async fn the_server_itself_is_never_reached() {
    let world = World::of(json!([
        {"allow": ["http://127.0.0.1:*", "http://127.0.0.2:*", "http://[::1]:*", "http://[::ffff:127.0.0.1]:*",
                   "http://self.test:*", "tcp://self.test:*", "tcp://127.0.0.1:*"], "private": true},
    ]))
    .await;
    world
        .dns
        .set("self.test", &["127.0.0.1", "::ffff:127.0.0.1"]);
    let channel = world.channel();
    for (listener, hosts) in [
        (
            "127.0.0.1:0",
            &[
                "127.0.0.1",
                "0x7f.1",
                "2130706433",
                "[::ffff:127.0.0.1]",
                "self.test",
            ][..],
        ),
        (
            "0.0.0.0:0",
            &["127.0.0.1", "127.0.0.2", "[::ffff:127.0.0.1]", "self.test"],
        ),
        (
            "[::]:0",
            &[
                "127.0.0.1",
                "127.0.0.2",
                "[::1]",
                "[::ffff:127.0.0.1]",
                "self.test",
            ],
        ),
        ("[::1]:0", &["[::1]", "[0::1]"]),
    ] {
        let listener = Untouched::at(listener).await;
        world.own.add(listener.0.local_addr().expect("an address"));
        let port = listener.port();
        for host in hosts {
            let error = get_refused(&channel, format!("http://{host}:{port}/metrics")).await;
            assert!(matches!(error, Error::AddressOwn { .. }), "{host}: {error}");
        }
        if hosts.contains(&"self.test") {
            let connected =
                within(channel.connect(&format!("self.test:{port}"), false, &sender())).await;
            assert_eq!(connected.err().expect("refused").code(), "address_denied");
        }
        listener.check();
    }
    // Another port of the same machine is not the server.
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    let response = get(&channel, url("http", "127.0.0.1", server.address, "/")).await;
    assert_eq!(response.expect("named").status, 200);
}

/// N20: nothing is allowed that nobody allowed, and the error says how to.
#[tokio::test]
async fn without_a_policy_nothing_leaves() {
    let world = World::with(json!({})).await;
    let error = get_refused(&world.channel(), "https://api.example.com/v1?key=1").await;
    assert_eq!(error.code(), "policy_denied");
    let told = error.to_string();
    assert!(told.contains("there is no policy"), "{told}");
    assert!(
        told.contains(r#"{"rules": [{"allow": ["https://api.example.com"]}]}"#),
        "{told}"
    );
    assert!(!told.contains("key=1"), "{told}");
    // What a client gives is narrower than nothing.
    let given = Asked::Given(r#"{"rules": [{"allow": ["*"]}]}"#);
    let channel = world
        .outbound
        .channel("acme", given, None)
        .expect("a channel");
    assert_eq!(
        get_refused(&channel, "https://api.example.com/")
            .await
            .code(),
        "policy_denied"
    );
    assert_eq!(world.dns.queries(), Vec::<String>::new());
}
