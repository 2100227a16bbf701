//! Where a sandbox's requests may go, and how they get there.
//!
//! A request is judged in one form only: [`Destination`], which is its URL read once by the WHATWG rules. A [`Pattern`]
//! says which destinations are meant; policies are made of patterns, and so are the bindings of credentials. Nothing in
//! here knows of JavaScript, isolates or RPC: the server calls it with requests and passes the answers on.

pub mod address;
pub mod budget;
mod destination;
mod pattern;
pub mod policy;

pub use address::{AddressClass, AddressRefused, admit, classify};
pub use budget::{Budget, BudgetError, Budgets, Meter};
pub use destination::{Destination, Host, Refused, Scheme, URL_BYTES_MAX};
pub use pattern::{Pattern, PatternError};
pub use policy::{
    Decider, Decision, Effect, Explanation, Origin as PolicyOrigin, Policies, PoliciesTooMany,
    Policy, PolicyError,
};
