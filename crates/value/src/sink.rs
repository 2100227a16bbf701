//! What [`walk`](crate::walk) tells whoever listens: for those who build something else than a
//! [`Value`](crate::Value), such as the guest, which builds JavaScript objects.
//!
//! Owns the vocabulary only. Everything in it has been checked and borrows from the input.

use crate::interface::Interface;
pub use crate::read::{Chunks, TextBytes};
use crate::typed_array::TypedArrayKind;

/// Receives a value in the order of its bytes.
pub trait Sink<'a> {
    /// Where what comes next begins: an item with its mark, a key, the end of a container, or the end of all.
    fn offset(&mut self, _at: usize) {}
    /// The next leaf or container is marked as shared.
    fn shared(&mut self) {}
    /// A value without members.
    fn leaf(&mut self, _leaf: Leaf<'a>) {}
    /// The key of the next member of an object.
    fn key(&mut self, _key: TextBytes<'a>) {}
    /// Which field of the open error comes next.
    fn field(&mut self, _field: Field) {}
    /// Members follow up to `close`. The number of items may be trusted: the input has at least a byte for each item
    /// that all open containers together still wait for.
    fn open(&mut self, _container: Container, _items: Option<usize>) {}
    /// The container that was opened last is complete.
    fn close(&mut self) {}
}

/// A value without members.
pub enum Leaf<'a> {
    /// What has no identity.
    Primitive(Primitive<'a>),
    /// Milliseconds, clipped as a `Date` does.
    Date(f64),
    /// Whether the source is a valid pattern is for the builder to find out.
    RegExp {
        /// The pattern.
        source: TextBytes<'a>,
        /// The flags.
        flags: TextBytes<'a>,
    },
    /// A hole; only directly in an array.
    Hole,
    /// The bytes of an `ArrayBuffer`.
    ArrayBuffer(Chunks<'a>),
    /// A typed array over a buffer of its own.
    TypedArray {
        /// Its class.
        kind: TypedArrayKind,
        /// Whether the elements are big-endian.
        big_endian: bool,
        /// Whole elements.
        bytes: Chunks<'a>,
    },
    /// The bytes of a `DataView`.
    DataView(Chunks<'a>),
    /// A boxed primitive; never undefined or null.
    Boxed(Primitive<'a>),
    /// A shared object that has begun, by its number.
    Reference(u32),
    /// An entry of the table of externals.
    External(u32),
}

/// A value without identity.
pub enum Primitive<'a> {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A bigint: `content`, or `-1 - content` where it is negative.
    BigInt {
        /// Whether it is below 0.
        negative: bool,
        /// Big-endian.
        content: Chunks<'a>,
    },
    /// A string.
    Text(TextBytes<'a>),
}

/// A value with members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// An array: its elements.
    Array,
    /// A `Set`: its members.
    Set,
    /// A plain object, or an error's further properties: keys and values.
    Object,
    /// A `Map`: keys and values.
    Map,
    /// An error: fields and values. Name and message come first and are leaves.
    Error,
    /// An object of the web platform: elements, or keys and values as in a plain object.
    Interface(Interface),
}

impl Container {
    /// Whether it is a CBOR map.
    pub(crate) const fn has_keys(self) -> bool {
        match self {
            Self::Array | Self::Set => false,
            Self::Object | Self::Map | Self::Error => true,
            Self::Interface(interface) => interface.has_keys(),
        }
    }
}

/// A field of an error. They come in this order, so that shared objects are numbered the same for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Its name: a text.
    Name,
    /// Its message: a text.
    Message,
    /// Its stack: a text.
    Stack,
    /// Its cause: anything.
    Cause,
    /// Its errors: anything.
    Errors,
    /// Its other properties: an object.
    Props,
}

impl Field {
    pub(crate) const ALL: [Self; 6] = [
        Self::Name,
        Self::Message,
        Self::Stack,
        Self::Cause,
        Self::Errors,
        Self::Props,
    ];

    /// The field's key in the bytes.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Message => "message",
            Self::Stack => "stack",
            Self::Cause => "cause",
            Self::Errors => "errors",
            Self::Props => "props",
        }
    }
}

/// Listens to nothing: the walk is then a check.
impl Sink<'_> for () {}
