//! What became of each request: one record, without bodies, queries or secrets.

use crate::Error;
use serde::Serialize;
use std::time::Duration;

/// Who a request is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// Who pays.
    pub tenant: String,
    /// The worker's number in this server.
    pub worker: u64,
    /// The invocation's number in this server.
    pub invocation: u64,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `fetch`
    Fetch,
    /// A `WebSocket`, or a `fetch` that asks for one.
    WebSocket,
    /// `connect`
    Connect,
}

impl Kind {
    /// Its name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::WebSocket => "web_socket",
            Self::Connect => "connect",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It was let out. What became of it is another matter.
    Allowed,
    /// A rule, a budget or an address was in the way.
    Denied,
    /// It failed before it could be let out, or was given up.
    Failed,
}

impl Decision {
    /// Its name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// Bytes of a destination that a record has.
pub const DESTINATION_BYTES_MAX: usize = 1_000;

/// One request, or one hop of it: a redirect that is followed has a record of its own.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who sent it.
    pub sender: Sender,
    /// What was done.
    pub kind: Kind,
    /// The method; empty for `connect`.
    pub method: String,
    /// Origin and path, without the query, and at most [`DESTINATION_BYTES_MAX`] of them; what could not be read is empty.
    pub destination: String,
    /// How many redirects came before.
    pub hop: u32,
    /// Whether it went out.
    pub decision: Decision,
    /// The rule that decided; empty where none did.
    pub rule: String,
    /// The credential that was put in; empty where none was.
    pub credential: String,
    /// The status of the response; 0 where there was none.
    pub status: u16,
    /// [`Error::code`] of what it failed with, or "cancelled" if nobody waited for the response any longer; empty where
    /// it did not fail.
    pub error: &'static str,
    /// Of bodies, or of the connection.
    pub bytes_sent: u64,
    /// Of bodies, or of the connection.
    pub bytes_received: u64,
    /// Places where a secret came back and was taken out.
    pub redactions: u64,
    /// From the decision to the end of the response's body, or of the connection.
    pub duration: Duration,
}

impl Record {
    pub(crate) fn new(sender: Sender, kind: Kind, method: &str) -> Self {
        Self {
            sender,
            kind,
            method: method.into(),
            destination: String::new(),
            hop: 0,
            decision: Decision::Failed,
            rule: String::new(),
            credential: String::new(),
            status: 0,
            error: "",
            bytes_sent: 0,
            bytes_received: 0,
            redactions: 0,
            duration: Duration::ZERO,
        }
    }

    /// Says where it goes, as far as there is room.
    pub(crate) fn goes_to(&mut self, destination: &crate::Destination) {
        self.destination = destination.to_string();
        if self.destination.len() > DESTINATION_BYTES_MAX {
            let end = self.destination.floor_char_boundary(DESTINATION_BYTES_MAX);
            self.destination.truncate(end);
            self.destination.push('…');
        }
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        self.error = error.code();
        // A budget that is used up in the middle of a body stops what was let out.
        let was_let_out = self.decision == Decision::Allowed && matches!(error, Error::Budget(_));
        if error.is_denial() && !was_let_out {
            self.decision = Decision::Denied;
        }
    }
}

/// Keeps records.
pub trait Audit: Send + Sync {
    /// Called once for each request, when it is over. It must not wait.
    fn record(&self, record: Record);
}
