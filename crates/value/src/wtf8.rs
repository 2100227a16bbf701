//! WTF-8: UTF-8 that may also contain lone surrogates, the form in which JavaScript strings lose nothing.
//!
//! Owns the check and the split at surrogates. The check keeps its state between pieces, so that a byte string in
//! chunks needs no copy.

/// Checks a WTF-8 string that arrives in pieces.
#[derive(Default)]
pub(crate) struct Wtf8Check {
    /// Continuation bytes still to come.
    pending: u8,
    /// Bounds of the next continuation byte where the leading byte narrows them (no overlong forms).
    next_min: u8,
    next_max: u8,
    code_point: u32,
    after_lead_surrogate: bool,
}

impl Wtf8Check {
    /// Takes the next piece; false as soon as the string can't be WTF-8.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| self.push_byte(*byte))
    }

    /// Whether the string may end here.
    pub(crate) fn is_complete(&self) -> bool {
        self.pending == 0
    }

    fn push_byte(&mut self, byte: u8) -> bool {
        if self.pending > 0 {
            if !(self.next_min..=self.next_max).contains(&byte) {
                return false;
            }
            (self.next_min, self.next_max) = (0x80, 0xbf);
            self.code_point = (self.code_point << 6) | u32::from(byte & 0x3f);
            self.pending -= 1;
            return self.pending > 0 || self.complete(self.code_point);
        }
        (self.next_min, self.next_max) = match byte {
            0xe0 => (0xa0, 0xbf),
            0xf0 => (0x90, 0xbf),
            0xf4 => (0x80, 0x8f),
            _ => (0x80, 0xbf),
        };
        let (pending, payload) = match byte {
            0x00..=0x7f => return self.complete(u32::from(byte)),
            0xc2..=0xdf => (1, byte & 0x1f),
            0xe0..=0xef => (2, byte & 0x0f),
            0xf0..=0xf4 => (3, byte & 0x07),
            _ => return false,
        };
        self.pending = pending;
        self.code_point = u32::from(payload);
        true
    }

    /// A surrogate pair must be written as one code point, or one string would have two spellings.
    fn complete(&mut self, code_point: u32) -> bool {
        let pair = self.after_lead_surrogate && (0xdc00..=0xdfff).contains(&code_point);
        self.after_lead_surrogate = (0xd800..=0xdbff).contains(&code_point);
        !pair
    }
}

/// Whether the bytes are WTF-8.
pub(crate) fn is_wtf8(bytes: &[u8]) -> bool {
    let mut check = Wtf8Check::default();
    check.push(bytes) && check.is_complete()
}

/// A part of a WTF-8 string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Str(&'a str),
    Surrogate(u16),
}

/// Splits WTF-8 at its lone surrogates.
pub(crate) struct Pieces<'a> {
    rest: &'a [u8],
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(wtf8: &'a [u8]) -> Self {
        Self { rest: wtf8 }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let [0xed, second @ 0xa0..=0xff, third, rest @ ..] = self.rest {
            self.rest = rest;
            let unit = 0xd000 | (u16::from(second & 0x3f) << 6) | u16::from(third & 0x3f);
            return Some(Piece::Surrogate(unit));
        }
        // 0xed is never a continuation byte, so this pattern is the start of a surrogate wherever it stands.
        let surrogate_at = self
            .rest
            .windows(2)
            .position(|pair| pair[0] == 0xed && pair[1] >= 0xa0);
        let (text, rest) = self.rest.split_at(surrogate_at.unwrap_or(self.rest.len()));
        self.rest = rest;
        let text = std::str::from_utf8(text).unwrap_or_default();
        (!text.is_empty()).then_some(Piece::Str(text))
    }
}

/// Appends the three bytes of a lone surrogate.
pub(crate) fn push_surrogate(bytes: &mut Vec<u8>, unit: u16) {
    bytes.extend([
        0xe0 | (unit >> 12) as u8,
        0x80 | ((unit >> 6) & 0x3f) as u8,
        0x80 | (unit & 0x3f) as u8,
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_and_lone_surrogates_pass() {
        for bytes in [
            &b""[..],
            b"a",
            "é€😀\u{d7ff}\u{e000}".as_bytes(),
            b"\xed\xa0\x80",
            b"\xed\xb0\x80\xed\xa0\x80",
        ] {
            assert!(is_wtf8(bytes), "{bytes:02x?}");
        }
    }

    #[test]
    fn pairs_overlong_forms_and_cut_sequences_are_refused() {
        for bytes in [
            &b"\xed\xa0\x80\xed\xb0\x80"[..],
            b"\xc0\x80",
            b"\xe0\x80\x80",
            b"\xf0\x80\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xf5\x80\x80\x80",
            b"\x80",
            b"\xe2\x82",
        ] {
            assert!(!is_wtf8(bytes), "{bytes:02x?}");
        }
    }

    #[test]
    fn the_check_agrees_with_the_standard_library_on_every_two_and_three_byte_string() {
        for first in 0..=0xff {
            for second in 0..=0xff {
                assert_eq!(
                    is_wtf8(&[first, second]),
                    std::str::from_utf8(&[first, second]).is_ok()
                );
                for third in [0x00, 0x7f, 0x80, 0xa0, 0xbf, 0xc0, 0xff] {
                    let bytes = [first, second, third];
                    let surrogate = first == 0xed
                        && (0xa0..=0xbf).contains(&second)
                        && (0x80..=0xbf).contains(&third);
                    assert_eq!(
                        is_wtf8(&bytes),
                        surrogate || std::str::from_utf8(&bytes).is_ok(),
                        "{bytes:02x?}"
                    );
                }
            }
        }
    }

    #[test]
    fn pieces_are_split_at_surrogates() {
        let mut bytes = "a\u{d7ff}".as_bytes().to_vec();
        push_surrogate(&mut bytes, 0xdfff);
        push_surrogate(&mut bytes, 0xd800);
        bytes.extend("é".as_bytes());
        let pieces: Vec<Piece<'_>> = Pieces::new(&bytes).collect();
        assert_eq!(
            pieces,
            [
                Piece::Str("a\u{d7ff}"),
                Piece::Surrogate(0xdfff),
                Piece::Surrogate(0xd800),
                Piece::Str("é")
            ]
        );
    }
}
