//! A client in terms of the schema, for what the Rust client does not let one do.

use capnp::capability::{Promise, RemotePromise};
use capnp_rpc::{RpcSystem, rpc_twoparty_capnp::Side, twoparty};
use coracle_schema::{call_results, gate, loader, session, target, value, worker};
use futures::AsyncReadExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    task::JoinHandle,
};
use tokio_util::compat::TokioAsyncReadCompatExt as _;

/// A connection. Needs a `LocalSet`. Dropping it closes the socket without a word, as a client does that dies.
pub struct Wire {
    pub gate: gate::Client,
    system: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.system.abort();
    }
}

impl Wire {
    pub async fn connect(address: &str) -> Self {
        match address.strip_prefix("unix:") {
            Some(path) => Self::over(UnixStream::connect(path).await.expect("the server accepts")),
            None => Self::over(
                TcpStream::connect(address)
                    .await
                    .expect("the server accepts"),
            ),
        }
    }

    pub fn over(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Self {
        let (reader, writer) = stream.compat().split();
        let options = capnp::message::ReaderOptions::new();
        let network = twoparty::VatNetwork::new(reader, writer, Side::Client, options);
        let mut system = RpcSystem::new(Box::new(network), None);
        let gate = system.bootstrap(Side::Server);
        let system = tokio::task::spawn_local(async move { drop(system.await) });
        Self { gate, system }
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.system.is_finished()
    }

    /// Logs in; what comes back is promised and can be used at once.
    pub fn login(&self, token: Option<&str>) -> (loader::Client, session::Client) {
        let promise = self.login_promise(token);
        (
            promise.pipeline.get_loader(),
            promise.pipeline.get_session(),
        )
    }

    pub fn login_promise(&self, token: Option<&str>) -> RemotePromise<gate::login_results::Owned> {
        let mut request = self.gate.login_request();
        let mut credentials = request.get().init_credentials();
        match token {
            Some(token) => credentials.set_bearer_token(token),
            None => credentials.set_none(()),
        }
        request.send()
    }

    /// Logs in without a token.
    pub fn loader(&self) -> loader::Client {
        self.login(None).0
    }
}

/// A promised worker whose default entrypoint has these methods.
pub fn load(loader: &loader::Client, methods: &str) -> worker::Client {
    let mut request = loader.load_request();
    let mut code = request.get().init_code();
    code.set_main_module("main.js");
    let mut module = code.init_modules(1).get(0);
    module.set_name("main.js");
    module.init_body().set_es_module(&super::class(methods)[..]);
    request.send().pipeline.get_worker()
}

/// Its promised default entrypoint.
pub fn entrypoint(worker: &worker::Client) -> target::Client {
    let mut request = worker.get_entrypoint_request();
    request.get().set_name("default");
    request.send().pipeline.get_entrypoint()
}

/// Calls a method without arguments; the result is wanted as JSON.
pub fn call(target: &target::Client, method: &str) -> RemotePromise<call_results::Owned> {
    let mut request = target.call_request();
    let mut params = request.get();
    params.reborrow().init_path(1).set(0, method);
    params.set_result_form(coracle_schema::Form::Json);
    request.send()
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Undefined,
    Json(String),
    Cbor(Vec<u8>),
    /// The error's name and message.
    Threw(String, String),
    /// The kind in the schema's spelling.
    Verdict(String),
}

/// Waits for an outcome.
pub async fn outcome(promise: RemotePromise<call_results::Owned>) -> Result<Outcome, capnp::Error> {
    let response = promise.promise.await?;
    let outcome = response.get()?.get_outcome();
    Ok(match outcome.which()? {
        call_results::outcome::Value(value) => match value?.which()? {
            value::Undefined(()) => Outcome::Undefined,
            value::Json(text) => Outcome::Json(text?.to_string()?),
            value::Cbor(bytes) => Outcome::Cbor(bytes?.to_vec()),
        },
        call_results::outcome::Threw(thrown) => {
            let thrown = thrown?;
            Outcome::Threw(
                thrown.get_name()?.to_string()?,
                thrown.get_message()?.to_string()?,
            )
        }
        call_results::outcome::Verdict(verdict) => {
            Outcome::Verdict(format!("{:?}", verdict?.get_kind()?))
        }
    })
}

/// Reads what is at a path; the result is wanted as JSON.
pub fn get(target: &target::Client, path: &[&str]) -> RemotePromise<call_results::Owned> {
    let mut request = target.get_request();
    let mut params = request.get();
    let mut list = params.reborrow().init_path(path.len() as u32);
    for (index, step) in path.iter().enumerate() {
        list.set(index as u32, step);
    }
    params.set_result_form(coracle_schema::Form::Json);
    request.send()
}

/// Calls what it is, without arguments; the result is wanted as JSON.
pub fn call_itself(target: &target::Client) -> RemotePromise<call_results::Owned> {
    let mut request = target.call_request();
    request.get().set_result_form(coracle_schema::Form::Json);
    request.send()
}

/// Calls a method with one text.
pub fn call_with(
    target: &target::Client,
    method: &str,
    text: &str,
) -> RemotePromise<call_results::Owned> {
    let mut request = target.call_request();
    let mut params = request.get();
    params.reborrow().init_path(1).set(0, method);
    params.init_args().set_json(&format!("[\"{text}\"]")[..]);
    request.send()
}
