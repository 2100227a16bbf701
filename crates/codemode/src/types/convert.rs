//! JSON Schemas to types.
//!
//! A schema says several things that must all hold, so its type is the intersection of what each says. What is referred to
//! becomes a named type, made once and only to a certain distance; a [`Converter`] keeps those of one namespace.

mod containers;
mod keywords;

pub(crate) use keywords::{is_bytes, is_of_type};

use super::{
    doc::{Doc, Words},
    model::{Member, ObjectType, Type},
};
use crate::{
    Dialect, Document, Limits, Schema,
    json::{Object, is_true, pointer_end, quoted, text},
};
use keywords::{bytes, find_property, implied_types, literal, pascal_case, schemas, types_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many references are followed to find what a required property is.
const LOOKS: usize = 8;
/// Names that mean something else to TypeScript, or to what is written here.
const NAMES_TAKEN: &[&str] = &["Promise", "Uint8Array", "Type"];

/// Whether a value is sent or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Input,
    Output,
}

/// How much is said, from all to little.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// Of tools.
    pub(crate) tool_words: Words,
    /// Of everything else.
    pub(crate) words: Words,
    /// Values of an enumeration.
    pub(crate) enum_values: usize,
    /// How many references away types are still made.
    pub(crate) distance: usize,
    /// How many levels of objects and arrays are shown of each.
    pub(crate) nesting: usize,
    /// Whether results have types.
    pub(crate) has_outputs: bool,
}

/// A named type.
pub(crate) struct Alias<'a> {
    pub(crate) name: String,
    pub(crate) doc: Doc,
    /// None until it is made.
    pub(crate) body: Option<Type>,
    schema: &'a Value,
    place: Place,
    /// The named types that it is made of without an object or array between, which must not lead back to it.
    made_of: BTreeSet<usize>,
}

/// Where a schema stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    document: usize,
    direction: Direction,
    /// How many references lead here.
    distance: usize,
    /// How many objects and arrays of this declaration are around it.
    nesting: usize,
    /// The named type that is made of it, if nothing is between.
    alias: Option<usize>,
}

struct KnownDocument<'a> {
    document: &'a Document,
    /// The first document whose definitions are the same: tools of one server repeat them.
    same_definitions_as: usize,
    /// What the whole is called, where a reference leads there.
    name: String,
}

/// Makes the types of one namespace.
pub(crate) struct Converter<'a> {
    limits: &'a Limits,
    pub(crate) detail: Detail,
    documents: Vec<KnownDocument<'a>>,
    pub(crate) aliases: Vec<Alias<'a>>,
    by_key: BTreeMap<(usize, String, Option<Direction>), usize>,
    names: BTreeSet<String>,
    /// Whether types or values were left out.
    pub(crate) is_cut: bool,
    made: usize,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(detail: Detail, limits: &'a Limits) -> Self {
        Self {
            limits,
            detail,
            documents: Vec::new(),
            aliases: Vec::new(),
            by_key: BTreeMap::new(),
            names: NAMES_TAKEN.iter().map(|name| (*name).to_owned()).collect(),
            is_cut: false,
            made: 0,
        }
    }

    /// The type of a tool's input or output. What it refers to is made by [`Self::make_next`].
    pub(crate) fn of_schema(
        &mut self,
        schema: &'a Schema,
        direction: Direction,
        tool: &str,
    ) -> Type {
        let place = Place {
            document: self.know(schema.document(), direction, tool),
            direction,
            distance: 0,
            nesting: 0,
            alias: None,
        };
        self.convert(schema.value(), place, None)
    }

    /// Makes the next named type; false where all are made.
    pub(crate) fn make_next(&mut self) -> bool {
        let Some(alias) = self.aliases.get(self.made) else {
            return false;
        };
        let (schema, place) = (alias.schema, alias.place);
        let body = self.convert(schema, place, None);
        let doc = Doc::of_schema(schema, self.detail.words, self.limits.description_chars_max);
        let alias = &mut self.aliases[self.made];
        alias.body = Some(body);
        alias.doc = doc;
        self.made += 1;
        true
    }

    fn know(&mut self, document: &'a Document, direction: Direction, tool: &str) -> usize {
        let is_known = |known: &KnownDocument<'_>| std::ptr::eq(known.document, document);
        if let Some(index) = self.documents.iter().position(is_known) {
            return index;
        }
        let index = self.documents.len();
        fn definitions(document: &Document) -> [Option<&Value>; 2] {
            ["$defs", "definitions"].map(|name| document.root().get(name))
        }
        let own = definitions(document);
        let same = self
            .documents
            .iter()
            .position(|known| definitions(known.document) == own);
        let direction = match direction {
            Direction::Input => "input",
            Direction::Output => "output",
        };
        self.documents.push(KnownDocument {
            document,
            same_definitions_as: same.unwrap_or(index),
            name: pascal_case(&format!("{tool} {direction}")),
        });
        index
    }

    fn doc(&self, schema: &Value) -> Doc {
        Doc::of_schema(schema, self.detail.words, self.limits.description_chars_max)
    }

    fn dialect(&self, place: Place) -> Dialect {
        self.documents[place.document].document.dialect()
    }

    /// The type of a schema. `around` is the schema that has it as an alternative or as a part.
    fn convert(&mut self, schema: &'a Value, place: Place, around: Option<&'a Value>) -> Type {
        let Value::Object(keywords) = schema else {
            return match schema {
                Value::Bool(false) => Type::Never,
                _ => Type::Unknown,
            };
        };
        if place.nesting > self.detail.nesting {
            self.is_cut = true;
            return Type::Unknown;
        }
        let converted = self.convert_keywords(schema, keywords, place, around);
        if is_true(schema, "nullable") || is_true(schema, "x-nullable") {
            return Type::union([converted, Type::atom("null")]);
        }
        converted
    }

    fn convert_keywords(
        &mut self,
        schema: &'a Value,
        keywords: &'a Object,
        place: Place,
        around: Option<&'a Value>,
    ) -> Type {
        let mut parts = Vec::new();
        let reference = text(schema, "$ref").or_else(|| text(schema, "$dynamicRef"));
        if let Some(reference) = reference {
            let referred = self.refer(reference, place);
            if !self.dialect(place).has_siblings_of_references() {
                return referred;
            }
            parts.push(referred);
        }
        // Nothing says more than the values themselves.
        if let Some(value) = keywords.get("const") {
            return literal(value);
        }
        if let Some(Value::Array(values)) = keywords.get("enum") {
            return self.enumeration(values, keywords);
        }
        let around_parts = Some(schema);
        for part in schemas(keywords, "allOf") {
            parts.push(self.convert(part, place, around_parts.or(around)));
        }
        for keyword in ["anyOf", "oneOf"] {
            if keywords.contains_key(keyword) {
                let mut alternatives = Vec::new();
                for alternative in schemas(keywords, keyword) {
                    let one = self.convert(alternative, place, around_parts);
                    let discriminated = self.discriminated(keywords, alternative, place);
                    alternatives.push(Type::intersection([one, discriminated]));
                }
                parts.push(Type::union(alternatives));
            }
        }
        if let (Some(then), Some(otherwise)) = (keywords.get("then"), keywords.get("else"))
            && keywords.contains_key("if")
        {
            let either = [then, otherwise].map(|one| self.convert(one, place, around_parts));
            parts.push(Type::union(either));
        }
        let excludes_all = match keywords.get("not") {
            Some(Value::Object(not)) => not.is_empty(),
            Some(Value::Bool(not)) => *not,
            _ => false,
        };
        if excludes_all {
            return Type::Never;
        }
        let own = self.own_type(schema, keywords, place, around, !parts.is_empty());
        Type::intersection([own].into_iter().chain(parts))
    }

    /// The type that a reference means: a name.
    fn refer(&mut self, reference: &str, place: Place) -> Type {
        let known = &self.documents[place.document];
        let document = known.document;
        let Ok((pointer, schema)) = document.resolve(reference) else {
            return Type::Unknown;
        };
        let is_whole_api = pointer.is_empty() && document.dialect().has_directions();
        if !schema.is_object() || is_whole_api {
            return match schema {
                Value::Bool(false) => Type::Never,
                _ => Type::Unknown,
            };
        }
        let is_shared = pointer.starts_with("/$defs/") || pointer.starts_with("/definitions/");
        let owner = if is_shared {
            known.same_definitions_as
        } else {
            place.document
        };
        let direction = document.is_directional(&pointer).then_some(place.direction);
        let whole_name = known.name.clone();
        let key = (owner, pointer, direction);
        let alias = match self.by_key.get(&key) {
            Some(alias) => *alias,
            None => {
                if place.distance >= self.detail.distance
                    || self.aliases.len() >= self.limits.types_references_max
                {
                    self.is_cut = true;
                    return Type::Unknown;
                }
                let mut name = match key.1.as_str() {
                    "" => whole_name,
                    pointer => pascal_case(&pointer_end(pointer)),
                };
                if direction == Some(Direction::Input) {
                    name.push_str("Input");
                }
                let name = self.name(name);
                let alias = self.aliases.len();
                self.aliases.push(Alias {
                    name,
                    doc: Doc::default(),
                    body: None,
                    schema,
                    place: Place {
                        distance: place.distance + 1,
                        nesting: 0,
                        alias: Some(alias),
                        ..place
                    },
                    made_of: BTreeSet::new(),
                });
                self.by_key.insert(key, alias);
                alias
            }
        };
        if let Some(from) = place.alias {
            // A type that is made of nothing but itself is none to TypeScript, and says nothing.
            if self.leads_to(alias, from) {
                return Type::Unknown;
            }
            self.aliases[from].made_of.insert(alias);
        }
        Type::Atom(self.aliases[alias].name.clone())
    }

    fn leads_to(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(alias) = waiting.pop() {
            if alias == to {
                return true;
            }
            if seen.insert(alias) {
                waiting.extend(&self.aliases[alias].made_of);
            }
        }
        false
    }

    /// A name that no other type of the namespace has.
    fn name(&mut self, wanted: String) -> String {
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }

    fn enumeration(&mut self, values: &[Value], keywords: &Object) -> Type {
        let types = types_of(keywords);
        let fitting: Vec<_> = values
            .iter()
            .filter(|value| types.is_empty() || types.iter().any(|kind| is_of_type(value, kind)))
            .collect();
        let (shown, others) = fitting.split_at(fitting.len().min(self.detail.enum_values));
        self.is_cut |= !others.is_empty();
        let others = others.iter().map(|value| match value {
            Value::String(_) => Type::atom("string"),
            Value::Number(_) => Type::atom("number"),
            Value::Bool(_) => Type::atom("boolean"),
            Value::Null => Type::atom("null"),
            Value::Array(_) | Value::Object(_) => Type::Unknown,
        });
        Type::union(shown.iter().map(|value| literal(value)).chain(others))
    }

    /// What tells an alternative of an OpenAPI document from the others: its value of the discriminating property.
    fn discriminated(&self, keywords: &Object, alternative: &Value, place: Place) -> Type {
        let discriminator = keywords.get("discriminator");
        let property = discriminator.and_then(|discriminator| text(discriminator, "propertyName"));
        let (Some(property), Some(reference)) = (property, text(alternative, "$ref")) else {
            return Type::Unknown;
        };
        let document = self.documents[place.document].document;
        let Ok((pointer, schema)) = document.resolve(reference) else {
            return Type::Unknown;
        };
        let own = find_property(document, schema, property, LOOKS);
        if own.is_some_and(|own| own.get("const").is_some() || own.get("enum").is_some()) {
            return Type::Unknown;
        }
        let name = pointer_end(&pointer);
        let mapping = discriminator.and_then(|discriminator| discriminator.get("mapping"));
        let mapped = mapping.and_then(Value::as_object).into_iter().flatten();
        let is_this = |to: &Value| {
            let to = to.as_str().unwrap_or_default();
            to == name || document.resolve(to).is_ok_and(|(to, _)| to == pointer)
        };
        let mut values: Vec<_> = mapped
            .filter(|(_, to)| is_this(to))
            .map(|(value, _)| Type::Atom(quoted(value)))
            .collect();
        if values.is_empty() {
            values.push(Type::Atom(quoted(&name)));
        }
        Type::Object(ObjectType {
            members: vec![Member {
                name: property.to_owned(),
                is_optional: false,
                value: Type::union(values),
                doc: Doc::default(),
            }],
            index: None,
        })
    }

    /// What a schema says of the value itself, references and combinations aside.
    fn own_type(
        &mut self,
        schema: &'a Value,
        keywords: &'a Object,
        place: Place,
        around: Option<&'a Value>,
        is_composed: bool,
    ) -> Type {
        let mut kinds = types_of(keywords);
        if kinds.is_empty() {
            kinds = implied_types(keywords);
        }
        if kinds.is_empty() {
            return Type::Unknown;
        }
        let mut types = Vec::new();
        for kind in &kinds {
            types.push(match *kind {
                "object" => self.object(schema, keywords, place, around, is_composed),
                "array" => self.array(keywords, place, is_composed),
                "string" if is_bytes(keywords, self.dialect(place)) => bytes(place.direction),
                "file" => bytes(place.direction),
                "string" | "boolean" | "null" => Type::atom(kind),
                "number" | "integer" => Type::atom("number"),
                _ => Type::Unknown,
            });
        }
        Type::union(types)
    }
}
