//! Text to JSON: documents come as JSON and as YAML.
//!
//! YAML is read by its core schema, so that `NO` is a text and a date is one too. Anchors and aliases are followed, and what
//! they repeat is counted each time, so that a few lines can't become gigabytes. Merging with `<<` works as it does in the
//! tools that write such documents. Nothing here recurses.

use super::ApiError;
use crate::{Limits, json::Object};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Number, Value};
use std::collections::BTreeMap;

/// Reads a document of either kind.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Value, ApiError> {
    limits.document_bytes_max(text.len(), "the document")?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            // A flow mapping of YAML begins like that too.
            Err(error) => {
                return read_yaml(text, limits).map_err(|_| ApiError::Syntax {
                    line: error.line(),
                    problem: error.to_string(),
                });
            }
        }
    }
    read_yaml(text, limits)
}

/// A collection that is being read.
enum Open {
    Sequence(Vec<Value>),
    Mapping {
        members: Object,
        key: Option<String>,
    },
}

struct Builder<'a> {
    limits: &'a Limits,
    open: Vec<(Open, usize)>,
    done: Option<Value>,
    anchors: BTreeMap<usize, (Value, usize)>,
    nodes: usize,
    line: usize,
}

fn read_yaml(text: &str, limits: &Limits) -> Result<Value, ApiError> {
    let mut builder = Builder {
        limits,
        open: Vec::new(),
        done: None,
        anchors: BTreeMap::new(),
        nodes: 0,
        line: 1,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ApiError::Syntax {
            line: error.marker().line(),
            problem: error.info().to_owned(),
        })?;
        builder.line = span.start.line();
        match event {
            Event::DocumentStart(_) if builder.done.is_some() => {
                return Err(builder.wrong("there is a second document"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|tag| tag.suffix == "str");
                let value = if style == ScalarStyle::Plain && !is_text {
                    plain(&text)
                } else {
                    Value::from(text.as_ref())
                };
                builder.add(value, &text, anchor, 1)?;
            }
            Event::SequenceStart(anchor, _) => {
                builder.begin(Open::Sequence(Vec::new()), anchor)?;
            }
            Event::MappingStart(anchor, _) => {
                let mapping = Open::Mapping {
                    members: Object::new(),
                    key: None,
                };
                builder.begin(mapping, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => builder.end()?,
            Event::Alias(anchor) => {
                let Some((value, nodes)) = builder.anchors.get(&anchor).cloned() else {
                    return Err(builder.wrong("an alias is within what it repeats"));
                };
                let key = value.as_str().unwrap_or_default().to_owned();
                builder.add(value, &key, 0, nodes)?;
            }
            _ => {}
        }
    }
    builder
        .done
        .take()
        .ok_or_else(|| builder.wrong("there is nothing in it"))
}

impl Builder<'_> {
    fn wrong(&self, problem: &str) -> ApiError {
        ApiError::Syntax {
            line: self.line,
            problem: problem.to_owned(),
        }
    }

    fn begin(&mut self, open: Open, anchor: usize) -> Result<(), ApiError> {
        if let Some((Open::Mapping { key: None, .. }, _)) = self.open.last() {
            return Err(self.wrong("a key is not a text"));
        }
        self.open.push((open, anchor));
        self.limits
            .document_depth_max(self.open.len(), "the document")?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), ApiError> {
        let Some((open, anchor)) = self.open.pop() else {
            return Err(self.wrong("something ends that has not begun"));
        };
        let value = match open {
            Open::Sequence(items) => Value::Array(items),
            Open::Mapping { members, .. } => Value::Object(members),
        };
        self.add(value, "", anchor, 1)
    }

    /// Adds a value to what is open. `text` is how it is spelled, should it be a key.
    fn add(
        &mut self,
        value: Value,
        text: &str,
        anchor: usize,
        nodes: usize,
    ) -> Result<(), ApiError> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.limits.document_nodes_max(self.nodes, "the document")?;
        if anchor > 0 {
            let nodes = count(&value);
            self.anchors.insert(anchor, (value.clone(), nodes));
            // The copy that is kept counts as well.
            self.nodes = self.nodes.saturating_add(nodes);
        }
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some((Open::Sequence(items), _)) => items.push(value),
            Some((Open::Mapping { members, key }, _)) => match key.take() {
                None if value.is_array() || value.is_object() => {
                    return Err(self.wrong("a key is not a text"));
                }
                None => *key = Some(text.to_owned()),
                Some(name) if name == "<<" => {
                    let merged = match value {
                        Value::Array(all) => all,
                        one => vec![one],
                    };
                    for one in merged {
                        let Value::Object(more) = one else {
                            return Err(self.wrong("<< merges what is no mapping"));
                        };
                        for (name, value) in more {
                            members.entry(name).or_insert(value);
                        }
                    }
                }
                Some(name) => {
                    members.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    let mut nodes = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        nodes += 1;
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => waiting.extend(members.values()),
            _ => {}
        }
    }
    nodes
}

/// What a plain text means by YAML's core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty()
        || !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
    {
        return Value::from(text);
    }
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        u64::from_str_radix(digits, radix).ok()
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Value::from(number);
    }
    let signed = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = signed.parse::<i64>() {
        return Value::from(number);
    }
    if let Ok(number) = signed.parse::<u64>() {
        return Value::from(number);
    }
    let is_number = unsigned
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number = signed.parse::<f64>().ok().filter(|_| is_number);
    number
        .and_then(Number::from_f64)
        .map_or_else(|| Value::from(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn yaml(text: &str) -> Result<Value, ApiError> {
        read(text, &Limits::default())
    }

    /// Plain texts mean what YAML 1.2 says: a country is no boolean, a version no number.
    #[test]
    fn yaml_is_read_by_its_core_schema() {
        let text = "a: NO\nb: true\nc: 12\nd: 1.5e3\ne: 0x1F\nf: 2024-01-02\ng: ~\nh: '12'\ni: 1.2.3\nj: -7\nk: |\n  two\n  lines\n\
                    l: !!str 5\nm: [1, {x: y}]\n200: ok\nn: +3\no: .5\np: 0o17\nq: 12e\nr: -x\n";
        assert_eq!(
            yaml(text).unwrap(),
            json!({
                "a": "NO", "b": true, "c": 12, "d": 1500.0, "e": 31, "f": "2024-01-02", "g": null, "h": "12", "i": "1.2.3", "j": -7,
                "k": "two\nlines\n", "l": "5", "m": [1, {"x": "y"}], "200": "ok", "n": 3, "o": 0.5, "p": 15, "q": "12e", "r": "-x",
            })
        );
    }

    /// Anchors, aliases and merging are followed; what a mapping says itself goes first.
    #[test]
    fn anchors_are_followed() {
        let text = "base: &base {a: 1, b: 2}\nlist: &list [x]\nthis:\n  <<: *base\n  b: 3\nagain: *list\nboth: {<<: [*base, {c: 4}]}\n";
        let value = yaml(text).unwrap();
        assert_eq!(value["this"], json!({"a": 1, "b": 3}));
        assert_eq!(value["again"], json!(["x"]));
        assert_eq!(value["both"], json!({"a": 1, "b": 2, "c": 4}));
    }

    /// A few lines of aliases can't become gigabytes, and depth is bounded.
    #[test]
    fn bombs_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        let error = yaml(&bomb).unwrap_err().to_string();
        assert!(error.contains("document_nodes_max"), "{error}");
        let deep = "- ".repeat(500) + "x";
        let error = yaml(&deep).unwrap_err().to_string();
        assert!(error.contains("document_depth_max"), "{error}");
        assert!(yaml(&"[".repeat(100_000)).is_err());
        assert!(yaml("a: &a [*a]").is_err());
    }

    /// JSON is read as JSON, and both say where they are wrong.
    #[test]
    fn errors_say_the_line() {
        assert_eq!(yaml("{\"a\": 1}").unwrap(), json!({"a": 1}));
        assert_eq!(yaml("{a: b}").unwrap(), json!({"a": "b"}));
        for text in ["{\n\"a\": 1", "a: b\n - c: [", ""] {
            assert!(matches!(yaml(text), Err(ApiError::Syntax { .. })), "{text}");
        }
        assert!(yaml("a: 1\n---\nb: 2\n").is_err());
    }
}
