//! The border, with Wasm written by hand in QuickJS's place. Arbitrary modules are `crates/fuzz`'s.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::lab::{Lab, limits, verdict};
use crate::support::value;
use coracle_isolate::{
    Clock, Guest, Image, Machine, Sandbox, SandboxConfig, SystemClock, VerdictKind, WorkerSpec,
};
use coracle_loader::Limits;
use coracle_value::Value;
use std::{sync::Arc, time::Duration};

const SLICE: u64 = coracle_isolate::FUEL_SLICE;

/// A worker is just a length here: the guest does not read it.
fn spec(load_bytes: usize, limits: Limits) -> WorkerSpec {
    WorkerSpec {
        load: vec![7; load_bytes].into(),
        tenant: 1,
        trust: coracle_loader::Trust::Shared,
        share: coracle_isolate::TenantShare::default(),
        outbound_refusal: Some("outbound requests are denied".into()),
        logs_streamed: false,
        limits,
    }
}

/// A sandbox with this module's text in the engine's place.
fn lab_of(module: &str) -> Lab {
    let wasm = wat::parse_str(module).unwrap_or_else(|error| panic!("{error}"));
    let image = Image::compile_as_it_is(&Guest::from_wasm(wasm)).unwrap();
    let config = SandboxConfig {
        isolates_max: 4,
        running_max: 4,
        pagemap_scan: Machine::read().pagemap_scan,
        snapshots_bytes_max: 16 << 20,
    };
    Lab::with(Arc::new(Sandbox::new(config, &image).unwrap()), 1 << 30)
}

/// A guest whose parts can be replaced.
fn guest(birth: &str, allocate: &str, load: &str, invoke: &str) -> String {
    format!(
        r#"(module
          (import "coracle" "start" (func $start (param i32 i32 i32) (result i64)))
          (import "coracle" "finish" (func $finish (param i64 i32 i32 i32)))
          (import "coracle" "log" (func $log (param i32 i32 i32)))
          (import "coracle" "random" (func $random (param i32 i32)))
          (memory (export "memory") 2)
          (global $runs (mut i32) (i32.const 0))
          (func $deep (param i32) (call $deep (i32.add (local.get 0) (i32.const 1))))
          (func $spin (loop br 0))
          {birth}
          (func (export "allocate") (param i32) (result i32) {allocate})
          (func $load (export "load") (param i32 i32 f64) {load})
          (func $invoke (export "invoke") (param i32 i32 f64) {invoke})
          (func (export "settle") (param i64 i32 i32 f64))
          (func (export "release") (param i32 i32 f64))
          (func (export "collect")))"#
    )
}

const BORN: &str = "(func (export \"reseed\") (param i64))";
const ROOM: &str = "(i32.const 1024)";
const LOADED: &str = "(call $finish (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))";

#[track_caller]
fn only_verdict(lab: &Lab) -> coracle_isolate::Verdict {
    let isolate = lab.isolate(spec(
        10,
        limits(|limits| limits.startup_fuel_max = 10 * SLICE),
    ));
    let mut call = lab.call_of("anything", Value::Null);
    call.limits.fuel_max = 10 * SLICE;
    let report = lab.report(lab.send(isolate, call));
    assert!(lab.has_ended(isolate));
    lab.assert_empty();
    verdict(&report)
}

/// Start function and `reseed` are guest code like any other: metered, in slices, on a stack of the pool's.
#[test]
fn a_guest_that_hangs_or_overflows_at_its_birth_is_stopped_like_any_other() {
    for (birth, kind) in [
        (
            "(func (export \"reseed\") (param i64) (call $spin))",
            VerdictKind::Startup,
        ),
        (
            "(func (export \"reseed\") (param i64) (call $deep (i32.const 0)))",
            VerdictKind::Stack,
        ),
        (
            "(func (export \"reseed\") (param i64) unreachable)",
            VerdictKind::Trap,
        ),
        (
            "(func (export \"reseed\") (param i64) (drop (memory.grow (i32.const 60000))))",
            VerdictKind::Memory,
        ),
        (
            "(func (export \"reseed\") (param i64)) (func $born (call $spin)) (start $born)",
            VerdictKind::Startup,
        ),
        (
            "(func (export \"reseed\") (param i64)) (func $born (call $deep (i32.const 0))) (start $born)",
            VerdictKind::Stack,
        ),
        // The imports are there before the host knows the memory.
        (
            "(func (export \"reseed\") (param i64)) (func $born (call $log (i32.const 0) (i32.const 0) (i32.const 1))) (start $born)",
            VerdictKind::Trap,
        ),
        // A million host calls at birth.
        (
            "(func (export \"reseed\") (param i64) (loop (call $random (i32.const 0) (i32.const 65536)) (br 0)))",
            VerdictKind::Startup,
        ),
    ] {
        let lab = lab_of(&guest(birth, ROOM, LOADED, ""));
        let stopped = only_verdict(&lab);
        assert_eq!((stopped.kind, stopped.started), (kind, false), "{birth}");
    }
}

#[test]
fn a_guest_that_lies_about_a_load_gets_no_call_through() {
    let finish = |invocation: &str, kind: u32| {
        format!(
            "(call $finish (i64.const {invocation}) (i32.const {kind}) (i32.const 0) (i32.const 0))"
        )
    };
    for (load, kind) in [
        // Nothing said, or not of the load.
        (String::new(), VerdictKind::Hung),
        (finish("1", 0), VerdictKind::Hung),
        // A load has no value.
        (finish("0", 1), VerdictKind::Trap),
        (finish("0", 99), VerdictKind::Trap),
        // What comes first counts.
        (finish("0", 99) + LOADED, VerdictKind::Trap),
        ("(loop (call $finish (i64.const 0) (i32.const 1) (i32.const 0) (i32.const 100000)) (br 0))".into(), VerdictKind::Startup),
    ] {
        let lab = lab_of(&guest(BORN, ROOM, &load, ""));
        let stopped = only_verdict(&lab);
        assert_eq!((stopped.kind, stopped.started), (kind, false), "{load}");
    }
}

/// Finishing the call while its modules are still being evaluated would answer it twice.
#[test]
fn a_call_that_is_finished_during_the_load_is_still_made_and_answered_once() {
    // The second id that the lab gives is the call's.
    let load = format!(
        "(local i32) (call $finish (i64.const 2) (i32.const 0) (i32.const 0) (i32.const 0)) \
         (local.set 3 (i32.const 2000000)) (loop (br_if 0 (local.tee 3 (i32.sub (local.get 3) (i32.const 1))))) {LOADED}"
    );
    let invoke = "(call $finish (i64.const 2) (i32.const 0) (i32.const 0) (i32.const 0))";
    let lab = lab_of(&guest(BORN, ROOM, &load, invoke));
    let isolate = lab.isolate(spec(10, Limits::default()));
    let call = lab.call_of("anything", Value::Null);
    assert_eq!(call.invocation, 2);
    let report = lab.report(lab.send(isolate, call));
    assert_eq!(value(&report), Value::Undefined);
    assert!(report.usage.fuel_run > 0);
    lab.end(isolate);
    lab.assert_empty();
}

#[test]
fn a_buffer_outside_of_the_memory_is_a_trap_of_the_guests() {
    for pointer in ["-1", "131072", "131067", "2147483647"] {
        let lab = lab_of(&guest(BORN, &format!("(i32.const {pointer})"), LOADED, ""));
        let stopped = only_verdict(&lab);
        assert_eq!(stopped.kind, VerdictKind::Trap, "{pointer}");
    }
}

/// A timer that is further away than any clock goes.
#[test]
fn any_number_is_a_time() {
    for ms in [
        "1e300",
        "1.8e19",
        "1.8446744073709549568e22",
        "inf",
        "-inf",
        "nan",
        "-1",
        "-0",
    ] {
        let invoke = format!(
            "(f64.store (i32.const 0) (f64.const {ms})) (drop (call $start (i32.const 1) (i32.const 0) (i32.const 8)))"
        );
        let lab = lab_of(&guest(BORN, ROOM, LOADED, &invoke));
        // Late enough for the sum of the two to be more than there are seconds.
        lab.clock.pass(Duration::from_secs(10_000));
        let isolate = lab.isolate(spec(10, Limits::default()));
        let report = lab.call(isolate, "anything", Value::Null);
        let stopped = verdict(&report);
        // Either it comes at once and settles nothing, or the wall time is up before.
        assert!(
            matches!(stopped.kind, VerdictKind::Hung | VerdictKind::Wall),
            "{ms}: {stopped:?}"
        );
        assert_eq!(lab.stats().panics, 0);
        lab.end(isolate);
        lab.assert_empty();
    }
}

/// Case M23: what one isolate had in its memory, the next one in its place never sees.
#[test]
fn memory_is_clean_when_another_isolate_gets_it() {
    const PAGES: u32 = 40;
    // Looks for anything that is not zero beyond its own first page, reports what it found, and fills all of it.
    let invoke = format!(
        "(local i32 i64)
         (drop (memory.grow (i32.const {PAGES})))
         (local.set 3 (i32.const 65536))
         (loop
           (local.set 4 (i64.or (local.get 4) (i64.load (local.get 3))))
           (local.set 3 (i32.add (local.get 3) (i32.const 8)))
           (br_if 0 (i32.lt_u (local.get 3) (i32.mul (memory.size) (i32.const 65536)))))
         (memory.fill (i32.const 65536) (i32.const 0xaa) (i32.const {}))
         ;; The result is true where something was there.
         (i32.store8 (i32.const 0) (i32.add (i32.const 0xf4) (i64.ne (local.get 4) (i64.const 0))))
         (call $finish (i64.extend_i32_u (i32.load8_u (i32.const 1026))) (i32.const 1) (i32.const 0) (i32.const 1))",
        (PAGES + 1) * 65_536
    );
    let lab = lab_of(&guest(BORN, ROOM, LOADED, &invoke));
    for _ in 0..12 {
        while lab.id() < 30 {}
        let isolates = [0; 4].map(|_| {
            // Not the call's arguments: the message begins with an array's head, and the id in two bytes.
            let isolate = lab.isolate(spec(10, Limits::default()));
            let mut call = lab.call_of("anything", Value::Null);
            call.invocation = 100 + isolate % 100;
            let report = lab.report(lab.send(isolate, call));
            assert_eq!(value(&report), Value::Bool(false));
            isolate
        });
        isolates.iter().for_each(|isolate| lab.end(*isolate));
        lab.run();
    }
    lab.assert_empty();
}

/// A flood of reports costs the host no more memory than one slice of them.
#[test]
fn reports_of_what_is_over_are_thrown_away_as_they_come() {
    let invoke = "(call $finish (i64.const 2) (i32.const 0) (i32.const 0) (i32.const 0)) \
         (loop (call $finish (i64.const 2) (i32.const 1) (i32.const 0) (i32.const 100000)) (br 0))";
    let lab = lab_of(&guest(BORN, ROOM, LOADED, invoke));
    let isolate = lab.isolate(spec(10, limits(|limits| limits.fuel_max = 100 * SLICE)));
    let call = lab.call_of("anything", Value::Null);
    let report = lab.report(lab.send(isolate, call));
    assert_eq!(value(&report), Value::Undefined);
    lab.run();
    assert!(lab.has_ended(isolate));
    lab.assert_empty();
}

/// Instructions that call into the engine's runtime and come back with nothing done are priced by what the call takes.
#[test]
fn a_slice_of_calls_into_the_runtime_is_not_much_longer_than_any_other() {
    let zeros = "(i32.const 0) (i32.const 0) (i32.const 0)";
    for instruction in [
        "(drop (memory.grow (i32.const 0)))".to_owned(),
        format!("(memory.fill {zeros})"),
        format!("(memory.copy {zeros})"),
        format!("(memory.init 0 {zeros})"),
        "(drop (table.grow (ref.null func) (i32.const 0)))".into(),
        "(table.fill (i32.const 0) (ref.null func) (i32.const 0))".into(),
        format!("(table.copy {zeros})"),
        format!("(table.init 0 {zeros})"),
        "(drop (ref.func $spin))".into(),
        "(data.drop 0)".into(),
        "(elem.drop 0)".into(),
    ] {
        let birth = format!("{BORN} (table 4 funcref) (elem func $spin) (data \"some\")");
        let invoke = format!("(loop {} (br 0))", instruction.repeat(20));
        let lab = lab_of(&guest(&birth, ROOM, LOADED, &invoke));
        let isolate = lab.isolate(spec(10, limits(|limits| limits.fuel_max = 20 * SLICE)));
        let call = lab.call_of("anything", Value::Null);
        let call = lab.send(isolate, call);
        let clock = SystemClock::default();
        let mut turns = Vec::new();
        while !lab.has_report(call) {
            let start = clock.thread_cpu();
            assert!(lab.step());
            turns.push(clock.thread_cpu() - start);
        }
        turns.sort_unstable();
        let median = turns[turns.len() / 2];
        assert!(
            median < Duration::from_millis(12),
            "{instruction}: {median:?}"
        );
    }
}
