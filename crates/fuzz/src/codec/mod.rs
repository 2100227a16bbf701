//! The value codec: what is written is read as it was, and of bytes that nobody honest wrote all readers say the same.

mod generate;

use crate::{Reached, Source};
use coracle_value::{
    Bounds, DecodeError, Selected, Summary, Text, Value, decode, encode, extract, from_json,
    select, to_json, validate,
};
use generate::Values;

pub(crate) const REACHES: &[&str] = &[
    "round trip",
    "json round trip",
    "no json",
    "damaged and accepted",
    "selected",
    "refused: UnexpectedEnd",
    "refused: TrailingBytes",
    "refused: DepthExceeded",
    "refused: ItemMalformed",
    "refused: UnexpectedBreak",
    "refused: UnknownSimple",
    "refused: UnknownTag",
    "refused: TagContentInvalid",
    "refused: TextInvalid",
    "refused: KeyInvalid",
    "refused: HoleMisplaced",
    "refused: ErrorField",
    "refused: ReferenceUnknown",
    "refused: ExternalOutOfRange",
];

/// Entries in the table of externals that values refer to.
const EXTERNALS: u32 = 4;

/// What any honest value keeps to.
const WIDE: Bounds = Bounds {
    depth_max: 512,
    bytes_max: 32 << 20,
    externals: EXTERNALS,
};

/// Memory of a decoded value for each byte of it, as in the codec's own test of memory.
const MEMORY_FACTOR: usize = 160;

pub(crate) fn run(input: &[u8]) -> Reached {
    let mut reached = Reached::default();
    let mut source = Source::new(input);
    round_trip(&Values::new(&mut source).value(), &mut reached);
    let bounds = Bounds {
        depth_max: source.pick(&[1, 4, 8, 512, usize::MAX]),
        bytes_max: source.pick(&[16, 4_096, 1 << 20]),
        externals: source.pick(&[0, EXTERNALS]),
    };
    // As it came, which is what a fuzzer that knows the codec by its branches works on, and as we would damage it.
    judge(input, &bounds, &mut reached);
    judge(&generate::hostile(&mut source), &bounds, &mut reached);
    reached
}

/// A value is decoded as it was encoded, and through JSON it comes to rest.
fn round_trip(value: &Value, reached: &mut Reached) {
    let bytes = encode(value);
    assert_eq!(decode(&bytes, &WIDE).as_ref(), Ok(value));
    reached.note("round trip");
    let Ok(text) = to_json(value) else {
        reached.note("no json");
        return;
    };
    let parsed = from_json(&text, &WIDE).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(to_json(&parsed).as_ref(), Ok(&text));
    reached.note("json round trip");
}

/// What the decoder, the check and the selection say of the bytes, and that what they accept is a value like any other.
fn judge(input: &[u8], bounds: &Bounds, reached: &mut Reached) {
    let decoded = decode(input, bounds);
    let validated = validate(input, bounds);
    assert_eq!(decoded.as_ref().err(), validated.as_ref().err());
    judge_members(input, bounds, validated.is_ok(), reached);
    match decoded {
        Ok(value) => {
            reached.note("damaged and accepted");
            let taken = heap_bytes(&value);
            assert!(
                taken <= MEMORY_FACTOR * input.len() + 4_096,
                "{} bytes became {taken}",
                input.len()
            );
            // There is one form, which is read as the same value.
            let canonical = encode(&value);
            let wide = Bounds {
                bytes_max: usize::MAX,
                ..*bounds
            };
            let again = decode(&canonical, &wide);
            assert_eq!(again.as_ref(), Ok(&value));
            assert_eq!(again.map(|value| encode(&value)).as_ref(), Ok(&canonical));
            // An empty map of an error's properties is not written again, so the depth may be less.
            let before = validated.unwrap_or_default();
            let after = validate(&canonical, &wide).unwrap_or_default();
            assert!(after.depth <= before.depth);
            assert_eq!(
                Summary { depth: 0, ..after },
                Summary { depth: 0, ..before }
            );
            let _ = to_json(&value);
        }
        Err(error) => {
            if let DecodeError::UnexpectedEnd { at } = error {
                assert_eq!(at, input.len());
            }
            let debug = format!("{error:?}");
            let name = debug.split([' ', '{']).next().unwrap_or_default();
            reached.note(format!("refused: {name}"));
        }
    }
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = from_json(text, bounds);
    }
}

/// What is cut out of a value is a value, and nothing is cut out of what is none.
fn judge_members(input: &[u8], bounds: &Bounds, is_value: bool, reached: &mut Reached) {
    for path in [&["a"][..], &["0"], &["1", "a"], &["a", "0"], &[]] {
        let selected = select(input, path, bounds);
        assert_eq!(selected.is_ok(), is_value);
        if let Ok(Selected::Item(item)) = selected {
            assert!(validate(&item, bounds).is_ok());
            reached.note("selected");
        }
        match extract(input, path, bounds) {
            Ok(Selected::Item(item)) => assert!(validate(&item, bounds).is_ok()),
            Ok(Selected::Entangled) => panic!("what was extracted is entangled"),
            Ok(Selected::Missing { index }) => assert!(index < path.len()),
            // References nest deeper, and floats are written wider than they may have been.
            Err(DecodeError::DepthExceeded { .. } | DecodeError::SizeExceeded { .. }) => {}
            Err(_) => assert!(!is_value),
        }
    }
}

/// What the value takes on the heap.
fn heap_bytes(value: &Value) -> usize {
    let text = |text: &Text| text.as_bytes().len();
    let of_vec = |capacity: usize, members: usize| capacity * size_of::<Value>() * members;
    let boxed = |value: &Value| size_of::<Value>() + heap_bytes(value);
    let of_properties = |properties: &Vec<(Text, Value)>| -> usize {
        let members = properties.iter();
        properties.capacity() * size_of::<(Text, Value)>()
            + members
                .map(|(key, value)| text(key) + heap_bytes(value))
                .sum::<usize>()
    };
    match value {
        Value::String(string) => text(string),
        Value::BigInt(bigint) => bigint.magnitude().len(),
        Value::RegExp { source, flags } => text(source) + text(flags),
        Value::Array(all) | Value::Set(all) => {
            of_vec(all.capacity(), 1) + all.iter().map(heap_bytes).sum::<usize>()
        }
        Value::Object(properties) => of_properties(properties),
        Value::Map(entries) => {
            let each = |(key, value): &(Value, Value)| heap_bytes(key) + heap_bytes(value);
            of_vec(entries.capacity(), 2) + entries.iter().map(each).sum::<usize>()
        }
        Value::ArrayBuffer(bytes) | Value::DataView(bytes) | Value::TypedArray { bytes, .. } => {
            bytes.capacity()
        }
        Value::Error(error) => {
            let parts = [&error.cause, &error.errors];
            let parts = parts.into_iter().flatten().map(heap_bytes).sum::<usize>();
            let texts = text(&error.name) + text(&error.message);
            let texts = texts + error.stack.as_ref().map_or(0, text);
            size_of_val(&**error) + parts + texts + of_properties(&error.props)
        }
        Value::Boxed(inner) | Value::Interface(_, inner) | Value::Shared(inner) => boxed(inner),
        Value::Undefined
        | Value::Null
        | Value::Hole
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Date(_)
        | Value::Reference(_)
        | Value::External(_) => 0,
    }
}
