//! Credentials: a secret, the form in which it is sent, and the destinations that it is bound to.
//!
//! The binding is the guarantee. [`Credential::apply`] checks it again, whatever a policy said, and is called anew for
//! each request that leaves, the ones that follow a redirect included. What it puts in it takes the place of the guest's
//! own: a guest that could send a key of its own beside ours, or in its place, could have a server work for somebody
//! else.

mod config;
mod error;
mod parameter;
mod signature;
mod signer;
mod token;
mod value;

pub(crate) use self::value::visible;
pub use self::{
    config::CredentialConfig,
    error::{CredentialConfigError, CredentialError},
};

use self::{config::Form, signer::Signer, token::TokenSource};
use crate::{
    Destination, Pattern, Redactor, RedactorError, Secret, SecretStore, secret::KeptSecret,
    secret::is_plain,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use error::Problem;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{AUTHORIZATION, IF_RANGE, RANGE},
};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime},
};

/// The longest secret that is sent, in bytes: no server takes longer headers.
pub const SENT_BYTES_MAX: usize = 16 << 10;

/// A secret bound to destinations, and the form in which it is sent there. See [`CredentialConfig`].
pub struct Credential {
    name: Arc<str>,
    to: Vec<Pattern>,
    plain_http: bool,
    secret: KeptSecret,
    way: Way,
    /// The last one, with what it looks for: making one takes long, and there is seldom another secret.
    redactor: Mutex<Option<(Vec<Secret>, Redactor)>>,
}

/// How the secret is sent, with what else is needed for it.
enum Way {
    Header { name: HeaderName, prefix: String },
    Query { name: String },
    Basic { user: Option<String> },
    Bearer,
    Signature(Signer),
    Token(TokenSource),
}

/// What is put into a request, before it is.
struct Put {
    destination: Destination,
    secrets: Vec<Secret>,
    used: Secret,
    /// None takes the guest's own out, and puts nothing there.
    headers: Vec<(HeaderName, Option<HeaderValue>)>,
}

impl Put {
    fn header(&mut self, name: &HeaderName, prefix: &str, text: Secret) -> Result<(), Problem> {
        let text = text.bytes();
        within_limit(text)?;
        // The secret alone, so that a prefix hides no blank at its start.
        visible(text).ok_or(Problem::NotSendable)?;
        let mut value = visible(&[prefix.as_bytes(), text].concat()).ok_or(Problem::NotSendable)?;
        value.set_sensitive(true);
        self.headers.push((name.clone(), Some(value)));
        Ok(())
    }
}

/// A request that is about to leave. Only its headers are changed, and only where a credential was applied.
pub struct Outgoing<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it goes: this hop, not where a chain of redirects began.
    pub destination: &'a Destination,
    /// Its headers, as they will be sent: what is changed afterwards can break a signature.
    pub headers: &'a mut HeaderMap,
    /// What is known of its body.
    pub body: BodyDigest,
}

/// What is known of a body before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyDigest {
    /// There is none.
    Empty,
    /// Its SHA-256.
    Sha256([u8; 32]),
    /// Nothing: it is streamed.
    Unknown,
}

/// The time, on both clocks: one to keep values by, one to sign with.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For what is kept.
    pub instant: Instant,
    /// For what is signed.
    pub system: SystemTime,
}

impl Moment {
    /// Now, by the runtime's clock.
    #[must_use]
    pub fn now() -> Self {
        Self {
            instant: tokio::time::Instant::now().into_std(),
            system: SystemTime::now(),
        }
    }
}

/// What was done to a request.
pub struct Applied {
    /// Where to send it: with the credential in its query, or as it was signed.
    pub destination: Destination,
    /// The texts that were put in, and what they were made of: what an answer must not show.
    pub secrets: Vec<Secret>,
    /// What a refusal would be about.
    used: Secret,
}

impl Credential {
    /// Reads a credential's configuration, and adds its secrets to the store. None of them is read yet.
    ///
    /// # Errors
    /// [`CredentialConfigError`], where the configuration could never apply.
    pub fn new(
        name: &str,
        config: CredentialConfig,
        store: &mut SecretStore,
    ) -> Result<Self, CredentialConfigError> {
        config
            .check()
            .map_err(|problem| CredentialConfigError::new(name, problem))?;
        let mut keep = |part: &str, source| {
            let kept = store.keep(&format!("{name}{part}"), source);
            kept.map_err(|error| CredentialConfigError::new(name, error.to_string()))
        };
        let CredentialConfig {
            secret,
            to,
            form,
            plain_http,
        } = config;
        let secret = keep("", secret)?;
        let way = match form {
            Form::Header { name, prefix } => Way::Header {
                name: name.0,
                prefix,
            },
            Form::Query { name } => Way::Query { name },
            Form::Basic { user } => Way::Basic { user },
            Form::Bearer => Way::Bearer,
            Form::AwsSigv4(aws) => Way::Signature(Signer::new(*aws, &mut keep)?),
            Form::Oauth2ClientCredentials(grant) => {
                Way::Token(TokenSource::new(name, grant, Arc::clone(store.http())))
            }
        };
        Ok(Self {
            name: name.into(),
            to,
            plain_http,
            secret,
            way,
            redactor: Mutex::default(),
        })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may be sent where anybody on the way can read it.
    #[must_use]
    pub fn is_sent_in_plain(&self) -> bool {
        self.plain_http
    }

    /// Whether it has to know a request's body to be put in.
    #[must_use]
    pub fn is_of_body(&self) -> bool {
        matches!(self.way, Way::Signature(_))
    }

    /// Whether it is bound to a destination.
    #[must_use]
    pub fn is_for(&self, destination: &Destination) -> bool {
        self.to.iter().any(|pattern| pattern.matches(destination))
    }

    /// Puts the secret into a request, and takes out what the guest had in its place. Call it in a tokio runtime, for
    /// each request that leaves, as the last to change its headers.
    ///
    /// # Errors
    /// [`CredentialError`]; the request is then as it was, and must not be sent.
    pub async fn apply(
        &self,
        request: Outgoing<'_>,
        now: Moment,
    ) -> Result<Applied, CredentialError> {
        let applied = self.apply_within(request, now).await;
        applied.map_err(|problem| CredentialError::new(&self.name, problem))
    }

    async fn apply_within(&self, request: Outgoing<'_>, now: Moment) -> Result<Applied, Problem> {
        self.check(&request)?;
        let used = self.secret.get(now.instant).await?;
        let destination = request.destination;
        let mut put = Put {
            destination: destination.clone(),
            secrets: vec![used.clone()],
            used,
            headers: Vec::new(),
        };
        match &self.way {
            Way::Header { name, prefix } => put.header(name, prefix, put.used.clone())?,
            Way::Bearer => put.header(&AUTHORIZATION, "Bearer ", put.used.clone())?,
            Way::Basic { user } => {
                let (pair, password) = value::pair(user.as_deref(), &put.used)?;
                let encoded = Secret::derived(STANDARD.encode(pair.bytes()).into_bytes());
                put.header(&AUTHORIZATION, "Basic ", encoded.clone())?;
                put.secrets.extend([pair, password, encoded]);
            }
            Way::Query { name } => {
                within_limit(put.used.bytes())?;
                put.destination = parameter::replaced(destination, name, put.used.bytes())?;
            }
            Way::Token(source) => {
                put.used = source.get(put.used, now.instant).await?;
                put.header(&AUTHORIZATION, "Bearer ", put.used.clone())?;
                put.secrets.push(put.used.clone());
            }
            Way::Signature(aws) => aws.sign(&request, &mut put, now).await?,
        }
        for (name, value) in put.headers {
            remove_alike(request.headers, &name);
            if let Some(value) = value {
                request.headers.insert(name, value);
            }
        }
        Ok(Applied {
            destination: put.destination,
            secrets: put.secrets,
            used: put.used,
        })
    }

    /// All that is asked of a request before any secret is read.
    fn check(&self, request: &Outgoing<'_>) -> Result<(), Problem> {
        let destination = request.destination;
        if !self.is_for(destination) {
            return Err(Problem::NotBound(destination.origin()));
        }
        if is_plain(destination) && !self.plain_http {
            return Err(Problem::PlainHttp(destination.origin()));
        }
        // What is sent back in parts of the guest's choosing can't be searched for the secret.
        for name in [RANGE, IF_RANGE] {
            if request.headers.contains_key(&name) {
                return Err(Problem::Partial(name));
            }
        }
        match *request.method {
            // Its answer is the request.
            Method::TRACE => Err(Problem::Trace),
            _ => Ok(()),
        }
    }

    /// A redactor of what was put into a request, for its answer.
    ///
    /// # Errors
    /// [`RedactorError`].
    pub fn redactor(&self, applied: &Applied) -> Result<Redactor, RedactorError> {
        self.redactor_of(&applied.secrets)
    }

    /// The same, where others were put in as well: of all their secrets.
    pub(crate) fn redactor_of(&self, put_in: &[Secret]) -> Result<Redactor, RedactorError> {
        let mut last = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((secrets, redactor)) = &*last
            && secrets
                .iter()
                .map(Secret::bytes)
                .eq(put_in.iter().map(Secret::bytes))
        {
            return Ok(redactor.another());
        }
        let redactor = Redactor::new(put_in)?;
        let another = redactor.another();
        *last = Some((put_in.to_vec(), redactor));
        Ok(another)
    }

    /// Takes note that a server answered 401 (or AWS 403) to what was applied, and says whether it is worth trying once
    /// more: the token, or the secret, is then read anew by the next [`Credential::apply`]. What is younger than ten
    /// seconds is not, so that a guest can't have it read as often as it makes a server refuse.
    pub fn invalidate(&self, applied: &Applied, now: Instant) -> bool {
        match &self.way {
            Way::Token(source) => source.refused(now, &applied.used),
            Way::Signature(signer) => {
                // Both are asked: they change together.
                signer.refused(now) | self.secret.refused(now, &applied.used)
            }
            _ => self.secret.refused(now, &applied.used),
        }
    }
}

fn within_limit(text: &[u8]) -> Result<(), Problem> {
    match text.len() <= SENT_BYTES_MAX {
        true => Ok(()),
        false => Err(Problem::TooLong),
    }
}

/// Removes a header in each spelling that a server may read as it: many hand `-` and `_` on as one.
fn remove_alike(headers: &mut HeaderMap, name: &HeaderName) {
    let plain = |name: &HeaderName| name.as_str().replace('_', "-");
    let is_alike = |other: &&HeaderName| plain(other) == plain(name);
    let alike: Vec<HeaderName> = headers.keys().filter(is_alike).cloned().collect();
    for name in alike {
        headers.remove(name);
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut credential = formatter.debug_struct("Credential");
        credential.field("name", &self.name).field("to", &self.to);
        credential.finish_non_exhaustive()
    }
}

/// The destination without its query, which may hold the secret.
impl fmt::Debug for Applied {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut applied = formatter.debug_struct("Applied");
        applied.field("destination", &self.destination.to_string());
        applied.field("secrets", &self.secrets.len());
        applied.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
