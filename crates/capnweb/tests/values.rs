//! Values as expressions and back.

use coracle_capnweb::{ConvertError, Limits, Violation, from_expression, to_expression};
use coracle_value::{BigInt, ErrorValue, Interface, Text, TypedArrayKind, Value};
use proptest::prelude::*;

fn written(value: &Value) -> Result<String, ConvertError> {
    to_expression(value, &Limits::default())
}

fn read(text: &str) -> Result<Value, Violation> {
    from_expression(text, &Limits::default())
}

fn interface(interface: Interface, content: Value) -> Value {
    Value::Interface(interface, Box::new(content))
}

/// What is written here is what the package writes, and is read as the same.
#[test]
fn each_kind_of_value_has_its_expression() {
    let error = |stack: Option<&str>, props: Vec<(Text, Value)>, cause| {
        Value::Error(Box::new(ErrorValue {
            stack: stack.map(Text::from),
            cause,
            props,
            ..ErrorValue::new("TypeError", "no")
        }))
    };
    let headers = || Value::array([Value::array(["a", "b"])]);
    for (value, text) in [
        (Value::Null, "null"),
        (Value::from(true), "true"),
        (Value::from(-0.0), "-0"),
        (Value::from(1.5), "1.5"),
        (Value::from("a\"\u{1}"), r#""a\"\u0001""#),
        (Value::String(Text::from_utf16(&[0xd800])), r#""\ud800""#),
        (Value::Undefined, r#"["undefined"]"#),
        (Value::from(f64::NAN), r#"["nan"]"#),
        (Value::from(f64::INFINITY), r#"["inf"]"#),
        (Value::from(f64::NEG_INFINITY), r#"["-inf"]"#),
        (
            Value::BigInt(BigInt::new(true, &[1, 0])),
            r#"["bigint","-256"]"#,
        ),
        (Value::Date(1749342170815.0), r#"["date",1749342170815]"#),
        (Value::Date(f64::NAN), r#"["date",null]"#),
        (Value::uint8_array([1, 2, 3]), r#"["bytes","AQID"]"#),
        (Value::uint8_array([1]), r#"["bytes","AQ"]"#),
        (Value::ArrayBuffer(vec![]), r#"["bytes","","ArrayBuffer"]"#),
        (Value::DataView(vec![1]), r#"["bytes","AQ","DataView"]"#),
        (
            Value::TypedArray {
                kind: TypedArrayKind::Uint16,
                bytes: vec![1, 0],
            },
            r#"["bytes","AQA","Uint16Array"]"#,
        ),
        (Value::Array(vec![]), "[[]]"),
        (Value::array([Value::array([0])]), "[[[[0]]]]"),
        (
            Value::object([("key", Value::array([Value::from("abc"), Value::Date(1.0)]))]),
            r#"{"key":[["abc",["date",1]]]}"#,
        ),
        (Value::object([("__proto__", 1)]), r#"{"__proto__":1}"#),
        (error(None, vec![], None), r#"["error","TypeError","no"]"#),
        (
            error(Some("at f"), vec![], None),
            r#"["error","TypeError","no","at f"]"#,
        ),
        (
            error(
                None,
                vec![("code".into(), Value::array([7]))],
                Some(Value::Null),
            ),
            r#"["error","TypeError","no",null,{"cause":null,"code":[[7]]}]"#,
        ),
        (
            interface(Interface::Headers, headers()),
            r#"["headers",[["a","b"]]]"#,
        ),
        (
            interface(
                Interface::Request,
                Value::object([
                    ("url", Value::from("https://a.example/")),
                    ("method", Value::from("POST")),
                    ("headers", headers()),
                    ("body", Value::ArrayBuffer(vec![1])),
                ]),
            ),
            r#"["request","https://a.example/",{"method":"POST","headers":[["a","b"]],"body":["bytes","AQ"],"duplex":"half"}]"#,
        ),
        (
            interface(
                Interface::Response,
                Value::object([
                    ("status", Value::from(404)),
                    ("statusText", Value::from("gone")),
                    ("headers", headers()),
                    ("body", Value::Null),
                ]),
            ),
            r#"["response",null,{"status":404,"statusText":"gone","headers":[["a","b"]]}]"#,
        ),
    ] {
        assert_eq!(written(&value).as_deref(), Ok(text));
        assert_eq!(read(text), Ok(value), "{text}");
    }
}

/// What the package may write besides, and what the form of values has only in another shape.
#[test]
fn other_expressions_are_read_too() {
    for (text, value) in [
        (r#"["bytes","AQ=="]"#, Value::uint8_array([1])),
        (r#"["bytes","AQ","Uint8Array"]"#, Value::uint8_array([1])),
        (
            r#"["url","https://a.example/"]"#,
            Value::from("https://a.example/"),
        ),
        (r#"["date",1.9]"#, Value::Date(1.0)),
        (r#"["error","E","m","s",{"name":"x","a":1}]"#, {
            let mut error = ErrorValue::new("E", "m");
            error.stack = Some("s".into());
            error.props = vec![("a".into(), Value::from(1))];
            Value::Error(Box::new(error))
        }),
        (
            r#"["response","hi",{"cf":{}}]"#,
            interface(
                Interface::Response,
                Value::object([("body", Value::ArrayBuffer(b"hi".to_vec()))]),
            ),
        ),
    ] {
        assert_eq!(read(text), Ok(value), "{text}");
    }
}

#[test]
fn what_has_no_expression_is_refused_with_its_place() {
    let at = |value: Value| Value::object([("a", Value::array([Value::Null, value]))]);
    for (value, what) in [
        (Value::Map(vec![]), "a Map"),
        (Value::Set(vec![]), "a Set"),
        (
            Value::RegExp {
                source: "a".into(),
                flags: "".into(),
            },
            "a RegExp",
        ),
        (Value::Boxed(Box::new(Value::from(1))), "a boxed primitive"),
        (
            Value::TypedArray {
                kind: TypedArrayKind::Float16,
                bytes: vec![],
            },
            "a Float16Array",
        ),
        (
            interface(
                Interface::Response,
                Value::object([("webSocket", Value::Null)]),
            ),
            "a Response with a webSocket",
        ),
        (
            interface(Interface::Blob, Value::object([("name", "f")])),
            "a File",
        ),
    ] {
        let error = ConvertError::Unsupported {
            what,
            at: "$.a[1]".into(),
        };
        assert_eq!(written(&at(value)), Err(error));
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        "[]",
        "[1]",
        r#"["what"]"#,
        r#"["undefined",1]"#,
        r#"["date"]"#,
        r#"["date","x"]"#,
        r#"["bigint",1]"#,
        r#"["bigint","0x10"]"#,
        r#"["bigint",""]"#,
        r#"["bytes","*"]"#,
        r#"["bytes","AQ","Uint16Array"]"#,
        r#"["bytes","AQ","Float16Array"]"#,
        r#"["bytes",1]"#,
        r#"["error","E"]"#,
        r#"["error","E",1]"#,
        r#"["error","E","m",null,[]]"#,
        r#"["headers",{}]"#,
        r#"["headers",[["a"]]]"#,
        r#"["headers",[["a",1]]]"#,
        r#"["request","u"]"#,
        r#"["request",1,{}]"#,
        r#"["request","u",{"headers":{}}]"#,
        r#"["request","u",{"signal":1}]"#,
        r#"["request","u",{"body":1}]"#,
        r#"["response",1,{}]"#,
        r#"["response",null,{"webSocket":1}]"#,
        r#"["blob","t",null]"#,
        r#"["export","x"]"#,
        r#"["pipeline"]"#,
        r#"["remap",0]"#,
        r#"["import",0,["a",{}]]"#,
        r#"["pipeline",0,[],{}]"#,
    ] {
        assert!(
            matches!(
                read(text),
                Err(Violation::ExpressionInvalid { .. } | Violation::ExportUnknown { .. })
            ),
            "{text}: {:?}",
            read(text)
        );
    }
}

#[test]
fn each_limit_on_a_value_is_named() {
    let limits = Limits {
        depth_max: 3,
        members_max: 20,
        message_bytes_max: 100,
        bigint_digits_max: 9,
        ..Limits::default()
    };
    let nested = |depth| (0..depth).fold(Value::Null, |inner, _| Value::array([inner]));
    assert!(to_expression(&nested(3), &limits).is_ok());
    assert_eq!(
        to_expression(&nested(4), &limits),
        Err(ConvertError::DepthExceeded { depth_max: 3 })
    );
    assert!(from_expression("[[[[[[0]]]]]]", &limits).is_ok());
    let deep = from_expression("[[[[[[[[0]]]]]]]]", &limits);
    assert_eq!(
        deep,
        Err(ConvertError::DepthExceeded { depth_max: 3 }.into())
    );
    let many = Value::array(vec![0; 20]);
    assert_eq!(
        to_expression(&many, &limits),
        Err(ConvertError::MembersExceeded { members_max: 20 })
    );
    let many = format!("[[{}0]]", "0,".repeat(20));
    assert!(matches!(
        from_expression(&many, &limits),
        Err(Violation::MembersExceeded { .. })
    ));
    let long = Value::from("x".repeat(100));
    assert_eq!(
        to_expression(&long, &limits),
        Err(ConvertError::BytesExceeded { bytes_max: 100 })
    );
    let bytes = Value::uint8_array(vec![0; 100]);
    assert_eq!(
        to_expression(&bytes, &limits),
        Err(ConvertError::BytesExceeded { bytes_max: 100 })
    );
    assert!(from_expression(r#"["bigint","-123456789"]"#, &limits).is_ok());
    let error = ConvertError::DigitsExceeded {
        digits_max: 9,
        at: "$".into(),
    };
    assert_eq!(
        from_expression(r#"["bigint","12345678901"]"#, &limits),
        Err(error.clone().into())
    );
    assert_eq!(
        to_expression(&Value::BigInt(BigInt::new(false, &[0xff; 4])), &limits),
        Err(error)
    );
}

/// A value without what the protocol lacks.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,8}".prop_map(|text: String| Text::from(text)),
        prop::collection::vec(any::<u16>(), 0..6).prop_map(|units| Text::from_utf16(&units)),
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..16);
    let leaf = prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-1000..1000).prop_map(Value::from),
        (any::<bool>(), bytes.clone())
            .prop_map(|(sign, bytes)| Value::BigInt(BigInt::new(sign, &bytes))),
        text.clone().prop_map(Value::String),
        (-8_640_000_000_000_000_i64..=8_640_000_000_000_000)
            .prop_map(|date| Value::Date(date as f64)),
        bytes.clone().prop_map(Value::ArrayBuffer),
        bytes.clone().prop_map(Value::DataView),
        bytes.clone().prop_map(Value::uint8_array),
        bytes.prop_map(|bytes| Value::TypedArray {
            kind: TypedArrayKind::Int8,
            bytes
        }),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let properties =
            prop::collection::btree_map(".{0,4}", inner.clone(), 0..5).prop_map(|map| {
                map.into_iter()
                    .map(|(key, value)| (Text::from(key), value))
                    .collect::<Vec<_>>()
            });
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            properties.clone().prop_map(Value::Object),
            (
                text.clone(),
                text.clone(),
                prop::option::of(text.clone()),
                prop::option::of(inner),
                properties
            )
                .prop_map(|(name, message, stack, cause, mut props)| {
                    let reserved = ["name", "message", "stack", "cause", "errors"];
                    props.retain(|(key, _)| !reserved.iter().any(|name| *key == *name));
                    let errors = None;
                    Value::Error(Box::new(ErrorValue {
                        name,
                        message,
                        stack,
                        cause,
                        errors,
                        props,
                    }))
                }),
        ]
    })
}

proptest! {
    /// Writing and reading gives back the value, whatever it is.
    #[test]
    fn a_value_is_the_same_after_writing_and_reading(value in value()) {
        let text = written(&value).expect("it has an expression");
        prop_assert_eq!(read(&text).expect("it is an expression"), value);
    }

    /// Text that is no expression is refused and harms nothing.
    #[test]
    fn any_text_is_read_or_refused(text in r#"[\[\]{}",:a-z0-9 \\-]{0,60}"#) {
        let _ = read(&text);
    }
}
