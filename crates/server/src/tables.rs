//! What each isolate holds of others, by the numbers that its guest knows, and which of its calls are under way.
//!
//! A guest can name any number; it reaches what was put under that number for it, and nothing else. Every entry is given
//! to the guest once and let go of by it once.

use crate::{
    named::Ask,
    router::{Address, Export},
    session::{Entrypoint, Facts, Grants, Hold, Worker},
};
use coracle_abi::{IMPORT_REFUSED, IMPORTS_MADE_MIN, OUTBOUND, import_of};
use coracle_isolate::{Bytes, External, Form, Kind};
use coracle_loader::{CallId, LimitsRequest, WorkerId};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::sync::oneshot;

/// One isolate's table.
pub(crate) struct Table {
    isolate: u64,
    worker: Weak<Hold>,
    facts: Arc<Facts>,
    imports: HashMap<u64, Address>,
    import_last: u64,
    /// Of the imports, what it was given and what it has made by loading.
    given: Taken,
    made: Taken,
    /// Workers that it has loaded and that end with it.
    pub(crate) children: Vec<WorkerId>,
    /// What it asks for by an id, by its own ids for that.
    pub(crate) asking: HashMap<u64, Ask>,
    /// Of these, what it is to provide.
    pub(crate) providing: HashMap<u64, Ask>,
    /// Its calls that have no answer yet, by its own ids for them.
    pub(crate) outgoing: HashMap<u64, Outgoing>,
}

/// What imports take in the table.
#[derive(Default)]
struct Taken {
    count: usize,
    bytes: u64,
}

impl Taken {
    fn has_room(&self, address: &Address, count_max: usize, bytes_max: u64) -> bool {
        let bytes = self.bytes.saturating_add(address.data_bytes());
        self.count < count_max && bytes <= bytes_max
    }

    fn add(&mut self, address: &Address) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(address.data_bytes());
    }

    fn remove(&mut self, address: &Address) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(address.data_bytes());
    }
}

/// Workers and entrypoints of them that an isolate may hold, and bytes of the entrypoints' props.
const MADE_MAX: usize = 10_000;
const MADE_BYTES_MAX: u64 = 32 << 20;
pub(crate) const NO_ROOM: &str = "Too many workers and entrypoints of workers are held at once: 10,000 are allowed. Dispose of some.";
/// What an isolate may hold of what it was given, and bytes of props in that. Its guest has less room than that for as many
/// stubs, unless it is broken; props take none there.
const GIVEN_MAX: usize = 200_000;
const GIVEN_BYTES_MAX: u64 = 32 << 20;

/// A call that an isolate has made.
pub(crate) enum Outgoing {
    /// Of a worker of this server.
    Call(CallId),
    /// Of a client's object, or one of this process; dropping it gives the call up.
    Outside(#[expect(dead_code, reason = "held to be dropped")] oneshot::Sender<()>),
}

impl Table {
    /// The first imports are what `env` refers to, in order: the message that loads the worker names them so.
    pub(crate) fn new(
        isolate: u64,
        worker: &Weak<Hold>,
        facts: &Arc<Facts>,
        grants: &Grants,
    ) -> Self {
        let mut table = Self {
            isolate,
            worker: Weak::clone(worker),
            facts: Arc::clone(facts),
            imports: HashMap::new(),
            import_last: 0,
            given: Taken::default(),
            made: Taken::default(),
            children: Vec::new(),
            asking: HashMap::new(),
            providing: HashMap::new(),
            outgoing: HashMap::new(),
        };
        for address in &grants.env {
            table.put(address.clone());
        }
        if let Some(outbound) = &grants.outbound {
            table.imports.insert(OUTBOUND, outbound.clone());
        }
        table
    }

    pub(crate) fn import(&self, id: u64) -> Option<Address> {
        if id == IMPORT_REFUSED {
            return Some(Address::Failed(full().into()));
        }
        let found = self.imports.get(&id).cloned();
        // What was made when there was no room is not in the table.
        let is_made = id >= IMPORTS_MADE_MIN;
        match found {
            None if is_made && self.made.count >= MADE_MAX => Some(Address::Failed(NO_ROOM.into())),
            found => found,
        }
    }

    pub(crate) fn worker_id(&self) -> WorkerId {
        self.facts.worker_id()
    }

    /// The worker that the isolate runs, unless that is over.
    pub(crate) fn worker(&self) -> Option<Worker> {
        self.worker.upgrade().map(Worker::of_hold)
    }

    /// Takes an import away.
    pub(crate) fn release(&mut self, id: u64) -> Option<Address> {
        let released = self.imports.remove(&id)?;
        match id {
            OUTBOUND => {}
            IMPORTS_MADE_MIN.. => self.made.remove(&released),
            _ => self.given.remove(&released),
        }
        Some(released)
    }

    /// Whether there is room for what an operation of the isolate's has made.
    pub(crate) fn has_room(&self, address: &Address) -> bool {
        self.made.has_room(address, MADE_MAX, MADE_BYTES_MAX)
    }

    /// Puts what an operation of the isolate's has made under the number that follows from it, where nothing is yet.
    pub(crate) fn make(&mut self, operation: u64, address: Address) -> u64 {
        let import = import_of(operation);
        self.made.add(&address);
        self.imports.insert(import, address);
        import
    }

    /// Puts an address under the next number.
    fn put(&mut self, address: Address) -> External {
        let kind = address.kind();
        self.import_last += 1;
        self.given.add(&address);
        self.imports.insert(self.import_last, address);
        External::Import(self.import_last, kind)
    }

    /// Gives addresses to the guest: the entries to be passed to it. What is its own comes home.
    /// What it has no room for any more is put into `refused`, and the guest is given what says so when it is called.
    pub(crate) fn offer(
        &mut self,
        addresses: Vec<Address>,
        refused: &mut Vec<Address>,
    ) -> Vec<External> {
        let offer = |address: Address| match address {
            Address::Export(export) if export.isolate() == self.isolate => {
                External::Export(export.id(), export.kind())
            }
            address => {
                let held = address.passed().held_by(&self.facts);
                if self.given.has_room(&held, GIVEN_MAX, GIVEN_BYTES_MAX) {
                    return self.put(held);
                }
                let kind = held.kind();
                refused.push(held);
                External::Import(IMPORT_REFUSED, kind)
            }
        };
        addresses.into_iter().map(offer).collect()
    }

    /// The addresses that the guest means by entries of its. `worker` is the one that it runs, which is not to be let go of
    /// while the service's state is held.
    pub(crate) fn adopt(&self, externals: Vec<External>, worker: Option<&Worker>) -> Vec<Address> {
        let adopt = |external: External| match (external, worker) {
            // What its requests go to is the worker's to use, and not to pass on.
            (External::Import(OUTBOUND, _), _) => Address::Broken,
            (External::Import(id, _), _) => self.import(id).unwrap_or(Address::Broken),
            (External::Export(id, kind), Some(worker)) => {
                // Loaders and entrypoints are not made by guests.
                let kind = match kind {
                    Kind::Loader | Kind::Entrypoint => Kind::Target,
                    kind => kind,
                };
                Address::Export(Export::new(worker.clone(), self.isolate, id, kind))
            }
            (External::Loopback { entrypoint, props }, Some(worker)) => {
                Address::Entrypoint(loopback(worker, &entrypoint, props))
            }
            (_, None) => Address::Broken,
        };
        externals.into_iter().map(adopt).collect()
    }
}

/// What calls of a capability are answered with that had no room.
fn full() -> String {
    format!(
        "The isolate holds all that it may of others: {GIVEN_MAX} capabilities, with {GIVEN_BYTES_MAX} bytes of props. \
         Dispose of some."
    )
}

fn loopback(worker: &Worker, name: &str, props: Vec<u8>) -> Entrypoint {
    let props = match props.is_empty() {
        true => Bytes::UNDEFINED,
        false => Bytes::data(Form::Cbor, props),
    };
    worker.entrypoint_of(name, props, Vec::new(), &LimitsRequest::default())
}
