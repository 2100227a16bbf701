//! What waits to be written: collected, and written out by a task of its own once the thread's other tasks have run.
//!
//! An answer that the peer has already sent a call on ahead to is not what it waits for, most likely. It is written with what
//! comes next, or a moment later: each write wakes a peer, which costs both more than such an answer.

use crate::holdings::Holdings;
use capnp::{message, serialize};
use futures::io::AsyncWrite;
use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Messages up to here are copied together; a larger one is written from where it is.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) type Message = message::Builder<message::HeapAllocator>;

/// How long an answer waits at most that the peer does not seem to wait for.
const PATIENCE: Duration = Duration::from_millis(1);

/// Shared by the connection, which adds to it, and the task that empties it.
pub(crate) struct Backlog<W> {
    writer: W,
    chunks: VecDeque<Vec<u8>>,
    /// Of the first chunk.
    written: usize,
    /// One that was used and can be again.
    spare: Vec<u8>,
    /// The questions that are answered, if nothing but such answers waits to be written.
    answers: Option<Vec<u32>>,
    failed: bool,
    flusher: Option<Waker>,
    /// Waits until all is written.
    closer: Option<Waker>,
    holdings: Rc<Holdings>,
}

impl<W: AsyncWrite + Unpin + 'static> Backlog<W> {
    pub(crate) fn start(writer: W, holdings: Rc<Holdings>) -> Rc<RefCell<Self>> {
        let backlog = Rc::new(RefCell::new(Self {
            writer,
            chunks: VecDeque::new(),
            written: 0,
            spare: Vec::new(),
            answers: Some(Vec::new()),
            failed: false,
            flusher: None,
            closer: None,
            holdings,
        }));
        tokio::task::spawn_local(flush_for_ever(Rc::downgrade(&backlog)));
        backlog
    }

    /// Takes a message in; `answers` is the question that it answers, if it does. It is not refused for want of room: what may
    /// be asked for is.
    pub(crate) fn push(&mut self, message: &Message, answers: Option<u32>) -> io::Result<()> {
        if self.failed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let bytes = serialize::compute_serialized_size_in_words(message) * 8;
        let fits = |chunk: &Vec<u8>| chunk.len() + bytes <= CHUNK_BYTES;
        if !self.chunks.back().is_some_and(fits) {
            let mut chunk = std::mem::take(&mut self.spare);
            chunk.reserve_exact(bytes);
            self.chunks.push_back(chunk);
        }
        if let Some(chunk) = self.chunks.back_mut() {
            // Writing into memory does not fail.
            let _ = serialize::write_message(chunk, message);
        }
        match (&mut self.answers, answers) {
            (Some(others), Some(question)) => others.push(question),
            _ => self.answers = None,
        }
        self.holdings.backlog_grew(bytes as u64);
        wake(&mut self.flusher);
        Ok(())
    }

    /// Whether the peer waits for what is to be written, as far as can be known.
    fn is_urgent(&self) -> bool {
        let ahead = |question: &u32| self.holdings.is_asked_ahead(*question);
        self.answers
            .as_ref()
            .is_none_or(|answers| !answers.iter().all(ahead))
    }

    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(chunk) = self.chunks.front() {
            match Pin::new(&mut self.writer).poll_write(context, &chunk[self.written..]) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.written += count;
                    if self.written == chunk.len() {
                        self.first_is_written();
                    }
                    self.holdings.backlog_shrank(count as u64);
                }
                Poll::Ready(outcome) => {
                    self.fail();
                    return Poll::Ready(Err(outcome
                        .err()
                        .unwrap_or_else(|| io::ErrorKind::WriteZero.into())));
                }
            }
        }
        self.answers.get_or_insert_default().clear();
        wake(&mut self.closer);
        Poll::Ready(Ok(()))
    }

    fn first_is_written(&mut self) {
        self.written = 0;
        if let Some(mut chunk) = self.chunks.pop_front()
            && chunk.capacity() <= CHUNK_BYTES
        {
            chunk.clear();
            self.spare = chunk;
        }
    }

    /// Whether the peer can't be written to any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    fn fail(&mut self) {
        self.failed = true;
        let left: usize = self.chunks.drain(..).map(|chunk| chunk.len()).sum();
        self.holdings.backlog_shrank((left - self.written) as u64);
        self.written = 0;
        wake(&mut self.closer);
        // Whoever waits for the peer's next message need not any more.
        self.holdings.wake_reader();
    }

    /// Waits until all is written, and closes the stream.
    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !self.chunks.is_empty() {
            self.answers = None;
            wake(&mut self.flusher);
            self.closer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.writer).poll_close(context)
    }
}

impl<W> Drop for Backlog<W> {
    fn drop(&mut self) {
        wake(&mut self.flusher);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
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
            if !backlog.chunks.is_empty() {
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
        let urgent = std::future::poll_fn(|context| match backlog.upgrade() {
            Some(backlog) if !backlog.borrow().is_urgent() => {
                backlog.borrow_mut().flusher = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        });
        let _ = tokio::time::timeout(PATIENCE, urgent).await;
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
