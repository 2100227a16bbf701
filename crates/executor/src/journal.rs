//! What a run keeps in mind of its calls, so that it can be gone on with after a pause: by another process, too.
//!
//! A program that waits for a tool is nothing but its text and what it was answered so far. A journal writes that down; the
//! program is run again later, what was answered before is answered again, in the same order and without calling anybody,
//! and what it sees of time and chance is what it saw before.

use crate::toolbox::{Output, ToolError};
use futures::future::BoxFuture;
use serde_json::Value as Json;

/// What became of a call.
pub type Outcome = Result<Output, ToolError>;

/// Writes down the calls of one run. Calls are numbered from 0 in the order in which the program makes them.
pub trait Journal: Send + Sync + 'static {
    /// What time and chance are made of in this run.
    fn beginning(&self) -> Beginning;

    /// A call comes. An answer that is known is given when those that were given before it have been.
    fn comes<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
    ) -> BoxFuture<'a, Comes>;

    /// A call needs approval, for that reason. Ready once it has it; pending, where nobody has said anything yet.
    ///
    /// # Errors
    /// It can't be written down.
    fn asks<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), ToolError>>;

    /// A call is about to be made. It is only made once that is written down.
    ///
    /// # Errors
    /// It can't be.
    fn begins<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
    ) -> BoxFuture<'a, Result<(), ToolError>>;

    /// What came of it, and when: milliseconds since 1970. It is only told once that is written down.
    ///
    /// # Errors
    /// It can't be.
    fn ends<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<u64, ToolError>>;

    /// Ready when the run is to be let go, for it waits for somebody.
    fn pauses(&self) -> BoxFuture<'_, ()>;
}

/// What time and chance are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// When the run began first: milliseconds since 1970.
    pub at_ms: u64,
    /// Of the program's random numbers, which are no secrets then.
    pub seed: [u32; 4],
}

/// What is known of a call that comes.
#[derive(Clone, Debug, PartialEq)]
pub enum Comes {
    /// Nothing: it is to be made.
    New,
    /// It was made before, and ended so, at that time.
    Known(Outcome, u64),
}
