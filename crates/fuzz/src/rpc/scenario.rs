//! Honest sessions. What their client sends is recorded, and is what hostile ones are made from.

use capnp::capability::{FromClientHook as _, RemotePromise};
use capnp_rpc::{RpcSystem, rpc_twoparty_capnp::Side, twoparty};
use coracle_schema::{
    Form, call_results, code_source, gate, loader, session, target, worker, worker_code,
};
use coracle_server::Server;
use futures::AsyncReadExt as _;
use std::{cell::RefCell, rc::Rc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_util::compat::TokioAsyncReadCompatExt;

/// A session by its name.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    play: for<'a> fn(&'a Client) -> futures::future::LocalBoxFuture<'a, ()>,
}

macro_rules! scenarios {
    ($($name:ident,)*) => {
        /// All of them.
        pub(super) const SCENARIOS: &[Scenario] =
            &[$(Scenario { name: stringify!($name), play: |client| Box::pin($name(client)) },)*];
    };
}

scenarios! {
    load_and_call,
    values_of_both_forms,
    outcomes,
    cancelled_and_released,
    sessions,
    refused_loads,
    capabilities,
    workers_by_id,
}

/// Plays a session, and returns what its client sent. Needs a `LocalSet`.
pub(super) async fn record(server: &Server, scenario: &Scenario) -> Vec<u8> {
    let (near, far) = tokio::io::duplex(1 << 20);
    let sent = Rc::new(RefCell::new(Vec::new()));
    tokio::task::spawn_local(tee(far, server.connect(), Rc::clone(&sent)));
    let client = Client::over(near);
    (scenario.play)(&client).await;
    // What the client lets go of at the end belongs to it.
    drop(client);
    tokio::time::sleep(Duration::from_millis(20)).await;
    sent.take()
}

/// Passes bytes on in both directions and keeps the client's.
async fn tee(client: DuplexStream, server: DuplexStream, sent: Rc<RefCell<Vec<u8>>>) {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let there = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            sent.borrow_mut().extend_from_slice(&buffer[..count]);
            if to_server.write_all(&buffer[..count]).await.is_err() {
                break;
            }
        }
        let _ = to_server.shutdown().await;
    };
    let back = tokio::io::copy(&mut from_server, &mut to_client);
    let _ = futures::join!(there, back);
}

/// A client in terms of the schema.
pub(super) struct Client {
    gate: gate::Client,
    system: tokio::task::JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.system.abort();
    }
}

impl Client {
    pub(super) fn over(stream: DuplexStream) -> Self {
        let (reader, writer) = stream.compat().split();
        let network = twoparty::VatNetwork::new(
            reader,
            writer,
            Side::Client,
            capnp::message::ReaderOptions::new(),
        );
        let mut system = RpcSystem::new(Box::new(network), None);
        let gate = system.bootstrap(Side::Server);
        Self {
            gate,
            system: tokio::task::spawn_local(async move { drop(system.await) }),
        }
    }

    fn login(&self) -> (loader::Client, session::Client) {
        let mut request = self.gate.login_request();
        request.get().init_credentials().set_none(());
        let promise = request.send();
        (
            promise.pipeline.get_loader(),
            promise.pipeline.get_session(),
        )
    }

    /// Whether a fresh worker gives the right answer.
    pub(super) async fn is_served(&self) -> Result<(), capnp::Error> {
        let entrypoint = entrypoint(&load(&self.login().0), "default");
        let response = call(&entrypoint, "add", Args::Json("[20,22]"))
            .promise
            .await?;
        let capnp_outcome = response.get()?.get_outcome();
        let call_results::outcome::Value(value) = capnp_outcome.which()? else {
            return Err(capnp::Error::failed(
                "it was answered, but not with a value".into(),
            ));
        };
        match value?.which()? {
            coracle_schema::value::Json(Ok(text)) if text == "42" => Ok(()),
            _ => Err(capnp::Error::failed(
                "it was answered with something else".into(),
            )),
        }
    }
}

const SOURCE: &str = "
import { WorkerEntrypoint } from 'cloudflare:workers';
import table from './table.json';
import { double } from './lib.js';
export default class extends WorkerEntrypoint {
    add(a, b) { console.log('adding', a, b); return a + b; }
    echo(value) { return value; }
    look(name) { return { row: table[name], doubled: double(table[name] ?? 0), env: this.env, props: this.ctx.props }; }
    fail(text) { throw new RangeError(text); }
    hang() { return new Promise(() => {}); }
    nap(ms) { return new Promise(done => setTimeout(done, ms)); }
    much(n) { return 'x'.repeat(n); }
    async use(peer) { return [await peer.ask(() => 1), await this.env.PEER.ask(2)]; }
    give() { return { count: () => 1, rows: new Response('rows').body }; }
    async leave() { return (await fetch('https://example.com/', { method: 'POST', body: 'x' })).status; }
}
export const other = { one(_) { return 1; } };
";

fn load(loader: &loader::Client) -> worker::Client {
    let mut request = loader.load_request();
    write_code(request.get().init_code());
    request.send().pipeline.get_worker()
}

fn write_code(mut code: worker_code::Builder<'_>) {
    code.set_compatibility_date("2025-01-01");
    code.set_main_module("main.js");
    let mut modules = code.reborrow().init_modules(3);
    for (index, name) in ["main.js", "lib.js", "table.json"].into_iter().enumerate() {
        let mut module = modules.reborrow().get(index as u32);
        module.set_name(name);
        let mut body = module.init_body();
        match name {
            "main.js" => body.set_es_module(SOURCE),
            "lib.js" => body.set_es_module("export const double = n => n * 2;"),
            _ => body.set_json("{\"a\":1,\"b\":2}"),
        }
    }
    code.reborrow().init_env().set_json("{\"PLACE\":\"here\"}");
    code.init_limits().set_fuel_max(30_000_000);
}

fn entrypoint(worker: &worker::Client, name: &str) -> target::Client {
    let mut request = worker.get_entrypoint_request();
    let mut params = request.get();
    params.set_name(name);
    params.reborrow().init_props().set_json("{\"who\":\"ada\"}");
    params.init_limits().set_cpu_ms_max(500);
    request.send().pipeline.get_entrypoint()
}

enum Args<'a> {
    None,
    Json(&'a str),
    Cbor(&'a [u8]),
}

fn call(
    target: &target::Client,
    method: &str,
    args: Args<'_>,
) -> RemotePromise<call_results::Owned> {
    let mut request = target.call_request();
    let mut params = request.get();
    params.reborrow().init_path(1).set(0, method);
    let mut value = params.reborrow().init_args();
    match args {
        Args::None => value.set_undefined(()),
        Args::Json(text) => value.set_json(text),
        Args::Cbor(bytes) => value.set_cbor(bytes),
    }
    params.set_result_form(Form::Json);
    request.send()
}

fn get(target: &target::Client, path: &[&str], form: Form) -> RemotePromise<call_results::Owned> {
    let mut request = target.get_request();
    let mut params = request.get();
    let mut list = params.reborrow().init_path(path.len() as u32);
    for (index, step) in path.iter().enumerate() {
        list.set(index as u32, step);
    }
    params.set_result_form(form);
    request.send()
}

async fn load_and_call(client: &Client) {
    let worker = load(&client.login().0);
    let entrypoint = entrypoint(&worker, "default");
    let first = call(&entrypoint, "add", Args::Json("[1,2]"));
    let _ = worker.ready_request().send().promise.await;
    let _ = first.promise.await;
    let look = call(&entrypoint, "look", Args::Json("[\"b\"]"));
    let row = get(&look.pipeline.get_pipeline(), &["env", "PLACE"], Form::Cbor);
    let _ = futures::join!(look.promise, row.promise);
}

async fn values_of_both_forms(client: &Client) {
    let entrypoint = entrypoint(&load(&client.login().0), "");
    // [{"a": [1, undefined, h'010203', "text"]}] and [1n << 64n].
    let nested = [
        0x81, 0xa1, 0x61, b'a', 0x84, 0x01, 0xf7, 0x43, 1, 2, 3, 0x64, b't', b'e', b'x', b't',
    ];
    let large = [0x81, 0xc2, 0x49, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    for bytes in [&nested[..], &large] {
        let _ = call(&entrypoint, "echo", Args::Cbor(bytes)).promise.await;
    }
    let _ = call(
        &entrypoint,
        "echo",
        Args::Json("[{\"deep\":[[[[[null]]]]]}]"),
    )
    .promise
    .await;
    let _ = call(&entrypoint, "much", Args::Json("[300000]"))
        .promise
        .await;
    let _ = get(&entrypoint, &["env"], Form::Json).promise.await;
}

async fn outcomes(client: &Client) {
    let worker = load(&client.login().0);
    let entrypoint = entrypoint(&worker, "default");
    for (method, args) in [
        ("fail", Args::Json("[\"no\"]")),
        ("hang", Args::None),
        ("absent", Args::Json("[]")),
        ("add", Args::Json("{not json")),
        ("add", Args::Cbor(&[0xff, 0xff])),
    ] {
        let call = call(&entrypoint, method, args);
        let next = self::call(&call.pipeline.get_pipeline(), "next", Args::None);
        let _ = futures::join!(call.promise, next.promise);
    }
    let elsewhere = self::entrypoint(&worker, "nowhere");
    let _ = call(&elsewhere, "one", Args::Json("[0]")).promise.await;
    let other = self::entrypoint(&worker, "other");
    let _ = call(&other, "one", Args::Json("[0]")).promise.await;
}

async fn cancelled_and_released(client: &Client) {
    let (loader, _session) = client.login();
    let entrypoints: Vec<_> = (0..3)
        .map(|_| entrypoint(&load(&loader), "default"))
        .collect();
    let naps: Vec<_> = entrypoints
        .iter()
        .map(|target| call(target, "nap", Args::Json("[5000]")))
        .collect();
    let _ = call(&entrypoints[0], "add", Args::Json("[1,2]"))
        .promise
        .await;
    drop(naps);
    let _ = call(&entrypoints[1], "add", Args::Json("[1,2]"))
        .promise
        .await;
    drop(entrypoints);
    let _ = client.login().1.tenant_request().send().promise.await;
}

async fn sessions(client: &Client) {
    let (loader, session) = client.login();
    let entrypoint = entrypoint(&load(&loader), "default");
    let _ = session.tenant_request().send().promise.await;
    let nap = call(&entrypoint, "nap", Args::Json("[5000]"));
    let close = session.close_request().send();
    let _ = futures::join!(nap.promise, close.promise);
    let _ = call(&entrypoint, "add", Args::Json("[1,2]")).promise.await;
    let _ = load(&loader).ready_request().send().promise.await;
    let mut wrong = client.gate.login_request();
    wrong
        .get()
        .init_credentials()
        .set_bearer_token("nobody has this token");
    let _ = wrong.send().promise.await;
}

async fn refused_loads(client: &Client) {
    let (loader, _session) = client.login();
    let mut request = loader.load_request();
    let mut code = request.get().init_code();
    code.set_compatibility_date("tomorrow");
    code.reborrow()
        .init_compatibility_flags(2)
        .set(0, "no_such_flag");
    code.set_main_module("gone.js");
    code.reborrow().init_outbound().set_none(());
    let mut modules = code.reborrow().init_modules(4);
    for (index, name) in ["a.js", "a.js", "node:x", "w.wasm"].into_iter().enumerate() {
        modules.reborrow().get(index as u32).set_name(name);
    }
    modules
        .reborrow()
        .get(0)
        .init_body()
        .set_common_js("exports.x = 1");
    modules.reborrow().get(2).init_body().set_text("text");
    modules.get(3).init_body().set_wasm(b"\0asm");
    code.init_env().set_cbor(&[0x80]);
    let worker = request.send().pipeline.get_worker();
    let _ = worker.ready_request().send().promise.await;
    let _ = call(&entrypoint(&worker, "default"), "x", Args::None)
        .promise
        .await;
}

/// An object of the client's that answers everything with a number.
struct Peer;

impl target::Server for Peer {
    async fn call(
        self: Rc<Self>,
        _params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), capnp::Error> {
        let mut outcome = results.get().init_outcome();
        outcome.reborrow().init_value().set_cbor(&[1]);
        Ok(())
    }

    async fn get(
        self: Rc<Self>,
        _params: target::GetParams,
        mut results: target::GetResults,
    ) -> Result<(), capnp::Error> {
        results.get().init_outcome().init_value().set_undefined(());
        Ok(())
    }
}

/// Gives out the code that every session loads.
struct Source;

impl code_source::Server for Source {
    async fn code(
        self: Rc<Self>,
        _params: code_source::CodeParams,
        mut results: code_source::CodeResults,
    ) -> Result<(), capnp::Error> {
        write_code(results.get().init_code());
        Ok(())
    }
}

/// Entry 0 of a table of externals, in CBOR, and in an array of one.
const EXTERNAL: [u8; 4] = [0xd9, 0x9c, 0x40, 0];
const EXTERNAL_IN_ARRAY: [u8; 5] = [0x81, 0xd9, 0x9c, 0x40, 0];

fn peer() -> target::Client {
    capnp_rpc::new_client(Peer)
}

/// The client's objects as an argument, in `env`, as a gateway and as a tail, and the worker's as results.
async fn capabilities(client: &Client) {
    let loader = client.login().0;
    let mut request = loader.load_request();
    let mut code = request.get().init_code();
    write_code(code.reborrow());
    let mut env = code.reborrow().init_env();
    // {"PEER": external 0}
    env.set_cbor(&[&[0xa1, 0x64, b'P', b'E', b'E', b'R'][..], &EXTERNAL].concat());
    env.init_externals(1).get(0).set_target(peer());
    code.reborrow().init_outbound().set_gateway(peer());
    code.reborrow()
        .init_tails(1)
        .set(0, peer().into_client_hook());
    let worker = request.send().pipeline.get_worker();
    let entrypoint = entrypoint(&worker, "default");
    let mut using = entrypoint.call_request();
    let mut params = using.get();
    params.reborrow().init_path(1).set(0, "use");
    let mut args = params.reborrow().init_args();
    args.set_cbor(&EXTERNAL_IN_ARRAY);
    args.init_externals(1).get(0).set_target(peer());
    params.set_result_form(Form::Cbor);
    let _ = using.send().promise.await;
    let given = call(&entrypoint, "give", Args::None);
    let count = call(&given.pipeline.get_pipeline(), "count", Args::None);
    let left = call(&entrypoint, "leave", Args::None);
    let _ = futures::join!(given.promise, count.promise, left.promise);
}

/// Workers that are found by an id, whose code is asked for once.
async fn workers_by_id(client: &Client) {
    let loader = client.login().0;
    for fingerprint in [&b"one"[..], b"one", b"two", b""] {
        let mut request = loader.get_request();
        let mut params = request.get();
        params.set_id("the worker");
        params.set_fingerprint(fingerprint);
        params
            .reborrow()
            .init_env()
            .set_json("{\"PLACE\":\"there\"}");
        params.set_source(capnp_rpc::new_client(Source));
        let worker = request.send().pipeline.get_worker();
        let entrypoint = entrypoint(&worker, "default");
        let _ = call(&entrypoint, "add", Args::Json("[1,2]")).promise.await;
    }
}
