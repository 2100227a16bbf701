//! What came of a call, for programs: the document that `run --json` writes. Its names are those of
//! `CallResults` in schema/coracle.capnp.

use crate::{exit::Exit, failure::Failure, json};
use coracle_client::{Answer, LogLine, Outcome, Thrown, Usage, Value, Verdict};

/// The answer as one JSON document, and the exit code that goes with it. A value that JSON can't
/// express stands there as the reason why, `valueNotJson`.
pub(crate) fn of_answer(answer: Answer) -> (Value, Exit) {
    let (name, outcome, exit) = match answer.outcome {
        Outcome::Value(value) => match json::text_of(&value) {
            Ok(_) => ("value", defined(value), Exit::Ok),
            Err(error) => ("valueNotJson", error.to_string().into(), Exit::Threw),
        },
        Outcome::Threw(thrown) => ("threw", of_thrown(*thrown), Exit::Threw),
        Outcome::Verdict(verdict) => ("verdict", of_verdict(*verdict), Exit::Stopped),
    };
    let document = Value::object([
        ("outcome", Value::object([(name, outcome)])),
        ("usage", of_usage(&answer.usage)),
        (
            "logs",
            Value::array(answer.logs.into_iter().map(of_log_line)),
        ),
        ("logBytesDropped", number(answer.log_bytes_dropped)),
    ]);
    (document, exit)
}

/// The text of a document made here, with a line feed at its end.
///
/// # Errors
/// When a value in it is nested as deep as values may be; what is around it is too much then.
pub(crate) fn text(document: &Value, pretty: bool) -> Result<String, Failure> {
    let compact = json::text_of(document)
        .map_err(|error| Failure::usage(format!("the document can't be written: {error}")))?;
    let text = if pretty {
        json::pretty(&compact)
    } else {
        compact
    };
    Ok(text + "\n")
}

/// Counts are far below where a double loses digits.
pub(crate) fn number(number: u64) -> Value {
    Value::Number(number as f64)
}

fn of_thrown(thrown: Thrown) -> Value {
    let mut properties = vec![
        ("name", thrown.name.into()),
        ("message", thrown.message.into()),
        ("stack", thrown.stack.into()),
        ("module", thrown.module.into()),
        ("line", thrown.line.into()),
        ("column", thrown.column.into()),
        ("duringLoad", thrown.during_load.into()),
    ];
    if json::text_of(&thrown.value).is_ok() {
        properties.push(("value", defined(thrown.value)));
    }
    Value::object(properties)
}

fn of_verdict(verdict: Verdict) -> Value {
    Value::object([
        ("kind", verdict.kind.into()),
        ("limitName", verdict.limit_name.into()),
        ("used", number(verdict.used)),
        ("limit", number(verdict.limit)),
        ("message", verdict.message.into()),
        ("started", verdict.started.into()),
        ("subrequestsSent", verdict.subrequests_sent.into()),
    ])
}

fn of_usage(usage: &Usage) -> Value {
    Value::object([
        ("fuelLoad", number(usage.fuel_load)),
        ("fuelRun", number(usage.fuel_run)),
        ("fuelSchedule", usage.fuel_schedule.into()),
        ("cpuMicros", number(usage.cpu_micros)),
        ("wallMicros", number(usage.wall_micros)),
        ("memoryPeakBytes", number(usage.memory_peak_bytes)),
        ("memoryDenied", usage.memory_denied.into()),
        ("subrequests", usage.subrequests.into()),
        ("bytesIn", number(usage.bytes_in)),
        ("bytesOut", number(usage.bytes_out)),
        ("isolateReused", usage.isolate_reused.into()),
    ])
}

fn of_log_line(line: LogLine) -> Value {
    Value::object([
        ("level", Value::from(line.level.as_str())),
        ("message", line.message.into()),
        ("timestampMs", line.timestamp_ms.into()),
    ])
}

/// `undefined` would be left out of an object.
fn defined(value: Value) -> Value {
    if value.is_undefined() {
        Value::Null
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_text(outcome: Outcome) -> String {
        let answer = Answer {
            externals: Vec::new(),
            outcome,
            usage: Usage::default(),
            logs: Vec::new(),
            log_bytes_dropped: 0,
        };
        let (document, _) = of_answer(answer);
        json::text_of(document.get("outcome").expect("always")).expect("made for it")
    }

    #[test]
    fn a_value_stands_there_as_json_stringify_writes_it() {
        assert_eq!(
            outcome_text(Outcome::Value(Value::Undefined)),
            r#"{"value":null}"#
        );
        assert_eq!(
            outcome_text(Outcome::Value(Value::Date(0.0))),
            r#"{"value":"1970-01-01T00:00:00.000Z"}"#
        );
    }

    #[test]
    fn a_value_that_json_can_not_express_says_where_it_is() {
        let value = Value::object([("a", Value::from(u64::MAX))]);
        assert_eq!(
            outcome_text(Outcome::Value(value)),
            r#"{"valueNotJson":"bigint at $.a can't be json"}"#
        );
    }

    #[test]
    fn what_was_thrown_is_left_out_where_json_can_not_express_it() {
        let thrown = |value| {
            let thrown = Thrown {
                name: "E".into(),
                value,
                ..Thrown::default()
            };
            outcome_text(Outcome::Threw(Box::new(thrown)))
        };
        assert!(thrown(Value::from("x")).ends_with(r#""duringLoad":false,"value":"x"}}"#));
        assert!(thrown(Value::from(u64::MAX)).ends_with(r#""duringLoad":false}}"#));
    }
}
