//! Handles: whoever holds one keeps an entry of the connection alive, and the connection learns when the last is dropped.
//!
//! Dropping a handle only notes its number. The connection takes the notes up one after the other, so that letting go of a
//! long chain of promises takes no stack.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// What a handle keeps alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A promise, by its number.
    Promise(u64),
    /// An object of the client's, by its id in the table of imports.
    Object(i64),
    /// The readable end of a pipe, by the pipe's id in the table of exports.
    Pipe(i64),
}

/// The notes of what was dropped, and the count of what is held.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Rc<Notes>);

#[derive(Default)]
struct Notes {
    dropped: RefCell<Vec<Kept>>,
    held_bytes: Cell<usize>,
}

impl Ledger {
    pub(crate) fn handle(&self, kept: Kept) -> Handle {
        Handle(Rc::new(Token {
            kept,
            ledger: self.clone(),
        }))
    }

    /// What was dropped and has not been taken up.
    pub(crate) fn take_dropped(&self) -> Option<Kept> {
        self.0.dropped.borrow_mut().pop()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held_bytes.get()
    }

    /// Counts these bytes until the charge is dropped.
    pub(crate) fn charge(&self, bytes: usize) -> Charge {
        let held = &self.0.held_bytes;
        held.set(held.get().saturating_add(bytes));
        Charge {
            bytes,
            ledger: self.clone(),
        }
    }
}

/// Keeps something alive, together with its clones.
#[derive(Clone)]
pub(crate) struct Handle(Rc<Token>);

struct Token {
    kept: Kept,
    ledger: Ledger,
}

impl Handle {
    pub(crate) fn kept(&self) -> Kept {
        self.0.kept
    }

    pub(crate) fn downgrade(&self) -> WeakHandle {
        WeakHandle(Rc::downgrade(&self.0))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.ledger.0.dropped.borrow_mut().push(self.kept);
    }
}

/// Finds a handle again as long as one is held.
pub(crate) struct WeakHandle(std::rc::Weak<Token>);

impl WeakHandle {
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        self.0.upgrade().map(Handle)
    }
}

/// Bytes that count as held. A clone counts once more.
pub(crate) struct Charge {
    bytes: usize,
    ledger: Ledger,
}

impl Charge {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Clone for Charge {
    fn clone(&self) -> Self {
        self.ledger.charge(self.bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let held = &self.ledger.0.held_bytes;
        held.set(held.get().saturating_sub(self.bytes));
    }
}

/// A promise's handle.
#[derive(Clone)]
pub(crate) struct Promise(Handle);

impl Promise {
    pub(crate) fn new(ledger: &Ledger, number: u64) -> Self {
        Self(ledger.handle(Kept::Promise(number)))
    }

    pub(crate) fn number(&self) -> u64 {
        match self.0.kept() {
            Kept::Promise(number) => number,
            Kept::Object(_) | Kept::Pipe(_) => 0,
        }
    }
}

/// An object of the client's: a function, a stub, or an end of a stream. Cheap to clone.
///
/// When the last clone is dropped, the client is told with what the connection does next: ask it for its
/// [`next_effect`](crate::Connection::next_effect) afterwards.
#[derive(Clone)]
pub struct Peer(pub(crate) Handle);

impl Peer {
    /// A number that is this object's as long as it is held, and no other's.
    #[must_use]
    pub fn id(&self) -> i64 {
        match self.0.kept() {
            Kept::Object(id) | Kept::Pipe(id) => id,
            Kept::Promise(_) => 0,
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0.0, &other.0.0)
    }
}

impl Eq for Peer {}

impl std::fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Peer({})", self.id())
    }
}
