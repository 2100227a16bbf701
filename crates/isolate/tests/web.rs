//! The web platform's classes in the real engine, by suites of small checks in `web/`. Each suite is the main module of a
//! worker of its own; `run` makes its checks and answers with what failed.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, value, worker};
use coracle_value::Value;

const CHECK: &str = include_str!("web/check.js");
const HOSTILE: &str = include_str!("../../guest/js/test/hostile.mjs");
const OPERATIONS: &str = include_str!("../../guest/js/test/web-operations.mjs");

/// Runs a suite, which must make at least so many checks.
fn assert_suite(source: &str, checks_min: u32) {
    let bench = Bench::new();
    let modules = [
        ("main.js", source),
        ("check.js", CHECK),
        ("hostile.js", HOSTILE),
        ("operations.js", OPERATIONS),
    ];
    let isolate = bench.isolate(worker(&modules));
    let report = bench.call(isolate, "run", &[Value::Undefined]);
    let answer = value(&report);
    let failures = answer.get("failures").unwrap().as_array().unwrap();
    assert!(failures.is_empty(), "{failures:#?}\n{:?}", report.logs);
    let checks = answer.get("checks").unwrap().as_f64().unwrap();
    assert!(checks >= f64::from(checks_min), "only {checks} checks");
}

#[test]
fn events_and_abort_signals() {
    assert_suite(include_str!("web/events.js"), 45);
}

#[test]
fn text_encoding() {
    assert_suite(include_str!("web/encoding.js"), 45);
}

#[test]
fn urls_and_their_parameters() {
    assert_suite(include_str!("web/url.js"), 60);
}

#[test]
fn patterns_of_urls() {
    assert_suite(include_str!("web/url-pattern.js"), 50);
}

#[test]
fn streams() {
    assert_suite(include_str!("web/streams.js"), 105);
}

#[test]
fn requests_responses_and_what_they_are_made_of() {
    assert_suite(include_str!("web/http.js"), 150);
}

#[test]
fn cryptography() {
    assert_suite(include_str!("web/crypto.js"), 70);
}

#[test]
fn cryptography_with_keys_in_pairs() {
    assert_suite(include_str!("web/crypto-pairs.js"), 140);
}

#[test]
fn compression_and_message_ports() {
    assert_suite(include_str!("web/messages.js"), 40);
}

#[test]
fn small_globals() {
    assert_suite(include_str!("web/globals.js"), 20);
}

#[test]
fn nothing_that_a_worker_replaces_is_called_or_seen() {
    assert_suite(include_str!("web/hostile.js"), 25);
}
