//! `Target` on the result of a call, for those who pipeline into it.
//!
//! After an exception or a verdict it answers everything with the same outcome. A value is plain data: its properties
//! can be read, there is nothing in it to call yet.

use super::{convert, guarded};
use crate::service::Service;
use capnp::Error;
use coracle_isolate::{Bytes, Form, Outcome, Report, Thrown};
use coracle_schema::{self as schema, call_results, target};
use coracle_value::{Bounds, Value};
use std::{rc::Rc, sync::Arc};

pub(super) fn client(service: &Arc<Service>, report: Report) -> target::Client {
    capnp_rpc::new_client(ResultServer {
        service: Arc::clone(service),
        outcome: report.outcome,
    })
}

struct ResultServer {
    service: Arc<Service>,
    outcome: Outcome,
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
        guarded(self.service.metrics(), async move {
            let path = convert::path(params.get()?.get_path()?)?;
            answer(&this.service, this.call_at(&path), results.get());
            Ok(())
        })
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        mut results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.service.metrics(), async move {
            let params = params.get()?;
            let outcome = this.read_at(
                &convert::path(params.get_path()?)?,
                params.get_result_form()?,
            );
            answer(&this.service, outcome, results.get());
            Ok(())
        })
        .await
    }
}

fn answer(service: &Arc<Service>, outcome: Outcome, mut results: call_results::Builder<'_>) {
    convert::write_outcome(&outcome, results.reborrow());
    let pipeline = capnp_rpc::new_client(ResultServer {
        service: Arc::clone(service),
        outcome,
    });
    results.set_pipeline(pipeline);
}
