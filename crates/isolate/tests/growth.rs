//! Case M21: isolates that come and go leave nothing in the process. A file of its own, so that no other test allocates
//! meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

#[path = "support/lab.rs"]
mod lab;
mod support;

use coracle_isolate::Outcome;
use coracle_value::Value;
use lab::{Lab, limits};
use support::worker_with;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn ten_thousand_isolates_one_after_the_other_leave_the_process_as_large_as_it_was() {
    let lab = Lab::new();
    let little = limits(|limits| {
        limits.memory_bytes_max = 8 << 20;
        limits.fuel_max = 30_000_000;
    });
    let bodies = [
        "return x",
        "console.log('x'.repeat(1000)); await new Promise((done) => setTimeout(done, 1)); return x",
        "throw new Error('no')",
        "const all = []; for (;;) all.push(new Uint8Array(1e5))",
        "(function f() { f() })()",
        "setTimeout(() => {}, 1e6); return 'x'.repeat(1e4)",
    ];
    let round = |count: usize| {
        for number in 0..count {
            let source = format!(
                "export default {{ async run(x) {{ {} }} }} // {number}",
                bodies[number % bodies.len()]
            );
            let isolate = lab.isolate(worker_with(&[("main.js", &source)], little));
            let report = lab.call(isolate, "run", Value::from(1));
            assert!(!matches!(
                &report.outcome,
                Outcome::Verdict(verdict) if verdict.kind == coracle_isolate::VerdictKind::Trap
            ));
            lab.end(isolate);
            lab.run();
            // What the test itself keeps is not the isolates'.
            lab.seen.take();
        }
        resident_kib()
    };
    // The same workers again and again, until as many snapshots are kept as may be.
    let warm = [(); 3].map(|()| round(1_000))[2];
    let after = round(10_000);
    lab.assert_empty();
    assert!(
        after <= warm + warm / 20,
        "{warm} KiB after a thousand, {after} KiB after ten thousand more"
    );
}
