//! From the login to the result in one round trip.
//!
//! A proxy keeps back every reply of the server's. What the server finishes meanwhile was asked of it without the client
//! having heard anything.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    PATIENCE, Proxy, Server, answer, client, eventually, load, value,
    wire::{self, Outcome, Wire},
    within,
};
use coracle_client::{Value, args};
use coracle_isolate::Machine;
use coracle_server::ServerConfig;
use std::{net::SocketAddr, path::PathBuf};
use tokio::task::LocalSet;

const GREETER: &str = "greet() { return 'ahoy'; }";

#[tokio::test]
async fn over_tcp_a_result_is_one_round_trip_from_the_login() {
    let server = Server::start();
    let proxy = Proxy::start(server.address()).await;
    let connect = async || Wire::connect(proxy.address()).await;
    everything_is_asked_before_anything_is_answered(connect, &proxy, server.admin()).await;
}

#[tokio::test]
async fn over_a_unix_socket_a_result_is_one_round_trip_from_the_login() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("coracle.sock").display());
    let server = Server::start_with(&[("listen", &socket)]);
    let proxy = Proxy::start(server.address()).await;
    let connect = async || Wire::connect(proxy.address()).await;
    everything_is_asked_before_anything_is_answered(connect, &proxy, server.admin()).await;
}

#[tokio::test]
async fn embedded_a_result_is_one_round_trip_from_the_login() {
    let server = coracle_server::Server::start(embedded()).unwrap();
    let (proxy, near) = Proxy::between(server.connect());
    let connect = async || Wire::over(near);
    let admin = server.admin_address().unwrap();
    everything_is_asked_before_anything_is_answered(connect, &proxy, admin).await;
}

async fn everything_is_asked_before_anything_is_answered(
    connect: impl AsyncFnOnce() -> Wire,
    proxy: &Proxy,
    admin: SocketAddr,
) {
    proxy.hold_replies();
    LocalSet::new()
        .run_until(async {
            let wire = connect().await;
            let worker = wire::load(&wire.loader(), GREETER);
            let call = wire::call(&wire::entrypoint(&worker), "greet");
            let mut result = tokio::task::spawn_local(wire::outcome(call));
            has_finished_calls(admin, 1).await;
            assert!(!result.is_finished(), "the proxy let a reply through");
            proxy.release_replies();
            let result = within(PATIENCE, "the result", &mut result).await.unwrap();
            assert_eq!(result.unwrap(), Outcome::Json("\"ahoy\"".into()));
        })
        .await;
}

#[tokio::test]
async fn the_rust_client_loads_and_calls_in_one_round_trip() {
    let server = Server::start();
    let proxy = Proxy::start(server.address()).await;
    let coracle = client(proxy.address()).await;
    proxy.hold_replies();
    let entrypoint = load(&coracle, GREETER);
    let call = tokio::spawn(async move { answer(&entrypoint, "greet", args![]).await });
    has_finished_calls(server.admin(), 1).await;
    assert!(!call.is_finished(), "the proxy let a reply through");
    proxy.release_replies();
    assert_eq!(value(call.await.unwrap()), Value::from("ahoy"));
}

#[tokio::test]
async fn a_promised_result_can_be_read_before_it_is_there() {
    let server = Server::start();
    let proxy = Proxy::start(server.address()).await;
    proxy.hold_replies();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(proxy.address()).await;
            let methods = "ship() { return { crew: ['Ann', 'Bo'] }; }";
            let ship = wire::call(
                &wire::entrypoint(&wire::load(&wire.loader(), methods)),
                "ship",
            );
            let second_of_the_crew = wire::get(&ship.pipeline.get_pipeline(), &["crew", "1"]);
            let name = tokio::task::spawn_local(wire::outcome(second_of_the_crew));
            has_finished_calls(server.admin(), 1).await;
            proxy.release_replies();
            let name = within(PATIENCE, "the name", name).await.unwrap();
            assert_eq!(name.unwrap(), Outcome::Json("\"Bo\"".into()));
        })
        .await;
}

#[tokio::test]
async fn what_is_pipelined_into_an_exception_ends_with_that_exception() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let methods = "sink() { throw new RangeError('too deep'); }";
            let call = wire::call(
                &wire::entrypoint(&wire::load(&wire.loader(), methods)),
                "sink",
            );
            let next = wire::call(&call.pipeline.get_pipeline(), "rise");
            let expected = Outcome::Threw("RangeError".into(), "too deep".into());
            assert_eq!(
                within(PATIENCE, "the call", wire::outcome(call))
                    .await
                    .unwrap(),
                expected
            );
            assert_eq!(
                within(PATIENCE, "the next", wire::outcome(next))
                    .await
                    .unwrap(),
                expected
            );
        })
        .await;
}

#[tokio::test]
async fn what_is_pipelined_into_a_refusal_is_told_why_though_the_refused_call_was_let_go() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let told = async |target: &_, connection: &Wire| {
                let call = wire::outcome(wire::call(target, "greet"));
                let error = within(PATIENCE, "an answer", call).await.unwrap_err();
                assert!(!connection.is_closed());
                error.extra
            };
            let stranger = Wire::connect(server.address()).await;
            let loader = stranger.login(Some("nobody's")).0;
            let entrypoint = wire::entrypoint(&wire::load(&loader, GREETER));
            let error = told(&entrypoint, &stranger).await;
            assert!(error.contains("token"), "{error}");

            let wire = Wire::connect(server.address()).await;
            let loader = wire.loader();
            let mut request = loader.load_request();
            request.get().init_code().set_main_module("nowhere.js");
            let entrypoint = wire::entrypoint(&request.send().pipeline.get_worker());
            let error = told(&entrypoint, &wire).await;
            assert!(error.contains("the worker can't be loaded"), "{error}");

            let mut request = wire::load(&loader, GREETER).get_entrypoint_request();
            request.get().set_name("n".repeat(100_000));
            let entrypoint = request.send().pipeline.get_entrypoint();
            let error = told(&entrypoint, &wire).await;
            assert!(error.contains("100000"), "{error}");
        })
        .await;
    server.is_empty().await;
}

async fn has_finished_calls(admin: SocketAddr, count: u64) {
    eventually("the server finishes what it was asked for", async || {
        let (_, metrics) = crate::support::get(admin, "/metrics").await;
        let series = format!("coracle_invocations_total{{outcome=\"ok\"}} {count}");
        if metrics.lines().any(|line| line == series) {
            Ok(())
        } else {
            Err("it did not".into())
        }
    })
    .await;
}

fn embedded() -> ServerConfig {
    let mut config = ServerConfig::for_machine(&Machine::read());
    config.cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    config.core.isolates_max = 64;
    config.admin = Some(([127, 0, 0, 1], 0).into());
    config
}

/// What a result refers to is called before the result is there.
#[tokio::test]
async fn an_object_in_a_result_is_called_before_anybody_has_heard_of_it() {
    let server = Server::start();
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let methods =
                "async make() { await 0; return Object.assign(() => 1, { add: () => 42 }); }";
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), methods));
            // As CBOR, which can refer to it.
            let made = wire::call_with(&entrypoint, "make", "");
            let sum = wire::call(&made.pipeline.get_pipeline(), "add");
            let sum = within(PATIENCE, "a sum", wire::outcome(sum)).await;
            assert_eq!(sum.unwrap(), Outcome::Json("42".into()));
        })
        .await;
}
