//! With a fixed seed and clock the same program costs and does the same, every time and everywhere.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_isolate::{Clock, Outcome, Report};
use coracle_value::Value;
use std::{process::Command, sync::Arc, time::Duration};
use support::{Bench, worker};

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn epoch_ms(&self) -> f64 {
        1_700_000_000_000.0
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

const PROGRAM: &str = "
    import repeated from './text.cjs'; import data from './data.json';
    let calls = 0;
    export default { async run(seed) {
      calls++;
      const random = [Math.random(), crypto.randomUUID(), ...crypto.getRandomValues(new Uint32Array(4))];
      const sorted = Array.from({ length: 500 }, (_, i) => Math.sin(i * seed + Math.random())).sort((a, b) => a - b);
      const map = new Map(sorted.map((x, i) => [String(x), { i }]));
      for (let i = 0; i < 20000; i++) map.set('k' + (i % 700), i);
      const text = JSON.stringify([...map].slice(0, 200)) + repeated(seed) + data.a;
      console.log(text.length, map, random);
      const waited = await Promise.all([1, 2, 3].map((ms) => new Promise((go) => setTimeout(go, 0, ms))));
      try { null.x; } catch (error) { console.log(error); }
      return { calls, random, text: text.length, waited, now: Date.now(), sum: sorted.reduce((a, b) => a + b), copy: structuredClone(map).size };
    } };
";

fn report() -> [Report; 2] {
    let bench = Bench::with_clock(Arc::new(Still), |config| config.seed = Some(42));
    let isolate = bench.isolate(worker(&[
        ("main.js", PROGRAM),
        (
            "text.cjs",
            "module.exports = (n) => 'x'.repeat(n) + /(\\d+)-(\\w+)/.exec('12-ab').join();",
        ),
        ("data.json", "{\"a\": \"text\"}"),
    ]));
    [7, 9].map(|seed| bench.call(isolate, "run", &[Value::from(seed)]))
}

/// What must not differ: the outcome, the fuel, the memory and the logs.
fn summary(report: &Report) -> String {
    assert!(
        matches!(report.outcome, Outcome::Value(_)),
        "{:?}",
        report.outcome
    );
    let usage = &report.usage;
    format!(
        "load {} run {} memory {} in {} out {} {:?} {:?}",
        usage.fuel_load,
        usage.fuel_run,
        usage.memory_peak_bytes,
        usage.bytes_in,
        usage.bytes_out,
        report.outcome,
        report.logs
    )
}

fn summaries() -> String {
    report().iter().map(summary).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_program_costs_and_does_the_same_twice() {
    let first = summaries();
    assert_eq!(first, summaries());
    assert!(
        !first.starts_with("load 0"),
        "the first call pays for the load"
    );
}

/// What the child process prints before its summary.
const MARK: &str = "summary of a child: ";

#[test]
#[ignore = "only the other test runs it, in a child process"]
fn child() {
    println!("{MARK}{}", summaries().replace('\n', "\u{1}"));
}

#[test]
fn the_same_program_costs_and_does_the_same_in_another_process() {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own)
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let line = output.lines().find_map(|line| line.split_once(MARK));
    let (_, theirs) = line.unwrap_or_else(|| panic!("{output}"));
    assert_eq!(summaries(), theirs.replace('\u{1}', "\n"));
}

#[test]
fn another_seed_is_another_course() {
    let run = |seed: u64| {
        let bench = Bench::with_clock(Arc::new(Still), |config| config.seed = Some(seed));
        bench.eval("return [Math.random(), crypto.randomUUID()];")
    };
    assert_eq!(run(1), run(1));
    let (one, two) = (run(1), run(2));
    assert_ne!(one.index(0), two.index(0));
    assert_ne!(one.index(1), two.index(1));
}

#[test]
fn fuel_does_not_depend_on_what_else_runs() {
    let alone = summaries();
    let busy = std::thread::spawn(|| {
        let bench = Bench::new();
        for _ in 0..20 {
            bench.run("let n = 0; for (let i = 0; i < 300000; i++) n += i; return n;");
        }
    });
    assert_eq!(summaries(), alone);
    busy.join().unwrap();
}
