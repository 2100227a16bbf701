//! What is encoded is decoded as it was, however an honest encoder chose to write it.

mod common;

use std::collections::BTreeSet;

use common::{EXTERNALS, date, number, value};
use coracle_value::{Bounds, Value, decode, encode, validate};
use proptest::prelude::*;

const BOUNDS: Bounds = Bounds {
    depth_max: 512,
    bytes_max: 32 << 20,
    externals: EXTERNALS,
};

proptest! {
    #[test]
    fn a_value_survives(value in value()) {
        let bytes = encode(&value);
        prop_assert_eq!(decode(&bytes, &BOUNDS), Ok(value.clone()));
    }

    #[test]
    fn a_value_survives_indefinite_lengths_and_wide_heads(value in value()) {
        let bytes = encode(&value);
        let mut loose = Vec::new();
        let rest = loosen(&bytes, &mut loose);
        prop_assert!(rest.is_empty());
        prop_assert_eq!(decode(&loose, &BOUNDS), Ok(value));
        prop_assert_eq!(validate(&loose, &BOUNDS), validate(&bytes, &BOUNDS));
    }

    #[test]
    fn the_summary_says_what_is_in_the_value(value in value()) {
        let summary = validate(&encode(&value), &BOUNDS).expect("valid");
        let mut seen = Seen::default();
        seen.look(&value);
        prop_assert_eq!(summary.shared, seen.shared);
        prop_assert_eq!(summary.externals_used, seen.externals.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn another_implementation_finds_our_bytes_well_formed(value in value()) {
        let bytes = encode(&value);
        let mut decoder = minicbor::Decoder::new(&bytes);
        prop_assert!(decoder.skip().is_ok());
        prop_assert_eq!(decoder.position(), bytes.len());
    }

    #[test]
    fn every_number_survives(number in number()) {
        prop_assert_eq!(decode(&encode(&Value::Number(number)), &BOUNDS), Ok(Value::Number(number)));
    }

    #[test]
    fn every_millisecond_survives(date in date()) {
        prop_assert_eq!(decode(&encode(&Value::Date(date)), &BOUNDS), Ok(Value::Date(date)));
    }
}

#[derive(Default)]
struct Seen {
    shared: u32,
    externals: BTreeSet<u32>,
}

impl Seen {
    fn look(&mut self, value: &Value) {
        match value {
            Value::External(index) => _ = self.externals.insert(*index),
            Value::Shared(inner) => {
                self.shared += 1;
                self.look(inner);
            }
            Value::Array(elements) | Value::Set(elements) => {
                elements.iter().for_each(|value| self.look(value))
            }
            Value::Object(properties) => properties.iter().for_each(|(_, value)| self.look(value)),
            Value::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.look(key);
                self.look(value);
            }),
            Value::Interface(_, content) => self.look(content),
            Value::Error(error) => {
                error
                    .cause
                    .iter()
                    .chain(&error.errors)
                    .for_each(|value| self.look(value));
                error.props.iter().for_each(|(_, value)| self.look(value));
            }
            _ => {}
        }
    }
}

/// Writes an item anew in the most roundabout form that CBOR allows, and returns what follows it.
fn loosen<'a>(input: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let (major, info) = (input[0] >> 5, input[0] & 0x1f);
    let extra = match info {
        24..=27 => 1 << (info - 24),
        _ => 0,
    };
    let (head, mut rest) = input.split_at(1 + extra);
    let argument = head[1..]
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
    let argument = if extra == 0 {
        u64::from(info)
    } else {
        argument
    };
    let wide =
        |major: u8, argument: u64| [&[(major << 5) | 27][..], &argument.to_be_bytes()].concat();
    match major {
        0 | 1 => out.extend(wide(major, argument)),
        2 | 3 => {
            let (mut content, after) = rest.split_at(argument as usize);
            out.push((major << 5) | 31);
            while !content.is_empty() {
                let is_continuation =
                    |at: usize| content.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
                let length = (1..)
                    .find(|at| major == 2 || !is_continuation(*at))
                    .unwrap_or(1);
                out.extend(wide(major, length as u64));
                out.extend(&content[..length]);
                content = &content[length..];
            }
            out.push(0xff);
            rest = after;
        }
        4 | 5 => {
            out.push((major << 5) | 31);
            for _ in 0..argument * u64::from(major - 3) {
                rest = loosen(rest, out);
            }
            out.push(0xff);
        }
        6 => {
            out.extend(wide(major, argument));
            rest = loosen(rest, out);
        }
        _ => out.extend(head),
    }
    rest
}
