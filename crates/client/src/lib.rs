//! The Rust client of Coracle: load workers, call their entrypoints, over a socket or with the server inside.
//!
//! It reads like the Workers documentation. Loading a worker and getting an entrypoint answer at once, without waiting
//! for the server: together with the first call they travel in one round trip.
//!
//! ```no_run
//! use coracle_client::{Coracle, ConnectOptions, WorkerCode, args};
//!
//! # async fn example() -> Result<(), coracle_client::Error> {
//! let coracle = Coracle::connect("127.0.0.1:7070", ConnectOptions::default()).await?;
//! let worker = coracle.load(
//!     WorkerCode::new("main.js").es_module("main.js", "export default { double(n) { return n * 2; } }"),
//! );
//! let value = worker.entrypoint("default").call("double", args![21]).await?.value()?;
//! assert_eq!(value.as_f64(), Some(42.0));
//! # Ok(())
//! # }
//! ```
//!
//! [`Coracle::function`] and [`Coracle::serve`] hand functions and objects of this process to workers; what workers give
//! out comes back as [`Stub`]s in a [`Payload`].
//!
//! The feature `embedded`, on by default, adds `Coracle::embedded`, which runs the server in this process. It brings
//! Wasmtime along; a client over a socket does without: `default-features = false`.
//!
//! Handles can be cloned and sent between threads. Dropping the last handle on a worker and its entrypoints lets the
//! server end its isolate; dropping the call's future cancels the call.
//!
//! The client trusts the server to be who it connected to, and nothing that it sends: a malformed answer is an error.

#![forbid(unsafe_code)]

mod answer;
mod code;
mod code_source;
mod connection;
mod convert;
mod error;
mod handles;
mod http;
mod streams;
mod stubs;

pub use crate::{
    answer::{Answer, LogLevel, LogLine, Outcome, Thrown, Usage, Verdict},
    code::{
        EntrypointOptions, GetOptions, Limits, ModuleBody, Narrowed, NarrowedBy, Outbound,
        WorkerCode,
    },
    connection::ConnectOptions,
    error::{Error, LimitUnknown},
    handles::{Coracle, Entrypoint, Worker},
    http::{Body, Headers, Request, Response},
    streams::{ByteSink, ByteStream},
    stubs::{Kind, Payload, Stub, Target},
};
pub use coracle_schema::{Address, AddressError};
pub use coracle_value::{Interface, Value};

/// Makes a list of arguments: `args![1, "two", value]`.
#[macro_export]
macro_rules! args {
    ($($argument:expr),* $(,)?) => { vec![$($crate::Value::from($argument)),*] };
}
