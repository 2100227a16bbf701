//! From bytes to a tree.
//!
//! Owns the building only; what is refused, and why, is the walk's affair. Takes memory in proportion to the input,
//! whatever lengths it claims.

use crate::bigint::BigInt;
use crate::bounds::Bounds;
use crate::error::DecodeError;
use crate::interface::Interface;
use crate::read::TextBytes;
use crate::sink::{Container, Field, Leaf, Primitive, Sink};
use crate::text::Text;
use crate::value::{ErrorValue, Value};
use crate::walk::walk;

/// Builds the value that the bytes are, if they are exactly one within the bounds.
///
/// Accepts what [`validate`](crate::validate) accepts. Shared objects and references stay marks in the tree; nothing
/// is expanded, so a small input can't become a large tree.
pub fn decode(input: &[u8], bounds: &Bounds) -> Result<Value, DecodeError> {
    let mut builder = Builder::default();
    walk(input, bounds, &mut builder)?;
    Ok(builder.finished)
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    shared_next: bool,
    finished: Value,
}

/// A container whose members are still coming.
struct Open {
    shared: bool,
    members: Members,
}

enum Members {
    Array(Vec<Value>),
    Set(Vec<Value>),
    Object(Vec<(Text, Value)>, Text),
    Map(Vec<(Value, Value)>, Option<Value>),
    Error(Box<ErrorValue>, Field),
    Elements(Interface, Vec<Value>),
    Fields(Interface, Vec<(Text, Value)>, Text),
}

impl<'a> Sink<'a> for Builder {
    fn shared(&mut self) {
        self.shared_next = true;
    }

    fn leaf(&mut self, leaf: Leaf<'a>) {
        let shared = std::mem::take(&mut self.shared_next);
        self.add(mark(value_from_leaf(leaf), shared));
    }

    fn key(&mut self, key: TextBytes<'a>) {
        if let Some(Open {
            members: Members::Object(_, next) | Members::Fields(_, _, next),
            ..
        }) = self.open.last_mut()
        {
            *next = text(key);
        }
    }

    fn field(&mut self, field: Field) {
        if let Some(Open {
            members: Members::Error(_, next),
            ..
        }) = self.open.last_mut()
        {
            *next = field;
        }
    }

    fn open(&mut self, container: Container, items: Option<usize>) {
        let items = items.unwrap_or(0);
        let members = match container {
            Container::Array => Members::Array(Vec::with_capacity(items)),
            Container::Set => Members::Set(Vec::with_capacity(items)),
            Container::Object => Members::Object(Vec::with_capacity(items / 2), Text::new()),
            Container::Map => Members::Map(Vec::with_capacity(items / 2), None),
            Container::Error => Members::Error(Box::default(), Field::Name),
            Container::Interface(interface) if interface.has_keys() => {
                Members::Fields(interface, Vec::with_capacity(items / 2), Text::new())
            }
            Container::Interface(interface) => {
                Members::Elements(interface, Vec::with_capacity(items))
            }
        };
        self.open.push(Open {
            shared: std::mem::take(&mut self.shared_next),
            members,
        });
    }

    fn close(&mut self) {
        let Some(Open { shared, members }) = self.open.pop() else {
            return;
        };
        let value = match members {
            Members::Array(elements) => Value::Array(elements),
            Members::Set(elements) => Value::Set(elements),
            Members::Object(properties, _) => Value::Object(properties),
            Members::Map(entries, _) => Value::Map(entries),
            Members::Error(error, _) => Value::Error(error),
            Members::Elements(interface, elements) => {
                Value::Interface(interface, Box::new(Value::Array(elements)))
            }
            Members::Fields(interface, fields, _) => {
                Value::Interface(interface, Box::new(Value::Object(fields)))
            }
        };
        self.add(mark(value, shared));
    }
}

impl Builder {
    /// Puts a finished value where it belongs.
    fn add(&mut self, value: Value) {
        let Some(Open { members, .. }) = self.open.last_mut() else {
            self.finished = value;
            return;
        };
        match members {
            Members::Array(elements) | Members::Set(elements) | Members::Elements(_, elements) => {
                elements.push(value)
            }
            Members::Object(properties, key) | Members::Fields(_, properties, key) => {
                properties.push((std::mem::take(key), value));
            }
            Members::Map(entries, key) => match key.take() {
                None => *key = Some(value),
                Some(key) => entries.push((key, value)),
            },
            Members::Error(error, field) => match (field, value) {
                (Field::Name, Value::String(text)) => error.name = text,
                (Field::Message, Value::String(text)) => error.message = text,
                (Field::Stack, Value::String(text)) => error.stack = Some(text),
                (Field::Errors, value) => error.errors = Some(value),
                (Field::Props, Value::Object(props)) => error.props = props,
                (_, value) => error.cause = Some(value),
            },
        }
    }
}

fn mark(value: Value, shared: bool) -> Value {
    if shared {
        Value::Shared(Box::new(value))
    } else {
        value
    }
}

fn value_from_leaf(leaf: Leaf<'_>) -> Value {
    match leaf {
        Leaf::Primitive(primitive) => value_from_primitive(primitive),
        Leaf::Date(milliseconds) => Value::Date(milliseconds),
        Leaf::RegExp { source, flags } => Value::RegExp {
            source: text(source),
            flags: text(flags),
        },
        Leaf::Hole => Value::Hole,
        Leaf::ArrayBuffer(bytes) => Value::ArrayBuffer(bytes.to_vec()),
        Leaf::TypedArray {
            kind,
            big_endian,
            bytes,
        } => {
            let mut bytes = bytes.to_vec();
            if big_endian {
                bytes
                    .chunks_exact_mut(kind.element_bytes())
                    .for_each(<[u8]>::reverse);
            }
            Value::TypedArray { kind, bytes }
        }
        Leaf::DataView(bytes) => Value::DataView(bytes.to_vec()),
        Leaf::Boxed(primitive) => Value::Boxed(Box::new(value_from_primitive(primitive))),
        Leaf::Reference(index) => Value::Reference(index),
        Leaf::External(index) => Value::External(index),
    }
}

fn value_from_primitive(primitive: Primitive<'_>) -> Value {
    match primitive {
        Primitive::Undefined => Value::Undefined,
        Primitive::Null => Value::Null,
        Primitive::Bool(bool) => Value::Bool(bool),
        Primitive::Number(number) => Value::Number(number),
        Primitive::BigInt {
            negative: false,
            content,
        } => Value::BigInt(BigInt::new(false, &content.to_vec())),
        Primitive::BigInt {
            negative: true,
            content,
        } => Value::BigInt(BigInt::from_tag_negative(&content.to_vec())),
        Primitive::Text(bytes) => Value::String(text(bytes)),
    }
}

fn text(bytes: TextBytes<'_>) -> Text {
    match bytes {
        TextBytes::Utf8(string) => Text::from(string),
        TextBytes::Chunks(chunks) => Text::from_wtf8_checked(chunks.to_vec()),
    }
}
