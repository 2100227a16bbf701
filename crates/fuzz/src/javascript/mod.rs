//! Programs that nobody honest writes, in the real sandbox, under limits that are small: what comes of each call is a value,
//! an exception or a verdict that a worker can bring about; no more is used than may be; the host lives and nothing is left;
//! and the same program does and costs the same twice.

mod grammar;
mod judge;

use crate::{
    Reached, Source,
    lab::{Lab, worker},
};
use coracle_abi::{External, Kind};
use coracle_isolate::{
    Aftermath, Answer, Bytes, FUEL_SLICE, Form, Message, Outcome, Report, Thrown, Verdict,
    VerdictKind,
};
use coracle_loader::Limits;
use coracle_value::Value;
use std::time::Duration;

pub(crate) const REACHES: &[&str] = &[
    "value",
    "threw",
    "threw during load",
    "log",
    "aftermath",
    "called",
    "fuel",
    "cpu",
    "startup",
    "wall",
    "memory",
    "subrequests",
    "result_size",
    "value_depth",
    "hung",
    "cancelled",
    "isolate_lost",
];

/// The source of a program that a hostile worker may have.
#[must_use]
pub fn program(source: &mut Source<'_>) -> String {
    grammar::program(source)
}

/// Small honest programs, each with its name: the body of `run(arg, env, ctx)`.
pub fn programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = include_str!("../../programs.txt").split("\n--- ").skip(1);
    parts.filter_map(|part| part.split_once('\n'))
}

/// What a call came to.
#[derive(Debug, PartialEq)]
struct Called {
    limits: Limits,
    report: Report,
    aftermaths: Vec<Aftermath>,
}

/// What time a slice takes.
#[derive(Clone, Copy)]
struct Pace {
    cpu: Duration,
    wall: Duration,
}

pub(crate) fn run(input: &[u8]) -> Reached {
    let mut source = Source::new(input);
    let text = program(&mut source);
    let mut reached = Reached::default();
    let first = history(&text, source.clone(), &mut reached);
    let second = history(&text, source, &mut Reached::default());
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first, second, "the same does not happen twice:\n{text}");
    }
    assert_eq!(first.len(), second.len());
    reached
}

/// Loads the program and calls it a few times. The choices say how; with the same ones the same happens.
fn history(text: &str, mut source: Source<'_>, reached: &mut Reached) -> Vec<Called> {
    let lab = Lab::new();
    let pace = pace(&mut source);
    lab.clock.set_a_slice(pace.cpu, pace.wall);
    let widest = limits(&mut source);
    let mut isolate = lab.isolate(worker(text, widest));
    let mut sent = Vec::new();
    for _ in 0..1 + source.below(4) {
        // Whoever serves workers does so, too.
        if lab.has_ended(isolate) {
            isolate = lab.isolate(worker(text, widest));
        }
        let limits = limits(&mut source);
        let invocation = lab.call(isolate, call(&lab, limits, &mut source));
        sent.push((invocation, lower_of(&limits, &widest)));
        for _ in 0..source.pick(&[0, 1, 20, 1_000]) {
            lab.step();
        }
        if source.once_in(10) {
            lab.send(Message::Cancel {
                isolate,
                invocation,
            });
        }
        if source.once_in(10) {
            lab.send(Message::Collect { isolate });
        }
        answer(&lab, &mut source, reached);
    }
    // To the end of everything that ends, with answers to whatever it calls.
    loop {
        while lab.step() {}
        if !answer(&lab, &mut source, reached) && !lab.run_to_alarm() {
            break;
        }
    }
    let called: Vec<Called> = sent
        .into_iter()
        .map(|(invocation, limits)| {
            assert!(
                !lab.is_held(invocation),
                "{invocation} is held for ever:\n{text}"
            );
            Called {
                limits,
                report: lab.report(invocation),
                aftermaths: lab.aftermaths(invocation),
            }
        })
        .collect();
    assert_eq!(lab.stats().calls, 0);
    lab.send(Message::End { isolate });
    while lab.step() {}
    let left = lab.stats();
    assert!(left.is_empty(), "{left:?} is left:\n{text}");
    for called in &called {
        judge::within_limits(called, &widest, pace).unwrap_or_else(|wrong| {
            panic!("{wrong}\n{called:?}\n{text}");
        });
        judge::note(called, reached);
    }
    called
}

fn lower_of(limits: &Limits, widest: &Limits) -> Limits {
    let mut lower = *limits;
    for name in coracle_loader::LimitName::ALL {
        lower.set(name, limits.get(name).min(widest.get(name)));
    }
    lower
}

/// Time passes while code runs, or only while it waits. Where it passes without CPU time, a turn would have no end.
fn pace(source: &mut Source<'_>) -> Pace {
    let (cpu, wall) = source.pick(&[(100, 100), (100, 0), (0, 0), (1_100, 1_100)]);
    Pace {
        cpu: Duration::from_micros(cpu),
        wall: Duration::from_micros(wall),
    }
}

/// Mostly wide enough for something to happen, each of them small now and then.
fn limits(source: &mut Source<'_>) -> Limits {
    let mut any = |wide: u64, small: &[u64]| match source.once_in(5) {
        true => source.pick(small),
        false => wide,
    };
    Limits {
        fuel_max: any(
            100 * FUEL_SLICE,
            &[FUEL_SLICE / 9, FUEL_SLICE, 300 * FUEL_SLICE + 7],
        ),
        startup_fuel_max: any(
            30 * FUEL_SLICE,
            &[FUEL_SLICE / 9, FUEL_SLICE, 100 * FUEL_SLICE],
        ),
        cpu_ms_max: any(1_000, &[1, 5, 20]),
        wall_ms_max: any(30_000, &[1, 20, 1_000]),
        // A guest at its birth has six.
        memory_bytes_max: any(32 << 20, &[1 << 20, 7 << 20, 8 << 20, 64 << 20]),
        result_bytes_max: any(32 << 20, &[0, 1, 100, 10_000]),
        log_bytes_max: any(256 << 10, &[0, 1, 100, 2_000]),
        subrequests_max: any(256, &[0, 1, 5]),
        subrequests_in_flight_max: any(32, &[1, 2]),
        subrequest_ms_max: any(25_000, &[0, 1, 20]),
        value_depth_max: any(512, &[1, 3, 20]),
        exports_max: any(10_000, &[0, 1, 4]),
        ..Limits::default()
    }
}

/// A call of the default entrypoint, mostly of `run`, with an object that can be called as its argument.
fn call(lab: &Lab, limits: Limits, source: &mut Source<'_>) -> coracle_isolate::Call {
    let peer = Value::object([("peer", Value::External(0))]);
    let method = source.pick(&[
        "run",
        "run",
        "run",
        "run",
        "surprise",
        "stream",
        "constructor",
    ]);
    let mut call = lab.call_of(method, vec![peer], limits);
    call.args.externals = vec![External::Import(1, Kind::Target)];
    call.result_form = source.pick(&[Form::Cbor, Form::Cbor, Form::Json]);
    call
}

/// Answers what the isolate has called so far, or leaves it waiting; false where there was nothing.
fn answer(lab: &Lab, source: &mut Source<'_>, reached: &mut Reached) -> bool {
    let called = lab.take_called();
    for outward in &called {
        reached.note("called");
        let data = |value: &Value| Bytes::data(Form::Cbor, coracle_value::encode(value));
        let answer = match source.below(8) {
            0 => continue,
            1 => Answer::Failed("the peer is gone".into()),
            2 => Answer::Outcome(Outcome::Threw(Box::new(thrown()))),
            3 => Answer::Outcome(Outcome::Verdict(Verdict::without_limit(
                VerdictKind::Hung,
                true,
            ))),
            4 => Answer::Outcome(Outcome::Value(Bytes {
                externals: vec![External::Import(lab.id(), Kind::Target)],
                ..data(&Value::External(0))
            })),
            // What it sent, as it came.
            5 if outward.call.args.externals.is_empty() => {
                Answer::Outcome(Outcome::Value(outward.call.args.clone()))
            }
            _ => Answer::Outcome(Outcome::Value(data(&Value::from(1)))),
        };
        lab.send(Message::Settle {
            isolate: outward.isolate,
            operation: outward.operation,
            answer: Box::new(answer),
        });
    }
    !called.is_empty()
}

fn thrown() -> Thrown {
    Thrown {
        name: "TypeError".into(),
        message: "the peer refuses".into(),
        stack: String::new(),
        module: String::new(),
        line: 0,
        column: 0,
        value: Vec::new(),
        during_load: false,
    }
}
