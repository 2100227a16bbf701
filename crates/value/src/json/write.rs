//! A value to JSON text, as `JSON.stringify` writes it.
//!
//! Does not recurse. Shared objects are written out wherever they are referred to, so text may be far longer than
//! the value: size, depth and work are bounded, and cycles are found.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::slice;

use super::JsonError;
use super::keys::{has_repeated_key, keep_last};
use crate::bounds::{Bounds, DEPTH_CEILING};
use crate::date::iso_string;
use crate::float::f64_from_f16_bits;
use crate::number::push_number;
use crate::text::Text;
use crate::typed_array::TypedArrayKind;
use crate::value::Value;
use crate::wtf8::Piece;

/// [`to_json_bounded`] with the default bounds, but for the depth: as deep as a decoded value can be.
pub fn to_json(value: &Value) -> Result<String, JsonError> {
    to_json_bounded(
        value,
        &Bounds {
            depth_max: DEPTH_CEILING,
            ..Bounds::default()
        },
    )
}

/// The JSON text of a value, as `JSON.stringify` writes it.
///
/// - `undefined` and holes are `null` in arrays and left out of objects; at the top, where `JSON.stringify` returns
///   no string at all, `undefined` is `null`.
/// - A `Date` is its `toISOString`, the invalid one `null`. NaN and infinities are `null`, -0 is `0`.
/// - A boxed primitive is the primitive. An `Error` is its own further properties, without name and message. A typed
///   array is an object with its indexes as keys. A `Map`, `Set`, `RegExp`, `ArrayBuffer` or `DataView` is `{}`.
/// - A shared object is written wherever it is referred to. A cycle, a bigint and an external are errors.
/// - Properties are written in the order of the tree, which is JavaScript's if JavaScript made it.
pub fn to_json_bounded(value: &Value, bounds: &Bounds) -> Result<String, JsonError> {
    let mut writer = Writer {
        root: value,
        bytes_max: bounds.bytes_max,
        depth_max: bounds.depth_effective(),
        out: String::new(),
        work: 0,
        open: Vec::new(),
        open_shared: HashSet::new(),
        shared: None,
    };
    writer.value(value)?;
    while writer.member()? {}
    writer.check_size()?;
    Ok(writer.out)
}

struct Writer<'v> {
    root: &'v Value,
    bytes_max: usize,
    depth_max: usize,
    out: String,
    /// Properties looked at. They may be left out, so that a bound on the text is none on the time.
    work: usize,
    open: Vec<Open<'v>>,
    /// Shared objects among `open`, by address.
    open_shared: HashSet<*const Value>,
    /// The shared objects by number; looked for when the first reference is met.
    shared: Option<Vec<&'v Value>>,
}

/// An array or object whose members are being written.
struct Open<'v> {
    members: Members<'v>,
    /// Its address, if it is shared.
    shared: Option<*const Value>,
    /// Of the member being written.
    index: usize,
    key: Option<&'v Text>,
}

enum Members<'v> {
    Elements(slice::Iter<'v, Value>),
    Properties(slice::Iter<'v, (Text, Value)>),
    /// Properties without repetitions.
    Unique(std::vec::IntoIter<&'v (Text, Value)>),
}

impl<'v> Writer<'v> {
    /// Writes the next member of what is open; false when nothing is open any more.
    fn member(&mut self) -> Result<bool, JsonError> {
        self.check_size()?;
        let Some(open) = self.open.last_mut() else {
            return Ok(false);
        };
        let property = match &mut open.members {
            Members::Elements(elements) => {
                match elements.next() {
                    Some(value) => {
                        if open.index > 0 {
                            self.out.push(',');
                        }
                        open.index += 1;
                        self.value(value)?;
                    }
                    None => self.close("]"),
                }
                return Ok(true);
            }
            Members::Properties(properties) => properties.find(|(_, value)| is_written(value)),
            Members::Unique(properties) => properties.find(|(_, value)| is_written(value)),
        };
        let Some((key, value)) = property else {
            self.close("}");
            return Ok(true);
        };
        if open.index > 0 {
            self.out.push(',');
        }
        open.index += 1;
        open.key = Some(key);
        self.string(key);
        self.out.push(':');
        self.value(value)?;
        Ok(true)
    }

    fn value(&mut self, value: &'v Value) -> Result<(), JsonError> {
        let (value, shared) = match value {
            Value::Shared(inner) => (&**inner, true),
            Value::Reference(index) => (self.referred(*index)?, true),
            value => (value, false),
        };
        if shared && self.open_shared.contains(&std::ptr::from_ref(value)) {
            return Err(JsonError::CycleFound { path: self.path() });
        }
        match value {
            Value::Array(elements) => {
                self.begin("[", value, shared, Members::Elements(elements.iter()))
            }
            Value::Object(properties) => self.begin_object(value, shared, properties),
            Value::Error(error) => self.begin_object(value, shared, &error.props),
            Value::TypedArray { kind, bytes } => self.typed_array(*kind, bytes),
            Value::Boxed(primitive) => self.leaf(primitive),
            value => self.leaf(value),
        }
    }

    fn leaf(&mut self, value: &Value) -> Result<(), JsonError> {
        match value {
            Value::Bool(bool) => self.out.push_str(if *bool { "true" } else { "false" }),
            Value::Number(number) => self.number(*number),
            Value::BigInt(_) => return Err(JsonError::BigIntFound { path: self.path() }),
            Value::String(text) => self.string(text),
            Value::Date(milliseconds) => match iso_string(*milliseconds) {
                Some(iso) => self.out.extend(["\"", &iso, "\""]),
                None => self.out.push_str("null"),
            },
            Value::RegExp { .. }
            | Value::Map(_)
            | Value::Set(_)
            | Value::ArrayBuffer(_)
            | Value::DataView(_)
            | Value::Interface(..) => {
                self.out.push_str("{}");
            }
            Value::External(index) => {
                return Err(JsonError::ExternalFound {
                    index: *index,
                    path: self.path(),
                });
            }
            // Undefined and holes where they are not left out. The others can't be here: `value` takes what has
            // members, and rules of the tree forbid the rest.
            _ => self.out.push_str("null"),
        }
        Ok(())
    }

    fn begin_object(
        &mut self,
        value: &Value,
        shared: bool,
        properties: &'v [(Text, Value)],
    ) -> Result<(), JsonError> {
        self.work += properties.len();
        self.check_size()?;
        let members = if has_repeated_key(properties) {
            Members::Unique(keep_last(properties, |(key, _)| key).into_iter())
        } else {
            Members::Properties(properties.iter())
        };
        self.begin("{", value, shared, members)
    }

    fn begin(
        &mut self,
        bracket: &str,
        value: &Value,
        shared: bool,
        members: Members<'v>,
    ) -> Result<(), JsonError> {
        if self.open.len() >= self.depth_max {
            return Err(JsonError::DepthExceeded {
                depth_max: self.depth_max,
            });
        }
        let shared = shared.then_some(std::ptr::from_ref(value));
        self.open_shared.extend(shared);
        self.out.push_str(bracket);
        self.open.push(Open {
            members,
            shared,
            index: 0,
            key: None,
        });
        Ok(())
    }

    fn close(&mut self, bracket: &str) {
        self.out.push_str(bracket);
        if let Some(Open {
            shared: Some(address),
            ..
        }) = self.open.pop()
        {
            self.open_shared.remove(&address);
        }
    }

    fn typed_array(&mut self, kind: TypedArrayKind, bytes: &[u8]) -> Result<(), JsonError> {
        self.out.push('{');
        for (index, element) in bytes.chunks_exact(kind.element_bytes()).enumerate() {
            let Some(number) = element_number(kind, element) else {
                return Err(JsonError::BigIntFound {
                    path: format!("{}[{index}]", self.path()),
                });
            };
            // Writing to a string can't fail.
            let _ = write!(self.out, "{}\"{index}\":", if index > 0 { "," } else { "" });
            self.number(number);
            self.check_size()?;
        }
        self.out.push('}');
        Ok(())
    }

    fn number(&mut self, number: f64) {
        if number.is_finite() {
            push_number(&mut self.out, number);
        } else {
            self.out.push_str("null");
        }
    }

    fn string(&mut self, text: &Text) {
        self.out.push('"');
        for piece in text.pieces() {
            match piece {
                Piece::Str(text) => push_escaped(&mut self.out, text),
                // Writing to a string can't fail.
                Piece::Surrogate(unit) => drop(write!(self.out, "\\u{unit:04x}")),
            }
        }
        self.out.push('"');
    }

    fn referred(&mut self, index: u32) -> Result<&'v Value, JsonError> {
        let root = self.root;
        let shared = self.shared.get_or_insert_with(|| root.shared_objects());
        shared
            .get(index as usize)
            .copied()
            .ok_or_else(|| JsonError::ReferenceUnknown {
                index,
                path: path(&self.open),
            })
    }

    fn path(&self) -> String {
        path(&self.open)
    }

    fn check_size(&self) -> Result<(), JsonError> {
        if self.out.len().max(self.work) > self.bytes_max {
            return Err(JsonError::SizeExceeded {
                bytes_max: self.bytes_max,
            });
        }
        Ok(())
    }
}

fn is_written(value: &Value) -> bool {
    !matches!(value, Value::Undefined | Value::Hole)
}

/// Where the member that is being written is, from the root `$`.
fn path(open: &[Open<'_>]) -> String {
    let mut path = String::from("$");
    for level in open {
        // Writing to a string can't fail.
        let _ = match level.key {
            None => write!(path, "[{}]", level.index.saturating_sub(1)),
            Some(key) if is_identifier(key) => write!(path, ".{key}"),
            Some(key) => write!(path, "[{key:?}]"),
        };
    }
    path
}

fn is_identifier(key: &Text) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$';
    !key.is_empty() && key.as_bytes().iter().all(word)
}

fn push_escaped(out: &mut String, text: &str) {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[written..at]);
        written = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            // Writing to a string can't fail.
            _ => drop(write!(out, "\\u{byte:04x}")),
        }
    }
    out.push_str(&text[written..]);
}

/// The element as a number; none for the elements of bigint arrays.
fn element_number(kind: TypedArrayKind, element: &[u8]) -> Option<f64> {
    let mut bytes = [0; 8];
    bytes[..element.len()].copy_from_slice(element);
    let bits = u64::from_le_bytes(bytes);
    match kind {
        TypedArrayKind::Uint8
        | TypedArrayKind::Uint8Clamped
        | TypedArrayKind::Uint16
        | TypedArrayKind::Uint32 => Some(bits as f64),
        TypedArrayKind::Int8 => Some(f64::from(bits as i8)),
        TypedArrayKind::Int16 => Some(f64::from(bits as i16)),
        TypedArrayKind::Int32 => Some(f64::from(bits as i32)),
        TypedArrayKind::Float16 => Some(f64_from_f16_bits(bits as u16)),
        TypedArrayKind::Float32 => Some(f64::from(f32::from_bits(bits as u32))),
        TypedArrayKind::Float64 => Some(f64::from_bits(bits)),
        TypedArrayKind::BigUint64 | TypedArrayKind::BigInt64 => None,
    }
}
