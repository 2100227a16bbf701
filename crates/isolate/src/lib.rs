//! Isolates: one live instance of the guest running one worker, under Wasmtime, with limits, slices and verdicts.
//!
//! The crate owns the sandbox's boundary. It takes bytes in ([`Message`]) and gives bytes out ([`Event`]); it knows
//! nothing of RPC, HTTP or capabilities, so that the same messages can go to a thread or to another process.
//! Everything that comes out of a guest is taken as hostile: QuickJS is C and is assumed to be broken by the code that
//! it runs. This is the only host crate with `unsafe` in it.
//!
//! From the outside in:
//! - [`Threads`] is the [`Scheduler`] that runs isolates in slices on threads of its own; [`Stepper`] is the one
//!   without threads, for simulation and measuring;
//! - an `Actor` is one isolate with its mailbox, invocations and budgets, driven a slice at a time;
//! - an `Instance` is the Wasm side of it: store, exports, imports;
//! - a `Transpiler` makes JavaScript of TypeScript in a sandbox of its own, before the instance is there;
//! - `Snapshots` keep what workers that were loaded before had become once their modules were evaluated;
//! - an [`Image`] is the compiled snapshot that instances are made from, and [`Sandbox`] the engine that holds it.

mod actor;
mod border;
mod clock;
mod fuel;
mod image;
mod instance;
mod invocation;
mod loading;
mod machine;
mod message;
mod pool_memory;
mod random;
mod sandbox;
mod scheduler;
mod snapshots;
mod transpiler;
mod verdict;
mod wire;

pub use coracle_abi::ChildOutbound;

pub use crate::{
    clock::{Clock, SystemClock},
    fuel::{FUEL_SCHEDULE, SLICE as FUEL_SLICE},
    image::{
        CPU_BASELINE, Guest, HandedDown, Image, ImageError, QUICKJS_VERSION, WASMTIME_VERSION,
    },
    loading::{Child, ChildEntrypoint, Loading, load_message},
    machine::{DoesNotFit, Machine, Plan},
    message::{
        Aftermath, Answer, Bytes, Call, CallAccess, Event, External, Form, Kind, Log, LogLevel,
        Message, Outcome, OutwardCall, Report, TenantShare, Thrown, Usage, Verdict, VerdictKind,
        WorkerSpec,
    },
    pool_memory::PoolMemory,
    sandbox::{Sandbox, SandboxConfig, SandboxError},
    scheduler::{
        Health, Scheduler, Stats, Stepper, StepperConfig, TenantUsage, Threads, ThreadsConfig,
        deliver_at_rest, delivers_at_rest,
    },
};
