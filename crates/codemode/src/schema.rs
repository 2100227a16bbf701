//! JSON Schemas as they come: which dialect they are of, and what their references mean.
//!
//! A [`Schema`] is a part of a [`Document`], in which its references are looked up: an OpenAPI document has many, a tool
//! of an MCP server is one. Nothing is ever fetched, so a reference to somewhere else is refused.

use crate::{
    LimitExceeded, Limits,
    json::{check_extent, is_true, pointer_within, text},
};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

/// By which rules a schema is read. They differ in what stands beside `$ref`, and in what `readOnly` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Draft 7 and before: nothing beside a `$ref` counts.
    Draft7,
    /// 2019-09 and 2020-12.
    Draft2020,
    /// Swagger 2 and OpenAPI 3.0: as draft 7, with `nullable`.
    OpenApi30,
    /// OpenAPI 3.1: as 2020-12.
    OpenApi31,
}

/// A document that schemas are parts of.
#[derive(Debug)]
pub struct Document {
    root: Arc<Value>,
    dialect: Dialect,
    /// Pointers by `#anchor`, by `$id`, and by `$id#anchor`.
    names: BTreeMap<String, String>,
    /// Pointers of what is referred to and has `readOnly` or `writeOnly` in it, or refers to such; made when asked for.
    directional: OnceLock<BTreeSet<String>>,
}

/// A schema, and the document in which its references are looked up.
#[derive(Clone, Debug)]
pub struct Schema {
    value: Arc<Value>,
    document: Arc<Document>,
}

/// Why a schema can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// It is no schema at all.
    #[error("a schema is an object, true or false, and this is {0}")]
    NotASchema(String),
    /// A reference to another document.
    #[error("the reference {0:?} leads to another document, and nothing is fetched")]
    ReferenceRemote(String),
    /// A reference to what is not there.
    #[error("the reference {0:?} leads nowhere in its document")]
    ReferenceDangling(String),
}

impl Dialect {
    /// That of a schema which says so in `$schema`; else 2020-12, as MCP has it.
    fn of(root: &Value) -> Self {
        let draft_7 = ["draft-07", "draft-06", "draft-05", "draft-04", "draft-03"];
        match text(root, "$schema") {
            Some(name) if draft_7.iter().any(|draft| name.contains(draft)) => Self::Draft7,
            _ => Self::Draft2020,
        }
    }

    /// Whether what stands beside a `$ref` counts.
    #[must_use]
    pub fn has_siblings_of_references(self) -> bool {
        matches!(self, Self::Draft2020 | Self::OpenApi31)
    }

    /// Whether `readOnly` means that a property is not to be sent, and `writeOnly` that it does not come back.
    #[must_use]
    pub fn has_directions(self) -> bool {
        matches!(self, Self::OpenApi30 | Self::OpenApi31)
    }
}

impl Document {
    /// A document whose size was judged before.
    pub(crate) fn new(root: Arc<Value>, dialect: Dialect) -> Self {
        let names = names_of(&root, dialect);
        Self {
            root,
            dialect,
            names,
            directional: OnceLock::new(),
        }
    }

    /// The whole.
    #[must_use]
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Its dialect.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What a reference leads to: its pointer within the document, and the value.
    ///
    /// # Errors
    ///
    /// It leads to another document, or nowhere.
    pub fn resolve(&self, reference: &str) -> Result<(String, &Value), SchemaError> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match base {
            "" => "",
            name => self
                .names
                .get(name)
                .ok_or_else(|| SchemaError::ReferenceRemote(reference.to_owned()))?,
        };
        let dangling = || SchemaError::ReferenceDangling(reference.to_owned());
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            format!("{base}{fragment}")
        } else {
            let name = format!("#{fragment}");
            self.names.get(&name).ok_or_else(dangling)?.clone()
        };
        let value = self.root.pointer(&pointer).ok_or_else(dangling)?;
        Ok((pointer, value))
    }

    /// Whether what a pointer leads to differs between what is sent and what comes back.
    pub(crate) fn is_directional(&self, pointer: &str) -> bool {
        self.dialect.has_directions()
            && self
                .directional
                .get_or_init(|| self.find_directional())
                .contains(pointer)
    }

    fn find_directional(&self) -> BTreeSet<String> {
        // Who refers to whom, of all that is referred to anywhere.
        let mut referrers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut waiting = self.references_within(&self.root).0;
        while let Some(pointer) = waiting.pop() {
            if !seen.insert(pointer.clone()) {
                continue;
            }
            let Some(value) = self.root.pointer(&pointer) else {
                continue;
            };
            let (references, has_directions) = self.references_within(value);
            if has_directions {
                found.push(pointer.clone());
            }
            for reference in references {
                let of = referrers.entry(reference.clone()).or_default();
                of.push(pointer.clone());
                waiting.push(reference);
            }
        }
        let mut directional = BTreeSet::new();
        while let Some(pointer) = found.pop() {
            if directional.insert(pointer.clone()) {
                found.extend(referrers.get(&pointer).into_iter().flatten().cloned());
            }
        }
        directional
    }

    /// The pointers that are referred to within a value, and whether something in it has a direction.
    fn references_within(&self, value: &Value) -> (Vec<String>, bool) {
        let mut references = Vec::new();
        let mut has_directions = false;
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            if let Some(reference) = text(value, "$ref")
                && let Ok((pointer, _)) = self.resolve(reference)
            {
                references.push(pointer);
            }
            has_directions |= is_true(value, "readOnly") || is_true(value, "writeOnly");
            match value {
                Value::Array(items) => waiting.extend(items),
                Value::Object(members) => waiting.extend(members.values()),
                _ => {}
            }
        }
        (references, has_directions)
    }
}

/// The anchors and ids of a document.
fn names_of(root: &Value, dialect: Dialect) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    // OpenAPI 3.0 has neither, and its documents are large.
    if dialect == Dialect::OpenApi30 {
        return names;
    }
    let mut waiting = vec![(root, String::new())];
    while let Some((value, pointer)) = waiting.pop() {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = text(value, keyword) {
                names
                    .entry(format!("#{anchor}"))
                    .or_insert_with(|| pointer.clone());
            }
        }
        if let Some(id) = text(value, "$id").or_else(|| text(value, "id")) {
            // With the fragment that draft 7 allows for anchors, and without one that is empty.
            let id = id.strip_suffix('#').unwrap_or(id);
            if !id.is_empty() {
                names
                    .entry(id.to_owned())
                    .or_insert_with(|| pointer.clone());
            }
        }
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if is_container(item) {
                        waiting.push((item, format!("{pointer}/{index}")));
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    if is_container(member) && !matches!(name.as_str(), "enum" | "const") {
                        waiting.push((member, pointer_within(&pointer, name)));
                    }
                }
            }
            _ => {}
        }
    }
    names
}

fn is_container(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

impl Schema {
    /// A schema that is a document of its own, such as that of a tool of an MCP server.
    ///
    /// # Errors
    ///
    /// It is no schema, or too large. References are judged when they are followed.
    pub fn new(value: Value, limits: &Limits) -> Result<Self, SchemaError> {
        if !value.is_object() && !value.is_boolean() {
            return Err(SchemaError::NotASchema(crate::json::shown(&value)));
        }
        check_extent(&value, |depth, nodes| {
            limits.schema_depth_max(depth, "the schema")?;
            limits.schema_nodes_max(nodes, "the schema")
        })?;
        let dialect = Dialect::of(&value);
        let value = Arc::new(value);
        let document = Arc::new(Document::new(value.clone(), dialect));
        Ok(Self { value, document })
    }

    /// A schema whose references are looked up in a document.
    pub(crate) fn within(document: &Arc<Document>, value: Value) -> Self {
        Self {
            value: Arc::new(value),
            document: document.clone(),
        }
    }

    /// The schema itself.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Where its references are looked up.
    #[must_use]
    pub fn document(&self) -> &Arc<Document> {
        &self.document
    }

    /// The names of the properties that it has at the top, for search.
    #[must_use]
    pub fn property_names(&self) -> Vec<String> {
        let properties = self.value.get("properties").and_then(Value::as_object);
        properties.map_or_else(Vec::new, |all| all.keys().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(value: Value) -> Schema {
        Schema::new(value, &Limits::default()).unwrap()
    }

    /// Every spelling of a local reference leads where JSON Schema says.
    #[test]
    fn references_are_resolved_in_their_document() {
        let schema = schema(json!({
            "$id": "https://example.com/root",
            "$defs": {
                "a/b": {"const": 1},
                "c~d": {"const": 2},
                "e f%": {"const": 3},
                "named": {"$anchor": "here", "const": 4},
                "other": {"$id": "https://example.com/other", "$defs": {"x": {"const": 5}}},
            },
            "definitions": {"old": {"$id": "#older", "const": 6}},
        }));
        for (reference, expected) in [
            ("#/$defs/a~1b", json!({"const": 1})),
            ("#/$defs/c~0d", json!({"const": 2})),
            ("#/$defs/e%20f%25", json!({"const": 3})),
            ("#here", schema.value()["$defs"]["named"].clone()),
            ("https://example.com/root#/$defs/a~1b", json!({"const": 1})),
            ("https://example.com/other#/$defs/x", json!({"const": 5})),
            ("#older", schema.value()["definitions"]["old"].clone()),
            ("#", schema.value().clone()),
        ] {
            let (_, value) = schema.document().resolve(reference).expect(reference);
            assert_eq!(value, &expected, "{reference}");
        }
    }

    /// Nothing is fetched, and what is not there is named.
    #[test]
    fn references_to_elsewhere_are_refused() {
        let schema = schema(json!({"$defs": {}}));
        for remote in [
            "https://example.com/x",
            "other.json#/a",
            "file:///etc/passwd",
            "//x",
        ] {
            assert_eq!(
                schema.document().resolve(remote).unwrap_err(),
                SchemaError::ReferenceRemote(remote.into())
            );
        }
        for dangling in ["#/$defs/x", "#nowhere", "#/$defs/"] {
            assert_eq!(
                schema.document().resolve(dangling).unwrap_err(),
                SchemaError::ReferenceDangling(dangling.into())
            );
        }
    }

    /// A schema is bounded before anything walks through it.
    #[test]
    fn schemas_are_bounded() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"properties": {"a": deep}});
        }
        let error = Schema::new(deep, &Limits::default()).unwrap_err();
        assert!(error.to_string().contains("schema_depth_max"), "{error}");
        let error = Schema::new(json!([]), &Limits::default()).unwrap_err();
        assert!(matches!(error, SchemaError::NotASchema(_)));
    }

    /// Only what leads to a direction has one, along any number of references and around cycles.
    #[test]
    fn directions_are_found_through_references() {
        let root = json!({"components": {"schemas": {
            "Plain": {"properties": {"a": {"type": "string"}, "self": {"$ref": "#/components/schemas/Plain"}}},
            "Has": {"properties": {"id": {"readOnly": true}}},
            "Far": {"properties": {"near": {"$ref": "#/components/schemas/Near"}}},
            "Near": {"items": {"$ref": "#/components/schemas/Has"}, "x": {"$ref": "#/components/schemas/Far"}},
            "Top": {"$ref": "#/components/schemas/Far"},
            "Other": {"$ref": "#/components/schemas/Plain"},
            "Last": {"$ref": "#/components/schemas/Top"},
        }}});
        let document = Document::new(Arc::new(root), Dialect::OpenApi30);
        for (name, expected) in [
            ("Plain", false),
            ("Has", true),
            ("Far", true),
            ("Near", true),
            ("Top", true),
        ] {
            let pointer = format!("/components/schemas/{name}");
            assert_eq!(document.is_directional(&pointer), expected, "{name}");
        }
    }
}
