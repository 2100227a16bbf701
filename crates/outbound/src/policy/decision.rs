//! What was decided about a request, by which rule, and how to say so.

use super::{Effect, Origin, Policy, rule::Asked, rule::Miss, rule::Rule};
use crate::{Budget, Destination};
use std::{fmt, sync::Arc};

/// The most characters of a request that are shown.
const SHOWN_MAX: usize = 256;

/// What was decided about one request. [`Effect::Allow`] is not the last word: what its host is resolved to is judged
/// where it is connected to, by [`admit`](crate::admit).
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    destination: &'a Destination,
    method: Option<&'a str>,
    deciders: Vec<Decider<'a>>,
}

/// A policy that was asked, and the rule in it that decided.
#[derive(Clone, Copy, Debug)]
pub struct Decider<'a> {
    policy: &'a Policy,
    /// With its index; none if no rule is of the request, which is a denial.
    rule: Option<(usize, &'a Rule)>,
}

impl<'a> Decision<'a> {
    pub(super) fn of(
        policies: impl IntoIterator<Item = &'a Policy>,
        destination: &'a Destination,
        method: Option<&'a str>,
    ) -> Self {
        let asked = Asked::new(destination, method);
        let decider = |policy: &'a Policy| Decider {
            policy,
            rule: policy.rule_of(&asked),
        };
        let deciders = policies.into_iter().map(decider).collect();
        Self {
            destination,
            method,
            deciders,
        }
    }

    /// The strictest that a policy says; a denial if there is no policy.
    #[must_use]
    pub fn effect(&self) -> Effect {
        let effects = self.deciders.iter().map(Decider::effect);
        effects.max().unwrap_or(Effect::Deny)
    }

    /// Whether the request may go without asking anybody.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.effect() == Effect::Allow
    }

    /// What was asked about.
    #[must_use]
    pub fn destination(&self) -> &'a Destination {
        self.destination
    }

    /// The policy that decided, with its rule: the first of the strictest.
    #[must_use]
    pub fn decider(&self) -> Option<&Decider<'a>> {
        let effect = self.effect();
        self.deciders
            .iter()
            .find(|decider| decider.effect() == effect)
    }

    /// Each policy that was asked, in their order.
    #[must_use]
    pub fn deciders(&self) -> &[Decider<'a>] {
        &self.deciders
    }

    /// Whether the host may be at a private address: each policy of an operator's names them, and there is one.
    #[must_use]
    pub fn is_private_named(&self) -> bool {
        let mut operators = self.granting(Origin::Operator).peekable();
        operators.peek().is_some()
            && operators.all(|decider| decider.rule.is_some_and(|(_, rule)| rule.is_private))
    }

    /// The names of the credentials to send with the request, each once; none if it is denied.
    #[must_use]
    pub fn credentials(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        for name in self
            .granting(Origin::Operator)
            .filter_map(|decider| decider.credential())
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The budgets that the request counts against, with the rules that they are of; none if it is denied.
    pub fn budgets(&self) -> impl Iterator<Item = (&Decider<'a>, Budget)> {
        let granting = [Origin::Operator, Origin::Client].into_iter();
        let granting = granting.flat_map(|origin| self.granting(origin));
        granting.filter_map(|decider| Some((decider, decider.budget()?)))
    }

    fn granting(&self, origin: Origin) -> impl Iterator<Item = &Decider<'a>> {
        let is_granted = self.effect() != Effect::Deny;
        let deciders = self.deciders.iter();
        deciders.filter(move |decider| is_granted && decider.policy.origin == origin)
    }

    /// One sentence for people: which rule decided, and what to do if that is not what was meant. Never has the query of
    /// the URL in it.
    #[must_use]
    pub fn explain(&self) -> String {
        let what = self.shown();
        let Some(decider) = self.decider() else {
            let example = self.example();
            return format!(
                "{what} is not allowed, for there is no policy and so nothing is: give one, such as {{\"rules\": \
                 [{example}]}}"
            );
        };
        match (decider.rule, decider.effect()) {
            (None, _) => self.explain_unruled(decider.policy, &what),
            (Some(_), Effect::Allow) => format!("{decider} allows {what}"),
            (Some(_), Effect::Ask) => format!("{decider} leaves {what} to the client to decide"),
            (Some(_), Effect::Deny) => format!(
                "{decider} denies {what}: narrow that rule, or allow the request in a rule before it"
            ),
        }
    }

    fn explain_unruled(&self, policy: &Policy, what: &str) -> String {
        let example = self.example();
        let asked = Asked::new(self.destination, self.method);
        let near = |(index, rule): (usize, &'a Rule)| {
            let is_near = rule.effect != Effect::Deny && rule.is_of(self.destination);
            is_near
                .then(|| rule.miss(&asked))
                .flatten()
                .map(|miss| (miss, index, rule))
        };
        let mut near: Vec<(Miss, usize, &Rule)> = self
            .deciders
            .iter()
            .filter(|decider| std::ptr::eq(decider.policy, policy))
            .flat_map(|decider| decider.policy.rules.iter().enumerate())
            .filter_map(near)
            .collect();
        // The nearest, and the first of those.
        near.sort_by_key(|(miss, index, _)| (std::cmp::Reverse(*miss), *index));
        match near.first() {
            None => format!("no rule of {policy} allows {what}: add one, such as {example}"),
            Some((miss, index, rule)) => format!(
                "no rule of {policy} allows {what}: {} is nearest ({}), widen it or add one, such as {example}",
                rule.label(*index),
                rule.missed(*miss)
            ),
        }
    }

    /// A rule that would allow it.
    fn example(&self) -> String {
        format!("{{\"allow\": [\"{}\"]}}", self.destination.origin())
    }

    /// The request as it may be shown: without its query, and not too long.
    pub(super) fn shown(&self) -> String {
        let method = self
            .method
            .map(|method| method.escape_default().to_string());
        let method = method.map(|method| shortened(&method, 32) + " ");
        let destination = shortened(&self.destination.to_string(), SHOWN_MAX);
        method.unwrap_or_default() + &destination
    }
}

fn shortened(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

impl<'a> Decider<'a> {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Which of its rules, counted from 0; none if no rule is of the request.
    #[must_use]
    pub fn rule_index(&self) -> Option<usize> {
        self.rule.map(|(index, _)| index)
    }

    /// What people call the rule: `rule 3 "read only"`, or `rule 3` if it has no name, counted from 1.
    #[must_use]
    pub fn rule_label(&self) -> Option<String> {
        self.rule.map(|(index, rule)| rule.label(index).to_string())
    }

    /// What people call the rule and its policy, or the policy alone where it has no rule for the request.
    #[must_use]
    pub fn label(&self) -> Arc<str> {
        Arc::clone(self.label_text())
    }

    fn label_text(&self) -> &'a Arc<str> {
        let labels = &self.policy.labels;
        let index = self.rule_index().unwrap_or(labels.len() - 1);
        &labels[index]
    }

    /// What it says.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.rule.map_or(Effect::Deny, |(_, rule)| rule.effect)
    }

    /// The name of the credential of the rule.
    #[must_use]
    pub fn credential(&self) -> Option<&'a str> {
        self.rule.and_then(|(_, rule)| rule.credential.as_deref())
    }

    /// The budget of the rule.
    #[must_use]
    pub fn budget(&self) -> Option<Budget> {
        self.rule.and_then(|(_, rule)| rule.budget)
    }
}

impl fmt::Display for Decider<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label_text())
    }
}
