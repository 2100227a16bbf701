//! What can go wrong, besides what a worker throws and what a limit stops, which are answers.

use crate::answer::{Thrown, Verdict};

/// Why something could not be done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] coracle_schema::AddressError),
    /// The server can't be reached.
    #[error("can't connect to {address}: {cause}")]
    Connect {
        /// Where to.
        address: String,
        /// What the system said.
        cause: String,
    },
    /// The embedded server did not start.
    #[error("the embedded server did not start: {0}")]
    Embedded(String),
    /// The credentials were not accepted.
    #[error("{0}")]
    Unauthenticated(String),
    /// The request is wrong or was refused; doing it again does not help.
    #[error("{0}")]
    Failed(String),
    /// The server has too much to do; try again later.
    #[error("{0}")]
    Overloaded(String),
    /// The connection is gone, or the server is going: connect again.
    #[error("disconnected: {0}")]
    Disconnected(String),
    /// The server is older than this client and does not know the request.
    #[error("the server does not know this request: {0}")]
    Unimplemented(String),
    /// The server's answer can't be understood.
    #[error("the server's answer is malformed: {0}")]
    Malformed(String),
    /// The worker threw. Only from [`Answer::value`](crate::Answer::value).
    #[error("{0}")]
    Threw(Box<Thrown>),
    /// A limit stopped the call. Only from [`Answer::value`](crate::Answer::value).
    #[error("{0}")]
    Verdict(Box<Verdict>),
}

impl Error {
    pub(crate) fn from_rpc(error: &capnp::Error) -> Self {
        let text = plain(&error.extra);
        match error.kind {
            capnp::ErrorKind::Overloaded => Self::Overloaded(text),
            capnp::ErrorKind::Disconnected => Self::Disconnected(text),
            capnp::ErrorKind::Unimplemented => Self::Unimplemented(text),
            _ if text.starts_with("unauthenticated") => Self::Unauthenticated(text),
            capnp::ErrorKind::Failed => Self::Failed(text),
            _ => Self::Malformed(error.to_string()),
        }
    }
}

/// The error's text without what each hop puts in front of it.
fn plain(text: &str) -> String {
    let mut text = text;
    while let Some(rest) = text.strip_prefix("remote exception: ") {
        text = rest;
    }
    text.to_owned()
}

/// A limit's name that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no limit {0:?}")]
pub struct LimitUnknown(pub(crate) String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do_about_it() {
        let error = Error::from_rpc(&capnp::Error::overloaded(
            "remote exception: remote exception: busy".into(),
        ));
        assert!(matches!(error, Error::Overloaded(text) if text == "busy"));
        let error = Error::from_rpc(&capnp::Error::failed(
            "remote exception: unauthenticated: no".into(),
        ));
        assert!(matches!(error, Error::Unauthenticated(text) if text == "unauthenticated: no"));
    }
}
