//! `schema/value.md` and the codec say the same: each line of its tables of bytes is checked here.
//!
//! The document holds the bytes, this file the values that they stand for, found by the JavaScript in the line.

use std::collections::BTreeMap;

use coracle_value::{
    BigInt, Bounds, ErrorValue, Text, TypedArrayKind, Value, decode, encode, validate,
};

const DOCUMENT: &str = include_str!("../../../schema/value.md");

/// As the document says: the default bounds, and two entries in the table of externals.
const BOUNDS: Bounds = Bounds {
    depth_max: 512,
    bytes_max: 32 << 20,
    externals: 2,
};

/// The lines of the table behind a marker: the two texts in backquotes of each.
fn table(marker: &str) -> Vec<(&'static str, &'static str)> {
    let marker = format!("<!-- vectors: {marker} -->");
    let (_, after) = DOCUMENT.split_once(&marker).expect("the marker");
    let lines = after
        .trim_start()
        .lines()
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    let row = |line: &'static str| {
        let mut cells = line.split('`');
        (
            cells.nth(1).expect("a first cell"),
            cells.nth(1).expect("a second cell"),
        )
    };
    lines.map(row).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    assert!(digits.is_ascii() && digits.len().is_multiple_of(2), "{hex}");
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex"))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shared(value: impl Into<Value>) -> Value {
    Value::Shared(Box::new(value.into()))
}

fn typed(kind: TypedArrayKind, bytes: &[u8]) -> Value {
    Value::TypedArray {
        kind,
        bytes: bytes.into(),
    }
}

fn regexp(source: &str, flags: &str) -> Value {
    Value::RegExp {
        source: source.into(),
        flags: flags.into(),
    }
}

/// The values of the document's JavaScript.
fn values() -> BTreeMap<&'static str, Value> {
    use TypedArrayKind as Kind;
    let surrogate = |units: &[u16]| Text::from_utf16(units);
    let empty = || Value::Array(vec![]);
    BTreeMap::from([
        ("undefined", Value::Undefined),
        ("null", Value::Null),
        ("false", false.into()),
        ("true", true.into()),
        ("0", 0.into()),
        ("1", 1.into()),
        ("23", 23.into()),
        ("24", 24.into()),
        ("-1", (-1).into()),
        ("-1000", (-1000).into()),
        ("9007199254740991", 9_007_199_254_740_991_i64.into()),
        ("-9007199254740991", (-9_007_199_254_740_991_i64).into()),
        ("9007199254740992", 9_007_199_254_740_992.0.into()),
        ("18446744073709552000", 18_446_744_073_709_552_000.0.into()),
        (
            "-18446744073709552000",
            (-18_446_744_073_709_552_000.0).into(),
        ),
        ("-0", (-0.0).into()),
        ("1.5", 1.5.into()),
        ("0.1", 0.1.into()),
        ("100000.5", 100_000.5.into()),
        ("NaN", f64::NAN.into()),
        ("Infinity", f64::INFINITY.into()),
        ("-Infinity", f64::NEG_INFINITY.into()),
        ("0n", BigInt::from(0_u64).into()),
        ("1n", BigInt::from(1_u64).into()),
        ("-1n", BigInt::from(-1_i64).into()),
        ("-256n", BigInt::from(-256_i64).into()),
        ("-257n", BigInt::from(-257_i64).into()),
        ("18446744073709551616n", BigInt::from(1_u128 << 64).into()),
        ("\"\"", "".into()),
        ("\"aé😀\"", "aé😀".into()),
        ("\"ab\"", "ab".into()),
        ("\"a\\ud800\"", surrogate(&[0x61, 0xd800]).into()),
        ("\"\\ude00\\ud83d\"", surrogate(&[0xde00, 0xd83d]).into()),
        ("new Date(0)", Value::Date(0.0)),
        ("new Date(1500)", Value::Date(1500.0)),
        ("new Date(-1)", Value::Date(-1.0)),
        ("new Date(1709210096789)", Value::Date(1_709_210_096_789.0)),
        ("new Date(8640000000000000)", Value::Date(8.64e15)),
        (
            "new Date(4399999999999989)",
            Value::Date(4_399_999_999_999_989.0),
        ),
        ("new Date(NaN)", Value::Date(f64::NAN)),
        ("/a+b/gi", regexp("a+b", "gi")),
        ("/a/", regexp("a", "")),
        ("[]", empty()),
        ("[1]", Value::array([1])),
        (
            "[1, [\"a\"]]",
            Value::Array(vec![1.into(), Value::array(["a"])]),
        ),
        (
            "[1, , 3]",
            Value::Array(vec![1.into(), Value::Hole, 3.into()]),
        ),
        ("({})", Value::Object(vec![])),
        ("({ a: 1 })", Value::object([("a", 1)])),
        ("({ a: 1, a: 2 })", Value::object([("a", 1), ("a", 2)])),
        (
            "({ b: 1, a: [null] })",
            Value::object([("b", 1.into()), ("a", Value::array([Value::Null]))]),
        ),
        (
            "({ \"\\ud800\": 1 })",
            Value::Object(vec![(surrogate(&[0xd800]), 1.into())]),
        ),
        (
            "new Map([[1, \"a\"], [{}, null]])",
            Value::Map(vec![
                (1.into(), "a".into()),
                (Value::Object(vec![]), Value::Null),
            ]),
        ),
        (
            "new Set([1, \"a\"])",
            Value::Set(vec![1.into(), "a".into()]),
        ),
        (
            "new Uint8Array([1, 2]).buffer",
            Value::ArrayBuffer(vec![1, 2]),
        ),
        ("new Uint8Array([1, 2])", typed(Kind::Uint8, &[1, 2])),
        (
            "new Uint8ClampedArray([255])",
            typed(Kind::Uint8Clamped, &[255]),
        ),
        ("new Int8Array([-1])", typed(Kind::Int8, &[255])),
        (
            "new Uint16Array([1, 2])",
            typed(Kind::Uint16, &[1, 0, 2, 0]),
        ),
        ("new Int16Array([-2])", typed(Kind::Int16, &[254, 255])),
        ("new Uint32Array([1])", typed(Kind::Uint32, &[1, 0, 0, 0])),
        (
            "new Int32Array([-2])",
            typed(Kind::Int32, &[254, 255, 255, 255]),
        ),
        (
            "new BigUint64Array([1n])",
            typed(Kind::BigUint64, &[1, 0, 0, 0, 0, 0, 0, 0]),
        ),
        (
            "new BigInt64Array([-2n])",
            typed(Kind::BigInt64, &[254, 255, 255, 255, 255, 255, 255, 255]),
        ),
        ("new Float16Array([1.5])", typed(Kind::Float16, &[0, 0x3e])),
        (
            "new Float32Array([1.5])",
            typed(Kind::Float32, &[0, 0, 0xc0, 0x3f]),
        ),
        (
            "new Float64Array([1.5])",
            typed(Kind::Float64, &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
        ),
        (
            "new DataView(new ArrayBuffer(2))",
            Value::DataView(vec![0, 0]),
        ),
        ("new Error(\"no\")", Value::error("Error", "no")),
        (
            "Object.assign(new TypeError(\"no\", { cause: 1 }), { stack: \"at f\", code: 7 })",
            ErrorValue {
                stack: Some("at f".into()),
                cause: Some(1.into()),
                props: vec![("code".into(), 7.into())],
                ..ErrorValue::new("TypeError", "no")
            }
            .into(),
        ),
        (
            "new AggregateError([new Error(\"a\")], \"all\")",
            ErrorValue {
                errors: Some(Value::array([Value::error("Error", "a")])),
                ..ErrorValue::new("AggregateError", "all")
            }
            .into(),
        ),
        ("new String(\"a\")", Value::Boxed(Box::new("a".into()))),
        (
            "Object(1n)",
            Value::Boxed(Box::new(BigInt::from(1_u64).into())),
        ),
        (
            "a = [], [a, a]",
            Value::Array(vec![shared(empty()), Value::Reference(0)]),
        ),
        (
            "a = [], a.push(a), a",
            shared(Value::Array(vec![Value::Reference(0)])),
        ),
        (
            "o = {}, o.self = o",
            shared(Value::object([("self", Value::Reference(0))])),
        ),
        (
            "a = [], o = { a }, [o, a, o]",
            Value::Array(vec![
                shared(Value::object([("a", shared(empty()))])),
                Value::Reference(1),
                Value::Reference(0),
            ]),
        ),
        (
            "m = new Map(), m.set(m, m)",
            shared(Value::Map(vec![(Value::Reference(0), Value::Reference(0))])),
        ),
        (
            "d = new Date(0), [d, d]",
            Value::Array(vec![shared(Value::Date(0.0)), Value::Reference(0)]),
        ),
        ("the external 1", Value::External(1)),
        (
            "e = the external 0, [e, e]",
            Value::Array(vec![shared(Value::External(0)), Value::Reference(0)]),
        ),
    ])
}

#[test]
fn what_the_document_says_is_written_is_written() {
    let values = values();
    for (javascript, written) in table("written") {
        let value = values
            .get(javascript)
            .unwrap_or_else(|| panic!("no value for {javascript}"));
        assert_eq!(hex(&encode(value)), hex(&bytes(written)), "{javascript}");
        assert_eq!(
            decode(&bytes(written), &BOUNDS).as_ref(),
            Ok(value),
            "{javascript}"
        );
        validate(&bytes(written), &BOUNDS).expect(javascript);
    }
}

#[test]
fn what_the_document_says_is_read_besides_is_read() {
    let values = values();
    for (read, javascript) in table("read besides") {
        let value = values
            .get(javascript)
            .unwrap_or_else(|| panic!("no value for {javascript}"));
        assert_eq!(decode(&bytes(read), &BOUNDS).as_ref(), Ok(value), "{read}");
        validate(&bytes(read), &BOUNDS).expect(read);
    }
}

#[test]
fn what_the_document_says_is_refused_is_refused_with_that_message() {
    for (refused, message) in table("refused") {
        let error = decode(&bytes(refused), &BOUNDS).expect_err(refused);
        assert_eq!(error.to_string(), message, "{refused}");
        assert_eq!(validate(&bytes(refused), &BOUNDS), Err(error));
    }
}

#[test]
fn every_value_here_is_in_the_document() {
    let named: Vec<&str> = table("written")
        .into_iter()
        .map(|(javascript, _)| javascript)
        .chain(
            table("read besides")
                .into_iter()
                .map(|(_, javascript)| javascript),
        )
        .collect();
    for javascript in values().keys() {
        assert!(
            named.contains(javascript),
            "{javascript} is not in schema/value.md"
        );
    }
}

#[test]
fn every_tag_is_in_the_document() {
    let (_, tags) = DOCUMENT.split_once("## Tags").expect("the section");
    for number in (0..300).chain(21_000..21_100).chain(39_990..40_020) {
        // An unknown tag is refused for what it is; a known one for its content, or not at all.
        let input = [&[0xd9][..], &u16::to_be_bytes(number), &[0xf8, 0x20]].concat();
        let message = validate(&input, &BOUNDS)
            .expect_err("no content")
            .to_string();
        let is_known = message != format!("unknown tag {number} at byte 0");
        let is_listed = tags
            .lines()
            .any(|line| line.starts_with(&format!("| {number} |")));
        assert_eq!(is_known, is_listed, "tag {number}: {message}");
    }
}
