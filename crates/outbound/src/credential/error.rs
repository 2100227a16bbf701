//! Why a credential is not applied.

use crate::SecretError;
use http::HeaderName;
use std::{error::Error, fmt};

/// Why a credential is not applied. It names the credential and never shows the secret. Its text may be shown to the
/// guest: where a secret is kept, and why it can't be read there, is only in its source.
#[derive(Clone, Debug)]
pub struct CredentialError {
    credential: String,
    problem: Problem,
}

impl fmt::Display for CredentialError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            credential,
            problem,
        } = self;
        write!(formatter, "the credential \"{credential}\" {problem}")
    }
}

impl Error for CredentialError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}

impl CredentialError {
    pub(super) fn new(credential: &str, problem: Problem) -> Self {
        Self {
            credential: credential.into(),
            problem,
        }
    }

    /// The credential's name.
    #[must_use]
    pub fn credential(&self) -> &str {
        &self.credential
    }

    /// Why there is no secret, where that is the reason: for the log.
    #[must_use]
    pub fn secret(&self) -> Option<&SecretError> {
        match &self.problem {
            Problem::Secret(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the request asked for what is never done, and not the server failed to do it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        use Problem::{BodyUnknown, NotBound, Partial, PlainHttp, Trace};
        matches!(
            self.problem,
            NotBound(_) | PlainHttp(_) | Partial(_) | Trace | BodyUnknown(_)
        )
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("is not bound to {0}: its \"to\" says where it may be sent")]
    NotBound(String),
    #[error("is not sent over plain http to {0}: use https, or say \"plain_http\": true")]
    PlainHttp(String),
    #[error("is not sent with the header \"{0}\": an answer in parts can't be searched for it")]
    Partial(HeaderName),
    #[error("is not sent with TRACE: the answer would show it")]
    Trace,
    #[error("is not available")]
    Secret(#[from] SecretError),
    #[error("can't be sent: its secret has a character that is not visible")]
    NotSendable,
    #[error("has no user: its secret is not of the form user:password")]
    NoUser,
    #[error("makes the request too long")]
    TooLong,
    #[error("can't sign a body that is streamed for \"{0}\": send it whole")]
    BodyUnknown(String),
}

/// Why a credential's configuration could never apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credential \"{credential}\" is wrong: {problem}")]
pub struct CredentialConfigError {
    credential: String,
    problem: String,
}

impl CredentialConfigError {
    pub(super) fn new(credential: &str, problem: impl Into<String>) -> Self {
        Self {
            credential: credential.into(),
            problem: problem.into(),
        }
    }
}
