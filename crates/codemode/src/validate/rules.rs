//! What each keyword asks of a value.

mod values;

use super::{Problem, Validator};
use crate::{
    LimitExceeded,
    json::{Object, canonical, is_same, is_true, path_within, quoted, shortened, shown, text},
    types::{is_bytes_schema, is_of_type},
};
use serde_json::Value;
use std::collections::BTreeSet;
use values::{count, described, judge_count, judge_number, nearest, nearest_alternative};

/// How much text a pattern is matched with in a step; the engine is not equally fast with all patterns.
const PATTERN_STEP_BYTES: usize = 64;
/// How many problems of one value are kept while it is judged; fewer are told.
const PROBLEMS_KEPT: usize = 256;

/// The judging of one value: how many steps it has taken, and how deep it is in.
pub(super) struct Run<'a> {
    validator: &'a Validator,
    steps: usize,
    nesting: usize,
}

/// What a schema has judged of an object or an array, for `unevaluatedProperties` and `unevaluatedItems`.
#[derive(Default)]
struct Seen {
    members: BTreeSet<String>,
    /// The first so many items.
    items: usize,
    /// Items that `contains` has found.
    contained: BTreeSet<usize>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.members.extend(other.members);
        self.items = self.items.max(other.items);
        self.contained.extend(other.contained);
    }
}

/// What came of one schema and one value.
#[derive(Default)]
struct Verdict {
    problems: Vec<Problem>,
    seen: Seen,
}

type Judged = Result<Verdict, LimitExceeded>;

impl Verdict {
    fn fail(&mut self, path: &str, rule: &str, message: impl Into<String>) {
        self.extend(vec![Problem {
            path: path.to_owned(),
            rule: rule.to_owned(),
            message: message.into(),
        }]);
    }

    /// Adds problems, as far as they could be told.
    fn extend(&mut self, problems: Vec<Problem>) {
        let room = PROBLEMS_KEPT.saturating_sub(self.problems.len());
        self.problems.extend(problems.into_iter().take(room));
    }

    fn add(&mut self, other: Self) {
        self.extend(other.problems);
        self.seen.add(other.seen);
    }

    fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(validator: &'a Validator) -> Self {
        Self {
            validator,
            steps: 0,
            nesting: 0,
        }
    }

    /// The problems of a value, the first ones.
    pub(super) fn judge(
        &mut self,
        schema: &'a Value,
        value: &Value,
        path: &str,
    ) -> Result<Vec<Problem>, LimitExceeded> {
        Ok(self.meet(schema, value, path)?.problems)
    }

    fn step(&mut self, count: usize) -> Result<(), LimitExceeded> {
        self.steps = self.steps.saturating_add(count);
        let limits = &self.validator.limits;
        limits.validation_steps_max(self.steps, "validating the input")
    }

    /// A schema meets a value.
    fn meet(&mut self, schema: &'a Value, value: &Value, path: &str) -> Judged {
        self.step(1)?;
        self.nesting += 1;
        let limits = &self.validator.limits;
        limits.validation_nesting_max(self.nesting, "validating the input")?;
        let verdict = match schema {
            Value::Object(keywords) => self.meet_keywords(schema, keywords, value, path),
            Value::Bool(false) => {
                let mut verdict = Verdict::default();
                verdict.fail(path, "false", "is not allowed here");
                Ok(verdict)
            }
            _ => Ok(Verdict::default()),
        };
        self.nesting -= 1;
        verdict
    }

    fn meet_keywords(
        &mut self,
        schema: &'a Value,
        keywords: &'a Object,
        value: &Value,
        path: &str,
    ) -> Judged {
        let mut verdict = Verdict::default();
        if value.is_null() && (is_true(schema, "nullable") || is_true(schema, "x-nullable")) {
            return Ok(verdict);
        }
        for keyword in ["$ref", "$dynamicRef"] {
            let Some(reference) = text(schema, keyword) else {
                continue;
            };
            // They were followed when the validator was made.
            if let Ok((_, referred)) = self.validator.schema.document().resolve(reference) {
                verdict.add(self.meet(referred, value, path)?);
            }
            if !self.validator.dialect().has_siblings_of_references() {
                return Ok(verdict);
            }
        }
        self.judge_type(keywords, value, path, &mut verdict);
        self.judge_values(keywords, value, path, &mut verdict)?;
        if !verdict.is_ok() {
            // What is of another type fails everything else too, which nobody needs to be told.
            return Ok(verdict);
        }
        match value {
            Value::Number(_) => judge_number(keywords, value, path, &mut verdict),
            Value::String(text) => self.judge_text(keywords, text, path, &mut verdict)?,
            Value::Array(items) => self.judge_array(keywords, items, path, &mut verdict)?,
            Value::Object(_) => self.judge_object(keywords, value, path, &mut verdict)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.judge_combinations(keywords, value, path, &mut verdict)?;
        self.judge_unevaluated(keywords, value, path, &mut verdict)?;
        Ok(verdict)
    }

    fn judge_type(&self, keywords: &Object, value: &Value, path: &str, verdict: &mut Verdict) {
        let kinds: Vec<&str> = match keywords.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        let is_bytes = is_bytes_schema(keywords, self.validator.dialect());
        if kinds.iter().any(|kind| is_of_type(value, kind))
            || is_bytes && crate::openapi::is_bytes_value(value)
        {
            return;
        }
        let wanted = kinds.join(" or ");
        verdict.fail(
            path,
            "type",
            format!("is {}, and {wanted} is wanted", described(value)),
        );
    }

    fn judge_values(
        &mut self,
        keywords: &Object,
        value: &Value,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        if let Some(wanted) = keywords.get("const")
            && !is_same(wanted, value)
        {
            let message = format!("is {}, and {} is wanted", shown(value), shown(wanted));
            verdict.fail(path, "const", message);
        }
        if let Some(Value::Array(wanted)) = keywords.get("enum") {
            self.step(wanted.len())?;
            if !wanted.iter().any(|wanted| is_same(wanted, value)) {
                let names: Vec<_> = wanted.iter().filter_map(Value::as_str).collect();
                let nearest = value.as_str().and_then(|text| nearest(text, &names));
                let nearest = nearest.map_or(String::new(), |name| {
                    format!("; did you mean {}?", quoted(name))
                });
                let first: Vec<_> = wanted.iter().take(8).map(shown).collect();
                let others = wanted.len().saturating_sub(8);
                let others = match others {
                    0 => String::new(),
                    others => format!(" and {others} others"),
                };
                let message = format!(
                    "is {}, and one of {}{others} is wanted{nearest}",
                    shown(value),
                    first.join(", ")
                );
                verdict.fail(path, "enum", message);
            }
        }
        Ok(())
    }

    fn judge_text(
        &mut self,
        keywords: &Object,
        value: &str,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        let bounds = [count(keywords, "minLength"), count(keywords, "maxLength")];
        if bounds.iter().any(Option::is_some) {
            self.step(value.len() / 1_024)?;
            let chars = value.chars().count();
            judge_count(
                keywords,
                ["minLength", "maxLength"],
                chars,
                "characters",
                path,
                verdict,
            );
        }
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
            self.step(1 + value.len() / PATTERN_STEP_BYTES)?;
            if !self.is_match(pattern, value) {
                let message = format!(
                    "is {}, which does not match {}",
                    shown(&Value::from(shortened(value, 100))),
                    shortened(pattern, 100)
                );
                verdict.fail(path, "pattern", message);
            }
        }
        Ok(())
    }

    /// What is not checked matches.
    fn is_match(&self, pattern: &str, text: &str) -> bool {
        let compiled = self.validator.patterns.get(pattern);
        compiled
            .and_then(Option::as_ref)
            .is_none_or(|compiled| compiled.is_match(text))
    }

    fn judge_array(
        &mut self,
        keywords: &'a Object,
        items: &[Value],
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        judge_count(
            keywords,
            ["minItems", "maxItems"],
            items.len(),
            "items",
            path,
            verdict,
        );
        if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.step(items.len())?;
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let mut text = String::new();
                canonical(item, &mut text);
                self.step(text.len() / 1_024)?;
                if !seen.insert(text) {
                    let message = format!("is {}, which is there already", shown(item));
                    verdict.fail(&format!("{path}[{index}]"), "uniqueItems", message);
                    break;
                }
            }
        }
        let (elements, rest, rest_rule) = match keywords.get("prefixItems") {
            Some(Value::Array(elements)) => (elements.as_slice(), keywords.get("items"), "items"),
            _ => match keywords.get("items") {
                Some(Value::Array(elements)) => {
                    let rest = keywords.get("additionalItems");
                    (elements.as_slice(), rest, "additionalItems")
                }
                rest => (&[][..], rest, "items"),
            },
        };
        for (index, item) in items.iter().enumerate() {
            let at = format!("{path}[{index}]");
            match (elements.get(index), rest) {
                (Some(schema), _) => verdict.extend(self.judge(schema, item, &at)?),
                (None, Some(Value::Bool(false))) => {
                    let message = format!("is one too many: there are {} at most", elements.len());
                    verdict.fail(&at, rest_rule, message);
                }
                (None, Some(schema)) => verdict.extend(self.judge(schema, item, &at)?),
                (None, None) => break,
            }
            verdict.seen.items = index + 1;
        }
        if let Some(contains) = keywords.get("contains") {
            let mut found = 0;
            for (index, item) in items.iter().enumerate() {
                if self.judge(contains, item, path)?.is_empty() {
                    found += 1;
                    verdict.seen.contained.insert(index);
                }
            }
            let at_least = count(keywords, "minContains").unwrap_or(1);
            let at_most = count(keywords, "maxContains").unwrap_or(usize::MAX);
            if found < at_least || found > at_most {
                let message = format!("has {found} items of the kind that it has to contain");
                verdict.fail(path, "contains", message);
            }
        }
        Ok(())
    }

    fn judge_object(
        &mut self,
        keywords: &'a Object,
        object: &Value,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        let Value::Object(members) = object else {
            return Ok(());
        };
        let properties = keywords.get("properties").and_then(Value::as_object);
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        let others = keywords.get("additionalProperties");
        self.judge_required(keywords, members, path, verdict)?;
        judge_count(
            keywords,
            ["minProperties", "maxProperties"],
            members.len(),
            "members",
            path,
            verdict,
        );
        for (name, value) in members {
            let at = path_within(path, name);
            let mut is_known = false;
            if let Some(schema) = properties.and_then(|all| all.get(name)) {
                is_known = true;
                verdict.extend(self.judge(schema, value, &at)?);
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                self.step(1 + name.len() / PATTERN_STEP_BYTES)?;
                if self.is_match(pattern, name) {
                    is_known = true;
                    verdict.extend(self.judge(schema, value, &at)?);
                }
            }
            match others {
                Some(Value::Bool(false)) if !is_known => {
                    let names: Vec<_> = properties
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.as_str())
                        .collect();
                    let nearest = nearest(name, &names).map_or(String::new(), |name| {
                        format!("; did you mean {}?", path_within(path, name))
                    });
                    let message = format!("is not known there{nearest}");
                    verdict.fail(&at, "additionalProperties", message);
                }
                Some(schema) if !is_known => {
                    is_known = true;
                    verdict.extend(self.judge(schema, value, &at)?);
                }
                _ => {}
            }
            if is_known {
                verdict.seen.members.insert(name.clone());
            }
            if let Some(schema) = keywords.get("propertyNames") {
                let name = Value::from(name.as_str());
                for problem in self.judge(schema, &name, &at)? {
                    let message = format!("has a name that {}", problem.message);
                    verdict.fail(&at, "propertyNames", message);
                }
            }
        }
        self.judge_dependencies(keywords, object, members, path, verdict)
    }

    fn judge_required(
        &mut self,
        keywords: &Object,
        members: &Object,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        let required = keywords.get("required").and_then(Value::as_array);
        let properties = keywords.get("properties");
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            self.step(1)?;
            // What only comes back is not asked for.
            let property = properties.and_then(|all| all.get(name));
            let is_read_only = self.validator.dialect().has_directions()
                && property.is_some_and(|property| is_true(property, "readOnly"));
            if !members.contains_key(name) && !is_read_only {
                let given: Vec<_> = members.keys().map(String::as_str).collect();
                let hint = nearest(name, &given).map_or(String::new(), |given| {
                    format!("; {} is there instead", path_within(path, given))
                });
                verdict.fail(
                    &path_within(path, name),
                    "required",
                    format!("is missing{hint}"),
                );
            }
        }
        Ok(())
    }

    fn judge_dependencies(
        &mut self,
        keywords: &'a Object,
        object: &Value,
        members: &Object,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let all = keywords.get(keyword).and_then(Value::as_object);
            for (name, wanted) in all.into_iter().flatten() {
                if !members.contains_key(name) {
                    continue;
                }
                match wanted {
                    Value::Array(names) => {
                        let names = names.iter().filter_map(Value::as_str);
                        for missing in names.filter(|wanted| !members.contains_key(*wanted)) {
                            let message =
                                format!("is missing, and {} wants it", path_within(path, name));
                            verdict.fail(&path_within(path, missing), keyword, message);
                        }
                    }
                    schema => {
                        let judged = self.meet(schema, object, path)?;
                        verdict.add(judged);
                    }
                }
            }
        }
        Ok(())
    }

    fn judge_combinations(
        &mut self,
        keywords: &'a Object,
        value: &Value,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        let all = |keyword| keywords.get(keyword).and_then(Value::as_array);
        for schema in all("allOf").into_iter().flatten() {
            let judged = self.meet(schema, value, path)?;
            verdict.add(judged);
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(alternatives) = all(keyword) else {
                continue;
            };
            let mut met = 0;
            let mut failed: Vec<Vec<Problem>> = Vec::new();
            for alternative in alternatives {
                let judged = self.meet(alternative, value, path)?;
                if judged.is_ok() {
                    met += 1;
                    verdict.seen.add(judged.seen);
                } else {
                    failed.push(judged.problems);
                }
            }
            if met == 0 {
                verdict.extend(nearest_alternative(failed, path, keyword, value));
            } else if met > 1 && keyword == "oneOf" {
                let message = format!("fits {met} of the alternatives, and may fit one only");
                verdict.fail(path, keyword, message);
            }
        }
        if let Some(not) = keywords.get("not")
            && self.meet(not, value, path)?.is_ok()
        {
            verdict.fail(
                path,
                "not",
                format!("is {}, which is excluded", shown(value)),
            );
        }
        if let Some(condition) = keywords.get("if") {
            let judged = self.meet(condition, value, path)?;
            let branch = if judged.is_ok() {
                verdict.seen.add(judged.seen);
                "then"
            } else {
                "else"
            };
            if let Some(schema) = keywords.get(branch) {
                let judged = self.meet(schema, value, path)?;
                verdict.add(judged);
            }
        }
        Ok(())
    }

    fn judge_unevaluated(
        &mut self,
        keywords: &'a Object,
        value: &Value,
        path: &str,
        verdict: &mut Verdict,
    ) -> Result<(), LimitExceeded> {
        if let (Some(schema), Value::Object(members)) =
            (keywords.get("unevaluatedProperties"), value)
        {
            for (name, member) in members {
                if !verdict.seen.members.contains(name) {
                    let at = path_within(path, name);
                    let judged = self.judge(schema, member, &at)?;
                    verdict.extend(judged);
                    verdict.seen.members.insert(name.clone());
                }
            }
        }
        if let (Some(schema), Value::Array(items)) = (keywords.get("unevaluatedItems"), value) {
            for (index, item) in items.iter().enumerate().skip(verdict.seen.items) {
                if !verdict.seen.contained.contains(&index) {
                    let judged = self.judge(schema, item, &format!("{path}[{index}]"))?;
                    verdict.extend(judged);
                }
            }
            verdict.seen.items = items.len();
        }
        Ok(())
    }
}
