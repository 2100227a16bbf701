//! What DNS says, and how it is told.

use crate::support::*;
use coracle_outbound::Error;
use serde_json::json;

async fn world() -> World {
    let config = json!({"dns": {"lookup_ms_max": 300}});
    let mut whole = one_policy(
        json!([{"allow": ["http://*.test:*", "tcp://*.test:*", "http://127.0.0.1:*"]},]),
    );
    whole["policies"]["main"]["rules"][0]["private"] = json!(true);
    merge(&mut whole, config);
    World::with(whole).await
}

#[tokio::test]
async fn what_dns_says_is_told() {
    let world = world().await;
    world.dns.set("nothing.test", &[]);
    world.dns.set_failing("failing.test");
    world.dns.set_silent("silent.test");
    for (name, told) in [
        (
            "unknown.test",
            "unknown.test can't be resolved: there is no such name, or it has no address",
        ),
        (
            "nothing.test",
            "nothing.test can't be resolved: there is no such name, or it has no address",
        ),
        ("failing.test", "failing.test can't be resolved: "),
        (
            "silent.test",
            "silent.test can't be resolved: no answer within 300 ms (lookup_ms_max)",
        ),
    ] {
        let error = get_refused(&world.channel(), format!("http://{name}/")).await;
        assert_eq!(error.code(), "resolve_failed", "{name}");
        assert!(error.to_string().starts_with(told), "{error}");
        // A failure is of DNS and not of a rule.
        assert!(!error.is_denial());
    }
}

#[tokio::test]
async fn a_connection_that_nobody_takes_is_told() {
    let world = world().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    world.dns.set("a.test", &["127.0.0.1"]);
    for url in [
        format!("http://a.test:{port}/"),
        format!("http://127.0.0.1:{port}/"),
    ] {
        let error = get_refused(&world.channel(), url).await;
        assert!(
            matches!(&error, Error::Connect { reason, .. } if reason.contains("refused")),
            "{error}"
        );
    }
    let connected = within(
        world
            .channel()
            .connect(&format!("a.test:{port}"), false, &sender()),
    )
    .await;
    assert_eq!(connected.err().expect("refused").code(), "connect_failed");
}

/// Where the first address takes no connection, the next does.
#[tokio::test]
async fn the_next_address_is_tried() {
    let world = world().await;
    let server = Server::at("127.0.0.2:0", None, |_| answer(200, &[], "yes")).await;
    world.dns.set("a.test", &["127.0.0.1", "127.0.0.2"]);
    let response = get(&world.channel(), url("http", "a.test", server.address, "/")).await;
    assert_eq!(text(response.expect("the second")).await, "yes");
}

/// An answer is kept as long as it says, for all tenants: it is no secret.
#[tokio::test]
async fn answers_are_kept() {
    let world = world().await;
    let server = Server::plain(|_| answer(200, &[("connection", "close")], "yes")).await;
    world.dns.set_kept("kept.test", &["127.0.0.1"], 60);
    world.dns.set("fresh.test", &["127.0.0.1"]);
    for (name, lookups) in [("kept.test", 1), ("fresh.test", 3)] {
        for tenant in ["a", "b", "c"] {
            let channel = world.channel_of(tenant);
            let response = get(&channel, url("http", name, server.address, "/")).await;
            assert_eq!(text(response.expect("reached")).await, "yes");
        }
        assert_eq!(world.dns.lookups(name), lookups, "{name}");
    }
}

/// A tenant that asks for many names that nobody answers for does not keep the others from asking.
#[tokio::test]
async fn a_tenant_has_its_share_of_lookups() {
    let mut config = one_policy(json!([{"allow": ["http://*.test:*"], "private": true}]));
    config["dns"] = json!({"lookup_ms_max": 2_000, "lookups_max": 4});
    let world = World::with(config).await;
    let server = Server::plain(|_| answer(200, &[], "yes")).await;
    world.dns.set("a.test", &["127.0.0.1"]);
    let greedy = world.channel_of("greedy");
    let names: Vec<String> = (0..10).map(|index| format!("silent{index}.test")).collect();
    let slow = names.iter().map(|name| {
        world.dns.set_silent(name);
        get(&greedy, format!("http://{name}/"))
    });
    let slow = futures::future::join_all(slow);
    let channel = world.channel();
    let quick = get(&channel, url("http", "a.test", server.address, "/"));
    match futures::future::select(Box::pin(slow), Box::pin(quick)).await {
        futures::future::Either::Left(_) => panic!("the others wait"),
        futures::future::Either::Right((response, _)) => {
            assert_eq!(text(response.expect("reached")).await, "yes");
        }
    }
}

/// What is known already needs no place among the lookups, though all of them wait for others.
#[tokio::test]
async fn a_known_name_waits_for_no_lookup() {
    let mut config = one_policy(json!([{"allow": ["http://*.test:*"], "private": true}]));
    config["dns"] = json!({"lookup_ms_max": 60_000, "lookups_max": 1});
    config["limits"] = json!({"connect_ms_max": 60_000});
    let world = World::with(config).await;
    let server = Server::plain(|_| answer(200, &[("connection", "close")], "yes")).await;
    world.dns.set_kept("kept.test", &["127.0.0.1"], 60);
    world.dns.set_silent("silent.test");
    let channel = world.channel();
    let here = url("http", "kept.test", server.address, "/");
    let first = get(&channel, here.clone()).await;
    text(first.expect("reached")).await;
    let waiting = get(&channel, "http://silent.test/");
    let known = async {
        // The other's question has left, so that it has the only place.
        within(async {
            while world.dns.lookups("silent.test") == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        text(get(&channel, here).await.expect("reached")).await
    };
    tokio::select! {
        _ = waiting => panic!("nobody answers"),
        known = known => assert_eq!(known, "yes"),
    }
    assert_eq!(world.dns.lookups("kept.test"), 1);
}
