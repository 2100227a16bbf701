//! A client in C++, from the schema alone: Cap'n Proto's own implementation at the other end.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use std::{
    path::{Path, PathBuf},
    process::Command,
};
use support::Server;

const WANTED: &str = "capnproto, libcapnp-dev and g++: `tools/setup test` installs them";

#[tokio::test]
async fn a_client_in_cpp_gets_what_the_schema_promises() {
    let server = Server::start();
    let client = tokio::task::spawn_blocking(build).await.unwrap();
    let mut run = Command::new(client);
    run.arg(server.address());
    let told = tokio::task::spawn_blocking(move || told(&mut run))
        .await
        .unwrap();
    assert_eq!(told, "passed\n");
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    server.is_empty().await;
}

/// Compiles the client with what the schema's compiler makes of the schema.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpp");
    std::fs::create_dir_all(&folder).unwrap();
    told(
        Command::new("capnp")
            .current_dir(root.join("schema"))
            .arg("compile")
            .arg(format!("-oc++:{}", folder.display()))
            .arg("coracle.capnp"),
    );
    let client = folder.join("client");
    told(
        Command::new("g++")
            .args(["-std=c++17", "-Wall", "-Werror", "-pthread", "-I"])
            .arg(&folder)
            .arg(root.join("tests/cpp/client.cpp"))
            .arg(folder.join("coracle.capnp.c++"))
            .args(["-lcapnp-rpc", "-lcapnp", "-lkj-async", "-lkj", "-o"])
            .arg(&client),
    );
    client
}

/// What a command says, which has to succeed.
fn told(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; this test needs {WANTED}"));
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{told}\nThis test needs {WANTED}.",
        output.status
    );
    told
}
