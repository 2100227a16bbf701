//! The client's side of the wire, as thin as it can be.

use anyhow::{Context, bail};
use capnp_rpc::{RpcSystem, rpc_twoparty_capnp::Side};
use coracle_schema::{call_results, gate, loader, session, target, worker};
use serde_json::Value;
use std::{
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;
use tokio_util::compat::TokioAsyncReadCompatExt;

pub(crate) struct Client {
    pub(crate) loader: loader::Client,
    _session: session::Client,
    system: tokio::task::JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        // The connection goes with it.
        self.system.abort();
    }
}

impl Client {
    /// Connects as soon as the server listens.
    pub(crate) async fn connect(address: &str) -> anyhow::Result<Self> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let stream = loop {
            match TcpStream::connect(address).await {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_micros(500)).await,
            }
        };
        stream.set_nodelay(true)?;
        let network = coracle_transport::client_network(stream.compat(), 64 << 20);
        let mut system = RpcSystem::new(Box::new(network), None);
        let gate: gate::Client = system.bootstrap(Side::Server);
        let system = tokio::task::spawn_local(async move { drop(system.await) });
        let mut request = gate.login_request();
        request.get().init_credentials().set_none(());
        let login = request.send();
        let loader = login.pipeline.get_loader();
        let session = login.pipeline.get_session();
        session.tenant_request().send().promise.await?;
        Ok(Self {
            loader,
            _session: session,
            system,
        })
    }

    /// Loads a worker of one module. Pipelined: nothing is waited for.
    pub(crate) fn load(&self, source: &str) -> worker::Client {
        self.load_with(source, None)
    }

    /// The same, with a gateway for its requests.
    pub(crate) fn load_with(
        &self,
        source: &str,
        gateway: Option<target::Client>,
    ) -> worker::Client {
        let mut request = self.loader.load_request();
        let mut code = request.get().init_code();
        code.set_main_module("main.js");
        if let Some(gateway) = gateway {
            code.reborrow().init_outbound().set_gateway(gateway);
        }
        let mut module = code.init_modules(1).get(0);
        module.set_name("main.js");
        module.init_body().set_es_module(source);
        request.send().pipeline.get_worker()
    }
}

pub(crate) fn entrypoint(
    worker: &worker::Client,
    fuel_max: u64,
    wall_ms_max: u64,
) -> target::Client {
    let mut request = worker.get_entrypoint_request();
    let mut limits = request.get().init_limits();
    limits.set_fuel_max(fuel_max);
    limits.set_wall_ms_max(wall_ms_max);
    request.send().pipeline.get_entrypoint()
}

/// The same, with a limit of CPU time and no other than the server's.
pub(crate) fn entrypoint_within(worker: &worker::Client, cpu_ms_max: u64) -> target::Client {
    let mut request = worker.get_entrypoint_request();
    let mut limits = request.get().init_limits();
    limits.set_cpu_ms_max(cpu_ms_max);
    request.send().pipeline.get_entrypoint()
}

/// What a call came to.
pub(crate) enum Called {
    Value { value: Value, cpu_us: u64 },
    Threw(String),
    Stopped(Stopped),
}

/// A verdict.
pub(crate) struct Stopped {
    /// The limit's name, or what it is called where it is none.
    pub(crate) limit: String,
    pub(crate) message: String,
}

/// Calls `run(argument)`; JSON both ways, so that the driver needs no codec.
pub(crate) async fn call(target: &target::Client, argument: &Value) -> anyhow::Result<Called> {
    let mut request = target.call_request();
    let mut params = request.get();
    params.reborrow().init_path(1).set(0, "run");
    params
        .reborrow()
        .init_args()
        .set_json(&Value::Array(vec![argument.clone()]).to_string()[..]);
    params.set_result_form(coracle_schema::Form::Json);
    let response = request.send().promise.await?;
    let results: call_results::Reader<'_> = response.get()?;
    match results.get_outcome().which()? {
        call_results::outcome::Value(value) => {
            let cpu_us = results.get_usage()?.get_cpu_micros();
            match value?.which()? {
                coracle_schema::value::Json(text) => Ok(Called::Value {
                    value: serde_json::from_str(text?.to_str()?)?,
                    cpu_us,
                }),
                coracle_schema::value::Undefined(()) => Ok(Called::Value {
                    value: Value::Null,
                    cpu_us,
                }),
                coracle_schema::value::Cbor(_) => bail!("asked for JSON, got CBOR"),
            }
        }
        call_results::outcome::Threw(thrown) => {
            let thrown = thrown?;
            Ok(Called::Threw(format!(
                "{}: {}",
                thrown.get_name()?.to_str()?,
                thrown.get_message()?.to_str()?
            )))
        }
        call_results::outcome::Verdict(verdict) => {
            let verdict = verdict?;
            let limit = match verdict.get_limit_name()?.to_str()? {
                "" => format!("{:?}", verdict.get_kind()?).to_lowercase(),
                name => name.to_owned(),
            };
            let message = verdict.get_message()?.to_str()?.to_owned();
            Ok(Called::Stopped(Stopped { limit, message }))
        }
    }
}

/// A tool of the client's: answers 1, whatever it is asked.
struct Tool;

impl target::Server for Tool {
    async fn call(
        self: Rc<Self>,
        _params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), capnp::Error> {
        results.get().init_outcome().init_value().set_cbor(&[1]);
        Ok(())
    }
}

/// A gateway of the client's: answers each request with an empty response.
struct Gateway;

impl target::Server for Gateway {
    async fn call(
        self: Rc<Self>,
        _params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), capnp::Error> {
        // A Response with nothing said of it.
        let response = [0xd9, 0x9c, 0x47, 0xa0];
        results
            .get()
            .init_outcome()
            .init_value()
            .set_cbor(&response);
        Ok(())
    }
}

pub(crate) fn gateway() -> target::Client {
    capnp_rpc::new_client(Gateway)
}

/// Calls `run(tool)` with a function of this process that answers 1.
pub(crate) async fn call_with_tool(
    target: &target::Client,
    expected: &Value,
) -> anyhow::Result<()> {
    /// `[external 0]` in CBOR.
    const ARGS: [u8; 5] = [0x81, 0xd9, 0x9c, 0x40, 0x00];
    let mut request = target.call_request();
    let mut params = request.get();
    params.reborrow().init_path(1).set(0, "run");
    let mut args = params.reborrow().init_args();
    args.set_cbor(&ARGS);
    let tool: target::Client = capnp_rpc::new_client(Tool);
    args.init_externals(1).get(0).set_target(tool);
    params.set_result_form(coracle_schema::Form::Json);
    let response = request.send().promise.await?;
    let outcome = response.get()?.get_outcome();
    match outcome.which()? {
        call_results::outcome::Value(value) => match value?.which()? {
            coracle_schema::value::Json(Ok(text))
                if serde_json::from_str::<Value>(text.to_str()?)? == *expected =>
            {
                Ok(())
            }
            _ => bail!("not the sum of the answers, {expected}"),
        },
        _ => bail!("the worker with tools did not answer with a value"),
    }
}

/// As [`call`], where anything but `expected` is a failure. Returns the CPU time.
pub(crate) async fn call_expecting(
    target: &target::Client,
    argument: &Value,
    expected: &Value,
) -> anyhow::Result<u64> {
    match call(target, argument).await.context("calling")? {
        Called::Value { value, cpu_us } if value == *expected => Ok(cpu_us),
        Called::Value { value, .. } => bail!("expected {expected}, got {value}"),
        Called::Threw(what) => bail!("threw {what}"),
        Called::Stopped(stopped) => bail!("stopped: {}", stopped.message),
    }
}
