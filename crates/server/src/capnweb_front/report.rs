//! What calls come back with: results, errors, verdicts, and what they cost.

use super::{client::Client, convert, object::Object, rejection::Rejection};
use crate::outcome::Answered;
use coracle_capnweb::{Outcome as WebOutcome, Payload as WebPayload};
use coracle_isolate::{FUEL_SCHEDULE, LogLevel, Outcome, Report, Usage, Verdict};
use coracle_value::{ErrorValue, Value, encode};
use std::rc::Rc;

/// A call's outcome. Of one that was stopped the error has the `verdict`, and the `usage` with it.
pub(super) fn outcome(
    client: &Rc<Client>,
    answered: Answered,
) -> Result<WebOutcome<Object>, Rejection> {
    let Answered { report, externals } = answered;
    let Report { outcome, usage, .. } = *report;
    Ok(match outcome {
        Outcome::Value(bytes) => {
            let externals = externals
                .into_iter()
                .map(|address| client.offer(address))
                .collect::<Result<_, _>>()?;
            WebOutcome::Value(WebPayload {
                bytes: convert::cbor(bytes.form, bytes.bytes)?,
                externals,
            })
        }
        Outcome::Threw(thrown) => threw(&convert::thrown_by_worker(&thrown)),
        Outcome::Verdict(verdict) => threw(&stopped(&verdict, &usage)),
    })
}

fn threw(value: &Value) -> WebOutcome<Object> {
    WebOutcome::Threw(WebPayload::of(value))
}

/// The error of a call that was stopped.
fn stopped(verdict: &Verdict, usage: &Usage) -> Value {
    let mut error = ErrorValue::new("Error", verdict.message());
    error.props.push(("verdict".into(), verdict_value(verdict)));
    error.props.push(("usage".into(), usage_value(usage)));
    Value::Error(Box::new(error))
}

/// Everything that is known of a call: `value`, `error` or `verdict`, with `usage` and `logs`.
pub(super) fn whole(
    client: &Rc<Client>,
    answered: Answered,
) -> Result<WebOutcome<Object>, Rejection> {
    let Answered { report, externals } = answered;
    let Report {
        outcome,
        usage,
        logs,
        log_bytes_dropped,
    } = *report;
    let (name, value, externals) = match outcome {
        Outcome::Value(bytes) => {
            let bytes = convert::cbor(bytes.form, bytes.bytes)?;
            let value = convert::read(&bytes, externals.len())?;
            ("value", value, externals)
        }
        Outcome::Threw(thrown) => ("error", convert::thrown_by_worker(&thrown), Vec::new()),
        Outcome::Verdict(verdict) => ("verdict", verdict_value(&verdict), Vec::new()),
    };
    let logs = logs.iter().map(|log| {
        let level = match log.level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Log => "log",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        Value::object([
            ("level", Value::from(level)),
            ("message", Value::from(&log.message[..])),
            ("timestamp", Value::from(log.timestamp_ms)),
        ])
    });
    let whole = Value::object([
        (name, value),
        ("usage", usage_value(&usage)),
        ("logs", Value::Array(logs.collect())),
        ("logBytesDropped", number(log_bytes_dropped)),
    ]);
    let externals = externals
        .into_iter()
        .map(|address| client.offer(address))
        .collect::<Result<_, _>>()?;
    Ok(WebOutcome::Value(WebPayload {
        bytes: encode(&whole),
        externals,
    }))
}

fn verdict_value(verdict: &Verdict) -> Value {
    Value::object([
        ("kind", Value::from(verdict.kind.as_str())),
        ("limitName", Value::from(verdict.limit_name)),
        ("used", number(verdict.used)),
        ("limit", number(verdict.limit)),
        ("message", Value::from(verdict.message())),
        ("started", Value::from(verdict.started)),
        ("subrequestsSent", number(verdict.subrequests_sent.into())),
    ])
}

fn usage_value(usage: &Usage) -> Value {
    Value::object([
        ("fuelLoad", number(usage.fuel_load)),
        ("fuelRun", number(usage.fuel_run)),
        ("fuelSchedule", number(FUEL_SCHEDULE.into())),
        ("cpuMicros", number(usage.cpu_us)),
        ("wallMicros", number(usage.wall_us)),
        ("memoryPeakBytes", number(usage.memory_peak_bytes)),
        ("memoryDenied", number(usage.memory_denied.into())),
        ("subrequests", number(usage.subrequests.into())),
        ("bytesIn", number(usage.bytes_in)),
        ("bytesOut", number(usage.bytes_out)),
        ("isolateReused", Value::from(usage.isolate_reused)),
    ])
}

fn number(number: u64) -> Value {
    Value::from(number as f64)
}
