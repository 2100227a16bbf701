//! Secrets in Vault, or in what speaks as it does (<https://developer.hashicorp.com/vault/api-docs/secret/kv>).

use super::{Http, Secret, SecretError, exchange};
use crate::Destination;
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use serde_json::Value;
use std::fmt;

/// What is asked of Vault.
#[derive(Clone, PartialEq, Eq)]
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
        let mut token = crate::credential::visible(token.bytes())
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

/// Without the query, which may hold what is not to be shown.
impl fmt::Debug for Vault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut vault = formatter.debug_struct("Vault");
        vault.field("destination", &self.destination.to_string());
        vault.field("field", &self.field);
        vault.field("namespace", &self.namespace).finish()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpError, secret::http::script::Script};

    const PLACE: &str = "https://vault:8200/v1/secret/data/x";

    async fn read(status: u16, body: &str) -> Result<String, SecretError> {
        let vault = Vault {
            destination: Destination::of_url(PLACE).expect("a URL"),
            field: "token".into(),
            namespace: Some(HeaderValue::from_static("team")),
        };
        let script = Script::new([(status, body)]);
        let token = Secret::new(b"hvs.1".to_vec()).expect("a token");
        let secret = vault.read(&token, script.as_ref()).await;
        let requests = script.requests();
        let header = |name| requests[0].headers().get(name).map(HeaderValue::as_bytes);
        assert_eq!(requests[0].uri(), PLACE);
        assert_eq!(header("x-vault-token"), Some(&b"hvs.1"[..]));
        assert_eq!(header("x-vault-namespace"), Some(&b"team"[..]));
        assert!(requests[0].headers()["x-vault-token"].is_sensitive());
        secret.map(|secret| String::from_utf8_lossy(secret.bytes()).into())
    }

    fn wrong(problem: &'static str) -> Result<String, SecretError> {
        let place = PLACE.into();
        Err(SecretError::Answer { place, problem })
    }

    #[tokio::test]
    async fn both_versions_of_the_store_are_read() {
        let second = r#"{"data": {"data": {"token": "s"}, "metadata": {"version": 1}}}"#;
        assert_eq!(read(200, second).await.as_deref(), Ok("s"));
        let first = r#"{"data": {"token": "s", "data": "x"}, "lease_duration": 1}"#;
        assert_eq!(read(200, first).await.as_deref(), Ok("s"));
        let newline = r#"{"data": {"token": "s\n"}}"#;
        assert_eq!(read(200, newline).await.as_deref(), Ok("s\n"));
    }

    /// What Vault wrote is not in the error, whatever it was.
    #[tokio::test]
    async fn other_answers_are_errors() {
        let refused = read(403, r#"{"errors": ["hvs.1 is no token"]}"#).await;
        let (place, reason) = (PLACE.into(), None);
        assert_eq!(
            refused,
            Err(SecretError::Status {
                place,
                status: 403,
                reason
            })
        );
        let redirect = read(307, "").await;
        assert!(matches!(
            redirect,
            Err(SecretError::Status { status: 307, .. })
        ));
        assert_eq!(read(200, "<html>").await, wrong("is not JSON"));
        assert_eq!(read(200, "{}").await, wrong("has no such field"));
        let deleted = r#"{"data": {"data": null, "metadata": {}}}"#;
        assert_eq!(read(200, deleted).await, wrong("has no such field"));
        let number = r#"{"data": {"token": 1}}"#;
        let problem = "has something other than a text in that field";
        assert_eq!(read(200, number).await, wrong(problem));
        let empty = r#"{"data": {"token": ""}}"#;
        assert_eq!(read(200, empty).await, Err(SecretError::Empty));
        let long = " ".repeat(crate::ANSWER_BYTES_MAX + 1);
        let (place, problem) = (PLACE.into(), HttpError::TooLong);
        assert_eq!(
            read(200, &long).await,
            Err(SecretError::Http { place, problem })
        );
    }
}
