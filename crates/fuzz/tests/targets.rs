//! Each target for some seconds: the seeds that are kept, numbered ones, and then others, the same each time.
//!
//! `CORACLE_FUZZ_SECONDS` sets another time (default: 12 for each), and new ones each time.

use coracle_fuzz::{explore, target};
use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

fn run(name: &str) {
    let (seconds, seed) = match std::env::var("CORACLE_FUZZ_SECONDS") {
        Ok(text) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.expect("it is later than 1970").as_nanos() as u64;
            (text.parse().expect("CORACLE_FUZZ_SECONDS is a number"), now)
        }
        Err(_) => (12, 1),
    };
    let target = target(name).expect("a target");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let explored = explore(target, Duration::from_secs(seconds), seed, folder);
    println!(
        "{name}: {} executions in {} s of CPU time",
        explored.executions,
        explored.cpu.as_secs()
    );
    let missed: Vec<_> = target
        .reaches
        .iter()
        .filter(|name| explored.reached.count(name) == 0)
        .collect();
    assert!(
        missed.is_empty(),
        "not reached: {missed:?} of {:#?}",
        explored.reached
    );
}

/// Whatever stands in the engine's place does not break the host, another isolate or a limit.
#[test]
fn guest() {
    run("guest");
}

/// Whatever a client sends, the server goes on and keeps nothing of it.
#[test]
fn rpc() {
    run("rpc");
}

/// Whatever the bytes are, they are a value or are refused, and all readers agree.
#[test]
fn codec() {
    run("codec");
}

/// Whatever a program does, it stays within its limits and ends in a way that programs may.
#[test]
fn javascript() {
    run("javascript");
}

/// However a destination or a policy is written, it is judged by the one thing that it means.
#[test]
fn outbound() {
    run("outbound");
}

/// Writes the sessions of `seeds/rpc` anew from honest clients.
#[test]
#[ignore = "changes the tree; run it when the schema has changed"]
fn record_the_sessions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/rpc");
    coracle_fuzz::record_seeds(&folder).expect("the sessions are written");
}
