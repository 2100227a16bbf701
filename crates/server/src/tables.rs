//! What each isolate holds of others, by the numbers that its guest knows, and which of its calls are under way.
//!
//! A guest can name any number; it reaches what was put under that number for it, and nothing else. Every entry is given
//! to the guest once and let go of by it once.

use crate::{
    router::{Address, Export},
    session::{Entrypoint, Grants, Worker, WorkerInner},
};
use coracle_abi::OUTBOUND;
use coracle_isolate::{Bytes, External, Form, Kind};
use coracle_loader::{CallId, LimitsRequest};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::sync::oneshot;

/// One isolate's table.
pub(crate) struct Table {
    isolate: u64,
    worker: Weak<WorkerInner>,
    imports: HashMap<u64, Address>,
    import_last: u64,
    /// Its calls that have no answer yet, by its own ids for them.
    pub(crate) outgoing: HashMap<u64, Outgoing>,
}

/// A call that an isolate has made.
pub(crate) enum Outgoing {
    /// Of a worker of this server.
    Call(CallId),
    /// Of a client's object; dropping it gives the call up.
    Remote(#[expect(dead_code, reason = "held to be dropped")] oneshot::Sender<()>),
}

impl Table {
    /// The first imports are what `env` refers to, in order: the message that loads the worker names them so.
    pub(crate) fn new(isolate: u64, worker: &Weak<WorkerInner>, grants: &Grants) -> Self {
        let mut table = Self {
            isolate,
            worker: Weak::clone(worker),
            imports: HashMap::new(),
            import_last: 0,
            outgoing: HashMap::new(),
        };
        table.offer(grants.env.clone());
        if let Some(outbound) = &grants.outbound {
            table.imports.insert(OUTBOUND, outbound.clone());
        }
        table
    }

    pub(crate) fn import(&self, id: u64) -> Option<Address> {
        self.imports.get(&id).cloned()
    }

    /// Takes an import away.
    pub(crate) fn release(&mut self, id: u64) -> Option<Address> {
        self.imports.remove(&id)
    }

    /// Gives addresses to the guest: the entries to be passed to it. What is its own comes home.
    pub(crate) fn offer(&mut self, addresses: Vec<Address>) -> Vec<External> {
        let offer = |address: Address| match address {
            Address::Export(export) if export.isolate == self.isolate => {
                External::Export(export.id, export.kind)
            }
            address => {
                let kind = address.kind();
                self.import_last += 1;
                self.imports.insert(self.import_last, address);
                External::Import(self.import_last, kind)
            }
        };
        addresses.into_iter().map(offer).collect()
    }

    /// The addresses that the guest means by entries of its.
    pub(crate) fn adopt(&self, externals: Vec<External>) -> Vec<Address> {
        let worker = self.worker.upgrade().map(Worker::from_inner);
        let adopt = |external: External| match (external, &worker) {
            // What its requests go to is the worker's to use, and not to pass on.
            (External::Import(OUTBOUND, _), _) => Address::Broken,
            (External::Import(id, _), _) => self.import(id).unwrap_or(Address::Broken),
            (External::Export(id, kind), Some(worker)) => Address::Export(Arc::new(Export {
                worker: worker.clone(),
                isolate: self.isolate,
                id,
                // Loaders and entrypoints are not made by guests.
                kind: match kind {
                    Kind::Loader | Kind::Entrypoint => Kind::Target,
                    kind => kind,
                },
            })),
            (External::Loopback { entrypoint, props }, Some(worker)) => {
                Address::Entrypoint(loopback(worker, &entrypoint, props))
            }
            (_, None) => Address::Broken,
        };
        externals.into_iter().map(adopt).collect()
    }
}

fn loopback(worker: &Worker, name: &str, props: Vec<u8>) -> Entrypoint {
    let props = match props.is_empty() {
        true => Bytes::UNDEFINED,
        false => Bytes::data(Form::Cbor, props),
    };
    worker.entrypoint_of(name, props, Vec::new(), &LimitsRequest::default())
}
