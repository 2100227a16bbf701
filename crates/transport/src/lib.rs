//! What carries Cap'n Proto messages between client and server: the same on both ends.
//!
//! The RPC layer wants each message sent at once. Here messages are collected and written together once the thread has
//! nothing else to do, which costs a third of writing each by itself.
//!
//! The end that serves trusts its peer with nothing. What the peer makes it hold is counted in [`Holdings`]: messages
//! that it has sent and that wait, replies that it does not read, answers that it does not finish, and whatever else the
//! server keeps for it. While it has too much of something that will pass, it is not read from; where that does not
//! help, it is refused with a word, or cut off. The end that calls trusts its server not to flood it.
//!
//! Everything lives on one thread, inside a `tokio::task::LocalSet`.

#![forbid(unsafe_code)]

mod backlog;
mod frame;
mod holdings;
mod network;

pub use crate::{
    holdings::{Bounds, Everyone, Full, Held, Holdings},
    network::{Network, client_network, server_network},
};

#[cfg(test)]
mod tests;
