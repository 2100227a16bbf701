//! Hostile input, and what must be true whatever it is.
//!
//! A [`Target`] makes something hostile of bytes (a guest, a client's session, a value, a program, a URL), lets the real
//! code have it, and panics where anything is not as it must be. The same bytes are always the same input. Its tests run
//! each target for some seconds, from the seeds in `seeds/` on; `tools/fuzz` runs them by the hour; the workspace in
//! `fuzz/` hands them to libFuzzer.
//!
//! ```
//! let reached = coracle_fuzz::run("codec", b"any bytes are an input");
//! assert!(reached.count("round trip") > 0);
//! ```

mod codec;
mod explore;
mod guest;
mod javascript;
pub mod lab;
mod outbound;
mod reached;
mod rpc;
mod source;

pub use crate::{
    explore::{Explored, explore},
    javascript::{program, programs},
    reached::Reached,
    rpc::record_seeds,
    source::Source,
};

/// A kind of hostile input and its oracle.
pub struct Target {
    /// Its name, which is also that of its seeds.
    pub name: &'static str,
    /// Makes an input of these bytes and judges what becomes of it. Panics where something is wrong.
    pub run: fn(&[u8]) -> Reached,
    /// The seeds that are always run: bytes in hexadecimal, one a line.
    pub seeds: &'static str,
    /// How many numbered seeds are always run after those, so that what they reach is known.
    pub numbered: u64,
    /// What these reach at least, each in the name of something that [`Reached`] counts.
    pub reaches: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "guest",
        run: guest::run,
        seeds: include_str!("../seeds/guest.txt"),
        numbered: 300,
        reaches: guest::REACHES,
    },
    Target {
        name: "rpc",
        run: rpc::run,
        seeds: include_str!("../seeds/rpc.txt"),
        numbered: 20,
        reaches: rpc::REACHES,
    },
    Target {
        name: "codec",
        run: codec::run,
        seeds: include_str!("../seeds/codec.txt"),
        numbered: 3_000,
        reaches: codec::REACHES,
    },
    Target {
        name: "javascript",
        run: javascript::run,
        seeds: include_str!("../seeds/javascript.txt"),
        numbered: 600,
        reaches: javascript::REACHES,
    },
    Target {
        name: "outbound",
        run: outbound::run,
        seeds: include_str!("../seeds/outbound.txt"),
        numbered: 3_000,
        reaches: outbound::REACHES,
    },
];

/// The target of that name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs one input of a target.
///
/// # Panics
/// There is no target of that name, or the oracle found something.
pub fn run(name: &str, input: &[u8]) -> Reached {
    let target = target(name).unwrap_or_else(|| panic!("no target is called {name:?}"));
    (target.run)(input)
}
