//! The crate stays pure: the second net beside clippy.toml, for paths that a list of methods can't
//! name.

#![allow(
    clippy::disallowed_methods,
    reason = "this test reads the sources that it checks"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// What no source of the library mentions, tests excepted.
const FORBIDDEN: [&str; 15] = [
    "std::fs",
    "std::io",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::sync",
    "std::time",
    "std::os",
    "RandomState",
    "SystemTime",
    "Instant",
    "async fn",
    ".await",
    "unsafe {",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of the sources") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn no_source_mentions_clocks_threads_files_or_the_network() {
    let mut found = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert!(found.len() > 10, "{found:?}");
    for path in found {
        let source = fs::read_to_string(&path).unwrap();
        for word in FORBIDDEN {
            assert!(!source.contains(word), "{} mentions {word}", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_forbidden() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    assert!(lib.contains("#![forbid(unsafe_code)]"));
}
