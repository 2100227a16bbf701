//! A worker that was loaded before starts from a snapshot, and nobody can tell from anything but the time.

use super::{
    lab::{Lab, limits, sandbox, text, thrown, verdict},
    support::{Source, value, worker, worker_of, worker_with},
};
use coracle_abi::ModuleKind;
use coracle_isolate::{Clock, Report, Scheduler, VerdictKind, WorkerSpec};
use coracle_value::Value;
use std::time::Duration;

/// A laboratory with a pool of its own, so that its snapshots are its own, too.
fn lab() -> Lab {
    Lab::with(sandbox(8, 8), 1 << 30)
}

/// Calls `run` of a fresh isolate, which ends.
fn run(lab: &Lab, worker: &WorkerSpec) -> Report {
    let isolate = lab.isolate(worker.clone());
    let report = lab.call(isolate, "run", Value::Null);
    lab.end(isolate);
    lab.run();
    report
}

/// Reports of four fresh isolates of a worker, and how many of them came from a snapshot.
fn four(lab: &Lab, worker: &WorkerSpec) -> (Vec<Report>, u64) {
    let before = lab.stats().snapshot_hits;
    let reports = (0..4).map(|_| run(lab, worker)).collect();
    (reports, lab.stats().snapshot_hits - before)
}

/// All that a caller is told but the times.
fn told(report: &Report) -> String {
    let mut usage = report.usage;
    (usage.cpu_us, usage.wall_us) = (0, 0);
    let logs: Vec<_> = report
        .logs
        .iter()
        .map(|log| (log.level, &log.message, &log.arguments))
        .collect();
    format!(
        "{:?} {usage:?} {logs:?} {}",
        report.outcome, report.log_bytes_dropped
    )
}

#[track_caller]
fn assert_all_alike(reports: &[Report]) {
    for report in reports {
        assert_eq!(told(report), told(&reports[0]));
    }
}

const WORKER: &str = "
    import { double } from './double.js'; import text from './text.txt'; import data from './data.json';
    import legacy from './legacy.cjs';
    console.log('loading', { text });
    const cache = new Map([[1, 'one'], ['two', [2, { three: 3 }]]]); const pattern = /(a+)b/g; const bytes = new Uint8Array([1, 2, 3]);
    const weak = new WeakMap(); const key = {}; weak.set(key, 'kept'); const symbol = Symbol('s');
    class Counter { #n = 0; next() { return ++this.#n } }
    const counter = new Counter(); const encoder = new TextEncoder(); const url = new URL('https://a.example/b?c=d');
    const settled = await Promise.all([1, Promise.resolve(2)]);
    function* numbers() { yield 1; yield 2; } const generator = numbers(); generator.next();
    export default { async run() {
      console.warn('running', cache);
      await new Promise((go) => setTimeout(go, 5));
      return [counter.next(), double(21), text, data, legacy.name, [...cache], 'aab'.replace(pattern, '$1'), [...bytes], weak.get(key),
        symbol.toString(), [...encoder.encode('é')], url.searchParams.get('c'), settled, generator.next().value, structuredClone(cache).size,
        (await import('./later.js')).default];
    } };";

fn large() -> WorkerSpec {
    worker(&[
        ("main.js", WORKER),
        ("double.js", "export const double = (n) => n * 2;"),
        ("text.txt", "a text"),
        ("data.json", "{\"a\": [1, null]}"),
        ("legacy.cjs", "exports.name = 'legacy';"),
        ("later.js", "export default 'later';"),
    ])
}

#[test]
fn every_isolate_of_a_worker_is_like_the_first_whatever_it_was_made_from() {
    let lab = lab();
    let (reports, hits) = four(&lab, &large());
    assert_eq!(hits, 2, "the second load is kept, the third begins with it");
    assert_all_alike(&reports);
    let Value::Array(values) = value(&reports[3]) else {
        panic!("{:?}", reports[3].outcome);
    };
    assert_eq!(values[..2], [1.into(), 42.into()]);
    assert_eq!(values.last(), Some(&text("later")));
    let messages: Vec<_> = reports[3]
        .logs
        .iter()
        .map(|log| &log.message[..7])
        .collect();
    assert_eq!(messages, ["loading", "running"]);
    assert!(reports[3].usage.fuel_load > 0 && lab.stats().snapshot_bytes > 0);
    lab.assert_empty();
}

#[test]
fn what_one_isolate_does_to_its_memory_is_not_in_the_next() {
    let lab = lab();
    let worker = worker(&[(
        "main.js",
        "const seen = []; globalThis.left = []; Array.prototype.mine = 1;
         export default { run() { seen.push('marker'); left.push('marker'); Array.prototype.mine++; return [seen.length, left.length, [].mine] } };",
    )]);
    let (reports, hits) = four(&lab, &worker);
    assert_eq!(hits, 2);
    for report in reports {
        assert_eq!(
            value(&report),
            Value::Array(vec![1.into(), 1.into(), 2.into()])
        );
    }
}

#[test]
fn randomness_and_the_clock_are_each_isolates_own() {
    let lab = lab();
    let read_later = worker(&[("main.js", "export default { run: () => Date.now() };")]);
    let (reports, hits) = four(&lab, &read_later);
    assert_eq!(hits, 2);
    let first = value(&reports[0]);
    lab.clock.pass(Duration::from_secs(10));
    assert_ne!(value(&run(&lab, &read_later)), first);

    // What module scope made of the clock is of its own time, so that it is never kept.
    for expression in [
        "Date.now()",
        "new Date().getTime()",
        "Date().length && Date.now()",
        "performance.now() + performance.timeOrigin",
        "new Event('x').timeStamp + performance.timeOrigin",
    ] {
        let source = format!("const at = {expression}; export default {{ run: () => at }};");
        let worker = worker(&[("main.js", &source)]);
        for _ in 0..4 {
            let now = lab.clock.epoch_ms();
            assert_eq!(value(&run(&lab, &worker)), Value::from(now), "{expression}");
            lab.clock.pass(Duration::from_secs(1));
        }
    }
    assert_eq!(lab.stats().snapshot_hits, 3);

    let bench = super::support::Bench::new();
    let drawn = worker(&[(
        "main.js",
        "const drawn = Math.random(); export default { run: () => drawn };",
    )]);
    let draws: Vec<_> = (0..4)
        .map(|_| value(&bench.call(bench.isolate(drawn.clone()), "run", &[Value::Null])))
        .collect();
    assert!(
        draws
            .iter()
            .enumerate()
            .all(|(at, draw)| !draws[..at].contains(draw)),
        "{draws:?}"
    );
    assert_eq!(bench.threads().stats().snapshot_hits, 0);
    let random = worker(&[(
        "main.js",
        "const random = Math.random; export default { run: () => [random(), crypto.randomUUID()].join() };",
    )]);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let isolate = bench.isolate(random.clone());
        let report = bench.call(isolate, "run", &[Value::Null]);
        assert!(
            seen.insert(format!("{:?}", value(&report))),
            "the same twice"
        );
    }
    assert_eq!(bench.threads().stats().snapshot_hits, 3);
}

#[test]
fn a_snapshot_is_for_the_same_tenant_code_and_env() {
    let lab = lab();
    let source = "export default { run: (_, env) => env.name };";
    let of = |name: &str, tenant| {
        let modules = [Source {
            name: "main.js",
            kind: ModuleKind::EsModule,
            body: source.as_bytes(),
        }];
        let env = Value::Object(vec![("name".into(), name.into())]);
        WorkerSpec {
            tenant,
            ..worker_of(&modules, &env)
        }
    };
    let (reports, hits) = four(&lab, &of("a", 1));
    assert_eq!((value(&reports[3]), hits), (text("a"), 2));
    assert_eq!(value(&run(&lab, &of("b", 1))), text("b"));
    assert_eq!(value(&run(&lab, &of("a", 2))), text("a"));
    assert_eq!(lab.stats().snapshot_hits, 2);
    let (reports, hits) = four(&lab, &of("a", 2));
    assert_eq!((value(&reports[3]), hits), (text("a"), 3));
}

#[test]
fn a_load_that_fails_fails_each_time() {
    let lab = lab();
    for (source, expected) in [
        (
            "throw new RangeError('no'); export default {};",
            "RangeError",
        ),
        ("export default {", "SyntaxError"),
        (
            "await fetch('https://a.example/'); export default {};",
            "Error",
        ),
    ] {
        let (reports, hits) = four(&lab, &worker(&[("main.js", source)]));
        assert_eq!(hits, 0);
        assert_all_alike(&reports);
        assert_eq!(thrown(&reports[3]).0, expected);
    }
    let (reports, hits) = four(
        &lab,
        &worker(&[("main.js", "await new Promise(() => {});")]),
    );
    assert_eq!((verdict(&reports[3]).kind, hits), (VerdictKind::Hung, 0));
}

#[test]
fn no_verdict_depends_on_what_is_kept() {
    let lab = lab();
    let source = "let n = 0; for (let i = 0; i < 20_000; i++) n += i; const kept = new Uint8Array(8 << 20); kept.fill(7, 5_000_000, 6_000_000);
                  export default { run: () => [n, kept.length, kept[5], kept[5_500_000]] };";
    let ample = worker(&[("main.js", source)]);
    let (reports, hits) = four(&lab, &ample);
    assert_eq!(hits, 2);
    assert_all_alike(&reports);
    let fuel = reports[0].usage.fuel_load;
    let with = |change: fn(&mut coracle_loader::Limits, u64), amount| {
        worker_with(
            &[("main.js", source)],
            limits(|limits| change(limits, amount)),
        )
    };
    let startup = |fuel| with(|limits, fuel| limits.startup_fuel_max = fuel, fuel);
    assert_eq!(told(&run(&lab, &startup(fuel))), told(&reports[0]));
    assert_eq!(lab.stats().snapshot_hits, 3);
    let short = verdict(&run(&lab, &startup(fuel / 2)));
    assert_eq!((short.kind, short.limit), (VerdictKind::Startup, fuel / 2));
    let memory = reports[0].usage.memory_peak_bytes;
    let small = |bytes| with(|limits, bytes| limits.memory_bytes_max = bytes, bytes);
    assert_eq!(told(&run(&lab, &small(memory))), told(&reports[0]));
    let full = verdict(&run(&lab, &small(memory - 1)));
    assert_eq!((full.kind, full.limit), (VerdictKind::Memory, memory - 1));
    // Where the pool has no room for what the worker grew to, that is what it is told.
    let fresh = sandbox(8, 8).fresh_bytes();
    let tight = Lab::with(sandbox(8, 8), fresh + (1 << 20));
    for _ in 0..3 {
        let full = verdict(&run(&tight, &ample));
        assert_eq!(
            (full.kind, full.limit_name),
            (VerdictKind::Memory, "pool_memory_bytes_max")
        );
    }
}

#[test]
fn console_lines_are_written_again_with_the_time_of_now() {
    let lab = lab();
    let worker = worker(&[(
        "main.js",
        "console.info('one'); console.error('two'); export default { run() {} };",
    )]);
    for round in 0..4 {
        let report = run(&lab, &worker);
        let now = lab.clock.epoch_ms();
        let logs: Vec<_> = report
            .logs
            .iter()
            .map(|log| (&log.message[..], log.timestamp_ms))
            .collect();
        assert_eq!(logs, [("one", now), ("two", now)], "{round}");
        lab.clock.pass(Duration::from_secs(5));
    }
    assert_eq!(lab.stats().snapshot_hits, 2);
    // Lines that had no room had none the next time.
    let source =
        "for (let i = 0; i < 9; i++) console.log('x'.repeat(300)); export default { run() {} };";
    let chatty = worker_with(
        &[("main.js", source)],
        limits(|limits| limits.log_bytes_max = 1_000),
    );
    let (reports, hits) = four(&lab, &chatty);
    assert_all_alike(&reports);
    assert_eq!(hits, 0);
    assert!(reports[0].log_bytes_dropped > 0);
}

#[test]
fn what_is_rewritten_is_rewritten_once() {
    let lab = lab();
    let worker = worker(&[
        (
            "main.ts",
            "import { f } from './f.ts'; export default { run: (): number => f(20 as number) }; class A { constructor(private n: number) {} }",
        ),
        (
            "f.ts",
            "export function f(n: number): number { return n + 1 } export function bad(): never { throw new Error('x') }",
        ),
    ]);
    let (reports, hits) = four(&lab, &worker);
    assert_eq!((value(&reports[3]), hits), (21.into(), 2));
    assert_all_alike(&reports);
}
