//! What a schema says in words, as a comment above what it says in types.

use crate::json::{is_true, shortened, text};
use serde_json::Value;

/// Keywords that types can't say, in the order in which they are listed.
const TAGS: &[&str] = &[
    "format",
    "pattern",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentMediaType",
    "contentEncoding",
];
/// How long the first sentence may be that stands for a description.
const SENTENCE_CHARS: usize = 160;
/// How long the value of a tag may be.
const TAG_CHARS: usize = 120;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Words {
    None,
    Sentence,
    All,
}

/// A comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doc {
    lines: Vec<String>,
}

impl Doc {
    /// A comment of a text alone.
    pub(crate) fn of_text(description: &str, words: Words, chars_max: usize) -> Self {
        let mut doc = Self::default();
        match words {
            Words::None => {}
            Words::Sentence => doc.push(first_sentence(description).as_str()),
            Words::All => doc.push(&shortened(description, chars_max)),
        }
        doc
    }

    /// What a schema says of itself.
    pub(crate) fn of_schema(schema: &Value, words: Words, chars_max: usize) -> Self {
        if words == Words::None {
            return Self::default();
        }
        let description = text(schema, "description").or_else(|| text(schema, "title"));
        let mut doc = Self::of_text(description.unwrap_or_default(), words, chars_max);
        if is_true(schema, "deprecated") || is_true(schema, "x-deprecated") {
            doc.tag("deprecated", "");
        }
        if words == Words::All {
            for tag in TAGS {
                match schema.get(tag) {
                    None | Some(Value::Bool(false) | Value::Object(_) | Value::Array(_)) => {}
                    Some(Value::Bool(true)) => doc.tag(tag, ""),
                    Some(Value::String(value)) => doc.tag(tag, value),
                    Some(value) => doc.tag(tag, &value.to_string()),
                }
            }
        }
        if let Some(default) = schema.get("default") {
            doc.tag("default", &default.to_string());
        }
        doc
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds lines of text.
    pub(crate) fn push(&mut self, text: &str) {
        for line in text.split(['\n', '\r', '\u{2028}', '\u{2029}']) {
            let line = harmless(line);
            // Blank lines cost and say nothing.
            if !line.is_empty() {
                self.lines.push(line);
            }
        }
    }

    /// Adds a tag.
    pub(crate) fn tag(&mut self, name: &str, value: &str) {
        let value = harmless(&shortened(value, TAG_CHARS));
        self.lines
            .push(format!("@{name} {value}").trim_end().into());
    }

    /// Prints the comment, and begins the line of what it is about.
    pub(crate) fn print(&self, out: &mut String, indent: usize) {
        let begin_line = |out: &mut String| {
            out.push('\n');
            super::model::push_indent(out, indent);
        };
        match self.lines.as_slice() {
            [] => return,
            [line] => {
                out.push_str("/** ");
                out.push_str(line);
                out.push_str(" */");
            }
            lines => {
                out.push_str("/**");
                for line in lines {
                    begin_line(out);
                    out.push_str(" * ");
                    out.push_str(line);
                }
                begin_line(out);
                out.push_str(" */");
            }
        }
        begin_line(out);
    }
}

/// One line that can't end a comment.
fn harmless(line: &str) -> String {
    let line: String = line
        .chars()
        .map(|character| {
            let ends_a_line = matches!(character, '\u{2028}' | '\u{2029}');
            if character.is_control() || ends_a_line {
                ' '
            } else {
                character
            }
        })
        .collect();
    line.trim().replace("*/", "*\\/")
}

fn first_sentence(text: &str) -> String {
    let text = text.trim_start();
    let line = text.lines().next().unwrap_or_default();
    let end = line
        .match_indices(['.', '!', '?', '。'])
        .map(|(at, mark)| at + mark.len())
        .find(|end| line[*end..].is_empty() || line[*end..].starts_with(char::is_whitespace));
    shortened(&line[..end.unwrap_or(line.len())], SENTENCE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(doc: &Doc) -> String {
        let mut out = String::new();
        doc.print(&mut out, 0);
        out
    }

    /// No description ends its comment, and none begins a line of code.
    #[test]
    fn a_description_stays_in_its_comment() {
        for hostile in [
            "end */ export const x = 1; /*",
            "**/",
            "*\u{0}/",
            "a\u{2028}b",
            "*\r\n/ x",
            "*/*/*/",
        ] {
            let schema = json!({"description": hostile, "pattern": hostile, "default": hostile});
            let text = printed(&Doc::of_schema(&schema, Words::All, 1_000));
            assert_eq!(text.matches("*/").count(), 1, "{text}");
            assert!(text.trim_end().ends_with("*/"), "{text}");
            let mut lines = text.lines().skip(1);
            assert!(lines.all(|line| line.starts_with(" *")), "{text}");
        }
    }

    /// What types can't say is said in tags.
    #[test]
    fn keywords_become_tags() {
        let schema = json!({
            "description": "How many.\n\nAt most a page.", "deprecated": true, "format": "int32", "minimum": 1, "maximum": 100,
            "default": 20, "uniqueItems": false, "exclusiveMinimum": true,
        });
        assert_eq!(
            printed(&Doc::of_schema(&schema, Words::All, 1_000)),
            "/**\n * How many.\n * At most a page.\n * @deprecated\n * @format int32\n * @minimum 1\n * @exclusiveMinimum\n \
             * @maximum 100\n * @default 20\n */\n"
        );
        assert_eq!(
            printed(&Doc::of_schema(&schema, Words::Sentence, 1_000)),
            "/**\n * How many.\n * @deprecated\n * @default 20\n */\n"
        );
        assert!(Doc::of_schema(&schema, Words::None, 1_000).is_empty());
    }

    /// A sentence ends where it ends, not in a number or a name.
    #[test]
    fn the_first_sentence_is_found() {
        assert_eq!(
            first_sentence("See v1.2 of example.com. More."),
            "See v1.2 of example.com."
        );
        assert_eq!(first_sentence("No end\nnext"), "No end");
        assert_eq!(first_sentence(""), "");
        assert_eq!(first_sentence(&"x".repeat(500)).chars().count(), 160);
    }
}
