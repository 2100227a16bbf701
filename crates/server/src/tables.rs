//! What each isolate holds of others, by the numbers that its guest knows, and which of its calls are under way.
//!
//! A guest can name any number; it reaches what was put under that number for it, and nothing else. Every entry is given
//! to the guest once and let go of by it once.

use crate::{
    named::Ask,
    opened::{OVER, Opened},
    router::{Address, Export},
    session::{Entrypoint, Facts, Grants, Hold, Worker},
};
use coracle_abi::{IMPORT_REFUSED, IMPORTS_MADE_MIN, OUTBOUND, import_of};
use coracle_isolate::{Bytes, External, Form, Kind};
use coracle_loader::{CallId, LimitsRequest, WorkerId};
use coracle_outbound::Trail;
use std::{
    collections::{HashMap, HashSet},
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
    /// Imports that are connections, and whose each is; see `opened`.
    connections: HashMap<u64, u64>,
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
pub(crate) struct Outgoing {
    /// Which invocation has made it.
    pub(crate) invocation: u64,
    /// What is called.
    pub(crate) import: u64,
    pub(crate) way: Way,
    /// What is told of it, if it is a request to a gateway.
    pub(crate) trail: Option<Arc<Trail>>,
}

/// Where a call goes.
pub(crate) enum Way {
    /// Of a worker of this server.
    Call(CallId),
    /// Of a client's object, or one of this process; dropping it gives the call up.
    Outside(#[expect(dead_code, reason = "held to be dropped")] oneshot::Sender<()>),
    /// Nowhere: the answer is known.
    Nowhere,
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
            connections: HashMap::new(),
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

    pub(crate) fn tenant(&self) -> &Arc<str> {
        self.facts.tenant()
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
        self.connections.remove(&id);
        match id {
            OUTBOUND => {}
            IMPORTS_MADE_MIN.. => self.made.remove(&released),
            _ => self.given.remove(&released),
        }
        Some(released)
    }

    /// What is in `externals` of connections is of the call whose `opened` that is; of one that is over they are closed.
    pub(crate) fn connect(
        &mut self,
        externals: &[External],
        opened: Option<&Opened>,
        closed: &mut Vec<Address>,
    ) {
        for external in externals {
            let External::Import(id, _) = external else {
                continue;
            };
            let Some(address @ Address::Host(_)) = self.imports.get_mut(id) else {
                continue;
            };
            match opened {
                Some(opened) => _ = self.connections.insert(*id, opened.id()),
                None => closed.push(std::mem::replace(address, over())),
            }
        }
    }

    /// Closes the connections of a call: what is under their numbers says so from now on. Gives the isolate's calls of them
    /// up that have no answer yet, and answers which those are.
    pub(crate) fn close(&mut self, opened: u64, closed: &mut Vec<Address>) -> Vec<u64> {
        let connections = self.connections.iter();
        let of_it: HashSet<u64> = connections
            .filter_map(|(import, of)| (*of == opened).then_some(*import))
            .collect();
        for import in &of_it {
            self.connections.remove(import);
            let address = self.imports.get_mut(import);
            closed.extend(address.map(|address| std::mem::replace(address, over())));
        }
        let calls = self.outgoing.iter();
        let unanswered: Vec<u64> = calls
            .filter_map(|(operation, call)| of_it.contains(&call.import).then_some(*operation))
            .collect();
        for operation in &unanswered {
            self.outgoing.remove(operation);
        }
        unanswered
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
    /// while the service's state is held; `opened` is of the call that gives them out.
    pub(crate) fn adopt(
        &self,
        externals: Vec<External>,
        worker: Option<&Worker>,
        opened: Option<&Arc<Opened>>,
    ) -> Vec<Address> {
        let adopt = |external: External| match (external, worker) {
            // What its requests go to is the worker's to use, and not to pass on.
            (External::Import(OUTBOUND, _), _) => Address::Broken,
            (External::Import(id, _), _) => match self.import(id) {
                // Nor is a connection, which is of the call that opened it: what is passed on are streams over it.
                None | Some(Address::Host(_)) => Address::Broken,
                Some(address) => address,
            },
            (External::Export(id, kind), Some(worker)) => {
                // Loaders and entrypoints are not made by guests.
                let kind = match kind {
                    Kind::Loader | Kind::Entrypoint => Kind::Target,
                    kind => kind,
                };
                let opened = opened.map(Arc::clone);
                Address::Export(Export::new(worker.clone(), self.isolate, id, kind, opened))
            }
            (External::Loopback { entrypoint, props }, Some(worker)) => {
                Address::Entrypoint(loopback(worker, &entrypoint, props))
            }
            (_, None) => Address::Broken,
        };
        externals.into_iter().map(adopt).collect()
    }
}

/// What is under the number of a connection that is closed.
fn over() -> Address {
    Address::Failed(OVER.into())
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
