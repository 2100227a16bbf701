//! Bodies, bounded both ways: bytes, and the time that they may stand still.

use crate::{
    Destination, Error, Meter, Redactor,
    sent::{self, Sent},
    trail::{Trail, Upload},
};
use async_compression::tokio::bufread::{DeflateDecoder, GzipDecoder, ZlibDecoder};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use http::{HeaderMap, header};
use http_body::Body as _;
use hyper::body::Incoming;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead},
    time::Sleep,
};
use tokio_util::io::{ReaderStream, StreamReader};

/// Bytes of an unpacked body that come at once.
const PIECE_BYTES: usize = 64 << 10;

/// A request's body.
pub enum Body {
    /// None.
    Empty,
    /// All of it.
    Bytes(Bytes),
    /// A stream, which can be sent once. What it fails with is for the worker.
    Stream(BoxStream<'static, Result<Bytes, String>>),
}

impl Body {
    /// As it is sent once. A stream is gone then.
    pub(crate) fn take(
        &mut self,
        bytes_max: u64,
        meter: &Meter,
        trail: &Arc<Trail>,
        upload: &Upload,
    ) -> Result<Sent, Error> {
        match self {
            Self::Empty => Ok(Sent::whole(Bytes::new())),
            Self::Bytes(bytes) => {
                if bytes.len() as u64 > bytes_max {
                    return Err(sent::too_large(bytes_max));
                }
                meter.take_bytes(bytes.len() as u64, Instant::now())?;
                trail.send(bytes.len());
                Ok(Sent::whole(bytes.clone()))
            }
            Self::Stream(stream) => Ok(Sent::stream(sent::Upload {
                pieces: std::mem::replace(stream, futures::stream::empty().boxed()),
                over: Box::pin(upload.over().cancelled_owned()),
                trail: Arc::clone(trail),
                meter: meter.clone(),
                bytes_max,
            })),
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }
}

/// What a response's body is bounded by.
pub(crate) struct Bounds {
    /// Where it comes from.
    pub(crate) destination: Destination,
    pub(crate) bytes_max: u64,
    pub(crate) idle: Duration,
    pub(crate) meter: Meter,
}

impl Bounds {
    /// Counts what came.
    fn count(&self, bytes: &mut u64, piece: &Bytes) -> Result<(), Error> {
        *bytes += piece.len() as u64;
        match *bytes > self.bytes_max {
            true => Err(Error::TooLarge {
                what: "the response's body",
                bytes_max: self.bytes_max,
                limit: "response_bytes_max",
            }),
            false => Ok(()),
        }
    }

    pub(crate) fn wrong(&self, reason: String) -> Error {
        Error::Protocol {
            origin: self.destination.origin(),
            reason,
        }
    }
}

/// A response's body.
pub type Received = BoxStream<'static, Result<Bytes, Error>>;

/// How a body is packed, by its header; that and its length are taken out where we unpack it.
pub(crate) fn packing(headers: &mut HeaderMap) -> Packing {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let (Some(encoding), None) = (encodings.next(), encodings.next()) else {
        return Packing::None;
    };
    if encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
        headers.remove(header::CONTENT_ENCODING);
        return Packing::None;
    }
    let packing = match encoding.as_bytes().to_ascii_lowercase().as_slice() {
        b"gzip" | b"x-gzip" => Packing::Gzip,
        b"deflate" => Packing::Deflate,
        _ => return Packing::None,
    };
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    packing
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
    Deflate,
}

/// What we can unpack, as a request says it. (Not brotli, whose window is up to 16 MiB for each body before a byte of it is
/// read.)
pub(crate) const UNPACKED: &str = "gzip, deflate";

/// A response's body as a worker gets it: bounded, unpacked, and without the secrets that were sent.
pub(crate) fn received(
    body: Incoming,
    packing: Packing,
    redactor: Option<Redactor>,
    bounds: Bounds,
    (trail, upload): (Arc<Trail>, Upload),
) -> Received {
    let bounds = Arc::new(bounds);
    let raw = Raw {
        body,
        bounds: Arc::clone(&bounds),
        bytes: 0,
        late: None,
    };
    match (packing, redactor) {
        // The usual case has no more steps than it needs.
        (Packing::None, None) => Told::boxed(raw, bounds, trail, upload),
        (Packing::None, Some(redactor)) => {
            let redacted = redact(raw, redactor, Arc::clone(&trail));
            Told::boxed(redacted, bounds, trail, upload)
        }
        (packing, None) => Told::boxed(unpack(raw, packing, &bounds), bounds, trail, upload),
        (packing, Some(redactor)) => {
            let unpacked = unpack(raw, packing, &bounds);
            let redacted = redact(unpacked, redactor, Arc::clone(&trail));
            Told::boxed(redacted, bounds, trail, upload)
        }
    }
}

/// A body as it comes from the server: not too long as it is, and not standing still for too long.
struct Raw {
    body: Incoming,
    bounds: Arc<Bounds>,
    bytes: u64,
    /// Ends a wait, if there is one.
    late: Option<Pin<Box<Sleep>>>,
}

impl Stream for Raw {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self {
            body,
            bounds,
            bytes,
            late,
        } = &mut *self;
        loop {
            let frame = match Pin::new(&mut *body).poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(frame)) => frame.map_err(|error| bounds.wrong(why(&error)))?,
                Poll::Pending => {
                    let begin = || Box::pin(tokio::time::sleep(bounds.idle));
                    ready!(late.get_or_insert_with(begin).as_mut().poll(context));
                    return Poll::Ready(Some(Err(Error::TooSlow {
                        origin: bounds.destination.origin(),
                        what: "send more of its body",
                        time_max: bounds.idle,
                        limit: "idle_ms_max",
                    })));
                }
            };
            *late = None;
            // (What comes after the body is left out.)
            if let Ok(piece) = frame.into_data() {
                return Poll::Ready(Some(bounds.count(bytes, &piece).map(|()| piece)));
            }
        }
    }
}

/// A body as the worker gets it, which is counted, and told of when it is over.
struct Told<S> {
    /// None when it is over.
    state: Option<(S, Arc<Trail>, Upload)>,
    bounds: Arc<Bounds>,
    bytes: u64,
}

impl<S: Stream<Item = Result<Bytes, Error>> + Send + Unpin + 'static> Told<S> {
    fn boxed(stream: S, bounds: Arc<Bounds>, trail: Arc<Trail>, upload: Upload) -> Received {
        Box::pin(Self {
            state: Some((stream, trail, upload)),
            bounds,
            bytes: 0,
        })
    }
}

impl<S: Stream<Item = Result<Bytes, Error>> + Unpin> Stream for Told<S> {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self {
            state,
            bounds,
            bytes,
        } = &mut *self;
        let Some((stream, trail, _)) = state else {
            return Poll::Ready(None);
        };
        let piece = ready!(stream.poll_next_unpin(context)).map(|piece| {
            let piece = piece?;
            bounds.count(bytes, &piece)?;
            if bounds.meter.is_counting() {
                bounds
                    .meter
                    .take_bytes(piece.len() as u64, Instant::now())?;
            }
            Ok(piece)
        });
        match &piece {
            Some(Ok(piece)) => trail.receive(piece.len()),
            Some(Err(error)) => trail.note(|record| record.failed(error)),
            None => {}
        }
        if !matches!(piece, Some(Ok(_))) {
            *state = None;
        }
        Poll::Ready(piece)
    }
}

fn unpack(
    packed: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    packing: Packing,
    bounds: &Arc<Bounds>,
) -> BoxStream<'static, Result<Bytes, Error>> {
    let bounds = Arc::clone(bounds);
    let mut reader = StreamReader::new(packed.map_err(io::Error::other).boxed());
    let unpacked = async move {
        let first = reader.fill_buf().await?.first().copied();
        let unpacked: Box<dyn AsyncRead + Send + Unpin> = match (packing, first) {
            // Servers that pack bodies also say so of none.
            (_, None) => Box::new(tokio::io::empty()),
            // (Of one member: of any number of empty ones nothing would ever come out.)
            (Packing::Gzip, _) => Box::new(GzipDecoder::new(reader)),
            (_, Some(first)) if is_zlib(first) => Box::new(ZlibDecoder::new(reader)),
            _ => Box::new(DeflateDecoder::new(reader)),
        };
        Ok::<_, io::Error>(ReaderStream::with_capacity(unpacked, PIECE_BYTES))
    };
    let pieces = futures::stream::once(unpacked).try_flatten();
    let pieces = pieces.map_err(move |error| {
        let ours = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>());
        ours.cloned()
            .unwrap_or_else(|| bounds.wrong(format!("its body can't be unpacked: {error}")))
    });
    pieces.boxed()
}

/// Whether "deflate" is what the standard means by it (RFC 1950, section 2.2), and not the bare form that some servers
/// send: as the first byte of that it would begin a block that is stored, which nobody begins with.
fn is_zlib(first: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7
}

fn redact(
    stream: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    redactor: Redactor,
    trail: Arc<Trail>,
) -> BoxStream<'static, Result<Bytes, Error>> {
    let state = (stream.boxed(), Some(redactor));
    let redacted = futures::stream::try_unfold(state, move |(mut stream, mut redactor)| {
        let trail = Arc::clone(&trail);
        async move {
            loop {
                let Some(found) = &mut redactor else {
                    return Ok(None);
                };
                let (piece, is_over) = match stream.try_next().await? {
                    Some(piece) => (found.push(piece), false),
                    None => (found.finish(), true),
                };
                let redactions = found.count();
                trail.note(|record| record.redactions = redactions);
                if is_over {
                    redactor = None;
                }
                if !piece.is_empty() {
                    return Ok(Some((piece, (stream, redactor))));
                }
            }
        }
    });
    redacted.boxed()
}

/// The innermost reason, which says more than those around it.
pub(crate) fn why(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
