//! What credentials do to requests.

use super::*;
use crate::secret::script::Script;
use serde_json::{Value, json};
use std::time::Duration;

/// A credential whose secret is the content of a file.
struct Case {
    credential: Credential,
    script: Arc<Script>,
    start: Moment,
    _folder: tempfile::TempDir,
}

impl Case {
    fn new(secret: &[u8], config: Value) -> Self {
        Self::asking(secret, config, Script::new([]))
    }

    fn asking(secret: &[u8], mut config: Value, script: Arc<Script>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, secret).expect("written");
        #[cfg(unix)]
        {
            use std::{fs, os::unix::fs::PermissionsExt};
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        config["secret"] = json!({ "file": path });
        let config = serde_json::from_value(config).expect("a configuration");
        let http: Arc<dyn crate::Http> = script.clone();
        let credential = Credential::new("x", config, &mut SecretStore::new(http));
        Self {
            credential: credential.expect("a credential"),
            script,
            start: Moment::now(),
            _folder: folder,
        }
    }

    /// What leaves for a request with those headers: the URL and the headers.
    async fn send(
        &self,
        request: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Sent, CredentialError> {
        self.send_at(0, request, headers).await
    }

    async fn send_at(
        &self,
        seconds: u64,
        request: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Sent, CredentialError> {
        let (method, url) = request.split_once(' ').expect("a method and a URL");
        let destination = Destination::of_url(url).expect("a URL");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        let before = map.clone();
        let outgoing = Outgoing {
            method: &method.parse().expect("a method"),
            destination: &destination,
            headers: &mut map,
            body: BodyDigest::Empty,
        };
        let since = Duration::from_secs(seconds);
        let at = Moment {
            instant: self.start.instant + since,
            system: self.start.system + since,
        };
        let applied = self.credential.apply(outgoing, at).await;
        if applied.is_err() {
            assert_eq!(map, before, "what is refused is left as it was");
        }
        applied.map(|applied| Sent {
            applied,
            headers: map,
        })
    }
}

#[derive(Debug)]
struct Sent {
    applied: Applied,
    headers: HeaderMap,
}

impl Sent {
    fn header(&self, name: &str) -> Vec<&str> {
        let values = self.headers.get_all(name).into_iter();
        values
            .map(|value| value.to_str().expect("a text"))
            .collect()
    }

    fn url(&self) -> &str {
        self.applied
            .destination
            .url()
            .map(url::Url::as_str)
            .unwrap_or_default()
    }

    fn secrets(&self) -> Vec<&str> {
        let secrets = self.applied.secrets.iter();
        secrets
            .map(|secret| std::str::from_utf8(secret.bytes()).expect("a text"))
            .collect()
    }
}

/// The guest's own header is gone, in each spelling that a server may read as it.
#[tokio::test]
async fn a_header_takes_the_place_of_the_guests() {
    let form = json!({"header": {"name": "X-Api-Key", "prefix": "Key "}});
    let case = Case::new(b"s3cret\n", json!({"to": ["a.com"], "as": form}));
    let own = [
        ("x-api-key", "mine"),
        ("x-api-key", "two"),
        ("x_api_key", "mine"),
        ("x-other", "o"),
    ];
    let sent = case
        .send("GET https://a.com/x?y", &own)
        .await
        .expect("sent");
    assert_eq!(sent.header("x-api-key"), ["Key s3cret"]);
    assert!(sent.headers["x-api-key"].is_sensitive());
    assert_eq!(sent.headers.len(), 2);
    assert_eq!(sent.header("x-other"), ["o"]);
    assert_eq!(sent.url(), "https://a.com/x?y");
    assert_eq!(sent.secrets(), ["s3cret"]);
}

#[tokio::test]
async fn the_other_forms() {
    let to = json!(["a.com"]);
    let own = [("authorization", "Bearer mine")];
    let case = Case::new(b"s3cret", json!({"to": to, "as": "bearer"}));
    let sent = case.send("GET https://a.com/", &own).await.expect("sent");
    assert_eq!(sent.header("authorization"), ["Bearer s3cret"]);

    let case = Case::new(b"s3cr:t", json!({"to": to, "as": {"basic": {"user": "ü"}}}));
    let sent = case.send("GET https://a.com/", &own).await.expect("sent");
    assert_eq!(sent.header("authorization"), ["Basic w7w6czNjcjp0"]);
    assert_eq!(
        sent.secrets(),
        ["s3cr:t", "ü:s3cr:t", "s3cr:t", "w7w6czNjcjp0"]
    );

    let case = Case::new(b"u:p:q", json!({"to": to, "as": {"basic": {}}}));
    let sent = case.send("GET https://a.com/", &own).await.expect("sent");
    assert_eq!(sent.header("authorization"), ["Basic dTpwOnE="]);
    assert_eq!(sent.secrets(), ["u:p:q", "u:p:q", "p:q", "dTpwOnE="]);
    let redactor = case.credential.redactor(&sent.applied);
    let mut redactor = redactor.expect("a redactor");
    assert_eq!(redactor.redact_text("p:q is dTpwOnE="), "p:q is [redacted]");

    let case = Case::new(b"s 3", json!({"to": to, "as": {"query": {"name": "key"}}}));
    let sent = case
        .send("GET https://a.com/?%6bey=mine&a", &own)
        .await
        .expect("sent");
    assert_eq!(sent.url(), "https://a.com/?a&key=s%203");
    assert_eq!(sent.header("authorization"), ["Bearer mine"]);
}

/// The binding holds, whatever was decided elsewhere; nothing is read for what is refused.
#[tokio::test]
async fn a_credential_goes_nowhere_else() {
    let case = Case::new(
        b"s3cret",
        json!({"to": ["*.a.com", "b.com:8443"], "as": "bearer"}),
    );
    for url in ["https://x.a.com/", "https://b.com:8443/"] {
        assert!(case.send(&format!("GET {url}"), &[]).await.is_ok(), "{url}");
    }
    for url in [
        "https://a.com/",
        "https://x.y.a.com/",
        "https://a.com.evil.org/",
        "https://b.com/",
        "https://b.com:8444/",
        "http://x.a.com/",
        "https://127.0.0.1/",
    ] {
        let error = case.send(&format!("GET {url}"), &[]).await.expect_err(url);
        let origin = Destination::of_url(url).expect("a URL").origin();
        let text = format!(
            "the credential \"x\" is not bound to {origin}: its \"to\" says where it may be sent"
        );
        assert_eq!(error.to_string(), text);
        assert!(error.is_refusal());
    }
    // A destination of bytes is none for a header.
    let address = Destination::of_address("b.com:8443").expect("an address");
    assert!(!case.credential.is_for(&address));
}

#[tokio::test]
async fn plain_http_is_said() {
    let config = json!({"to": ["http://a.com", "a.com"], "as": "bearer", "plain_http": true});
    let case = Case::new(b"s3cret", config);
    assert!(case.send("GET http://a.com/", &[]).await.is_ok());
    assert!(case.send("GET https://a.com/", &[]).await.is_ok());
}

/// Answers in parts of the guest's choosing, and answers that are the request, would show the secret.
#[tokio::test]
async fn what_would_show_the_secret_is_refused() {
    let case = Case::new(b"s3cret", json!({"to": ["a.com"], "as": "bearer"}));
    for (request, header) in [
        ("GET https://a.com/", ("range", "bytes=0-0")),
        ("GET https://a.com/", ("if-range", "x")),
        ("TRACE https://a.com/", ("accept", "*/*")),
    ] {
        let error = case.send(request, &[header]).await.expect_err(request);
        assert!(error.is_refusal(), "{error}");
    }
}

/// A secret that would end its header, or be read differently by different servers, is not sent.
#[tokio::test]
async fn a_secret_that_is_no_headers_is_an_error() {
    let forms = [
        json!("bearer"),
        json!({"header": {"name": "x-key", "prefix": "a"}}),
    ];
    for form in forms {
        for secret in [
            &b"canary\r\nX: y"[..],
            b"canary\n\n",
            b"can\0ary",
            b"can\xffary",
            b"can\tary",
            b" canary",
            b"canary ",
            b"can\x7fary",
        ] {
            let case = Case::new(secret, json!({"to": ["a.com"], "as": form}));
            let error = case
                .send("GET https://a.com/", &[])
                .await
                .expect_err("not sent");
            let text = "the credential \"x\" can't be sent: its secret has a character that is not visible";
            assert_eq!(error.to_string(), text);
        }
    }
    let case = Case::new(
        b"a\rb",
        json!({"to": ["a.com"], "as": {"basic": {"user": "u"}}}),
    );
    assert!(case.send("GET https://a.com/", &[]).await.is_err());
    let case = Case::new(b"password", json!({"to": ["a.com"], "as": {"basic": {}}}));
    let error = case
        .send("GET https://a.com/", &[])
        .await
        .expect_err("no user");
    assert!(error.to_string().ends_with("not of the form user:password"));
    let case = Case::new(
        &[b'a'; SENT_BYTES_MAX + 1],
        json!({"to": ["a.com"], "as": "bearer"}),
    );
    let error = case
        .send("GET https://a.com/", &[])
        .await
        .expect_err("too long");
    assert_eq!(
        error.to_string(),
        "the credential \"x\" makes the request too long"
    );
}

/// Where the secret is kept is for the log, not for the guest.
#[tokio::test]
async fn a_missing_secret_is_named_by_its_credential_alone() {
    let config = json!({"secret": {"file": "/no/such/place"}, "to": ["a.com"], "as": "bearer"});
    let config = serde_json::from_value(config).expect("a configuration");
    let mut store = SecretStore::new(Script::new([]));
    let credential = Credential::new("x", config, &mut store).expect("a credential");
    let outgoing = Outgoing {
        method: &Method::GET,
        destination: &Destination::of_url("https://a.com/").expect("a URL"),
        headers: &mut HeaderMap::new(),
        body: BodyDigest::Empty,
    };
    let error = credential
        .apply(outgoing, Moment::now())
        .await
        .expect_err("no secret");
    assert_eq!(error.to_string(), "the credential \"x\" is not available");
    assert!(
        error
            .secret()
            .is_some_and(|error| error.to_string().contains("/no/such/place"))
    );
    assert!(!error.is_refusal());
    assert_eq!(store.failures().len(), 1);
}

#[tokio::test]
async fn a_request_to_aws_is_signed() {
    let aws = json!({"region": "us-east-1", "service": "sqs", "access_key_id": "AKIDEXAMPLE",
        "session_token": {"environment": "CARGO_PKG_NAME"}});
    let case = Case::new(
        b"key of keys",
        json!({"to": ["a.com"], "as": {"aws_sigv4": aws}}),
    );
    let own = [
        ("authorization", "AWS4"),
        ("x-amz-date", "20000101T000000Z"),
        ("x-amz-content-sha256", "x"),
        ("x-amz-target", "Send"),
        ("content-type", "text/plain"),
    ];
    let sent = case
        .send("GET https://a.com/(?b+c", &own)
        .await
        .expect("sent");
    assert_eq!(sent.url(), "https://a.com/%28?b%20c");
    let [authorization] = sent.header("authorization")[..] else {
        panic!("one signature");
    };
    let names = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,";
    assert!(authorization.contains(names), "{authorization}");
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
    assert_eq!(sent.header("x-amz-security-token"), ["coracle-outbound"]);
    assert!(sent.headers["x-amz-security-token"].is_sensitive());
    assert_eq!(sent.header("x-amz-content-sha256"), [""; 0]);
    assert_ne!(sent.header("x-amz-date"), ["20000101T000000Z"]);
    // Not the key: it was not sent.
    assert_eq!(sent.secrets(), ["coracle-outbound"]);
}

fn grant(more: Value) -> Value {
    let mut grant = json!({"token_url": "https://login.com/token", "client_id": "a:b"});
    for (key, value) in more.as_object().expect("an object") {
        grant[key] = value.clone();
    }
    json!({"to": ["a.com"], "as": {"oauth2_client_credentials": grant}})
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_renewed_before_it_ends() {
    let script = Script::new([
        (
            200,
            r#"{"access_token": "first-token", "token_type": "Bearer", "expires_in": 1000}"#,
        ),
        (
            200,
            r#"{"access_token": "second-token", "expires_in": "100"}"#,
        ),
        (500, "down"),
    ]);
    let config = grant(json!({"scope": "read write", "audience": "https://a"}));
    let case = Case::asking(b"s3cr&t", config, script);
    let sent = case
        .send("GET https://a.com/", &[("authorization", "mine")])
        .await
        .expect("sent");
    assert_eq!(sent.header("authorization"), ["Bearer first-token"]);
    assert_eq!(sent.secrets(), ["s3cr&t", "first-token"]);
    let requests = case.script.requests();
    assert_eq!(requests[0].method(), Method::POST);
    assert_eq!(requests[0].uri(), "https://login.com/token");
    let form = "grant_type=client_credentials&scope=read%20write&audience=https%3A%2F%2Fa";
    assert_eq!(requests[0].body(), form);
    // The pair a%3Ab:s3cr%26t
    assert_eq!(
        requests[0].headers()["authorization"],
        "Basic YSUzQWI6czNjciUyNnQ="
    );
    let token_at = async |seconds| {
        let sent = case.send_at(seconds, "GET https://a.com/", &[]).await;
        sent.map(|sent| sent.header("authorization").join(""))
    };
    assert_eq!(token_at(939).await.expect("sent"), "Bearer first-token");
    assert_eq!(case.script.requests().len(), 0);
    assert_eq!(token_at(940).await.expect("sent"), "Bearer second-token");
    assert_eq!(case.script.requests().len(), 1);
    // While its server is down a token is used to its end, and not beyond.
    assert_eq!(token_at(1039).await.expect("sent"), "Bearer second-token");
    assert!(token_at(1045).await.is_err());
}

#[tokio::test]
async fn a_refused_token_is_asked_for_anew() {
    let script = Script::new([
        (200, r#"{"access_token": "first-token"}"#),
        (200, r#"{"access_token": "second-token"}"#),
    ]);
    let case = Case::asking(b"s3cret", grant(json!({"authentication": "post"})), script);
    let first = case.send("GET https://a.com/", &[]).await.expect("sent");
    let form = "grant_type=client_credentials&client_id=a%3Ab&client_secret=s3cret";
    assert_eq!(case.script.requests()[0].body(), form);
    let at = |seconds| case.start.instant + Duration::from_secs(seconds);
    assert!(
        !case.credential.invalidate(&first.applied, at(1)),
        "it is too new"
    );
    assert!(case.credential.invalidate(&first.applied, at(20)));
    let second = case
        .send_at(20, "GET https://a.com/", &[])
        .await
        .expect("sent");
    // The redactor is that of each token.
    for (sent, text) in [
        (&first, "first-token"),
        (&second, "second-token"),
        (&first, "first-token"),
    ] {
        let redactor = case.credential.redactor(&sent.applied);
        let mut redactor = redactor.expect("a redactor");
        assert_eq!(redactor.redact_text(text), "[redacted]");
    }
    assert_eq!(second.header("authorization"), ["Bearer second-token"]);
    assert!(
        case.credential.invalidate(&first.applied, at(21)),
        "there is another already"
    );
    assert!(!case.credential.invalidate(&second.applied, at(21)));
    assert_eq!(case.script.requests().len(), 1);
}

/// Only the protocol's own words are shown, and only in the log.
#[tokio::test]
async fn a_token_that_is_not_given_is_an_error() {
    for (status, body, why) in [
        (
            401,
            r#"{"error": "invalid_client", "error_description": "s3cret"}"#,
            "answered 401 (invalid_client)",
        ),
        (400, r#"{"error": "s3cret"}"#, "answered 400"),
        (302, "", "answered 302"),
        (200, "s3cret", "has no access token"),
        (
            200,
            r#"{"access_token": "t", "token_type": "mac"}"#,
            "not of the type \"bearer\"",
        ),
        (
            200,
            r#"{"access_token": "", "token_type": "bearer"}"#,
            "the secret is empty",
        ),
    ] {
        let case = Case::asking(b"s3cret", grant(json!({})), Script::new([(status, body)]));
        let error = case.send("GET https://a.com/", &[]).await.expect_err(body);
        assert_eq!(error.to_string(), "the credential \"x\" is not available");
        let reason = error.secret().expect("a reason").to_string();
        assert!(reason.ends_with(why), "{reason}");
        assert!(!reason.contains("s3cret"), "{reason}");
    }
    let script = Script::new([(200, r#"{"access_token": "a\nb"}"#)]);
    let case = Case::asking(b"s3cret", grant(json!({})), script);
    let error = case
        .send("GET https://a.com/", &[])
        .await
        .expect_err("not sent");
    assert!(
        error
            .to_string()
            .ends_with("a character that is not visible")
    );
}

/// What could never apply is found when it is read.
#[test]
fn a_wrong_configuration_is_refused() {
    let aws = |key: &str, value: &str| {
        let mut aws = json!({"region": "r", "service": "s", "access_key_id": "A"});
        aws[key] = json!(value);
        json!({ "aws_sigv4": aws })
    };
    for (to, form, why) in [
        (json!([]), json!("bearer"), "\"to\" is empty"),
        (json!(["http://a.com"]), json!("bearer"), "plain http"),
        (
            json!(["tcp://a.com:1"]),
            json!("bearer"),
            "not http: or https:",
        ),
        (json!(["a.com/x"]), json!("bearer"), "does not say where to"),
        (
            json!(["a.com"]),
            json!("digest"),
            "unknown variant `digest`",
        ),
        (
            json!(["a.com"]),
            json!({"header": {"name": "a b"}}),
            "not the name of a header",
        ),
        (
            json!(["a.com"]),
            json!({"header": {"name": "Host"}}),
            "client's own",
        ),
        (
            json!(["a.com"]),
            json!({"header": {"name": "a", "prefix": "\n"}}),
            "can't be in a header",
        ),
        (
            json!(["a.com"]),
            json!({"header": {"name": "a", "suffix": ""}}),
            "unknown field `suffix`",
        ),
        (json!(["a.com"]), json!({"query": {"name": ""}}), "is empty"),
        (
            json!(["a.com"]),
            json!({"basic": {"user": "a:b"}}),
            "a colon",
        ),
        (json!(["a.com"]), aws("region", "a/b"), "\"region\""),
        (json!(["a.com"]), aws("service", ""), "\"service\""),
        (
            json!(["a.com"]),
            aws("access_key_id", "a,b"),
            "\"access_key_id\"",
        ),
        (
            json!(["a.com"]),
            grant(json!({"token_url": "http://a"}))["as"].clone(),
            "plain http",
        ),
        (
            json!(["a.com"]),
            grant(json!({"token_url": "a"}))["as"].clone(),
            "not a URL",
        ),
        (
            json!(["a.com"]),
            grant(json!({"client_id": ""}))["as"].clone(),
            "is empty",
        ),
    ] {
        let config = json!({"secret": {"environment": "X"}, "to": to, "as": form});
        let read =
            serde_json::from_value::<CredentialConfig>(config).map_err(|error| error.to_string());
        let made = read.and_then(|config| {
            let credential = Credential::new("x", config, &mut SecretStore::new(Script::new([])));
            credential.map_err(|error| error.to_string())
        });
        let error = made.expect_err(why);
        assert!(error.contains(why), "{error}");
    }
}

/// Requests are sent from any thread.
#[test]
fn applying_moves_between_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let case = Case::new(b"s3cret", json!({"to": ["a.com"], "as": "bearer"}));
    let outgoing = Outgoing {
        method: &Method::GET,
        destination: &Destination::of_url("https://a.com/").expect("a URL"),
        headers: &mut HeaderMap::new(),
        body: BodyDigest::Empty,
    };
    drop(is_send(case.credential.apply(outgoing, Moment::now())));
    is_send(case.credential);
}

#[test]
fn two_credentials_have_two_names() {
    let config = json!({"secret": {"environment": "X"}, "to": ["a.com"], "as": "bearer"});
    let config: CredentialConfig = serde_json::from_value(config).expect("a configuration");
    let mut store = SecretStore::new(Script::new([]));
    assert!(Credential::new("x", config.clone(), &mut store).is_ok());
    let taken = Credential::new("x", config, &mut store).expect_err("taken");
    assert_eq!(
        taken.to_string(),
        "the credential \"x\" is wrong: there is a secret \"x\" already"
    );
}
