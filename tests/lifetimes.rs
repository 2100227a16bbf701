//! What lives as long as somebody holds it, and not a second longer.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Gauges, PATIENCE, Server, answer, client, eventually, load, value,
    wire::{self, Outcome, Wire},
    within,
};
use coracle_client::{Coracle, Error, Payload, Request, Value, args};
use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::task::LocalSet;

/// Waits for a minute, in short steps, so that there is something to cancel.
const SLEEPER: &str = "nap() { return new Promise(done => setTimeout(done, 25_000)); }
                       count() { return this.constructor.n = (this.constructor.n ?? 0) + 1; }";

#[tokio::test]
async fn a_client_that_vanishes_in_the_middle_of_a_call_leaves_nothing_behind() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let loader = wire.loader();
            let worker = wire::load(&loader, SLEEPER);
            let entrypoint = wire::entrypoint(&worker);
            let _calls: Vec<_> = (0..10).map(|_| wire::call(&entrypoint, "nap")).collect();
            server
                .settles_at(Gauges {
                    connections: 1,
                    sessions: 1,
                    workers: 1,
                    isolates: 1,
                    calls: 10,
                })
                .await;
            drop(wire);
            server.is_empty().await;
        })
        .await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
}

#[tokio::test]
async fn a_client_that_vanishes_in_the_middle_of_an_endless_loop_leaves_nothing_behind() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), "run() { for (;;); }"));
            let _call = wire::call(&entrypoint, "run");
            eventually("the loop runs", async || {
                match server.gauges().await.calls {
                    0 => Err("no call".into()),
                    _ => Ok(()),
                }
            })
            .await;
            drop(wire);
            server.is_empty().await;
        })
        .await;
}

#[tokio::test]
async fn a_client_process_that_is_killed_with_many_stubs_leaves_nothing_behind() {
    let server = Server::start();
    // This very test program, told to be a client.
    let mut process = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "lifetimes::a_client_process_that_holds_many_stubs",
            "--ignored",
            "--nocapture",
        ])
        .env("CORACLE_TEST_ADDRESS", server.address())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let held = Gauges {
        connections: 1,
        sessions: 1,
        workers: STUBS_HELD,
        isolates: STUBS_HELD,
        calls: STUBS_HELD,
    };
    server.settles_at(held).await;
    process.kill().unwrap();
    process.wait().unwrap();
    server.is_empty().await;
}

const STUBS_HELD: u64 = 50;

/// Not a test: what the test above runs in a process of its own.
#[tokio::test]
#[ignore = "a helper of another test"]
async fn a_client_process_that_holds_many_stubs() {
    let coracle = client(&env::var("CORACLE_TEST_ADDRESS").unwrap()).await;
    let mut naps = tokio::task::JoinSet::new();
    for _ in 0..STUBS_HELD {
        let entrypoint = load(&coracle, SLEEPER);
        naps.spawn(async move { entrypoint.call("nap", args![]).await });
    }
    naps.join_all().await;
}

#[tokio::test]
async fn a_server_that_dies_is_an_error_of_every_call_and_no_panic() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "wait() { return new Promise(done => setTimeout(done, 20_000)) } nest(f) { return f() }",
    );
    let never = coracle.function(|_| std::future::pending());
    let mut nest = Payload::default();
    let stub = nest.external(&never);
    nest.value = Value::Array(vec![stub]);
    let calls = async {
        futures::join!(
            entrypoint.call("wait", args![]),
            entrypoint.call("nest", nest)
        )
    };
    let killed = async {
        eventually("both calls run", async || {
            match server.gauges().await.calls {
                2 => Ok(()),
                calls => Err(format!("{calls} calls")),
            }
        })
        .await;
        // Killed, not ended.
        drop(server);
    };
    let both = async { futures::join!(calls, killed) };
    let ((waited, nested), ()) = within(PATIENCE, "the calls end", both).await;
    for outcome in [waited, nested] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Disconnected(_)), "{error:?}");
    }
    let later = within(PATIENCE, "a later call", entrypoint.call("wait", args![])).await;
    let error = later.unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error:?}");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_worker_serves_on() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, SLEEPER);
    assert_eq!(
        value(answer(&entrypoint, "count", args![]).await),
        Value::from(1)
    );
    let nap =
        tokio::time::timeout(Duration::from_millis(200), entrypoint.call("nap", args![])).await;
    assert!(nap.is_err(), "it should still be asleep");
    eventually("the call is gone", async || {
        match server.gauges().await.calls {
            0 => Ok(()),
            calls => Err(format!("{calls} calls are left")),
        }
    })
    .await;
    // The isolate was ended with the last call in it, so the worker starts anew.
    assert_eq!(
        value(answer(&entrypoint, "count", args![]).await),
        Value::from(1)
    );
}

#[tokio::test]
async fn a_dropped_call_takes_nobody_with_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let methods = "wait(ms) { return new Promise(done => setTimeout(() => done('rested'), ms)); }";
    let entrypoint = load(&coracle, methods);
    let other = entrypoint.clone();
    let rests = tokio::spawn(async move { answer(&other, "wait", args![1_500]).await });
    let dropped = tokio::time::timeout(
        Duration::from_millis(200),
        entrypoint.call("wait", args![20_000]),
    )
    .await;
    assert!(dropped.is_err(), "it should still be asleep");
    assert_eq!(value(rests.await.unwrap()), Value::from("rested"));
    assert_eq!(server.gauges().await.calls, 0);
}

#[tokio::test]
async fn a_dropped_worker_takes_its_isolate_with_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let kept = load(&coracle, SLEEPER);
    let dropped = load(&coracle, SLEEPER);
    for entrypoint in [&kept, &dropped] {
        answer(entrypoint, "count", args![]).await;
    }
    let both = Gauges {
        connections: 1,
        sessions: 1,
        workers: 2,
        isolates: 2,
        calls: 0,
    };
    server.settles_at(both).await;
    drop(dropped);
    server
        .settles_at(Gauges {
            workers: 1,
            isolates: 1,
            ..both
        })
        .await;
    assert_eq!(value(answer(&kept, "count", args![]).await), Value::from(2));
}

/// What is waited for after the answer keeps its isolate, and is over with it.
#[tokio::test]
async fn a_dropped_worker_first_does_what_its_calls_are_held_for() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let tell = coracle.function(move |args| {
        let _ = sender.send(args.value);
        async { Ok(Payload::default()) }
    });
    let entrypoint = load(
        &coracle,
        "run(tell) {
            const kept = tell.dup();
            this.ctx.waitUntil(new Promise((done) => setTimeout(done, 300)).then(() => kept('done')));
            return 'answered';
        }",
    );
    let mut payload = Payload::default();
    payload.value = Value::Array(vec![payload.external(&tell)]);
    let answer = entrypoint.call("run", payload).await.unwrap();
    assert_eq!(value(answer), Value::from("answered"));
    drop(entrypoint);
    let told = tokio::time::timeout(Duration::from_secs(10), receiver.recv()).await;
    let expected = Value::Array(vec![Value::from("done")]);
    assert_eq!(told.expect("it runs on after the answer"), Some(expected));
    let gone = Gauges {
        connections: 1,
        sessions: 1,
        workers: 0,
        isolates: 0,
        calls: 0,
    };
    server.settles_at(gone).await;
    let lingered = "coracle_invocations_lingered_total{result=\"ok\"}";
    assert_eq!(server.metric(lingered).await, 1.0);
    // With the session it goes at once.
    let entrypoint = load(
        &coracle,
        "run() { setInterval(() => {}, 10); this.ctx.waitUntil(new Promise(() => {})) }",
    );
    entrypoint.call("run", args![]).await.unwrap();
    drop((entrypoint, coracle, tell));
    server.is_empty().await;
}

#[tokio::test]
async fn the_last_handle_takes_the_connection_with_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, SLEEPER);
    drop(coracle);
    assert_eq!(
        value(answer(&entrypoint, "count", args![]).await),
        Value::from(1)
    );
    drop(entrypoint);
    server.is_empty().await;
}

#[tokio::test]
async fn a_closed_session_revokes_what_came_from_it_and_cancels_what_runs() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let (loader, session) = wire.login(None);
            let worker = wire::load(&loader, SLEEPER);
            let entrypoint = wire::entrypoint(&worker);
            let nap = tokio::task::spawn_local(wire::outcome(wire::call(&entrypoint, "nap")));
            server
                .settles_at(Gauges {
                    connections: 1,
                    sessions: 1,
                    workers: 1,
                    isolates: 1,
                    calls: 1,
                })
                .await;

            within(
                PATIENCE,
                "the session closes",
                session.close_request().send().promise,
            )
            .await
            .unwrap();
            let nap = within(PATIENCE, "the nap ends", nap)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(nap, Outcome::Verdict("Cancelled".into()));
            let again = within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call(&entrypoint, "count")),
            )
            .await
            .unwrap_err();
            assert!(again.extra.contains("the session is closed"), "{again}");
            let load = wire::load(&loader, SLEEPER);
            let load = within(
                PATIENCE,
                "a load",
                wire::outcome(wire::call(&wire::entrypoint(&load), "count")),
            )
            .await;
            assert!(load.unwrap_err().extra.contains("the session is closed"));

            // The gate stands open: the connection may log in again.
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), SLEEPER));
            let count = within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call(&entrypoint, "count")),
            )
            .await;
            assert_eq!(count.unwrap(), Outcome::Json("1".into()));
        })
        .await;
    server.is_empty().await;
}

#[tokio::test]
async fn a_session_that_was_used_ends_when_it_is_dropped() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let login = within(PATIENCE, "the login", wire.login_promise(None).promise)
                .await
                .unwrap();
            let (loader, session) = (
                login.get().unwrap().get_loader().unwrap(),
                login.get().unwrap().get_session().unwrap(),
            );
            drop(login);
            within(
                PATIENCE,
                "the tenant",
                session.tenant_request().send().promise,
            )
            .await
            .unwrap();
            let entrypoint = wire::entrypoint(&wire::load(&loader, SLEEPER));
            let count = within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call(&entrypoint, "count")),
            )
            .await;
            assert_eq!(count.unwrap(), Outcome::Json("1".into()));
            drop(session);
            eventually("the session ends", async || {
                match server.gauges().await.sessions {
                    0 => Ok(()),
                    sessions => Err(format!("there are {sessions}")),
                }
            })
            .await;
            let again = within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call(&entrypoint, "count")),
            )
            .await
            .unwrap_err();
            assert!(again.extra.contains("the session is closed"), "{again}");
        })
        .await;
}

#[tokio::test]
async fn a_session_that_nobody_looked_at_lasts_as_long_as_what_came_from_it() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), SLEEPER));
            for count in ["1", "2", "3"] {
                let answer = within(
                    PATIENCE,
                    "a call",
                    wire::outcome(wire::call(&entrypoint, "count")),
                )
                .await;
                assert_eq!(answer.unwrap(), Outcome::Json(count.into()));
            }
            drop(entrypoint);
            server
                .settles_at(Gauges {
                    connections: 1,
                    ..Gauges::default()
                })
                .await;
        })
        .await;
}

#[tokio::test]
async fn an_embedded_server_ends_with_its_last_handle() {
    let mut config = coracle_server::ServerConfig::for_machine(&coracle_isolate::Machine::read());
    config.cache = env::var_os("CORACLE_CACHE_DIR").map(Into::into);
    config.core.isolates_max = 16;
    config.admin = Some(([127, 0, 0, 1], 0).into());
    let coracle = Coracle::embedded(config).await.unwrap();
    let entrypoint = load(&coracle, SLEEPER);
    answer(&entrypoint, "count", args![]).await;
    let nap = tokio::spawn(async move { entrypoint.call("nap", args![]).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    nap.abort();
    drop(coracle);
    let _ = nap.await;
    eventually("its threads end", async || {
        let names = thread_names();
        let ours = names.iter().filter(|name| {
            ["isolate-", "rpc-", "admin"]
                .iter()
                .any(|own| name.starts_with(own))
        });
        match ours.count() {
            0 => Ok(()),
            _ => Err(format!("there are {names:?}")),
        }
    })
    .await;
}

fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .collect()
}

/// Design: dropping a call on the wire cancels it, and its signal tells where the isolate goes on without it.
#[tokio::test]
async fn a_request_that_is_given_up_tells_its_signal_where_others_are_in_the_isolate() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = coracle
        .load(crate::support::module(&crate::support::class(
            "static seen = [];
             async fetch(request) {
                 if (request.url.endsWith('/ends')) { this.constructor.ended = request.signal; return new Response('x'); }
                 const { seen } = this.constructor;
                 request.signal.addEventListener('abort', () => seen.push(request.signal.reason.name, request.signal.aborted));
                 new Request(request).signal.onabort = () => seen.push('copy');
                 seen.push('begun');
                 await new Promise(() => setInterval(() => {}, 1_000));
             }
             async hold() { await scheduler.wait(25_000); }
             seen() { return [...this.constructor.seen, this.constructor.ended?.aborted ?? null]; }",
        )))
        .entrypoint("default");
    let holding = tokio::spawn({
        let entrypoint = entrypoint.clone();
        async move { drop(entrypoint.call("hold", args![]).await) }
    });
    let ended = Request::get("https://example.com/ends");
    entrypoint.fetch(ended).await.unwrap();
    let request = tokio::spawn({
        let entrypoint = entrypoint.clone();
        async move { drop(entrypoint.fetch(Request::get("https://example.com/")).await) }
    });
    let sees = async |expected: Value| {
        eventually("the worker has seen it", async || {
            let seen = value(entrypoint.call("seen", args![]).await.unwrap());
            match seen == expected {
                true => Ok(()),
                false => Err(format!("{seen:?}")),
            }
        })
        .await;
    };
    sees(Value::array([Value::from("begun"), false.into()])).await;
    request.abort();
    sees(Value::array([
        Value::from("begun"),
        "AbortError".into(),
        true.into(),
        "copy".into(),
        false.into(),
    ]))
    .await;
    holding.abort();
    drop((coracle, entrypoint));
    server.is_empty().await;
}
