//! Values that keep the rules of [`Value`], and bytes that keep none.

use super::EXTERNALS;
use crate::Source;
use coracle_value::{BigInt, ErrorValue, Interface, Text, TypedArrayKind, Value, encode};

/// Makes one value.
pub(super) struct Values<'s, 'b> {
    source: &'s mut Source<'b>,
    /// Shared objects so far, in the order of encoding.
    shared: u32,
    /// Values that may still be made: nested without it, a generator would not come to an end.
    left: usize,
}

impl<'s, 'b> Values<'s, 'b> {
    pub(super) fn new(source: &'s mut Source<'b>) -> Self {
        let left = source.pick(&[1, 8, 60, 300]);
        Self {
            source,
            shared: 0,
            left,
        }
    }

    pub(super) fn value(&mut self) -> Value {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || self.source.once_in(3) {
            return self.primitive();
        }
        match self.source.below(12) {
            0 if self.shared > 0 => {
                Value::Reference(self.source.below(self.shared as usize) as u32)
            }
            0 | 1 => {
                self.shared += 1;
                Value::Shared(Box::new(self.object()))
            }
            _ => self.object(),
        }
    }

    fn primitive(&mut self) -> Value {
        match self.source.below(7) {
            0 => Value::Undefined,
            1 => Value::Null,
            2 => Value::Bool(self.source.once_in(2)),
            3 | 4 => Value::Number(self.number()),
            5 => {
                let negative = self.source.once_in(2);
                Value::BigInt(BigInt::new(negative, &self.source.bytes(20)))
            }
            _ => Value::String(self.text()),
        }
    }

    /// What has an identity.
    fn object(&mut self) -> Value {
        match self.source.below(17) {
            0..=2 => Value::Array(self.members(true)),
            3..=5 => Value::Object(self.properties()),
            6 => {
                let count = self.source.below(4);
                let entry = |this: &mut Self| (this.value(), this.value());
                Value::Map((0..count).map(|_| entry(self)).collect())
            }
            7 => Value::Set(self.members(false)),
            8 => Value::Date(match self.source.below(3) {
                0 => f64::NAN,
                1 => 8.64e15,
                _ => (self.source.number() as i64 % 8_640_000_000_000_000) as f64,
            }),
            9 => Value::RegExp {
                source: self.text(),
                flags: self.text(),
            },
            10 => Value::ArrayBuffer(self.source.bytes(24)),
            11 => Value::DataView(self.source.bytes(24)),
            12 => {
                let kind = self.source.pick(&TypedArrayKind::ALL);
                let mut bytes = self.source.bytes(24);
                bytes.truncate(bytes.len() / kind.element_bytes() * kind.element_bytes());
                Value::TypedArray { kind, bytes }
            }
            13 => self.error(),
            14 => Value::Boxed(Box::new(match self.source.below(4) {
                0 => Value::Bool(true),
                1 => Value::Number(self.number()),
                2 => Value::BigInt(BigInt::new(false, &self.source.bytes(9))),
                _ => Value::String(self.text()),
            })),
            15 => match self.source.below(4) {
                0 => Value::Interface(
                    Interface::Headers,
                    Box::new(Value::Array(self.members(false))),
                ),
                choice => {
                    let all = [Interface::Request, Interface::Response, Interface::Blob];
                    Value::Interface(all[choice - 1], Box::new(Value::Object(self.properties())))
                }
            },
            _ => Value::External(self.source.below(EXTERNALS as usize) as u32),
        }
    }

    fn members(&mut self, holes: bool) -> Vec<Value> {
        let count = self.source.below(6);
        let member = |this: &mut Self| match holes && this.source.once_in(8) {
            true => Value::Hole,
            false => this.value(),
        };
        (0..count).map(|_| member(self)).collect()
    }

    fn properties(&mut self) -> Vec<(Text, Value)> {
        let count = self.source.below(6);
        (0..count).map(|_| (self.text(), self.value())).collect()
    }

    fn error(&mut self) -> Value {
        let mut error = ErrorValue::new("TypeError", self.text());
        error.stack = self.source.once_in(2).then(|| self.text());
        error.cause = self.source.once_in(2).then(|| self.value());
        error.errors = self.source.once_in(3).then(|| self.value());
        error.props = self.properties();
        error.into()
    }

    fn number(&mut self) -> f64 {
        match self.source.below(4) {
            0 => f64::from_bits(self.source.number()),
            1 => self.source.number() as i64 as f64,
            2 => self.source.below(2_000) as f64 - 1_000.0,
            _ => self.source.pick(&[
                0.0,
                -0.0,
                f64::NAN,
                f64::INFINITY,
                9_007_199_254_740_991.0,
                9_007_199_254_740_992.0,
                5e-324,
                1e21,
            ]),
        }
    }

    /// Rich in lone surrogates, pairs of them, names that objects order by, and empty strings.
    fn text(&mut self) -> Text {
        if self.source.once_in(4) {
            return self
                .source
                .pick(&["", "0", "10", "a", "__proto__", "toJSON"])
                .into();
        }
        let count = self.source.below(6);
        let units: Vec<u16> = (0..count)
            .map(|_| match self.source.below(5) {
                0 => 0xd7f0 + self.source.below(0x820) as u16,
                1 => self.source.number() as u16,
                _ => 0x20 + self.source.below(0x5f) as u16,
            })
            .collect();
        Text::from_utf16(&units)
    }
}

/// Heads, tags and names that go on to something more often than random bytes do.
const FRAGMENTS: &[&[u8]] = &[
    b"\x00",
    b"\x20",
    b"\x41x",
    b"\x5f",
    b"\x60",
    b"\x61a",
    b"\x7f",
    b"\x80",
    b"\x82",
    b"\x9f",
    b"\xa1",
    b"\xa2",
    b"\xbf",
    b"\xc1",
    b"\xc2",
    b"\xc3",
    b"\xd8\x1c",
    b"\xd8\x1d",
    b"\xd8\x1d\x05",
    b"\xd8\x40",
    b"\xd8\x45",
    b"\xd8\x56",
    b"\xd9\x01\x02",
    b"\xd9\x01\x03",
    b"\xd9\x01\x11",
    b"\xd9\x52\x4a",
    b"\xd9\x9c\x40",
    b"\xd9\x9c\x41",
    b"\xd9\x9c\x42",
    b"\xd9\x9c\x43",
    b"\xd9\x9c\x44",
    b"\xd9\x9c\x45",
    b"\xf4",
    b"\xf6",
    b"\xf7",
    b"\xf8\x20",
    b"\xf9\x7e\x00",
    b"\xfa\x7f\xc0\x00\x00",
    b"\xff",
    b"\x64name\x60",
    b"\x67message\x60",
    b"\x65stack\x60",
    b"\x65cause",
    b"\x66errors",
    b"\x65props",
    b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xbb\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\x5a\x00\xff\xff\xff",
];

/// Bytes that may be no value: fragments, a value that was damaged, or anything.
pub(super) fn hostile(source: &mut Source<'_>) -> Vec<u8> {
    match source.below(4) {
        0 => source.bytes(200),
        1 => fragments(source, 40),
        _ => {
            let mut bytes = encode(&Values::new(source).value());
            for _ in 0..1 + source.below(4) {
                mutate(source, &mut bytes);
            }
            bytes
        }
    }
}

fn fragments(source: &mut Source<'_>, count_max: usize) -> Vec<u8> {
    let count = source.below(count_max);
    (0..count)
        .flat_map(|_| source.pick(FRAGMENTS))
        .copied()
        .collect()
}

fn mutate(source: &mut Source<'_>, bytes: &mut Vec<u8>) {
    let at = source.below(bytes.len() + 1);
    match source.below(5) {
        0 if at < bytes.len() => bytes[at] ^= 1 << source.below(8),
        1 => {
            let inserted = fragments(source, 6);
            bytes.splice(at..at, inserted);
        }
        2 => {
            let end = bytes.len().min(at + 1 + source.below(5));
            bytes.drain(at..end);
        }
        3 => {
            let end = bytes.len().min(at + 1 + source.below(9));
            let again = bytes[at..end].repeat(1 + source.below(600));
            bytes.splice(at..at, again);
        }
        _ => bytes.truncate(at),
    }
}
