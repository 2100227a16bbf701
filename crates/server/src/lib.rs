//! The Coracle server: sessions, the router between callers and isolates, and the front ends that speak to clients.
//!
//! From the inside out:
//! - [`Service`] is the heart: it feeds the loader's pure core with events and does what the core decides;
//! - [`Session`], [`Worker`] and [`Entrypoint`] are what a login yields, the same for every protocol;
//! - `capnp_front` speaks Cap'n Proto, and `capnweb_front` Cap'n Web; no type of a protocol leaves its front end;
//! - [`Server`] owns threads, listeners, the admin endpoint and the way down.
//!
//! Nothing here runs guest code or decides policy: the first is `coracle-isolate`'s, the second `coracle-loader`'s.

#![forbid(unsafe_code)]

mod admin;
mod auth;
mod capnp_front;
mod capnweb_front;
mod config;
mod host;
mod host_header;
mod in_order;
mod ledger;
mod listen;
mod loading;
mod metrics;
mod named;
mod opened;
mod outbound;
mod outcome;
mod room;
mod router;
mod server;
mod service;
mod session;
mod shared;
mod standing;
mod tables;
mod tails;
mod tree;

pub use crate::{
    admin::{Admin, AdminState, Probe},
    auth::{Tokens, TokensError},
    config::{Isolation, ServerConfig},
    ledger::{UsageLedger, UsageLine, UsageSums},
    metrics::{BuildInfo, LabelInfo, MetricInfo, Metrics},
    outcome::{Answered, CallAnswer},
    router::{Address, Export, Payload, Remote},
    server::{Server, ServerError},
    service::Service,
    session::{Entrypoint, LoadError, Session, Worker},
};
