//! No error and no `Debug` shows a secret: each is written out with a canary inside, and the canary is looked for in each
//! form that a redactor knows.

use bytes::Bytes;
use coracle_outbound::{
    BodyDigest, Credential, CredentialConfig, Destination, Http, HttpError, Moment, Outgoing,
    Redactor, Secret, SecretError, SecretSource, SecretStore,
};
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};
use std::{error::Error, fmt::Debug, sync::Arc, time::Instant};

const CANARY: &str = "canary-4f1d/9b+2c=";

/// A server that quotes the canary in each answer, as an error and as what was asked for.
struct Parrot(u16, &'static str);

impl Http for Parrot {
    fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, HttpError>> {
        let body = self.1.replace("CANARY", CANARY);
        let response = Response::builder().status(self.0).body(body.into());
        Box::pin(async { Ok(response.expect("a response")) })
    }
}

/// What was written out so far.
struct Shown {
    canary: Redactor,
    texts: usize,
}

impl Shown {
    fn new() -> Self {
        let secret = Secret::new(CANARY.into()).expect("a secret");
        Self {
            canary: Redactor::new(&[secret]).expect("a redactor"),
            texts: 0,
        }
    }

    fn text(&mut self, text: &str) {
        self.texts += 1;
        self.canary.redact_text(text);
        let is_clean = self.canary.count() == 0 && !text.contains("canary");
        assert!(is_clean, "the canary is in {text}");
    }

    fn debug(&mut self, value: &dyn Debug) {
        self.text(&format!("{value:?} {value:#?}"));
    }

    /// An error with all its causes.
    fn error(&mut self, error: &(dyn Error + 'static)) {
        self.debug(&error);
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.text(&error.to_string());
            cause = error.source();
        }
    }
}

fn source(source: Value) -> SecretSource {
    serde_json::from_value(source).expect("a source")
}

#[test]
fn the_canary_is_seen_where_it_is() {
    let mut shown = Shown::new();
    shown
        .canary
        .redact_text(&format!("{:?}", json!({ "a": CANARY })));
    assert_eq!(shown.canary.count(), 1);
}

/// Places that fail, each after it has seen the canary, with the errors that they fail with.
#[tokio::test]
async fn no_source_shows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = folder.path().join("open");
    std::fs::write(&open, CANARY).expect("written");
    std::fs::create_dir(folder.path().join("folder")).expect("a folder");
    let print = |script: &str| json!({"command": ["sh", "-c", script.replace("CANARY", CANARY)]});
    let vault = |token: Value| json!({"vault": {"url": format!("https://vault/v1/x?{CANARY}"), "field": "f", "token": token}});
    let vault_of_canary = vault(print("echo 'CANARY'"));
    let mut shown = Shown::new();
    for (place, status, body) in [
        (json!({"file": open}), 200, ""),
        (json!({"file": folder.path().join("none")}), 200, ""),
        (json!({"file": folder.path().join("folder")}), 200, ""),
        (json!({"mount": folder.path(), "key": "open"}), 200, ""),
        (json!({"environment": "CORACLE_NO_SUCH_VARIABLE"}), 200, ""),
        (json!({"command": ["/no/such/program", CANARY]}), 200, ""),
        (print("echo 'CANARY'; echo 'CANARY' >&2; exit 1"), 200, ""),
        (print("echo 'CANARY'; kill -9 $$"), 200, ""),
        (print("while :; do echo 'CANARY'; done"), 200, ""),
        (print(": CANARY"), 200, ""),
        (
            json!({"command": ["sh", "-c", format!("echo {CANARY}; sleep 60")], "timeout_seconds": 1}),
            200,
            "",
        ),
        (vault(print("printf 'CANARY\\n\\n'")), 200, ""),
        (vault_of_canary.clone(), 403, "{\"errors\": [\"CANARY\"]}"),
        (vault_of_canary.clone(), 200, "CANARY"),
        (
            vault_of_canary.clone(),
            200,
            "{\"data\": {\"g\": \"CANARY\"}}",
        ),
        (vault_of_canary, 200, "{\"data\": {\"f\": [\"CANARY\"]}}"),
    ] {
        let mut store = SecretStore::new(Arc::new(Parrot(status, body)));
        let place = source(place);
        shown.debug(&place);
        store.add("x", place.clone()).expect("a new name");
        let error = store.get("x", Instant::now()).await.expect_err("no secret");
        shown.error(&error);
        shown.debug(&store.failures());
        shown.debug(&store);
    }
    shown.error(&Secret::new(Vec::new()).expect_err("empty"));
    shown.error(&Secret::new(CANARY.repeat(10_000).into()).expect_err("too long"));
    shown.error(&SecretError::BrokenOff);
    shown.debug(&Secret::new(CANARY.into()).expect("a secret"));
    assert!(shown.texts > 16 * 4, "{}", shown.texts);
}

/// Who writes the secret where its place belongs does not read it in an error.
#[test]
fn no_configuration_shows_it() {
    let mut shown = Shown::new();
    for secret in [
        json!(CANARY),
        json!([CANARY]),
        json!({ "command": CANARY }),
        json!({"vault": {"url": "https://vault/", "field": "f", "token": CANARY}}),
        json!({"vault": {"url": format!("https://u:{CANARY}@vault/"), "field": "f", "token": {"file": "/t"}}}),
        json!({"file": "/a", "value": CANARY}),
    ] {
        let config = json!({"secret": secret, "to": ["a.com"], "as": "bearer"});
        let error = serde_json::from_value::<CredentialConfig>(config).expect_err("refused");
        shown.error(&error);
    }
    let aws = json!({"region": "r", "service": "s", "access_key_id": "A", "session_token": CANARY});
    let config = json!({"secret": {"file": "/a"}, "to": ["a.com"], "as": {"aws_sigv4": aws}});
    shown.error(&serde_json::from_value::<CredentialConfig>(config).expect_err("refused"));
}

/// Each form, sent and refused.
#[tokio::test]
async fn no_credential_shows_it() {
    let mut shown = Shown::new();
    let print = |text: &str| json!({"command": ["printf", text]});
    let token = "{\"access_token\": \"CANARY\", \"token_type\": \"bearer\"}";
    let aws = json!({"region": "r", "service": "s", "access_key_id": "A", "session_token": print(CANARY)});
    let secret_id = json!({"region": "r", "service": "s", "access_key_id": print(CANARY)});
    let grant = json!({"token_url": format!("https://login/?{CANARY}"), "client_id": "a"});
    for (form, status, answer) in [
        (json!("bearer"), 200, token),
        (json!({"header": {"name": "x-key"}}), 200, token),
        (json!({"query": {"name": "key"}}), 200, token),
        (json!({"basic": {"user": "u"}}), 200, token),
        (json!({"basic": {}}), 200, token),
        (json!({ "aws_sigv4": aws }), 200, token),
        (json!({ "aws_sigv4": secret_id }), 200, token),
        (json!({ "oauth2_client_credentials": grant }), 200, token),
        (
            json!({ "oauth2_client_credentials": grant }),
            200,
            "{\"access_token\": \"CANARY\\n\"}",
        ),
        (
            json!({ "oauth2_client_credentials": grant }),
            200,
            "{\"access_token\": {\"CANARY\": 1}}",
        ),
        (
            json!({ "oauth2_client_credentials": grant }),
            400,
            "{\"error\": \"CANARY\"}",
        ),
    ] {
        for secret in [CANARY.to_owned(), format!("{CANARY}\n\n")] {
            let config = json!({"secret": print(&secret), "to": ["a.com"], "as": form});
            let config: CredentialConfig = serde_json::from_value(config).expect("a configuration");
            shown.debug(&config);
            let mut store = SecretStore::new(Arc::new(Parrot(status, answer)));
            let credential =
                Credential::new("x", config.clone(), &mut store).expect("a credential");
            shown.debug(&credential);
            shown.error(&Credential::new("x", config, &mut store).expect_err("taken"));
            for (url, body) in [
                ("https://a.com/", BodyDigest::Empty),
                ("https://a.com/", BodyDigest::Unknown),
                ("https://b.com/", BodyDigest::Empty),
                ("http://a.com/", BodyDigest::Empty),
            ] {
                let mut headers = HeaderMap::new();
                let outgoing = Outgoing {
                    method: &Method::GET,
                    destination: &Destination::of_url(url).expect("a URL"),
                    headers: &mut headers,
                    body,
                };
                match credential.apply(outgoing, Moment::now()).await {
                    Ok(applied) => {
                        shown.debug(&applied);
                        shown.debug(&Redactor::new(&applied.secrets).expect("a redactor"));
                        shown.text(&applied.destination.to_string());
                    }
                    Err(error) => shown.error(&error),
                }
                shown.debug(&headers);
            }
        }
    }
}
