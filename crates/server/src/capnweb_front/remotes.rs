//! Objects of the client's: kept here, on the connection's thread. Everybody else has an address with a number, and sends
//! commands.

use crate::router::{Address, Remote, RemoteCommand};
use coracle_capnweb::Peer;
use coracle_isolate::Kind;
use coracle_transport::Held;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
};
use tokio::sync::mpsc;

pub(super) struct Remotes {
    commands: mpsc::UnboundedSender<RemoteCommand>,
    objects: RefCell<HashMap<u64, (Peer, Held)>>,
    last: Cell<u64>,
}

impl Remotes {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<RemoteCommand>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let remotes = Self {
            commands,
            objects: RefCell::default(),
            last: Cell::new(0),
        };
        (remotes, receiver)
    }

    /// An address for a client's object.
    pub(super) fn address(&self, peer: Peer, kind: Kind, held: Held) -> Address {
        self.last.set(self.last.get() + 1);
        let id = self.last.get();
        // One login's table is all that compares these, and a login has one connection.
        let identity = peer.id() as usize;
        self.objects.borrow_mut().insert(id, (peer, held));
        let remote = Remote::new(self.commands.clone(), id, identity, kind);
        Address::Remote(Arc::new(remote))
    }

    /// The client's own object, where the address is of one of this connection's.
    pub(super) fn peer_of(&self, remote: &Remote) -> Option<Peer> {
        match remote.is_of(&self.commands) {
            true => self.peer(remote.id),
            false => None,
        }
    }

    pub(super) fn peer(&self, id: u64) -> Option<Peer> {
        let objects = self.objects.borrow();
        objects.get(&id).map(|(peer, _)| peer.clone())
    }

    pub(super) fn release(&self, id: u64) {
        let released = self.objects.borrow_mut().remove(&id);
        drop(released);
    }

    /// The client is gone, and its objects with it.
    pub(super) fn forget_all(&self) {
        let objects = self.objects.take();
        drop(objects);
    }
}
