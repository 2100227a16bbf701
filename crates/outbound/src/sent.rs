//! A request's body as it is sent, and how long sending it and waiting for the answer may take.

use crate::{Error, Meter, config::RequestLimits, trail::Trail};
use bytes::Bytes;
use futures::task::AtomicWaker;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant as StdInstant},
};
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// A stream of the worker's.
pub(crate) type Pieces = futures::stream::BoxStream<'static, Result<Bytes, String>>;

/// A body on its way.
pub(crate) struct Sent {
    content: Content,
    flight: Option<Arc<Flight>>,
}

enum Content {
    Whole(Bytes),
    Stream(Box<Upload>),
}

/// A stream that is bounded and counted. It ends with the response: with an error, so that what was sent is not taken for
/// the whole.
pub(crate) struct Upload {
    pub(crate) pieces: Pieces,
    pub(crate) over: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The record waits for the body, which ends with the response.
    pub(crate) trail: Arc<Trail>,
    pub(crate) meter: Meter,
    pub(crate) bytes_max: u64,
}

impl Sent {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self {
            content: Content::Whole(bytes),
            flight: None,
        }
    }

    pub(crate) fn stream(upload: Upload) -> Self {
        Self {
            content: Content::Stream(Box::new(upload)),
            flight: None,
        }
    }

    /// Lets `flight` know how far it is.
    pub(crate) fn watched(&mut self, flight: &Arc<Flight>) {
        self.flight = Some(Arc::clone(flight));
    }

    fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let piece = match &mut self.content {
            Content::Whole(bytes) if bytes.is_empty() => None,
            Content::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Stream(upload) => ready!(upload.poll_piece(context)),
        };
        if let Some(flight) = &self.flight {
            flight.moved(piece.is_none() || matches!(self.content, Content::Whole(_)));
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    /// (A connection asks this of a request that it takes, and of what is left after each piece.)
    fn is_end_stream(&self) -> bool {
        let is_end = self.is_empty();
        if let Some(flight) = &self.flight {
            flight.moved(is_end);
        }
        is_end
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl Upload {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Error::Body("the response is over".into()))));
        }
        let piece = ready!(self.pieces.as_mut().poll_next(context));
        Poll::Ready(piece.map(|piece| self.count(piece.map_err(Error::Body)?)))
    }

    fn count(&self, piece: Bytes) -> Result<Bytes, Error> {
        let bytes = piece.len() as u64;
        self.meter.take_bytes(bytes, StdInstant::now())?;
        let before = self.trail.send(piece.len());
        match before + bytes > self.bytes_max {
            true => Err(too_large(self.bytes_max)),
            false => Ok(piece),
        }
    }
}

/// The body has more bytes than it may have.
pub(crate) fn too_large(bytes_max: u64) -> Error {
    Error::TooLarge {
        what: "the request's body",
        bytes_max,
        limit: "request_bytes_max",
    }
}

/// Answers that a server may send before the one that counts (1xx).
pub(crate) const INFORMATIONAL_MAX: u32 = 16;
/// The body is all sent.
const WHOLE: u64 = 1 << 63;
/// A connection has taken the request.
const TAKEN: u64 = 1 << 62;

/// What is known of a request that is being sent and not answered yet.
pub(crate) struct Flight {
    begun: Instant,
    /// When the request went on last, in milliseconds since it was begun, with [`TAKEN`] and [`WHOLE`].
    moved: AtomicU64,
    informational: AtomicU32,
    /// Of who waits for the answer.
    waker: AtomicWaker,
}

impl Flight {
    pub(crate) fn begin() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            moved: AtomicU64::new(0),
            informational: AtomicU32::new(0),
            waker: AtomicWaker::new(),
        })
    }

    /// The request goes on: a connection has taken it, or a piece of its body.
    pub(crate) fn moved(&self, is_whole: bool) {
        let elapsed = self.begun.elapsed().as_millis() as u64;
        let whole = match is_whole {
            true => WHOLE,
            false => self.moved.load(Ordering::Relaxed) & WHOLE,
        };
        let moved = elapsed | whole | TAKEN;
        self.moved.store(moved, Ordering::Relaxed);
    }

    /// A server says something before its answer.
    pub(crate) fn informed(&self) {
        if self.informational.fetch_add(1, Ordering::Relaxed) >= INFORMATIONAL_MAX {
            self.waker.wake();
        }
    }

    /// Whether a server has said too much before its answer. Who asks is woken when that changes.
    pub(crate) fn poll_flooded(&self, context: &mut Context<'_>) -> Poll<()> {
        self.waker.register(context.waker());
        match self.informational.load(Ordering::Relaxed) > INFORMATIONAL_MAX {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Before this it is not too late, however it goes on.
    pub(crate) fn first_deadline(&self, limits: &RequestLimits) -> Instant {
        self.begun + limits.response().min(limits.idle())
    }

    /// Until when the answer may come, if all is sent, or else the next piece may go; and whether all is sent. Until a
    /// connection takes the request there is the time that a new one may need as well, which is bounded where it is made:
    /// one that is there already may have no room for it.
    pub(crate) fn deadline(&self, limits: &RequestLimits) -> (Instant, bool) {
        let moved = self.moved.load(Ordering::Relaxed);
        if moved & TAKEN == 0 {
            return (self.begun + limits.connect() + limits.response(), true);
        }
        let is_whole = moved & WHOLE != 0;
        let time_max = match is_whole {
            true => limits.response(),
            false => limits.idle(),
        };
        let at = self.begun + Duration::from_millis(moved & !(WHOLE | TAKEN)) + time_max;
        (at, is_whole)
    }
}
