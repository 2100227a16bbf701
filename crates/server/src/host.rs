//! Objects of this process that isolates and clients call as they call any other: where a policy lets requests out, and the
//! streams that come back.

use crate::{
    outcome::{Answered, CallAnswer},
    router::{Address, AnswerTo, Payload},
    shared::Identity,
    tree,
};
use coracle_isolate::{Bytes, CallAccess, Form, Kind, Outcome, Report, Thrown, Usage};
use coracle_value::{ErrorValue, Value};
use futures::{FutureExt, future::BoxFuture};
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::{runtime::Handle, sync::oneshot};

/// What a caller is told when the server ends.
pub(crate) const HOST_GONE: &str = "The server is ending.";

/// Something that can be called.
pub(crate) trait HostObject: Send + Sync {
    /// What it is used as.
    fn kind(&self) -> Kind;

    /// Calls it. Dropping the future gives the call up.
    fn call(self: Arc<Self>, call: HostCall) -> BoxFuture<'static, Result<Reply, Failure>>;
}

/// A call of one.
pub(crate) struct HostCall {
    pub(crate) path: Vec<String>,
    pub(crate) access: CallAccess,
    pub(crate) args: Payload,
    /// The worker that calls; a client is none.
    pub(crate) caller: Option<Caller>,
}

/// Which invocation calls.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) worker: u64,
    pub(crate) invocation: u64,
}

/// What a call comes back with.
pub(crate) struct Reply {
    pub(crate) value: Value,
    /// What the value refers to by index.
    pub(crate) externals: Vec<Address>,
}

impl Reply {
    pub(crate) fn of(value: impl Into<Value>) -> Self {
        Self {
            value: value.into(),
            externals: Vec::new(),
        }
    }
}

/// What a call throws.
pub(crate) struct Failure {
    pub(crate) name: &'static str,
    pub(crate) message: String,
    /// `error.code`
    pub(crate) code: Option<&'static str>,
}

impl Failure {
    /// The caller's mistake.
    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self {
            name: "TypeError",
            message: message.into(),
            code: None,
        }
    }
}

impl HostCall {
    /// The name of the method, and the arguments.
    pub(crate) fn method(&self) -> Result<(&str, Vec<Value>), Failure> {
        let is_call = self.access == CallAccess::Call;
        let [name] = &*self.path else {
            return Err(Failure::type_error("This object has methods only."));
        };
        if !is_call {
            return Err(Failure::type_error(format!(
                "The RPC receiver does not implement the method \"{name}\"."
            )));
        }
        Ok((name, self.arguments()?))
    }

    /// The arguments, whatever is called.
    pub(crate) fn arguments(&self) -> Result<Vec<Value>, Failure> {
        let value = match self.args.form {
            Form::Undefined => Value::Array(Vec::new()),
            form => tree::read(form, &self.args.bytes, self.args.externals.len())
                .map_err(|error| Failure::type_error(error.to_string()))?,
        };
        match value {
            Value::Array(args) => Ok(args),
            _ => Err(Failure::type_error(
                "the arguments of a call must be an array",
            )),
        }
    }

    /// What an argument refers to.
    pub(crate) fn external(&self, value: &Value) -> Option<&Address> {
        match value.unshared() {
            Value::External(index) => self.args.externals.get(usize::try_from(*index).ok()?),
            _ => None,
        }
    }
}

/// An object, and the threads that its calls run on.
#[derive(Clone)]
pub struct Host {
    object: Arc<dyn HostObject>,
    runtime: Handle,
}

impl Host {
    pub(crate) fn address(object: Arc<dyn HostObject>, runtime: &Handle) -> Address {
        Address::Host(Self {
            object,
            runtime: runtime.clone(),
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.object.kind()
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::Host(Arc::as_ptr(&self.object).addr())
    }

    /// Sends a call on its way. It is given up when the sender is dropped that this answers.
    pub(crate) fn call(&self, call: HostCall, answer_to: AnswerTo) -> oneshot::Sender<()> {
        let (kept, given_up) = oneshot::channel();
        let object = Arc::clone(&self.object);
        self.runtime.spawn(async move {
            let outcome = AssertUnwindSafe(async move { object.call(call).await }).catch_unwind();
            tokio::select! {
                biased;
                outcome = outcome => match outcome {
                    Ok(outcome) => answer_to.send(answer(outcome)),
                    Err(_) => answer_to.broke(),
                },
                _ = given_up => {}
            }
        });
        kept
    }
}

fn answer(outcome: Result<Reply, Failure>) -> CallAnswer {
    let (outcome, externals) = match outcome {
        Ok(Reply { value, externals }) => {
            let bytes = match value {
                Value::Undefined => Bytes::UNDEFINED,
                value => Bytes::data(Form::Cbor, coracle_value::encode(&value)),
            };
            (Outcome::Value(bytes), externals)
        }
        Err(failure) => (Outcome::Threw(Box::new(thrown(failure))), Vec::new()),
    };
    Ok(Answered {
        report: Box::new(Report {
            outcome,
            usage: Usage::default(),
            logs: Vec::new(),
            log_bytes_dropped: 0,
        }),
        externals,
    })
}

fn thrown(failure: Failure) -> Thrown {
    let Failure {
        name,
        message,
        code,
    } = failure;
    let mut error = ErrorValue::new(name, &*message);
    if let Some(code) = code {
        error.props.push(("code".into(), code.into()));
    }
    Thrown {
        name: name.into(),
        message,
        value: coracle_value::encode(&error.into()),
        ..Thrown::default()
    }
}
