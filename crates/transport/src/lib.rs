//! What carries Cap'n Proto messages between client and server: the same on both ends.
//!
//! The RPC layer flushes after each message. Here messages are collected and written together once the thread has
//! nothing else to do, which costs a third of writing each by itself. On the end that serves, nothing is read from a
//! peer that does not take what is written to it, so that it can't make the server hold replies without bound.
//!
//! Everything lives on one thread, inside a `tokio::task::LocalSet`.

#![forbid(unsafe_code)]

use capnp::message::ReaderOptions;
use capnp_rpc::{rpc_twoparty_capnp::Side, twoparty};
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, BufReader, ReadHalf};
use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
};

const READ_BUFFER_BYTES: usize = 32 * 1024;
/// Written bytes that may wait for the peer before it is no longer read from.
const BACKLOG_BYTES_MAX: usize = 256 * 1024;
/// Pointers that a message may be nested in; ours need a dozen.
const NESTING_MAX: i32 = 64;

/// A network of two over a stream.
pub type Network<S> = twoparty::VatNetwork<GatedReader<BufReader<ReadHalf<S>>>>;

/// Makes the network of one connection. `message_bytes_max` bounds what the peer may send in one message; it is checked
/// against the head of a message, before memory is taken for it.
///
/// Only the server's side gates its reads: two gated peers could wait for each other.
pub fn network<S>(stream: S, side: Side, message_bytes_max: u64) -> Network<S>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (reader, writer) = stream.split();
    let stall = Rc::new(Stall::default());
    let gate = if side == Side::Server {
        Rc::clone(&stall)
    } else {
        Rc::default()
    };
    let reader = GatedReader {
        inner: BufReader::with_capacity(READ_BUFFER_BYTES, reader),
        stall: gate,
    };
    let mut options = ReaderOptions::new();
    options.traversal_limit_in_words(Some(
        usize::try_from(message_bytes_max / 8).unwrap_or(usize::MAX),
    ));
    options.nesting_limit(NESTING_MAX);
    twoparty::VatNetwork::new(reader, LazyWriter::new(writer, stall), side, options)
}

/// Shared by the two halves of a connection: on while the peer does not take what we write.
#[derive(Default)]
struct Stall {
    on: Cell<bool>,
    reader: RefCell<Option<Waker>>,
}

impl Stall {
    fn set(&self, on: bool) {
        self.on.set(on);
        if !on && let Some(waker) = self.reader.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Reads nothing while the connection stalls.
pub struct GatedReader<R> {
    inner: R,
    stall: Rc<Stall>,
}

impl<R: AsyncRead + Unpin> AsyncRead for GatedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.stall.on.get() {
            *self.stall.reader.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

/// Collects what is written; a task of its own writes it out once the thread's other tasks have run.
struct LazyWriter<W>(Rc<RefCell<Backlog<W>>>);

struct Backlog<W> {
    inner: W,
    bytes: Vec<u8>,
    written: usize,
    flusher: Option<Waker>,
    writer: Option<Waker>,
    failed: bool,
    stall: Rc<Stall>,
}

impl<W: AsyncWrite + Unpin + 'static> LazyWriter<W> {
    fn new(inner: W, stall: Rc<Stall>) -> Self {
        let backlog = Rc::new(RefCell::new(Backlog {
            inner,
            bytes: Vec::with_capacity(16 * 1024),
            written: 0,
            flusher: None,
            writer: None,
            failed: false,
            stall,
        }));
        tokio::task::spawn_local(flush_for_ever(Rc::downgrade(&backlog)));
        Self(backlog)
    }
}

async fn flush_for_ever<W: AsyncWrite + Unpin + 'static>(backlog: Weak<RefCell<Backlog<W>>>) {
    loop {
        let dirty = std::future::poll_fn(|context| {
            let Some(backlog) = backlog.upgrade() else {
                return Poll::Ready(false);
            };
            let mut backlog = backlog.borrow_mut();
            if backlog.failed {
                return Poll::Ready(false);
            }
            if backlog.bytes.len() > backlog.written {
                return Poll::Ready(true);
            }
            backlog.flusher = Some(context.waker().clone());
            Poll::Pending
        });
        if !dirty.await {
            return;
        }
        // Whatever else is ready adds to the same write.
        tokio::task::yield_now().await;
        let flushed = std::future::poll_fn(|context| match backlog.upgrade() {
            Some(backlog) => backlog
                .borrow_mut()
                .poll_write_out(context)
                .map(|outcome| outcome.is_ok()),
            None => Poll::Ready(false),
        });
        if !flushed.await {
            return;
        }
    }
}

impl<W: AsyncWrite + Unpin> Backlog<W> {
    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            match Pin::new(&mut self.inner).poll_write(context, &self.bytes[self.written..]) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) if count > 0 => self.written += count,
                Poll::Ready(outcome) => {
                    self.failed = true;
                    self.stall.set(false);
                    self.wake_writer();
                    return Poll::Ready(Err(outcome
                        .err()
                        .unwrap_or_else(|| io::ErrorKind::WriteZero.into())));
                }
            }
        }
        self.bytes.clear();
        self.written = 0;
        if self.bytes.capacity() > 4 * BACKLOG_BYTES_MAX {
            self.bytes.shrink_to(BACKLOG_BYTES_MAX);
        }
        self.stall.set(false);
        self.wake_writer();
        Poll::Ready(Ok(()))
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}

impl<W> Drop for LazyWriter<W> {
    fn drop(&mut self) {
        if let Some(waker) = self.0.borrow_mut().flusher.take() {
            waker.wake();
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for LazyWriter<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut backlog = self.0.borrow_mut();
        if backlog.failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if backlog.bytes.len() - backlog.written >= BACKLOG_BYTES_MAX {
            backlog.stall.set(true);
            backlog.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        backlog.bytes.extend_from_slice(bytes);
        if let Some(waker) = backlog.flusher.take() {
            waker.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The flusher does it; waiting here would undo what it is for.
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut backlog = self.0.borrow_mut();
        match backlog.poll_write_out(context) {
            Poll::Ready(Ok(())) => Pin::new(&mut backlog.inner).poll_close(context),
            Poll::Pending => {
                // The flusher may be the one that the stream wakes next.
                backlog.writer = Some(context.waker().clone());
                Poll::Pending
            }
            failed => failed,
        }
    }
}

#[cfg(test)]
mod tests;
