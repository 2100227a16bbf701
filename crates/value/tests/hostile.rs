//! Bytes that nobody honest wrote: nothing panics, and the check and the decoder say the same of them.

mod common;

use common::{EXTERNALS, value};
use coracle_value::{
    Bounds, DecodeError, Selected, Summary, Text, Value, decode, encode, extract, from_json,
    select, to_json, validate,
};
use proptest::prelude::*;
use proptest::sample::Index;

const BOUNDS: Bounds = Bounds {
    depth_max: 8,
    bytes_max: 4096,
    externals: EXTERNALS,
};

/// What both readers say of the input, and that what they accept is a value like any other.
fn check(input: &[u8]) -> Result<(), TestCaseError> {
    let decoded = decode(input, &BOUNDS);
    let validated = validate(input, &BOUNDS);
    prop_assert_eq!(decoded.as_ref().err(), validated.as_ref().err());
    check_members(input, validated.is_ok())?;
    let mut oracle = minicbor::Decoder::new(input);
    let well_formed = oracle.skip().is_ok() && oracle.position() == input.len();
    match decoded {
        Ok(value) => {
            prop_assert!(well_formed, "accepted what is not CBOR");
            let bytes = encode(&value);
            let bounds = Bounds {
                bytes_max: usize::MAX,
                ..BOUNDS
            };
            prop_assert_eq!(decode(&bytes, &bounds), Ok(value.clone()));
            // An empty map of an error's properties is not written again, so the depth may be less.
            let before = validated.expect("what decode accepts");
            let after = validate(&bytes, &bounds).expect("what encode wrote");
            prop_assert!(after.depth <= before.depth);
            prop_assert_eq!(
                Summary { depth: 0, ..after },
                Summary { depth: 0, ..before }
            );
            let _ = to_json(&value);
        }
        Err(DecodeError::UnexpectedEnd { at }) => {
            prop_assert_eq!(at, input.len());
            prop_assert!(!well_formed, "well-formed, yet said to end early");
        }
        Err(_) => {}
    }
    Ok(())
}

/// That what is cut out of a value is a value, and that nothing is cut out of what is none.
fn check_members(input: &[u8], is_value: bool) -> Result<(), TestCaseError> {
    for path in [&["a"][..], &["0"], &["1", "a"], &["a", "0"], &[]] {
        let selected = select(input, path, &BOUNDS);
        prop_assert_eq!(selected.is_ok(), is_value);
        let extracted = match (selected, extract(input, path, &BOUNDS)) {
            (Ok(Selected::Item(item)), extracted) => {
                prop_assert!(validate(&item, &BOUNDS).is_ok());
                extracted
            }
            (_, extracted) => extracted,
        };
        match extracted {
            Ok(Selected::Item(item)) => prop_assert!(validate(&item, &BOUNDS).is_ok()),
            Ok(Selected::Entangled) => prop_assert!(false, "what was extracted is entangled"),
            Ok(Selected::Missing { index }) => prop_assert!(index < path.len()),
            // References nest deeper, and floats are written wider than they may have been.
            Err(DecodeError::DepthExceeded { .. } | DecodeError::SizeExceeded { .. }) => {}
            Err(_) => prop_assert!(!is_value),
        }
    }
    Ok(())
}

/// Fragments that go on to something more often than random bytes do.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let heads: &[&[u8]] = &[
        b"\x00",
        b"\x20",
        b"\x40",
        b"\x41x",
        b"\x60",
        b"\x61a",
        b"\x80",
        b"\x81",
        b"\x82",
        b"\xa0",
        b"\xa1",
        b"\x9f",
        b"\xbf",
        b"\xff",
        b"\x5f",
        b"\x7f",
        b"\xc1",
        b"\xc2",
        b"\xc3",
        b"\xd8\x1c",
        b"\xd8\x1d",
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
        b"\xfb\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x64name\x60",
        b"\x67message\x60",
        b"\x65stack\x60",
        b"\x65cause",
        b"\x66errors",
        b"\x65props",
        b"\xa2",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xbb\x80\x00\x00\x00\x00\x00\x00\x00",
        b"\x5a\x00\xff\xff\xff",
    ];
    prop::collection::vec(prop::sample::select(heads.to_vec()), 0..24)
        .prop_map(|parts| parts.concat())
}

#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        (any::<Index>(), fragments()).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (any::<Index>(), 1_usize..5).prop_map(|(at, bytes)| Mutation::Remove(at, bytes)),
        (any::<Index>(), 1_usize..9).prop_map(|(at, bytes)| Mutation::Repeat(at, bytes)),
        any::<Index>().prop_map(Mutation::Cut),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let place = |at: &Index| at.index(bytes.len() + 1);
    match mutation {
        Mutation::Flip(at, bits) => {
            let place = place(at);
            bytes
                .iter_mut()
                .skip(place)
                .take(1)
                .for_each(|byte| *byte ^= bits);
        }
        Mutation::Insert(at, more) => {
            let place = place(at);
            bytes.splice(place..place, more.iter().copied());
        }
        Mutation::Remove(at, count) => {
            let place = place(at);
            bytes.drain(place..bytes.len().min(place + count));
        }
        Mutation::Repeat(at, count) => {
            let place = place(at);
            bytes.extend_from_within(place..bytes.len().min(place + count));
        }
        Mutation::Cut(at) => bytes.truncate(place(at)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn random_bytes_do_no_harm(input in prop::collection::vec(any::<u8>(), 0..64)) {
        check(&input)?;
    }

    #[test]
    fn fragments_of_values_do_no_harm(input in fragments()) {
        check(&input)?;
    }

    #[test]
    fn damaged_values_do_no_harm(value in value(), mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut bytes = encode(&value);
        mutations.iter().for_each(|mutation| mutate(&mut bytes, mutation));
        check(&bytes)?;
    }

    #[test]
    fn a_value_that_is_cut_short_is_refused(value in value(), at: Index) {
        let bytes = encode(&value);
        let cut = &bytes[..at.index(bytes.len())];
        let refused = decode(cut, &Bounds { depth_max: 512, ..BOUNDS }).is_err();
        prop_assert!(refused);
    }

    #[test]
    fn a_value_with_more_behind_it_is_refused(value in value(), more: u8) {
        let mut bytes = encode(&value);
        let at = bytes.len();
        bytes.push(more);
        let refused = decode(&bytes, &Bounds { depth_max: 512, bytes_max: usize::MAX, ..BOUNDS });
        prop_assert_eq!(refused, Err(DecodeError::TrailingBytes { at }));
    }

    #[test]
    fn random_json_does_no_harm(json in "[\\[\\]{}:,\"\\\\ua0-9eE+. -]{0,40}") {
        let _ = from_json(&json, &BOUNDS);
    }
}

#[test]
fn an_input_that_is_too_long_is_refused_before_it_is_read() {
    let bytes = encode(&Value::from("x".repeat(100)));
    let bounds = Bounds {
        bytes_max: bytes.len() - 1,
        ..BOUNDS
    };
    let refused = DecodeError::SizeExceeded {
        bytes: bytes.len(),
        bytes_max: bytes.len() - 1,
    };
    assert_eq!(decode(&bytes, &bounds), Err(refused.clone()));
    assert_eq!(validate(&bytes, &bounds), Err(refused));
}

#[test]
fn a_regexp_whose_source_is_no_text_is_refused_as_such() {
    // The bytes are read as the head of a long text by a reader that goes on within them.
    let bytes = b"\xd9\x52\x4a\x82\x41\x70\x61a";
    assert_eq!(
        validate(bytes, &BOUNDS),
        Err(DecodeError::TagContentInvalid {
            tag: 21066,
            expected: "an array of two strings",
            at: 3,
        })
    );
}

#[test]
fn json_that_references_make_long_is_refused() {
    // Each object holds the one before it ten times: a kilobyte stands for 10^20 brackets.
    let mut elements = vec![Value::Shared(Box::new(Value::Array(vec![])))];
    for index in 0..20 {
        elements.push(Value::Shared(Box::new(Value::Array(vec![
            Value::Reference(
                index
            );
            10
        ]))));
    }
    let refused = to_json(&Value::Array(elements)).expect_err("too long");
    assert_eq!(
        refused.to_string(),
        "json text is longer than the 33554432 bytes allowed"
    );
}

#[test]
fn json_that_references_make_slow_is_refused() {
    // Ten thousand references to an object with ten thousand properties, of which none is written.
    let nothing = vec![(Text::from("a"), Value::Undefined); 10_000];
    let mut elements = vec![Value::Shared(Box::new(Value::Object(nothing)))];
    elements.resize(10_000, Value::Reference(0));
    assert!(to_json(&Value::Array(elements)).is_err());
}
