//! One guest in its store: its exports, and running an entry a slice at a time.

use crate::{
    border::{Allowance, State},
    sandbox::Sandbox,
    snapshots::{Found, Snapshot},
    transpiler::{self, Outcome},
};
use coracle_abi::export;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use wasmtime::{
    ExternType, FuncType, Memory, Module, ModuleExport, Store, TypedFunc, ValType, WasmParams,
    WasmResults,
};

/// Where the guest's exports are, looked up and checked once per image.
pub(crate) struct Entries {
    memory: ModuleExport,
    allocate: ModuleExport,
    load: ModuleExport,
    invoke: ModuleExport,
    settle: ModuleExport,
    release: ModuleExport,
    collect: ModuleExport,
    reseed: ModuleExport,
}

impl Entries {
    pub(crate) fn find(module: &Module) -> Result<Self, String> {
        use ValType::{F64, I32, I64};
        let find = |name: &str| {
            module
                .get_export_index(name)
                .zip(module.get_export(name))
                .ok_or_else(|| format!("the guest has no export {name:?}"))
        };
        let function = |name: &str, params: &[ValType], results: &[ValType]| {
            let (index, found) = find(name)?;
            let (params, results) = (params.iter().cloned(), results.iter().cloned());
            let wanted = FuncType::new(module.engine(), params, results);
            match found.func() {
                Some(found) if FuncType::eq(found, &wanted) => Ok(index),
                _ => Err(format!("the guest's export {name:?} is not a {wanted}")),
            }
        };
        let (memory, found) = find("memory")?;
        match found {
            ExternType::Memory(memory) if !memory.is_64() && !memory.is_shared() => {}
            _ => return Err("the guest's export \"memory\" is no plain memory".into()),
        }
        Ok(Self {
            memory,
            allocate: function(export::ALLOCATE, &[I32], &[I32])?,
            load: function(export::LOAD, &[I32, I32, F64], &[])?,
            invoke: function(export::INVOKE, &[I32, I32, F64], &[])?,
            settle: function(export::SETTLE, &[I64, I32, I32, F64], &[])?,
            release: function(export::RELEASE, &[I32, I32, F64], &[])?,
            collect: function(export::COLLECT, &[], &[])?,
            reseed: function(export::RESEED, &[I64], &[])?,
        })
    }
}

/// A live guest between two entries: plain data. Its store keeps the stack that it last ran on, empty, for the next
/// entry.
pub(crate) struct Instance {
    store: Store<State>,
    exports: Exports,
    has_stack: bool,
    /// Made when it is first needed.
    stack_return: Option<wasmtime::Func>,
}

struct Exports {
    memory: Memory,
    allocate: TypedFunc<u32, u32>,
    reseed: TypedFunc<u64, ()>,
    load: TypedFunc<(u32, u32, f64), ()>,
    invoke: TypedFunc<(u32, u32, f64), ()>,
    settle: TypedFunc<(u64, u32, u32, f64), ()>,
    release: TypedFunc<(u32, u32, f64), ()>,
    collect: TypedFunc<(), ()>,
}

/// What an entry does.
pub(crate) enum Entry {
    Invoke(Vec<u8>),
    Settle(u64, Vec<u8>),
    Release(Vec<u8>),
    Collect,
}

/// What an entry may use.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) fuel: u64,
    /// Fuel after which it yields, again and again.
    pub(crate) slice: u64,
    pub(crate) now_ms: f64,
    pub(crate) allowance: Allowance,
}

/// An entry that is over.
pub(crate) struct Done {
    /// `None`: it could not even be made.
    pub(crate) instance: Option<Box<Instance>>,
    pub(crate) fuel_left: u64,
    pub(crate) outcome: wasmtime::Result<()>,
}

/// An entry under way. Its stack is held until it is done or dropped.
pub(crate) struct Running(Pin<Box<dyn Future<Output = Done> + Send>>);

impl Running {
    /// Takes a slot of the pool, makes the instance with the random seed that it is to have, and loads the worker. All of it
    /// is sandboxed code and runs on `terms`; or the worker's snapshot is there, and takes its place.
    pub(crate) fn birth(
        sandbox: Arc<Sandbox>,
        tenant: u64,
        state: State,
        seed: u64,
        load: Arc<[u8]>,
        terms: Terms,
    ) -> Self {
        Self(Box::pin(async move {
            match sandbox.snapshots.find(tenant, &load, &terms) {
                Found::Kept(snapshot) => restore(&sandbox, state, seed, &snapshot, terms).await,
                Found::Unknown => load_afresh(&sandbox, state, seed, load, terms).await,
                Found::Wanted(key) => {
                    let mut state = state;
                    state.record_load();
                    let done = load_afresh(&sandbox, state, seed, load, terms).await;
                    let fuel = terms.fuel.saturating_sub(done.fuel_left);
                    if let (Ok(()), Some(instance)) = (&done.outcome, &done.instance)
                        && let Some(snapshot) = instance.snapshot(&sandbox, fuel).await
                    {
                        sandbox.snapshots.keep(key, snapshot);
                    }
                    done
                }
            }
        }))
    }

    /// Runs for a slice. `None`: there is more to run.
    pub(crate) fn slice(&mut self) -> Option<Done> {
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

/// Makes an instance and evaluates the worker's modules in it, after they have been transpiled where they have to be.
async fn load_afresh(
    sandbox: &Sandbox,
    state: State,
    seed: u64,
    load: Arc<[u8]>,
    terms: Terms,
) -> Done {
    let (state, load, terms) = if transpiler::is_needed(&load) {
        match transpile(sandbox, state, &load, terms).await {
            Ok(transpiled) => transpiled,
            Err(done) => return done,
        }
    } else {
        (state, load, terms)
    };
    let mut store = Store::new(&sandbox.engine, state);
    store.limiter(|state| state);
    let made = async {
        terms.set(&mut store)?;
        let exports = Exports::make(sandbox, &mut store).await?;
        exports.reseed.call_async(&mut store, seed).await?;
        wasmtime::Result::Ok(exports)
    };
    let (exports, outcome) = match made.await {
        Ok(exports) => {
            let outcome = exports.load(&mut store, &load, terms.now_ms).await;
            (Some(exports), outcome)
        }
        Err(error) => (None, Err(error)),
    };
    Done {
        fuel_left: store.get_fuel().unwrap_or(0),
        instance: exports.map(|exports| Instance::boxed(store, exports)),
        outcome,
    }
}

/// Makes an instance whose memory is that of the worker once its modules had been evaluated.
async fn restore(
    sandbox: &Sandbox,
    state: State,
    seed: u64,
    snapshot: &Snapshot,
    terms: Terms,
) -> Done {
    let mut store = Store::new(&sandbox.engine, state);
    store.limiter(|state| state);
    let restored = async {
        terms.set(&mut store)?;
        let exports = Exports::make(sandbox, &mut store).await?;
        snapshot.restore(&mut store, exports.memory)?;
        exports.reseed.call_async(&mut store, seed).await?;
        wasmtime::Result::Ok(exports)
    };
    match restored.await {
        Ok(exports) => {
            store.data().replay(snapshot, terms.now_ms);
            Done {
                fuel_left: terms.fuel.saturating_sub(snapshot.fuel()),
                instance: Some(Instance::boxed(store, exports)),
                outcome: Ok(()),
            }
        }
        Err(error) => Done {
            fuel_left: store.get_fuel().unwrap_or(0),
            instance: None,
            outcome: Err(error),
        },
    }
}

/// Transpiles a worker's modules in an instance of the transpiler's, which is gone afterwards. What is left is for the
/// guest.
async fn transpile(
    sandbox: &Sandbox,
    state: State,
    load: &[u8],
    mut terms: Terms,
) -> Result<(State, Arc<[u8]>, Terms), Done> {
    let ended = |fuel_left, outcome| Done {
        instance: None,
        fuel_left,
        outcome,
    };
    let Some(transpiler) = &sandbox.transpiler else {
        state.load_threw(&transpiler::missing());
        return Err(ended(terms.fuel, Ok(())));
    };
    let mut store = Store::new(&sandbox.engine, state);
    store.limiter(|state| state);
    let outcome = match terms.set(&mut store) {
        Ok(()) => transpiler.run(&mut store, load).await,
        Err(error) => Err(error),
    };
    terms.fuel = store.get_fuel().unwrap_or(0);
    let mut state = store.into_data();
    state.leave_instance();
    match outcome {
        Ok(Outcome::Load(load)) => Ok((state, load, terms)),
        Ok(Outcome::Threw(thrown)) => {
            state.load_threw(&thrown);
            Err(ended(terms.fuel, Ok(())))
        }
        Err(error) => Err(ended(terms.fuel, Err(error))),
    }
}

impl Instance {
    fn boxed(store: Store<State>, exports: Exports) -> Box<Self> {
        Box::new(Self {
            store,
            exports,
            has_stack: true,
            stack_return: None,
        })
    }

    /// A snapshot of the worker that has just been loaded, which burnt so much, where it can be kept.
    async fn snapshot(&self, sandbox: &Sandbox, fuel: u64) -> Option<Snapshot> {
        Snapshot::take(sandbox, &self.store, self.exports.memory, fuel).await
    }

    /// Starts an entry. It runs when it is polled.
    pub(crate) fn enter(mut self: Box<Self>, entry: Entry, terms: Terms) -> Running {
        self.has_stack = true;
        Running(Box::pin(async move {
            let outcome = match terms.set(&mut self.store) {
                Ok(()) => self.run(&entry, terms.now_ms).await,
                Err(error) => Err(error),
            };
            Done {
                fuel_left: self.store.get_fuel().unwrap_or(0),
                instance: Some(self),
                outcome,
            }
        }))
    }

    /// Whether the store keeps a stack of the pool's.
    pub(crate) fn has_stack(&self) -> bool {
        self.has_stack
    }

    /// Gives the stack back to the pool, which takes some microseconds.
    ///
    /// Wasmtime has no call for this: a store keeps the stack of an entry that ended, however it ended, except by a
    /// panic, where the stack goes straight to the pool. So an entry is made that ends by one; it runs nothing of the
    /// guest's. `tests/scheduling.rs` has more isolates than stacks, and fails where this stops working. See
    /// docs/decisions/0006-stacks-go-to-who-runs.md.
    pub(crate) fn give_back_stack(&mut self) {
        if !std::mem::take(&mut self.has_stack) {
            return;
        }
        let unwind = *self.stack_return.get_or_insert_with(|| {
            wasmtime::Func::wrap(&mut self.store, || -> () {
                // Past the panic hook: nothing has gone wrong.
                std::panic::resume_unwind(Box::new(StackReturn));
            })
        });
        let entry = std::panic::AssertUnwindSafe(|| {
            let mut call = std::pin::pin!(unwind.call_async(&mut self.store, &[], &mut []));
            let mut context = Context::from_waker(Waker::noop());
            let _ = call.as_mut().poll(&mut context);
        });
        if let Err(cause) = std::panic::catch_unwind(entry)
            && !cause.is::<StackReturn>()
        {
            std::panic::resume_unwind(cause);
        }
    }

    async fn run(&mut self, entry: &Entry, now_ms: f64) -> wasmtime::Result<()> {
        let Self { store, exports, .. } = self;
        match entry {
            Entry::Invoke(message) => {
                let (pointer, length) = exports.write(store, message).await?;
                let call = (pointer, length, now_ms);
                exports.invoke.call_async(store, call).await
            }
            Entry::Settle(operation, message) => {
                let (pointer, length) = if message.is_empty() {
                    (0, 0)
                } else {
                    exports.write(store, message).await?
                };
                let call = (*operation, pointer, length, now_ms);
                exports.settle.call_async(store, call).await
            }
            Entry::Release(message) => {
                let (pointer, length) = exports.write(store, message).await?;
                let call = (pointer, length, now_ms);
                exports.release.call_async(store, call).await
            }
            Entry::Collect => exports.collect.call_async(store, ()).await,
        }
    }
}

impl Exports {
    /// Everything that runs the guest's code is on a stack of the pool's, metered and interruptible: also a start
    /// function, which our own guest does not have.
    async fn make(sandbox: &Sandbox, store: &mut Store<State>) -> wasmtime::Result<Self> {
        let instance = sandbox.template.instantiate_async(&mut *store).await?;
        let entries = &sandbox.entries;
        let memory = instance
            .get_module_export(&mut *store, &entries.memory)
            .and_then(wasmtime::Extern::into_memory)
            .ok_or_else(|| missing("memory"))?;
        store.data_mut().set_memory(memory);
        Ok(Self {
            memory,
            allocate: function(instance, store, &entries.allocate, export::ALLOCATE)?,
            reseed: function(instance, store, &entries.reseed, export::RESEED)?,
            load: function(instance, store, &entries.load, export::LOAD)?,
            invoke: function(instance, store, &entries.invoke, export::INVOKE)?,
            settle: function(instance, store, &entries.settle, export::SETTLE)?,
            release: function(instance, store, &entries.release, export::RELEASE)?,
            collect: function(instance, store, &entries.collect, export::COLLECT)?,
        })
    }

    async fn load(
        &self,
        store: &mut Store<State>,
        message: &[u8],
        now_ms: f64,
    ) -> wasmtime::Result<()> {
        let (pointer, length) = self.write(store, message).await?;
        self.load.call_async(store, (pointer, length, now_ms)).await
    }

    /// Copies a message into a buffer of the guest's.
    async fn write(
        &self,
        store: &mut Store<State>,
        message: &[u8],
    ) -> wasmtime::Result<(u32, u32)> {
        let length = u32::try_from(message.len())?;
        let pointer = self.allocate.call_async(&mut *store, length).await?;
        if pointer == 0 {
            return Err(wasmtime::Error::msg(
                "the guest has no room for the message",
            ));
        }
        // Wherever the guest says it is: the copy is checked against the memory's bounds.
        self.memory.write(store, pointer as usize, message)?;
        Ok((pointer, length))
    }
}

/// What the entry of [`Instance::give_back_stack`] ends with.
struct StackReturn;

fn function<P: WasmParams, R: WasmResults>(
    instance: wasmtime::Instance,
    store: &mut Store<State>,
    entry: &ModuleExport,
    name: &str,
) -> wasmtime::Result<TypedFunc<P, R>> {
    instance
        .get_module_export(&mut *store, entry)
        .and_then(wasmtime::Extern::into_func)
        .ok_or_else(|| missing(name))?
        .typed(store)
}

/// Can't happen, because [`Entries::find`] has looked; but it is no reason to panic.
fn missing(name: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("the guest's export {name:?} has gone"))
}

impl Terms {
    fn set(self, store: &mut Store<State>) -> wasmtime::Result<()> {
        store.fuel_async_yield_interval(Some(self.slice))?;
        store.set_fuel(self.fuel)?;
        store
            .data_mut()
            .begin(self.fuel, self.slice, self.now_ms, self.allowance);
        Ok(())
    }
}
