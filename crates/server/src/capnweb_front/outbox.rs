//! Messages on their way to a client.

use coracle_transport::{Full, Held, Holdings};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

/// Bytes that may wait for a client before it is no longer read from.
const BACKLOG_BYTES_MAX: usize = 256 * 1024;

/// A message, and the room that it takes until it is dropped.
pub(super) type Waiting = (String, Option<Held>);

/// Messages that were not sent yet, and count as what the client makes the server hold.
#[derive(Default)]
pub(super) struct Outbox {
    messages: RefCell<VecDeque<Waiting>>,
    bytes: Cell<usize>,
}

impl Outbox {
    /// Adds a message, if there is room for it.
    pub(super) fn push(&self, message: String, holdings: &Rc<Holdings>) -> Result<(), Full> {
        let held = holdings.hold(message.len() as u64)?;
        self.put(message, Some(held));
        Ok(())
    }

    /// Adds the last message, for which there is always room.
    pub(super) fn push_last(&self, message: String) {
        self.put(message, None);
    }

    fn put(&self, message: String, held: Option<Held>) {
        self.bytes.set(self.bytes.get() + message.len());
        self.messages.borrow_mut().push_back((message, held));
    }

    pub(super) fn pop(&self) -> Option<Waiting> {
        let (message, held) = self.messages.borrow_mut().pop_front()?;
        self.bytes.set(self.bytes.get() - message.len());
        Some((message, held))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.borrow().is_empty()
    }

    /// Whether so much waits that the client is to read before it says more.
    pub(super) fn is_backed_up(&self) -> bool {
        self.bytes.get() > BACKLOG_BYTES_MAX
    }
}
