//! From a tree to bytes: definite lengths and shortest heads only.
//!
//! Owns the one way in which a value is written, so that equal values have equal bytes. Does not recurse, and does
//! not check the rules that [`Value`] states; a tree that breaks them makes bytes that every decoder refuses.

use std::collections::HashMap;
use std::slice;

use crate::date;
use crate::sink::Field;
use crate::tag;
use crate::text::Text;
use crate::value::{ErrorValue, SAFE_INTEGER_MAX, Value};

/// The bytes of a value.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes);
    bytes
}

/// Appends the bytes of a value.
pub fn encode_into(value: &Value, bytes: &mut Vec<u8>) {
    let encoder = Encoder {
        bytes,
        pending: Vec::new(),
        renumbering: None,
    };
    encoder.run(value);
}

/// The bytes of `part`, which is somewhere in the tree `root`, as a value by itself.
///
/// Shared objects are numbered anew, and one that is outside of the part is written where it is first referred to.
/// Each is written once, so there are no more bytes than the tree has. They may be nested deeper than the tree is.
pub(crate) fn encode_part(root: &Value, part: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = Encoder {
        bytes: &mut bytes,
        pending: Vec::new(),
        renumbering: Some(Renumbering {
            objects: root.shared_objects(),
            written: HashMap::new(),
        }),
    };
    encoder.run(part);
    bytes
}

/// What follows the value that is being written.
enum Pending<'v> {
    Elements(slice::Iter<'v, Value>),
    Properties(slice::Iter<'v, (Text, Value)>),
    Entries(slice::Iter<'v, (Value, Value)>),
    One(&'v Value),
    Field(Field, &'v Value),
    Props(&'v [(Text, Value)]),
}

struct Encoder<'v, 'b> {
    bytes: &'b mut Vec<u8>,
    /// Innermost last.
    pending: Vec<Pending<'v>>,
    /// Only where a part of a tree is written.
    renumbering: Option<Renumbering<'v>>,
}

/// From the shared objects of a tree to those of a part of it.
struct Renumbering<'v> {
    /// By their numbers in the tree.
    objects: Vec<&'v Value>,
    /// The numbers in the part of those that have been written, by address.
    written: HashMap<*const Value, u32>,
}

impl<'v> Encoder<'v, '_> {
    fn run(mut self, value: &'v Value) {
        self.value(value);
        while let Some(value) = self.next_member() {
            self.value(value);
        }
    }

    /// Writes what stands before the next value, and returns it.
    fn next_member(&mut self) -> Option<&'v Value> {
        loop {
            match self.pending.last_mut()? {
                Pending::Elements(elements) => {
                    if let Some(value) = elements.next() {
                        return Some(value);
                    }
                    self.pending.pop();
                }
                Pending::Properties(properties) => {
                    if let Some((key, value)) = properties.next() {
                        self.text(key);
                        return Some(value);
                    }
                    self.pending.pop();
                }
                Pending::Entries(entries) => {
                    if let Some((key, value)) = entries.next() {
                        self.pending.push(Pending::One(value));
                        return Some(key);
                    }
                    self.pending.pop();
                }
                Pending::One(value) => {
                    let value = *value;
                    self.pending.pop();
                    return Some(value);
                }
                Pending::Field(field, value) => {
                    let (field, value) = (*field, *value);
                    self.pending.pop();
                    self.str(field.key());
                    return Some(value);
                }
                Pending::Props(props) => {
                    let props = *props;
                    self.pending.pop();
                    self.str(Field::Props.key());
                    self.properties(props);
                }
            }
        }
    }

    /// Writes a value up to where its members begin.
    fn value(&mut self, value: &'v Value) {
        match value {
            Value::Undefined => self.bytes.push(SIMPLE_UNDEFINED),
            Value::Null => self.bytes.push(SIMPLE_NULL),
            Value::Bool(bool) => self.bytes.push(SIMPLE_FALSE + u8::from(*bool)),
            Value::Number(number) => self.number(*number),
            Value::BigInt(bigint) if bigint.is_negative() => {
                self.tag(tag::BIGINT_NEGATIVE);
                self.byte_string(&bigint.to_tag_negative());
            }
            Value::BigInt(bigint) => {
                self.tag(tag::BIGINT_POSITIVE);
                self.byte_string(bigint.magnitude());
            }
            Value::String(text) => self.text(text),
            Value::Date(milliseconds) => {
                self.tag(tag::DATE);
                self.number(date::to_seconds(*milliseconds));
            }
            Value::RegExp { source, flags } => {
                self.tag(tag::REGEXP);
                self.head(ARRAY, 2);
                self.text(source);
                self.text(flags);
            }
            Value::Array(elements) => self.elements(elements),
            Value::Hole => {
                self.tag(tag::HOLE);
                self.bytes.push(SIMPLE_NULL);
            }
            Value::Object(properties) => self.properties(properties),
            Value::Map(entries) => {
                self.tag(tag::MAP);
                self.head(MAP, entries.len() as u64);
                self.pending.push(Pending::Entries(entries.iter()));
            }
            Value::Set(elements) => {
                self.tag(tag::SET);
                self.elements(elements);
            }
            Value::ArrayBuffer(bytes) => self.byte_string(bytes),
            Value::TypedArray { kind, bytes } => {
                self.tag(kind.tag());
                self.byte_string(bytes);
            }
            Value::DataView(bytes) => {
                self.tag(tag::DATA_VIEW);
                self.byte_string(bytes);
            }
            Value::Error(error) => self.error(error),
            Value::Boxed(primitive) => {
                self.tag(tag::BOXED);
                self.pending.push(Pending::One(primitive));
            }
            Value::Interface(interface, content) => {
                self.tag(interface.tag());
                self.pending.push(Pending::One(content));
            }
            Value::Shared(inner) => self.shared(inner),
            Value::Reference(index) => match &self.renumbering {
                Some(Renumbering { objects, .. }) if (*index as usize) < objects.len() => {
                    self.shared(objects[*index as usize]);
                }
                _ => self.reference(*index),
            },
            Value::External(index) => {
                self.tag(tag::EXTERNAL);
                self.head(UNSIGNED, u64::from(*index));
            }
        }
    }

    /// Writes a shared object, or, where it is in the part already, a reference to it.
    fn shared(&mut self, object: &'v Value) {
        if let Some(Renumbering { written, .. }) = &mut self.renumbering {
            let next = written.len() as u32;
            let number = *written.entry(std::ptr::from_ref(object)).or_insert(next);
            if number < next {
                return self.reference(number);
            }
        }
        self.tag(tag::SHARED);
        self.pending.push(Pending::One(object));
    }

    fn reference(&mut self, index: u32) {
        self.tag(tag::REFERENCE);
        self.head(UNSIGNED, u64::from(index));
    }

    fn error(&mut self, error: &'v ErrorValue) {
        let ErrorValue {
            name,
            message,
            stack,
            cause,
            errors,
            props,
        } = error;
        let optional = [
            stack.is_some(),
            cause.is_some(),
            errors.is_some(),
            !props.is_empty(),
        ];
        self.tag(tag::ERROR);
        self.head(
            MAP,
            2 + optional.iter().filter(|present| **present).count() as u64,
        );
        self.str(Field::Name.key());
        self.text(name);
        self.str(Field::Message.key());
        self.text(message);
        if let Some(stack) = stack {
            self.str(Field::Stack.key());
            self.text(stack);
        }
        if !props.is_empty() {
            self.pending.push(Pending::Props(props));
        }
        self.pending.extend(
            errors
                .as_ref()
                .map(|errors| Pending::Field(Field::Errors, errors)),
        );
        self.pending.extend(
            cause
                .as_ref()
                .map(|cause| Pending::Field(Field::Cause, cause)),
        );
    }

    fn elements(&mut self, elements: &'v [Value]) {
        self.head(ARRAY, elements.len() as u64);
        self.pending.push(Pending::Elements(elements.iter()));
    }

    fn properties(&mut self, properties: &'v [(Text, Value)]) {
        self.head(MAP, properties.len() as u64);
        self.pending.push(Pending::Properties(properties.iter()));
    }

    fn number(&mut self, number: f64) {
        let is_integer = number.trunc() == number && number.abs() <= SAFE_INTEGER_MAX as f64;
        if !is_integer || (number == 0.0 && number.is_sign_negative()) {
            // One NaN: its payload would tell engines apart.
            let bits = if number.is_nan() {
                f64::NAN.to_bits()
            } else {
                number.to_bits()
            };
            self.bytes.push(FLOAT_64);
            self.bytes.extend(bits.to_be_bytes());
        } else if number < 0.0 {
            self.head(NEGATIVE, (-number) as u64 - 1);
        } else {
            self.head(UNSIGNED, number as u64);
        }
    }

    fn text(&mut self, text: &Text) {
        if let Some(string) = text.as_str() {
            self.str(string);
        } else {
            self.tag(tag::WTF8);
            self.byte_string(text.as_bytes());
        }
    }

    fn str(&mut self, string: &str) {
        self.head(TEXT, string.len() as u64);
        self.bytes.extend_from_slice(string.as_bytes());
    }

    fn byte_string(&mut self, bytes: &[u8]) {
        self.head(BYTES, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn tag(&mut self, tag: u64) {
        self.head(TAG, tag);
    }

    fn head(&mut self, major_type: u8, argument: u64) {
        let first = major_type << 5;
        match argument {
            0..=23 => self.bytes.push(first | argument as u8),
            24..=0xff => self.bytes.extend([first | 24, argument as u8]),
            0x100..=0xffff => {
                self.bytes.push(first | 25);
                self.bytes.extend((argument as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.bytes.push(first | 26);
                self.bytes.extend((argument as u32).to_be_bytes());
            }
            _ => {
                self.bytes.push(first | 27);
                self.bytes.extend(argument.to_be_bytes());
            }
        }
    }
}

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

const SIMPLE_FALSE: u8 = 0xf4;
const SIMPLE_NULL: u8 = 0xf6;
const SIMPLE_UNDEFINED: u8 = 0xf7;
const FLOAT_64: u8 = 0xfb;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_appended() {
        let mut bytes = vec![1];
        encode_into(&Value::from(2), &mut bytes);
        assert_eq!(bytes, [1, 2]);
    }

    #[test]
    fn integers_are_integers_up_to_the_exact_range_only() {
        let max = SAFE_INTEGER_MAX as f64;
        assert_eq!(encode(&Value::from(max))[0], 0x1b);
        assert_eq!(encode(&Value::from(-max))[0], 0x3b);
        assert_eq!(encode(&Value::from(max + 1.0))[0], FLOAT_64);
        assert_eq!(encode(&Value::from(-max - 1.0))[0], FLOAT_64);
        assert_eq!(encode(&Value::from(-0.0))[0], FLOAT_64);
        assert_eq!(encode(&Value::from(0.0)), [0]);
    }

    #[test]
    fn every_nan_is_written_the_same() {
        let odd = f64::from_bits(0xfff8_0000_dead_beef);
        assert_eq!(encode(&Value::from(odd)), encode(&Value::from(f64::NAN)));
        assert_eq!(
            encode(&Value::from(odd)),
            [0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn a_date_is_clipped_as_javascript_does() {
        assert_eq!(encode(&Value::Date(1500.9)), encode(&Value::Date(1500.0)));
        assert_eq!(
            encode(&Value::Date(8.64e15 + 1.0)),
            encode(&Value::Date(f64::NAN))
        );
        assert_eq!(encode(&Value::Date(-0.0)), [0xc1, 0]);
    }
}
