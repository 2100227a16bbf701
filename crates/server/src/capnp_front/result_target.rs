//! `Target` on the result of a call, for those who pipeline into it.
//!
//! After an exception or a verdict it answers everything with the same outcome. A value is plain data: its properties
//! can be read, there is nothing in it to call yet.

use super::{Connected, convert, guarded};
use capnp::Error;
use coracle_isolate::{Bytes, Form, Outcome, Report, Thrown};
use coracle_schema::{self as schema, call_results, target};
use coracle_transport::Held;
use coracle_value::{Bounds, Value};
use std::rc::Rc;

/// Answers a call with its report. It is refused where a client leaves so much of what it is told unread, or holds on
/// to so much, that there is no room for more.
pub(super) fn answer_report(
    connected: &Rc<Connected>,
    report: Report,
    mut results: call_results::Builder<'_>,
) -> Result<(), Error> {
    let held = connected.hold(outcome_bytes(&report.outcome))?;
    convert::write_report(&report, results.reborrow());
    let pipeline = ResultServer {
        connected: Rc::clone(connected),
        outcome: report.outcome,
        _held: held,
    };
    results.set_pipeline(capnp_rpc::new_client(pipeline));
    Ok(())
}

fn outcome_bytes(outcome: &Outcome) -> u64 {
    let bytes = match outcome {
        Outcome::Value(bytes) => bytes.bytes.len(),
        Outcome::Threw(thrown) => thrown.message.len() + thrown.stack.len() + thrown.value.len(),
        Outcome::Verdict(verdict) => verdict.detail.len(),
    };
    bytes as u64
}

struct ResultServer {
    connected: Rc<Connected>,
    outcome: Outcome,
    _held: Held,
}

impl ResultServer {
    /// What reading `path` of the result comes to.
    fn read_at(&self, path: &[String], form: schema::Form) -> Outcome {
        let Outcome::Value(bytes) = &self.outcome else {
            return self.outcome.clone();
        };
        match read(bytes, path) {
            Ok(value) => encode(&value, form),
            Err(name) => not_implemented(&name),
        }
    }

    fn call_at(&self, path: &[String]) -> Outcome {
        let Outcome::Value(bytes) = &self.outcome else {
            return self.outcome.clone();
        };
        match (read(bytes, path), path.last()) {
            (Ok(_), Some(name)) => type_error(format!("\"{name}\" is not a function.")),
            (Ok(_), None) => type_error("the result is not a function.".into()),
            (Err(name), _) => not_implemented(&name),
        }
    }
}

/// The value at `path`, or the name in it that is not there.
fn read(bytes: &Bytes, path: &[String]) -> Result<Value, String> {
    let decoded = match bytes.form {
        Form::Undefined => Some(Value::Undefined),
        Form::Cbor => coracle_value::decode(&bytes.bytes, &Bounds::default()).ok(),
        Form::Json => std::str::from_utf8(&bytes.bytes)
            .ok()
            .and_then(|text| coracle_value::from_json(text, &Bounds::default()).ok()),
    };
    let mut value = decoded.as_ref();
    for name in path {
        value = value.and_then(|value| match value {
            Value::Array(_) => name.parse().ok().and_then(|index| value.index(index)),
            _ => value.get(name),
        });
        if value.is_none() {
            return Err(name.clone());
        }
    }
    value.cloned().ok_or_else(String::new)
}

fn encode(value: &Value, form: schema::Form) -> Outcome {
    if *value == Value::Undefined {
        return Outcome::Value(Bytes::UNDEFINED);
    }
    match form {
        schema::Form::Cbor => Outcome::Value(Bytes {
            form: Form::Cbor,
            bytes: coracle_value::encode(value),
        }),
        schema::Form::Json => match coracle_value::to_json(value) {
            Ok(text) => Outcome::Value(Bytes {
                form: Form::Json,
                bytes: text.into_bytes(),
            }),
            Err(error) => type_error(error.to_string()),
        },
    }
}

fn not_implemented(name: &str) -> Outcome {
    type_error(format!(
        "The RPC receiver does not implement the method \"{name}\"."
    ))
}

fn type_error(message: String) -> Outcome {
    Outcome::Threw(Box::new(Thrown {
        name: "TypeError".into(),
        message,
        ..Thrown::default()
    }))
}

impl target::Server for ResultServer {
    async fn call(
        self: Rc<Self>,
        params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.connected.service.metrics(), async move {
            let path = convert::path(params.get()?.get_path()?)?;
            answer(&this.connected, this.call_at(&path), results.get())
        })
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        mut results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.connected.service.metrics(), async move {
            let params = params.get()?;
            let outcome = this.read_at(
                &convert::path(params.get_path()?)?,
                params.get_result_form()?,
            );
            answer(&this.connected, outcome, results.get())
        })
        .await
    }
}

fn answer(
    connected: &Rc<Connected>,
    outcome: Outcome,
    mut results: call_results::Builder<'_>,
) -> Result<(), Error> {
    let held = connected.hold(outcome_bytes(&outcome))?;
    convert::write_outcome(&outcome, results.reborrow());
    let pipeline = ResultServer {
        connected: Rc::clone(connected),
        outcome,
        _held: held,
    };
    results.set_pipeline(capnp_rpc::new_client(pipeline));
    Ok(())
}
