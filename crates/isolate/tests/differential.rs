//! What a sandbox and Node have in common, tried on numbered cases in both: the same comes of each.
//!
//! The cases are in `differential/areas.mjs`. What the two are known to differ in is left out there, with the reason.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, value, worker_with};
use coracle_isolate::Message;
use coracle_isolate::Scheduler;
use coracle_loader::Limits;
use coracle_value::{Text, Value};
use std::{collections::BTreeMap, path::Path, process::Command};

const MAIN: &str = "import { WorkerEntrypoint } from 'cloudflare:workers'; import { outcomes } from './outcomes.mjs'; \
    export default class extends WorkerEntrypoint { outcomes(...which) { return outcomes(...which); } }";
/// Cases of each area.
const COUNT: u32 = 400;
/// So many in one call, each batch in a fresh isolate.
const BATCH: u32 = 100;
/// Differences that are told.
const TOLD_MAX: usize = 20;

/// What Node says, by area.
fn in_node() -> BTreeMap<String, Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/node.mjs");
    let run = Command::new("node")
        .arg(script)
        .arg(COUNT.to_string())
        .output();
    let run = run.expect("node is installed");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let lines = String::from_utf8(run.stdout).unwrap();
    let areas = lines
        .lines()
        .map(|line| serde_json::from_str::<(String, Vec<String>)>(line).unwrap());
    areas.collect()
}

fn in_sandbox(bench: &Bench, area: &str) -> Vec<String> {
    let modules = [
        ("main.js", MAIN),
        ("outcomes.mjs", include_str!("differential/outcomes.mjs")),
        ("areas.mjs", include_str!("differential/areas.mjs")),
    ];
    let limits = Limits {
        fuel_max: 100_000_000_000,
        cpu_ms_max: 60_000,
        wall_ms_max: 600_000,
        ..Limits::default()
    };
    let mut told = Vec::new();
    for from in (0..COUNT).step_by(BATCH as usize) {
        let isolate = bench.isolate(worker_with(&modules, limits));
        let arguments = [
            Value::String(Text::from(area)),
            from.into(),
            (from + BATCH).into(),
        ];
        let report = bench.call(isolate, "outcomes", &arguments);
        let outcomes = value(&report);
        let outcomes = outcomes.as_array().unwrap().iter();
        told.extend(outcomes.map(|outcome| outcome.as_str().unwrap().to_string()));
        bench.threads().send(Message::End { isolate });
    }
    told
}

#[test]
fn a_sandbox_does_what_node_does() {
    let bench = Bench::new();
    let mut differences = Vec::new();
    let node = in_node();
    assert!(node.len() >= 25, "only {} areas", node.len());
    for (area, expected) in &node {
        let told = in_sandbox(&bench, area);
        assert_eq!(told.len(), expected.len(), "{area}");
        let differ = told
            .iter()
            .zip(expected)
            .filter(|(told, expected)| told != expected);
        let differ: Vec<_> = differ
            .map(|(told, expected)| format!("in a sandbox: {told}\n     in Node: {expected}"))
            .collect();
        // Most of them come to something.
        let thrown = expected
            .iter()
            .filter(|told| told.contains("=> throws"))
            .count();
        assert!(
            thrown < expected.len() * 9 / 10,
            "{area}: {thrown} of {}",
            expected.len()
        );
        if !differ.is_empty() {
            differences.push(format!("{area}: {} differ", differ.len()));
            differences.extend(differ.into_iter().take(TOLD_MAX));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
