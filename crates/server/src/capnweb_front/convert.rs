//! Between the protocol's payloads and the session's. Everything read here comes from a stranger.

use super::{client::Client, object::Object, rejection::Rejection};
use crate::{
    outcome::{THROWN_TEXT_BYTES_MAX, THROWN_VALUE_BYTES_MAX},
    router::Payload,
};
use coracle_capnweb::{Capability, Limits, Payload as WebPayload};
use coracle_isolate::{Form, Thrown};
use coracle_value::{Bounds, Text, Value, decode, encode, from_json};
use std::rc::Rc;

/// The properties of errors that are the server's word.
const RESERVED: [&str; 2] = ["verdict", "refusal"];

/// Arguments, one by one, and what they refer to.
pub(super) struct Arguments {
    values: Vec<Value>,
    pub(super) externals: Vec<Capability<Object>>,
}

impl Arguments {
    pub(super) fn read(payload: WebPayload<Object>) -> Result<Self, Rejection> {
        let WebPayload { bytes, externals } = payload;
        let value = read(&bytes, externals.len())?;
        let values = match value {
            Value::Array(values) => values,
            _ => Vec::new(),
        };
        Ok(Self { values, externals })
    }

    /// A value by itself, and what it refers to.
    pub(super) fn of_value(payload: WebPayload<Object>) -> Result<(Self, Value), Rejection> {
        let WebPayload { bytes, externals } = payload;
        let value = read(&bytes, externals.len())?;
        let values = Vec::new();
        Ok((Self { values, externals }, value))
    }

    /// Takes the argument at this place out; `undefined` where there is none.
    pub(super) fn take(&mut self, index: usize) -> Value {
        self.values
            .get_mut(index)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// The capability that a value is.
    pub(super) fn capability(&self, value: &Value) -> Option<Capability<Object>> {
        match value {
            Value::External(index) => self.externals.get(*index as usize).cloned(),
            _ => None,
        }
    }

    /// A value as one by itself: its bytes, and what it refers to.
    pub(super) fn part(&self, mut value: Value) -> (Vec<u8>, Vec<Capability<Object>>) {
        let mut externals = Vec::new();
        renumber(&mut value, &mut |index| {
            externals.extend(self.externals.get(index as usize).cloned());
            externals.len() as u32 - 1
        });
        (bytes_of(&value), externals)
    }
}

/// What a worker says may be a third of a gibibyte as a tree; what could not be sent anyway does not become one.
pub(super) fn read(bytes: &[u8], externals: usize) -> Result<Value, Rejection> {
    if bytes.is_empty() {
        return Ok(Value::Undefined);
    }
    let externals = u32::try_from(externals).unwrap_or(u32::MAX);
    Limits::default()
        .check_members(bytes, externals)
        .map_err(|error| Rejection::type_error(error.to_string()))?;
    let bounds = Bounds {
        externals,
        ..Bounds::default()
    };
    decode(bytes, &bounds).map_err(|error| Rejection::type_error(error.to_string()))
}

fn bytes_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Undefined => Vec::new(),
        value => encode(value),
    }
}

/// Gives every external of a value another number.
fn renumber(root: &mut Value, number: &mut impl FnMut(u32) -> u32) {
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        match value {
            Value::External(index) => *index = number(*index),
            Value::Array(members) | Value::Set(members) => pending.extend(members.iter_mut()),
            Value::Object(properties) => {
                pending.extend(properties.iter_mut().map(|(_, member)| member));
            }
            Value::Map(entries) => {
                pending.extend(entries.iter_mut().flat_map(|(key, value)| [key, value]));
            }
            Value::Error(error) => {
                pending.extend(error.props.iter_mut().map(|(_, member)| member));
                pending.extend(error.cause.iter_mut().chain(&mut error.errors));
            }
            Value::Boxed(inside) | Value::Shared(inside) | Value::Interface(_, inside) => {
                pending.push(inside);
            }
            _ => {}
        }
    }
}

/// What a client passes to a worker.
pub(super) fn payload(client: &Client, payload: WebPayload<Object>) -> Result<Payload, Rejection> {
    let WebPayload { bytes, externals } = payload;
    let externals = externals
        .into_iter()
        .map(|capability| client.address(capability))
        .collect::<Result<_, _>>()?;
    Ok(Payload {
        form: form_of(&bytes),
        bytes,
        externals,
    })
}

fn form_of(bytes: &[u8]) -> Form {
    match bytes.is_empty() {
        true => Form::Undefined,
        false => Form::Cbor,
    }
}

/// What a worker passes to a client.
pub(super) fn web_payload(
    client: &Rc<Client>,
    payload: Payload,
) -> Result<WebPayload<Object>, Rejection> {
    let externals = payload
        .externals
        .into_iter()
        .map(|address| client.offer(address))
        .collect::<Result<_, _>>()?;
    Ok(WebPayload {
        bytes: cbor(payload.form, payload.bytes)?,
        externals,
    })
}

/// A value in CBOR, whichever form it has.
pub(super) fn cbor(form: Form, bytes: Vec<u8>) -> Result<Vec<u8>, Rejection> {
    match form {
        Form::Undefined => Ok(Vec::new()),
        Form::Cbor => Ok(bytes),
        Form::Json => {
            let value = from_json(&String::from_utf8_lossy(&bytes), &Bounds::default())
                .map_err(|error| Rejection::type_error(error.to_string()))?;
            Ok(encode(&value))
        }
    }
}

/// What a client's object threw. Texts that are too long are cut, and a value that is too large is left out, as is one that
/// refers to something.
pub(super) fn thrown_by_client(payload: &WebPayload<Object>) -> Thrown {
    let value = read(&payload.bytes, payload.externals.len()).unwrap_or_default();
    let (name, message) = match value.as_error() {
        Some(error) => (
            error.name.to_string_lossy().into_owned(),
            error.message.to_string_lossy().into_owned(),
        ),
        None => (
            "Error".to_owned(),
            value.as_text().map_or_else(
                || "the client's object threw what is no Error".to_owned(),
                |text| text.to_string_lossy().into_owned(),
            ),
        ),
    };
    let is_small = payload.externals.is_empty() && payload.bytes.len() <= THROWN_VALUE_BYTES_MAX;
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(THROWN_TEXT_BYTES_MAX));
        text
    };
    Thrown {
        name: cut(name),
        message: cut(message),
        value: match is_small {
            true => payload.bytes.clone(),
            false => Vec::new(),
        },
        ..Thrown::default()
    }
}

/// What a worker threw, as a client is given it: with the stack, marked as remote, and without what is the server's to say.
pub(super) fn thrown_by_worker(thrown: &Thrown) -> Value {
    let value = match thrown.value.is_empty() {
        true => None,
        false => decode(&thrown.value, &Bounds::default()).ok(),
    };
    let mut value = value.unwrap_or_else(|| Value::error(&thrown.name[..], &thrown.message[..]));
    let inside = match &mut value {
        Value::Shared(inside) => inside,
        whole => whole,
    };
    let is_ours = |name: &Text| RESERVED.iter().any(|ours| *name == *ours);
    if let Value::Object(members) = inside {
        members.retain(|(name, _)| !is_ours(name));
    }
    if let Value::Error(error) = inside {
        if !thrown.stack.is_empty() {
            let stack = format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack);
            error.stack = Some(stack.into());
        }
        error
            .props
            .retain(|(name, _)| *name != "remote" && !is_ours(name));
        error.props.push(("remote".into(), true.into()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_value::ErrorValue;

    /// A worker can't pretend that it was stopped, nor that the server has refused something.
    #[test]
    fn what_a_worker_throws_carries_no_word_of_the_servers() {
        let mut error = ErrorValue::new("RangeError", "no");
        for name in ["verdict", "code", "refusal"] {
            error.props.push((name.into(), 7.into()));
        }
        let thrown = Thrown {
            name: "RangeError".into(),
            message: "no".into(),
            value: encode(&Value::Error(Box::new(error))),
            ..Thrown::default()
        };
        let told = thrown_by_worker(&thrown);
        let told = told.as_error().expect("an error");
        let names: Vec<_> = told
            .props
            .iter()
            .map(|(name, _)| name.to_string_lossy())
            .collect();
        assert_eq!(names, ["code", "remote"]);
        let object = Value::object([
            ("verdict", Value::object([("kind", Value::from("fuel"))])),
            ("usage", Value::object([("fuelRun", Value::from(1))])),
            ("mine", 7.into()),
        ]);
        let thrown = Thrown {
            value: encode(&object),
            ..Thrown::default()
        };
        let told = thrown_by_worker(&thrown);
        assert!(told.get("verdict").is_none(), "{told:?}");
        assert_eq!(told.get("mine"), Some(&Value::from(7)));
    }

    /// A tree of a worker's result is not made where it would be refused.
    #[test]
    fn too_many_members_are_counted_before_a_tree_is_made() {
        let bytes = encode(&Value::Array(vec![Value::Null; 300_000]));
        let refused = read(&bytes, 0).expect_err("it has too many");
        assert!(
            format!("{refused:?}").contains("members_max"),
            "{refused:?}"
        );
        assert!(read(&encode(&Value::Array(vec![Value::Null; 1_000])), 0).is_ok());
    }

    #[test]
    fn a_part_has_a_table_of_its_own() {
        let mut value = Value::object([
            ("a", Value::External(4)),
            ("b", Value::array([Value::External(1)])),
        ]);
        let mut seen = Vec::new();
        renumber(&mut value, &mut |index| {
            seen.push(index);
            seen.len() as u32 - 1
        });
        seen.sort_unstable();
        assert_eq!(seen, [1, 4]);
        let mut used = Vec::new();
        renumber(&mut value, &mut |index| {
            used.push(index);
            index
        });
        used.sort_unstable();
        assert_eq!(used, [0, 1]);
    }
}
