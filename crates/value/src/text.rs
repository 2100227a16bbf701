//! A JavaScript string: UTF-8 in the normal case, WTF-8 where it holds lone surrogates.
//!
//! Owns the rule that one string has one spelling: text that is valid UTF-8 is never kept as WTF-8. Everything that
//! compares, hashes or encodes strings relies on it.

use std::borrow::Cow;
use std::fmt;

use crate::wtf8::{self, Piece, Pieces};

/// A JavaScript string.
///
/// Equality is that of JavaScript: the same UTF-16 units. The order is that of code points, which differs from
/// JavaScript's `<` for surrogates only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Utf8(String),
    /// Not valid UTF-8, or it would be the other variant. Boxed, so that a `Text` is no larger than a `String`.
    Wtf8(Box<[u8]>),
}

/// The bytes are not WTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes of text are not valid WTF-8")]
pub struct Wtf8Invalid {
    /// How many bytes were given.
    pub bytes: usize,
}

impl Text {
    /// The empty string.
    pub const fn new() -> Self {
        Self(Repr::Utf8(String::new()))
    }

    /// Takes WTF-8; a surrogate pair that is not written as one code point is refused.
    pub fn from_wtf8(bytes: Vec<u8>) -> Result<Self, Wtf8Invalid> {
        let text = Self::from_wtf8_checked(bytes);
        match &text.0 {
            Repr::Wtf8(bytes) if !wtf8::is_wtf8(bytes) => Err(Wtf8Invalid { bytes: bytes.len() }),
            _ => Ok(text),
        }
    }

    /// Takes bytes that the caller knows to be WTF-8.
    pub(crate) fn from_wtf8_checked(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(string) => Self(Repr::Utf8(string)),
            Err(error) => Self(Repr::Wtf8(error.into_bytes().into_boxed_slice())),
        }
    }

    /// Takes the UTF-16 units of a JavaScript string.
    pub fn from_utf16(units: &[u16]) -> Self {
        let mut bytes = Vec::with_capacity(units.len());
        for decoded in char::decode_utf16(units.iter().copied()) {
            match decoded {
                Ok(character) => {
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes())
                }
                Err(error) => wtf8::push_surrogate(&mut bytes, error.unpaired_surrogate()),
            }
        }
        Self::from_wtf8_checked(bytes)
    }

    /// The string, unless it holds lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Utf8(string) => Some(string),
            Repr::Wtf8(_) => None,
        }
    }

    /// The string with U+FFFD in the place of each lone surrogate.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Utf8(string) => Cow::Borrowed(string),
            Repr::Wtf8(_) => Cow::Owned(self.pieces().map(lossy).collect()),
        }
    }

    /// The string with U+FFFD in the place of each lone surrogate, without a copy where there is none.
    pub fn into_string_lossy(self) -> String {
        match self.0 {
            Repr::Utf8(string) => string,
            Repr::Wtf8(_) => self.pieces().map(lossy).collect(),
        }
    }

    /// The bytes: WTF-8, and UTF-8 exactly where [`as_str`](Self::as_str) is some.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Utf8(string) => string.as_bytes(),
            Repr::Wtf8(bytes) => bytes,
        }
    }

    /// The UTF-16 units of the JavaScript string.
    pub fn to_utf16(&self) -> Vec<u16> {
        let mut units = Vec::with_capacity(self.as_bytes().len());
        for piece in self.pieces() {
            match piece {
                Piece::Str(text) => units.extend(text.encode_utf16()),
                Piece::Surrogate(unit) => units.push(unit),
            }
        }
        units
    }

    /// Whether it is the empty string.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    pub(crate) fn pieces(&self) -> Pieces<'_> {
        Pieces::new(self.as_bytes())
    }
}

fn lossy(piece: Piece<'_>) -> &str {
    match piece {
        Piece::Str(text) => text,
        Piece::Surrogate(_) => "\u{fffd}",
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&str> for Text {
    fn from(string: &str) -> Self {
        Self(Repr::Utf8(string.to_owned()))
    }
}

impl From<String> for Text {
    fn from(string: String) -> Self {
        Self(Repr::Utf8(string))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

/// Lossy, as [`Text::to_string_lossy`].
impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_string_lossy())
    }
}

/// As a string literal, lone surrogates as `\u{d800}`.
impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("\"")?;
        for piece in self.pieces() {
            match piece {
                Piece::Str(text) => write!(formatter, "{}", text.escape_debug())?,
                Piece::Surrogate(unit) => write!(formatter, "\\u{{{unit:x}}}")?,
            }
        }
        formatter.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_small_as_a_string() {
        assert_eq!(size_of::<Text>(), size_of::<String>());
    }

    #[test]
    fn valid_utf8_is_never_kept_as_wtf8() {
        let text = Text::from_wtf8("é".into()).expect("valid");
        assert_eq!(text.as_str(), Some("é"));
        assert_eq!(text, Text::from("é"));
    }

    #[test]
    fn utf16_round_trips_with_lone_surrogates() {
        for units in [
            &[][..],
            &[0x61, 0xd800],
            &[0xdc00, 0xd83d, 0xde00, 0xd83d],
            &[0xd83d, 0xde00],
        ] {
            assert_eq!(Text::from_utf16(units).to_utf16(), units);
        }
        assert_eq!(Text::from_utf16(&[0xd83d, 0xde00]).as_str(), Some("😀"));
    }

    #[test]
    fn lone_surrogates_show_as_replacement_characters() {
        let text = Text::from_utf16(&[0x61, 0xd800, 0x62]);
        assert_eq!(text.as_str(), None);
        assert_eq!(text.to_string(), "a\u{fffd}b");
        assert_eq!(text.clone().into_string_lossy(), "a\u{fffd}b");
        assert_eq!(format!("{text:?}"), r#""a\u{d800}b""#);
    }

    #[test]
    fn what_is_not_wtf8_is_refused() {
        assert_eq!(Text::from_wtf8(vec![0xff]), Err(Wtf8Invalid { bytes: 1 }));
        assert!(Text::from_wtf8(b"\xed\xa0\x80\xed\xb0\x80".to_vec()).is_err());
    }
}
