//! Between JavaScript's values and JSON, which tools take and give.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use coracle_client::Value;
use coracle_codemode::BYTES_KEY;
use serde_json::{Map, Value as Json};

/// Values in one argument or result. What is shared counts each time that it is met.
pub const NODES_MAX: usize = 1_000_000;

/// As deep as serde_json reads.
const DEPTH_MAX: usize = 120;

/// Why a value has no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// It refers to itself.
    #[error("{0} refers to what it is in")]
    Cycle(String),
    /// It is a function, a stub or a stream.
    #[error("{0} is a function or another object that can't be copied")]
    External(String),
    /// It is nested too deeply.
    #[error("{0} is nested more than {DEPTH_MAX} levels deep")]
    Depth(String),
    /// It is too large.
    #[error("{0} has more than {NODES_MAX} values")]
    Nodes(String),
}

/// The JSON of a value, as `JSON.stringify` has it, and besides: bytes are `{"$bytes": "…"}`, in base64; a bigint is its digits (in base 16 beyond 128 bits); a
/// `Map` is an object if all its keys are strings, or else a list of pairs; a `Set` is a list; an `Error` has its name, its
/// message and its own properties. `name` is what errors call the value.
pub(crate) fn to_json(value: &Value, name: &str) -> Result<Json, ConvertError> {
    let mut shared = Vec::new();
    collect(value, &mut shared);
    let mut writer = Writer {
        root: name,
        shared: &shared,
        open: vec![false; shared.len()],
        next_shared: 0,
        nodes: 0,
        path: Vec::new(),
    };
    writer.write(value)
}

/// The shared values of a tree by number, which is the order in which they are met.
fn collect<'v>(value: &'v Value, shared: &mut Vec<&'v Value>) {
    match value {
        Value::Shared(inner) => {
            shared.push(inner);
            collect(inner, shared);
        }
        Value::Array(items) | Value::Set(items) => items.iter().for_each(|it| collect(it, shared)),
        Value::Object(members) => members.iter().for_each(|(_, it)| collect(it, shared)),
        Value::Map(entries) => {
            for (key, value) in entries {
                collect(key, shared);
                collect(value, shared);
            }
        }
        Value::Error(error) => {
            let inner = error.cause.iter().chain(&error.errors);
            let inner = inner.chain(error.props.iter().map(|(_, value)| value));
            inner.for_each(|it| collect(it, shared));
        }
        Value::Boxed(inner) | Value::Interface(_, inner) => collect(inner, shared),
        _ => {}
    }
}

struct Writer<'v> {
    root: &'v str,
    shared: &'v [&'v Value],
    open: Vec<bool>,
    next_shared: usize,
    nodes: usize,
    path: Vec<String>,
}

impl Writer<'_> {
    fn place(&self) -> String {
        let mut place = self.root.to_owned() + &self.path.concat();
        place.truncate(place.floor_char_boundary(200));
        place
    }

    fn within(&mut self, step: String, value: &Value) -> Result<Json, ConvertError> {
        self.path.push(step);
        let json = self.write(value);
        if json.is_ok() {
            self.path.pop();
        }
        json
    }

    fn write(&mut self, value: &Value) -> Result<Json, ConvertError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(ConvertError::Nodes(self.root.to_owned()));
        }
        if self.path.len() > DEPTH_MAX {
            return Err(ConvertError::Depth(self.place()));
        }
        Ok(match value {
            Value::Undefined | Value::Null | Value::Hole => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => number_of(*number),
            Value::BigInt(number) => match number.to_i128() {
                Some(number) => Json::String(number.to_string()),
                None => {
                    let digits = number.magnitude().iter().map(|byte| format!("{byte:02x}"));
                    let sign = if number.is_negative() { "-" } else { "" };
                    Json::String(format!("{sign}0x{}", digits.collect::<String>()))
                }
            },
            Value::String(text) => Json::String(text.to_string_lossy().into_owned()),
            Value::Array(items) | Value::Set(items) => {
                let mut list = Vec::with_capacity(items.len().min(1_024));
                for (index, item) in items.iter().enumerate() {
                    list.push(self.within(format!("[{index}]"), item)?);
                }
                Json::Array(list)
            }
            Value::Object(members) => self.object(
                members
                    .iter()
                    .map(|(key, value)| (key.to_string_lossy().into_owned(), value)),
            )?,
            Value::Map(entries) => self.map(entries)?,
            Value::Error(error) => {
                let head = [("name", &error.name), ("message", &error.message)];
                let head =
                    head.map(|(key, text)| (key.to_owned(), Json::from(text.to_string_lossy())));
                let own = error.props.iter();
                let own = self
                    .object(own.map(|(key, value)| (key.to_string_lossy().into_owned(), value)))?;
                let mut object: Map<String, Json> = head.into_iter().collect();
                object.extend(own.as_object().cloned().unwrap_or_default());
                Json::Object(object)
            }
            Value::ArrayBuffer(bytes)
            | Value::DataView(bytes)
            | Value::TypedArray { bytes, .. } => {
                let mut object = Map::new();
                object.insert(BYTES_KEY.to_owned(), STANDARD.encode(bytes).into());
                Json::Object(object)
            }
            Value::Boxed(inner) => self.write(inner)?,
            Value::Shared(inner) => {
                let number = self.next_shared;
                self.next_shared += 1;
                self.enter(number, inner)?
            }
            Value::Reference(number) => {
                let number = *number as usize;
                let Some(inner) = self.shared.get(number).copied() else {
                    return Err(ConvertError::Cycle(self.place()));
                };
                // What is shared within it has its numbers already.
                let next = self.next_shared;
                self.next_shared = number + 1;
                let json = self.enter(number, inner)?;
                self.next_shared = next;
                json
            }
            Value::External(_) => return Err(ConvertError::External(self.place())),
            // Dates, patterns and objects of the platform, which have nothing of the program's in them that could be shared.
            Value::Date(_) | Value::RegExp { .. } | Value::Interface(..) => {
                let text = plain(value);
                text.unwrap_or_else(|| Json::Object(Map::new()))
            }
        })
    }

    fn enter(&mut self, number: usize, inner: &Value) -> Result<Json, ConvertError> {
        if std::mem::replace(&mut self.open[number], true) {
            return Err(ConvertError::Cycle(self.place()));
        }
        let json = self.write(inner)?;
        self.open[number] = false;
        Ok(json)
    }

    /// What is undefined is left out.
    fn object<'a>(
        &mut self,
        members: impl Iterator<Item = (String, &'a Value)>,
    ) -> Result<Json, ConvertError> {
        let mut object = Map::new();
        for (key, value) in members {
            if !value.is_undefined() {
                let json = self.within(format!(".{key}"), value)?;
                object.insert(key, json);
            }
        }
        Ok(Json::Object(object))
    }

    fn map(&mut self, entries: &[(Value, Value)]) -> Result<Json, ConvertError> {
        let keys = entries.iter().map(|(key, _)| key.as_text());
        if let Some(keys) = keys.collect::<Option<Vec<_>>>() {
            let keys = keys
                .into_iter()
                .map(|key| key.to_string_lossy().into_owned());
            return self.object(keys.zip(entries.iter().map(|(_, value)| value)));
        }
        let mut list = Vec::new();
        for (index, (key, value)) in entries.iter().enumerate() {
            let key = self.within(format!("[{index}][0]"), key)?;
            let value = self.within(format!("[{index}][1]"), value)?;
            list.push(Json::Array(vec![key, value]));
        }
        Ok(Json::Array(list))
    }
}

fn number_of(number: f64) -> Json {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    if number.fract() == 0.0 && number.abs() <= SAFE {
        return Json::from(number as i64);
    }
    // NaN and the infinities have none.
    serde_json::Number::from_f64(number).map_or(Json::Null, Json::Number)
}

fn plain(value: &Value) -> Option<Json> {
    let text = coracle_value::to_json(value).ok()?;
    serde_json::from_str(&text).ok()
}

/// A value of JSON, as `JSON.parse` makes it.
pub(crate) fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::Array(items.iter().map(from_json).collect()),
        Json::Object(members) => Value::object(
            members
                .iter()
                .map(|(key, value)| (key.as_str(), from_json(value))),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shared(value: Value) -> Value {
        Value::Shared(Box::new(value))
    }

    #[test]
    fn values_become_what_tools_can_read() {
        let date = Value::Date(0.0);
        let table = [
            (Value::Undefined, json!(null)),
            (Value::Number(2.0), json!(2)),
            (Value::Number(0.5), json!(0.5)),
            (Value::Number(f64::NAN), json!(null)),
            (date, json!("1970-01-01T00:00:00.000Z")),
            (Value::uint8_array([1, 2]), json!({"$bytes": "AQI="})),
            (
                Value::object([("a", Value::Undefined), ("b", Value::Null)]),
                json!({"b": null}),
            ),
            (Value::Map(vec![("a".into(), 1.into())]), json!({"a": 1})),
            (Value::Map(vec![(1.into(), 2.into())]), json!([[1, 2]])),
            (Value::Set(vec![1.into()]), json!([1])),
            (
                Value::error("RangeError", "far"),
                json!({"name": "RangeError", "message": "far"}),
            ),
        ];
        for (value, expected) in table {
            assert_eq!(to_json(&value, "input"), Ok(expected), "{value:?}");
        }
    }

    #[test]
    fn what_is_shared_is_written_each_time_and_what_has_no_json_is_named() {
        let twice = Value::array([
            shared(Value::array([shared(Value::array([1]))])),
            Value::Reference(1),
            Value::Reference(0),
        ]);
        assert_eq!(to_json(&twice, "input"), Ok(json!([[[1]], [1], [[1]]])));
        let cycle = Value::object([("a", shared(Value::object([("b", Value::Reference(0))])))]);
        let error = to_json(&cycle, "result").unwrap_err();
        assert_eq!(error, ConvertError::Cycle("result.a.b".into()));
        let stub = Value::array([Value::External(0)]);
        let error = to_json(&stub, "input").unwrap_err();
        assert_eq!(error, ConvertError::External("input[0]".into()));
        // Each level has the one below twice: written out it would have 2^40 values.
        let mut bomb = shared(Value::array([1]));
        for number in (0..40).rev() {
            let _ = number;
            bomb = shared(Value::array([bomb]));
        }
        let mut wide = vec![bomb];
        wide.extend((0..2_000_000).map(|_| Value::Reference(0)));
        let error = to_json(&Value::Array(wide), "input").unwrap_err();
        assert_eq!(error, ConvertError::Nodes("input".into()));
        let mut deep = Value::Null;
        for _ in 0..200 {
            deep = Value::Array(vec![deep]);
        }
        assert!(matches!(
            to_json(&deep, "input"),
            Err(ConvertError::Depth(_))
        ));
    }
}
