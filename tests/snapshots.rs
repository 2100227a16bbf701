//! Sandboxes of a worker that was loaded before start from its snapshot, wherever they run; what they were given is their
//! own.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, answer, client, module, value};
use coracle_client::{Coracle, Payload, Value, args};

/// `env` is looked at, and kept from, while the modules are evaluated.
const WORKER: &str = "
    import { env } from 'cloudflare:workers';
    const { WHO } = env; const greeting = 'I am ';
    export default { async run(n) { return greeting + await WHO(n); } };";

/// A fresh sandbox, whose `env` has a function of the client's that answers in these words.
async fn greet(coracle: &Coracle, name: &'static str) -> Value {
    let who = coracle.function(move |args: Payload| async move {
        let number = args.value.index(0).and_then(Value::as_f64).unwrap();
        Ok(Payload::from(Value::from(format!("{name} {number}"))))
    });
    let mut env = Payload::default();
    let binding = env.external(&who);
    env.value = Value::object([("WHO", binding)]);
    let worker = coracle.load(module(WORKER).env(env)).entrypoint("default");
    value(answer(&worker, "run", args![7]).await)
}

async fn each_has_its_own(isolation: &str) {
    let server = Server::start_with(&[("isolation", isolation)]);
    let coracle = client(server.address()).await;
    for name in ["one", "two", "three", "four", "five"] {
        assert_eq!(greet(&coracle, name).await, format!("I am {name} 7").into());
    }
    // What cordons have counted is told now and then.
    crate::support::eventually("three began with a snapshot", async || {
        match server.metric("coracle_snapshot_loads_total").await {
            3.0 => Ok(()),
            other => Err(format!("{other}")),
        }
    })
    .await;
    assert!(server.metric("coracle_snapshot_bytes").await > 0.0);
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    drop(coracle);
    server.is_empty().await;
}

#[tokio::test]
async fn in_cordons_what_was_given_to_one_is_not_in_the_next() {
    each_has_its_own("cordons").await;
}

#[tokio::test]
async fn on_threads_what_was_given_to_one_is_not_in_the_next() {
    each_has_its_own("threads").await;
}

#[tokio::test]
async fn none_is_kept_where_there_is_to_be_none() {
    let server = Server::start_with(&[("snapshots-bytes-max", "0")]);
    let coracle = client(server.address()).await;
    for name in ["one", "two", "three"] {
        assert_eq!(greet(&coracle, name).await, format!("I am {name} 7").into());
    }
    assert_eq!(server.metric("coracle_snapshot_loads_total").await, 0.0);
    assert_eq!(server.metric("coracle_snapshot_bytes").await, 0.0);
}
