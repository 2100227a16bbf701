//! What the walk over a value tells whoever listens.
//!
//! Owns the vocabulary only. Everything in it has been checked and borrows from the input.

use crate::read::{Chunks, TextBytes};
use crate::typed_array::TypedArrayKind;

/// Receives a value in the order of its bytes.
pub(crate) trait Sink<'a> {
    /// The next leaf or container is marked as shared.
    fn shared(&mut self) {}
    fn leaf(&mut self, _leaf: Leaf<'a>) {}
    /// The key of the next member of an object.
    fn key(&mut self, _key: TextBytes<'a>) {}
    /// Which field of the open error comes next.
    fn field(&mut self, _field: Field) {}
    /// Members follow up to `close`. The number of items may be trusted: the input has at least a byte for each item
    /// that all open containers together still wait for.
    fn open(&mut self, _container: Container, _items: Option<usize>) {}
    fn close(&mut self) {}
}

/// A value without members.
pub(crate) enum Leaf<'a> {
    Primitive(Primitive<'a>),
    /// Milliseconds, clipped as a `Date` does.
    Date(f64),
    RegExp {
        source: TextBytes<'a>,
        flags: TextBytes<'a>,
    },
    Hole,
    ArrayBuffer(Chunks<'a>),
    TypedArray {
        kind: TypedArrayKind,
        big_endian: bool,
        bytes: Chunks<'a>,
    },
    DataView(Chunks<'a>),
    Boxed(Primitive<'a>),
    Reference(u32),
    External(u32),
}

pub(crate) enum Primitive<'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// The content of tag 2 or 3.
    BigInt {
        negative: bool,
        content: Chunks<'a>,
    },
    Text(TextBytes<'a>),
}

/// A value with members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Array,
    Set,
    Object,
    Map,
    Error,
}

impl Container {
    /// Whether it is a CBOR map.
    pub(crate) const fn has_keys(self) -> bool {
        match self {
            Self::Array | Self::Set => false,
            Self::Object | Self::Map | Self::Error => true,
        }
    }
}

/// A field of an error. They come in this order, so that shared objects are numbered the same for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    Name,
    Message,
    Stack,
    Cause,
    Errors,
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

    pub(crate) const fn key(self) -> &'static str {
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
