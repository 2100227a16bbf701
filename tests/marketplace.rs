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

#[test]
fn the_marketplace_serves_programs_and_its_attacks_fail() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let mut options = fs::OpenOptions::new();
    let file = options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&token);
    file.unwrap().write_all(TOKEN.as_bytes()).unwrap();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/marketplace/run");
    let cache = PathBuf::from(env::var_os("CORACLE_CACHE_DIR").unwrap());
    let output = Command::new(run)
        .arg("check.py")
        .env("CORACLE_BINARY", env!("CARGO_BIN_EXE_coracle"))
        .env("CORACLE_CACHE_DIR", std::path::absolute(cache).unwrap())
        .env("MARKETPLACE_TOKEN_FILE", &token)
        .output()
        .expect("the check can be started");
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{}\n{told}", output.status);
    assert!(told.contains("all is well"), "{told}");
    assert!(!told.contains(TOKEN), "{told}");
}
