//! Access tokens by OAuth2's client credentials grant (RFC 6749, section 4.4).

use super::{
    config::{Authentication, Grant},
    value,
};
use crate::{
    Http, Secret, SecretError,
    secret::{Kept, Renewed, exchange},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde::Deserialize;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// How long a token is taken to last whose server does not say.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(300);
/// How long a token is used at most.
const LIFETIME_MAX: Duration = Duration::from_secs(86_400);
/// How long before its end a token is renewed at most: a tenth of its lifetime, up to this.
const MARGIN_MAX: Duration = Duration::from_secs(60);

/// The errors that the protocol knows. Another server's own words are not shown: they may quote what it was sent.
const REASONS: [&str; 8] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "access_denied",
    "temporarily_unavailable",
];

/// Where tokens come from; the last one is kept until shortly before it ends.
pub(super) struct TokenSource {
    grant: Arc<Grant>,
    http: Arc<dyn Http>,
    kept: Kept<Secret>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<Seconds>,
}

/// Some servers write the number as a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(u64),
    Text(String),
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl TokenSource {
    pub(super) fn new(name: &str, grant: Grant, http: Arc<dyn Http>) -> Self {
        Self {
            grant: Arc::new(grant),
            http,
            kept: Kept::new(&format!("{name}.access_token")),
        }
    }

    /// The access token for a client's secret.
    pub(super) async fn get(&self, secret: Secret, now: Instant) -> Result<Secret, SecretError> {
        let renew = || {
            let (grant, http) = (Arc::clone(&self.grant), Arc::clone(&self.http));
            async move { grant.ask(&secret, http.as_ref()).await }
        };
        self.kept.get(now, renew).await
    }

    /// Has the token renewed that was refused; see [`Kept::refused`].
    pub(super) fn refused(&self, now: Instant, token: &Secret) -> bool {
        self.kept.refused(now, |kept| kept.is_same(token))
    }
}

impl Grant {
    async fn ask(&self, secret: &Secret, http: &dyn Http) -> Result<Renewed<Secret>, SecretError> {
        let request = self
            .request(secret)
            .ok_or_else(|| self.wrong("can't be asked for"))?;
        let answer = exchange(http, &self.token_url.0, request).await?;
        match answer.status() {
            StatusCode::OK => self.read(answer.body()),
            _ => Err(self.refusal(&answer)),
        }
    }

    fn request(&self, secret: &Secret) -> Option<Request<Bytes>> {
        let (id, secret) = (
            value::escaped(self.client_id.as_bytes()),
            value::escaped(secret.bytes()),
        );
        let mut form = Zeroizing::new("grant_type=client_credentials".to_owned());
        for (name, value) in [("scope", &self.scope), ("audience", &self.audience)] {
            if let Some(value) = value {
                form.push_str(&format!("&{name}={}", &*value::escaped(value.as_bytes())));
            }
        }
        let mut request = Request::post(self.token_url.0.url()?.as_str())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match self.authentication {
            Authentication::Basic => {
                let pair = Zeroizing::new(format!("{}:{}", &*id, &*secret));
                let basic = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
                let mut basic = HeaderValue::from_str(&basic).ok()?;
                basic.set_sensitive(true);
                request = request.header(AUTHORIZATION, basic);
            }
            Authentication::Post => {
                form.push_str(&format!("&client_id={}&client_secret={}", &*id, &*secret));
            }
        }
        request.body(Bytes::copy_from_slice(form.as_bytes())).ok()
    }

    fn read(&self, body: &[u8]) -> Result<Renewed<Secret>, SecretError> {
        let answer = serde_json::from_slice(body);
        let answer: Answer = answer.map_err(|_| self.wrong("has no access token"))?;
        let is_bearer = |kind: &String| kind.eq_ignore_ascii_case("bearer");
        if !answer.token_type.as_ref().is_none_or(is_bearer) {
            return Err(self.wrong("has a token that is not of the type \"bearer\""));
        }
        let lifetime = match answer.expires_in {
            None => LIFETIME_DEFAULT,
            Some(Seconds::Number(seconds)) => Duration::from_secs(seconds),
            Some(Seconds::Text(text)) => {
                let seconds = text
                    .parse()
                    .map_err(|_| self.wrong("has no number of seconds"))?;
                Duration::from_secs(seconds)
            }
        };
        let lifetime = lifetime.min(LIFETIME_MAX);
        Ok(Renewed {
            value: Secret::new(answer.access_token.into_bytes())?,
            fresh_for: lifetime - MARGIN_MAX.min(lifetime / 10),
            usable_for: lifetime,
        })
    }

    fn refusal(&self, answer: &Response<Bytes>) -> SecretError {
        let refusal = serde_json::from_slice::<Refusal>(answer.body()).ok();
        let known = |refusal: Refusal| REASONS.into_iter().find(|reason| *reason == refusal.error);
        SecretError::Status {
            place: self.token_url.0.to_string(),
            status: answer.status().as_u16(),
            reason: refusal.and_then(known),
        }
    }

    fn wrong(&self, problem: &'static str) -> SecretError {
        SecretError::Answer {
            place: self.token_url.0.to_string(),
            problem,
        }
    }
}
