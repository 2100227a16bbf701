//! The oracles: programs of others that say what is right.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a test without its oracle fails")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The folder in which the oracles are installed.
pub(crate) fn oracles() -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/typescript");
    let output = Command::new(tool).output().expect("tools/typescript");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tools/typescript: {said}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// What a program of Node prints, given some input.
pub(crate) fn node(arguments: &[&str], input: &[u8]) -> (bool, String) {
    let mut child = Command::new("node")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("node");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::Builder::new()
        .spawn(move || stdin.write_all(&input))
        .unwrap();
    let output = child.wait_with_output().unwrap();
    // A program that has ended reads no more.
    let _ = writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), text)
}
