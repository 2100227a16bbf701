//! The Cap'n Web front end: HTTP and WebSockets on one side, sessions on the other.
//!
//! `coracle-capnweb` speaks the protocol and does no I/O; `driver` does what it says, `object` is what clients find. Everything
//! here lives on one RPC thread. No type of the protocol leaves this front end.
//!
//! A panic in what a client has asked for is an error of that call; in the protocol it is the end of that connection.

mod batch;
mod client;
mod code;
mod convert;
mod driver;
mod http;
mod object;
mod outbox;
mod rejection;
mod remotes;
mod report;
mod socket;
mod stream;

pub(crate) use self::http::{WebPolicy, serve};
