//! Where a sandbox's requests may go, and how they get there.
//!
//! A request is judged in one form only: [`Destination`], which is its URL read once by the WHATWG rules. A [`Pattern`]
//! says which destinations are meant; policies are made of patterns, and so are the bindings of credentials. Nothing in
//! here knows of JavaScript, isolates or RPC: the server calls it with requests and passes the answers on.

mod credential;
mod destination;
mod pattern;
mod redact;
mod secret;

pub use credential::{
    Applied, BodyDigest, Credential, CredentialConfig, CredentialConfigError, CredentialError,
    Moment, Outgoing, SENT_BYTES_MAX,
};
pub use destination::{Destination, Host, Refused, Scheme, URL_BYTES_MAX};
pub use pattern::{Pattern, PatternError};
pub use redact::{REDACTED_BYTES_MIN, Redactor, RedactorError};
pub use secret::{
    ANSWER_BYTES_MAX, Http, HttpError, SECRET_BYTES_MAX, STALE_SECONDS_MAX, Secret, SecretError,
    SecretSource, SecretStore,
};
