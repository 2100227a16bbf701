//! Workers that clients get by an id: the one that is there, or one that is provided now, once, whoever asks meanwhile.
//!
//! Who may share a worker is decided by who holds the table: a tenant has one for workers that are given no capability,
//! and each login one for the others.

use crate::session::{LoadError, Worker};
use coracle_loader::{LimitsRequest, Outbound, WorkerId};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::watch;

/// Bytes of an id and of a fingerprint.
pub(crate) const ID_BYTES_MAX: usize = 1_024;
/// How long a source may take.
pub(crate) const SOURCE_TIME_MAX: Duration = Duration::from_secs(30);
/// Workers that one table keeps; the one that was not asked for longest goes first.
const WORKERS_MAX: usize = 1_000;

/// What makes two requests ask for the same worker. The capabilities are kept alive by the worker that is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) fingerprint: Vec<u8>,
    /// See [`digest`].
    pub(crate) given: [u8; 32],
    /// Of what `env` refers to and of the gateway.
    pub(crate) capabilities: Vec<Identity>,
}

/// Which capability one is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A client's object, by its place in memory.
    Remote(usize),
    /// An object of an isolate's, by its place in memory.
    Export(usize),
    /// An entrypoint, by the places in memory of its name and its props.
    Entrypoint(WorkerId, usize, usize),
    /// An object of this process, by its place in memory.
    Host(usize),
    /// The loader of the login.
    Loader,
    /// What can't be called.
    Broken,
}

/// What a worker is given besides capabilities, in few bytes.
pub(crate) fn digest(
    env: &coracle_loader::Encoded,
    outbound: &Outbound,
    limits: &LimitsRequest,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(format!("{:?} {outbound:?} {limits:?}\0", env.form));
    hash.update(&env.bytes);
    hash.finalize().into()
}

/// Why there is no worker.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum GetError {
    #[error(transparent)]
    Load(Arc<LoadError>),
    /// The source did not answer with a worker's code.
    #[error("{0}")]
    Source(String),
    /// The source's client has gone. It concerns only who named that source: the others who wait have their own.
    #[error("{0}")]
    SourceGone(String),
}

/// A table of workers.
#[derive(Default)]
pub(crate) struct Shared {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    slots: HashMap<Key, Slot>,
    asked_last: u64,
}

enum Slot {
    Flight(watch::Receiver<Option<GetError>>),
    Worker { worker: Worker, asked: u64 },
}

enum Turn {
    Found(Worker),
    Wait(watch::Receiver<Option<GetError>>),
    Provide(Flight),
}

impl Shared {
    /// The worker under a key; where there is none, `provide` makes it. Dropping the future while it does lets the next
    /// one try who waits.
    pub(crate) async fn get<P>(
        self: &Arc<Self>,
        key: Key,
        is_of_use: impl Fn(&Worker) -> bool,
        provide: impl FnOnce() -> P,
    ) -> Result<Worker, GetError>
    where
        P: Future<Output = Result<Worker, GetError>>,
    {
        loop {
            match self.turn(&key) {
                Turn::Found(worker) if is_of_use(&worker) => return Ok(worker),
                Turn::Found(worker) => drop(self.forget(&key, worker.id())),
                Turn::Wait(mut flight) => {
                    // An error is of the flight that was waited for; without one there is a worker now, or nobody who
                    // provides it.
                    if flight.changed().await.is_ok()
                        && let Some(error) = flight.borrow().clone()
                    {
                        return Err(error);
                    }
                }
                Turn::Provide(flight) => return flight.land(provide().await),
            }
        }
    }

    fn turn(self: &Arc<Self>, key: &Key) -> Turn {
        let mut table = self.table();
        table.asked_last += 1;
        let now = table.asked_last;
        match table.slots.get_mut(key) {
            Some(Slot::Flight(flight)) => return Turn::Wait(flight.clone()),
            Some(Slot::Worker { worker, asked }) => {
                *asked = now;
                return Turn::Found(worker.clone());
            }
            None => {}
        }
        let (sender, receiver) = watch::channel(None);
        table.slots.insert(key.clone(), Slot::Flight(receiver));
        Turn::Provide(Flight {
            shared: Arc::clone(self),
            key: key.clone(),
            sender,
            landed: false,
        })
    }

    /// Forgets a worker. What is returned is not to be dropped while the service's state is held.
    pub(crate) fn forget(&self, key: &Key, worker: WorkerId) -> Option<Worker> {
        let mut table = self.table();
        let is_it = matches!(table.slots.get(key), Some(Slot::Worker { worker: known, .. }) if known.id() == worker);
        let forgotten = is_it.then(|| table.slots.remove(key)).flatten();
        match forgotten {
            Some(Slot::Worker { worker, .. }) => Some(worker),
            Some(Slot::Flight(_)) | None => None,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Whole after every change.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody provides a worker.
struct Flight {
    shared: Arc<Shared>,
    key: Key,
    sender: watch::Sender<Option<GetError>>,
    landed: bool,
}

impl Flight {
    fn land(mut self, outcome: Result<Worker, GetError>) -> Result<Worker, GetError> {
        if let Err(GetError::SourceGone(_)) = outcome {
            return outcome;
        }
        self.landed = true;
        let mut evicted = None;
        {
            let mut table = self.shared.table();
            table.slots.remove(&self.key);
            if let Ok(worker) = &outcome {
                evicted = table.make_room();
                let slot = Slot::Worker {
                    worker: worker.clone(),
                    asked: table.asked_last,
                };
                table.slots.insert(self.key.clone(), slot);
            }
        }
        drop(evicted);
        let _ = self.sender.send(outcome.as_ref().err().cloned());
        outcome
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.landed {
            // Who waits sees the sender go, and takes its turn.
            self.shared.table().slots.remove(&self.key);
        }
    }
}

impl Table {
    fn make_room(&mut self) -> Option<Slot> {
        let asked = |slot: &Slot| match slot {
            Slot::Worker { asked, .. } => Some(*asked),
            Slot::Flight(_) => None,
        };
        if self.slots.len() < WORKERS_MAX {
            return None;
        }
        let kept = self
            .slots
            .iter()
            .filter_map(|(key, slot)| Some((asked(slot)?, key)));
        let oldest = kept
            .min_by_key(|(asked, _)| *asked)
            .map(|(_, key)| key.clone())?;
        self.slots.remove(&oldest)
    }
}
