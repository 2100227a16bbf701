//! The types of arrays and objects.

use super::{
    Converter, Direction, LOOKS, Place,
    keywords::{find_property, is_hidden},
};
use crate::{
    json::Object,
    types::{
        doc::{Doc, Words},
        model::{Index, Member, ObjectType, Tuple, Type},
    },
};
use serde_json::Value;

/// Of how many types a type of all other members is made before it is `unknown`.
const INDEX_TYPES: usize = 6;

impl<'a> Converter<'a> {
    pub(super) fn array(&mut self, keywords: &'a Object, place: Place, is_composed: bool) -> Type {
        let within = Place {
            nesting: place.nesting + 1,
            alias: None,
            ..place
        };
        let (elements, rest) = match (keywords.get("prefixItems"), keywords.get("items")) {
            (Some(Value::Array(elements)), rest) => (elements, rest),
            (_, Some(Value::Array(elements))) => (elements, keywords.get("additionalItems")),
            (_, Some(Value::Bool(false))) => {
                return Type::Tuple(Tuple {
                    required: Vec::new(),
                    optional: Vec::new(),
                    rest: None,
                });
            }
            (_, Some(items)) => return Type::array(self.convert(items, within, None)),
            (_, None) if is_composed => return Type::Unknown,
            (_, None) => return Type::array(Type::Unknown),
        };
        let count = |keyword| {
            let count = keywords.get(keyword).and_then(Value::as_u64);
            count.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let at_most = count("maxItems").unwrap_or(usize::MAX);
        let elements = &elements[..elements.len().min(at_most)];
        // Without a word on it, whoever lists elements means that they are there, and no others.
        let required_count = count("minItems").unwrap_or(usize::MAX).min(elements.len());
        let rest = rest.filter(|rest| **rest != Value::Bool(false) && at_most > elements.len());
        let mut all = Vec::new();
        for element in elements {
            all.push(self.convert(element, within, None));
        }
        let optional = all.split_off(required_count);
        Type::Tuple(Tuple {
            required: all,
            optional,
            rest: rest.map(|rest| Box::new(self.convert(rest, within, None))),
        })
    }

    pub(super) fn object(
        &mut self,
        schema: &'a Value,
        keywords: &'a Object,
        place: Place,
        around: Option<&'a Value>,
        is_composed: bool,
    ) -> Type {
        let within = Place {
            nesting: place.nesting + 1,
            alias: None,
            ..place
        };
        let document = self.documents[place.document].document;
        let required: Vec<&str> = keywords
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |all| {
                all.iter().filter_map(Value::as_str).collect()
            });
        let hidden = match place.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        };
        let is_hidden = |property: &Value| {
            document.dialect().has_directions() && is_hidden(document, property, hidden)
        };
        let mut members = Vec::new();
        let properties = keywords.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if is_hidden(property) {
                continue;
            }
            members.push(Member {
                name: name.clone(),
                is_optional: !required.contains(&name.as_str()),
                value: self.convert(property, within, None),
                doc: self.doc(property),
            });
        }
        for name in &required {
            let is_there = properties.is_some_and(|all| all.contains_key(*name));
            if is_there || members.iter().any(|member| member.name == *name) {
                continue;
            }
            // Alternatives say which properties they require of those that stand around them.
            let elsewhere = find_property(document, schema, name, LOOKS)
                .or_else(|| find_property(document, around?, name, LOOKS));
            if elsewhere.is_some_and(is_hidden) {
                continue;
            }
            let value = elsewhere.or_else(|| keywords.get("additionalProperties"));
            members.push(Member {
                name: (*name).to_owned(),
                is_optional: false,
                value: value.map_or(Type::Unknown, |value| self.convert(value, within, None)),
                doc: Doc::default(),
            });
        }
        if self.has_named_others(keywords, &mut members, within) {
            return Type::Object(ObjectType {
                members,
                index: None,
            });
        }
        let index = self.index(keywords, &members, within, is_composed);
        if members.is_empty() && index.is_none() && is_composed {
            return Type::Unknown;
        }
        Type::Object(ObjectType { members, index })
    }

    /// Adds the members that `propertyNames` enumerates, where that says all names.
    fn has_named_others(
        &mut self,
        keywords: &'a Object,
        members: &mut Vec<Member>,
        within: Place,
    ) -> bool {
        let names = keywords
            .get("propertyNames")
            .and_then(|names| names.get("enum"))
            .and_then(Value::as_array);
        let Some(names) = names else {
            return false;
        };
        let value = match keywords.get("additionalProperties") {
            None => Type::Unknown,
            Some(value) => self.convert(value, within, None),
        };
        for name in names.iter().filter_map(Value::as_str) {
            if value != Type::Never && members.iter().all(|member| member.name != name) {
                members.push(Member {
                    name: name.to_owned(),
                    is_optional: true,
                    value: value.clone(),
                    doc: Doc::default(),
                });
            }
        }
        true
    }

    /// What the members are that are not named.
    fn index(
        &mut self,
        keywords: &'a Object,
        members: &[Member],
        within: Place,
        is_composed: bool,
    ) -> Option<Index> {
        let others = keywords
            .get("additionalProperties")
            .or_else(|| keywords.get("unevaluatedProperties"));
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        let patterns: Vec<_> = patterns.into_iter().flatten().collect();
        let mut doc = Doc::default();
        let mut types = Vec::new();
        for (pattern, value) in &patterns {
            if self.detail.words == Words::All {
                doc.tag("pattern", pattern);
            }
            types.push(self.convert(value, within, None));
        }
        match others {
            Some(Value::Bool(false)) if types.is_empty() => {
                let says_nothing = !members.is_empty() || is_composed;
                return (!says_nothing).then(|| Index {
                    doc,
                    value: Box::new(Type::Never),
                });
            }
            // Most objects do not say that they have no others, and mean it.
            None if types.is_empty() && (!members.is_empty() || is_composed) => return None,
            None if keywords.contains_key("properties") && types.is_empty() => return None,
            None if types.is_empty() => types.push(Type::Unknown),
            None | Some(Value::Bool(false)) => {}
            Some(others) => types.push(self.convert(others, within, None)),
        }
        // What all have in common has to include what the named ones are.
        types.extend(members.iter().map(|member| member.value.clone()));
        if members.iter().any(|member| member.is_optional) {
            types.push(Type::atom("undefined"));
        }
        let value = match Type::union(types) {
            Type::Union(types) if types.len() > INDEX_TYPES && !members.is_empty() => Type::Unknown,
            other => other,
        };
        Some(Index {
            doc,
            value: Box::new(value),
        })
    }
}
