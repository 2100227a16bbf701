//! What a worker does where nobody waits: in disposers, and in handlers of what nobody wants any more. It is done, it is paid
//! for by the call that gave out what is let go of, and it harms nobody beside it.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, answer, client, eventually, module, value, verdict};
use coracle_client::{Coracle, Entrypoint, Limits, Payload, Stub, Value, args};
use std::sync::{Arc, Mutex};

/// What a tool of the client's was called with.
type Told = Arc<Mutex<Vec<Value>>>;

/// A worker with a tool in its `env`, whose disposer does that. Its other call goes on meanwhile.
fn load(coracle: &Coracle, disposer: &str, limits: Limits) -> (Entrypoint, Told) {
    let told: Told = Arc::default();
    let keeper = Arc::clone(&told);
    let tool = coracle.function(move |args| {
        keeper.lock().unwrap().extend(args.value.index(0).cloned());
        async { Ok(Payload::from(Value::from(7))) }
    });
    let source = format!(
        "import {{ WorkerEntrypoint, RpcTarget, env }} from 'cloudflare:workers';
         let seen = 0;
         class Cursor extends RpcTarget {{
             next() {{ return 1 }}
             [Symbol.dispose]() {{ seen++; {disposer} }}
         }}
         export default class extends WorkerEntrypoint {{
             open() {{ return new Cursor() }}
             async pass(f, count) {{ for (let i = 0; i < count; i++) await f(new Cursor()); await f(null); return seen }}
             seen() {{ return seen }}
             async hold() {{ await scheduler.wait(1_500); return 'held' }}
         }}"
    );
    let mut env = Payload::default();
    env.value = Value::object([("tool", env.external(&tool))]);
    let worker = module(&source).env(env).limits(limits);
    (coracle.load(worker).entrypoint("default"), told)
}

async fn opened(entrypoint: &Entrypoint) -> Stub {
    let answer = answer(entrypoint, "open", args![]).await;
    let payload = answer.payload().unwrap();
    payload.stub(&payload.value).unwrap().clone()
}

/// After the call that gave it out is over, too, with another call in the isolate and without.
#[tokio::test]
async fn a_disposer_may_call_wait_and_fetch_whoever_is_beside_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    for (disposer, expected) in [
        ("env.tool('bye')", Some("bye")),
        (
            "(async () => { await env.tool('first'); await env.tool('bye') })()",
            Some("bye"),
        ),
        ("setTimeout(() => env.tool('bye'), 5)", Some("bye")),
        (
            "fetch('https://x.test').catch(() => env.tool('bye'))",
            Some("bye"),
        ),
        (
            "console.log('unheard'); throw new Error('unheard too')",
            None,
        ),
    ] {
        for beside in [false, true] {
            let (entrypoint, told) = load(&coracle, disposer, Limits::default());
            let neighbour = tokio::spawn({
                let entrypoint = entrypoint.clone();
                async move {
                    if beside {
                        Some(answer(&entrypoint, "hold", args![]).await)
                    } else {
                        None
                    }
                }
            });
            let cursor = opened(&entrypoint).await;
            drop(cursor);
            eventually("the disposer has run", async || {
                let seen = value(answer(&entrypoint, "seen", args![]).await);
                let last = told.lock().unwrap().last().cloned();
                match seen == Value::from(1) && last == expected.map(Value::from) {
                    true => Ok(()),
                    false => Err(format!("{disposer}: {seen:?} {last:?}")),
                }
            })
            .await;
            if let Some(held) = neighbour.await.unwrap() {
                assert_eq!(value(held), Value::from("held"), "{disposer}");
            }
        }
    }
    drop(coracle);
    server.is_empty().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
}

/// Work does not become free by being done in a disposer.
#[tokio::test]
async fn a_call_pays_for_the_disposers_of_what_it_gave_out() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let limits = Limits {
        fuel_max: 200_000_000,
        ..Limits::default()
    };
    let (entrypoint, _) = load(
        &coracle,
        "for (let i = 0; i < 20_000; i++) Math.sqrt(i)",
        limits,
    );
    let nothing = coracle.function(|_| async { Ok(Payload::default()) });
    let pass = |count: u32| {
        let mut payload = Payload::default();
        let nothing = payload.external(&nothing);
        payload.value = Value::Array(vec![nothing, count.into()]);
        entrypoint.call("pass", payload)
    };
    let few = pass(2).await.unwrap();
    let fuel = few.usage.fuel_run;
    assert!(
        fuel > 2 * 1_000_000,
        "two disposers of 20,000 turns each took {fuel} fuel"
    );
    assert_eq!(value(few), Value::from(2));
    let many = pass(1_000).await.unwrap();
    assert_eq!(verdict(&many), ("fuel", "fuel_max"));
}

/// The same after the call: what it had left is all there is, and it is counted.
#[tokio::test]
async fn what_a_call_had_left_is_all_that_its_disposers_have() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let limits = Limits {
        fuel_max: 100_000_000,
        ..Limits::default()
    };
    let (entrypoint, _) = load(&coracle, "for (;;);", limits);
    let cursor = opened(&entrypoint).await;
    let before = server.metric("coracle_fuel_total{phase=\"run\"}").await;
    drop(cursor);
    eventually("the endless disposer is stopped", async || {
        let burnt = server.metric("coracle_fuel_total{phase=\"run\"}").await - before;
        match burnt > 50_000_000.0 {
            true => Ok(()),
            false => Err(format!("{burnt} fuel is counted")),
        }
    })
    .await;
    let burnt = server.metric("coracle_fuel_total{phase=\"run\"}").await - before;
    assert!(
        burnt < 110_000_000.0,
        "{burnt} of the 100,000,000 that the call had"
    );
    // The next call is not that one's.
    let seen = answer(&entrypoint, "seen", args![]).await;
    assert_eq!(value(seen), Value::from(0));
}
