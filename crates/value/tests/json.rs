//! JSON text: as `JSON.parse` reads it and `JSON.stringify` writes it.

use coracle_value::{
    BigInt, Bounds, ErrorValue, JsonError, Text, TypedArrayKind, Value, from_json,
    number_to_string, to_json, to_json_bounded,
};
use proptest::prelude::*;

fn read(json: &str) -> Result<Value, JsonError> {
    from_json(json, &Bounds::default())
}

fn boxed(value: impl Into<Value>) -> Value {
    Value::Boxed(Box::new(value.into()))
}

fn typed(kind: TypedArrayKind, bytes: &[u8]) -> Value {
    Value::TypedArray {
        kind,
        bytes: bytes.into(),
    }
}

/// A JavaScript expression, the value that it has, and what `JSON.stringify` in V8 makes of it.
fn stringified() -> Vec<(&'static str, Value, &'static str)> {
    let nothing = || Value::Undefined;
    vec![
        ("null", Value::Null, "null"),
        ("true", Value::Bool(true), "true"),
        ("-0", Value::from(-0.0), "0"),
        ("NaN", Value::from(f64::NAN), "null"),
        ("-Infinity", Value::from(f64::NEG_INFINITY), "null"),
        (
            "[1e21, 1e-7, 5e-324, 1e20]",
            Value::array([1e21, 1e-7, 5e-324, 1e20]),
            "[1e+21,1e-7,5e-324,100000000000000000000]",
        ),
        (
            r#""\u0000\b\t\n\f\r\u001f\"\\/\u007f\u2028é😀""#,
            Value::from("\0\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}\u{2028}é😀"),
            "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\u{7f}\u{2028}é😀\"",
        ),
        (
            r#""a\ud800b\udfff""#,
            Value::String(Text::from_utf16(&[0x61, 0xd800, 0x62, 0xdfff])),
            r#""a\ud800b\udfff""#,
        ),
        ("[]", Value::Array(vec![]), "[]"),
        ("({})", Value::Object(vec![]), "{}"),
        (
            "[1, undefined, , 2]",
            Value::Array(vec![1.into(), nothing(), Value::Hole, 2.into()]),
            "[1,null,null,2]",
        ),
        (
            "({ a: 1, b: undefined, c: [{}] })",
            Value::object([
                ("a", 1.into()),
                ("b", nothing()),
                ("c", Value::array([Value::Object(vec![])])),
            ]),
            r#"{"a":1,"c":[{}]}"#,
        ),
        (
            "({ b: undefined })",
            Value::object([("b", nothing())]),
            "{}",
        ),
        (
            "({ b: undefined, c: 1 })",
            Value::object([("b", nothing()), ("c", 1.into())]),
            r#"{"c":1}"#,
        ),
        (
            r#"({ ["__proto__"]: 1, "": 2, "\ud800": 3 })"#,
            Value::Object(vec![
                ("__proto__".into(), 1.into()),
                ("".into(), 2.into()),
                (Text::from_utf16(&[0xd800]), 3.into()),
            ]),
            r#"{"__proto__":1,"":2,"\ud800":3}"#,
        ),
        (
            "new Date(951782400001)",
            Value::Date(951_782_400_001.0),
            r#""2000-02-29T00:00:00.001Z""#,
        ),
        (
            "[new Date(NaN)]",
            Value::array([Value::Date(f64::NAN)]),
            "[null]",
        ),
        (
            "[new Number(-1.5), new String('x'), new Boolean(false)]",
            Value::array([boxed(-1.5), boxed("x"), boxed(false)]),
            r#"[-1.5,"x",false]"#,
        ),
        ("new Number(NaN)", boxed(f64::NAN), "null"),
        (
            "new Map([[1, 2]])",
            Value::Map(vec![(1.into(), 2.into())]),
            "{}",
        ),
        ("new Set([1])", Value::Set(vec![1.into()]), "{}"),
        (
            "/a/g",
            Value::RegExp {
                source: "a".into(),
                flags: "g".into(),
            },
            "{}",
        ),
        ("new ArrayBuffer(2)", Value::ArrayBuffer(vec![0, 0]), "{}"),
        (
            "new DataView(new ArrayBuffer(2))",
            Value::DataView(vec![0, 0]),
            "{}",
        ),
        ("new TypeError('x')", Value::error("TypeError", "x"), "{}"),
        (
            "Object.assign(new Error('x', { cause: 1 }), { code: 'E', gone: undefined })",
            ErrorValue {
                cause: Some(1.into()),
                props: vec![("code".into(), "E".into()), ("gone".into(), nothing())],
                ..ErrorValue::new("Error", "x")
            }
            .into(),
            r#"{"code":"E"}"#,
        ),
        (
            "new Uint8Array([1, 255])",
            Value::uint8_array([1, 255]),
            r#"{"0":1,"1":255}"#,
        ),
        (
            "new Uint8ClampedArray([300])",
            typed(TypedArrayKind::Uint8Clamped, &[255]),
            r#"{"0":255}"#,
        ),
        (
            "new Int8Array([-1])",
            typed(TypedArrayKind::Int8, &[255]),
            r#"{"0":-1}"#,
        ),
        (
            "new Int16Array([-2])",
            typed(TypedArrayKind::Int16, &[0xfe, 0xff]),
            r#"{"0":-2}"#,
        ),
        (
            "new Uint16Array([65534])",
            typed(TypedArrayKind::Uint16, &[0xfe, 0xff]),
            r#"{"0":65534}"#,
        ),
        (
            "new Int32Array([-2])",
            typed(TypedArrayKind::Int32, &[0xfe, 0xff, 0xff, 0xff]),
            r#"{"0":-2}"#,
        ),
        (
            "new Uint32Array([4294967294])",
            typed(TypedArrayKind::Uint32, &[0xfe, 0xff, 0xff, 0xff]),
            r#"{"0":4294967294}"#,
        ),
        (
            "new Float32Array([0.1, NaN])",
            typed(
                TypedArrayKind::Float32,
                &[0xcd, 0xcc, 0xcc, 0x3d, 0, 0, 0xc0, 0x7f],
            ),
            r#"{"0":0.10000000149011612,"1":null}"#,
        ),
        (
            "new Float64Array([0.1, -0])",
            typed(
                TypedArrayKind::Float64,
                &[
                    0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x80,
                ],
            ),
            r#"{"0":0.1,"1":0}"#,
        ),
        (
            "new BigInt64Array(0)",
            typed(TypedArrayKind::BigInt64, &[]),
            "{}",
        ),
        (
            "(() => { const a = [1]; return [a, { a }, a]; })()",
            Value::array([
                Value::Shared(Box::new(Value::array([1]))),
                Value::object([("a", Value::Reference(0))]),
                Value::Reference(0),
            ]),
            r#"[[1],{"a":[1]},[1]]"#,
        ),
        (
            "(() => { const d = new Date(0); return [d, d]; })()",
            Value::array([
                Value::Shared(Box::new(Value::Date(0.0))),
                Value::Reference(0),
            ]),
            r#"["1970-01-01T00:00:00.000Z","1970-01-01T00:00:00.000Z"]"#,
        ),
    ]
}

#[test]
fn values_are_written_as_json_stringify_writes_them() {
    for (expression, value, json) in stringified() {
        assert_eq!(to_json(&value).as_deref(), Ok(json), "{expression}");
    }
}

#[test]
fn half_floats_are_written_with_the_digits_of_the_double() {
    let halves = typed(TypedArrayKind::Float16, &[0x66, 0x2e, 0, 0x7e]);
    assert_eq!(
        to_json(&halves).as_deref(),
        Ok(r#"{"0":0.0999755859375,"1":null}"#)
    );
}

#[test]
fn undefined_at_the_top_is_null() {
    assert_eq!(to_json(&Value::Undefined).as_deref(), Ok("null"));
}

#[test]
fn a_reference_may_mean_what_json_leaves_out() {
    // The map is written as {}, and what it holds is still number 0.
    let held = Value::Shared(Box::new(Value::array([1])));
    let value = Value::array([Value::Map(vec![(held, Value::Null)]), Value::Reference(0)]);
    assert_eq!(to_json(&value).as_deref(), Ok("[{},[1]]"));
}

#[test]
fn of_a_repeated_key_the_last_value_is_written_in_the_place_of_the_first() {
    let value = Value::object([("a", 1), ("b", 2), ("a", 3)]);
    assert_eq!(to_json(&value).as_deref(), Ok(r#"{"a":3,"b":2}"#));
}

#[test]
fn what_json_can_not_hold_is_named_by_its_path() {
    let error = |value: &Value| to_json(value).expect_err("no json").to_string();
    let bigint = || Value::from(BigInt::from(1_u64));
    assert_eq!(error(&bigint()), "bigint at $ can't be json");
    let rows = Value::array([
        Value::Null,
        Value::object([("id", Value::array([bigint()]))]),
    ]);
    assert_eq!(
        error(&Value::object([("rows", rows)])),
        "bigint at $.rows[1].id[0] can't be json"
    );
    assert_eq!(
        error(&Value::object([("a b", boxed(bigint()))])),
        "bigint at $[\"a b\"] can't be json"
    );
    let bigints = typed(TypedArrayKind::BigUint64, &[0; 8]);
    assert_eq!(
        error(&Value::array([bigints])),
        "bigint at $[0][0] can't be json"
    );
    assert_eq!(
        error(&Value::array([Value::External(7)])),
        "external 7 at $[0] can't be json"
    );
    assert_eq!(
        error(&Value::array([Value::Reference(0)])),
        "reference to unknown shared object 0 at $[0]"
    );
}

#[test]
fn cycles_are_found() {
    let itself = Value::Shared(Box::new(Value::object([("self", Value::Reference(0))])));
    assert_eq!(
        to_json(&itself),
        Err(JsonError::CycleFound {
            path: "$.self".into()
        })
    );
    let inner = Value::Shared(Box::new(Value::array([Value::Reference(0)])));
    let outer = Value::Shared(Box::new(Value::array([Value::Null, inner])));
    assert_eq!(
        to_json(&outer),
        Err(JsonError::CycleFound {
            path: "$[1][0]".into()
        })
    );
}

#[test]
fn the_bound_on_the_text_is_exact() {
    let value = Value::array(["ab", "cd"]);
    let bounds = |bytes_max| Bounds {
        bytes_max,
        ..Bounds::default()
    };
    assert_eq!(
        to_json_bounded(&value, &bounds(11)).as_deref(),
        Ok(r#"["ab","cd"]"#)
    );
    assert_eq!(
        to_json_bounded(&value, &bounds(10)),
        Err(JsonError::SizeExceeded { bytes_max: 10 })
    );
}

#[test]
fn json_is_read_as_json_parse_reads_it() {
    for (json, value) in [
        (" \t\r\n1 ", Value::from(1)),
        ("-0", Value::from(-0.0)),
        ("1e400", Value::from(f64::INFINITY)),
        ("9007199254740993", Value::from(9_007_199_254_740_992.0)),
        ("0.1e1", Value::from(1)),
        ("1E+2", Value::from(100)),
        (r#""\u0041\/\b\"""#, Value::from("A/\u{8}\"")),
        (r#""\ud83d\ude00""#, Value::from("😀")),
        (
            r#""\ude00\ud83d!\ud83dx""#,
            Value::String(Text::from_utf16(&[0xde00, 0xd83d, 0x21, 0xd83d, 0x78])),
        ),
        (
            r#"{"a":1,"b":2,"a":3}"#,
            Value::object([("a", 3), ("b", 2)]),
        ),
        (
            r#"{"__proto__":{"a":1}}"#,
            Value::object([("__proto__", Value::object([("a", 1)]))]),
        ),
        (
            r#"{ "2" : [ ] , "1" : { } }"#,
            Value::object([("2", Value::Array(vec![])), ("1", Value::Object(vec![]))]),
        ),
        (
            "[[],[null,true,false]]",
            Value::array([
                Value::Array(vec![]),
                Value::Array(vec![Value::Null, true.into(), false.into()]),
            ]),
        ),
    ] {
        assert_eq!(read(json), Ok(value), "{json}");
    }
}

#[test]
fn what_is_not_json_is_refused_where_it_goes_wrong() {
    for (json, message) in [
        ("", "json text ends at byte 0 before the value does"),
        ("[1,", "json text ends at byte 3 before the value does"),
        ("[1,]", "unexpected character ']' at byte 3 of json text"),
        (
            "{\"a\" 1}",
            "unexpected character '1' at byte 5 of json text",
        ),
        ("{a:1}", "unexpected character 'a' at byte 1 of json text"),
        (
            "{\"a\":1,}",
            "unexpected character '}' at byte 7 of json text",
        ),
        ("[1}", "unexpected character '}' at byte 2 of json text"),
        ("01", "unexpected character '1' at byte 1 of json text"),
        ("-", "json text ends at byte 1 before the value does"),
        ("1.", "json text ends at byte 2 before the value does"),
        (".5", "unexpected character '.' at byte 0 of json text"),
        ("1e", "json text ends at byte 2 before the value does"),
        ("+1", "unexpected character '+' at byte 0 of json text"),
        ("NaN", "unexpected character 'N' at byte 0 of json text"),
        ("nul", "json text ends at byte 3 before the value does"),
        ("nulé", "unexpected character 'é' at byte 3 of json text"),
        ("\"a", "json text ends at byte 2 before the value does"),
        (
            "\"\n\"",
            "unexpected character '\\n' at byte 1 of json text",
        ),
        ("\"\\x\"", "unexpected character 'x' at byte 2 of json text"),
        (
            "\"\\u12é4\"",
            "unexpected character 'é' at byte 5 of json text",
        ),
        ("1 2", "unexpected character '2' at byte 2 of json text"),
        (
            "\u{feff}1",
            "unexpected character '\\u{feff}' at byte 0 of json text",
        ),
        (
            "\u{a0}1",
            "unexpected character '\\u{a0}' at byte 0 of json text",
        ),
    ] {
        assert_eq!(
            read(json).map_err(|error| error.to_string()),
            Err(message.to_owned()),
            "{json}"
        );
    }
}

#[test]
fn a_hundred_thousand_brackets_are_refused() {
    assert_eq!(
        read(&"[".repeat(100_000)),
        Err(JsonError::DepthExceeded { depth_max: 512 })
    );
    let bounds = Bounds {
        bytes_max: 3,
        ..Bounds::default()
    };
    assert_eq!(
        from_json("[  ]", &bounds),
        Err(JsonError::SizeExceeded { bytes_max: 3 })
    );
}

/// JSON text, and text that nearly is.
fn json_like() -> impl Strategy<Value = String> {
    let tokens = [
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"a\"",
        "\"\"",
        "\"\\u00e9\"",
        "\"\\n\"",
        "\"é\"",
        "0",
        "-1",
        "1.5e3 ",
        "12",
        "1e-7",
        "true",
        "null",
        " ",
        "\"a\":",
        "\"b\":1",
        "[1,2]",
        "{}",
        "01",
        "\"\t\"",
        "-",
        "\\",
    ];
    let soup = prop::collection::vec(prop::sample::select(tokens.to_vec()), 0..12)
        .prop_map(|tokens| tokens.concat());
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|bool| bool.to_string()),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(number_to_string),
        any::<i64>().prop_map(|integer| integer.to_string()),
        any::<String>().prop_map(|string| serde_json::Value::from(string).to_string()),
    ];
    let tree = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|elements| format!("[{}]", elements.join(" , "))),
            prop::collection::vec(("[a-c]{0,2}", inner), 0..4).prop_map(|properties| {
                let properties: Vec<String> = properties
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", properties.join(","))
            }),
        ]
    });
    prop_oneof![soup, tree]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn another_implementation_reads_the_same(json in json_like()) {
        let ours = read(&json);
        let theirs = serde_json::from_str::<serde_json::Value>(&json);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert!(same(&ours, &theirs), "{:?} {}", ours, theirs);
            let written = to_json(&ours).expect("json");
            prop_assert_eq!(read(&written), Ok(positive_zeros(ours)));
        }
    }
}

fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
    use serde_json::Value as Json;
    match (ours, theirs) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(ours), Json::Bool(theirs)) => ours == theirs,
        (Value::Number(ours), Json::Number(theirs)) => Some(*ours) == theirs.as_f64(),
        (Value::String(ours), Json::String(theirs)) => ours == theirs.as_str(),
        (Value::Array(ours), Json::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Object(ours), Json::Object(theirs)) => {
            let pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len()
                && pairs
                    .into_iter()
                    .all(|(ours, theirs)| ours.0 == theirs.0.as_str() && same(&ours.1, theirs.1))
        }
        _ => false,
    }
}

/// JSON text has -0, but `JSON.stringify` doesn't write it.
fn positive_zeros(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(number + 0.0),
        Value::Array(elements) => Value::Array(elements.into_iter().map(positive_zeros).collect()),
        Value::Object(properties) => Value::Object(
            properties
                .into_iter()
                .map(|(key, value)| (key, positive_zeros(value)))
                .collect(),
        ),
        value => value,
    }
}
