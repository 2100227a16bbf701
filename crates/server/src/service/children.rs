//! Workers that isolates load.
//!
//! A child belongs to the session of its parent, has no limit that is higher than its parent's, and what it is given is
//! what the parent holds itself. It ends with the isolate that has loaded it, unless it has a name: then with the worker
//! in whose binding the name is.

use super::{Name, Service, State, outward::adopt, refusal_name};
use crate::{
    named::{Ask, Asker, Binding, Found},
    router::Address,
    session::{Entrypoint, Grants, REFUSED_NONE, Worker},
    tables::NO_ROOM,
};
use coracle_abi::OUTBOUND;
use coracle_isolate::{
    Answer, Child, ChildEntrypoint, ChildOutbound, External, Loading, Message, Outcome, WorkerSpec,
};
use coracle_loader::WorkerId;
use std::sync::Arc;

/// What is told of an import that is no loader or worker.
const NO_LOADER: &str = "This capability is not a loader that the isolate holds.";
const NO_WORKER: &str = "This capability is not a worker that the isolate holds.";

impl Service {
    /// An isolate asks its loader for something.
    pub(super) fn isolate_loads(
        &self,
        state: &mut State,
        isolate: u64,
        operation: u64,
        request: Loading,
    ) {
        let asker = Asker { isolate, operation };
        match request {
            Loading::Load(child) => self.load_child(state, asker, *child),
            Loading::Entrypoint(entrypoint) => get_entrypoint(state, asker, *entrypoint),
            Loading::Get { loader, id } => self.get_named(state, asker, loader, id),
            Loading::NotProvided { get, thrown } => {
                if let Some(ask) = take_provision(state, isolate, get) {
                    let answer = Answer::Outcome(Outcome::Threw(thrown));
                    self.end_flight(state, &ask, None, &answer);
                }
            }
        }
    }

    fn load_child(&self, state: &mut State, asker: Asker, mut child: Child) {
        let ask = child
            .get
            .and_then(|get| take_provision(state, asker.isolate, get));
        let env = adopt(state, asker.isolate, std::mem::take(&mut child.env), None);
        let tails = adopt(state, asker.isolate, std::mem::take(&mut child.tails), None);
        let grants = Grants {
            env: env.into_iter().map(bound).collect(),
            tails: tails.into_iter().map(Address::passed).collect(),
            ..Grants::default()
        };
        let made = self.make_child(state, asker.isolate, child, grants, ask.as_ref());
        self.metrics.load(made.is_ok());
        let address = match &made {
            Ok(worker) => Address::Worker(worker.clone()),
            Err(reason) => Address::Failed(reason.as_str().into()),
        };
        make(state, asker, address);
        match (ask, made) {
            (Some(ask), Ok(worker)) => {
                self.end_flight(state, &ask, Some(&worker), &Answer::Provide);
                state.discard(worker);
            }
            (Some(ask), Err(reason)) => {
                self.end_flight(state, &ask, None, &Answer::Failed(reason));
            }
            (None, Ok(worker)) => state.discard(worker),
            (None, Err(_)) => {}
        }
    }

    /// Takes a child in, or says why not.
    fn make_child(
        &self,
        state: &mut State,
        isolate: u64,
        child: Child,
        mut grants: Grants,
        ask: Option<&Ask>,
    ) -> Result<Worker, String> {
        let outcome = self.check_child(state, isolate, child, &mut grants);
        let (parent, spec, taken) = match outcome {
            Ok(ready) => ready,
            Err(reason) => {
                state.discard(grants);
                return Err(reason);
            }
        };
        let Some(session) = parent.session().cloned() else {
            state.discard((grants, parent));
            return Err(NO_LOADER.into());
        };
        let lineage = parent.facts().lineage();
        let taken_in = self.take_in(state, &session, lineage, spec, grants);
        state.discard((parent, session));
        let worker = taken_in.map_err(|refusal| {
            self.metrics.request_refused(refusal_name(refusal));
            refusal.to_string()
        })?;
        if let Some(loaded) = state.workers.get_mut(&worker.id()) {
            loaded.code_bytes = Some(taken);
            loaded.name = ask.map(|ask| Name::Bound(Arc::downgrade(&ask.binding), ask.id.clone()));
        }
        if ask.is_none() {
            note_child(state, isolate, worker.id());
        }
        Ok(worker)
    }

    /// What a child is to be made of, if it may be.
    fn check_child(
        &self,
        state: &mut State,
        isolate: u64,
        child: Child,
        grants: &mut Grants,
    ) -> Result<(Worker, WorkerSpec, crate::room::Taken), String> {
        let Child {
            loader,
            load,
            outbound,
            limits,
            ..
        } = child;
        let gateway = match &outbound {
            ChildOutbound::Gateway(gateway) => adopt_one(state, isolate, gateway.clone()),
            ChildOutbound::Inherit | ChildOutbound::None => None,
        };
        grants.outbound = gateway.map(Address::passed);
        let Some(table) = state.tables.get(&isolate) else {
            return Err(NO_LOADER.into());
        };
        let (held, parent) = (table.import(loader), table.worker());
        let inherited = table.import(OUTBOUND);
        let is_loader = matches!(held, Some(Address::Loader(_)));
        state.discard(held);
        let Some(parent) = parent.filter(|_| is_loader) else {
            state.discard(inherited);
            return Err(NO_LOADER.into());
        };
        let outbound_refusal = match outbound {
            ChildOutbound::Gateway(_) => None,
            ChildOutbound::None => Some(REFUSED_NONE.into()),
            ChildOutbound::Inherit => {
                grants.outbound.clone_from(&inherited);
                let loaded = state.workers.get(&parent.id());
                loaded.and_then(|loaded| loaded.spec.outbound_refusal.clone())
            }
        };
        state.discard(inherited);
        // The isolate says so, and may have been taken over.
        let limits = parent.limits().lower_of(&limits);
        let room = |load: Arc<[u8]>| match parent.session() {
            Some(session) if !session.is_closed() => {
                let bytes = (load.len() as u64).saturating_add(grants.data_bytes());
                match session.code_bytes().take_for_code(bytes) {
                    Ok(taken) => {
                        let share = self.share_of(session.tenant());
                        Ok((load, taken, (session.tenant_id().0, share, session.trust())))
                    }
                    Err(full) => Err(full.to_string()),
                }
            }
            _ => Err(coracle_loader::Refusal::SessionClosed.to_string()),
        };
        match load.and_then(room) {
            Ok((load, taken, (tenant, share, trust))) => {
                let spec = WorkerSpec {
                    load,
                    tenant,
                    share,
                    trust,
                    outbound_refusal,
                    logs_streamed: false,
                    limits,
                };
                Ok((parent, spec, taken))
            }
            Err(reason) => {
                state.discard(parent);
                Err(reason)
            }
        }
    }

    // --- by id ---

    fn get_named(&self, state: &mut State, asker: Asker, loader: u64, id: String) {
        let held = state
            .tables
            .get(&asker.isolate)
            .and_then(|table| table.import(loader));
        let Some(Address::Loader(binding)) = held else {
            state.discard(held);
            return self.tell(state, asker, Answer::Failed(NO_LOADER.into()));
        };
        let found = match binding.ask(&id, asker) {
            Found::Worker(worker) if !is_of_use(state, &worker) => {
                let forgotten = binding.forget(&id, worker.id());
                state.discard((worker, forgotten));
                binding.ask(&id, asker)
            }
            found => found,
        };
        let ask = Ask { binding, id };
        match found {
            Found::Worker(worker) => {
                state.discard(ask);
                self.give_worker(state, asker, worker);
            }
            Found::Wait => {
                if let Some(table) = state.tables.get_mut(&asker.isolate) {
                    table.asking.insert(asker.operation, ask);
                }
            }
            Found::Provide => self.ask_to_provide(state, asker, ask),
        }
    }

    fn ask_to_provide(&self, state: &mut State, asker: Asker, ask: Ask) {
        if let Some(table) = state.tables.get_mut(&asker.isolate) {
            table.providing.insert(asker.operation, ask);
        }
        self.tell(state, asker, Answer::Provide);
    }

    /// A name has been provided, or not: tells those who wait for it. `otherwise` is what they are told where there is no
    /// worker.
    fn end_flight(
        &self,
        state: &mut State,
        ask: &Ask,
        worker: Option<&Worker>,
        otherwise: &Answer,
    ) {
        let (waiting, evicted) = ask.binding.provide(&ask.id, worker);
        state.discard((evicted, ask.clone()));
        for asker in waiting {
            if let Some(table) = state.tables.get_mut(&asker.isolate) {
                let asked = table.asking.remove(&asker.operation);
                state.discard(asked);
            }
            match worker {
                Some(worker) => self.give_worker(state, asker, worker.clone()),
                None => self.tell(state, asker, otherwise.clone()),
            }
        }
    }

    fn give_worker(&self, state: &mut State, asker: Asker, worker: Worker) {
        let answer = match make(state, asker, Address::Worker(worker)) {
            Some(import) => Answer::Worker(import),
            None => Answer::Failed(NO_ROOM.into()),
        };
        self.tell(state, asker, answer);
    }

    pub(super) fn tell(&self, state: &State, asker: Asker, answer: Answer) {
        let message = Message::Settle {
            isolate: asker.isolate,
            operation: asker.operation,
            answer: Box::new(answer),
        };
        self.send(state, message);
    }

    /// An isolate does not ask for a worker any more, or does not provide the one that it was asked for.
    pub(super) fn drop_ask(&self, state: &mut State, asker: Asker) {
        let Some(table) = state.tables.get_mut(&asker.isolate) else {
            return;
        };
        if let Some(ask) = table.asking.remove(&asker.operation) {
            ask.binding.leave(&ask.id, asker);
            state.discard(ask);
        } else if let Some(ask) = take_provision(state, asker.isolate, asker.operation) {
            self.pass_provision_on(state, ask);
        }
    }

    fn pass_provision_on(&self, state: &mut State, ask: Ask) {
        while let Some(next) = ask.binding.next_provider(&ask.id) {
            let Some(table) = state.tables.get_mut(&next.isolate) else {
                continue;
            };
            let asked = table.asking.remove(&next.operation);
            state.discard(asked);
            return self.ask_to_provide(state, next, ask);
        }
        state.discard(ask);
    }

    /// An isolate is gone: its children go with it, and others provide what it was to.
    pub(super) fn end_children(
        &self,
        state: &mut State,
        isolate: u64,
        table: &mut crate::tables::Table,
    ) {
        for (operation, ask) in table.asking.drain() {
            ask.binding.leave(&ask.id, Asker { isolate, operation });
            state.discard(ask);
        }
        for (_, ask) in table.providing.drain() {
            self.pass_provision_on(state, ask);
        }
        for child in table.children.drain(..) {
            self.let_worker_go(state, child);
        }
    }

    /// A worker that could not be started loses its name, so that whoever asks next provides another.
    pub(super) fn forget_name(state: &mut State, worker: WorkerId) {
        let loaded = state.workers.get_mut(&worker);
        match loaded.and_then(|loaded| loaded.name.take()) {
            Some(Name::Bound(binding, id)) => {
                let binding = binding.upgrade();
                let forgotten = binding.as_ref().map(|binding| binding.forget(&id, worker));
                state.discard((forgotten, binding));
            }
            Some(Name::Shared(table, key)) => {
                let table = table.upgrade();
                let forgotten = table.as_ref().map(|table| table.forget(&key, worker));
                state.discard((forgotten, table));
            }
            None => {}
        }
    }
}

/// A loader in the `env` of a worker is a binding of its own.
pub(crate) fn bound(address: Address) -> Address {
    match address {
        Address::Loader(_) => Address::Loader(Arc::new(Binding::default())),
        Address::Worker(_) => Address::Broken,
        other => other,
    }
}

fn adopt_one(state: &mut State, isolate: u64, external: External) -> Option<Address> {
    adopt(state, isolate, vec![external], None).pop()
}

fn take_provision(state: &mut State, isolate: u64, get: u64) -> Option<Ask> {
    state.tables.get_mut(&isolate)?.providing.remove(&get)
}

/// Puts what an isolate has made into its table.
fn make(state: &mut State, asker: Asker, address: Address) -> Option<u64> {
    let table = state.tables.get_mut(&asker.isolate);
    let Some(table) = table.filter(|table| table.has_room(&address)) else {
        state.discard(address);
        return None;
    };
    Some(table.make(asker.operation, address))
}

fn note_child(state: &mut State, isolate: u64, child: WorkerId) {
    let State {
        tables, workers, ..
    } = state;
    if let Some(table) = tables.get_mut(&isolate) {
        table.children.push(child);
        // Most of them end before their parent.
        if table.children.len() >= 64 && table.children.len().is_power_of_two() {
            table.children.retain(|child| workers.contains_key(child));
        }
    }
}

fn get_entrypoint(state: &mut State, asker: Asker, entrypoint: ChildEntrypoint) {
    let ChildEntrypoint {
        worker,
        name,
        mut props,
        asked,
    } = entrypoint;
    let given = adopt(
        state,
        asker.isolate,
        std::mem::take(&mut props.externals),
        None,
    );
    let held = state
        .tables
        .get(&asker.isolate)
        .and_then(|table| table.import(worker));
    let address = match held {
        Some(Address::Worker(worker)) => {
            let given = given.into_iter().map(Address::passed);
            let given: Vec<_> = given
                .map(|address| address.held_by(worker.facts()))
                .collect();
            let address = match Entrypoint::check_props(&given) {
                Ok(()) => Address::Entrypoint(worker.entrypoint_of(&name, props, given, &asked)),
                Err(error) => {
                    state.discard(given);
                    Address::Failed(error.to_string().into())
                }
            };
            state.discard(worker);
            address
        }
        Some(Address::Failed(reason)) => {
            state.discard(given);
            Address::Failed(reason)
        }
        other => {
            state.discard((given, other));
            Address::Failed(NO_WORKER.into())
        }
    };
    make(state, asker, address);
}

/// Whether a worker still can do what it was loaded for: it is there, and so is what it was given.
pub(super) fn is_of_use(state: &State, worker: &Worker) -> bool {
    let Some(loaded) = state.workers.get(&worker.id()) else {
        return false;
    };
    let is_there = |address: &Address| match address {
        Address::Export(export) => {
            let live = state.core.live_isolate(export.worker.id());
            live.is_some_and(|live| live.0 == export.isolate())
        }
        Address::Entrypoint(entrypoint) => state.workers.contains_key(&entrypoint.worker.id()),
        Address::Remote(remote) => !remote.is_gone(),
        Address::Failed(_) | Address::Broken => false,
        Address::Host(_) | Address::Loader(_) | Address::Worker(_) => true,
    };
    !loaded.released
        && loaded
            .grants
            .env
            .iter()
            .chain(&loaded.grants.outbound)
            .all(is_there)
}

#[cfg(test)]
mod tests;
