//! The bytes of a value while they are being written: CBOR heads, strings, numbers, and the marks on shared objects.
//!
//! Writes what `coracle_value::encode` would: equal values have equal bytes. Which objects are shared is known only at
//! the end, so a reference leaves room, and the marks are put in when the value is complete.

use super::EncodeError;
use coracle_value::{SAFE_INTEGER_MAX, tag};

type Outcome = Result<(), EncodeError>;

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
const CANONICAL_NAN: u64 = 0x7ff8_0000_0000_0000;

/// Bytes of a head with this argument.
fn head_bytes(argument: u64) -> usize {
    match argument {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

pub(super) struct Output {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Where a reference stands, and where the object begins that it means.
    references: Vec<(usize, usize)>,
}

impl Output {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(64),
            bytes_max,
            references: Vec::new(),
        }
    }

    /// Where the next item begins.
    pub(super) fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Refuses before memory is taken for what is too large anyway.
    pub(super) fn reserve(&mut self, more: usize) -> Outcome {
        let size = self.bytes.len().saturating_add(more);
        if size > self.bytes_max {
            return Err(EncodeError::TooLarge(size));
        }
        Ok(())
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

    pub(super) fn undefined(&mut self) -> Outcome {
        self.simple(SIMPLE_UNDEFINED)
    }

    pub(super) fn null(&mut self) -> Outcome {
        self.simple(SIMPLE_NULL)
    }

    pub(super) fn bool(&mut self, bool: bool) -> Outcome {
        self.simple(SIMPLE_FALSE + u8::from(bool))
    }

    fn simple(&mut self, byte: u8) -> Outcome {
        self.reserve(1)?;
        self.bytes.push(byte);
        Ok(())
    }

    pub(super) fn tag(&mut self, tag: u64) -> Outcome {
        self.reserve(head_bytes(tag))?;
        self.head(TAG, tag);
        Ok(())
    }

    pub(super) fn number(&mut self, number: f64) -> Outcome {
        let is_integer = number.trunc() == number && number.abs() <= SAFE_INTEGER_MAX as f64;
        if !is_integer || (number == 0.0 && number.is_sign_negative()) {
            // One NaN: its payload would tell engines apart.
            let bits = if number.is_nan() {
                CANONICAL_NAN
            } else {
                number.to_bits()
            };
            self.reserve(1 + size_of_val(&bits))?;
            self.bytes.push(FLOAT_64);
            self.bytes.extend(bits.to_be_bytes());
            return Ok(());
        }
        let (major_type, argument) = if number < 0.0 {
            (NEGATIVE, (-number) as u64 - 1)
        } else {
            (UNSIGNED, number as u64)
        };
        self.reserve(head_bytes(argument))?;
        self.head(major_type, argument);
        Ok(())
    }

    pub(super) fn byte_string(&mut self, bytes: &[u8]) -> Outcome {
        self.reserve(bytes.len().saturating_add(head_bytes(bytes.len() as u64)))?;
        self.head(BYTES, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// A string in UTF-8, or in WTF-8 where it has lone surrogates.
    pub(super) fn text(&mut self, bytes: &[u8]) -> Outcome {
        if std::str::from_utf8(bytes).is_err() {
            self.tag(tag::WTF8)?;
            return self.byte_string(bytes);
        }
        self.reserve(bytes.len().saturating_add(head_bytes(bytes.len() as u64)))?;
        self.head(TEXT, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// A bigint by sign and hexadecimal digits.
    pub(super) fn bigint(&mut self, negative: bool, digits: &[u8]) -> Outcome {
        self.reserve(digits.len() / 2)?;
        let nibble = |digit: u8| (digit as char).to_digit(16).unwrap_or_default() as u8;
        let (odd, pairs) = digits.split_at(digits.len() % 2);
        let mut magnitude: Vec<u8> = odd.iter().copied().map(nibble).collect();
        magnitude.extend(
            pairs
                .chunks_exact(2)
                .map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])),
        );
        if negative {
            // Tag 3 holds -1 - n.
            for byte in magnitude.iter_mut().rev() {
                let (less, borrow) = byte.overflowing_sub(1);
                *byte = less;
                if !borrow {
                    break;
                }
            }
        }
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        self.tag(if negative {
            tag::BIGINT_NEGATIVE
        } else {
            tag::BIGINT_POSITIVE
        })?;
        self.byte_string(&magnitude[zeros..])
    }

    /// The head of an array; an item takes a byte at least.
    pub(super) fn array(&mut self, items: usize) -> Outcome {
        self.reserve(items.saturating_add(head_bytes(items as u64)))?;
        self.head(ARRAY, items as u64);
        Ok(())
    }

    /// The head of a map; an entry takes two bytes at least.
    pub(super) fn map(&mut self, entries: usize) -> Outcome {
        let least = entries.saturating_mul(2);
        self.reserve(least.saturating_add(head_bytes(entries as u64)))?;
        self.head(MAP, entries as u64);
        Ok(())
    }

    /// A reference into the table of externals.
    pub(super) fn external(&mut self, index: usize) -> Outcome {
        self.tag(tag::EXTERNAL)?;
        self.reserve(head_bytes(index as u64))?;
        self.head(UNSIGNED, index as u64);
        Ok(())
    }

    pub(super) fn hole(&mut self) -> Outcome {
        self.tag(tag::HOLE)?;
        self.null()
    }

    /// Room for a reference to the object that begins at `start`. It takes no bytes before the end.
    pub(super) fn reference(&mut self, start: usize) -> Outcome {
        self.reserve(head_bytes(tag::REFERENCE) + 1)?;
        self.references.push((self.bytes.len(), start));
        // One byte, so that no two references stand at the same place.
        self.bytes.push(0);
        Ok(())
    }

    /// The bytes, with shared objects marked and references numbered.
    pub(super) fn finished(mut self) -> Vec<u8> {
        if self.references.is_empty() {
            return self.bytes;
        }
        let mut starts: Vec<usize> = self.references.iter().map(|(_, start)| *start).collect();
        starts.sort_unstable();
        starts.dedup();
        let draft = std::mem::take(&mut self.bytes);
        let references = std::mem::take(&mut self.references);
        self.bytes.reserve(draft.len() + 2 * starts.len());
        let (mut copied, mut marked) = (0, 0);
        let mut mark_until = |output: &mut Self, copied: &mut usize, end: usize| {
            while let Some(start) = starts.get(marked).filter(|start| **start < end) {
                output.bytes.extend_from_slice(&draft[*copied..*start]);
                output.head(TAG, tag::SHARED);
                (*copied, marked) = (*start, marked + 1);
            }
            output.bytes.extend_from_slice(&draft[*copied..end]);
            *copied = end;
        };
        // In order of position, as they were written.
        for (position, start) in references {
            mark_until(&mut self, &mut copied, position);
            let number = starts.binary_search(&start).unwrap_or_default();
            self.head(TAG, tag::REFERENCE);
            self.head(UNSIGNED, number as u64);
            copied += 1;
        }
        mark_until(&mut self, &mut copied, draft.len());
        self.bytes
    }
}
