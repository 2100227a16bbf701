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
    questions: RefCell<HashMap<u32, Question>>,
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
        self.check_room(0)
    }

    /// Whether more than that may be added.
    fn check_room(&self, bytes: u64) -> Result<(), Full> {
        if self.bytes.get().saturating_add(bytes) >= self.bounds.connection_bytes_max {
            return Err(Full::Connection {
                limit: self.bounds.connection_bytes_max,
            });
        }
        if self.everyone.bytes().saturating_add(bytes) >= self.everyone.bytes_max {
            return Err(Full::Everyone {
                limit: self.everyone.bytes_max,
            });
        }
        Ok(())
    }

    /// Counts `bytes` until the value is dropped, if there is room for anything. More than a message has needs room for all
    /// of it: it is a sum of what many have brought.
    ///
    /// # Errors
    /// When there is no room.
    pub fn hold(self: &Rc<Self>, bytes: u64) -> Result<Held, Full> {
        let more = bytes.saturating_sub(self.bounds.message_bytes_max);
        self.check_room(more)?;
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

    /// The peer asks something of what `ahead` is to answer, or of what it has already.
    ///
    /// # Errors
    /// When that is one too many.
    pub(crate) fn asked(&self, question: u32, ahead: Option<u32>) -> Result<(), TooMany> {
        let mut questions = self.questions.borrow_mut();
        let ahead = ahead.and_then(|ahead| questions.get_mut(&ahead));
        let depth = ahead.map_or(0, |ahead| {
            ahead.is_asked_ahead = true;
            ahead.depth + 1
        });
        let new = Question {
            kept: 0,
            depth,
            is_asked_ahead: false,
        };
        questions.entry(question).or_insert(new);
        if questions.len() > self.bounds.questions_max {
            return Err(TooMany::Questions(self.bounds.questions_max));
        }
        match depth > PIPELINED_MAX {
            true => Err(TooMany::Pipelined),
            false => Ok(()),
        }
    }

    /// An answer is kept, for calls on what is in it, until the peer says that it is done with it.
    pub(crate) fn answered(&self, question: u32, bytes: u64) {
        if let Some(known) = self.questions.borrow_mut().get_mut(&question) {
            known.kept += bytes;
            // What is asked of it from now on waits for nothing.
            known.depth = 0;
            self.add(bytes);
        }
    }

    /// Whether the peer has sent a call on ahead to what the question is to answer.
    pub(crate) fn is_asked_ahead(&self, question: u32) -> bool {
        let questions = self.questions.borrow();
        let known = questions.get(&question);
        known.is_some_and(|known| known.is_asked_ahead)
    }

    pub(crate) fn finished(&self, question: u32) {
        let known = self.questions.borrow_mut().remove(&question);
        self.subtract(known.map_or(0, |known| known.kept));
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

/// A question that the peer has asked and not finished.
#[derive(Debug)]
struct Question {
    /// Bytes of its answer.
    kept: u64,
    /// How many questions wait for their answers before this one can be asked.
    depth: u32,
    /// Whether one of them does for this one's.
    is_asked_ahead: bool,
}

/// Calls that may wait for one another's answers. The RPC layer asks each for the next on the same stack.
const PIPELINED_MAX: u32 = 64;

/// A peer asks too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("more than {0} questions (questions_max) of this connection were not finished")]
    Questions(usize),
    #[error(
        "more than {PIPELINED_MAX} calls (pipelined_max) were sent ahead to one another's answers"
    )]
    Pipelined,
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
