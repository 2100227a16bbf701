//! The image that an executable carries, in an executable.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use std::{path::Path, process::Command};

/// What the child is told: which folder to use as its cache.
const CACHE: &str = "CORACLE_TEST_IMAGE_CACHE";

#[test]
#[ignore = "only the child process of the other test runs it"]
fn child() {
    let cache = std::env::var_os(CACHE).unwrap();
    coracle_isolate::Image::obtain(&support::guest(), Some(Path::new(&cache))).unwrap();
}

#[test]
fn an_executable_that_carries_its_image_compiles_and_caches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let carrying = folder.path().join("carrying");
    let own = std::env::current_exe().unwrap();
    support::IMAGE.append_to(&own, &carrying).unwrap();
    let child = Command::new(&carrying)
        .args(["--exact", "child", "--ignored"])
        .env(CACHE, &cache)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    assert!(
        String::from_utf8_lossy(&child.stdout).contains("1 passed"),
        "{child:?}"
    );
    assert!(!cache.exists());
}
