//! The server as its clients see it: the real binary in a process of its own, over a real socket.
//!
//! One program, since each would be linked for itself. Apart are the tests that fill the machine or look at the clock
//! (`cordons`, `fairness`, `faults`, `hostile_guests`, `pressure`), tables of cases, and what needs another language.

mod support;

mod bad_amounts;
mod bad_references;
mod capabilities;
mod disposers;
mod drain;
mod generated_code;
mod get;
mod hostile_peers;
mod hostile_stubs;
mod lifetimes;
mod loader;
mod login;
mod mistakes;
mod outbound;
mod outbound_connections;
mod outbound_policy;
mod outbound_records;
mod ownership;
mod pipelining;
mod prometheus;
mod snapshots;
mod streams;
mod tails;
mod usage;
