//! An arbitrary Wasm module in QuickJS's place: nothing that a guest does breaks the host, reaches another isolate, or goes
//! beyond its limits; every call is answered once, and nothing is left.

mod history;
mod module;

use crate::{Reached, Source};

pub(crate) const REACHES: &[&str] = &[
    "value",
    "threw",
    "honest",
    "log",
    // Verdicts.
    "fuel:",
    "cpu:",
    "startup:",
    "wall:",
    "memory:",
    "stack:",
    "subrequests:",
    "timers:",
    "result_size:",
    "value_depth:",
    "hung:",
    "cancelled:",
    "isolate_lost:",
    // Details of traps.
    "are outside of the guest's memory",
    "which does not exist",
    "is no number",
    "random bytes at once",
    "outcome that does not exist",
    "a way that can't be read",
    "uses a loader in a way",
    "no room for the message",
    "out of bounds",
    "unreachable",
];

pub(crate) fn run(input: &[u8]) -> Reached {
    let mut source = Source::new(input);
    let choices = source.split();
    history::run(&module::module(source), choices)
}
