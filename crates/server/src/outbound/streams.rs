//! Streams of bytes between workers and the network, as `schema/value.md` has them: sources that are pulled and sinks that
//! are written to.

use super::{door::failure, values};
use crate::{
    host::{Failure, Host, HostCall, HostObject, Reply},
    router::{Address, Payload},
    tree,
};
use bytes::Bytes;
use coracle_isolate::{CallAccess, Form, Kind, Outcome};
use coracle_outbound::{Channel, Connection, Host as HostName, Received, Socket, Trail};
use coracle_value::Value;
use futures::{
    StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use std::{
    io,
    sync::{Arc, Mutex as StdMutex, PoisonError, Weak},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split},
    runtime::Handle,
    sync::Mutex,
};
use tokio_util::sync::CancellationToken;

/// Bytes that are asked for at once.
const PULL_BYTES: u32 = 64 << 10;
/// Bytes that may be asked for at once.
const PULL_BYTES_MAX: usize = 1 << 20;

/// The bytes that a source of somebody else's has.
pub(super) fn pulled(source: Address) -> BoxStream<'static, Result<Bytes, String>> {
    stream::try_unfold(source, async |source| {
        let args = Payload {
            form: Form::Cbor,
            bytes: coracle_value::encode(&Value::array([Value::from(PULL_BYTES)])),
            externals: Vec::new(),
        };
        let path = vec!["pull".to_owned()];
        let answer = source.call(CallAccess::Call, path, args, Form::Cbor).await;
        let answer = answer.map_err(|refusal| refusal.to_string())?;
        match answer.report.outcome {
            Outcome::Value(value) if value.form == Form::Undefined => Ok(None),
            Outcome::Value(value) => {
                match tree::read_leaf(&value.bytes).map_err(|error| error.to_string())? {
                    Value::Undefined => Ok(None),
                    Value::TypedArray { bytes, .. } if !bytes.is_empty() => {
                        Ok(Some((Bytes::from(bytes), source)))
                    }
                    _ => Err("a stream sent something else than bytes".into()),
                }
            }
            Outcome::Threw(thrown) => Err(thrown.message.clone()),
            Outcome::Verdict(verdict) => Err(verdict.message()),
        }
    })
    .boxed()
}

fn bytes_asked(args: &[Value]) -> usize {
    let asked = args.first().and_then(Value::as_f64).unwrap_or(1.0);
    (asked.max(1.0) as usize).min(PULL_BYTES_MAX)
}

/// A response's body. Dropping it closes the connection.
pub(super) struct BodySource {
    state: Mutex<Option<(Received, Bytes)>>,
    /// Ends it, and the read that is waited for.
    cancelled: CancellationToken,
}

impl BodySource {
    pub(super) fn shared(body: Received) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(Some((body, Bytes::new()))),
            cancelled: CancellationToken::new(),
        })
    }

    async fn pull(&self, bytes_max: usize) -> Result<Reply, Failure> {
        let mut state = self.state.lock().await;
        let Some((body, left)) = &mut *state else {
            return Ok(Reply::of(Value::Undefined));
        };
        while left.is_empty() {
            let next = tokio::select! {
                biased;
                () = self.cancelled.cancelled() => None,
                next = body.next() => next,
            };
            match next {
                Some(Ok(piece)) => *left = piece,
                Some(Err(error)) => {
                    *state = None;
                    return Err(failure(error));
                }
                None => {
                    *state = None;
                    return Ok(Reply::of(Value::Undefined));
                }
            }
        }
        let piece = left.split_to(left.len().min(bytes_max));
        Ok(Reply::of(Value::uint8_array(piece)))
    }
}

impl HostObject for BodySource {
    fn kind(&self) -> Kind {
        Kind::Source
    }

    fn call(self: Arc<Self>, call: HostCall) -> BoxFuture<'static, Result<Reply, Failure>> {
        Box::pin(async move {
            match call.method()? {
                ("pull", args) => self.pull(bytes_asked(&args)).await,
                ("cancel", _) => {
                    self.cancelled.cancel();
                    *self.state.lock().await = None;
                    Ok(Reply::of(Value::Undefined))
                }
                (other, _) => Err(unknown(other)),
            }
        })
    }
}

fn unknown(method: &str) -> Failure {
    Failure::type_error(format!(
        "The RPC receiver does not implement the method \"{method}\"."
    ))
}

/// A connection, in two halves that are called apart.
#[derive(Clone)]
pub(super) struct SocketParts {
    reading: Arc<Reading>,
    writing: Arc<Writing>,
    runtime: Handle,
}

struct Reading {
    half: Mutex<Option<ReadHalf<Socket>>>,
    /// Ends the read that is waited for, because the connection goes on in TLS.
    over: CancellationToken,
    /// Ends it, because nobody reads any more.
    cancelled: CancellationToken,
}

struct Writing {
    half: Mutex<Option<WriteHalf<Socket>>>,
    /// Ends the write that is waited for, because nobody writes any more.
    aborted: CancellationToken,
}

impl SocketParts {
    pub(super) fn new(socket: Socket, runtime: &Handle) -> Self {
        let (reading, writing) = split(socket);
        Self {
            reading: Arc::new(Reading {
                half: Mutex::new(Some(reading)),
                over: CancellationToken::new(),
                cancelled: CancellationToken::new(),
            }),
            writing: Arc::new(Writing {
                half: Mutex::new(Some(writing)),
                aborted: CancellationToken::new(),
            }),
            runtime: runtime.clone(),
        }
    }

    /// `{ readable, writable }`
    pub(super) fn value(&self, externals: &mut Vec<Address>) -> Value {
        let first = externals.len() as u32;
        let (reading, writing) = (Arc::clone(&self.reading), Arc::clone(&self.writing));
        externals.push(Host::address(reading, &self.runtime));
        externals.push(Host::address(writing, &self.runtime));
        Value::object([
            ("readable", Value::External(first)),
            ("writable", Value::External(first + 1)),
        ])
    }

    /// The whole connection again: both halves are over for those who have them.
    async fn take(&self) -> Option<Socket> {
        self.reading.over.cancel();
        let reading = self.reading.half.lock().await.take()?;
        let writing = self.writing.half.lock().await.take()?;
        Some(reading.unsplit(writing))
    }
}

impl HostObject for Reading {
    fn kind(&self) -> Kind {
        Kind::Source
    }

    fn call(self: Arc<Self>, call: HostCall) -> BoxFuture<'static, Result<Reply, Failure>> {
        Box::pin(async move {
            match call.method()? {
                ("pull", args) => {
                    let mut half = self.half.lock().await;
                    let Some(stream) = &mut *half else {
                        return Ok(Reply::of(Value::Undefined));
                    };
                    let bytes_max = bytes_asked(&args).min(PULL_BYTES as usize);
                    let mut bytes = Vec::with_capacity(bytes_max);
                    let read = tokio::select! {
                        biased;
                        () = self.over.cancelled() => return Ok(Reply::of(Value::Undefined)),
                        () = self.cancelled.cancelled() => Ok(0),
                        read = stream.read_buf(&mut bytes) => read,
                    };
                    match read {
                        Ok(0) => {
                            *half = None;
                            Ok(Reply::of(Value::Undefined))
                        }
                        Ok(_) => Ok(Reply::of(Value::uint8_array(bytes))),
                        Err(error) => {
                            *half = None;
                            Err(broken(&error))
                        }
                    }
                }
                ("cancel", _) => {
                    if !self.over.is_cancelled() {
                        self.cancelled.cancel();
                        *self.half.lock().await = None;
                    }
                    Ok(Reply::of(Value::Undefined))
                }
                (other, _) => Err(unknown(other)),
            }
        })
    }
}

impl HostObject for Writing {
    fn kind(&self) -> Kind {
        Kind::Sink
    }

    fn call(self: Arc<Self>, call: HostCall) -> BoxFuture<'static, Result<Reply, Failure>> {
        Box::pin(async move {
            let (method, args) = call.method()?;
            if method == "abort" {
                self.aborted.cancel();
            }
            let mut half = self.half.lock().await;
            let outcome = match (method, &mut *half) {
                ("write", None) => return Err(Failure::type_error("This stream is closed.")),
                ("close" | "abort", None) => Ok(()),
                ("write", Some(stream)) => {
                    let bytes = args.first().and_then(Value::as_bytes);
                    let bytes = bytes
                        .ok_or_else(|| Failure::type_error("A byte stream takes a Uint8Array."))?;
                    tokio::select! {
                        biased;
                        () = self.aborted.cancelled() => Err(io::ErrorKind::ConnectionAborted.into()),
                        written = write(stream, bytes) => written,
                    }
                }
                ("close", Some(stream)) => {
                    let outcome = stream.shutdown().await;
                    *half = None;
                    outcome
                }
                ("abort", Some(_)) => {
                    *half = None;
                    Ok(())
                }
                (other, _) => return Err(unknown(other)),
            };
            if let Err(error) = outcome {
                *half = None;
                return Err(broken(&error));
            }
            Ok(Reply::of(Value::Undefined))
        })
    }
}

async fn write(stream: &mut WriteHalf<Socket>, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

fn broken(error: &io::Error) -> Failure {
    Failure {
        name: "TypeError",
        message: format!("the connection broke: {error}"),
        code: Some("connection_lost"),
    }
}

/// Whom a connection is to, and what is told of it.
type PeerKnown = (HostName, Weak<Trail>);

/// Makes a connection go on in TLS, once.
pub(super) struct StartTls {
    channel: Arc<Channel>,
    taken: StdMutex<Option<(SocketParts, PeerKnown)>>,
}

impl StartTls {
    pub(super) fn shared(
        channel: &Arc<Channel>,
        parts: &SocketParts,
        peer: PeerKnown,
    ) -> Arc<Self> {
        Arc::new(Self {
            channel: Arc::clone(channel),
            taken: StdMutex::new(Some((parts.clone(), peer))),
        })
    }
}

impl HostObject for StartTls {
    fn kind(&self) -> Kind {
        Kind::Target
    }

    fn call(self: Arc<Self>, call: HostCall) -> BoxFuture<'static, Result<Reply, Failure>> {
        Box::pin(async move {
            let name = values::expected_name(&call)?;
            let taken = self
                .taken
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let over = || Failure::type_error("This connection can't start TLS any more.");
            let (parts, (host, trail)) = taken.ok_or_else(over)?;
            let socket = parts.take().await.ok_or_else(over)?;
            let connection = Connection {
                socket,
                host,
                trail,
            };
            let secured = self.channel.start_tls(connection, name.as_deref()).await;
            let Connection { socket, .. } = secured.map_err(failure)?;
            let mut externals = Vec::new();
            let value = SocketParts::new(socket, &parts.runtime).value(&mut externals);
            Ok(Reply { value, externals })
        })
    }
}
