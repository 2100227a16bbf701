//! Running the guest's set-up once and keeping the memory that it leaves.
//!
//! The guest is trusted here: it is ours, or one that the operator chose. No worker's code has run in it.

use crate::{border, sandbox};
use coracle_abi::export;
use std::task::{Context, Poll, Waker};
use wasmtime::{Engine, Instance, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

/// Runs the guest's set-up and writes the memory that it leaves into a new module.
pub(super) fn snapshot(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let engine = Engine::new(&sandbox::snapshot_config())?;
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument(wasm)?;
    let module = Module::new(&engine, &instrumented)?;
    let mut store = Store::new(&engine, border::State::for_snapshot());
    store.limiter(|state| state);
    let instance = border::snapshot_linker(&engine)?.instantiate(&mut store, &module)?;
    if let Some(memory) = instance.get_memory(&mut store, "memory") {
        store.data_mut().set_memory(memory);
    }
    let outcome = instance
        .get_typed_func::<(), ()>(&mut store, export::INITIALIZE)?
        .call(&mut store, ());
    if let Err(error) = outcome {
        let said = store.data().setup_log();
        return Err(error.context(format!("the guest's set-up failed: {}", said.join("; "))));
    }
    let mut state = Snapshotted {
        store: &mut store,
        instance,
    };
    let mut snapshot = std::pin::pin!(wizer.snapshot(&context, &mut state));
    match snapshot
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(bytes) => bytes,
        Poll::Pending => Err(wasmtime::Error::msg(
            "reading an instance's memory does not wait",
        )),
    }
}

struct Snapshotted<'a> {
    store: &'a mut Store<border::State>,
    instance: Instance,
}

impl InstanceState for Snapshotted<'_> {
    async fn global_get(&mut self, name: &str, _hint: ValType) -> SnapshotVal {
        let global = self
            .instance
            .get_global(&mut *self.store, name)
            .expect("wizer names its own exports");
        match global.get(&mut *self.store) {
            Val::I32(value) => SnapshotVal::I32(value),
            Val::I64(value) => SnapshotVal::I64(value),
            Val::F32(bits) => SnapshotVal::F32(bits),
            Val::F64(bits) => SnapshotVal::F64(bits),
            Val::V128(bits) => SnapshotVal::V128(bits.as_u128()),
            reference => unreachable!("wizer does not ask for references such as {reference:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let memory = self
            .instance
            .get_memory(&mut *self.store, name)
            .expect("wizer names its own exports");
        contents(memory.data(&*self.store));
    }
}
