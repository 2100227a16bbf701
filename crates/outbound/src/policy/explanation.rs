//! What each rule of a policy makes of a request: for `coracle policy check`, and for whoever wonders.

use super::{Decision, Effect, Policy, rule::Asked, rule::Miss};
use crate::{Destination, Host, admit};
use std::fmt;

/// What each rule of one policy makes of one request, and what is decided. Prints as a table for people.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    policy: &'a Policy,
    decision: Decision<'a>,
    misses: Vec<Option<Miss>>,
}

impl<'a> Explanation<'a> {
    pub(super) fn of(
        policy: &'a Policy,
        destination: &'a Destination,
        method: Option<&'a str>,
    ) -> Self {
        let asked = Asked::new(destination, method);
        Self {
            policy,
            decision: policy.decide(destination, method),
            misses: policy.rules.iter().map(|rule| rule.miss(&asked)).collect(),
        }
    }

    /// What is decided.
    #[must_use]
    pub fn decision(&self) -> &Decision<'a> {
        &self.decision
    }

    /// For each rule in order why the request is not of it, or none if it is.
    #[must_use]
    pub fn misses(&self) -> &[Option<Miss>] {
        &self.misses
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            policy, decision, ..
        } = self;
        writeln!(formatter, "{policy}: {}", decision.shown())?;
        let rules = policy.rules.iter().enumerate();
        let labels: Vec<String> = rules
            .map(|(index, rule)| rule.label(index).to_string())
            .collect();
        let characters_max = labels.iter().map(|label| label.chars().count()).max();
        let characters_max = characters_max.unwrap_or_default();
        let decided = decision.decider().and_then(super::Decider::rule_index);
        for (index, ((rule, miss), label)) in policy
            .rules
            .iter()
            .zip(&self.misses)
            .zip(&labels)
            .enumerate()
        {
            let effect = rule.effect.to_string();
            write!(formatter, "  {label:characters_max$}  {effect:5}  ")?;
            match (miss, Some(index) == decided) {
                (Some(miss), _) => writeln!(formatter, "no: {}", rule.missed(*miss))?,
                (None, true) => writeln!(formatter, "yes, and decides")?,
                (None, false) => writeln!(formatter, "yes, but an earlier rule decides")?,
            }
        }
        match decision.effect() {
            Effect::Allow => formatter.write_str("allowed: ")?,
            Effect::Ask => formatter.write_str("asked: ")?,
            Effect::Deny => formatter.write_str("denied: ")?,
        }
        formatter.write_str(&decision.explain())?;
        self.fmt_grants(formatter)
    }
}

impl Explanation<'_> {
    /// What comes with the rule, and what an address is known to be before anything is resolved.
    fn fmt_grants(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = &self.decision;
        if decision.effect() == Effect::Deny {
            return Ok(());
        }
        for credential in decision.credentials() {
            write!(formatter, "\n  with the credential \"{credential}\"")?;
        }
        for (_, budget) in decision.budgets() {
            write!(formatter, "\n  within {budget}")?;
        }
        match decision.destination().host() {
            Host::Address(address) => match admit(*address, decision.is_private_named()) {
                Ok(()) => Ok(()),
                Err(refused) => write!(formatter, "\n  refused all the same: {refused}"),
            },
            Host::Name(_) if decision.is_private_named() => {
                formatter.write_str("\n  if its name is of a public or a private address")
            }
            Host::Name(_) => formatter.write_str("\n  if its name is of a public address"),
        }
    }
}
