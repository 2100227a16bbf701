//! Who allows a request: the session's policy, one that is named or given besides, whoever is asked, and budgets.

use crate::support::*;
use coracle_outbound::{Asked, AskedError, Body, Error};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn world(rules: Value) -> (World, Server) {
    let world = World::of(rules).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    world.dns.set("b.test", &["127.0.0.1"]);
    let server = Server::plain(|seen| match seen.path.strip_prefix("/to/") {
        Some(location) => redirect(307, &format!("/{location}")),
        None => answer(200, &[], "0123456789"),
    })
    .await;
    (world, server)
}

#[tokio::test]
async fn who_is_asked_sees_the_request() {
    let (world, server) =
        world(json!([{"ask": ["http://a.test:*", "tcp://a.test:*"], "private": true}])).await;
    let yes = Answerer::new(Ok(()));
    let channel = world.asking(Arc::clone(&yes) as Arc<dyn coracle_outbound::Ask>);
    let here = url("http", "a.test", server.address, "/to/x?key=1");
    let asked = with_headers(
        request("POST", here.clone()),
        &[("X-Own", "caf\u{e9}"), ("Host", "other")],
    );
    let response = fetch(&channel, with_request_body(asked, b"body"))
        .await
        .expect("yes");
    assert_eq!(response.status, 200);
    {
        let asked = yes.asked.lock().expect("no panic");
        let [first, second] = &asked[..] else {
            panic!("{asked:?}");
        };
        assert_eq!((&*first.method, &*first.url), ("POST", &*here));
        let own = ("x-own".to_owned(), "caf\u{e9}".to_owned());
        assert!(first.headers.contains(&own), "{first:?}");
        assert!(
            first.headers.iter().all(|(name, _)| name != "host"),
            "{first:?}"
        );
        assert!(
            second.url.ends_with("/x?key=1"),
            "each hop is asked about: {second:?}"
        );
    }
    let target = format!("a.test:{}", server.address.port());
    within(channel.connect(&target, false, &sender()))
        .await
        .expect("yes");
    let last = yes.asked.lock().expect("no panic").pop().expect("asked");
    assert_eq!((&*last.method, last.url), ("", format!("tcp://{target}")));
}

#[tokio::test]
async fn a_no_is_a_no() {
    let (world, server) =
        world(json!([{"name": "hm", "ask": ["http://a.test:*"], "private": true}])).await;
    let here = url("http", "a.test", server.address, "/x?secret");
    let place = url("http", "a.test", server.address, "/x");
    let asks = format!(
        "rule 1 \"hm\" of the policy \"main\" asks whether {place} may be reached, and the answer was no"
    );
    for (channel, told) in [
        (
            world.channel(),
            format!("{asks}: nobody is there to be asked"),
        ),
        (world.asking(Answerer::new(Err(""))), asks.clone()),
        (
            world.asking(Answerer::new(Err("not today"))),
            format!("{asks}: not today"),
        ),
    ] {
        let error = get_refused(&channel, here.clone()).await;
        assert_eq!((error.code(), error.to_string()), ("ask_denied", told));
    }
    assert!(server.seen().is_empty());
    assert_eq!(world.dns.queries(), Vec::<String>::new());
}

/// What is given with a load is never wider than what the session has.
#[tokio::test]
async fn a_given_policy_narrows() {
    let (world, server) = world(json!([{"allow": ["http://a.test:*"], "private": true}])).await;
    let given = |rules: &str| world.outbound.channel("acme", Asked::Given(rules), None);
    let here = |name, path| url("http", name, server.address, path);
    let channel = given(
        r#"{"rules": [{"allow": ["http://a.test:*"], "paths": ["/x/**"]}, {"allow": ["http://b.test:*"]}]}"#,
    );
    let channel = channel.expect("a channel");
    get(&channel, here("a.test", "/x/y"))
        .await
        .expect("both allow it");
    let error = get_refused(&channel, here("a.test", "/y")).await;
    assert!(
        error.to_string().contains("the client's policy \"given\""),
        "{error}"
    );
    let error = get_refused(&channel, here("b.test", "/x")).await;
    assert!(error.to_string().contains("the policy \"main\""), "{error}");
    for wrong in [
        "",
        "[]",
        r#"{"rules": [{"allow": ["http://a.test"], "private": true}]}"#,
        r#"{"rules": [{"allow": ["http://a.test"], "credential": "x"}]}"#,
        r#"{"rules": [{"permit": ["*"]}]}"#,
    ] {
        assert!(
            matches!(given(wrong).err(), Some(AskedError::Given(_))),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_tenant_names_what_it_may_name() {
    let rules = |name: &str| json!({"rules": [{"allow": [format!("http://{name}.test:*")], "private": true}]});
    let world = World::with(json!({
        "default_policy": "a",
        "policies": {"a": rules("*"), "b": rules("b"), "c": rules("c")},
        "tenants": {"acme": {"policy": "a", "may_name": ["b"]}, "narrow": {"policy": "c", "may_name": ["b"]}},
    }))
    .await;
    let server = Server::plain(|_| answer(200, &[], "")).await;
    for name in ["a.test", "b.test", "c.test"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    let channel = |tenant, asked| world.outbound.channel(tenant, asked, None);
    for (tenant, policy) in [
        ("acme", "c"),
        ("acme", "none"),
        ("nobody", "b"),
        ("nobody", "a"),
    ] {
        let error = channel(tenant, Asked::Named(policy))
            .err()
            .expect("it may not");
        assert!(
            error
                .to_string()
                .contains(&format!("tenants.{tenant}.may_name")),
            "{error}"
        );
    }
    let here = |name| url("http", name, server.address, "/");
    for (tenant, asked, reached) in [
        ("acme", Asked::Session, &["a.test", "b.test", "c.test"][..]),
        ("acme", Asked::Named("b"), &["b.test"]),
        ("narrow", Asked::Session, &["c.test"]),
        ("narrow", Asked::Named("b"), &[]),
        ("nobody", Asked::Session, &["a.test", "b.test", "c.test"]),
    ] {
        let channel = channel(tenant, asked).expect("it may");
        for name in ["a.test", "b.test", "c.test"] {
            let is_reached = get(&channel, here(name)).await.is_ok();
            assert_eq!(is_reached, reached.contains(&name), "{tenant} {name}");
        }
    }
}

/// What a configuration names and has not is found when it is read, all of it.
#[tokio::test]
async fn a_configuration_that_names_nothing_is_refused() {
    let config = json!({
        "default_policy": "none",
        "policies": {"a": {"rules": [{"allow": ["http://a.test"], "credential": "missing"}]}, "b": {"rules": [{"allow": ["ftp://x"]}]}},
        "tenants": {"acme": {"policy": "gone", "may_name": ["lost"]}},
    });
    let config = coracle_outbound::Config::of_json(&config.to_string()).expect("JSON");
    let records = Arc::<Records>::default();
    let made = coracle_outbound::Outbound::new(config, Default::default(), records);
    let told = made.err().expect("it is wrong").to_string();
    for problem in [
        "default_policy: there is no policy \"none\"",
        "tenants.acme.policy: there is no policy \"gone\"",
        "tenants.acme.may_name: there is no policy \"lost\"",
        "policies.a: there is no credential \"missing\"",
        "policies.b: ",
    ] {
        assert!(told.contains(problem), "{told}");
    }
    for wrong in [
        r#"{"polices": {}}"#,
        r#"{"dns": {"servers": []}}"#,
        r#"{"limits": {"x": 1}}"#,
        "[",
        "null x",
    ] {
        assert!(coracle_outbound::Config::of_json(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn requests_are_budgeted() {
    let budget = json!({"requests_max": 3, "per_seconds": 3600});
    let (world, server) =
        world(json!([{"allow": ["http://*.test:*"], "private": true, "budget": budget}])).await;
    let channel = world.channel();
    let here = |name, path| url("http", name, server.address, path);
    // A hop is a request.
    get(&channel, here("a.test", "/to/x"))
        .await
        .expect("two are left");
    get(&world.channel(), here("a.test", "/"))
        .await
        .expect("one is left");
    let error = get_refused(&channel, here("a.test", "/")).await;
    assert_eq!(error.code(), "budget_exceeded");
    assert!(
        error
            .to_string()
            .contains("requests_max is 3 in 3600 seconds"),
        "{error}"
    );
    // Another destination, and another tenant, have their own.
    get(&channel, here("b.test", "/")).await.expect("its own");
    get(&world.channel_of("other"), here("a.test", "/"))
        .await
        .expect("its own");
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn bytes_are_budgeted_both_ways() {
    let budget = json!({"bytes_max": 45, "per_seconds": 3600});
    let rules = json!([{"allow": ["http://*.test:*"], "private": true, "budget": budget}]);
    let (world, server) = world(rules).await;
    let channel = world.channel();
    let here = |name| url("http", name, server.address, "/");
    // Ten are received each time.
    read(get(&channel, here("a.test")).await.expect("35 are left"))
        .await
        .expect("a body");
    let posted = fetch(
        &channel,
        with_request_body(request("POST", here("a.test")), b"fifteen bytes.."),
    )
    .await;
    read(posted.expect("20 are left")).await.expect("a body");
    let error = refused(
        &channel,
        with_request_body(request("POST", here("a.test")), &[7; 11]),
    )
    .await;
    assert!(matches!(error, Error::Budget(_)), "{error}");
    assert_eq!(server.seen().len(), 2);
    // What was refused before it was sent counts as used: whoever asks for too much has nothing left.
    let error = get_refused(&channel, here("a.test")).await;
    assert_eq!(error.code(), "budget_exceeded", "{error}");
    // A stream ends where the budget does, and so does a response.
    let mut asked = request("POST", here("b.test"));
    asked.body = streamed(&["twenty-four bytes of it,", "and as many in the end.."]);
    let error = refused(&channel, asked).await;
    assert!(matches!(error, Error::Budget(_)), "{error}");
    let other = world.channel_of("other");
    let response = fetch(
        &other,
        with_request_body(request("POST", here("a.test")), &[7; 40]),
    )
    .await;
    let error = read(response.expect("five are left"))
        .await
        .expect_err("ten come");
    assert!(matches!(error, Error::Budget(_)), "{error}");
}

/// Connections of bytes take from the same budgets.
#[tokio::test]
async fn sockets_are_budgeted() {
    let budget = json!({"bytes_max": 10, "requests_max": 3, "per_seconds": 3600});
    let world =
        World::of(json!([{"allow": ["tcp://*.test:*"], "private": true, "budget": budget}])).await;
    let server = RawServer::start(|mut stream| async move {
        let (mut reading, mut writing) = stream.split();
        let _ = tokio::io::copy(&mut reading, &mut writing).await;
    })
    .await;
    for name in ["a.test", "b.test"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    let channel = world.channel();
    let target = |name: &str| format!("{name}:{}", server.address.port());
    let mut connection = within(channel.connect(&target("a.test"), false, &sender()))
        .await
        .expect("allowed");
    connection
        .socket
        .write_all(b"12345")
        .await
        .expect("five are left");
    let mut echoed = [0; 5];
    within(connection.socket.read_exact(&mut echoed))
        .await
        .expect("none is left");
    let error = connection
        .socket
        .write_all(b"6")
        .await
        .expect_err("none is left");
    assert!(error.to_string().contains("bytes_max is 10"), "{error}");
    drop(connection);
    let record = world.records.one();
    assert_eq!(
        (record.error, record.bytes_sent, record.bytes_received),
        ("budget_exceeded", 5, 5)
    );
    // What comes in too much is not shown.
    let mut connection = within(channel.connect(&target("b.test"), false, &sender()))
        .await
        .expect("allowed");
    connection
        .socket
        .write_all(b"1234567")
        .await
        .expect("three are left");
    let error = within(connection.socket.read_exact(&mut [0; 7]))
        .await
        .expect_err("seven come");
    assert!(error.to_string().contains("bytes_max is 10"), "{error}");
}

/// A body that is asked for is sent only where the answer is yes: until then it is not read.
#[tokio::test]
async fn a_stream_is_not_read_before_it_may_be_sent() {
    let (world, server) = world(json!([])).await;
    let never = futures::stream::poll_fn(|_| panic!("it is read"));
    let mut asked = request("POST", url("http", "a.test", server.address, "/"));
    asked.body = Body::Stream(Box::pin(never));
    assert_eq!(
        refused(&world.channel(), asked).await.code(),
        "policy_denied"
    );
}
