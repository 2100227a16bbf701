//! The way out of a worker: its `fetch` and `connect`, by a policy.

use super::{
    streams::{self, BodySource, SocketParts, StartTls},
    values::{self, ResponseHead},
};
use crate::{
    host::{Caller, Failure, Host, HostCall, HostObject, Reply},
    router::Address,
};
use bytes::Bytes;
use coracle_isolate::Kind;
use coracle_outbound::{Body, Channel, Connection, Error, Received, Request, Sender};
use coracle_value::Value;
use futures::{StreamExt, future::BoxFuture};
use std::{sync::Arc, time::Duration};
use tokio::{runtime::Handle, time::timeout};

/// How long a response is held back for a body that may be short: what has come whole is spared the calls of a stream.
const SHORT_BODY_TIME: Duration = Duration::from_millis(2);
const SHORT_BODY_BYTES: usize = 64 << 10;

/// One worker's.
pub(super) struct Door {
    channel: Arc<Channel>,
    tenant: Arc<str>,
    runtime: Handle,
}

impl Door {
    pub(super) fn new(channel: Channel, tenant: &str, runtime: &Handle) -> Self {
        Self {
            channel: Arc::new(channel),
            tenant: tenant.into(),
            runtime: runtime.clone(),
        }
    }

    fn sender(&self, caller: Option<Caller>) -> Sender {
        Sender {
            tenant: Arc::clone(&self.tenant),
            worker: caller.map_or(0, |caller| caller.worker),
            invocation: caller.map_or(0, |caller| caller.invocation),
        }
    }

    async fn fetch(&self, call: &HostCall, args: Vec<Value>) -> Result<Reply, Failure> {
        let (head, body) = values::request(args)?;
        let body = match body {
            Value::Null | Value::Undefined => Body::Empty,
            Value::ArrayBuffer(bytes) => Body::Bytes(bytes.into()),
            other => match call.external(&other) {
                Some(source) if source.kind() == Kind::Source => {
                    Body::Stream(streams::pulled(source.clone()))
                }
                _ => {
                    let message = "The Request that was passed has a body that is none.";
                    return Err(Failure::type_error(message));
                }
            },
        };
        let request = Request {
            method: head.method,
            url: head.url,
            headers: head.headers,
            body,
            redirect: head.redirect,
        };
        let fetched = self.channel.fetch(request, &self.sender(call.caller)).await;
        let response = fetched.map_err(failure)?;
        let head = ResponseHead {
            status: response.status,
            status_text: response.status_text,
            headers: response.headers,
            url: response.url,
            redirected: response.redirected,
        };
        let mut externals = Vec::new();
        if let Some(socket) = response.socket {
            let parts = SocketParts::new(socket, &self.runtime);
            let ends = parts.value(&mut externals);
            let value = values::response(head, Value::Null, Some(ends));
            return Ok(Reply { value, externals });
        }
        let body = match response.body {
            None => Value::Null,
            Some(body) => self.body(body, &mut externals).await,
        };
        let value = values::response(head, body, None);
        Ok(Reply { value, externals })
    }

    /// A body as bytes if it is here already and short, else as a stream.
    async fn body(&self, mut body: Received, externals: &mut Vec<Address>) -> Value {
        let mut pieces: Vec<Result<Bytes, Error>> = Vec::new();
        let mut bytes = 0;
        let gather = async {
            while bytes <= SHORT_BODY_BYTES {
                match body.next().await {
                    None => return true,
                    Some(piece) => {
                        bytes += piece.as_ref().map_or(usize::MAX / 2, Bytes::len);
                        pieces.push(piece);
                    }
                }
            }
            false
        };
        let is_whole = timeout(SHORT_BODY_TIME, gather).await == Ok(true);
        if is_whole && pieces.iter().all(Result::is_ok) {
            let mut whole = Vec::with_capacity(bytes);
            for piece in pieces.iter().flatten() {
                whole.extend_from_slice(piece);
            }
            return Value::ArrayBuffer(whole);
        }
        let body = futures::stream::iter(pieces).chain(body).boxed();
        let source = BodySource::shared(body);
        externals.push(Host::address(source, &self.runtime));
        Value::External(externals.len() as u32 - 1)
    }

    async fn connect(&self, call: &HostCall, args: &[Value]) -> Result<Reply, Failure> {
        let options = values::connect_options(args)?;
        let sender = self.sender(call.caller);
        let connected = self
            .channel
            .connect(&options.address, options.with_tls, &sender);
        let Connection {
            socket,
            host,
            trail,
        } = connected.await.map_err(failure)?;
        let parts = SocketParts::new(socket, &self.runtime);
        let mut externals = Vec::new();
        let mut ends = parts.value(&mut externals);
        if options.may_start_tls
            && let Value::Object(ends) = &mut ends
        {
            let start_tls = StartTls::shared(&self.channel, &parts, (host, trail));
            externals.push(Host::address(start_tls, &self.runtime));
            let index = Value::External(externals.len() as u32 - 1);
            ends.push(("startTls".into(), index));
        }
        Ok(Reply {
            value: ends,
            externals,
        })
    }
}

impl HostObject for Door {
    fn kind(&self) -> Kind {
        Kind::Target
    }

    fn call(self: Arc<Self>, call: HostCall) -> BoxFuture<'static, Result<Reply, Failure>> {
        Box::pin(async move {
            let (method, args) = call.method()?;
            match method {
                "fetch" => self.fetch(&call, args).await,
                "connect" => self.connect(&call, &args).await,
                other => Err(Failure::type_error(format!(
                    "The RPC receiver does not implement the method \"{other}\"."
                ))),
            }
        })
    }
}

/// As workers see it: what the network did is a `TypeError`, as in the Fetch standard, and a rule's no is an `Error`.
pub(super) fn failure(error: Error) -> Failure {
    Failure {
        name: if error.is_denial() {
            "Error"
        } else {
            "TypeError"
        },
        message: error.to_string(),
        code: Some(error.code()),
    }
}
