//! Clients in Python: one that knows the schema and nothing of ours, and the package.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use std::{path::Path, process::Command};
use support::Server;

#[tokio::test]
async fn a_client_in_python_gets_all_that_the_schema_promises() {
    let server = Server::start();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/run");
    let mut client = Command::new("python3");
    client.arg(run).args([
        "--address",
        server.address(),
        "--admin",
        &server.admin().to_string(),
    ]);
    let output = tokio::task::spawn_blocking(move || client.output())
        .await
        .unwrap()
        .expect("python3 can be started");
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{}\n{told}", output.status);
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    server.is_empty().await;
}

#[test]
fn the_package_passes_its_own_tests_from_its_wheel() {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python/check");
    let output = Command::new(check)
        .arg(env!("CARGO_BIN_EXE_coracle"))
        .output()
        .expect("the check can be started");
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{}\n{told}", output.status);
}
