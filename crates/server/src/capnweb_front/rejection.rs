//! What calls are rejected with that the server refuses, and how clients tell that from what a worker threw.
//!
//! Two properties of errors are the server's word: `verdict`, which says what stopped an invocation, and `refusal`, which says
//! that the server did not take a request on. What a worker throws has neither: they are taken away from it.

use crate::session::LoadError;
use coracle_capnweb::{Outcome, Payload};
use coracle_loader::Refusal;
use coracle_value::{ErrorValue, Value, encode};

/// A request that was refused.
#[derive(Debug)]
pub(super) struct Rejection {
    name: &'static str,
    kind: &'static str,
    message: String,
}

impl Rejection {
    /// The request is wrong: an argument is not what it must be.
    pub(super) fn type_error(message: impl Into<String>) -> Self {
        Self::new("TypeError", "failed", message)
    }

    /// The request is refused, and would be again.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new("Error", "failed", message)
    }

    /// It may be taken on later.
    pub(super) fn overloaded(message: impl Into<String>) -> Self {
        Self::new("Error", "overloaded", message)
    }

    fn new(name: &'static str, kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            name,
            kind,
            message,
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn into_value(self) -> Value {
        let mut error = ErrorValue::new(self.name, self.message);
        let refusal = Value::object([("kind", self.kind)]);
        error.props.push(("refusal".into(), refusal));
        Value::Error(Box::new(error))
    }

    pub(super) fn into_outcome<T>(self) -> Outcome<T> {
        Outcome::Threw(Payload {
            bytes: encode(&self.into_value()),
            externals: Vec::new(),
        })
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Draining => "disconnected",
            refusal if refusal.retryable() => "overloaded",
            _ => "failed",
        };
        Self::new("Error", kind, refusal.to_string())
    }
}

impl From<&LoadError> for Rejection {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::Refused(refusal) => (*refusal).into(),
            LoadError::Code(problems) => {
                Self::type_error(format!("the worker can't be loaded:\n{problems}"))
            }
            LoadError::Full(full) => Self::overloaded(full.to_string()),
            LoadError::Outbound(_) => Self::failed(error.to_string()),
        }
    }
}

impl From<LoadError> for Rejection {
    fn from(error: LoadError) -> Self {
        Self::from(&error)
    }
}
