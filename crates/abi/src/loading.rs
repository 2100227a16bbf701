//! The messages with which a guest loads workers.
//!
//! What they make is an import whose number follows from the operation's id ([`import_of`]), so that a guest may use it
//! before anything has happened: loading a worker, getting its entrypoint and calling it are one hop.

use crate::{Encoded, External, Module, Thrown, bounded};
use minicbor::{Decode, Encode};

/// The first number of an import that follows from an operation. Those that the host gives out stay far below, and all
/// numbers below twice that are exact in JavaScript.
pub const IMPORTS_MADE_MIN: u64 = 1 << 52;

/// The import that an operation makes.
#[must_use]
pub const fn import_of(operation: u64) -> u64 {
    IMPORTS_MADE_MIN + operation
}

/// Compatibility flags that one worker may list.
pub const FLAGS_MAX: usize = 1_000;

/// Tails that one worker may have.
pub const TAILS_MAX: usize = 16;

/// Bytes that the name of an entrypoint, and the id of a worker, may have.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Bytes of the `props` of an entrypoint.
pub const PROPS_BYTES_MAX: usize = 1 << 20;

/// The newest compatibility date that is known.
pub const COMPATIBILITY_DATE_NEWEST: &str = "2026-11-24";

/// The compatibility flags that are accepted, in alphabetical order.
///
/// They are those of workerd's that code commonly sends along and that ask for what holds here anyway or for what is
/// refused clearly where it is used (`node:` modules).
pub const COMPATIBILITY_FLAGS: [&str; 14] = [
    "enable_ctx_exports",
    "export_commonjs_default",
    "formdata_parser_supports_files",
    "global_fetch_strictly_public",
    "global_navigator",
    "nodejs_als",
    "nodejs_compat",
    "nodejs_compat_populate_process_env",
    "nodejs_compat_v2",
    "rpc",
    "streams_enable_constructors",
    "transformstream_enable_standard_constructor",
    "url_standard",
    "urlsearchparams_delete_has_value_arg",
];

/// A worker that a guest loads.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Child<'a> {
    /// The loader: an import that the guest holds.
    #[n(0)]
    pub loader: u64,
    /// The [`Get`] for which the worker is provided; 0 for none.
    #[n(1)]
    pub get: u64,
    /// `YYYY-MM-DD`.
    #[b(2)]
    pub compatibility_date: &'a str,
    /// At most [`FLAGS_MAX`].
    #[cbor(b(3), decode_with = "bounded::flags")]
    pub compatibility_flags: Vec<&'a str>,
    /// The module whose exports are the entrypoints.
    #[b(4)]
    pub main_module: &'a str,
    /// All modules, the main one among them.
    #[cbor(b(5), decode_with = "bounded::modules")]
    pub modules: Vec<Module<'a>>,
    /// An object, or undefined.
    #[b(6)]
    pub env: Encoded<'a>,
    /// Where its requests go.
    #[n(7)]
    pub outbound: ChildOutbound,
    /// What is told of its invocations; at most [`TAILS_MAX`].
    #[cbor(n(8), decode_with = "bounded::tails")]
    pub tails: Vec<External>,
    /// What it asks for.
    #[n(9)]
    pub limits: ChildLimits,
}

/// Where the requests of a worker go that a guest loads.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ChildOutbound {
    /// Wherever the requests of the worker go that loads it.
    #[n(0)]
    Inherit,
    /// Nowhere.
    #[n(1)]
    None,
    /// To something that is called for each.
    #[n(2)]
    Gateway(#[n(0)] External),
}

/// Limits that a guest asks for; 0 for none. They can only lower what holds for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ChildLimits {
    /// `cpu_ms_max`.
    #[n(0)]
    pub cpu_ms: u32,
    /// `subrequests_max`.
    #[n(1)]
    pub subrequests: u32,
}

/// An entrypoint of a worker that the guest has loaded.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct ChildEntrypoint<'a> {
    /// The import of the worker.
    #[n(0)]
    pub worker: u64,
    /// The export of its main module; at most [`NAME_BYTES_MAX`] bytes.
    #[b(1)]
    pub name: &'a str,
    /// `ctx.props`: an object, or undefined.
    #[b(2)]
    pub props: Encoded<'a>,
    /// Lower limits for calls through this entrypoint.
    #[n(3)]
    pub limits: ChildLimits,
}

/// The worker that has an id. Settled with [`Answer::Worker`](crate::Answer::Worker), with
/// [`Answer::Provide`](crate::Answer::Provide), or with why there is none.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Get<'a> {
    /// The loader: an import that the guest holds.
    #[n(0)]
    pub loader: u64,
    /// At most [`NAME_BYTES_MAX`] bytes.
    #[b(1)]
    pub id: &'a str,
}

/// The worker could not be provided that the guest was asked for.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct NotProvided {
    /// The [`Get`].
    #[n(0)]
    pub get: u64,
    /// Why.
    #[n(1)]
    pub thrown: Thrown,
}
