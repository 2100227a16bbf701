//! Code Mode and the Model Context Protocol, both ways.
//!
//! As a server: whatever the number of tools behind it, a model is shown two: `search`, which finds and describes them, and
//! `execute`, which runs a program that calls them (or one or two others, see [`Mode`]). The list of the two is at most
//! [`TOKENS_MAX`] tokens. The peer is whoever started the process, or whoever comes to its address and is admitted; what it
//! passes on is a model's: every text is bounded, and what a program does is a result, never an error of the protocol.
//!
//! As a client: an [`McpProvider`] has the tools of another server, which is a stranger.

#![forbid(unsafe_code)]

mod answer;
mod listen;
mod server;
mod tools;
mod upstream;

pub use listen::{Admits, ListenOptions, PATH};
pub use server::{CodeServer, ServeError};
pub use tools::{Mode, TOKENS_MAX};
pub use upstream::{McpProvider, McpProviderError, McpServer, ProcessConfig};
