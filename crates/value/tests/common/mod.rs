//! Generators that several tests use.

use coracle_value::{BigInt, ErrorValue, Interface, Text, TypedArrayKind, Value};
use proptest::prelude::*;

/// Entries in the table of externals that generated values refer to.
pub(crate) const EXTERNALS: u32 = 4;

/// Any value that keeps the rules of [`Value`].
pub(crate) fn value() -> impl Strategy<Value = Value> {
    tree().prop_map(|mut tree| {
        let mut shared = 0;
        keep_rules(&mut tree, false, &mut shared);
        tree
    })
}

/// Strings rich in lone surrogates, surrogate pairs and empty strings.
pub(crate) fn text() -> impl Strategy<Value = Text> {
    let unit = prop_oneof![
        3 => 0x20_u16..0x7f,
        1 => 0xd7f0_u16..0xe010,
        1 => any::<u16>(),
    ];
    prop::collection::vec(unit, 0..6).prop_map(|units| Text::from_utf16(&units))
}

pub(crate) fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        any::<u64>().prop_map(f64::from_bits),
        any::<i64>().prop_map(|integer| integer as f64),
        (-1000_i32..1000).prop_map(f64::from),
        prop::sample::select(vec![
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            9_007_199_254_740_991.0,
            9_007_199_254_740_992.0
        ]),
    ]
}

/// Milliseconds of every date that JavaScript has, the extremes among them.
pub(crate) fn date() -> impl Strategy<Value = f64> {
    const MAX: i64 = 8_640_000_000_000_000;
    prop_oneof![
        -MAX..=MAX,
        MAX - 9999..=MAX,
        -MAX..=9999 - MAX,
        4_398_000_000_000_000_i64..4_504_000_000_000_000,
        -9999_i64..9999
    ]
    .prop_map(|ms| ms as f64)
}

fn primitive() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(negative, magnitude)| Value::BigInt(BigInt::new(negative, &magnitude))),
        text().prop_map(Value::String),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..24);
    prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        Just(Value::Hole),
        primitive(),
        primitive().prop_map(|value| Value::Boxed(Box::new(value))),
        date().prop_map(Value::Date),
        Just(Value::Date(f64::NAN)),
        (text(), text()).prop_map(|(source, flags)| Value::RegExp { source, flags }),
        bytes().prop_map(Value::ArrayBuffer),
        bytes().prop_map(Value::DataView),
        (prop::sample::select(TypedArrayKind::ALL.to_vec()), bytes()).prop_map(
            |(kind, mut bytes)| {
                bytes.truncate(bytes.len() / kind.element_bytes() * kind.element_bytes());
                Value::TypedArray { kind, bytes }
            }
        ),
        any::<u32>().prop_map(Value::Reference),
        (0..EXTERNALS).prop_map(Value::External),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(6, 64, 5, |inner| {
        let members = || prop::collection::vec(inner.clone(), 0..5);
        let properties = || prop::collection::vec((text(), inner.clone()), 0..5);
        prop_oneof![
            members().prop_map(Value::Array),
            members().prop_map(Value::Set),
            properties().prop_map(Value::Object),
            prop::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Value::Map),
            members().prop_map(|members| {
                Value::Interface(Interface::Headers, Box::new(Value::Array(members)))
            }),
            (
                prop::sample::select(vec![
                    Interface::Request,
                    Interface::Response,
                    Interface::Blob
                ]),
                properties()
            )
                .prop_map(|(interface, fields)| {
                    Value::Interface(interface, Box::new(Value::Object(fields)))
                }),
            inner
                .clone()
                .prop_map(|value| Value::Shared(Box::new(value))),
            (
                text(),
                prop::option::of(text()),
                [
                    prop::option::of(inner.clone()),
                    prop::option::of(inner.clone())
                ],
                properties()
            )
                .prop_map(|(message, stack, [cause, errors], props)| {
                    let error = ErrorValue::new("TypeError", message);
                    ErrorValue {
                        stack,
                        cause,
                        errors,
                        props,
                        ..error
                    }
                    .into()
                }),
        ]
    })
}

/// Puts right what the generator can't: holes, marks and references are where they may be.
fn keep_rules(value: &mut Value, in_array: bool, shared: &mut u32) {
    match value {
        Value::Hole if !in_array => *value = Value::Undefined,
        Value::Reference(_) if *shared == 0 => *value = Value::Null,
        Value::Reference(index) => *index %= *shared,
        Value::Shared(inner) if !has_identity(inner) => {
            *value = std::mem::take(inner);
            keep_rules(value, in_array, shared);
        }
        Value::Shared(inner) => {
            *shared += 1;
            keep_rules(inner, false, shared);
        }
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|value| keep_rules(value, true, shared)),
        Value::Set(elements) => elements
            .iter_mut()
            .for_each(|value| keep_rules(value, false, shared)),
        Value::Object(properties) => properties
            .iter_mut()
            .for_each(|(_, value)| keep_rules(value, false, shared)),
        Value::Map(entries) => entries.iter_mut().for_each(|(key, value)| {
            keep_rules(key, false, shared);
            keep_rules(value, false, shared);
        }),
        Value::Interface(_, content) => match &mut **content {
            Value::Array(elements) => elements
                .iter_mut()
                .for_each(|value| keep_rules(value, false, shared)),
            content => keep_rules(content, false, shared),
        },
        Value::Error(error) => {
            error
                .cause
                .iter_mut()
                .for_each(|value| keep_rules(value, false, shared));
            error
                .errors
                .iter_mut()
                .for_each(|value| keep_rules(value, false, shared));
            error
                .props
                .iter_mut()
                .for_each(|(_, value)| keep_rules(value, false, shared));
        }
        _ => {}
    }
}

fn has_identity(value: &Value) -> bool {
    !matches!(
        value,
        Value::Undefined
            | Value::Null
            | Value::Hole
            | Value::Bool(_)
            | Value::Number(_)
            | Value::BigInt(_)
            | Value::String(_)
            | Value::Shared(_)
            | Value::Reference(_)
    )
}
