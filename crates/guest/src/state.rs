//! The one mutable place of the guest, part of the snapshot.

use crate::{engine::Engine, modules::ModuleTable, prelude::Hooks, rejections::Rejections};
use std::cell::{OnceCell, RefCell};

pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) hooks: Hooks,
}

struct Global<T>(T);
// SAFETY: the guest has one thread, and the cells inside refuse overlapping use.
unsafe impl<T> Sync for Global<T> {}

static STATE: Global<OnceCell<State>> = Global(OnceCell::new());
static MODULES: Global<RefCell<ModuleTable>> = Global(RefCell::new(ModuleTable::new()));
static REJECTIONS: Global<RefCell<Rejections>> = Global(RefCell::new(Rejections::new()));

pub(crate) fn initialize(state: State) {
    if STATE.0.set(state).is_err() {
        panic!("initialised twice");
    }
}

/// The engine and the prelude's hooks.
pub(crate) fn get() -> &'static State {
    STATE
        .0
        .get()
        .expect("the snapshot is taken after initialize")
}

/// The worker's modules. Never borrowed while JavaScript runs.
pub(crate) fn modules() -> &'static RefCell<ModuleTable> {
    &MODULES.0
}

/// Promises that were rejected without a handler. Never borrowed while JavaScript runs.
pub(crate) fn rejections() -> &'static RefCell<Rejections> {
    &REJECTIONS.0
}
