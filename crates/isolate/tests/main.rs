//! What an isolate does, from the outside: the host's side of the border, and the guest behind it.
//!
//! One program, since each would link the engine for itself. What looks at its whole process (`determinism`, `growth`,
//! `image`, `stretches`) is apart.

#[path = "support/lab.rs"]
mod lab;
mod support;

mod border;
mod calls;
mod collection;
mod config;
mod console;
mod differential;
mod engine_guard;
mod entrypoints;
mod errors;
mod globals;
mod holds;
mod limits;
mod modules;
mod programs;
mod scheduling;
mod snapshots;
mod values;
mod verdicts;
mod web;
