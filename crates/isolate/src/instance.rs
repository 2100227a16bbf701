//! One guest in its store: its exports, and running an entry a slice at a time.

use crate::{border::State, fuel, sandbox::Sandbox};
use coracle_abi::export;
use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};
use wasmtime::{Memory, Module, ModuleExport, Store, TypedFunc};

/// Where the guest's exports are, looked up once per image.
pub(crate) struct Entries {
    memory: ModuleExport,
    allocate: ModuleExport,
    load: ModuleExport,
    invoke: ModuleExport,
    settle: ModuleExport,
    collect: ModuleExport,
    reseed: ModuleExport,
}

impl Entries {
    pub(crate) fn find(module: &Module) -> Result<Self, String> {
        let find = |name: &str| {
            module
                .get_export_index(name)
                .ok_or(format!("the guest has no export {name:?}"))
        };
        Ok(Self {
            memory: find("memory")?,
            allocate: find(export::ALLOCATE)?,
            load: find(export::LOAD)?,
            invoke: find(export::INVOKE)?,
            settle: find(export::SETTLE)?,
            collect: find(export::COLLECT)?,
            reseed: find(export::RESEED)?,
        })
    }
}

/// A live guest between two entries: plain data, no stack.
pub(crate) struct Instance {
    pub(crate) store: Store<State>,
    memory: Memory,
    allocate: TypedFunc<u32, u32>,
    load: TypedFunc<(u32, u32, f64), ()>,
    invoke: TypedFunc<(u32, u32, f64), ()>,
    settle: TypedFunc<(u64, u32, u32, f64), ()>,
    collect: TypedFunc<(), ()>,
}

/// What an entry does.
pub(crate) enum Entry {
    Load(std::sync::Arc<[u8]>),
    Invoke(Vec<u8>),
    Settle(u64, Vec<u8>),
    Collect,
}

impl Instance {
    /// Takes a slot of the pool, with the random seed that this isolate is to have.
    ///
    /// # Errors
    /// When the pool is full, or the guest is not one: its exports have other types.
    pub(crate) fn new(sandbox: &Sandbox, state: State, seed: u64) -> wasmtime::Result<Self> {
        let mut store = Store::new(&sandbox.engine, state);
        store.limiter(|state| state);
        // For instantiation and the entries below, which run no worker code.
        store.set_fuel(SETUP_FUEL)?;
        let instance = sandbox.template.instantiate(&mut store)?;
        let entries = &sandbox.entries;
        let export = |store: &mut Store<State>, entry: &ModuleExport, name: &str| {
            instance
                .get_module_export(&mut *store, entry)
                .ok_or_else(|| wasmtime::Error::msg(format!("the guest has no export {name:?}")))
        };
        let function = |store: &mut Store<State>, entry, name| {
            export(store, entry, name)?.into_func().ok_or_else(|| {
                wasmtime::Error::msg(format!("the guest's export {name:?} is no function"))
            })
        };
        let memory = export(&mut store, &entries.memory, "memory")?
            .into_memory()
            .ok_or_else(|| wasmtime::Error::msg("the guest's memory is no memory"))?;
        store.data_mut().set_memory(memory);
        let reseed: TypedFunc<u64, ()> =
            function(&mut store, &entries.reseed, export::RESEED)?.typed(&store)?;
        reseed.call(&mut store, seed)?;
        let allocate = function(&mut store, &entries.allocate, export::ALLOCATE)?.typed(&store)?;
        let load = function(&mut store, &entries.load, export::LOAD)?.typed(&store)?;
        let invoke = function(&mut store, &entries.invoke, export::INVOKE)?.typed(&store)?;
        let settle = function(&mut store, &entries.settle, export::SETTLE)?.typed(&store)?;
        let collect = function(&mut store, &entries.collect, export::COLLECT)?.typed(&store)?;
        store.fuel_async_yield_interval(Some(fuel::SLICE))?;
        Ok(Self {
            store,
            memory,
            allocate,
            load,
            invoke,
            settle,
            collect,
        })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.data_size(&self.store) as u64
    }

    /// Starts an entry with `fuel` to burn. It runs when it is polled.
    pub(crate) fn enter(mut self: Box<Self>, entry: Entry, fuel: u64, now_ms: f64) -> Running {
        Running(Box::pin(async move {
            let outcome = self.run(&entry, fuel, now_ms).await;
            (self, outcome)
        }))
    }

    async fn run(&mut self, entry: &Entry, fuel: u64, now_ms: f64) -> wasmtime::Result<()> {
        self.store.set_fuel(fuel)?;
        match entry {
            Entry::Load(message) => {
                let (pointer, length) = self.write(message).await?;
                self.load
                    .call_async(&mut self.store, (pointer, length, now_ms))
                    .await
            }
            Entry::Invoke(message) => {
                let (pointer, length) = self.write(message).await?;
                self.invoke
                    .call_async(&mut self.store, (pointer, length, now_ms))
                    .await
            }
            Entry::Settle(operation, message) => {
                let (pointer, length) = if message.is_empty() {
                    (0, 0)
                } else {
                    self.write(message).await?
                };
                self.settle
                    .call_async(&mut self.store, (*operation, pointer, length, now_ms))
                    .await
            }
            Entry::Collect => self.collect.call_async(&mut self.store, ()).await,
        }
    }

    /// Copies a message into a buffer of the guest's.
    async fn write(&mut self, message: &[u8]) -> wasmtime::Result<(u32, u32)> {
        let length = u32::try_from(message.len())?;
        let pointer = self.allocate.call_async(&mut self.store, length).await?;
        if pointer == 0 {
            // No room. The limiter has counted the growth that it refused, which tells what to call this.
            return Err(wasmtime::Error::msg(
                "the guest has no memory for the message",
            ));
        }
        // Wherever the guest says it is: the copy is checked against the memory's bounds.
        self.memory
            .write(&mut self.store, pointer as usize, message)?;
        Ok((pointer, length))
    }
}

/// Fuel for what the host does on its own account before any worker code runs.
const SETUP_FUEL: u64 = 1_000_000;

/// An entry under way. Its stack is held until it is done or dropped.
pub(crate) struct Running(
    Pin<Box<dyn Future<Output = (Box<Instance>, wasmtime::Result<()>)> + Send>>,
);

impl Running {
    /// Runs for a slice. `None`: there is more to run.
    pub(crate) fn slice(&mut self) -> Option<(Box<Instance>, wasmtime::Result<()>)> {
        match self
            .0
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }
}
