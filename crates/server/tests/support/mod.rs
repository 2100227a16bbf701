//! What a hostile client sends, and what must be true whatever it sends.
//!
//! - [`scenario`] has honest sessions, whose bytes are the seeds;
//! - [`mutation`] makes dishonest ones out of them;
//! - [`oracle`] says what must hold afterwards.

#![allow(
    unreachable_pub,
    reason = "what a module offers to its neighbours is its face here too"
)]

pub mod mutation;
pub mod oracle;
pub mod random;
pub mod scenario;
