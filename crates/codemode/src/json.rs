//! What several modules need of JSON: its extent, pointers into it, and texts of it for people.

use crate::{LimitExceeded, Limits};
use serde_json::{Map, Value};
use std::fmt::Write;

/// An object of JSON.
pub(crate) type Object = Map<String, Value>;

/// Refuses a value that is nested deeper, or has more values in it, than is allowed. Without recursion.
pub(crate) fn check_extent(
    value: &Value,
    check: impl Fn(usize, usize) -> Result<(), LimitExceeded>,
) -> Result<(), LimitExceeded> {
    let mut waiting = vec![(value, 1)];
    let mut nodes = 0;
    let mut depth_seen = 0;
    while let Some((value, depth)) = waiting.pop() {
        nodes += 1;
        if depth > depth_seen || nodes % 1_024 == 0 {
            depth_seen = depth_seen.max(depth);
            check(depth_seen, nodes)?;
        }
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                waiting.extend(members.values().map(|member| (member, depth + 1)));
            }
            _ => {}
        }
    }
    check(depth_seen, nodes)
}

/// Refuses arguments that are too deep or too many.
pub(crate) fn check_arguments(arguments: &Value, limits: &Limits) -> Result<(), LimitExceeded> {
    check_extent(arguments, |depth, nodes| {
        limits.arguments_depth_max(depth, "the input")?;
        limits.arguments_nodes_max(nodes, "the input")
    })
}

/// A pointer with one more token.
pub(crate) fn pointer_within(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// The last token of a pointer, unescaped.
pub(crate) fn pointer_end(pointer: &str) -> String {
    let token = pointer.rsplit('/').next().unwrap_or_default();
    token.replace("~1", "/").replace("~0", "~")
}

/// A path as JavaScript writes it, with one more name.
pub(crate) fn path_within(path: &str, name: &str) -> String {
    if crate::names::is_identifier(name) {
        format!("{path}.{name}")
    } else {
        format!("{path}[{}]", quoted(name))
    }
}

/// A text between quotes, with everything escaped that JSON and JavaScript escape.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() || matches!(control, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// The first characters of a text, with a mark where there were more.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let end = text[..end]
                .char_indices()
                .next_back()
                .map_or(0, |(last, _)| last);
            format!("{}…", &text[..end])
        }
    }
}

/// A value for an error's text: one short line.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > 3 => format!("an array of {}", items.len()),
        Value::Object(members) if members.len() > 3 => {
            format!("an object of {} members", members.len())
        }
        Value::Array(items) if items.iter().any(is_nested) => {
            format!("an array of {}", items.len())
        }
        Value::Object(members) if members.values().any(is_nested) => {
            format!("an object of {} members", members.len())
        }
        Value::String(text) => shortened(&quoted(&shortened(text, 60)), 80),
        other => shortened(&other.to_string(), 80),
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Whether two values are the same by JSON Schema's rules: 1 is 1.0, and the order of members means nothing.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, a)| right.get(name).is_some_and(|b| is_same(a, b)))
        }
        _ => left == right,
    }
}

/// A text that two values share if and only if they are the same (see [`is_same`]).
pub(crate) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) => {
                // 0 and -0 are the same number.
                let _ = write!(out, "{:e}", float + 0.0);
            }
            None => out.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<_> = members.keys().collect();
            names.sort_unstable();
            out.push('{');
            for name in names {
                out.push_str(&quoted(name));
                out.push(':');
                canonical(&members[name], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::String(text) => out.push_str(&quoted(text)),
        other => out.push_str(&other.to_string()),
    }
}

/// The text of a member, where it is one.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// Whether a member is `true`.
pub(crate) fn is_true(object: &Value, name: &str) -> bool {
    object.get(name) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Texts that go into declarations or errors end where they should, whatever is in them.
    #[test]
    fn a_quoted_text_reads_back() {
        for text in [
            "",
            "a\"b\\c",
            "line\nbreak\r\t",
            "\u{0}\u{7f}\u{2028}\u{2029}",
            "日本😀",
        ] {
            let read: String = serde_json::from_str(&quoted(text)).unwrap();
            assert_eq!(read, text);
            assert!(!quoted(text).contains(['\n', '\u{2028}']));
        }
    }

    /// A shortened text never has more characters than asked for, the mark included.
    #[test]
    fn a_shortened_text_is_short() {
        assert_eq!(shortened("日本語", 3), "日本語");
        assert_eq!(shortened("日本語x", 3), "日本…");
        assert_eq!(shortened("abc", 1), "…");
    }

    /// The two ways of comparing agree.
    #[test]
    fn sameness_is_that_of_json_schema() {
        let text = |value: &Value| {
            let mut out = String::new();
            canonical(value, &mut out);
            out
        };
        for (left, right, same) in [
            (json!(1), json!(1.0), true),
            (json!(0), json!(-0.0), true),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), true),
            (json!([1, 2]), json!([2, 1]), false),
            (json!("1"), json!(1), false),
            (json!(false), json!(0), false),
            (json!(null), json!("null"), false),
        ] {
            assert_eq!(is_same(&left, &right), same, "{left} {right}");
            assert_eq!(text(&left) == text(&right), same, "{left} {right}");
        }
    }

    /// Depth and count are found without recursion, and looked at before all is read.
    #[test]
    fn extent_is_bounded() {
        let limits = Limits::default();
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let error = check_arguments(&deep, &limits).unwrap_err();
        assert_eq!(
            (error.limit, error.value, error.max),
            ("arguments_depth_max", 65, 64)
        );
        let wide = Value::Array(vec![json!(0); 100_000]);
        let error = check_arguments(&wide, &limits).unwrap_err();
        assert_eq!(error.limit, "arguments_nodes_max");
    }
}
