//! The pure core of Coracle's loader: what can be decided without doing anything.
//!
//! Four parts, each usable without the others:
//!
//! - [`limits`]: the one table of limits, with defaults and ceilings; a request can only lower
//!   them.
//! - [`code`]: everything that can be found wrong with a worker's code before it runs, all of it at
//!   once.
//! - [`core`]: admission, placement, eviction, quotas and drain as `(state, event) -> effects`.
//! - [`trust`]: which tenants may share a process, and when that ends.
//!
//! Nothing here reads a clock, opens a file, starts a thread or waits, so the same events always
//! give the same effects; `clippy.toml` and `tests/purity.rs` hold it to that. [`code`] takes text
//! and bytes from strangers and trusts none of them. [`core`] takes events from the server itself:
//! it never panics on an event out of place, and ignores it.
//!
//! ```
//! use coracle_loader::{Core, CoreConfig, Effect, Event, TenantPolicy};
//!
//! let mut core = Core::new(CoreConfig::default());
//! let tenant = core.allocate_tenant(TenantPolicy::default());
//! let session = core.allocate_session();
//! let (worker, call) = (core.allocate_worker(), core.allocate_call());
//! let mut effects = Vec::new();
//! let (now_ms, wait_ms_max) = (0, 30_000);
//! core.on_event(now_ms, Event::SessionOpened { session, tenant }, &mut effects);
//! core.on_event(now_ms, Event::WorkerLoaded { worker, session }, &mut effects);
//! core.on_event(now_ms, Event::CallArrived { call, worker, wait_ms_max }, &mut effects);
//! assert!(matches!(effects[..], [Effect::StartIsolate { .. }, Effect::Dispatch { .. }]));
//! ```
#![forbid(unsafe_code)]

pub mod code;
pub mod core;
pub mod limits;
pub mod trust;

pub use crate::code::{
    COMPATIBILITY_DATE_NEWEST, COMPATIBILITY_FLAGS, Encoded, Form, MODULE_NAME_BYTES_MAX,
    MODULES_MAX, Module, ModuleBody, Outbound, PROBLEMS_MAX, PolicyAsked, Problem, ProblemCode,
    Problems, WorkerCode, check, resolve_specifier,
};
pub use crate::core::{
    CORE_CONFIG_SPECS, CallId, Core, CoreConfig, CoreConfigSpec, Effect, EndCause, Event, Gauges,
    IsolateId, LossCause, Quota, Refusal, SessionId, Tenancy, TenancyError, TenantId, TenantPolicy,
    Trust, WEIGHT_MAX, WorkerId, core_config_table_markdown,
};
pub use crate::limits::{
    LIMIT_SPECS, LimitName, LimitNameUnknown, LimitSpec, LimitValueInvalid, Limits, LimitsRequest,
    limits_table_markdown,
};
pub use crate::trust::{CordonKey, Sign, Suspicions};
