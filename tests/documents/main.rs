//! The documents say what the code says: numbers are those of the constants, and tests that are named are there.
//!
//! `CORACLE_DOCUMENTS_REWRITE=1` writes the numbers of today into `docs/limits.md`; what they mean is for people to write.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod constants;
mod guards;
mod limits;

use std::{
    fs,
    path::{Path, PathBuf},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of a row of a table, without the empty ones at its ends.
fn cells(line: &str) -> Vec<&str> {
    let row = line
        .strip_prefix("| ")
        .and_then(|row| row.strip_suffix(" |"));
    row.map_or_else(Vec::new, |row| row.split(" | ").map(str::trim).collect())
}
