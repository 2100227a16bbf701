//! Rules that look at a value alone, and what is said of it.

use super::Verdict;
use crate::{
    json::{Object, shown},
    validate::Problem,
};
use serde_json::Value;

/// What is told of alternatives none of which fits: what is wrong with the one that fits best.
pub(super) fn nearest_alternative(
    failed: Vec<Vec<Problem>>,
    path: &str,
    rule: &str,
    value: &Value,
) -> Vec<Problem> {
    let count = failed.len();
    // One whose own type or constant is another was not meant; of the others, that with the least to mend.
    let is_meant = |problems: &Vec<Problem>| {
        !problems.iter().any(|problem| {
            let is_own = problem.path == path && matches!(problem.rule.as_str(), "type" | "false");
            is_own || problem.rule == "const"
        })
    };
    let mut meant: Vec<_> = failed.into_iter().filter(is_meant).collect();
    meant.sort_by_key(Vec::len);
    let fits_none = Problem {
        path: path.to_owned(),
        rule: rule.to_owned(),
        message: format!("is {}, and fits none of {count} alternatives", shown(value)),
    };
    let nearest = meant.into_iter().next().unwrap_or_default();
    [fits_none].into_iter().chain(nearest).collect()
}

pub(super) fn judge_number(keywords: &Object, value: &Value, path: &str, verdict: &mut Verdict) {
    let number = value.as_f64().unwrap_or_default();
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let mut fail = |rule: &str, what: &str, bound: f64| {
        let is_plain = bound == 0.0 || (1e-6..1e15).contains(&bound.abs());
        let bound = if is_plain {
            format!("{bound}")
        } else {
            format!("{bound:e}")
        };
        let message = format!("is {}, and has to be {what} {bound}", shown(value));
        verdict.fail(path, rule, message);
    };
    // Draft 4 has true where the others have a number.
    let is_exclusive = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
    if let Some(least) = bound("minimum") {
        if is_exclusive("exclusiveMinimum") && number <= least {
            fail("exclusiveMinimum", "more than", least);
        } else if number < least {
            fail("minimum", "at least", least);
        }
    }
    if let Some(most) = bound("maximum") {
        if is_exclusive("exclusiveMaximum") && number >= most {
            fail("exclusiveMaximum", "less than", most);
        } else if number > most {
            fail("maximum", "at most", most);
        }
    }
    if let Some(below) = bound("exclusiveMinimum").filter(|below| number <= *below) {
        fail("exclusiveMinimum", "more than", below);
    }
    if let Some(above) = bound("exclusiveMaximum").filter(|above| number >= *above) {
        fail("exclusiveMaximum", "less than", above);
    }
    if let Some(unit) = bound("multipleOf").filter(|unit| *unit > 0.0)
        && !is_multiple(number, unit)
    {
        fail("multipleOf", "a multiple of", unit);
    }
}

/// As people mean it: 0.3 is a multiple of 0.1, although no binary fraction says so.
pub(super) fn is_multiple(number: f64, unit: f64) -> bool {
    let quotient = number / unit;
    if quotient.is_infinite() {
        return number % unit == 0.0;
    }
    (quotient - quotient.round()).abs() <= quotient.abs().max(1.0) * 1e-12
}

pub(super) fn judge_count(
    keywords: &Object,
    [least, most]: [&str; 2],
    value: usize,
    what: &str,
    path: &str,
    verdict: &mut Verdict,
) {
    if let Some(bound) = count(keywords, least).filter(|bound| value < *bound) {
        let message = format!("has {value} {what}, and needs {bound} at least");
        verdict.fail(path, least, message);
    }
    if let Some(bound) = count(keywords, most).filter(|bound| value > *bound) {
        let message = format!("has {value} {what}, and may have {bound} at most");
        verdict.fail(path, most, message);
    }
}

pub(super) fn count(keywords: &Object, keyword: &str) -> Option<usize> {
    let value = keywords.get(keyword)?;
    // 2.0 is a count too.
    let count = value.as_f64().filter(|count| *count >= 0.0)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and what is too large saturates"
    )]
    Some(count as usize)
}

pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => shown(value),
        Value::String(_) => format!("the text {}", shown(value)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The name that is most like another, if any is.
pub(super) fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    if name.len() > 64 {
        return None;
    }
    let close = (name.chars().count() / 3).max(1);
    names
        .iter()
        .take(200)
        .filter(|other| other.len() <= 64 && **other != name)
        .map(|other| (strsim::osa_distance(name, other), *other))
        .filter(|(distance, _)| *distance <= close)
        .min()
        .map(|(_, other)| other)
}
