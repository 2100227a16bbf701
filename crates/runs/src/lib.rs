//! Runs of programs that wait for somebody.
//!
//! A tool whose policy says `ask` needs somebody's approval. A [`Runs`] keeps runs in a file of SQLite: a program that calls
//! such a tool is let go, and may be gone on with by any process once somebody has approved. It is then run again from its
//! beginning, with the calls that were made before answered from the file: none is made twice, and one during which its
//! process died is not made again but fails with `outcome_unknown`. Time and chance are repeated with it, so a program comes
//! to where it was; one that calls something else than before has failed.
//!
//! The pieces: [`Store`] is the file, `journal` writes one run's calls down, `runs` begins, goes on, approves, rejects and
//! takes back.

#![forbid(unsafe_code)]

mod journal;
mod reverts;
mod runs;
mod store;

pub use reverts::{Revert, Reverted, Reverts};
pub use runs::{Paused, Progress, Runs, RunsError};
pub use store::{
    Call, CallState, Decision, RUN_BYTES_MAX, RUNS_MAX, Run, RunState, Store, StoreError,
};
