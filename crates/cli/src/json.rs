//! JSON on the command line and on stdout. Reading and writing are `coracle_value`'s; here is what
//! people see of it: where a text is wrong, and a layout that can be read.

use crate::{
    failure::Failure,
    frame::{Place, code_frame},
    terminal::Paint,
    text::escape_of,
};
use coracle_value::{Bounds, DEPTH_CEILING, JsonError, Value, from_json, to_json_bounded};
use std::fmt::Write;

/// The JSON array that `flag` was given.
pub(crate) fn array(flag: &str, text: &str, paint: Paint) -> Result<Vec<Value>, Failure> {
    match parse(flag, text, paint)? {
        Value::Array(elements) => Ok(elements),
        other => Err(wrong_kind(flag, "an array, such as '[1, \"two\"]'", &other)),
    }
}

/// The JSON object that `flag` was given.
pub(crate) fn object(flag: &str, text: &str, paint: Paint) -> Result<Value, Failure> {
    match parse(flag, text, paint)? {
        object @ Value::Object(_) => Ok(object),
        other => Err(wrong_kind(
            flag,
            "an object, such as '{\"KEY\": \"value\"}'",
            &other,
        )),
    }
}

/// The JSON text of a value whatever its size: the limits of the call have bounded it.
pub(crate) fn text_of(value: &Value) -> Result<String, JsonError> {
    to_json_bounded(
        value,
        &Bounds {
            bytes_max: usize::MAX,
            depth_max: DEPTH_CEILING,
            externals: 0,
        },
    )
}

fn parse(flag: &str, text: &str, paint: Paint) -> Result<Value, Failure> {
    let bounds = Bounds {
        bytes_max: usize::MAX,
        ..Bounds::default()
    };
    from_json(text, &bounds).map_err(|error| {
        let mut message = format!("{flag} is not JSON: {error}");
        if let Some(frame) = frame_of(&error, text, paint) {
            // Writing to a string can't fail.
            let _ = write!(message, "\n{}", frame.trim_end());
        }
        Failure::usage(message)
    })
}

fn frame_of(error: &JsonError, text: &str, paint: Paint) -> Option<String> {
    let at = match error {
        JsonError::UnexpectedEnd { at } | JsonError::UnexpectedCharacter { at, .. } => *at,
        _ => return None,
    };
    let before = text.get(..at)?;
    let line_start = before.rfind('\n').map_or(0, |line_feed| line_feed + 1);
    let line = u32::try_from(before.matches('\n').count() + 1).ok()?;
    let column = u32::try_from(before[line_start..].encode_utf16().count() + 1).ok()?;
    code_frame(
        &Place {
            file: "",
            source: text,
            line,
            column,
        },
        paint,
    )
}

fn wrong_kind(flag: &str, wanted: &str, value: &Value) -> Failure {
    let kind = match value {
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a boolean",
        _ => "null",
    };
    Failure::usage(format!("{flag} takes {wanted}; this is {kind}"))
}

/// JSON text as [`text_of`] makes it, laid out for a terminal: a member a line, and what would act
/// on the terminal escaped, which JSON allows within its strings.
pub(crate) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                push_string(&mut out, &mut characters);
            }
            '{' | '[' => {
                out.push(character);
                let close = if character == '{' { '}' } else { ']' };
                if characters.next_if_eq(&close).is_some() {
                    out.push(close);
                } else {
                    depth += 1;
                    push_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                push_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                push_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

/// The rest of a string, its closing quote included.
fn push_string(out: &mut String, characters: &mut impl Iterator<Item = char>) {
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                out.push('\\');
                out.extend(characters.next());
            }
            // Writing to a string can't fail.
            other if escape_of(other).is_some() => drop(write!(out, "\\u{:04x}", u32::from(other))),
            other => out.push(other),
        }
        if character == '"' {
            return;
        }
    }
}

fn push_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure_of(text: &str) -> String {
        array("--args", text, Paint::OFF)
            .expect_err("it is wrong")
            .to_string()
    }

    #[test]
    fn an_error_points_at_the_position() {
        let expected = "\
--args is not JSON: unexpected character 'x' at byte 10 of json text
  |
1 | [1, \"漢\" x]
  |          ^";
        assert_eq!(failure_of("[1, \"漢\" x]"), expected);
        assert!(
            failure_of("[1,\n 2,\n nope]").contains("3 |  nope]\n  |   ^"),
            "{}",
            failure_of("[1,\n 2,\n nope]")
        );
        assert!(failure_of("[1").ends_with("1 | [1\n  |   ^"));
    }

    #[test]
    fn a_value_of_the_wrong_kind_says_what_is_wanted() {
        assert_eq!(
            failure_of("{}"),
            "--args takes an array, such as '[1, \"two\"]'; this is an object"
        );
        let error = object("--env", "[1]", Paint::OFF)
            .expect_err("no object")
            .to_string();
        assert_eq!(
            error,
            "--env takes an object, such as '{\"KEY\": \"value\"}'; this is an array"
        );
    }

    #[test]
    fn pretty_text_has_a_member_a_line_and_says_the_same() {
        let compact = r#"{"a":[1,-0.5,{"b":{}}],"c":[],"d\"{":"x:,[\\","e":null}"#;
        let expected = r#"{
  "a": [
    1,
    -0.5,
    {
      "b": {}
    }
  ],
  "c": [],
  "d\"{": "x:,[\\",
  "e": null
}"#;
        assert_eq!(pretty(compact), expected);
        let bounds = Bounds::default();
        assert_eq!(
            from_json(&pretty(compact), &bounds),
            from_json(compact, &bounds)
        );
        assert_eq!(pretty("\"x\""), "\"x\"");
    }

    #[test]
    fn pretty_text_can_not_act_on_the_terminal() {
        let json = text_of(&Value::from("\u{9b}31m\u{202e}")).expect("a string");
        assert_eq!(pretty(&json), r#""\u009b31m\u202e""#);
    }
}
