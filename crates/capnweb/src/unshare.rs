//! Values without identity: the protocol has none, so each place where an object is met again gets a copy of it.

use crate::{error::ConvertError, limits::Limits};
use coracle_value::{ErrorValue, Text, Value};
use std::collections::HashMap;

/// The same value without marks of sharing. An object that contains itself is refused; so is what would be too large.
///
/// Recurses, but never deeper than `depth_max`.
pub(crate) fn unshare(value: Value, limits: &Limits) -> Result<Value, ConvertError> {
    let shared = shared_objects(&value);
    if shared.is_empty() {
        return Ok(value);
    }
    let mut copy = Copy {
        open: vec![false; shared.len()],
        numbers: shared
            .iter()
            .copied()
            .map(std::ptr::from_ref)
            .zip(0..)
            .collect(),
        shared,
        members: 0,
        bytes: 0,
        limits,
        depth: 0,
    };
    copy.value(&value, &mut String::from("$"))
}

/// The shared objects by their numbers: as their marks come, an outer one before those inside.
fn shared_objects(root: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        match value {
            Value::Shared(inside) => {
                found.push(&**inside);
                pending.push(inside);
            }
            Value::Array(members) | Value::Set(members) => pending.extend(members.iter().rev()),
            Value::Object(properties) => {
                pending.extend(properties.iter().rev().map(|(_, value)| value));
            }
            Value::Map(entries) => {
                pending.extend(entries.iter().rev().flat_map(|(key, value)| [value, key]));
            }
            Value::Error(error) => {
                pending.extend(error.props.iter().rev().map(|(_, value)| value));
                pending.extend(&error.errors);
                pending.extend(&error.cause);
            }
            Value::Interface(_, inside) | Value::Boxed(inside) => pending.push(inside),
            _ => {}
        }
    }
    found
}

struct Copy<'v, 'l> {
    shared: Vec<&'v Value>,
    /// Which of them are being copied.
    open: Vec<bool>,
    /// Their numbers by their addresses.
    numbers: HashMap<*const Value, usize>,
    members: usize,
    /// Bytes of texts and buffers, those of copies included.
    bytes: usize,
    depth: usize,
    limits: &'l Limits,
}

impl<'v> Copy<'v, '_> {
    fn value(&mut self, value: &'v Value, at: &mut String) -> Result<Value, ConvertError> {
        let Limits { members_max, .. } = *self.limits;
        let depth_max = self.limits.value_depth();
        self.members += 1;
        if self.members > members_max {
            return Err(ConvertError::MembersExceeded { members_max });
        }
        // Marks and web objects count too, so that nothing nests without being counted.
        if self.depth > 2 * depth_max {
            return Err(ConvertError::DepthExceeded { depth_max });
        }
        self.depth += 1;
        let copied = self.inside(value, at);
        self.depth -= 1;
        copied
    }

    fn inside(&mut self, value: &'v Value, at: &mut String) -> Result<Value, ConvertError> {
        Ok(match value {
            Value::Shared(inside) => {
                let number = self.numbers[&std::ptr::from_ref(&**inside)];
                self.shared_at(number, inside, at)?
            }
            Value::Reference(number) => {
                let number = *number as usize;
                let Some(inside) = self.shared.get(number).copied() else {
                    return Ok(Value::Undefined);
                };
                self.shared_at(number, inside, at)?
            }
            Value::Array(members) => Value::Array(self.members(members, at)?),
            Value::Set(members) => Value::Set(self.members(members, at)?),
            Value::Object(properties) => Value::Object(self.properties(properties, at)?),
            Value::Map(entries) => {
                let copies = entries
                    .iter()
                    .map(|(key, value)| Ok((self.value(key, at)?, self.value(value, at)?)));
                Value::Map(copies.collect::<Result<_, ConvertError>>()?)
            }
            Value::Error(error) => Value::Error(Box::new(ErrorValue {
                name: error.name.clone(),
                message: error.message.clone(),
                stack: error.stack.clone(),
                cause: self.field(error.cause.as_ref(), at, "cause")?,
                errors: self.field(error.errors.as_ref(), at, "errors")?,
                props: self.properties(&error.props, at)?,
            })),
            Value::Interface(interface, inside) => {
                Value::Interface(*interface, Box::new(self.value(inside, at)?))
            }
            leaf => {
                let text = leaf.as_text().map_or(0, |text| text.as_bytes().len());
                self.bytes += leaf.as_bytes().map_or(text, <[u8]>::len);
                let bytes_max = self.limits.message_bytes_max;
                if self.bytes > bytes_max {
                    return Err(ConvertError::BytesExceeded { bytes_max });
                }
                leaf.clone()
            }
        })
    }

    fn shared_at(
        &mut self,
        number: usize,
        inside: &'v Value,
        at: &mut String,
    ) -> Result<Value, ConvertError> {
        if std::mem::replace(&mut self.open[number], true) {
            return Err(ConvertError::CycleFound { at: at.clone() });
        }
        let copied = self.value(inside, at);
        self.open[number] = false;
        copied
    }

    fn members(
        &mut self,
        members: &'v [Value],
        at: &mut String,
    ) -> Result<Vec<Value>, ConvertError> {
        let length = at.len();
        let copies = members.iter().enumerate().map(|(index, member)| {
            at.push_str(&format!("[{index}]"));
            let copied = self.value(member, at);
            at.truncate(length);
            copied
        });
        copies.collect()
    }

    fn properties(
        &mut self,
        properties: &'v [(Text, Value)],
        at: &mut String,
    ) -> Result<Vec<(Text, Value)>, ConvertError> {
        let length = at.len();
        let copies = properties.iter().map(|(key, value)| {
            at.push('.');
            at.push_str(&key.to_string_lossy());
            let copied = self.value(value, at);
            at.truncate(length);
            Ok((key.clone(), copied?))
        });
        copies.collect()
    }

    fn field(
        &mut self,
        field: Option<&'v Value>,
        at: &mut String,
        name: &str,
    ) -> Result<Option<Value>, ConvertError> {
        let length = at.len();
        at.push('.');
        at.push_str(name);
        let copied = field.map(|value| self.value(value, at)).transpose();
        at.truncate(length);
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(value: Value) -> Value {
        Value::Shared(Box::new(value))
    }

    #[test]
    fn an_object_in_two_places_becomes_two() {
        let value = Value::array([
            shared(Value::object([("a", shared(Value::Array(vec![])))])),
            Value::Reference(1),
            Value::Reference(0),
        ]);
        let inner = || Value::Array(vec![]);
        let outer = || Value::object([("a", inner())]);
        let expected = Value::array([outer(), inner(), outer()]);
        assert_eq!(unshare(value, &Limits::default()), Ok(expected));
    }

    #[test]
    fn an_object_in_itself_is_refused_with_its_place() {
        let value = Value::object([("me", shared(Value::object([("self", Value::Reference(0))])))]);
        let error = ConvertError::CycleFound {
            at: "$.me.self".into(),
        };
        assert_eq!(unshare(value, &Limits::default()), Err(error));
    }

    /// Copies of copies double with each level: the count stops them, not the memory.
    #[test]
    fn copies_of_copies_are_counted() {
        let mut members = vec![shared(Value::Array(vec![]))];
        for number in 0..40 {
            members.push(shared(Value::array([
                Value::Reference(number),
                Value::Reference(number),
            ])));
        }
        let limits = Limits {
            members_max: 1_000,
            ..Limits::default()
        };
        let error = ConvertError::MembersExceeded { members_max: 1_000 };
        assert_eq!(unshare(Value::Array(members), &limits), Err(error));
    }
}
