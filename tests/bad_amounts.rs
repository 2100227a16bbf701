//! Too much of what is passed by reference: calls that go round in rings, and references by the million. Each ends at a
//! limit that is named with its figure, and the server's memory does not follow.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Gauges, Neighbour, PATIENCE, Server, answer, class, client, eventually, load, module,
    resident_bytes, threw, value, verdict,
    wire::{self, Wire},
    within,
};
use coracle_client::{
    Answer, Coracle, Entrypoint, EntrypointOptions, Limits, Outcome, Payload, Stub, Value, Worker,
    args,
};
use coracle_schema::{call_results, external};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};
use std::time::Duration;
use tokio::task::LocalSet;

const MIB: u64 = 1 << 20;

/// Runs beside a neighbour, who is not to notice, and leaves an empty server behind that is hardly larger than before.
async fn beside(settings: &[(&str, &str)], test: impl AsyncFnOnce(&Server)) {
    let server = Server::start_with(settings);
    let neighbour = Neighbour::of(server.address()).await;
    let before = resident_bytes(server.pid());
    test(&server).await;
    neighbour.was_served().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    server.is_empty().await;
    eventually("the memory is given back", async || {
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        match grown < GROWTH_BYTES_MAX {
            true => Ok(()),
            false => Err(format!("the server has grown by {} MiB", grown / MIB)),
        }
    })
    .await;
}

/// What allocators and pools may keep.
const GROWTH_BYTES_MAX: u64 = 160 * MIB;

fn stubs<'a>(stubs: impl IntoIterator<Item = &'a Stub>) -> Payload {
    let mut payload = Payload::default();
    let args = stubs.into_iter().map(|stub| payload.external(stub));
    let args = args.collect::<Vec<_>>();
    payload.value = Value::Array(args);
    payload
}

async fn call(entrypoint: &Entrypoint, method: &str, args: Payload) -> Answer {
    within(PATIENCE * 3, method, entrypoint.call(method, args))
        .await
        .unwrap()
}

/// The text that a call returns, which says where a ring ended and why.
#[track_caller]
fn text(answer: Answer) -> String {
    match value(answer) {
        Value::String(text) => text.to_string(),
        other => panic!("a text was expected, not {other:?}"),
    }
}

const RING: &str = "
    async ping(you, me, n = 0) {
        try { return await you.ping(me, you, n + 1) } catch (e) { return `${n}: ${e.message}` }
    }
    async pong(n = 0) { try { return await this.env.OTHER.pong(n + 1) } catch (e) { return `${n}: ${e.message}` } }
    async meet(other) { kept = other.dup(); return await this.back(0) }
    async back(n) { try { return await kept.pong(n + 1) } catch (e) { return `${n}: ${e.message}` } }
    async own(n = 0) { try { return await this.ctx.exports.default.own(n + 1) } catch (e) { return `${n}: ${e.message}` } }
    async ask(f) { try { return await f() } catch (e) { return `ended: ${e.message}` } }
    one() { return 1 }";

fn ring() -> String {
    format!("let kept; {}", class(RING))
}

const IN_FLIGHT: [(&str, &str); 1] = [("calls-in-flight-per-session-max", "200")];

#[track_caller]
fn ended_in_flight(text: &str) {
    assert!(text.contains("calls_in_flight_per_session_max"), "{text}");
}

#[tokio::test]
async fn workers_that_call_each_other_for_ever_end_at_the_calls_of_their_session() {
    beside(&IN_FLIGHT, async |server| {
        let coracle = client(server.address()).await;
        let one = coracle.load(module(&ring())).entrypoint("default");
        let other = coracle.load(module(&ring())).entrypoint("default");
        let answered = call(&one, "ping", stubs([other.stub(), one.stub()])).await;
        ended_in_flight(&text(answered));
        assert_eq!(value(answer(&one, "one", args![]).await), 1.into());

        // Through `env` in one direction, and a stub that is kept in the other.
        let mut env = Payload::default();
        let binding = env.external(one.stub());
        env.value = Value::object([("OTHER", binding)]);
        let source = ring().replace("OTHER.pong", "OTHER.back");
        let third = coracle.load(module(&source).env(env)).entrypoint("default");
        ended_in_flight(&text(call(&one, "meet", stubs([third.stub()])).await));
        assert_eq!(value(answer(&third, "one", args![]).await), 1.into());
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_calls_itself_for_ever_ends_at_a_limit_of_one_call() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        // Fuel, because which other limit comes first depends on the machine.
        let limits = Limits {
            fuel_max: 200_000_000,
            ..Limits::default()
        };
        let entrypoint = coracle
            .load(module(&ring()).limits(limits))
            .entrypoint("default");
        let own = call(&entrypoint, "own", args![].into()).await;
        assert_eq!(verdict(&own), ("fuel", "fuel_max"));
        assert_eq!(value(answer(&entrypoint, "one", args![]).await), 1.into());
    })
    .await;
}

#[tokio::test]
async fn a_ring_through_a_callback_of_the_client_ends_at_the_calls_of_its_session() {
    beside(&IN_FLIGHT, async |server| {
        let coracle = client(server.address()).await;
        let entrypoint = coracle.load(module(&ring())).entrypoint("default");
        let itself: Arc<Mutex<Option<Stub>>> = Arc::default();
        let (again, callee) = (Arc::clone(&itself), entrypoint.clone());
        let callback = coracle.function(move |_| {
            let (again, callee) = (Arc::clone(&again), callee.clone());
            async move {
                let stub = again.lock().unwrap().clone().unwrap();
                match callee.call("ask", stubs([&stub])).await {
                    Ok(Answer {
                        outcome: Outcome::Value(value),
                        ..
                    }) => Ok(value.into()),
                    other => Ok(Value::from(format!("{other:?}").as_str()).into()),
                }
            }
        });
        *itself.lock().unwrap() = Some(callback.clone());
        ended_in_flight(&text(call(&entrypoint, "ask", stubs([&callback])).await));
        assert_eq!(value(answer(&entrypoint, "one", args![]).await), 1.into());
        // It holds itself.
        itself.lock().unwrap().take();
    })
    .await;
}

/// Room for a guest to make a million functions in.
const ROOMY: [(&str, &str); 3] = [
    ("limit", "memory_bytes_max=1_000_000_000"),
    ("limit", "cpu_ms_max=60_000"),
    ("limit", "fuel_max=1_000_000_000_000"),
];

#[tokio::test]
async fn a_million_functions_in_one_value_are_refused_with_the_figure() {
    beside(&ROOMY, async |server| {
        let coracle = client(server.address()).await;
        let entrypoint = load(
            &coracle,
            "many() { const all = []; for (let n = 0; n < 1_000_000; n++) all.push(() => n); return all }
            async pass(other) { try { return await other.take(this.many()) } catch (e) { return `${e.name}: ${e.message}` } }
            take(all) { return all.length }
            one() { return 1 }",
        );
        let expected = "A function or stub could not be cloned: there are more than 10,000 in one value";
        let returned = call(&entrypoint, "many", args![].into()).await;
        let (name, message) = threw(&returned);
        assert_eq!(name, "DataCloneError");
        assert!(message.starts_with(expected), "{message}");
        let other = load(&coracle, "take(all) { return all.length }");
        let passed = text(call(&entrypoint, "pass", stubs([other.stub()])).await);
        assert!(passed.contains(expected), "{passed}");
        assert_eq!(value(answer(&entrypoint, "one", args![]).await), 1.into());
    })
    .await;
}

#[tokio::test]
async fn a_million_externals_of_a_client_in_one_value_are_refused_with_the_figure() {
    beside(&[], async |server| {
        LocalSet::new()
            .run_until(async {
                let wire = Wire::connect(server.address()).await;
                let entrypoint =
                    wire::entrypoint(&wire::load(&wire.loader(), "one() { return 1 }"));
                for count in [10_001, 1_000_000] {
                    let mut request = entrypoint.call_request();
                    let mut params = request.get();
                    params.reborrow().init_path(1).set(0, "one");
                    params.init_args().init_externals(count);
                    let refused =
                        within(PATIENCE, "a refusal", wire::outcome(request.send())).await;
                    let expected = format!("externals: {count} are listed, 10000 are allowed");
                    let refused = refused.unwrap_err();
                    assert!(refused.extra.contains(&expected), "{refused}");
                }
            })
            .await;
    })
    .await;
}

/// What a call was stopped or refused by.
fn end_of(answered: Result<Answer, coracle_client::Error>) -> Option<String> {
    match answered {
        Ok(Answer {
            outcome: Outcome::Value(_),
            ..
        }) => None,
        Ok(Answer {
            outcome: Outcome::Verdict(verdict),
            ..
        }) => Some(format!(
            "{} {} {}",
            verdict.limit_name, verdict.limit, verdict.message
        )),
        Ok(Answer { outcome, .. }) => Some(format!("{outcome:?}")),
        Err(error) => Some(error.to_string()),
    }
}

#[tokio::test]
async fn functions_that_a_client_keeps_are_bounded_by_what_an_isolate_gives_out() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        let entrypoint = load(
            &coracle,
            "some() { return Array.from({ length: 4_000 }, () => () => 1) }
            one() { return 1 }",
        );
        let mut kept = Vec::new();
        let end = loop {
            let answered = entrypoint.call("some", args![]).await;
            match answered {
                Ok(answer) if matches!(answer.outcome, Outcome::Value(_)) => kept.push(answer),
                ended => break end_of(ended).unwrap(),
            }
            assert!(kept.len() < 250, "a million functions are kept");
        };
        assert_eq!(kept.len(), 2);
        assert!(end.contains("exports_max 10000"), "{end}");
        drop(kept);
        assert_eq!(value(answer(&entrypoint, "one", args![]).await), 1.into());
    })
    .await;
}

#[tokio::test]
async fn functions_of_a_client_that_a_worker_keeps_are_bounded_by_its_memory() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        let entrypoint = load(
            &coracle,
            "keep(...all) { for (const stub of all) (globalThis.kept ??= []).push(stub.dup()); return kept.length }
            one() { return 1 }",
        );
        let some: Vec<_> = (0..5_000)
            .map(|_| coracle.function(|_| async { Ok(Payload::default()) }))
            .collect();
        let before = resident_bytes(server.pid());
        let mut calls = 0;
        let end = loop {
            let kept = within(PATIENCE * 3, "keep", entrypoint.call("keep", stubs(&some))).await;
            if let Some(end) = end_of(kept) {
                break end;
            }
            calls += 1;
            assert!(calls < 200, "a million stubs are kept");
        };
        assert!(end.contains("memory_bytes_max 67108864"), "{end}");
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        assert!(grown < 400 * MIB, "the server has grown by {} MiB", grown / MIB);
        drop(some);
        assert_eq!(value(answer(&entrypoint, "one", args![]).await), 1.into());
    })
    .await;
}

#[tokio::test]
async fn props_of_entrypoints_that_a_worker_keeps_are_bounded() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        let keeper = load(
            &coracle,
            "keep(all) { for (const stub of all) (globalThis.kept ??= []).push(stub.dup()); return kept.length }
            async last() { try { return await kept.at(-1).hi() } catch (e) { return e.message } }
            async first() { return await kept[0].hi() }
            drop() { for (const stub of kept.splice(0)) stub[Symbol.dispose]() }",
        );
        let giver = load(
            &coracle,
            "hi() { return 'hi' }
            async give(keeper) {
                const text = 'x'.repeat(60_000);
                for (let call = 0; call < 20; call++) {
                    const all = [];
                    for (let n = 0; n < 100; n++) all.push(this.ctx.exports.default({ props: { text: text + n } }));
                    await keeper.keep(all);
                }
            }
            async once(keeper) { await keeper.keep([this.ctx.exports.default({ props: { n: 1 } })]) }",
        );
        let before = resident_bytes(server.pid());
        for _ in 0..5 {
            value(call(&giver, "give", stubs([keeper.stub()])).await);
        }
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        // They are of 600 MB.
        assert!(grown < 250 * MIB, "the server has grown by {} MiB", grown / MIB);
        let last = text(answer(&keeper, "last", args![]).await);
        assert!(last.contains("with 33554432 bytes of props"), "{last}");
        assert_eq!(text(answer(&keeper, "first", args![]).await), "hi");
        // What is let go of makes room.
        value(answer(&keeper, "drop", args![]).await);
        value(call(&giver, "once", stubs([keeper.stub()])).await);
        assert_eq!(text(answer(&keeper, "last", args![]).await), "hi");
    })
    .await;
}

#[tokio::test]
async fn workers_in_the_env_of_workers_are_let_go_of_however_many_they_are() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        let source = class("one() { return 1 }");
        let mut last = coracle.load(module(&source)).entrypoint("default");
        for _ in 0..9_000 {
            let mut env = Payload::default();
            let before = env.external(last.stub());
            env.value = Value::object([("BEFORE", before)]);
            last = coracle.load(module(&source).env(env)).entrypoint("default");
        }
        assert_eq!(value(answer(&last, "one", args![]).await), 1.into());
        drop(last);
        eventually("all of them are gone", async || {
            match server.gauges().await.workers {
                1 => Ok(()),
                workers => Err(format!("{workers} are there")),
            }
        })
        .await;
    })
    .await;
}

const AHEAD: &str =
    "nap() { return new Promise((done) => setTimeout(done, 20_000)) } echo(x) { return x }";

#[tokio::test]
async fn calls_that_wait_for_one_another_are_not_read_without_end() {
    beside(&[], async |server| {
        LocalSet::new()
            .run_until(async {
                for (count, is_served) in [(60, true), (5_000, false)] {
                    let wire = Wire::connect(server.address()).await;
                    let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), AHEAD));
                    let mut calls = vec![wire::call(&entrypoint, "nap")];
                    for _ in 0..count {
                        let ahead = calls[calls.len() - 1].pipeline.get_pipeline();
                        calls.push(wire::call(&ahead, "more"));
                    }
                    let last = wire::outcome(calls.swap_remove(count));
                    let ended = tokio::time::timeout(Duration::from_secs(2), last).await;
                    match ended {
                        Err(_) => assert!(is_served, "the last of {count} is waited for"),
                        Ok(ended) => {
                            assert!(!is_served, "{ended:?}");
                            let ended = ended.unwrap_err();
                            assert!(ended.extra.contains("64 calls (pipelined_max)"), "{ended}");
                        }
                    }
                    // What is left is not taken apart by this thread, which has a stack, too.
                    std::mem::forget(calls);
                }
            })
            .await;
    })
    .await;
}

#[tokio::test]
async fn promises_that_come_back_to_be_waited_for_do_not_pile_up() {
    beside(&[], async |server| {
        LocalSet::new()
            .run_until(async {
                let wire = Wire::connect(server.address()).await;
                let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), AHEAD));
                let mut calls = vec![wire::call(&entrypoint, "nap")];
                for _ in 0..1_500 {
                    let mut request = entrypoint.call_request();
                    let mut params = request.get();
                    params.reborrow().init_path(1).set(0, "echo");
                    let mut args = params.init_args();
                    let it = Value::Array(vec![Value::External(0)]);
                    args.set_cbor(&coracle_value::encode(&it));
                    let promised = calls[calls.len() - 1].pipeline.get_pipeline();
                    args.init_externals(1).get(0).set_target(promised);
                    let echo = within(PATIENCE, "an echo", request.send().promise)
                        .await
                        .unwrap();
                    let outcome = echo.get().unwrap().get_outcome().which().unwrap();
                    let call_results::outcome::Value(Ok(value)) = outcome else {
                        panic!("it is a value");
                    };
                    let external = value.get_externals().unwrap().get(0).which();
                    let Ok(external::Target(Ok(again))) = external else {
                        panic!("it is a target");
                    };
                    calls.push(wire::call(&again, "more"));
                }
                server.gauges().await;
                std::mem::forget(calls);
            })
            .await;
    })
    .await;
}

fn in_props(worker: &Worker, inner: &Stub) -> Entrypoint {
    worker.entrypoint_with(
        "default",
        EntrypointOptions {
            props: Value::object([("inner", Value::External(0))]),
            props_externals: vec![inner.clone()],
            ..EntrypointOptions::default()
        },
    )
}

#[tokio::test]
async fn entrypoints_in_the_props_of_entrypoints_are_not_nested_without_end() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        let worker = coracle.load(module(&class(
            "async depth() { return 1 + (this.ctx.props.inner ? await this.ctx.props.inner.depth() : 0) }",
        )));
        let mut entrypoint = worker.entrypoint("default");
        for depth in 1.. {
            match entrypoint.call("depth", args![]).await {
                Ok(answered) => assert_eq!(value(answered), depth.into()),
                Err(error) => {
                    assert!(error.to_string().contains("more than 64 deep"), "{error}");
                    assert_eq!(depth, 66);
                    break;
                }
            }
            entrypoint = in_props(&worker, entrypoint.stub());
        }
        // Never called, so never refused before the end.
        let mut entrypoint = worker.entrypoint("default");
        for _ in 0..20_000 {
            entrypoint = in_props(&worker, entrypoint.stub());
        }
    })
    .await;
}

#[tokio::test]
async fn a_worker_does_not_nest_entrypoints_in_props_without_end() {
    beside(&[], async |server| {
        let coracle = client(server.address()).await;
        let mut env = Payload::default();
        let loader = env.external(&coracle.loader());
        env.value = Value::object([("LOADER", loader)]);
        let source = "let child, last;
            const depth = 'async depth() { return 1 + (this.ctx.props.inner ? await this.ctx.props.inner.depth() : 0) }';
            const source = `import { WorkerEntrypoint } from 'cloudflare:workers';
                export default class extends WorkerEntrypoint { ${depth} }`;"
            .to_owned()
            + &class(
                "async nest(count) {
                    child ??= this.env.LOADER.load({
                        compatibilityDate: '2025-01-01', mainModule: 'main.js', modules: { 'main.js': source },
                    });
                    last ??= child.getEntrypoint('default');
                    for (let n = 0; n < count; n++) {
                        const next = child.getEntrypoint('default', { props: { inner: last } });
                        last[Symbol.dispose]();
                        last = next;
                    }
                    try { return await last.depth() } catch (e) { return e.message }
                }",
            );
        let entrypoint = coracle.load(module(&source).env(env)).entrypoint("default");
        assert_eq!(value(answer(&entrypoint, "nest", args![10]).await), 11.into());
        assert_eq!(value(answer(&entrypoint, "nest", args![54]).await), 65.into());
        let refused = text(answer(&entrypoint, "nest", args![1]).await);
        assert!(refused.contains("more than 64 deep"), "{refused}");
        for _ in 0..20 {
            answer(&entrypoint, "nest", args![2_000]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_goes_leaves_workers_that_others_share_with_an_error() {
    beside(&[], async |server| {
        let source = class(
            "keep(f) { globalThis.kept = f.dup() }
            async use() { try { return await kept() } catch (e) { return e.message } }",
        );
        let shared = |coracle: &Coracle| {
            let source = source.clone();
            let code = move || std::future::ready(Ok(module(&source)));
            coracle.get("shared", coracle_client::GetOptions::default(), code)
        };
        let (one, other) = (
            client(server.address()).await,
            client(server.address()).await,
        );
        let (first, second) = (
            shared(&one).entrypoint("default"),
            shared(&other).entrypoint("default"),
        );
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let never = one.function(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::pending()
        });
        value(call(&first, "keep", stubs([&never])).await);
        let used = tokio::spawn(async move { answer(&second, "use", args![]).await });
        eventually("it is asked", async || {
            match asked.load(Ordering::Relaxed) {
                0 => Err("it is not".into()),
                _ => Ok(()),
            }
        })
        .await;
        drop((first, never, one));
        let said = text(within(PATIENCE, "it is told", used).await.unwrap());
        assert_eq!(said, "The client that holds this object has disconnected.");
        assert_ne!(
            server.gauges().await,
            Gauges::default(),
            "the other is there"
        );
        drop(other);
    })
    .await;
}
