//! The events: what a tail is told, as values.

use super::{
    http,
    trace::{Ending, Trace},
};
use coracle_isolate::{CallAccess, Log, LogLevel, Outcome, Thrown, Usage, Verdict, VerdictKind};
use coracle_value::{Bounds, Value};

/// What an event takes besides its texts.
const EVENT_BYTES: usize = 1_000;
/// Nesting of a value that was written to the console.
const ARGUMENT_DEPTH_MAX: usize = 64;

/// An event and about how many bytes it has.
type Sized = (Value, usize);

/// Everything of an invocation that is over.
pub(super) fn finished(trace: &Trace, ending: &Ending) -> Sized {
    let report = &ending.report;
    let after = ending.aftermath.as_ref();
    let usage = together(&report.usage, after.map(|after| &after.usage));
    let logs = report.logs.iter();
    let logs: Vec<&Log> = logs
        .chain(after.iter().flat_map(|after| &after.logs))
        .collect();
    let bytes: usize = logs.iter().map(|log| log.bytes() + 100).sum();
    let dropped = report.log_bytes_dropped + after.map_or(0, |after| after.log_bytes_dropped);
    let exception = exception(trace, &report.outcome).map(|thrown| thrown_value(thrown, ending));
    let event = Value::object([
        ("wallTime", number(usage.wall_us / 1_000)),
        ("cpuTime", number(usage.cpu_us / 1_000)),
        ("truncated", Value::from(dropped > 0)),
        ("executionModel", "stateless".into()),
        ("outcome", outcome_name(trace, ending).into()),
        ("scriptName", Value::Null),
        ("entrypoint", (&*trace.entrypoint).into()),
        ("diagnosticsChannelEvents", Value::Array(Vec::new())),
        ("exceptions", Value::Array(exception.into_iter().collect())),
        (
            "logs",
            Value::Array(logs.into_iter().map(log_value).collect()),
        ),
        ("eventTimestamp", Value::Number(trace.begun_ms)),
        ("event", what(trace, Some(&report.outcome))),
        (
            "verdict",
            ending.verdict().map_or(Value::Null, verdict_value),
        ),
        ("usage", usage_value(&usage)),
    ]);
    (event, bytes + EVENT_BYTES)
}

/// An invocation has begun.
pub(super) fn onset(trace: &Trace) -> Sized {
    streamed(
        trace,
        trace.begun_ms,
        Value::object([
            ("type", Value::from("onset")),
            ("executionModel", "stateless".into()),
            ("entrypoint", (&*trace.entrypoint).into()),
            ("info", what(trace, None)),
        ]),
        0,
    )
}

pub(super) fn log(trace: &Trace, log: &Log) -> Sized {
    let Value::Object(mut event) = log_value(log) else {
        return (Value::Undefined, 0);
    };
    event.insert(0, ("type".into(), "log".into()));
    streamed(trace, log.timestamp_ms, Value::Object(event), log.bytes())
}

/// An invocation is over: the exception, where there is one, and the outcome.
pub(super) fn outcome(trace: &Trace, ending: &Ending) -> Vec<Sized> {
    let mut events = Vec::new();
    if let Some(thrown) = exception(trace, &ending.report.outcome)
        && let Value::Object(mut event) = thrown_value(thrown, ending)
    {
        event.insert(0, ("type".into(), "exception".into()));
        events.push(streamed(trace, ending.ended_ms, Value::Object(event), 0));
    }
    let after = ending.aftermath.as_ref();
    let usage = together(&ending.report.usage, after.map(|after| &after.usage));
    let event = Value::object([
        ("type", Value::from("outcome")),
        ("outcome", outcome_name(trace, ending).into()),
        ("cpuTime", number(usage.cpu_us / 1_000)),
        ("wallTime", number(usage.wall_us / 1_000)),
        (
            "verdict",
            ending.verdict().map_or(Value::Null, verdict_value),
        ),
        ("usage", usage_value(&usage)),
    ]);
    events.push(streamed(trace, ending.ended_ms, event, 0));
    events
}

fn streamed(trace: &Trace, timestamp_ms: f64, event: Value, bytes: usize) -> Sized {
    let event = Value::object([
        ("invocation", Value::from(trace.invocation.to_string())),
        ("sequence", number(trace.next())),
        ("timestamp", Value::Number(timestamp_ms)),
        ("event", event),
        ("truncated", false.into()),
    ]);
    (event, bytes + EVENT_BYTES)
}

/// An array of events, each of which has its shared objects numbered from 0.
pub(super) fn array_of(mut events: Vec<Value>) -> Value {
    let mut shared = 0;
    for event in &mut events {
        shared = renumber(event, shared);
    }
    Value::Array(events)
}

/// What was called.
fn what(trace: &Trace, outcome: Option<&Outcome>) -> Value {
    if trace.access == CallAccess::Ready {
        return Value::Null;
    }
    let request = trace.request.as_deref().and_then(http::request);
    match request {
        Some(request) if trace.is_fetch() => {
            let status = match outcome {
                Some(Outcome::Value(value)) => http::status(&value.bytes),
                _ => None,
            };
            let mut event = vec![("request".into(), request)];
            if let Some(status) = status {
                let response = Value::object([("status", number(status.into()))]);
                event.push(("response".into(), response));
            }
            Value::Object(event)
        }
        _ => Value::object([("rpcMethod", Value::from(trace.path.join(".")))]),
    }
}

/// What a handler of `fetch`, or module scope, has thrown. What a method throws was delivered to its caller, and is no failure
/// of the worker's.
fn exception<'a>(trace: &Trace, outcome: &'a Outcome) -> Option<&'a Thrown> {
    match outcome {
        Outcome::Threw(thrown) if trace.is_fetch() || thrown.during_load => Some(thrown),
        _ => None,
    }
}

fn outcome_name(trace: &Trace, ending: &Ending) -> &'static str {
    if let Some(verdict) = ending.verdict() {
        return match verdict.kind {
            VerdictKind::Fuel | VerdictKind::Cpu | VerdictKind::Startup => "exceededCpu",
            VerdictKind::Memory => "exceededMemory",
            VerdictKind::Wall => "exceededWallTime",
            VerdictKind::Cancelled | VerdictKind::IsolateEvicted => "canceled",
            VerdictKind::IsolateLost | VerdictKind::Trap => "internalError",
            VerdictKind::Stack
            | VerdictKind::Subrequests
            | VerdictKind::Timers
            | VerdictKind::Exports
            | VerdictKind::ArgsSize
            | VerdictKind::ResultSize
            | VerdictKind::ValueDepth
            | VerdictKind::Hung => "exception",
        };
    }
    match exception(trace, &ending.report.outcome) {
        Some(_) => "exception",
        None => "ok",
    }
}

fn thrown_value(thrown: &Thrown, ending: &Ending) -> Value {
    Value::object([
        ("timestamp", Value::Number(ending.ended_ms)),
        ("name", (&thrown.name[..]).into()),
        ("message", (&thrown.message[..]).into()),
        ("stack", (&thrown.stack[..]).into()),
    ])
}

fn log_value(log: &Log) -> Value {
    let level = match log.level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Log => "log",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    Value::object([
        ("level", Value::from(level)),
        ("message", arguments(log)),
        ("timestamp", Value::Number(log.timestamp_ms)),
    ])
}

/// What was written, as values; as one text where the guest has given none, or none that can be read.
fn arguments(log: &Log) -> Value {
    let bounds = Bounds {
        depth_max: ARGUMENT_DEPTH_MAX,
        ..Bounds::default()
    };
    let decoded = log.arguments.iter();
    let decoded: Result<Vec<Value>, _> = decoded
        .map(|argument| coracle_value::decode(argument, &bounds))
        .collect();
    match decoded {
        Ok(arguments) if !arguments.is_empty() => array_of(arguments),
        _ => Value::Array(vec![(&log.message[..]).into()]),
    }
}

/// Gives the shared objects of a value, which are numbered from 0, numbers from `first`; answers the next one. As deep as
/// an event, which is bounded.
fn renumber(value: &mut Value, first: u32) -> u32 {
    fn walk(value: &mut Value, first: u32, next: &mut u32) {
        match value {
            Value::Interface(_, content) => walk(content, first, next),
            Value::Shared(inner) => {
                *next += 1;
                walk(inner, first, next);
            }
            Value::Reference(number) => *number += first,
            Value::Array(members) | Value::Set(members) => {
                members
                    .iter_mut()
                    .for_each(|member| walk(member, first, next));
            }
            Value::Object(properties) => {
                properties
                    .iter_mut()
                    .for_each(|(_, value)| walk(value, first, next));
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    walk(key, first, next);
                    walk(value, first, next);
                }
            }
            Value::Error(error) => {
                let own = error.props.iter_mut().map(|(_, value)| value);
                let named = error.cause.iter_mut().chain(error.errors.iter_mut());
                named.chain(own).for_each(|value| walk(value, first, next));
            }
            _ => {}
        }
    }
    let mut next = first;
    walk(value, first, &mut next);
    next
}

fn verdict_value(verdict: &Verdict) -> Value {
    Value::object([
        ("kind", Value::from(verdict.kind.as_str())),
        ("limitName", verdict.limit_name.into()),
        ("used", number(verdict.used)),
        ("limit", number(verdict.limit)),
    ])
}

fn usage_value(usage: &Usage) -> Value {
    Value::object([
        ("fuelLoad", number(usage.fuel_load)),
        ("fuelRun", number(usage.fuel_run)),
        ("cpuMicros", number(usage.cpu_us)),
        ("wallMicros", number(usage.wall_us)),
        ("memoryPeakBytes", number(usage.memory_peak_bytes)),
        ("memoryDenied", number(usage.memory_denied.into())),
        ("subrequests", number(usage.subrequests.into())),
        ("bytesIn", number(usage.bytes_in)),
        ("bytesOut", number(usage.bytes_out)),
        ("isolateReused", usage.isolate_reused.into()),
    ])
}

fn together(usage: &Usage, after: Option<&Usage>) -> Usage {
    let Some(after) = after else {
        return *usage;
    };
    Usage {
        fuel_load: usage.fuel_load + after.fuel_load,
        fuel_run: usage.fuel_run + after.fuel_run,
        cpu_us: usage.cpu_us + after.cpu_us,
        wall_us: usage.wall_us + after.wall_us,
        memory_peak_bytes: usage.memory_peak_bytes.max(after.memory_peak_bytes),
        memory_denied: usage.memory_denied + after.memory_denied,
        subrequests: usage.subrequests + after.subrequests,
        ..*usage
    }
}

fn number(number: u64) -> Value {
    Value::Number(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(value: Value) -> Value {
        Value::Shared(Box::new(value))
    }

    #[test]
    fn values_with_shared_objects_can_stand_beside_each_other() {
        let one = || Value::Array(vec![shared(Value::object([("a", 1)])), Value::Reference(0)]);
        let both = array_of(vec![one(), one()]);
        let bytes = coracle_value::encode(&both);
        assert_eq!(
            coracle_value::decode(&bytes, &Bounds::default()).ok(),
            Some(both.clone())
        );
        let second = both.index(1).and_then(|second| second.index(1)).cloned();
        assert_eq!(second, Some(Value::Reference(1)));
    }
}
