//! The events: what a tail is told, as values.

use super::{
    encoding::{Event, Writer},
    http,
    trace::{Ending, Trace, now_ms},
};
use coracle_isolate::{CallAccess, Log, LogLevel, Outcome, Thrown, Usage, Verdict, VerdictKind};
use coracle_outbound::Record;
use coracle_value::{Bounds, Value};

/// Nesting of a value that was written to the console.
const ARGUMENT_DEPTH_MAX: usize = 64;

/// Everything of an invocation that is over.
pub(super) fn finished(trace: &Trace, ending: &Ending) -> Event {
    let report = &ending.report;
    let after = ending.aftermath.as_ref();
    let usage = together(&report.usage, after.map(|after| &after.usage));
    let logs: Vec<&Log> = report
        .logs
        .iter()
        .chain(after.iter().flat_map(|after| &after.logs))
        .collect();
    let dropped = report.log_bytes_dropped + after.map_or(0, |after| after.log_bytes_dropped);
    let exception = trace
        .exception(&report.outcome)
        .map(|thrown| thrown_value(thrown, ending));
    let (records, is_truncated) = trace.take_outbound();
    let mut event = Writer::default();
    event.properties([
        ("wallTime", number(usage.wall_us / 1_000)),
        ("cpuTime", number(usage.cpu_us / 1_000)),
        ("executionModel", "stateless".into()),
        ("outcome", outcome_name(trace, ending).into()),
        ("scriptName", Value::Null),
        ("entrypoint", (&*trace.entrypoint).into()),
        ("diagnosticsChannelEvents", Value::Array(Vec::new())),
        ("exceptions", Value::Array(exception.into_iter().collect())),
        ("eventTimestamp", Value::Number(trace.begun_ms)),
        ("event", what(trace, Some(&report.outcome))),
        ("verdict", verdict_value(ending.verdict())),
        ("usage", usage_value(&usage)),
        (
            "outbound",
            Value::Array(records.iter().map(record_value).collect()),
        ),
    ]);
    event.property("logs");
    event.array(logs.len());
    for log in logs {
        event.map(LOG_PROPERTIES);
        write_log(&mut event, log);
    }
    event.into_event(dropped > 0 || is_truncated)
}

/// An invocation has begun.
pub(super) fn onset(trace: &Trace) -> Event {
    let event = Value::object([
        ("type", Value::from("onset")),
        ("executionModel", "stateless".into()),
        ("entrypoint", (&*trace.entrypoint).into()),
        ("info", what(trace, None)),
    ]);
    streamed(trace, trace.begun_ms, |writer| writer.value(&event))
}

pub(super) fn log(trace: &Trace, log: &Log) -> Event {
    streamed(trace, log.timestamp_ms, |writer| {
        writer.map(LOG_PROPERTIES + 1);
        writer.key("type");
        writer.value(&"log".into());
        write_log(writer, log);
    })
}

/// A request of the invocation's is over.
pub(super) fn outbound(trace: &Trace, record: &Record) -> Event {
    let mut event = record_value(record);
    if let Value::Object(properties) = &mut event {
        properties.insert(0, ("type".into(), "outbound".into()));
    }
    streamed(trace, now_ms(), |writer| writer.value(&event))
}

/// What became of a request.
fn record_value(record: &Record) -> Value {
    Value::object([
        ("kind", Value::from(record.kind.as_str())),
        ("method", (&*record.method).into()),
        ("destination", (&*record.destination).into()),
        ("hop", record.hop.into()),
        ("judge", record.judge.as_str().into()),
        ("decision", record.decision.as_str().into()),
        ("rule", (&*record.rule).into()),
        ("credential", (&*record.credential).into()),
        ("status", u32::from(record.status).into()),
        ("error", record.error.into()),
        ("bytesSent", number(record.bytes_sent)),
        ("bytesReceived", number(record.bytes_received)),
        ("redactions", number(record.redactions)),
        ("durationMicros", number(record.duration.as_micros() as u64)),
    ])
}

/// An invocation is over: the exception, where there is one, and the outcome.
pub(super) fn outcome(trace: &Trace, ending: &Ending) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(thrown) = trace.exception(&ending.report.outcome)
        && let Value::Object(mut event) = thrown_value(thrown, ending)
    {
        event.insert(0, ("type".into(), "exception".into()));
        let event = Value::Object(event);
        events.push(streamed(trace, ending.ended_ms, |writer| {
            writer.value(&event)
        }));
    }
    let after = ending.aftermath.as_ref();
    let usage = together(&ending.report.usage, after.map(|after| &after.usage));
    let event = Value::object([
        ("type", Value::from("outcome")),
        ("outcome", outcome_name(trace, ending).into()),
        ("cpuTime", number(usage.cpu_us / 1_000)),
        ("wallTime", number(usage.wall_us / 1_000)),
        ("verdict", verdict_value(ending.verdict())),
        ("usage", usage_value(&usage)),
    ]);
    events.push(streamed(trace, ending.ended_ms, |writer| {
        writer.value(&event)
    }));
    events
}

fn streamed(trace: &Trace, timestamp_ms: f64, write: impl FnOnce(&mut Writer)) -> Event {
    let mut event = Writer::default();
    event.properties([
        ("invocation", Value::from(trace.invocation.to_string())),
        ("sequence", number(trace.next())),
        ("timestamp", Value::Number(timestamp_ms)),
    ]);
    event.property("event");
    write(&mut event);
    event.into_event(false)
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
    match trace.exception(&ending.report.outcome) {
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

/// Properties of a log.
const LOG_PROPERTIES: u64 = 3;

fn write_log(writer: &mut Writer, log: &Log) {
    let level = match log.level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Log => "log",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    writer.key("level");
    writer.value(&level.into());
    writer.key("message");
    write_message(writer, log);
    writer.key("timestamp");
    writer.value(&Value::Number(log.timestamp_ms));
}

/// What was written, as values; as one text where the guest has given none, or none that can be read. They stay
/// encoded: as a tree they may be many times as large.
fn write_message(writer: &mut Writer, log: &Log) {
    let bounds = Bounds {
        depth_max: ARGUMENT_DEPTH_MAX,
        ..Bounds::default()
    };
    let is_right = |argument: &Vec<u8>| coracle_value::validate(argument, &bounds).is_ok();
    if log.arguments.is_empty() || !log.arguments.iter().all(is_right) {
        writer.array(1);
        return writer.value(&(&log.message[..]).into());
    }
    writer.array(log.arguments.len());
    for argument in &log.arguments {
        writer.encoded(argument);
    }
}

fn verdict_value(verdict: Option<&Verdict>) -> Value {
    let Some(verdict) = verdict else {
        return Value::Null;
    };
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
