//! Why a request did not go out, or did not come back.

use crate::{AddressClass, BudgetError, Refused};
use std::{net::SocketAddr, time::Duration};

/// What a worker's request failed with. No text has a secret or a query in it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Its URL or address is none.
    #[error(transparent)]
    Destination(#[from] Refused),
    /// A policy does not let it out. The text says which rule decided and how to allow it.
    #[error("{0}")]
    Denied(String),
    /// Whoever was asked said no, or could not be asked.
    #[error("{rule} asks whether {destination} may be reached, and the answer was no{reason}")]
    AnswerNo {
        /// The rule that asks.
        rule: String,
        /// Where the request was to go.
        destination: String,
        /// What was said, after a colon; or nothing.
        reason: String,
    },
    /// A budget is used up.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// Too many connections are open.
    #[error(
        "{used} connections are open, {max} are allowed ({limit}): close some, and read bodies to their end"
    )]
    Connections {
        /// The limit's name in the configuration.
        limit: &'static str,
        /// How many there may be.
        max: usize,
        /// How many there are.
        used: usize,
    },
    /// What a name is resolved to, or an address itself, is not reached from here.
    #[error(
        "{host} is {class}, which no rule names: a rule with \"private\": true reaches loopback and private \
         addresses"
    )]
    AddressPrivate {
        /// What was to be reached.
        host: String,
        /// What kind of address it is.
        class: AddressClass,
        /// The addresses.
        addresses: String,
    },
    /// An address that is never reached, whatever a rule says.
    #[error("{host} is {class}, which is never reached")]
    AddressNever {
        /// What was to be reached.
        host: String,
        /// What kind of address it is.
        class: AddressClass,
        /// The addresses.
        addresses: String,
    },
    /// The server's own.
    #[error("{host} is this server itself, which is never reached")]
    AddressOwn {
        /// What was to be reached.
        host: String,
        /// The listener.
        address: SocketAddr,
    },
    /// A name has no address.
    #[error("{host} can't be resolved: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// What DNS said.
        reason: String,
    },
    /// Nobody took the connection.
    #[error("{origin} can't be connected to: {reason}")]
    Connect {
        /// Where to.
        origin: String,
        /// What kept it.
        reason: String,
    },
    /// The peer is not who it should be, or speaks no TLS.
    #[error("{origin} has no TLS that can be trusted: {reason}")]
    Tls {
        /// Where to.
        origin: String,
        /// What was wrong.
        reason: String,
    },
    /// TLS is to be started with a name that is none.
    #[error(
        "startTls: expectedServerHostname is empty: leave it out, and the host proves its own name"
    )]
    TlsNameEmpty,
    /// A credential can't be put in.
    #[error("{0}")]
    Credential(String),
    /// A header that can't be sent.
    #[error("the header {name} can't be sent: {problem}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A method that can't be sent.
    #[error("the method {0} can't be sent")]
    Method(String),
    /// More than may be sent or received.
    #[error("{what} has more than {bytes_max} bytes ({limit})")]
    TooLarge {
        /// The request's body, or the response's.
        what: &'static str,
        /// How many are allowed.
        bytes_max: u64,
        /// The limit's name in the configuration.
        limit: &'static str,
    },
    /// It took too long.
    #[error("{origin} did not {what} within {} ms ({limit})", time_max.as_millis())]
    TooSlow {
        /// Who.
        origin: String,
        /// What was waited for.
        what: &'static str,
        /// How long.
        time_max: Duration,
        /// The limit's name in the configuration.
        limit: &'static str,
    },
    /// One redirect led to the next.
    #[error("more than {0} redirects, the last of them from {1}")]
    Redirects(u32, String),
    /// A redirect, where none is to be followed.
    #[error("{0} redirects, and the request says redirect: \"error\"")]
    Redirected(String),
    /// A redirect that asks for a body again which is gone.
    #[error("{0} redirects a request whose body was a stream, which can't be sent again")]
    BodyGone(String),
    /// What came is no HTTP that is understood, or the connection broke.
    #[error("{origin} did not answer as HTTP does: {reason}")]
    Protocol {
        /// Who.
        origin: String,
        /// What was wrong.
        reason: String,
    },
    /// The worker's own body failed.
    #[error("the request's body failed: {0}")]
    Body(String),
}

impl Error {
    /// A word for programs and metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Destination(_) => "url_refused",
            Self::Denied(_) => "policy_denied",
            Self::AnswerNo { .. } => "ask_denied",
            Self::Budget(_) | Self::Connections { .. } => "budget_exceeded",
            Self::AddressPrivate { .. } | Self::AddressNever { .. } | Self::AddressOwn { .. } => {
                "address_denied"
            }
            Self::Resolve { .. } => "resolve_failed",
            Self::Connect { .. } => "connect_failed",
            Self::Tls { .. } | Self::TlsNameEmpty => "tls_failed",
            Self::Credential(_) => "credential_failed",
            Self::Header { .. } | Self::Method(_) => "request_invalid",
            Self::TooLarge { .. } => "too_large",
            Self::TooSlow { .. } => "too_slow",
            Self::Redirects(..) | Self::Redirected(_) | Self::BodyGone(_) => "redirect_refused",
            Self::Protocol { .. } => "protocol_failed",
            Self::Body(_) => "body_failed",
        }
    }

    /// Whether no connection was there for the request, so that nothing of it was sent.
    pub(crate) fn is_unsent(&self) -> bool {
        match self {
            Self::TooSlow { limit, .. } => *limit == "connect_ms_max",
            Self::Credential(_)
            | Self::Connections { .. }
            | Self::AddressPrivate { .. }
            | Self::AddressNever { .. }
            | Self::AddressOwn { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Tls { .. } => true,
            _ => false,
        }
    }

    /// Whether a rule was in the way, and not the network.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            Self::Destination(_)
                | Self::Denied(_)
                | Self::AnswerNo { .. }
                | Self::Budget(_)
                | Self::Connections { .. }
                | Self::AddressPrivate { .. }
                | Self::AddressNever { .. }
                | Self::AddressOwn { .. }
        )
    }
}
