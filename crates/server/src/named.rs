//! Workers that workers load by an id: who has which name, and who waits for it to be provided.
//!
//! A name is known within one binding, which is one loader in the `env` of one worker. So nobody can plant a worker under
//! a name that somebody else asks for: not the worker that a loader was passed on to, and not its maker either.

use crate::{
    session::Worker,
    shared::{Key, Shared},
};
use coracle_loader::WorkerId;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Names that one binding may have at once; the one that was not asked for longest goes first.
const NAMES_MAX: usize = 1_000;

/// A loader in the `env` of a worker.
#[derive(Default)]
pub struct Binding {
    names: Mutex<Names>,
}

/// What an isolate asks for.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) binding: Arc<Binding>,
    pub(crate) id: String,
}

/// An isolate's operation, which asks for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) isolate: u64,
    pub(crate) operation: u64,
}

#[derive(Default)]
struct Names {
    workers: HashMap<String, Named>,
    flights: HashMap<String, VecDeque<Asker>>,
    asked_last: u64,
}

struct Named {
    worker: Worker,
    asked: u64,
}

/// What there is under a name.
pub(crate) enum Found {
    Worker(Worker),
    /// Somebody provides it.
    Wait,
    /// Whoever asks is to provide it.
    Provide,
}

/// Where a worker can be found by an id.
pub(crate) enum Name {
    /// Among those of a loader in the `env` of a worker.
    Bound(Weak<Binding>, String),
    /// Among those that clients get.
    Shared(Weak<Shared>, Box<Key>),
}

impl Name {
    /// The id.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Bound(_, id) => id,
            Self::Shared(_, key) => &key.id,
        }
    }
}

impl Binding {
    /// What a name stands for, when it is asked for.
    pub(crate) fn ask(&self, id: &str, asker: Asker) -> Found {
        let mut names = self.names();
        names.asked_last += 1;
        let now = names.asked_last;
        if let Some(named) = names.workers.get_mut(id) {
            named.asked = now;
            return Found::Worker(named.worker.clone());
        }
        if let Some(waiting) = names.flights.get_mut(id) {
            waiting.push_back(asker);
            return Found::Wait;
        }
        names.flights.insert(id.to_owned(), VecDeque::new());
        Found::Provide
    }

    /// Ends the wait for a name. Who waited is answered by whoever calls this; a worker that has to make room is returned,
    /// not to be dropped while the service's state is held.
    pub(crate) fn provide(
        &self,
        id: &str,
        worker: Option<&Worker>,
    ) -> (Vec<Asker>, Option<Worker>) {
        let mut names = self.names();
        let waiting = names.flights.remove(id).unwrap_or_default();
        let mut evicted = None;
        if let Some(worker) = worker {
            if names.workers.len() >= NAMES_MAX {
                let oldest = names.workers.iter().min_by_key(|(_, named)| named.asked);
                let oldest = oldest.map(|(id, _)| id.clone());
                evicted = oldest.and_then(|oldest| names.workers.remove(&oldest));
            }
            let named = Named {
                worker: worker.clone(),
                asked: names.asked_last,
            };
            names.workers.insert(id.to_owned(), named);
        }
        (waiting.into(), evicted.map(|named| named.worker))
    }

    /// Whoever provides a name does not do so any more. Returns who is to do it instead.
    pub(crate) fn next_provider(&self, id: &str) -> Option<Asker> {
        let mut names = self.names();
        let next = names.flights.get_mut(id)?.pop_front();
        if next.is_none() {
            names.flights.remove(id);
        }
        next
    }

    /// Somebody does not wait for a name any more.
    pub(crate) fn leave(&self, id: &str, asker: Asker) {
        if let Some(waiting) = self.names().flights.get_mut(id) {
            waiting.retain(|other| *other != asker);
        }
    }

    /// Forgets a name, if it stands for this worker. What is returned is not to be dropped while the service's state is
    /// held.
    pub(crate) fn forget(&self, id: &str, worker: WorkerId) -> Option<Worker> {
        let mut names = self.names();
        let is_it = names
            .workers
            .get(id)
            .is_some_and(|named| named.worker.id() == worker);
        let forgotten = is_it.then(|| names.workers.remove(id)).flatten();
        forgotten.map(|named| named.worker)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // Whole after every change.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
