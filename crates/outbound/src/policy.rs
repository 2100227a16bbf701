//! Which requests may leave: rules, of which the first that matches decides; no rule is a denial.
//!
//! A [`Policy`] is read once from JSON, strictly, and then only asked. It decides on a [`Destination`] and a method and on
//! nothing else: no clock, no DNS. [`Policies`] are several that all have to allow, so that what came with a load is never
//! wider than what the operator gave. The addresses that names lead to are [`admit`](crate::admit)'s to judge, and
//! budgets are counted by [`Budgets`](crate::Budgets).

mod decision;
mod document;
mod explanation;
mod node;
mod path;
mod rule;

pub use decision::{Decider, Decision};
pub use document::{PolicyError, Problem};
pub use explanation::Explanation;
pub use rule::Miss;

use crate::Destination;
use rule::{Asked, Rule};
use std::{fmt, sync::Arc};

/// The longest text of a policy of an operator's, in bytes.
pub const POLICY_BYTES_MAX: usize = 1 << 20;
/// The longest text of a policy of a client's, in bytes.
pub const POLICY_CLIENT_BYTES_MAX: usize = 16 << 10;
/// How often a policy of a client's may compare a part of a pattern with a part of a request, to decide about one: with each
/// pattern of hosts once, with each segment of a path's pattern once, and where there is `**` in it with each of 128
/// segments. One takes some nanoseconds, so that all of them take less than a millisecond whatever the request is.
pub const POLICY_CLIENT_STEPS_MAX: usize = 100_000;
/// The most rules of a policy.
pub const RULES_MAX: usize = 1_000;
/// The most patterns of a rule, and the most paths of one.
pub const PATTERNS_MAX: usize = 1_000;
/// The most methods of a rule.
pub const METHODS_MAX: usize = 32;
/// The longest name of a policy, of a rule, of a method or of a credential, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// The longest text of a pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1 << 10;
/// The most policies that all have to allow.
pub const POLICIES_MAX: usize = 16;

/// Rules for requests, read from JSON:
///
/// ```
/// use coracle_outbound::{Destination, Policy, PolicyOrigin};
///
/// let text = r#"{"rules": [
///     {"name": "no secrets", "deny": ["https://api.github.com"], "paths": ["/repos/*/*/actions/secrets/**"]},
///     {"allow": ["https://api.github.com"], "methods": ["GET"], "credential": "github",
///      "budget": {"requests_max": 5000, "per_seconds": 3600}},
///     {"allow": ["http://prices.shop.svc:8080"], "private": true},
///     {"ask": ["https://*.example.com"]}
/// ]}"#;
/// let policy = Policy::of_json("github", PolicyOrigin::Operator, text)?;
/// let destination = Destination::of_url("https://api.github.com/repos/a/b")?;
/// assert!(policy.decide(&destination, Some("GET")).is_allowed());
/// assert!(!policy.decide(&destination, Some("POST")).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A rule has one of `allow`, `deny` and `ask`, a list of [`Pattern`](crate::Pattern)s, and may have:
///
/// - `name`, for people. Without one it is "rule 3", counted from 1.
/// - `methods`, in upper case. A rule with methods or paths is of no `tcp` destination.
/// - `paths`, patterns of the URL's path: `*` is one segment or a part of one, `**` any number of segments or none, so
///   that `/a/**` is `/a` and everything below it. Queries are not compared. Paths are compared decoded. One that servers
///   may read in more than one way (with `//`, a backslash, `;`, an encoded `/`, `\`, `.` or control character, anything
///   encoded twice or badly, or more than 128 segments) is of no rule with `paths` that allows or asks, and of every one
///   that denies. Denials do not tell upper from lower case, in paths or methods, nor slashes at the end; even so, what a
///   server makes of a path is not known to the rule, and to allow the right paths is safer than to deny the wrong ones.
/// - `private`: its hosts may be at loopback, private, shared and link-local addresses. Only operators can say so, and
///   only of hosts that the rule names: not of `*`.
/// - `credential`: the name of one to send along. Only operators can say so.
/// - `budget`: see [`Budget`](crate::Budget).
///
/// No rule, or an empty list in one, matches nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    name: String,
    origin: Origin,
    rules: Vec<Rule>,
    /// What people call each rule, and at the end the policy itself.
    labels: Vec<Arc<str>>,
}

/// Who made a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Whoever runs the server.
    Operator,
    /// Whoever loads code: it can only make narrower what the operator allows.
    Client,
}

/// What a rule does with a request, from the least strict to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It may go.
    Allow,
    /// It may go if a capability of the client's says so, which is shown the request.
    Ask,
    /// It may not go.
    Deny,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// All that is wrong with it, each with its place.
    pub fn of_json(name: &str, origin: Origin, text: &str) -> Result<Self, PolicyError> {
        let rules = document::rules_of(name, origin, text)?;
        let mut policy = Self {
            name: name.into(),
            origin,
            rules,
            labels: Vec::new(),
        };
        let rules = policy.rules.iter().enumerate();
        let labels = rules.map(|(index, rule)| format!("{} of {policy}", rule.label(index)));
        policy.labels = labels.chain([policy.to_string()]).map(Into::into).collect();
        Ok(policy)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who made it.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The credentials that its rules name, some perhaps more than once.
    pub fn credentials(&self) -> impl Iterator<Item = &str> {
        self.rules
            .iter()
            .filter_map(|rule| rule.credential.as_deref())
    }

    /// Decides by this policy alone. A method that is not known is one that no rule with methods allows.
    #[must_use]
    pub fn decide<'a>(
        &'a self,
        destination: &'a Destination,
        method: Option<&'a str>,
    ) -> Decision<'a> {
        Decision::of([self], destination, method)
    }

    /// Decides, and says of each rule what it makes of the request.
    #[must_use]
    pub fn explain<'a>(
        &'a self,
        destination: &'a Destination,
        method: Option<&'a str>,
    ) -> Explanation<'a> {
        Explanation::of(self, destination, method)
    }

    fn rule_of(&self, asked: &Asked<'_>) -> Option<(usize, &Rule)> {
        let mut rules = self.rules.iter().enumerate();
        rules.find(|(_, rule)| rule.matches(asked))
    }
}

/// Policies that all have to allow. None at all deny everything, and so do those of clients alone.
///
/// The strictest effect wins. Credentials and private addresses are granted by operators' policies only: an address if
/// each of them grants it. The budgets of all of them count.
#[derive(Clone, Debug, Default)]
pub struct Policies(Vec<Arc<Policy>>);

/// There are as many policies as can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {POLICIES_MAX} policies would have to allow each request")]
pub struct PoliciesTooMany;

impl Policies {
    /// These and one more that has to allow.
    ///
    /// # Errors
    /// There are [`POLICIES_MAX`] already.
    pub fn and(&self, policy: Arc<Policy>) -> Result<Self, PoliciesTooMany> {
        if self.0.len() >= POLICIES_MAX {
            return Err(PoliciesTooMany);
        }
        let mut policies = self.0.clone();
        policies.push(policy);
        Ok(Self(policies))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Decides by all of them.
    #[must_use]
    pub fn decide<'a>(
        &'a self,
        destination: &'a Destination,
        method: Option<&'a str>,
    ) -> Decision<'a> {
        let is_granted = self.iter().any(|policy| policy.origin == Origin::Operator);
        let policies = self.iter().filter(|_| is_granted);
        Decision::of(policies, destination, method)
    }
}

impl From<Arc<Policy>> for Policies {
    fn from(policy: Arc<Policy>) -> Self {
        Self(vec![policy])
    }
}

/// As it is spoken of in sentences.
impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.origin {
            Origin::Operator => write!(formatter, "the policy \"{name}\""),
            Origin::Client => write!(formatter, "the client's policy \"{name}\""),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

#[cfg(test)]
mod tests;
