//! docs/decisions/0013: objects of the snapshot are not counted, and everything else is collected as ever.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::lab::{Lab, limits, text};
use crate::support::{value, worker_with};
use coracle_value::Value;

/// Runs the body of a function in an isolate of 16 MiB.
#[track_caller]
fn run(body: &str) -> Value {
    let lab = Lab::new();
    let little = limits(|limits| {
        limits.memory_bytes_max = 16 << 20;
        limits.fuel_max = 20_000_000_000;
        limits.cpu_ms_max = 20_000;
    });
    let source = format!("export default {{ async run(x) {{ {body} }} }}");
    let isolate = lab.isolate(worker_with(&[("main.js", &source)], little));
    value(&lab.call(isolate, "run", Value::Null))
}

#[test]
fn cycles_are_collected_whatever_of_the_snapshot_they_go_through() {
    // 100 MB of cycles: among themselves, through a closure, a promise, and what only the snapshot's objects know of them.
    let cycles = "
        class Node { constructor() { this.self = this; this.load = new Uint8Array(1000) } }
        let made = 0;
        for (let round = 0; round < 20_000; round++) {
            const node = new Node(); made++;
            node.close = () => node;
            node.wait = new Promise(() => node);
            node.map = new Map([[node, node]]);
            node.made = globalThis.structuredClone({ round });
            node.proto = Object.create(Array.prototype, { node: { value: node } });
            globalThis.last = node;
            Array.prototype.last = node;
        }
        delete Array.prototype.last;
        return made";
    assert_eq!(run(cycles), Value::from(20_000));
}

#[test]
fn what_only_an_object_of_the_snapshot_refers_to_is_kept() {
    let kept = "
        Array.prototype.kept = { deep: { text: 'deep'.repeat(2) } };
        Object.defineProperty(globalThis, 'hidden', { value: () => kept, enumerable: false });
        const kept = { of: 'closure' };
        console.mine = [kept];
        const map = new WeakMap([[Object.prototype, { weak: 'yes' }]]);
        for (let round = 0; round < 200; round++) {
            const junk = [];
            for (let i = 0; i < 1000; i++) junk.push({ junk, i });
        }
        return [[].kept.deep.text, hidden().of, console.mine[0].of, map.get(Object.prototype).weak].join()";
    assert_eq!(run(kept), text("deepdeep,closure,closure,yes"));
}

#[test]
fn what_belongs_to_the_snapshot_can_be_changed_and_removed() {
    let changed = "
        const before = Object.keys(globalThis).length;
        for (let i = 0; i < 100; i++) globalThis['name' + i] = i;
        for (let i = 0; i < 100; i++) delete globalThis['name' + i];
        const { map } = Array.prototype;
        delete Array.prototype.map;
        const gone = [].map === undefined;
        Array.prototype.map = function (f) { return map.call(this, f) };
        Object.setPrototypeOf(Map.prototype, { extra: 1 });
        delete globalThis.URL;
        class Sub extends Map { get(key) { return super.get(key) + 1 } }
        return [gone, [1].map((x) => x + 1)[0], new Map().extra, typeof URL, new Sub([[1, 1]]).get(1),
            Object.keys(globalThis).length === before].join()";
    assert_eq!(run(changed), text("true,2,1,undefined,2,true"));
}

#[test]
fn a_registry_tells_of_cycles_that_were_collected() {
    let told = "
        const told = [];
        const registry = new FinalizationRegistry((name) => told.push(name));
        (() => {
            const cycle = { url: new URL('http://x/'), symbol: Symbol.for('snapshot?') };
            cycle.self = cycle;
            registry.register(cycle, 'cycle');
        })();
        for (let round = 0; round < 200 && told.length === 0; round++) {
            const junk = [];
            for (let i = 0; i < 1000; i++) junk.push({ junk, i });
            await null;
        }
        return told.join()";
    assert_eq!(run(told), text("cycle"));
}

/// The engine's tables spread keys of every kind: a Map of ten thousand costs about the same, whatever its keys are.
#[test]
fn maps_find_keys_of_every_kind_as_fast_as_strings() {
    let fuel = |key: &str| {
        let lab = Lab::new();
        let source = format!(
            "export default {{ async run() {{
                const keys = Array.from({{ length: 10_000 }}, (_, i) => {key});
                const map = new Map(keys.map((key) => [key, 1]));
                let found = 0;
                for (const key of keys) found += map.get(key);
                return found;
            }} }}"
        );
        let isolate = lab.isolate(worker_with(&[("main.js", &source)], limits(|_| {})));
        let report = lab.call(isolate, "run", Value::Null);
        assert_eq!(value(&report), Value::from(10_000), "{key}");
        report.usage.fuel_run
    };
    let strings = fuel("`key ${i}`");
    for key in [
        "i",
        "i * 4096",
        "-i",
        "i + 0.5",
        "BigInt(i)",
        "({})",
        "Symbol(i)",
    ] {
        let fuel = fuel(key);
        assert!(fuel < 2 * strings, "{key}: {fuel}, and strings {strings}");
    }
}
