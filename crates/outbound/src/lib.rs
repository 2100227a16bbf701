//! Where a sandbox's requests may go, and how they get there.
//!
//! A request is judged in one form only: [`Destination`], which is its URL read once by the WHATWG rules. A [`Pattern`]
//! says which destinations are meant; policies are made of patterns, and so are the bindings of credentials. Nothing in
//! here knows of JavaScript, isolates or RPC: the server calls it with requests and passes the answers on.
//!
//! An [`Outbound`] is made once from the configuration; each worker has a [`Channel`] of it, whose `fetch` and `connect`
//! judge ([`Policies`]), resolve and pin ([`Resolve`]), put credentials in ([`Credential`]), send, judge each redirect
//! again, and tell an [`Audit`] what became of it. Everything that a worker or a server says is untrusted here.

pub mod address;
mod audit;
mod body;
pub mod budget;
mod channel;
mod clients;
mod config;
mod credential;
mod destination;
mod dial;
mod error;
mod fetch;
mod headers;
mod operator;
mod outbound;
mod pattern;
mod places;
pub mod policy;
mod redact;
mod resolve;
mod secret;
mod sent;
mod socket;
mod trail;
mod web_socket;

pub use address::{AddressClass, AddressRefused, admit, classify};
pub use audit::{
    Audit, DESTINATION_BYTES_MAX, Decision as RequestDecision, Judge, Kind, Record, Sender,
};
pub use body::{Body, Received};
pub use budget::{Budget, BudgetError, Budgets, Meter};
pub use channel::{Ask, Channel, Question};
pub use config::{Config, DnsConfig, ProxyConfig, RequestLimits, TenantConfig};
pub use credential::{
    Applied, BodyDigest, Credential, CredentialConfig, CredentialConfigError, CredentialError,
    Moment, Outgoing, SENT_BYTES_MAX,
};
pub use destination::{Destination, Host, Refused, Scheme, URL_BYTES_MAX};
pub use dial::OwnAddresses;
pub use error::Error;
pub use fetch::{Duplex, REDIRECTS_MAX, Redirect, Request, Response, Socket};
pub use outbound::{Asked, AskedError, ConfigError, Outbound};
pub use pattern::{Pattern, PatternError};
pub use places::Connections;
pub use policy::{
    Decider, Decision, Effect, Explanation, Origin as PolicyOrigin, Policies, PoliciesTooMany,
    Policy, PolicyError,
};
pub use redact::{REDACTED_BYTES_MIN, Redactor, RedactorError};
pub use resolve::Resolve;
pub use secret::{
    ANSWER_BYTES_MAX, Http, HttpError, SECRET_BYTES_MAX, STALE_SECONDS_MAX, Secret, SecretError,
    SecretSource, SecretStore,
};
pub use socket::Connection;
pub use trail::{Trail, Underway};
