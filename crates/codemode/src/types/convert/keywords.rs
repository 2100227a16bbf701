//! What single keywords say.

use super::Direction;
use crate::{
    Dialect, Document,
    json::{Object, is_true, quoted, text},
    names::{is_continue, is_start},
    types::{
        doc::Doc,
        model::{Member, ObjectType, Tuple, Type},
    },
};
use serde_json::Value;

/// What bytes are in a program. A text that is sent stands for its UTF-8.
pub(super) fn bytes(direction: Direction) -> Type {
    match direction {
        Direction::Input => Type::union([Type::atom("Uint8Array"), Type::atom("string")]),
        Direction::Output => Type::atom("Uint8Array"),
    }
}

/// Whether a text of an OpenAPI document stands for bytes.
pub(crate) fn is_bytes(keywords: &Object, dialect: Dialect) -> bool {
    let is = |keyword, value| keywords.get(keyword).and_then(Value::as_str) == Some(value);
    dialect.has_directions()
        && (is("format", "binary")
            || is("contentMediaType", "application/octet-stream")
                && !keywords.contains_key("contentEncoding"))
}

/// Whether a property is for the other direction only.
pub(super) fn is_hidden(document: &Document, property: &Value, keyword: &str) -> bool {
    is_true(property, keyword)
        || text(property, "$ref")
            .and_then(|reference| document.resolve(reference).ok())
            .is_some_and(|(_, referred)| is_true(referred, keyword))
}

/// A property that a schema has, in itself or in what it is made of.
pub(super) fn find_property<'a>(
    document: &'a Document,
    schema: &'a Value,
    name: &str,
    looks: usize,
) -> Option<&'a Value> {
    let looks = looks.checked_sub(1)?;
    let own = schema.get("properties").and_then(|all| all.get(name));
    let referred = || {
        let (_, referred) = document.resolve(text(schema, "$ref")?).ok()?;
        find_property(document, referred, name, looks)
    };
    let in_parts = || {
        let parts = schema.get("allOf")?.as_array()?;
        parts
            .iter()
            .take(64)
            .find_map(|part| find_property(document, part, name, looks))
    };
    own.or_else(referred).or_else(in_parts)
}

pub(super) fn schemas<'a>(keywords: &'a Object, keyword: &str) -> &'a [Value] {
    keywords
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn types_of(keywords: &Object) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// What a schema means that says no type, but something that only one type can have.
pub(super) fn implied_types(keywords: &Object) -> Vec<&'static str> {
    let of_types: [(&str, &[&str]); 4] = [
        (
            "object",
            &[
                "properties",
                "additionalProperties",
                "patternProperties",
                "required",
                "propertyNames",
                "minProperties",
                "maxProperties",
            ],
        ),
        (
            "array",
            &[
                "items",
                "prefixItems",
                "minItems",
                "maxItems",
                "uniqueItems",
                "contains",
            ],
        ),
        ("string", &["pattern", "minLength", "maxLength"]),
        (
            "number",
            &[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ],
        ),
    ];
    of_types
        .into_iter()
        .filter(|(_, implying)| {
            implying
                .iter()
                .any(|keyword| keywords.contains_key(*keyword))
        })
        .map(|(kind, _)| kind)
        .collect()
}

/// Whether a value is of a type of JSON Schema.
pub(crate) fn is_of_type(value: &Value, kind: &str) -> bool {
    match (value, kind) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string" | "file")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        (Value::Number(number), "integer") => {
            number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        _ => false,
    }
}

pub(super) fn literal(value: &Value) -> Type {
    match value {
        Value::String(text) => Type::Atom(quoted(text)),
        Value::Array(items) => Type::Tuple(Tuple {
            required: items.iter().map(literal).collect(),
            optional: Vec::new(),
            rest: None,
        }),
        Value::Object(members) => Type::Object(ObjectType {
            members: members
                .iter()
                .map(|(name, value)| Member {
                    name: name.clone(),
                    is_optional: false,
                    value: literal(value),
                    doc: Doc::default(),
                })
                .collect(),
            index: None,
        }),
        other => Type::Atom(other.to_string()),
    }
}

/// The name of a type: `list-issues input` as `ListIssuesInput`.
pub(super) fn pascal_case(text: &str) -> String {
    let mut name = String::new();
    let mut begins = true;
    for character in text.chars() {
        if !is_continue(character) || character == '_' {
            begins = true;
        } else if begins {
            name.extend(character.to_uppercase());
            begins = false;
        } else {
            name.push(character);
        }
        if name.len() > 80 {
            break;
        }
    }
    // (Upper case can be of another block.)
    name.retain(is_continue);
    if !name.starts_with(is_start) {
        name.insert_str(0, "Type");
    }
    name
}
