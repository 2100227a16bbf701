//! Byte streams of any length, in both directions: `schema/value.md` says what a source and a sink can be asked.

use crate::{Error, Kind, Payload, Stub, Value, answer::Thrown, stubs::Target};
use futures::{Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Bytes that are asked for at once, where the caller does not say.
const PULL_BYTES: usize = 64 << 10;
/// Bytes that a worker gets in one piece.
const PULL_BYTES_MAX: usize = 1 << 20;

/// A stream of bytes that a worker gave out, to be read. Dropping it cancels it.
#[derive(Debug)]
pub struct ByteStream {
    stub: Stub,
    is_over: bool,
}

impl ByteStream {
    /// The stream that a stub is of, if it is a [`Kind::Source`].
    #[must_use]
    pub fn new(stub: Stub) -> Option<Self> {
        (stub.kind() == Kind::Source).then_some(Self {
            stub,
            is_over: false,
        })
    }

    /// The next bytes, at most `bytes_max` (and a mebibyte); none at the end.
    ///
    /// # Errors
    /// What the stream ended with, or what kept the server from asking for more.
    pub async fn read(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let bytes_max = bytes_max.clamp(1, PULL_BYTES_MAX);
        let args = vec![Value::from(bytes_max as f64)];
        let pulled = self.stub.call("pull", args).await;
        match pulled.and_then(crate::Answer::value) {
            Ok(Value::Undefined) => {
                self.is_over = true;
                Ok(None)
            }
            Ok(value) => match value.as_bytes() {
                Some(bytes) if !bytes.is_empty() => Ok(Some(bytes.to_vec())),
                _ => {
                    self.is_over = true;
                    Err(Error::Malformed(
                        "a stream sent something else than bytes".into(),
                    ))
                }
            },
            Err(error) => {
                self.is_over = true;
                Err(error)
            }
        }
    }

    /// All that is left, if it has no more than `bytes_max`.
    ///
    /// # Errors
    /// As for [`ByteStream::read`]; and [`Error::Failed`] where there is more.
    pub async fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(bytes) = self.read(PULL_BYTES).await? {
            if all.len() + bytes.len() > bytes_max {
                return Err(Error::Failed(format!(
                    "the stream has more than {bytes_max} bytes"
                )));
            }
            all.extend(bytes);
        }
        Ok(all)
    }

    /// Ends it before its end; who feeds it is told why.
    ///
    /// # Errors
    /// What whoever feeds it threw, or what kept the server from telling.
    pub async fn cancel(mut self, reason: &str) -> Result<(), Error> {
        self.is_over = true;
        let cancelled = self.stub.call("cancel", vec![Value::from(reason)]).await;
        cancelled.and_then(crate::Answer::value).map(drop)
    }

    /// The stream as a [`Stream`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Vec<u8>, Error>> + Send {
        futures::stream::unfold(self, |mut stream| async {
            let read = stream.read(PULL_BYTES).await.transpose()?;
            Some((read, stream))
        })
    }
}

/// A stream of bytes that a worker gave out, to be written. Dropping it aborts it.
#[derive(Clone, Debug)]
pub struct ByteSink(Stub);

impl ByteSink {
    /// The stream that a stub is of, if it is a [`Kind::Sink`].
    #[must_use]
    pub fn new(stub: Stub) -> Option<Self> {
        (stub.kind() == Kind::Sink).then_some(Self(stub))
    }

    /// Writes bytes; returns when there is room for more.
    ///
    /// # Errors
    /// What whoever takes them threw, or what kept the server from passing them on.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        for piece in bytes.chunks(PULL_BYTES_MAX) {
            self.call("write", Value::uint8_array(piece)).await?;
        }
        Ok(())
    }

    /// Closes it; returns when all has been taken.
    ///
    /// # Errors
    /// As for [`ByteSink::write`].
    pub async fn close(self) -> Result<(), Error> {
        self.call("close", Value::Undefined).await
    }

    /// Ends it before its end.
    ///
    /// # Errors
    /// As for [`ByteSink::write`].
    pub async fn abort(self, reason: &str) -> Result<(), Error> {
        self.call("abort", Value::from(reason)).await
    }

    async fn call(&self, method: &str, argument: Value) -> Result<(), Error> {
        let called = self.0.call(method, vec![argument]).await;
        called.and_then(crate::Answer::value).map(drop)
    }
}

impl Payload {
    /// The stream that a value in this payload stands for.
    #[must_use]
    pub fn byte_stream(&self, value: &Value) -> Option<ByteStream> {
        ByteStream::new(self.stub(value)?.clone())
    }

    /// The stream to be written that a value in this payload stands for.
    #[must_use]
    pub fn byte_sink(&self, value: &Value) -> Option<ByteSink> {
        ByteSink::new(self.stub(value)?.clone())
    }
}

/// Bytes of this process, as a [`Target`] that is pulled.
pub(crate) struct Source {
    state: Arc<Mutex<SourceState>>,
    /// Ends the pull that is waited for, too.
    cancelled: CancellationToken,
}

struct SourceState {
    /// None once it is over.
    stream: Option<BoxStream<'static, Result<Vec<u8>, Thrown>>>,
    /// What has come; what of it was asked for is before `given`.
    piece: Vec<u8>,
    given: usize,
}

impl Source {
    pub(crate) fn new(
        stream: impl Stream<Item = Result<Vec<u8>, Thrown>> + Send + 'static,
    ) -> Self {
        Self {
            state: Arc::new(Mutex::new(SourceState {
                stream: Some(stream.boxed()),
                piece: Vec::new(),
                given: 0,
            })),
            cancelled: CancellationToken::new(),
        }
    }
}

impl SourceState {
    async fn pull(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Thrown> {
        while self.given == self.piece.len() {
            let Some(stream) = &mut self.stream else {
                return Ok(None);
            };
            match stream.next().await {
                Some(Ok(bytes)) => (self.piece, self.given) = (bytes, 0),
                Some(Err(thrown)) => {
                    self.stream = None;
                    return Err(thrown);
                }
                None => self.stream = None,
            }
        }
        let end = self.piece.len().min(self.given + bytes_max);
        if self.given == 0 && end == self.piece.len() {
            return Ok(Some(std::mem::take(&mut self.piece)));
        }
        let asked = self.piece[self.given..end].to_vec();
        self.given = end;
        Ok(Some(asked))
    }

    fn end(&mut self) {
        (self.stream, self.piece, self.given) = (None, Vec::new(), 0);
    }
}

impl Target for Source {
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        let (state, cancelled) = (Arc::clone(&self.state), self.cancelled.clone());
        Box::pin(async move {
            match path.last().map(String::as_str) {
                Some("pull") => {
                    let asked = args.value.index(0).and_then(Value::as_f64);
                    let bytes_max = asked.unwrap_or_default().max(1.0) as usize;
                    let pull = async {
                        let mut state = state.lock().await;
                        state.pull(bytes_max.min(PULL_BYTES_MAX)).await
                    };
                    let pulled = cancelled.run_until_cancelled(pull).await;
                    let pulled = pulled.unwrap_or(Ok(None))?;
                    Ok(pulled.map_or(Value::Undefined, Value::uint8_array).into())
                }
                Some("cancel") => {
                    cancelled.cancel();
                    state.lock().await.end();
                    Ok(Value::Undefined.into())
                }
                _ => Err(Thrown::new(
                    "TypeError",
                    "A byte stream is pulled or cancelled.",
                )),
            }
        })
    }
}
