//! Which tools a program may call, and how often.
//!
//! A [`ToolPolicy`] is a list of rules. The first rule that names a tool decides; where none does, the policy's default does,
//! which has to be stated. A tool that is denied does not exist for programs: it is neither found nor described.

use crate::{LimitExceeded, Limits};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// What may become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It is made.
    Allow,
    /// Somebody is asked first.
    Ask,
    /// It is refused.
    Deny,
}

/// `*` stands for any number of characters, dots among them, and `?` for one. Everything else stands for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob(String);

/// Why a text is no glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{glob:?} names no tools: {problem}")]
pub struct GlobError {
    glob: String,
    problem: &'static str,
}

/// A tool as policies know it: both of its names are judged, so that a rule can be written with either.
#[derive(Clone, Copy, Debug)]
pub struct ToolPath<'a> {
    /// The namespace, such as `github`.
    pub namespace: &'a str,
    /// What the tool is called in a program, such as `delete_repo`.
    pub identifier: &'a str,
    /// The name that its provider gave it, such as `delete-repo`.
    pub own: &'a str,
}

/// A policy as it is configured. An unknown key is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicyConfig {
    /// What holds where no rule names a tool.
    pub default: Effect,
    /// The rules; the first that names a tool decides.
    #[serde(default)]
    pub rules: Vec<RuleConfig>,
    /// How often tools may be called in one run.
    #[serde(default)]
    pub budgets: BudgetsConfig,
}

/// A rule: one of `allow`, `ask` and `deny`, with globs of `namespace.tool`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleConfig {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tools that may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<Glob>>,
    /// Tools that are asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<Glob>>,
    /// Tools that may not be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<Glob>>,
}

/// How often tools may be called in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetsConfig {
    /// All together. Default: the limit `calls_max`, which it can only lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<usize>,
    /// Single tools. The first that names a tool counts.
    pub tools: Vec<ToolBudgetConfig>,
}

/// How often each of some tools may be called in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolBudgetConfig {
    /// The tools, each of which is counted alone.
    pub tools: Vec<Glob>,
    /// How often.
    pub calls_max: usize,
}

/// A policy that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPolicy {
    default: Effect,
    rules: Vec<Rule>,
    calls_max: usize,
    budgets: Vec<ToolBudgetConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    name: String,
    effect: Effect,
    tools: Vec<Glob>,
}

/// Why a policy can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolPolicyError {
    /// Not JSON of the right shape.
    #[error("the policy of tools: {0}")]
    Shape(String),
    /// A rule that says nothing, or several things.
    #[error("{0}: a rule has one of allow, ask and deny")]
    RuleEffect(String),
    /// Too many rules.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

/// What a policy says of a tool, and because of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDecision {
    /// What may become of a call.
    pub effect: Effect,
    /// The rule that decided, by its name or as `rule 2`; or none, and it was the default.
    pub rule: Option<String>,
    /// The glob of the rule that named the tool.
    pub glob: Option<Glob>,
}

impl fmt::Display for ToolDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            Effect::Allow => "allowed",
            Effect::Ask => "asked about",
            Effect::Deny => "denied",
        };
        match (&self.rule, &self.glob) {
            (Some(rule), Some(glob)) => write!(f, "{effect} by {rule} ({})", glob.as_str()),
            _ => write!(f, "{effect} by default: no rule names it"),
        }
    }
}

impl Glob {
    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a text is meant. Takes steps as the product of both lengths at most.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let glob: Vec<char> = self.0.chars().collect();
        let text: Vec<char> = text.chars().collect();
        let (mut at_glob, mut at_text) = (0, 0);
        // Where the last `*` was, and how much of the text it had taken: only the last ever needs to take more.
        let mut star: Option<(usize, usize)> = None;
        while at_text < text.len() {
            match glob.get(at_glob) {
                Some('*') => {
                    star = Some((at_glob, at_text));
                    at_glob += 1;
                }
                Some(&character) if character == '?' || character == text[at_text] => {
                    at_glob += 1;
                    at_text += 1;
                }
                _ => {
                    let Some((at, taken)) = star else {
                        return false;
                    };
                    star = Some((at, taken + 1));
                    at_glob = at + 1;
                    at_text = taken + 1;
                }
            }
        }
        glob[at_glob..].iter().all(|&rest| rest == '*')
    }

    fn names(&self, tool: &ToolPath<'_>) -> bool {
        self.matches(&format!("{}.{}", tool.namespace, tool.identifier))
            || self.matches(&format!("{}.{}", tool.namespace, tool.own))
    }
}

impl TryFrom<String> for Glob {
    type Error = GlobError;

    fn try_from(glob: String) -> Result<Self, GlobError> {
        // What other globs have and these have not would silently name nothing.
        let problem = if glob.is_empty() {
            "it is empty"
        } else if glob.contains(['[', ']', '{', '}', '!', '\\']) {
            "only * and ? have a meaning; write several globs"
        } else if !glob.contains(['.', '*']) {
            "it is namespace.tool, and has no dot"
        } else {
            return Ok(Self(glob));
        };
        Err(GlobError { glob, problem })
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.0
    }
}

impl ToolPolicy {
    /// Reads a policy.
    ///
    /// # Errors
    ///
    /// It is not JSON of the right shape, a rule says nothing or several things, or there are too many.
    pub fn of_json(text: &str, limits: &Limits) -> Result<Self, ToolPolicyError> {
        let config = serde_json::from_str(text)
            .map_err(|error| ToolPolicyError::Shape(error.to_string()))?;
        Self::new(config, limits)
    }

    /// A policy from its configuration.
    ///
    /// # Errors
    ///
    /// As [`Self::of_json`].
    pub fn new(config: ToolPolicyConfig, limits: &Limits) -> Result<Self, ToolPolicyError> {
        let budgets = config.budgets;
        let globs_of_budgets = budgets.tools.iter().flat_map(|budget| &budget.tools);
        for glob in globs_of_budgets {
            limits.glob_bytes_max(glob.0.len(), "a glob")?;
        }
        limits.rules_max(config.rules.len() + budgets.tools.len(), "the policy")?;
        let mut rules = Vec::new();
        for (index, rule) in config.rules.into_iter().enumerate() {
            let name = rule
                .name
                .map_or(format!("rule {}", index + 1), |name| format!("{name:?}"));
            let (effect, tools) = match (rule.allow, rule.ask, rule.deny) {
                (Some(tools), None, None) => (Effect::Allow, tools),
                (None, Some(tools), None) => (Effect::Ask, tools),
                (None, None, Some(tools)) => (Effect::Deny, tools),
                _ => return Err(ToolPolicyError::RuleEffect(name)),
            };
            for glob in &tools {
                limits.glob_bytes_max(glob.0.len(), &name)?;
            }
            rules.push(Rule {
                name,
                effect,
                tools,
            });
        }
        Ok(Self {
            default: config.default,
            rules,
            calls_max: budgets
                .calls_max
                .unwrap_or(usize::MAX)
                .min(limits.calls_max),
            budgets: budgets.tools,
        })
    }

    /// One that allows every tool, for whoever has configured none.
    #[must_use]
    pub fn allow_all(limits: &Limits) -> Self {
        Self {
            default: Effect::Allow,
            rules: Vec::new(),
            calls_max: limits.calls_max,
            budgets: Vec::new(),
        }
    }

    /// What the policy says of a tool.
    #[must_use]
    pub fn decide(&self, tool: &ToolPath<'_>) -> ToolDecision {
        for rule in &self.rules {
            if let Some(glob) = rule.tools.iter().find(|glob| glob.names(tool)) {
                return ToolDecision {
                    effect: rule.effect,
                    rule: Some(rule.name.clone()),
                    glob: Some(glob.clone()),
                };
            }
        }
        ToolDecision {
            effect: self.default,
            rule: None,
            glob: None,
        }
    }

    /// Whether a tool exists for programs.
    #[must_use]
    pub fn is_visible(&self, tool: &ToolPath<'_>) -> bool {
        self.decide(tool).effect != Effect::Deny
    }
}

/// The calls of one run.
#[derive(Clone, Debug, Default)]
pub struct CallCount {
    all: usize,
    by_tool: BTreeMap<String, usize>,
}

/// A budget is used up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} may be called {calls_max} times in one run, and has been")]
pub struct CallsTooMany {
    /// The tool, or "tools" for all together.
    pub what: String,
    /// How often.
    pub calls_max: usize,
}

impl CallCount {
    /// Counts a call, or says which budget does not let it be made; then it is not counted.
    ///
    /// # Errors
    ///
    /// A budget is used up.
    pub fn charge(&mut self, policy: &ToolPolicy, tool: &ToolPath<'_>) -> Result<(), CallsTooMany> {
        if self.all >= policy.calls_max {
            return Err(CallsTooMany {
                what: "tools".into(),
                calls_max: policy.calls_max,
            });
        }
        let budget = policy
            .budgets
            .iter()
            .find(|budget| budget.tools.iter().any(|glob| glob.names(tool)));
        if let Some(budget) = budget {
            let path = format!("{}.{}", tool.namespace, tool.identifier);
            let count = self.by_tool.entry(path.clone()).or_default();
            if *count >= budget.calls_max {
                return Err(CallsTooMany {
                    what: path,
                    calls_max: budget.calls_max,
                });
            }
            *count += 1;
        }
        self.all += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(text: &str) -> ToolPolicy {
        ToolPolicy::of_json(text, &Limits::default()).unwrap()
    }

    fn tool<'a>(path: &'a str, own: &'a str) -> ToolPath<'a> {
        let (namespace, identifier) = path.split_once('.').unwrap();
        ToolPath {
            namespace,
            identifier,
            own,
        }
    }

    /// The first rule that names a tool decides, and says that it did; else the stated default.
    #[test]
    fn the_first_rule_decides() {
        let policy = policy(
            r#"{"default": "ask", "rules": [
                {"allow": ["github.get_*", "github.list_*"]},
                {"name": "no deleting", "deny": ["*.delete*"]},
                {"allow": ["github.*"]}
            ]}"#,
        );
        for (path, effect, said) in [
            (
                "github.get_user",
                Effect::Allow,
                "allowed by rule 1 (github.get_*)",
            ),
            (
                "github.delete_repo",
                Effect::Deny,
                "denied by \"no deleting\" (*.delete*)",
            ),
            (
                "github.merge",
                Effect::Allow,
                "allowed by rule 3 (github.*)",
            ),
            (
                "files.read",
                Effect::Ask,
                "asked about by default: no rule names it",
            ),
        ] {
            let decision = policy.decide(&tool(path, "x"));
            assert_eq!(
                (decision.effect, decision.to_string().as_str()),
                (effect, said)
            );
        }
        assert!(!policy.is_visible(&tool("x.delete", "x")));
        assert!(policy.is_visible(&tool("x.other", "x")));
    }

    /// A rule that denies a tool by the name that its provider gave it denies it, and so does one by its name in programs.
    #[test]
    fn either_name_is_judged() {
        let policy = policy(
            r#"{"default": "allow", "rules": [{"deny": ["s.drop-table", "s.drop_index"]}]}"#,
        );
        for (path, own) in [
            ("s.drop_table", "drop-table"),
            ("s.drop_index", "drop-index"),
        ] {
            assert_eq!(policy.decide(&tool(path, own)).effect, Effect::Deny);
        }
    }

    /// What would silently name nothing, or is not said, is refused.
    #[test]
    fn policies_are_read_strictly() {
        for (text, said) in [
            (r#"{"rules": []}"#, "missing field `default`"),
            (r#"{"default": "maybe"}"#, "unknown variant"),
            (r#"{"default": "allow", "rule": []}"#, "unknown field"),
            (
                r#"{"default": "allow", "rules": [{}]}"#,
                "rule 1: a rule has one of",
            ),
            (
                r#"{"default": "allow", "rules": [{"allow": [], "deny": []}]}"#,
                "rule 1: a rule has one of",
            ),
            (
                r#"{"default": "allow", "rules": [{"deny": ["{a,b}.*"]}]}"#,
                "only * and ? have a meaning",
            ),
            (
                r#"{"default": "allow", "rules": [{"deny": ["delete"]}]}"#,
                "has no dot",
            ),
            (
                r#"{"default": "allow", "rules": [{"deny": [""]}]}"#,
                "it is empty",
            ),
        ] {
            let error = ToolPolicy::of_json(text, &Limits::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        let long = format!(
            r#"{{"default": "allow", "rules": [{{"deny": ["{}.*"]}}]}}"#,
            "a".repeat(300)
        );
        let error = ToolPolicy::of_json(&long, &Limits::default()).unwrap_err();
        assert!(error.to_string().contains("glob_bytes_max"), "{error}");
    }

    /// An empty list names no tool; it does not mean all.
    #[test]
    fn an_empty_allow_list_allows_nothing() {
        let policy = policy(r#"{"default": "deny", "rules": [{"allow": []}]}"#);
        assert_eq!(policy.decide(&tool("a.b", "b")).effect, Effect::Deny);
    }

    /// Budgets bound the run and each tool alone, and what is refused is not counted.
    #[test]
    fn calls_are_counted() {
        let policy = policy(
            r#"{"default": "allow", "budgets": {"calls_max": 4, "tools": [{"tools": ["mail.*"], "calls_max": 1}]}}"#,
        );
        let mut count = CallCount::default();
        let send = tool("mail.send", "send");
        count.charge(&policy, &send).unwrap();
        let error = count.charge(&policy, &send).unwrap_err();
        assert_eq!(
            error.to_string(),
            "mail.send may be called 1 times in one run, and has been"
        );
        count.charge(&policy, &tool("mail.read", "read")).unwrap();
        count.charge(&policy, &tool("x.y", "y")).unwrap();
        count.charge(&policy, &tool("x.y", "y")).unwrap();
        let error = count.charge(&policy, &tool("x.y", "y")).unwrap_err();
        assert_eq!((error.what.as_str(), error.calls_max), ("tools", 4));
    }

    /// A policy only lowers the server's own bound on calls.
    #[test]
    fn a_budget_only_lowers() {
        let limits = Limits {
            calls_max: 1,
            ..Limits::default()
        };
        let policy = ToolPolicy::of_json(
            r#"{"default": "allow", "budgets": {"calls_max": 9}}"#,
            &limits,
        );
        let policy = policy.unwrap();
        let mut count = CallCount::default();
        count.charge(&policy, &tool("a.b", "b")).unwrap();
        count.charge(&policy, &tool("a.b", "b")).unwrap_err();
    }

    /// As slow a way of matching as can be, to compare with.
    fn matches_slowly(glob: &[char], text: &[char]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => {
                (0..=text.len()).any(|end| matches_slowly(rest, &text[end..]))
            }
            (Some((&character, rest)), Some((&first, others))) => {
                (character == '?' || character == first) && matches_slowly(rest, others)
            }
            _ => false,
        }
    }

    proptest! {
        /// Matching means what it says, for any glob and text.
        #[test]
        fn globs_mean_what_they_say(glob in "[ab.*?]{1,8}", text in "[ab.]{0,10}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                Glob(glob.clone()).matches(&text),
                matches_slowly(&characters(&glob), &characters(&text))
            );
        }
    }

    /// No glob takes long.
    #[test]
    fn hostile_globs_end() {
        let glob = Glob("*a".repeat(120));
        assert!(!glob.matches(&"a".repeat(119)));
        assert!(glob.matches(&"ba".repeat(120)));
    }
}
