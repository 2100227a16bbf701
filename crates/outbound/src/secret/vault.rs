//! Secrets in Vault, or in what speaks as it does (<https://developer.hashicorp.com/vault/api-docs/secret/kv>).

use super::{Http, Secret, SecretError, exchange};
use crate::Destination;
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use serde_json::Value;

/// What is asked of Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vault {
    /// Of the secret, as in `https://vault:8200/v1/secret/data/x`.
    pub(super) destination: Destination,
    pub(super) field: String,
    pub(super) namespace: Option<HeaderValue>,
}

impl Vault {
    /// Reads the field. Leases are not renewed: what Vault makes anew for each reader is read as often as all else.
    pub(super) async fn read(
        &self,
        token: &Secret,
        http: &dyn Http,
    ) -> Result<Secret, SecretError> {
        let place = || self.destination.to_string();
        let mut token = super::super::credential::visible(token.bytes())
            .ok_or_else(|| SecretError::NotSendable { place: place() })?;
        token.set_sensitive(true);
        let url = self.destination.url().map(url::Url::as_str);
        let mut request = Request::get(url.unwrap_or_default())
            .header("x-vault-token", token)
            // Vault's agents ask for it, as a browser can't be made to send it.
            .header("x-vault-request", "true");
        if let Some(namespace) = &self.namespace {
            request = request.header("x-vault-namespace", namespace);
        }
        let wrong = |problem| SecretError::Answer {
            place: place(),
            problem,
        };
        let request = request
            .body(Bytes::new())
            .map_err(|_| wrong("can't be asked for"))?;
        let answer = exchange(http, &self.destination, request).await?;
        if answer.status() != StatusCode::OK {
            return Err(SecretError::Status {
                place: place(),
                status: answer.status().as_u16(),
                reason: None,
            });
        }
        let read = serde_json::from_slice(answer.body()).map_err(|_| wrong("is not JSON"))?;
        match field(&read, &self.field).ok_or_else(|| wrong("has no such field"))? {
            Value::String(text) => Secret::new(text.clone().into_bytes()),
            _ => Err(wrong("has something other than a text in that field")),
        }
    }
}

/// A field of an answer of either version of Vault's store. The second wraps what the first gives, with what it knows
/// about it beside.
fn field<'a>(answer: &'a Value, name: &str) -> Option<&'a Value> {
    let data = answer.get("data")?;
    let is_second = data.get("metadata").is_some_and(Value::is_object)
        && data.get("data").is_some_and(Value::is_object);
    match is_second {
        true => data.get("data")?.get(name),
        false => data.get(name),
    }
}
