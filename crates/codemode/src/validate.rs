//! Judges a call's arguments by the tool's JSON Schema before the call is made.
//!
//! Whoever wrote the program gets to read what is wrong where: the path of the value, the rule, and the value. Schemas come
//! from strangers, so that judging is bounded in steps and in nesting, patterns are matched in linear time, and no reference
//! leaves its document. `format` is not judged, as JSON Schema has it by default.

mod pattern;
mod rules;

use crate::{
    Dialect, LimitExceeded, Limits, Schema, SchemaError,
    json::{check_arguments, text},
};
use regex::Regex;
use rules::Run;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// A schema that is ready to judge.
#[derive(Clone, Debug)]
pub struct Validator {
    schema: Schema,
    /// By their text; those without are not checked.
    patterns: BTreeMap<String, Option<Regex>>,
    unchecked: Vec<Unchecked>,
    limits: Limits,
}

/// A rule of a schema that is not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// The pattern.
    pub pattern: String,
    /// Why it is not checked.
    pub reason: &'static str,
}

/// What is wrong with a call's arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// They do not keep to the schema.
    #[error("{}", Problems(.0))]
    Invalid(Vec<Problem>),
    /// There is too much of them, or judging them takes too long.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

/// One rule that a value does not keep to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the value is, as a program would write it: `input.items[0].name`.
    pub path: String,
    /// The keyword of the schema.
    pub rule: String,
    /// What is wrong, the value included.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.path, self.message, self.rule)
    }
}

struct Problems<'a>(&'a [Problem]);

impl fmt::Display for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl Validator {
    /// Makes a schema ready: follows all of its references and compiles its patterns.
    ///
    /// # Errors
    ///
    /// A reference leads to another document or nowhere.
    pub fn new(schema: &Schema, limits: &Limits) -> Result<Self, SchemaError> {
        let mut patterns = BTreeMap::new();
        let mut unchecked = Vec::new();
        let mut seen = BTreeSet::new();
        let mut waiting = vec![(schema.value(), false)];
        while let Some((value, is_map)) = waiting.pop() {
            let keywords = match value {
                Value::Object(keywords) if !is_map => keywords,
                // Names of properties are no keywords.
                Value::Object(map) => {
                    waiting.extend(map.values().map(|schema| (schema, false)));
                    continue;
                }
                Value::Array(items) => {
                    waiting.extend(items.iter().map(|item| (item, false)));
                    continue;
                }
                _ => continue,
            };
            for keyword in ["$ref", "$dynamicRef"] {
                if let Some(reference) = text(value, keyword) {
                    let (pointer, referred) = schema.document().resolve(reference)?;
                    if seen.insert(pointer) {
                        waiting.push((referred, false));
                    }
                }
            }
            let own = keywords.get("pattern").and_then(Value::as_str);
            let of_properties = keywords.get("patternProperties").and_then(Value::as_object);
            let of_properties = of_properties
                .into_iter()
                .flatten()
                .map(|(key, _)| key.as_str());
            for source in own.into_iter().chain(of_properties) {
                if patterns.contains_key(source) {
                    continue;
                }
                let compiled = if patterns.len() < limits.patterns_max {
                    pattern::compile(source, limits)
                } else {
                    Err("there are more than patterns_max")
                };
                if let Err(reason) = &compiled {
                    unchecked.push(Unchecked {
                        pattern: source.to_owned(),
                        reason,
                    });
                }
                patterns.insert(source.to_owned(), compiled.ok());
            }
            for (keyword, within) in keywords {
                match keyword.as_str() {
                    // Values, not schemas.
                    "const" | "enum" | "default" | "examples" | "example" => {}
                    "properties" | "patternProperties" | "dependentSchemas" | "dependencies"
                    | "$defs" | "definitions" => waiting.push((within, true)),
                    _ => waiting.push((within, false)),
                }
            }
        }
        Ok(Self {
            schema: schema.clone(),
            patterns,
            unchecked,
            limits: limits.clone(),
        })
    }

    /// The patterns that are not checked.
    #[must_use]
    pub fn unchecked(&self) -> &[Unchecked] {
        &self.unchecked
    }

    /// Judges arguments.
    ///
    /// # Errors
    ///
    /// They do not keep to the schema, or there is too much of them.
    pub fn validate(&self, arguments: &Value) -> Result<(), ArgumentsError> {
        check_arguments(arguments, &self.limits)?;
        let mut run = Run::new(self);
        let mut problems = run.judge(self.schema.value(), arguments, "input")?;
        problems.truncate(self.limits.problems_max.max(1));
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ArgumentsError::Invalid(problems))
        }
    }

    fn dialect(&self) -> Dialect {
        self.schema.document().dialect()
    }
}

#[cfg(test)]
mod tests;
