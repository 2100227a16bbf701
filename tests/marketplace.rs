//! examples/marketplace: an agent's two tools over an API, and what programs try there.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use std::{
    env, fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// What the API wants to see, and no program, answer or log is to have.
const TOKEN: &str = "canary-2c86e1f0b7d94a35";

/// Runs a script with a token that it must not tell, and says what it wrote.
fn checked(script: &str, argument: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let mut options = fs::OpenOptions::new();
    let file = options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&token);
    file.unwrap().write_all(TOKEN.as_bytes()).unwrap();
    let run = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(script);
    let cache = PathBuf::from(env::var_os("CORACLE_CACHE_DIR").unwrap());
    let output = Command::new(run)
        .arg(argument)
        .env("CORACLE_BINARY", env!("CARGO_BIN_EXE_coracle"))
        .env("CORACLE_CACHE_DIR", std::path::absolute(cache).unwrap())
        .env("MARKETPLACE_TOKEN_FILE", &token)
        .output()
        .expect("the check can be started");
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{}\n{told}", output.status);
    assert!(!told.contains(TOKEN), "{told}");
    told
}

#[test]
fn the_marketplace_serves_programs_and_its_attacks_fail() {
    let told = checked("examples/marketplace/run", "check.py");
    assert!(told.contains("all is well"), "{told}");
}

/// What docs/codemode-benchmark.md measures: each job comes to the same, and leaves the same, whether tools are called one by
/// one or in a program, and no answer or log has the token.
#[test]
fn twelve_jobs_come_to_the_same_one_by_one_and_in_programs() {
    let told = checked("benches/codemode/run", "--check");
    assert!(
        told.contains("12 jobs come to the same in both ways"),
        "{told}"
    );
}
