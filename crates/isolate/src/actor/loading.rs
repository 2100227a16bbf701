//! What the guest asks a loader for.

use super::{
    Actor, Effects, Surroundings,
    operations::{Kind, Operation, answer_message},
};
use crate::{
    instance::Entry,
    invocation::lower,
    loading::Loading,
    message::{Answer, Event},
};

impl Actor {
    /// Passes on what the guest asks its loader for.
    pub(super) fn start_loading(
        &mut self,
        operation: u64,
        mut request: Loading,
        invocation: u64,
        effects: &mut Effects,
    ) {
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        match &mut request {
            Loading::Load(child) => {
                books.subrequests += 1;
                child.limits = lower(&self.spec.limits, &books.limits).lowered_by(&child.asked);
                if let Some(get) = child.get {
                    self.end_provision(get);
                }
            }
            Loading::Entrypoint(_) => {}
            Loading::Get { .. } => {
                books.subrequests += 1;
                books.operations.insert(operation);
                let get = Operation::new(invocation, Kind::Get);
                self.operations.insert(operation, get);
            }
            Loading::NotProvided { get, .. } => self.end_provision(*get),
        }
        effects.events.push(Event::Loading {
            isolate: self.isolate,
            invocation,
            operation,
            request,
        });
    }

    /// The guest is told to load the worker that it has asked for. As long as it has not, others may wait for it.
    pub(super) fn ask_for_provision(&mut self, operation: u64, around: &Surroundings<'_>) {
        let Some(known) = self.operations.get_mut(&operation) else {
            return;
        };
        known.kind = Kind::Provision;
        let invocation = known.invocation;
        let entry = Entry::Settle(operation, answer_message(&Answer::Provide));
        self.enter(entry, invocation, around);
    }

    /// The guest has provided a worker, or says that it can't.
    fn end_provision(&mut self, get: u64) {
        let known = self.operations.get(&get);
        if known.is_some_and(|known| known.kind == Kind::Provision) {
            self.remove_operation(get);
        }
    }

    /// Whether somebody outside may still settle something that the guest waits for.
    pub(super) fn waits_for_others(&self) -> bool {
        let mut all = self.operations.values();
        all.any(|known| !matches!(known.kind, Kind::Provision | Kind::Hold))
    }
}
