//! A value as a tree: what [`decode`](crate::decode) builds and [`encode`](crate::encode) writes.
//!
//! Owns the shape of the tree and how a program builds and reads it. Knows nothing of CBOR. Values come from here,
//! from `decode` or from `from_json`; only the latter two see bytes that nobody has checked.

use crate::bigint::BigInt;
use crate::interface::Interface;
use crate::text::Text;
use crate::typed_array::TypedArrayKind;

/// Integers up to here, and down to its negative, are exact in a JavaScript number: 2^53 - 1.
pub const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// A JavaScript value, by the structured-clone rules.
///
/// Five variants have a place of their own, and bytes made from a tree that breaks the rule are refused by every
/// decoder:
///
/// - [`Hole`](Self::Hole) stands directly in an [`Array`](Self::Array) only.
/// - [`Boxed`](Self::Boxed) holds a bool, number, bigint or string.
/// - [`Interface`](Self::Interface) holds an array or an object.
/// - [`Shared`](Self::Shared) holds what has an identity: not a primitive, not another `Shared` or `Reference`.
/// - [`Reference`](Self::Reference) comes after the `Shared` that it means has begun, in the order of encoding.
///
/// Two values are equal as `Object.is` would have it, member by member: NaN equals NaN, -0 is not 0. References are
/// compared by number, not followed.
///
/// Drop, `clone`, `==` and `{:?}` recurse. A decoded tree is never nested deeper than
/// [`DEPTH_CEILING`](crate::DEPTH_CEILING), and down to there drop gets by with a stack of 512 KiB in every build,
/// the others with 2 MiB in an optimised one (and in every build down to the default bound of 512 levels). A tree
/// built by hand is as deep as its builder makes it.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `undefined`.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; every double is one.
    Number(f64),
    /// A bigint.
    BigInt(BigInt),
    /// A string.
    String(Text),
    /// A `Date`, in milliseconds since the epoch; NaN is the invalid date.
    Date(f64),
    /// A `RegExp`. Whether the source is a valid pattern and the flags are known shows where it is built.
    RegExp {
        /// The pattern.
        source: Text,
        /// The flags, such as `gi`.
        flags: Text,
    },
    /// An array.
    Array(Vec<Value>),
    /// A hole in a sparse array.
    Hole,
    /// A plain object: its own data properties in order. Where a key is repeated, the last one counts.
    Object(Vec<(Text, Value)>),
    /// A `Map`, as if its entries were set in this order.
    Map(Vec<(Value, Value)>),
    /// A `Set`, as if its members were added in this order.
    Set(Vec<Value>),
    /// An `ArrayBuffer`.
    ArrayBuffer(Vec<u8>),
    /// A typed array over a buffer of its own.
    TypedArray {
        /// Its class.
        kind: TypedArrayKind,
        /// Its elements, little-endian; whole elements only.
        bytes: Vec<u8>,
    },
    /// A `DataView` over a buffer of its own.
    DataView(Vec<u8>),
    /// An `Error`.
    Error(Box<ErrorValue>),
    /// A boxed primitive such as `new String("x")`.
    Boxed(Box<Value>),
    /// An object of the web platform, by what is in it: an [`Array`](Self::Array) for `Headers`, an
    /// [`Object`](Self::Object) for the others, with the fields that `schema/value.md` lists.
    Interface(Interface, Box<Value>),
    /// An object that is referred to again. The shared objects of a tree are numbered from 0 in order of encoding: a
    /// parent before its members, keys before values.
    Shared(Box<Value>),
    /// The shared object with this number.
    Reference(u32),
    /// The entry with this index in the table of externals.
    External(u32),
}

/// What is kept of an `Error`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorValue {
    /// Its `name`, such as `TypeError`; it also names the class to build.
    pub name: Text,
    /// Its `message`.
    pub message: Text,
    /// Its `stack`, if it has one and it may leave.
    pub stack: Option<Text>,
    /// Its own `cause`, if it has one.
    pub cause: Option<Value>,
    /// Its own `errors`, if it has them: an array if it is an `AggregateError`.
    pub errors: Option<Value>,
    /// Its other own data properties, in order.
    pub props: Vec<(Text, Value)>,
}

impl ErrorValue {
    /// An error that has only a name and a message.
    pub fn new(name: impl Into<Text>, message: impl Into<Text>) -> Self {
        Self {
            name: name.into(),
            message: message.into(),
            ..Self::default()
        }
    }
}

impl Value {
    /// A plain object with these properties.
    pub fn object<K: Into<Text>, V: Into<Value>>(
        properties: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self::Object(
            properties
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    /// An array of these elements.
    pub fn array<V: Into<Value>>(elements: impl IntoIterator<Item = V>) -> Self {
        Self::Array(elements.into_iter().map(Into::into).collect())
    }

    /// An `Error` that has only a name and a message.
    pub fn error(name: impl Into<Text>, message: impl Into<Text>) -> Self {
        Self::Error(Box::new(ErrorValue::new(name, message)))
    }

    /// A `Uint8Array` of these bytes.
    pub fn uint8_array(bytes: impl Into<Vec<u8>>) -> Self {
        Self::TypedArray {
            kind: TypedArrayKind::Uint8,
            bytes: bytes.into(),
        }
    }

    /// The value itself where it is marked as shared.
    pub fn unshared(&self) -> &Value {
        match self {
            Self::Shared(inner) => inner,
            value => value,
        }
    }

    /// The shared objects of the tree by their numbers, without their marks.
    pub(crate) fn shared_objects(&self) -> Vec<&Value> {
        let mut found = Vec::new();
        let mut pending = vec![self];
        while let Some(value) = pending.pop() {
            match value {
                Self::Shared(inner) => {
                    found.push(&**inner);
                    pending.push(inner);
                }
                Self::Array(elements) | Self::Set(elements) => {
                    pending.extend(elements.iter().rev())
                }
                Self::Object(properties) => {
                    pending.extend(properties.iter().rev().map(|(_, value)| value));
                }
                Self::Map(entries) => {
                    pending.extend(entries.iter().rev().flat_map(|(key, value)| [value, key]));
                }
                Self::Interface(_, content) => pending.push(content),
                Self::Error(error) => {
                    pending.extend(error.props.iter().rev().map(|(_, value)| value));
                    pending.extend(&error.errors);
                    pending.extend(&error.cause);
                }
                _ => {}
            }
        }
        found
    }

    /// The property of a plain object. References are not followed.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The element of an array, which may be a [`Hole`](Self::Hole). References are not followed.
    pub fn index(&self, index: usize) -> Option<&Value> {
        self.as_array()?.get(index)
    }

    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The string, if it is one without lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text()?.as_str()
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(*bool),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self.unshared() {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The properties, if it is a plain object.
    pub fn as_object(&self) -> Option<&[(Text, Value)]> {
        match self.unshared() {
            Self::Object(properties) => Some(properties),
            _ => None,
        }
    }

    /// What is in it, if it is an object of that class of the web platform.
    pub fn as_interface(&self, interface: Interface) -> Option<&Value> {
        match self.unshared() {
            Self::Interface(found, content) if *found == interface => Some(content),
            _ => None,
        }
    }

    /// The fields, if it is an `Error`.
    pub fn as_error(&self) -> Option<&ErrorValue> {
        match self.unshared() {
            Self::Error(error) => Some(error),
            _ => None,
        }
    }

    /// The bytes, if it is an `ArrayBuffer`, a typed array or a `DataView`.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.unshared() {
            Self::ArrayBuffer(bytes) | Self::DataView(bytes) | Self::TypedArray { bytes, .. } => {
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Whether it is `undefined`.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Undefined, Self::Undefined)
            | (Self::Null, Self::Null)
            | (Self::Hole, Self::Hole) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Number(left), Self::Number(right)) | (Self::Date(left), Self::Date(right)) => {
                (left.is_nan() && right.is_nan()) || left.to_bits() == right.to_bits()
            }
            (Self::BigInt(left), Self::BigInt(right)) => left == right,
            (Self::String(left), Self::String(right)) => left == right,
            (
                Self::RegExp {
                    source: left_source,
                    flags: left_flags,
                },
                Self::RegExp {
                    source: right_source,
                    flags: right_flags,
                },
            ) => left_source == right_source && left_flags == right_flags,
            (Self::Array(left), Self::Array(right)) | (Self::Set(left), Self::Set(right)) => {
                left == right
            }
            (Self::Object(left), Self::Object(right)) => left == right,
            (Self::Map(left), Self::Map(right)) => left == right,
            (Self::ArrayBuffer(left), Self::ArrayBuffer(right))
            | (Self::DataView(left), Self::DataView(right)) => left == right,
            (
                Self::TypedArray {
                    kind: left_kind,
                    bytes: left_bytes,
                },
                Self::TypedArray {
                    kind: right_kind,
                    bytes: right_bytes,
                },
            ) => left_kind == right_kind && left_bytes == right_bytes,
            (Self::Error(left), Self::Error(right)) => left == right,
            (Self::Boxed(left), Self::Boxed(right)) | (Self::Shared(left), Self::Shared(right)) => {
                left == right
            }
            (Self::Interface(left, left_content), Self::Interface(right, right_content)) => {
                left == right && left_content == right_content
            }
            (Self::Reference(left), Self::Reference(right))
            | (Self::External(left), Self::External(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl From<()> for Value {
    fn from((): ()) -> Self {
        Self::Undefined
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Number(f64::from(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(f64::from(number))
    }
}

/// A number where JavaScript's numbers hold it exactly, else a bigint.
impl From<i64> for Value {
    fn from(number: i64) -> Self {
        if number.unsigned_abs() <= SAFE_INTEGER_MAX {
            Self::Number(number as f64)
        } else {
            Self::BigInt(number.into())
        }
    }
}

/// A number where JavaScript's numbers hold it exactly, else a bigint.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        if number <= SAFE_INTEGER_MAX {
            Self::Number(number as f64)
        } else {
            Self::BigInt(number.into())
        }
    }
}

impl From<BigInt> for Value {
    fn from(bigint: BigInt) -> Self {
        Self::BigInt(bigint)
    }
}

impl From<&str> for Value {
    fn from(string: &str) -> Self {
        Self::String(string.into())
    }
}

impl From<String> for Value {
    fn from(string: String) -> Self {
        Self::String(string.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(elements: Vec<Value>) -> Self {
        Self::Array(elements)
    }
}

impl From<ErrorValue> for Value {
    fn from(error: ErrorValue) -> Self {
        Self::Error(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_small() {
        // The decoder's memory is a multiple of this; see tests/memory.rs.
        assert!(size_of::<Value>() <= 48, "{}", size_of::<Value>());
    }

    #[test]
    fn equality_is_that_of_object_is() {
        assert_eq!(Value::from(f64::NAN), Value::from(-f64::NAN));
        assert_ne!(Value::from(0.0), Value::from(-0.0));
        assert_ne!(Value::Null, Value::Undefined);
        assert_ne!(Value::Array(vec![]), Value::Set(vec![]));
    }

    #[test]
    fn integers_beyond_the_exact_range_become_bigints() {
        assert_eq!(
            Value::from(9_007_199_254_740_991_i64),
            Value::Number(9_007_199_254_740_991.0)
        );
        assert_eq!(
            Value::from(-9_007_199_254_740_992_i64),
            Value::BigInt((-9_007_199_254_740_992_i64).into())
        );
        assert_eq!(Value::from(u64::MAX), Value::BigInt(u64::MAX.into()));
    }

    #[test]
    fn reading_sees_through_the_mark_of_a_shared_object() {
        let value = Value::Shared(Box::new(Value::object([("a", Value::array([1, 2]))])));
        assert_eq!(
            value
                .get("a")
                .and_then(|a| a.index(1))
                .and_then(Value::as_f64),
            Some(2.0)
        );
        assert_eq!(value.get("b"), None);
        assert_eq!(Value::Null.get("a"), None);
    }

    #[test]
    fn of_a_repeated_key_the_last_one_counts() {
        assert_eq!(
            Value::object([("a", 1), ("b", 2), ("a", 3)]).get("a"),
            Some(&Value::from(3))
        );
    }
}
