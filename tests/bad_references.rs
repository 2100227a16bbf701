//! References that lead nowhere: what clients send instead of capabilities, and what becomes of those that are gone. Each
//! ends in an error that names it, and in nothing else.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Gauges, Neighbour, PATIENCE, Server, class, eventually, frames,
    wire::{self, Outcome, Wire},
    within,
};
use capnp::{dynamic_struct, dynamic_value};
use coracle_client::Value;
use coracle_schema::{
    call_results, code_source, external, loader, target, value, worker, worker_code,
};
use futures::channel::oneshot;
use std::{cell::RefCell, rc::Rc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::LocalSet,
};

/// Runs beside a neighbour, who is not to notice, and leaves an empty server behind.
async fn beside(test: impl AsyncFnOnce(&Server)) {
    let server = Server::start();
    let neighbour = Neighbour::of(server.address()).await;
    LocalSet::new().run_until(test(&server)).await;
    neighbour.was_served().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    server.is_empty().await;
}

const WORKER: &str = "
    take(x) { return typeof x }
    count() { return globalThis.count = (globalThis.count ?? 0) + 1 }
    async ask(f) { try { return String(await f()) } catch (e) { return `${e.name}: ${e.message}` } }
    async read(s) { try { return String(await new Response(s).text()) } catch (e) { return `${e}` } }
    nap() { return new Promise((done) => setTimeout(done, 25_000)) }";

/// An object of the client's, which answers every call in one way.
struct Answers<F>(F);

impl<F> target::Server for Answers<F>
where
    F: Fn(call_results::Builder<'_>) -> Result<(), capnp::Error> + 'static,
{
    async fn call(
        self: Rc<Self>,
        _params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), capnp::Error> {
        (self.0)(results.get())
    }
}

fn answering<F>(answer: F) -> target::Client
where
    F: Fn(call_results::Builder<'_>) -> Result<(), capnp::Error> + 'static,
{
    capnp_rpc::new_client(Answers(answer))
}

fn something() -> target::Client {
    answering(|_| Ok(()))
}

/// One that answers with that value.
fn answering_value(fill: impl Fn(value::Builder<'_>) + 'static) -> target::Client {
    answering(move |results| {
        fill(results.init_outcome().init_value());
        Ok(())
    })
}

/// The bytes of a value that refers to that external.
fn refers_to(index: u32) -> Vec<u8> {
    coracle_value::encode(&Value::External(index))
}

/// The same in an array, as arguments are.
fn arguments_refer_to(index: u32) -> Vec<u8> {
    coracle_value::encode(&Value::Array(vec![Value::External(index)]))
}

/// Calls a method with what `fill` makes of the arguments; the result is wanted as JSON.
async fn call(
    target: &target::Client,
    method: &str,
    fill: impl FnOnce(value::Builder<'_>),
) -> Result<Outcome, capnp::Error> {
    let mut request = target.call_request();
    let mut params = request.get();
    params.reborrow().init_path(1).set(0, method);
    params.set_result_form(coracle_schema::Form::Json);
    fill(params.init_args());
    within(PATIENCE, method, wire::outcome(request.send())).await
}

/// The same with one stub.
async fn call_with(
    target: &target::Client,
    method: &str,
    stub: target::Client,
) -> Result<Outcome, capnp::Error> {
    call(target, method, |mut args| {
        args.set_cbor(&arguments_refer_to(0));
        args.init_externals(1).get(0).set_target(stub);
    })
    .await
}

/// What was sent is refused, and the refusal has this in it.
#[track_caller]
fn is_refused(outcome: Result<Outcome, capnp::Error>, expected: &str) {
    let said = match outcome {
        Err(error) => error.extra,
        Ok(Outcome::Threw(name, message)) => format!("{name}: {message}"),
        Ok(Outcome::Json(text)) => text,
        Ok(other) => format!("{other:?}"),
    };
    assert!(said.contains(expected), "{expected:?} is not in {said:?}");
}

/// Makes an external say what it is and have nothing there.
fn nothing_as(external: external::Builder<'_>, kind: &str) {
    let dynamic: dynamic_value::Builder<'_> = external.into();
    let mut dynamic: dynamic_struct::Builder<'_> = dynamic.downcast();
    dynamic.clear_named(kind).unwrap();
}

fn code<'a>(mut code: worker_code::Builder<'a>, source: &str) -> worker_code::Builder<'a> {
    code.set_main_module("main.js");
    let mut module = code.reborrow().init_modules(1).get(0);
    module.set_name("main.js");
    module.init_body().set_es_module(source);
    code
}

/// Loads a worker, with what `fill` makes of its code, and calls it.
async fn loaded_with(
    loader: &loader::Client,
    fill: impl FnOnce(worker_code::Builder<'_>),
) -> Result<Outcome, capnp::Error> {
    let mut request = loader.load_request();
    fill(code(request.get().init_code(), &class(WORKER)));
    let worker = request.send().pipeline.get_worker();
    call(&wire::entrypoint(&worker), "take", |_| {}).await
}

fn with_props(worker: &worker::Client, fill: impl FnOnce(value::Builder<'_>)) -> target::Client {
    let mut request = worker.get_entrypoint_request();
    fill(request.get().init_props());
    request.send().pipeline.get_entrypoint()
}

#[tokio::test]
async fn an_index_that_the_table_does_not_have_is_refused_by_its_number() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let (loader, _session) = wire.login(None);
        let worker = wire::load(&loader, WORKER);
        let entrypoint = wire::entrypoint(&worker);
        let fill = |mut value: value::Builder<'_>, bytes: &[u8]| {
            value.set_cbor(bytes);
            value.init_externals(1).get(0).set_target(something());
        };
        let expected = "is not in the table of 1";
        let args = arguments_refer_to(7);
        let taken = call(&entrypoint, "take", |value| fill(value, &args)).await;
        is_refused(
            taken,
            "the arguments can't be decoded: external 7 at byte 1 is not in the table of 1",
        );

        let object = coracle_value::encode(&Value::object([("a", Value::External(7))]));
        let loaded = loaded_with(&loader, |code| fill(code.init_env(), &object)).await;
        is_refused(loaded, "external 7 at byte 3 is not in the table of 1");

        let of_props = with_props(&worker, |value| fill(value, &object));
        is_refused(
            call(&of_props, "take", |_| {}).await,
            "the props can't be decoded: external 7 at byte 3",
        );

        let answers = answering_value(move |value| fill(value, &refers_to(7)));
        let asked = call_with(&entrypoint, "ask", answers).await;
        is_refused(
            asked,
            "TypeError: the result can't be decoded: external 7 at byte 0 is not in the table of 1",
        );

        let source = answering_value(move |value| fill(value, &refers_to(7)));
        let read = call(&entrypoint, "read", |mut args| {
            args.set_cbor(&arguments_refer_to(0));
            args.init_externals(1).get(0).set_source(source);
        });
        is_refused(read.await, expected);
    })
    .await;
}

#[tokio::test]
async fn nothing_in_the_place_of_a_capability_is_refused_by_its_place() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let (loader, _session) = wire.login(None);
        let entrypoint = wire::entrypoint(&wire::load(&loader, WORKER));
        for kind in ["target", "source", "sink"] {
            let taken = call(&entrypoint, "take", |mut args| {
                args.set_cbor(&arguments_refer_to(0));
                let mut list = args.init_externals(2);
                list.reborrow().get(0).set_target(something());
                nothing_as(list.get(1), kind);
            });
            is_refused(taken.await, "external 1 has no capability");
        }
        let asked = answering_value(|mut value| {
            value.set_cbor(&refers_to(0));
            nothing_as(value.init_externals(1).get(0), "target");
        });
        is_refused(
            call_with(&entrypoint, "ask", asked).await,
            "Error: external 0 has no capability",
        );
        let unset = call(&entrypoint, "take", |args| {
            args.init_externals(1);
        });
        is_refused(unset.await, "external 0 is not set");

        let loaded = loaded_with(&loader, |code| {
            let mut env = code.init_env();
            env.set_cbor(&coracle_value::encode(&Value::object::<&str, Value>([])));
            nothing_as(env.init_externals(1).get(0), "loader");
        });
        is_refused(loaded.await, "external 0 is not the loader");
        let loaded = loaded_with(&loader, |code| {
            let dynamic: dynamic_value::Builder<'_> = code.init_outbound().into();
            let mut dynamic: dynamic_struct::Builder<'_> = dynamic.downcast();
            dynamic.clear_named("gateway").unwrap();
        });
        is_refused(loaded.await, "outbound: the gateway has no capability");
        let loaded = loaded_with(&loader, |code| {
            code.init_tails(1);
        });
        is_refused(loaded.await, "tail 0 has no capability");
        let mut request = loader.get_request();
        request.get().set_id("a");
        let worker = request.send().pipeline.get_worker();
        let taken = call(&wire::entrypoint(&worker), "take", |_| {}).await;
        is_refused(taken, "source: it has no capability");
    })
    .await;
}

/// The data word of an external in a message that has one alone: after the tag of a list of one such struct.
fn patch_kind(frame: &mut [u8], kind: u16) {
    let tag = (1_u64 << 2 | 1 << 32 | 1 << 48).to_le_bytes();
    let words = frame.chunks_exact(8).collect::<Vec<_>>();
    let at = words.iter().position(|word| *word == tag).unwrap() + 1;
    frame[at * 8..][..2].copy_from_slice(&kind.to_le_bytes());
}

#[tokio::test]
async fn an_external_of_a_kind_that_nobody_knows_is_refused_by_its_place() {
    beside(async |server| {
        let mut load = frames::call(2, 1, &[0], frames::LOADER, 0, |params| {
            let code = params
                .init_as::<loader::load_params::Builder<'_>>()
                .init_code();
            let mut env = code.init_env();
            env.set_undefined(());
            env.init_externals(1);
        });
        patch_kind(&mut load, 9);
        let mut peer = TcpStream::connect(server.address()).await.unwrap();
        let bytes = [frames::bootstrap(), frames::login(1, 0), load].concat();
        peer.write_all(&bytes).await.unwrap();
        let mut told = Vec::new();
        let listen = async {
            let expected = "external 0 is of a kind that this server does not know";
            while !String::from_utf8_lossy(&told).contains(expected) {
                assert!(
                    peer.read_buf(&mut told).await.unwrap() > 0,
                    "it was cut off"
                );
            }
        };
        within(PATIENCE, "a refusal", listen).await;
    })
    .await;
}

const USER: &str = "async use(x) { try { return await x.take() } catch (e) { return `${e}` } }";

#[tokio::test]
async fn what_came_from_a_closed_session_says_so_whoever_holds_it() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let (first, session) = wire.login(None);
        let worker = wire::load(&first, WORKER);
        let old = wire::entrypoint(&worker);
        assert!(call(&old, "take", |_| {}).await.is_ok());
        within(
            PATIENCE,
            "it closes",
            session.close_request().send().promise,
        )
        .await
        .unwrap();
        let (second, _session) = wire.login(None);
        let other = wire::entrypoint(&wire::load(&second, USER));
        is_refused(call(&old, "take", |_| {}).await, "the session is closed");
        is_refused(call_with(&other, "use", old).await, "the session is closed");
        let late = wire::entrypoint(&worker);
        is_refused(call(&late, "take", |_| {}).await, "the session is closed");
        is_refused(loaded_with(&first, |_| {}).await, "the session is closed");
    })
    .await;
}

/// What a client's function may answer that is no answer, and what the worker then knows.
fn rubbish() -> Vec<(target::Client, &'static str)> {
    let deep = |levels: usize| [vec![0x81; levels], vec![0]].concat();
    let threw = |name: &'static str, message: String, bytes: Vec<u8>| {
        answering(move |results| {
            let mut thrown = results.init_outcome().init_threw();
            thrown.set_name(name);
            thrown.set_message(&message[..]);
            thrown.init_value().set_cbor(&bytes);
            Ok(())
        })
    };
    let value = |bytes: Vec<u8>| answering_value(move |mut value| value.set_cbor(&bytes));
    let fails =
        |error: fn(String) -> capnp::Error| answering(move |_| Err(error("as it is".into())));
    vec![
        (
            threw("RangeError", "no".into(), Vec::new()),
            "RangeError: no",
        ),
        (
            threw("RangeError", "no".into(), vec![0x1c]),
            "RangeError: no",
        ),
        (
            threw("RangeError", "no".into(), deep(2_000)),
            "RangeError: no",
        ),
        (
            threw("RangeError", "no".into(), refers_to(0)),
            "RangeError: no",
        ),
        (threw("", String::new(), deep(2)), "undefined: undefined"),
        (threw("E", "x".repeat(3 << 20), Vec::new()), "xxxxxx"),
        (
            value(vec![0x1c]),
            "TypeError: the result can't be decoded: malformed item 0x1c at byte 0",
        ),
        (
            value(Vec::new()),
            "TypeError: the result can't be decoded: input ends at byte 0",
        ),
        (
            value(deep(2_000)),
            "RangeError: The value is nested too deeply.",
        ),
        (
            value([vec![0x5a, 2, 0x80, 0, 0], vec![0; 40 << 20]].concat()),
            "41943045 bytes",
        ),
        (
            fails(capnp::Error::failed),
            "Error: remote exception: as it is",
        ),
        (
            fails(capnp::Error::overloaded),
            "Error: remote exception: as it is",
        ),
        (fails(capnp::Error::disconnected), "has disconnected"),
        (
            fails(capnp::Error::unimplemented),
            "does not implement this method",
        ),
        (
            answering(|results| {
                let mut verdict = results.init_outcome().init_verdict();
                verdict.set_message("forged");
                Ok(())
            }),
            "Error: forged",
        ),
        (
            answering(|results| {
                results.init_outcome().init_value().set_json("{]");
                Ok(())
            }),
            "TypeError: the result can't be decoded: the JSON text is malformed",
        ),
    ]
}

#[tokio::test]
async fn whatever_a_callback_answers_is_an_error_that_the_worker_catches() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), WORKER));
        let first = call(&entrypoint, "count", |_| {}).await;
        assert_eq!(first.unwrap(), Outcome::Json("1".into()));
        for (callback, expected) in rubbish() {
            let asked = call_with(&entrypoint, "ask", callback).await;
            assert!(
                matches!(&asked, Ok(Outcome::Json(_))),
                "{asked:?} is not caught"
            );
            is_refused(asked, expected);
        }
        // A capability that nothing in the answer refers to.
        let answers = answering_value(|mut value| {
            value.set_cbor(&[5]);
            value.init_externals(1).get(0).set_target(something());
        });
        is_refused(call_with(&entrypoint, "ask", answers).await, "\"5\"");
        let answers = answering_value(|value| {
            value.init_externals(1).get(0).set_target(something());
        });
        is_refused(
            call_with(&entrypoint, "ask", answers).await,
            "\"undefined\"",
        );
        // The isolate has lived through all of it.
        let again = call(&entrypoint, "count", |_| {}).await;
        assert_eq!(again.unwrap(), Outcome::Json("2".into()));
    })
    .await;
}

/// Never answers. Tells when it is asked, and when nobody waits any more.
struct Never {
    asked: RefCell<Option<oneshot::Sender<()>>>,
    given_up: RefCell<Option<oneshot::Sender<()>>>,
}

impl target::Server for Never {
    async fn call(
        self: Rc<Self>,
        _params: target::CallParams,
        _results: target::CallResults,
    ) -> Result<(), capnp::Error> {
        let _given_up = self.given_up.take();
        if let Some(asked) = self.asked.take() {
            let _ = asked.send(());
        }
        std::future::pending().await
    }
}

fn never() -> (target::Client, oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let ((asked, is_asked), (given_up, is_given_up)) = (oneshot::channel(), oneshot::channel());
    let never = Never {
        asked: RefCell::new(Some(asked)),
        given_up: RefCell::new(Some(given_up)),
    };
    (capnp_rpc::new_client(never), is_asked, is_given_up)
}

#[tokio::test]
async fn a_callback_that_never_answers_ends_with_the_wall_time_or_its_caller() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let worker = wire::load(&wire.loader(), WORKER);
        let mut request = worker.get_entrypoint_request();
        request.get().init_limits().set_wall_ms_max(300);
        let brief = request.send().pipeline.get_entrypoint();
        let (callback, _, given_up) = never();
        let asked = call_with(&brief, "ask", callback).await;
        assert_eq!(asked.unwrap(), Outcome::Verdict("Wall".into()));
        let _ = within(PATIENCE, "it is given up", given_up).await;

        let (callback, asked, given_up) = never();
        let entrypoint = wire::entrypoint(&worker);
        let calls = call_with(&entrypoint, "ask", callback);
        tokio::select! {
            outcome = calls => panic!("{outcome:?}"),
            _ = within(PATIENCE, "it is asked", asked) => {}
        }
        let _ = within(PATIENCE, "it is given up", given_up).await;
        eventually("no call is left", async || {
            match server.gauges().await.calls {
                0 => Ok(()),
                calls => Err(format!("{calls} calls")),
            }
        })
        .await;
    })
    .await;
}

/// Where the code of a worker comes from that says something else than code.
struct Source<F>(F);

impl<F> code_source::Server for Source<F>
where
    F: Fn(code_source::code_results::Builder<'_>) -> Result<(), capnp::Error> + 'static,
{
    async fn code(
        self: Rc<Self>,
        _params: code_source::CodeParams,
        mut results: code_source::CodeResults,
    ) -> Result<(), capnp::Error> {
        (self.0)(results.get())
    }
}

async fn got<F>(loader: &loader::Client, source: F) -> Result<Outcome, capnp::Error>
where
    F: Fn(code_source::code_results::Builder<'_>) -> Result<(), capnp::Error> + 'static,
{
    let mut request = loader.get_request();
    request.get().set_id("a");
    request
        .get()
        .set_source(capnp_rpc::new_client(Source(source)));
    let worker = request.send().pipeline.get_worker();
    call(&wire::entrypoint(&worker), "take", |_| {}).await
}

#[tokio::test]
async fn a_source_that_answers_with_rubbish_is_told_what_is_wrong_with_it() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let (loader, _session) = wire.login(None);
        let nothing = got(&loader, |_| Ok(())).await;
        is_refused(nothing, "must contain at least one module");
        let thrown = got(&loader, |_| {
            Err(capnp::Error::failed("out of order".into()))
        })
        .await;
        is_refused(thrown, "the source of the code failed: out of order");
        let unknown = got(&loader, |results| {
            code(results.init_code(), "export default {}").set_main_module("other.js");
            Ok(())
        });
        is_refused(unknown.await, "other.js");
        let huge = got(&loader, |results| {
            code(results.init_code(), &" ".repeat(11 << 20));
            Ok(())
        });
        is_refused(huge.await, "10485760");
        let unset = got(&loader, |results| {
            let mut modules = code(results.init_code(), "").init_modules(1);
            modules.reborrow().get(0).set_name("main.js");
            Ok(())
        });
        is_refused(unset.await, "main.js");
        let env = got(&loader, |results| {
            code(results.init_code(), "").init_env().set_cbor(&[0xa0]);
            Ok(())
        });
        is_refused(env.await, "answered with env, outbound, limits or tails");
        let malformed = got(&loader, |results| {
            code(results.init_code(), "").init_env().init_externals(1);
            Ok(())
        });
        is_refused(
            malformed.await,
            "the source of the code is refused: external 0 is not set",
        );
        let source = got(&loader, |results| {
            code(results.init_code(), "export default (");
            Ok(())
        });
        is_refused(source.await, "SyntaxError");
        // None of it is kept.
        let good = got(&loader, |results| {
            code(results.init_code(), &class(WORKER));
            Ok(())
        });
        assert_eq!(good.await.unwrap(), Outcome::Json("\"undefined\"".into()));
    })
    .await;
}

#[tokio::test]
async fn a_tail_that_is_none_costs_its_worker_nothing() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let (loader, _session) = wire.login(None);
        let other = target::Client {
            client: capnp::capability::Client::new(wire.gate.client.hook.add_ref()),
        };
        let of_worker = wire::entrypoint(&wire::load(&loader, "tail() { throw new Error('no') }"));
        let (endless, asked, _given_up) = never();
        let tails = [
            other,
            answering(|_| Err(capnp::Error::failed("no".into()))),
            answering_value(|mut value| value.set_cbor(&refers_to(9))),
            of_worker,
            endless,
        ];
        for tail in tails {
            let taken = loaded_with(&loader, |code| {
                code.init_tails(1).set(0, tail.client.hook);
            });
            assert_eq!(taken.await.unwrap(), Outcome::Json("\"undefined\"".into()));
        }
        within(PATIENCE, "the last is told", asked).await.unwrap();
        // And its client vanishes while it is being told.
        drop(wire);
    })
    .await;
}

#[tokio::test]
async fn what_is_used_after_its_worker_was_let_go_of_works_or_says_why_not() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let (loader, _session) = wire.login(None);
        let worker = wire::load(&loader, WORKER);
        let entrypoint = wire::entrypoint(&worker);
        assert!(call(&entrypoint, "take", |_| {}).await.is_ok());
        drop(worker);
        // An entrypoint keeps its worker.
        assert!(call(&entrypoint, "take", |_| {}).await.is_ok());
        drop(entrypoint);
        let (connections, sessions) = (2, 2);
        let only_the_neighbour = Gauges {
            connections,
            sessions,
            workers: 1,
            isolates: 1,
            calls: 0,
        };
        eventually("the worker is gone", async || {
            let gauges = server.gauges().await;
            // The neighbour may be in the middle of a call.
            match (Gauges { calls: 0, ..gauges }) == only_the_neighbour {
                true => Ok(()),
                false => Err(format!("{gauges:?}")),
            }
        })
        .await;
        let answer = loaded_with(&loader, |_| {}).await;
        assert_eq!(answer.unwrap(), Outcome::Json("\"undefined\"".into()));
    })
    .await;
}

#[tokio::test]
async fn a_path_that_is_too_deep_or_too_long_is_refused_with_the_figure() {
    beside(async |server| {
        let wire = Wire::connect(server.address()).await;
        let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), WORKER));
        let long = "y".repeat(1 << 20);
        let pipelined = wire::call(&entrypoint, "take").pipeline.get_pipeline();
        for target in [&entrypoint, &pipelined] {
            let deep = wire::outcome(wire::get(target, &["x"; 65])).await;
            is_refused(deep, "path: 65 are listed, 64 are allowed");
            let named = wire::outcome(wire::get(target, &[&long])).await;
            is_refused(named, "path: its names have more than 65536 bytes");
            is_refused(
                call(target, &long, |_| {}).await,
                "path: its names have more than 65536 bytes",
            );
        }
    })
    .await;
}
