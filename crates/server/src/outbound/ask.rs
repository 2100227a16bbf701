//! Asking a client whether a request may leave.

use super::values;
use crate::{
    router::{Address, Payload},
    tree,
};
use coracle_isolate::{CallAccess, Form, Outcome};
use coracle_outbound::{Ask, Question};
use coracle_value::Value;
use futures::future::BoxFuture;
use std::sync::Arc;

/// The client's object that decides.
pub(super) struct Asker(Address);

impl Asker {
    pub(super) fn shared(address: Address) -> Arc<dyn Ask> {
        Arc::new(Self(address))
    }
}

impl Ask for Asker {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<(), String>> {
        let address = self.0.clone();
        Box::pin(async move {
            let args = Payload {
                form: Form::Cbor,
                bytes: coracle_value::encode(&Value::Array(vec![values::question(question)])),
                externals: Vec::new(),
            };
            let path = vec!["ask".to_owned()];
            let answer = address.call(CallAccess::Call, path, args, Form::Cbor).await;
            let report = answer.map_err(|refusal| refusal.to_string())?.report;
            match report.outcome {
                Outcome::Value(value) => {
                    match tree::read_leaf(&value.bytes)
                        .ok()
                        .and_then(|value| value.as_bool())
                    {
                        Some(true) => Ok(()),
                        Some(false) => Err(String::new()),
                        None => Err("it answered neither true nor false".into()),
                    }
                }
                Outcome::Threw(thrown) => Err(thrown.message.clone()),
                Outcome::Verdict(verdict) => Err(verdict.message()),
            }
        })
    }
}
