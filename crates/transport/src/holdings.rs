//! What a peer makes this side hold, and how much of it may be.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
};

/// Written bytes that may wait for the peer before it is no longer read from.
const BACKLOG_BYTES_MAX: u64 = 256 * 1024;
/// What somebody who has not introduced themselves may have sent and not got answered: a login takes hundreds of bytes.
const STRANGER_BYTES_MAX: u64 = 64 * 1024;

/// What one connection may make this side hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of one message from the peer, and of all that wait for something before they can be looked at.
    pub message_bytes_max: u64,
    /// Bytes of everything. Beyond it, what would add to them is refused.
    pub connection_bytes_max: u64,
    /// Questions that the peer has asked and not finished. Beyond it, it is cut off.
    pub questions_max: usize,
}

/// What all connections together make this side hold.
#[derive(Debug)]
pub struct Everyone {
    bytes: AtomicU64,
    bytes_max: u64,
}

impl Everyone {
    /// Nothing yet, and at most this much.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            bytes_max,
        })
    }

    /// How much it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// There is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The connection has its share.
    #[error(
        "overloaded: results, arguments and stubs of this connection take {limit} bytes, its maximum \
         (connection_bytes_max); read what was answered and drop what is not needed"
    )]
    Connection {
        /// `connection_bytes_max`.
        limit: u64,
    },
    /// All connections together have all that there is.
    #[error(
        "overloaded: results, arguments and stubs of all connections take {limit} bytes, their maximum \
         (connections_bytes_max); retry later"
    )]
    Everyone {
        /// `connections_bytes_max`.
        limit: u64,
    },
}

impl Full {
    /// The name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection { .. } => "connection_bytes",
            Self::Everyone { .. } => "connections_bytes",
        }
    }
}

/// What one connection makes this side hold.
#[derive(Debug)]
pub struct Holdings {
    bounds: Bounds,
    everyone: Arc<Everyone>,
    bytes: Cell<u64>,
    /// Of these, messages from the peer.
    message_bytes: Cell<u64>,
    /// Of these, what is written and not yet taken.
    backlog_bytes: Cell<u64>,
    /// The peer's open questions, with the bytes of their answers.
    questions: RefCell<HashMap<u32, u64>>,
    introduced: Cell<bool>,
    /// Whoever reads from the peer, and may have to wait until it may.
    reader: RefCell<Option<Waker>>,
}

impl Holdings {
    /// Nothing yet.
    #[must_use]
    pub fn new(bounds: Bounds, everyone: &Arc<Everyone>) -> Rc<Self> {
        Rc::new(Self {
            bounds,
            everyone: Arc::clone(everyone),
            bytes: Cell::new(0),
            message_bytes: Cell::new(0),
            backlog_bytes: Cell::new(0),
            questions: RefCell::default(),
            introduced: Cell::new(false),
            reader: RefCell::default(),
        })
    }

    /// Whatever a peer that is trusted sends, as long as each message is at most that large.
    pub(crate) fn of_trusted_peer(message_bytes_max: u64) -> Rc<Self> {
        let bounds = Bounds {
            message_bytes_max,
            connection_bytes_max: u64::MAX,
            questions_max: usize::MAX,
        };
        let holdings = Self::new(bounds, &Everyone::new(u64::MAX));
        holdings.introduce();
        holdings
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The peer has said who it is: from now on it may send more than that takes.
    pub fn introduce(&self) {
        self.introduced.set(true);
        self.wake_reader();
    }

    /// Whether something may be added.
    ///
    /// # Errors
    /// When there is no room.
    pub fn check(&self) -> Result<(), Full> {
        if self.bytes.get() >= self.bounds.connection_bytes_max {
            return Err(Full::Connection {
                limit: self.bounds.connection_bytes_max,
            });
        }
        if self.everyone.bytes() >= self.everyone.bytes_max {
            return Err(Full::Everyone {
                limit: self.everyone.bytes_max,
            });
        }
        Ok(())
    }

    /// Counts `bytes` until the value is dropped, if there is room for anything.
    ///
    /// # Errors
    /// When there is no room.
    pub fn hold(self: &Rc<Self>, bytes: u64) -> Result<Held, Full> {
        self.check()?;
        self.add(bytes);
        Ok(Held {
            holdings: Rc::clone(self),
            bytes,
            is_message: false,
        })
    }

    fn add(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        self.everyone.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.everyone.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    // --- messages from the peer ---

    /// Whether a message of that size may be read. Where not, the reader is woken when it may be different.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let waiting = self.message_bytes.get();
        if self.backlog_bytes.get() > BACKLOG_BYTES_MAX {
            return false;
        }
        if !self.introduced.get() {
            return waiting + bytes <= STRANGER_BYTES_MAX;
        }
        // One always may, or a message of the largest size never could.
        waiting == 0 || waiting + bytes <= self.bounds.message_bytes_max
    }

    pub(crate) fn hold_message(self: &Rc<Self>, bytes: u64) -> Held {
        self.add(bytes);
        self.message_bytes.set(self.message_bytes.get() + bytes);
        Held {
            holdings: Rc::clone(self),
            bytes,
            is_message: true,
        }
    }

    pub(crate) fn set_reader(&self, context: &Context<'_>) {
        let mut reader = self.reader.borrow_mut();
        match &mut *reader {
            Some(known) => known.clone_from(context.waker()),
            None => *reader = Some(context.waker().clone()),
        }
    }

    pub(crate) fn wake_reader(&self) {
        let reader = self.reader.borrow_mut().take();
        if let Some(waker) = reader {
            waker.wake();
        }
    }

    // --- messages to the peer ---

    pub(crate) fn backlog_grew(&self, bytes: u64) {
        self.add(bytes);
        self.backlog_bytes.set(self.backlog_bytes.get() + bytes);
    }

    pub(crate) fn backlog_shrank(&self, bytes: u64) {
        self.subtract(bytes);
        self.backlog_bytes.set(self.backlog_bytes.get() - bytes);
        self.wake_reader();
    }

    // --- questions ---

    /// Returns whether that was one too many.
    pub(crate) fn asked(&self, question: u32) -> bool {
        let mut questions = self.questions.borrow_mut();
        questions.entry(question).or_insert(0);
        questions.len() > self.bounds.questions_max
    }

    /// An answer is kept, for calls on what is in it, until the peer says that it is done with it.
    pub(crate) fn answered(&self, question: u32, bytes: u64) {
        if let Some(kept) = self.questions.borrow_mut().get_mut(&question) {
            *kept += bytes;
            self.add(bytes);
        }
    }

    pub(crate) fn finished(&self, question: u32) {
        let kept = self.questions.borrow_mut().remove(&question);
        self.subtract(kept.unwrap_or(0));
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        // All that is left: answers that were never finished, and what was never taken.
        self.everyone
            .bytes
            .fetch_sub(self.bytes.get(), Ordering::Relaxed);
    }
}

/// Something that is held; dropping it gives the room back.
#[derive(Debug)]
pub struct Held {
    holdings: Rc<Holdings>,
    bytes: u64,
    is_message: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.holdings.subtract(self.bytes);
        if self.is_message {
            self.holdings
                .message_bytes
                .set(self.holdings.message_bytes.get() - self.bytes);
            self.holdings.wake_reader();
        }
    }
}
