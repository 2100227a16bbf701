//! How a policy is read: strictly, and with everything that is wrong said at once, each with its place.

use super::{
    Effect, METHODS_MAX, NAME_BYTES_MAX, Origin, PATTERN_BYTES_MAX, PATTERNS_MAX, POLICY_BYTES_MAX,
    POLICY_CLIENT_BYTES_MAX, POLICY_CLIENT_STEPS_MAX, RULES_MAX,
    node::Node,
    path::{Comparison, PathPattern},
    rule::Rule,
};
use crate::{Budget, Pattern, Scheme, budget::PER_SECONDS_MAX};
use std::{collections::BTreeMap, fmt};

/// The most problems that are said of one policy; the rest are counted.
const PROBLEMS_MAX: usize = 100;
/// The most that a budget can be: what JSON has whole numbers for, everywhere.
const COUNT_MAX: u64 = (1 << 53) - 1;
const EFFECTS: [(&str, Effect); 3] = [
    ("allow", Effect::Allow),
    ("ask", Effect::Ask),
    ("deny", Effect::Deny),
];
const RULE_KEYS: [&str; 9] = [
    "allow",
    "ask",
    "deny",
    "name",
    "methods",
    "paths",
    "private",
    "credential",
    "budget",
];
const BUDGET_KEYS: [&str; 3] = ["requests_max", "bytes_max", "per_seconds"];

/// What is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    policy: String,
    problems: Vec<Problem>,
    /// Those that are not said.
    unsaid: usize,
}

/// One thing that is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, as in `rules[3].allow[1]`, counted from 0; empty for the whole.
    pub place: String,
    /// What.
    pub what: String,
}

impl PolicyError {
    /// What is wrong, the first hundred things.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the policy \"{}\" can't be read", self.policy)?;
        match self.problems.as_slice() {
            [problem] => write!(formatter, ": {problem}"),
            problems => {
                for problem in problems {
                    write!(formatter, "\n  {problem}")?;
                }
                match self.unsaid {
                    0 => Ok(()),
                    unsaid => write!(formatter, "\n  and {unsaid} more"),
                }
            }
        }
    }
}

impl std::error::Error for PolicyError {}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(formatter, "{}: ", self.place)?;
        }
        formatter.write_str(&self.what)
    }
}

/// The rules of a policy's text.
pub(super) fn rules_of(name: &str, origin: Origin, text: &str) -> Result<Vec<Rule>, PolicyError> {
    let mut reader = Reader {
        origin,
        problems: Vec::new(),
        unsaid: 0,
    };
    let rules = reader.document(name, text);
    match reader.problems.is_empty() {
        true => Ok(rules),
        false => Err(PolicyError {
            policy: shown(name),
            problems: reader.problems,
            unsaid: reader.unsaid,
        }),
    }
}

struct Reader {
    origin: Origin,
    problems: Vec<Problem>,
    unsaid: usize,
}

type Members = BTreeMap<String, Node>;

impl Reader {
    fn problem(&mut self, place: &str, what: impl Into<String>) {
        if self.problems.len() == PROBLEMS_MAX {
            self.unsaid += 1;
            return;
        }
        self.problems.push(Problem {
            place: place.into(),
            what: what.into(),
        });
    }

    fn document(&mut self, name: &str, text: &str) -> Vec<Rule> {
        self.name("", Node::Text(name.into()));
        let bytes_max = match self.origin {
            Origin::Operator => POLICY_BYTES_MAX,
            Origin::Client => POLICY_CLIENT_BYTES_MAX,
        };
        if text.len() > bytes_max {
            let bytes = text.len();
            self.problem("", format!("it has {bytes} bytes, {bytes_max} are allowed"));
            return Vec::new();
        }
        let root = match serde_json::from_str(text) {
            Ok(root) => root,
            Err(error) => {
                self.problem("", format!("it is no JSON: {error}"));
                return Vec::new();
            }
        };
        let Some(mut members) = self.members("", root, &["rules"]) else {
            return Vec::new();
        };
        let Some(rules) = members.remove("rules") else {
            self.problem(
                "",
                "it has no \"rules\": an empty list of them denies everything",
            );
            return Vec::new();
        };
        let rules = self.list("rules", rules, RULES_MAX);
        let rules = rules.into_iter().enumerate();
        let rules: Vec<Rule> = rules
            .filter_map(|(index, rule)| self.rule(&format!("rules[{index}]"), rule))
            .collect();
        let steps: usize = rules.iter().map(Rule::steps_max).sum();
        if self.origin == Origin::Client && steps > POLICY_CLIENT_STEPS_MAX {
            self.problem(
                "rules",
                format!(
                    "deciding about a request could take {steps} comparisons, {POLICY_CLIENT_STEPS_MAX} are allowed: \
                     have fewer paths with **"
                ),
            );
        }
        rules
    }

    fn rule(&mut self, place: &str, node: Node) -> Option<Rule> {
        let mut members = self.members(place, node, &RULE_KEYS)?;
        let mut take = |key: &str| {
            members
                .remove(key)
                .map(|node| (format!("{place}.{key}"), node))
        };
        let mut targets = EFFECTS
            .into_iter()
            .filter_map(|(key, effect)| Some((effect, take(key)?)));
        let (target, second) = (targets.next(), targets.next());
        drop(targets);
        let name = take("name").and_then(|(place, node)| self.name(&place, node));
        let methods = take("methods").map(|(place, node)| self.methods(&place, node));
        let paths = take("paths");
        let is_private = take("private").map(|(place, node)| self.flag(&place, node));
        let credential = take("credential").and_then(|(place, node)| self.name(&place, node));
        let budget = take("budget").and_then(|(place, node)| self.budget(&place, node));

        let Some((effect, (place_patterns, patterns))) = target else {
            self.problem(place, "it has neither \"allow\" nor \"ask\" nor \"deny\"");
            return None;
        };
        if second.is_some() {
            self.problem(
                place,
                "it has more than one of \"allow\", \"ask\" and \"deny\"",
            );
            return None;
        }
        let comparison = match effect {
            Effect::Deny => Comparison::Loose,
            Effect::Allow | Effect::Ask => Comparison::Exact,
        };
        let rule = Rule {
            name,
            effect,
            patterns: self.patterns(&place_patterns, patterns),
            methods,
            paths: paths.map(|(place, node)| self.paths(&place, node, comparison)),
            is_private: is_private.unwrap_or_default(),
            credential,
            budget,
        };
        self.check_grants(place, &rule);
        self.check_patterns(&place_patterns, &rule);
        Some(rule)
    }

    /// What a rule gives with a request is of sense where it lets one go, and the operator's to give.
    fn check_grants(&mut self, place: &str, rule: &Rule) {
        let grants = [
            ("private", rule.is_private, true),
            ("credential", rule.credential.is_some(), true),
            ("budget", rule.budget.is_some(), false),
        ];
        for (key, is_given, is_operators) in grants {
            if !is_given {
                continue;
            }
            let place = format!("{place}.{key}");
            if rule.effect == Effect::Deny {
                self.problem(&place, "a rule that denies gives nothing");
            } else if is_operators && self.origin == Origin::Client {
                self.problem(&place, "only a policy of the server's operator can give it");
            }
        }
    }

    fn check_patterns(&mut self, place: &str, rule: &Rule) {
        for (index, pattern) in rule.patterns.iter().enumerate() {
            let place = format!("{place}[{index}]");
            if pattern.scheme() == Scheme::Tcp {
                if rule.methods.is_some() || rule.paths.is_some() {
                    self.problem(
                        &place,
                        "tcp has no methods and no paths, so the rule never matches it",
                    );
                }
                if rule.credential.is_some() {
                    self.problem(&place, "tcp carries no credentials");
                }
            }
            if rule.is_private && pattern.is_of_any_host() {
                self.problem(
                    &place,
                    "private addresses are reached by rules that name their hosts only",
                );
            }
        }
    }

    fn patterns(&mut self, place: &str, node: Node) -> Vec<Pattern> {
        self.each(place, node, PATTERNS_MAX, |text| match text.len() {
            0..=PATTERN_BYTES_MAX => text.parse().map_err(|error| format!("{error}")),
            bytes => Err(format!(
                "it has {bytes} bytes, {PATTERN_BYTES_MAX} are allowed"
            )),
        })
    }

    fn methods(&mut self, place: &str, node: Node) -> Vec<String> {
        self.check_some(place, &node);
        self.each(place, node, METHODS_MAX, |text| {
            let is_known = |byte: u8| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
            };
            let is_method =
                (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_known);
            let method = is_method.then(|| text.to_owned());
            method.ok_or_else(|| format!("\"{}\" is no method in upper case", shown(text)))
        })
    }

    fn paths(&mut self, place: &str, node: Node, comparison: Comparison) -> Vec<PathPattern> {
        self.check_some(place, &node);
        self.each(place, node, PATTERNS_MAX, |text| {
            let pattern = PathPattern::read(text, comparison);
            pattern
                .map_err(|problem| format!("\"{}\" is no pattern of paths: {problem}", shown(text)))
        })
    }

    fn budget(&mut self, place: &str, node: Node) -> Option<Budget> {
        let mut members = self.members(place, node, &BUDGET_KEYS)?;
        if !members.contains_key("requests_max") && !members.contains_key("bytes_max") {
            self.problem(place, "it has neither \"requests_max\" nor \"bytes_max\"");
        }
        if !members.contains_key("per_seconds") {
            self.problem(place, "it has no \"per_seconds\"");
        }
        let mut take = |key: &str, max: u64| {
            let node = members.remove(key)?;
            self.count(&format!("{place}.{key}"), node, max)
        };
        Some(Budget {
            requests_max: take("requests_max", COUNT_MAX),
            bytes_max: take("bytes_max", COUNT_MAX),
            per_seconds: take("per_seconds", PER_SECONDS_MAX)?,
        })
    }

    fn members(&mut self, place: &str, node: Node, known: &[&str]) -> Option<Members> {
        let Node::Members(given) = node else {
            self.problem(place, format!("it is {node}, and not an object"));
            return None;
        };
        let mut members = Members::new();
        for (key, node) in given {
            if !known.contains(&key.as_str()) {
                let known = known.join(", ");
                self.problem(
                    place,
                    format!("there is no \"{}\": there are {known}", shown(&key)),
                );
            } else if members.insert(key.clone(), node).is_some() {
                self.problem(place, format!("\"{key}\" is given twice"));
            }
        }
        Some(members)
    }

    fn list(&mut self, place: &str, node: Node, items_max: usize) -> Vec<Node> {
        match node {
            Node::List(items) if items.len() <= items_max => items,
            Node::List(items) => {
                let items = items.len();
                self.problem(
                    place,
                    format!("it has {items} items, {items_max} are allowed"),
                );
                Vec::new()
            }
            node => {
                self.problem(place, format!("it is {node}, and not a list"));
                Vec::new()
            }
        }
    }

    /// What each text of a list says.
    fn each<T>(
        &mut self,
        place: &str,
        node: Node,
        items_max: usize,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let mut read_all = Vec::new();
        for (index, item) in self.list(place, node, items_max).into_iter().enumerate() {
            let item = match item {
                Node::Text(text) => read(&text),
                node => Err(format!("it is {node}, and not a text")),
            };
            match item {
                Ok(item) => read_all.push(item),
                Err(what) => self.problem(&format!("{place}[{index}]"), what),
            }
        }
        read_all
    }

    /// A list that is given so that something is in it.
    fn check_some(&mut self, place: &str, node: &Node) {
        if matches!(node, Node::List(items) if items.is_empty()) {
            self.problem(
                place,
                "there is nothing in it, so the rule never matches: leave it out for all",
            );
        }
    }

    fn name(&mut self, place: &str, node: Node) -> Option<String> {
        match node {
            Node::Text(text) => {
                let is_name = (1..=NAME_BYTES_MAX).contains(&text.len())
                    && !text.chars().any(char::is_control);
                if is_name {
                    return Some(text);
                }
                let text = shown(&text);
                self.problem(
                    place,
                    format!("\"{text}\" is no name of 1 to {NAME_BYTES_MAX} bytes"),
                );
            }
            node => self.problem(place, format!("it is {node}, and not a text")),
        }
        None
    }

    fn flag(&mut self, place: &str, node: Node) -> bool {
        match node {
            Node::Flag(flag) => flag,
            node => {
                self.problem(place, format!("it is {node}, and neither true nor false"));
                false
            }
        }
    }

    fn count(&mut self, place: &str, node: Node, max: u64) -> Option<u64> {
        match node {
            Node::Count(count) if (1..=max).contains(&count) => return Some(count),
            Node::Count(count) => self.problem(place, format!("{count} is not from 1 to {max}")),
            node => self.problem(
                place,
                format!("it is {node}, and not a whole number from 1"),
            ),
        }
        None
    }
}

/// A text from outside as it may stand in a sentence.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(64).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}
