//! CBOR one item head at a time.
//!
//! Owns the byte position and RFC 8949's rules of form: heads, chunked strings, UTF-8. Knows nothing of what items
//! mean. Allocates nothing; a length is believed only once that many bytes are there.

use crate::error::DecodeError;
use crate::float::f64_from_f16_bits;

const BREAK: u8 = 0xff;

/// The first bytes of an item. No length means chunks or members up to a break.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Head {
    Unsigned(u64),
    /// The number -1 - n.
    Negative(u64),
    Bytes(Option<u64>),
    Text(Option<u64>),
    Array(Option<u64>),
    Map(Option<u64>),
    Tag(u64),
    Simple(u8),
    Float(f64),
    Break,
}

pub(crate) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0 }
    }

    /// Offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.input.len() - self.at
    }

    pub(crate) fn end(&self) -> DecodeError {
        DecodeError::UnexpectedEnd {
            at: self.input.len(),
        }
    }

    fn take(&mut self, bytes: u64) -> Result<&'a [u8], DecodeError> {
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= self.remaining())
            .ok_or_else(|| self.end())?;
        let taken = &self.input[self.at..self.at + bytes];
        self.at += bytes;
        Ok(taken)
    }

    /// Takes a break, if one is next.
    pub(crate) fn take_break(&mut self) -> bool {
        let found = self.input.get(self.at) == Some(&BREAK);
        self.at += usize::from(found);
        found
    }

    // Inlined by force: a result this large would pass through memory, which takes longer than reading the head.
    // Together with the walk's `text` and `primitive` it makes `validate` four times as fast.
    #[inline(always)]
    pub(crate) fn head(&mut self) -> Result<Head, DecodeError> {
        let at = self.at;
        let &byte = self.input.get(at).ok_or_else(|| self.end())?;
        self.at += 1;
        let malformed = || DecodeError::ItemMalformed { byte, at };
        let argument = match byte & 0x1f {
            short @ 0..=23 => Some(u64::from(short)),
            24 => Some(u64::from(self.take_array::<1>()?[0])),
            25 => Some(u64::from(u16::from_be_bytes(self.take_array()?))),
            26 => Some(u64::from(u32::from_be_bytes(self.take_array()?))),
            27 => Some(u64::from_be_bytes(self.take_array()?)),
            31 => None,
            _ => return Err(malformed()),
        };
        Ok(match (byte >> 5, argument) {
            (0, Some(number)) => Head::Unsigned(number),
            (1, Some(number)) => Head::Negative(number),
            (2, length) => Head::Bytes(length),
            (3, length) => Head::Text(length),
            (4, length) => Head::Array(length),
            (5, length) => Head::Map(length),
            (6, Some(tag)) => Head::Tag(tag),
            (7, None) => Head::Break,
            (7, Some(argument)) => match byte & 0x1f {
                25 => Head::Float(f64_from_f16_bits(argument as u16)),
                26 => Head::Float(f64::from(f32::from_bits(argument as u32))),
                27 => Head::Float(f64::from_bits(argument)),
                24 if argument < 32 => return Err(malformed()),
                _ => Head::Simple(argument as u8),
            },
            _ => return Err(malformed()),
        })
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    /// The rest of a byte string whose head was `Head::Bytes(length)`.
    pub(crate) fn bytes(&mut self, length: Option<u64>) -> Result<Chunks<'a>, DecodeError> {
        if let Some(length) = length {
            return self.take(length).map(Chunks::One);
        }
        self.chunks(|head| match head {
            Head::Bytes(length) => length,
            _ => None,
        })
    }

    /// The rest of a text string whose head was `Head::Text(length)` and stands at `head_at`.
    pub(crate) fn text(
        &mut self,
        length: Option<u64>,
        head_at: usize,
    ) -> Result<TextBytes<'a>, DecodeError> {
        let invalid = |_| DecodeError::TextInvalid { at: head_at };
        if let Some(length) = length {
            return std::str::from_utf8(self.take(length)?)
                .map(TextBytes::Utf8)
                .map_err(invalid);
        }
        let chunks = self.chunks(|head| match head {
            Head::Text(length) => length,
            _ => None,
        })?;
        // Each chunk is UTF-8 by itself: a character must not be cut.
        chunks
            .iter()
            .try_for_each(|chunk| std::str::from_utf8(chunk).map(|_| ()))
            .map_err(invalid)?;
        Ok(TextBytes::Chunks(chunks))
    }

    /// Checks the chunks of a string up to the break.
    fn chunks(
        &mut self,
        chunk_length: impl Fn(Head) -> Option<u64>,
    ) -> Result<Chunks<'a>, DecodeError> {
        let start = self.at;
        let mut bytes = 0;
        while !self.take_break() {
            let at = self.at;
            let head = self.head()?;
            let length = chunk_length(head).ok_or(DecodeError::ItemMalformed {
                byte: self.input[at],
                at,
            })?;
            bytes += self.take(length)?.len();
        }
        Ok(Chunks::Many {
            items: &self.input[start..self.at],
            bytes,
        })
    }
}

/// The content of a string, where it stands in the input.
#[derive(Clone, Copy)]
pub enum Chunks<'a> {
    /// In one piece.
    One(&'a [u8]),
    /// In several.
    Many {
        /// The chunks with their heads and the break, already checked.
        items: &'a [u8],
        /// Their content's length together.
        bytes: usize,
    },
}

impl<'a> Chunks<'a> {
    /// Bytes of the whole content.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Many { bytes, .. } => *bytes,
        }
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (one, items) = match self {
            Self::One(bytes) => (Some(*bytes), &[][..]),
            Self::Many { items, .. } => (None, *items),
        };
        let mut reader = Reader::new(items);
        let many = std::iter::from_fn(move || match reader.head() {
            Ok(Head::Bytes(Some(length)) | Head::Text(Some(length))) => reader.take(length).ok(),
            _ => None,
        });
        one.into_iter().chain(many)
    }

    /// The whole content, copied.
    pub fn to_vec(self) -> Vec<u8> {
        if let Self::One(bytes) = self {
            return bytes.to_vec();
        }
        let mut all = Vec::with_capacity(self.len());
        self.iter().for_each(|chunk| all.extend_from_slice(chunk));
        all
    }
}

/// A string where it stands in the input, checked.
#[derive(Clone, Copy)]
pub enum TextBytes<'a> {
    /// UTF-8 in one piece.
    Utf8(&'a str),
    /// UTF-8 or WTF-8.
    Chunks(Chunks<'a>),
}

impl TextBytes<'_> {
    /// Whether it is this string.
    pub(crate) fn is(&self, other: &str) -> bool {
        match self {
            Self::Utf8(string) => *string == other,
            Self::Chunks(chunks) => chunks.iter().flatten().eq(other.as_bytes()),
        }
    }
}
