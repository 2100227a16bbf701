//! What became of each request: one record, without bodies, queries or secrets.

use crate::{Destination, Error, Underway, fetch::METHOD_BYTES_MAX};
use serde::Serialize;
use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Who a request is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// Who pays.
    pub tenant: Arc<str>,
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

/// Who decides about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// A policy.
    Policy,
    /// An object of a client's or a worker's, which every request is passed to.
    Gateway,
    /// Nobody: nothing leaves.
    None,
}

impl Judge {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Policy, Self::Gateway, Self::None];

    /// Its name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Gateway => "gateway",
            Self::None => "none",
        }
    }
}

/// Bytes of a destination that a record has.
pub const DESTINATION_BYTES_MAX: usize = 1_000;

/// One request, or one hop of it: a redirect that is followed has a record of its own.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its number in this process.
    pub number: u64,
    /// Who decided.
    pub judge: Judge,
    /// Who sent it.
    pub sender: Sender,
    /// What was done.
    pub kind: Kind,
    /// The method; empty for `connect`.
    pub method: Cow<'static, str>,
    /// Origin and path, without the query, and at most [`DESTINATION_BYTES_MAX`] of them; what could not be read is empty.
    pub destination: String,
    /// How many redirects came before.
    pub hop: u32,
    /// Whether it went out.
    pub decision: Decision,
    /// The rule that decided; empty where none did.
    pub rule: Arc<str>,
    /// The credential that was put in; empty where none was.
    pub credential: String,
    /// The status of the response; 0 where there was none.
    pub status: u16,
    /// [`Error::code`] of what it failed with, "gateway_failed" if a gateway threw, or "cancelled" if nobody waited for the response any longer; empty where
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
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            judge: Judge::Policy,
            sender,
            kind,
            method: method_of(method),
            destination: String::new(),
            hop: 0,
            decision: Decision::Failed,
            rule: Arc::default(),
            credential: String::new(),
            status: 0,
            error: "",
            bytes_sent: 0,
            bytes_received: 0,
            redactions: 0,
            duration: Duration::ZERO,
        }
    }

    /// Of a request that no policy is asked about: `destination` is its URL, or the address of a connection.
    #[must_use]
    pub fn unjudged(
        judge: Judge,
        sender: Sender,
        kind: Kind,
        method: &str,
        destination: &str,
    ) -> Self {
        let shown = &method[..method.floor_char_boundary(METHOD_BYTES_MAX)];
        let mut record = Self::new(sender, kind, shown);
        record.judge = judge;
        let read = match kind {
            Kind::Connect => Destination::of_address(destination),
            Kind::Fetch | Kind::WebSocket => Destination::of_url(destination),
        };
        if let Ok(destination) = read {
            record.goes_to(&destination);
        }
        record
    }

    /// Says where it goes, as far as there is room.
    pub(crate) fn goes_to(&mut self, destination: &Destination) {
        self.destination = destination.text();
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

/// The usual ones take no memory.
fn method_of(method: &str) -> Cow<'static, str> {
    const USUAL: [&str; 8] = [
        "", "GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS",
    ];
    match USUAL.into_iter().find(|usual| *usual == method) {
        Some(usual) => Cow::Borrowed(usual),
        None => Cow::Owned(method.to_owned()),
    }
}

/// Keeps records.
pub trait Audit: Send + Sync {
    /// Called once for each request, when it begins. It must not wait.
    fn begun(&self, _request: &Arc<Underway>) {}

    /// Called once for each request, when it is over. It must not wait.
    fn record(&self, record: Record);
}
