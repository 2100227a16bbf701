//! What a peer may do to a stream of bytes: how long it may leave unread what is written, and how much it may send before
//! it has said who it is.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// How long a peer may take nothing of what is written to it.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// Bytes that a peer may send before it has logged in: a login takes hundreds.
pub(super) const STRANGER_BYTES_MAX: usize = 64 << 10;

/// A stream that fails when the peer reads nothing for [`WRITE_STALL_MAX`].
pub(super) struct Patient<S> {
    stream: S,
    /// Runs while something is written that the peer doesn't take.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            deadline: None,
        }
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(WRITE_STALL_MAX)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, polled)
    }
}

/// What a stranger may still send. There is no bound once it is lifted.
#[derive(Clone, Default)]
pub(super) struct Allowance(Rc<Left>);

#[derive(Default)]
struct Left {
    used: Cell<usize>,
    is_lifted: Cell<bool>,
    reader: RefCell<Option<Waker>>,
}

impl Allowance {
    /// The peer is no stranger any more.
    pub(super) fn lift(&self) {
        if !self.0.is_lifted.replace(true)
            && let Some(reader) = self.0.reader.take()
        {
            reader.wake();
        }
    }

    /// How much may be read now.
    fn left(&self) -> usize {
        match self.0.is_lifted.get() {
            true => usize::MAX,
            false => STRANGER_BYTES_MAX.saturating_sub(self.0.used.get()),
        }
    }
}

/// A stream of which no more is read than the peer may send.
pub(super) struct Reserved<S> {
    stream: S,
    allowance: Allowance,
}

impl<S> Reserved<S> {
    pub(super) fn new(stream: S, allowance: &Allowance) -> Self {
        Self {
            stream,
            allowance: allowance.clone(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Reserved<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.allowance.left();
        if left == 0 {
            *self.allowance.0.reader.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        if left == usize::MAX {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = left.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(length));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        let used = &self.allowance.0.used;
        used.set(used.get() + read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Reserved<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
