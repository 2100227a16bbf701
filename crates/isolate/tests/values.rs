//! Values across the border: what goes in comes out, by the structured-clone rules, and nothing else does.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Bench, json, thrown_text, value, worker, worker_with};
use coracle_isolate::{
    Bytes, External, Form, Kind, Message, Outcome, Report, Scheduler, VerdictKind,
};
use coracle_loader::Limits;
use coracle_value::{
    BigInt, Bounds, DEPTH_CEILING, ErrorValue, Text, TypedArrayKind, Value, decode, encode,
};
use proptest::prelude::*;

const ECHO: &str = "export default { run(value) { return value; } };";

fn text(wtf8: &[u8]) -> Text {
    Text::from_wtf8(wtf8.to_vec()).unwrap()
}

fn bigint(negative: bool, magnitude: &[u8]) -> Value {
    Value::BigInt(BigInt::new(negative, magnitude))
}

fn shared(value: Value) -> Value {
    Value::Shared(Box::new(value))
}

fn boxed(value: impl Into<Value>) -> Value {
    Value::Boxed(Box::new(value.into()))
}

fn regexp(source: &str, flags: &str) -> Value {
    Value::RegExp {
        source: source.into(),
        flags: flags.into(),
    }
}

fn typed(kind: TypedArrayKind, bytes: &[u8]) -> Value {
    Value::TypedArray {
        kind,
        bytes: bytes.to_vec(),
    }
}

/// The bytes of a result as the guest wrote them.
fn bytes(report: &Report) -> &[u8] {
    match &report.outcome {
        Outcome::Value(Bytes { bytes, .. }) => bytes,
        other => panic!("no value but {other:?}"),
    }
}

/// JavaScript, and the value that it is.
fn written() -> Vec<(&'static str, Value)> {
    vec![
        // Primitives.
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("0", Value::from(0)),
        ("-0", Value::from(-0.0)),
        ("-1", Value::from(-1)),
        ("2 ** 31", Value::from(2_147_483_648.0)),
        ("-(2 ** 31) - 1", Value::from(-2_147_483_649.0)),
        ("1.5", Value::from(1.5)),
        ("5e-324", Value::from(5e-324)),
        ("NaN", Value::from(f64::NAN)),
        ("Infinity", Value::from(f64::INFINITY)),
        ("-Infinity", Value::from(f64::NEG_INFINITY)),
        ("2 ** 53 - 1", Value::from(9_007_199_254_740_991.0)),
        ("2 ** 53", Value::from(9_007_199_254_740_992.0)),
        ("-(2 ** 53)", Value::from(-9_007_199_254_740_992.0)),
        ("1e300", Value::from(1e300)),
        ("0n", bigint(false, &[])),
        ("1n", bigint(false, &[1])),
        ("-1n", bigint(true, &[1])),
        ("256n", bigint(false, &[1, 0])),
        ("-256n", bigint(true, &[1, 0])),
        ("2n ** 64n", bigint(false, &[1, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("-(2n ** 64n)", bigint(true, &[1, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("0xabcn", bigint(false, &[0x0a, 0xbc])),
        ("''", Value::from("")),
        ("'plain'", Value::from("plain")),
        ("'caf\\u00e9'", Value::from("café")),
        ("'日本😀'", Value::from("日本😀")),
        ("'a\\0b'", Value::from("a\0b")),
        ("'\\ud800'", Value::String(text(b"\xed\xa0\x80"))),
        ("'x\\udfffy'", Value::String(text(b"x\xed\xbf\xbfy"))),
        (
            "'\\udc00\\ud800'",
            Value::String(text(b"\xed\xb0\x80\xed\xa0\x80")),
        ),
        ("'\\ud83d' + '\\ude00'", Value::from("😀")),
        // Arrays.
        ("[]", Value::Array(vec![])),
        (
            "[1, 'a', [null]]",
            Value::Array(vec![1.into(), "a".into(), Value::Array(vec![Value::Null])]),
        ),
        ("[undefined]", Value::Array(vec![Value::Undefined])),
        (
            "[1, , 2]",
            Value::Array(vec![1.into(), Value::Hole, 2.into()]),
        ),
        ("[, ]", Value::Array(vec![Value::Hole])),
        (
            "new Array(3)",
            Value::Array(vec![Value::Hole, Value::Hole, Value::Hole]),
        ),
        ("Object.assign([1], { extra: 1 })", Value::array([1])),
        (
            "(() => { const a = [0]; a.length = 3; a.push(2); return a })()",
            Value::Array(vec![0.into(), Value::Hole, Value::Hole, 2.into()]),
        ),
        (
            "new (class List extends Array {})(1, 2)",
            Value::array([1, 2]),
        ),
        // Objects.
        ("({})", Value::Object(vec![])),
        (
            "({ b: 1, a: 2, 1: 3 })",
            Value::object([("1", 3), ("b", 1), ("a", 2)]),
        ),
        ("({ ['__proto__']: 5 })", Value::object([("__proto__", 5)])),
        (
            "JSON.parse('{\"__proto__\": {\"x\": 1}}')",
            Value::object([("__proto__", Value::object([("x", 1)]))]),
        ),
        (
            "({ 'é\\ud800': 1, '': 2, 'a\\0b': 3 })",
            Value::Object(vec![
                (text(b"\xc3\xa9\xed\xa0\x80"), 1.into()),
                ("".into(), 2.into()),
                ("a\0b".into(), 3.into()),
            ]),
        ),
        (
            "({ get computed() { return 7 } })",
            Value::object([("computed", 7)]),
        ),
        (
            "Object.defineProperty({ seen: 1 }, 'unseen', { value: 2 })",
            Value::object([("seen", 1)]),
        ),
        ("({ [Symbol('s')]: 1, a: 2 })", Value::object([("a", 2)])),
        (
            "({ a: undefined })",
            Value::object([("a", Value::Undefined)]),
        ),
        (
            "Object.assign(Object.create(null), { a: 1 })",
            Value::object([("a", 1)]),
        ),
        ("Object.freeze({ a: 1 })", Value::object([("a", 1)])),
        // Dates and regular expressions.
        ("new Date(0)", Value::Date(0.0)),
        ("new Date(1500)", Value::Date(1500.0)),
        ("new Date(-1)", Value::Date(-1.0)),
        ("new Date(8.64e15)", Value::Date(8.64e15)),
        ("new Date(NaN)", Value::Date(f64::NAN)),
        ("new Date(1700000000123)", Value::Date(1_700_000_000_123.0)),
        ("/a+\\/[/]é/dgimsy", regexp("a+\\/[/]é", "dgimsy")),
        ("/\\p{L}/u", regexp("\\p{L}", "u")),
        ("/[a--b]/v", regexp("[a--b]", "v")),
        ("new RegExp('')", regexp("(?:)", "")),
        // Collections.
        ("new Map()", Value::Map(vec![])),
        (
            "new Map([[1, 'a'], [{ k: 1 }, [2]], [NaN, undefined], [undefined, null]])",
            Value::Map(vec![
                (1.into(), "a".into()),
                (Value::object([("k", 1)]), Value::array([2])),
                (f64::NAN.into(), Value::Undefined),
                (Value::Undefined, Value::Null),
            ]),
        ),
        ("new Set()", Value::Set(vec![])),
        (
            "new Set(['a', { b: 1 }, 0])",
            Value::Set(vec!["a".into(), Value::object([("b", 1)]), 0.into()]),
        ),
        (
            "new (class Registry extends Map {})([[1, 2]])",
            Value::Map(vec![(1.into(), 2.into())]),
        ),
        // Bytes.
        ("new ArrayBuffer(0)", Value::ArrayBuffer(vec![])),
        (
            "new Uint8Array([1, 2, 255]).buffer",
            Value::ArrayBuffer(vec![1, 2, 255]),
        ),
        (
            "new ArrayBuffer(2, { maxByteLength: 8 })",
            Value::ArrayBuffer(vec![0, 0]),
        ),
        ("new Uint8Array([1, 2])", Value::uint8_array([1, 2])),
        ("new Uint8Array(0)", Value::uint8_array([])),
        (
            "new Uint8Array([1, 2, 3, 4]).subarray(1, 3)",
            Value::uint8_array([2, 3]),
        ),
        (
            "new Uint8ClampedArray([300])",
            typed(TypedArrayKind::Uint8Clamped, &[255]),
        ),
        ("new Int8Array([-1])", typed(TypedArrayKind::Int8, &[255])),
        (
            "new Uint16Array([258])",
            typed(TypedArrayKind::Uint16, &[2, 1]),
        ),
        (
            "new Int16Array([-2])",
            typed(TypedArrayKind::Int16, &[254, 255]),
        ),
        (
            "new Uint32Array([1])",
            typed(TypedArrayKind::Uint32, &[1, 0, 0, 0]),
        ),
        (
            "new Int32Array([-1])",
            typed(TypedArrayKind::Int32, &[255; 4]),
        ),
        (
            "new Int32Array(new ArrayBuffer(12), 4, 1)",
            typed(TypedArrayKind::Int32, &[0; 4]),
        ),
        (
            "new BigInt64Array([-1n])",
            typed(TypedArrayKind::BigInt64, &[255; 8]),
        ),
        (
            "new BigUint64Array([1n])",
            typed(TypedArrayKind::BigUint64, &[1, 0, 0, 0, 0, 0, 0, 0]),
        ),
        (
            "new Float16Array([1])",
            typed(TypedArrayKind::Float16, &[0, 0x3c]),
        ),
        (
            "new Float32Array([1])",
            typed(TypedArrayKind::Float32, &[0, 0, 0x80, 0x3f]),
        ),
        (
            "new Float64Array([1])",
            typed(TypedArrayKind::Float64, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        ),
        (
            "new DataView(new Uint8Array([1, 2, 3, 4]).buffer, 1, 2)",
            Value::DataView(vec![2, 3]),
        ),
        ("new DataView(new ArrayBuffer(0))", Value::DataView(vec![])),
        // Boxed primitives.
        ("Object(1)", boxed(1)),
        ("Object('x')", boxed("x")),
        ("Object(false)", boxed(false)),
        ("Object(3n)", boxed(bigint(false, &[3]))),
        // Identity.
        (
            "(() => { const o = { n: 1 }; return [o, o] })()",
            Value::Array(vec![shared(Value::object([("n", 1)])), Value::Reference(0)]),
        ),
        (
            "(() => { const o = {}; o.self = o; return o })()",
            shared(Value::object([("self", Value::Reference(0))])),
        ),
        (
            "(() => { const a = []; a.push(a); return a })()",
            shared(Value::Array(vec![Value::Reference(0)])),
        ),
        (
            "(() => { const m = new Map(); m.set(m, m); return m })()",
            shared(Value::Map(vec![(Value::Reference(0), Value::Reference(0))])),
        ),
        (
            "(() => { const s = new Set(); s.add(s); return s })()",
            shared(Value::Set(vec![Value::Reference(0)])),
        ),
        (
            "(() => { const a = {}, b = {}; return [b, a, a, b] })()",
            Value::Array(vec![
                shared(Value::Object(vec![])),
                shared(Value::Object(vec![])),
                Value::Reference(1),
                Value::Reference(0),
            ]),
        ),
        (
            "(() => { const d = new Date(5); return { d, again: d } })()",
            Value::object([
                ("d", shared(Value::Date(5.0))),
                ("again", Value::Reference(0)),
            ]),
        ),
        (
            "(() => { const u = new Uint8Array(1); return [u, u.buffer, u] })()",
            Value::Array(vec![
                shared(Value::uint8_array([0])),
                Value::ArrayBuffer(vec![0]),
                Value::Reference(0),
            ]),
        ),
        (
            "(() => { const s = Object('x'); return [s, s] })()",
            Value::Array(vec![shared(boxed("x")), Value::Reference(0)]),
        ),
    ]
}

#[test]
fn what_javascript_makes_is_written_as_the_value_that_it_is() {
    let bench = Bench::new();
    for (source, expected) in written() {
        let report = bench.run(&format!("return {source};"));
        assert_eq!(value(&report), expected, "{source}");
        // One value has one spelling, whoever writes it.
        assert_eq!(bytes(&report), encode(&expected), "{source}");
    }
}

#[test]
fn what_comes_in_goes_out_the_same() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[("main.js", ECHO)]));
    for (source, input) in written() {
        let report = bench.call(isolate, "run", std::slice::from_ref(&input));
        assert_eq!(value(&report), input, "{source}");
    }
}

#[test]
fn what_comes_in_is_what_it_looks_like_to_javascript() {
    let bench = Bench::new();
    let deep = shared(Value::object([("self", Value::Reference(0))]));
    let checks: Vec<(Value, &str)> = vec![
        (Value::from(-0.0), "Object.is(arg, -0)"),
        (
            Value::from(f64::from_bits(0xfff8_0000_0000_0007)),
            "Object.is(arg, NaN)",
        ),
        (
            Value::from(f64::from_bits(0x7ff0_0000_0000_0001)),
            "Object.is(arg, NaN)",
        ),
        (
            Value::from(9_007_199_254_740_993_u64),
            "arg === 9007199254740993n",
        ),
        (
            bigint(true, &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
            "arg === -(2n ** 64n)",
        ),
        (Value::String(text(b"\xed\xa0\x80")), "arg === '\\ud800'"),
        (
            Value::from("a\0b"),
            "arg.length === 3 && arg.charCodeAt(1) === 0",
        ),
        (
            Value::Array(vec![1.into(), Value::Hole]),
            "arg.length === 2 && !(1 in arg) && Array.isArray(arg)",
        ),
        (
            Value::object([("__proto__", Value::object([("x", 1)]))]),
            "Object.getPrototypeOf(arg) === Object.prototype && arg.x === undefined && Object.hasOwn(arg, '__proto__')",
        ),
        (
            Value::object([("a", 1), ("b", 2), ("a", 3)]),
            "JSON.stringify(arg) === '{\"a\":3,\"b\":2}'",
        ),
        (deep, "arg.self === arg"),
        (
            Value::Map(vec![(1.into(), 2.into()), (1.into(), 3.into())]),
            "arg.size === 1 && arg.get(1) === 3",
        ),
        (
            Value::Date(f64::NAN),
            "arg instanceof Date && Number.isNaN(arg.getTime())",
        ),
        (
            regexp("a", "g"),
            "arg instanceof RegExp && arg.lastIndex === 0 && arg.global",
        ),
        (
            boxed("x"),
            "typeof arg === 'object' && arg instanceof String && arg.valueOf() === 'x'",
        ),
        (
            Value::DataView(vec![1]),
            "arg instanceof DataView && arg.getUint8(0) === 1",
        ),
        (
            typed(TypedArrayKind::Uint16, &[1, 0, 2, 0]),
            "arg instanceof Uint16Array && arg.length === 2 && arg[1] === 2 && arg.buffer.byteLength === 4",
        ),
    ];
    for (input, check) in checks {
        let report = bench.run_with(&format!("return {check};"), input.clone());
        assert_eq!(value(&report), Value::Bool(true), "{check} of {input:?}");
    }
}

#[test]
fn errors_are_errors_on_the_other_side() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[("main.js", ECHO)]));
    let cause = Value::error("RangeError", "why");
    let whole = ErrorValue {
        stack: Some("TypeError: m\n    at client (client.ts:1:2)".into()),
        cause: Some(cause.clone()),
        errors: Some(Value::Array(vec![cause, Value::Null])),
        props: vec![("code".into(), 7.into()), ("é".into(), Value::Null)],
        ..ErrorValue::new("TypeError", "m")
    };
    let own = ErrorValue {
        cause: Some(Value::Reference(0)),
        props: vec![("self".into(), Value::Reference(0))],
        ..ErrorValue::new("Error", "circular")
    };
    for input in [
        Value::error("Error", ""),
        Value::error("TypeError", "m"),
        Value::error("AggregateError", "m"),
        Value::error("MyError", "m"),
        Value::error("", ""),
        Value::error("DataCloneError", "lone \u{0}"),
        Value::from(whole),
        shared(own.into()),
    ] {
        let report = bench.call(isolate, "run", std::slice::from_ref(&input));
        assert_eq!(value(&report), input);
    }
}

#[test]
fn an_error_that_comes_in_has_the_class_of_its_name_and_no_stack_of_ours() {
    let bench = Bench::new();
    for (input, check) in [
        (
            Value::error("TypeError", "m"),
            "arg instanceof TypeError && arg.name === 'TypeError' && !Object.hasOwn(arg, 'name')",
        ),
        (
            Value::error("AggregateError", "m"),
            "arg instanceof AggregateError",
        ),
        (
            Value::error("MyError", "m"),
            "Object.getPrototypeOf(arg) === Error.prototype && arg.name === 'MyError'",
        ),
        (
            Value::error("constructor", "m"),
            "arg.name === 'constructor' && arg instanceof Error",
        ),
        (
            Value::error("Error", "m"),
            "arg.message === 'm' && arg.stack === '' && Object.keys(arg).length === 0",
        ),
        (
            ErrorValue {
                stack: Some("here".into()),
                ..ErrorValue::new("Error", "m")
            }
            .into(),
            "arg.stack === 'here'",
        ),
        (
            ErrorValue {
                cause: Some(Value::Undefined),
                ..ErrorValue::new("Error", "m")
            }
            .into(),
            "'cause' in arg && arg.cause === undefined",
        ),
        (
            ErrorValue {
                props: vec![("a".into(), 1.into())],
                ..ErrorValue::new("Error", "m")
            }
            .into(),
            "arg.a === 1 && Object.keys(arg).join() === 'a'",
        ),
    ] {
        let report = bench.run_with(&format!("return {check};"), input);
        assert_eq!(value(&report), Value::Bool(true), "{check}");
    }
}

#[test]
fn errors_that_javascript_makes_keep_what_is_theirs() {
    let bench = Bench::new();
    let error = |body: &str| match bench.eval(body) {
        Value::Error(error) => *error,
        other => panic!("{other:?}"),
    };
    let plain = error("return new TypeError('m', { cause: [1] });");
    assert_eq!(plain.name, "TypeError");
    assert_eq!(plain.message, "m");
    assert_eq!(plain.cause, Some(Value::array([1])));
    assert_eq!(plain.errors, None);
    let stack = plain.stack.unwrap();
    assert_eq!(stack, "TypeError: m\n    at run (main.js:1:56)");

    let custom = error(
        "class HttpError extends Error {
           name = 'HttpError'; status = 404; #secret = 1; retry() {}
           constructor() { super('gone'); this.handler = () => 1; this.data = { a: 1 }; }
         }
         return new HttpError();",
    );
    assert_eq!(custom.name, "HttpError");
    assert_eq!(custom.message, "gone");
    let data = Value::object([("a", 1)]);
    assert_eq!(
        custom.props,
        [("status".into(), 404.into()), ("data".into(), data)]
    );

    let aggregate = error("return new AggregateError([new Error('a'), 2], 'm');");
    assert_eq!(aggregate.name, "AggregateError");
    let errors = aggregate.errors.unwrap();
    assert_eq!(errors.index(0).unwrap().as_error().unwrap().message, "a");
    assert_eq!(errors.index(1), Some(&2.into()));

    let cloned = error("try { structuredClone(() => 1); } catch (error) { return error; }");
    assert_eq!(cloned.name, "DataCloneError");
    let expected = "A function could not be cloned: here only data can be passed (at value).";
    assert_eq!(cloned.message, expected);

    // A name or message that is no string is not one.
    let odd = error(
        "return Object.assign(new Error('m'), { name: Symbol('n'), message: { toString() { return 'x' } } });",
    );
    assert_eq!(
        (odd.name.as_str(), odd.message.as_str()),
        (Some("Error"), Some(""))
    );
}

#[test]
fn what_has_no_copy_is_refused_with_the_path_to_it() {
    let bench = Bench::new();
    let refused = |body: &str| {
        let report = bench.run(body);
        let text = thrown_text(&report);
        let text = text.strip_prefix("DataCloneError: ");
        text.unwrap_or_else(|| panic!("{body}: {:?}", report.outcome))
            .to_owned()
    };
    assert_eq!(
        refused("return { a: [1, 2, { b: Symbol('s') }] };"),
        "A symbol could not be cloned: symbols have no copies (at result.a[2].b)."
    );
    assert_eq!(
        refused("return Symbol('s');"),
        "A symbol could not be cloned: symbols have no copies (at result)."
    );
    assert_eq!(
        refused("return { 'a b': { é: { 1: Promise.resolve() } } };"),
        "A promise could not be cloned: await it first (at result[\"a b\"].é[\"1\"])."
    );
    assert_eq!(
        refused("return [new (class Point { x = 1 })()];"),
        "An instance of a class could not be cloned: its methods would be lost; make a plain object of what is to be \
         sent (at result[0])."
    );
    let of_class =
        "An object could not be cloned: it is of a built-in class whose state can't be copied";
    for source in [
        "new WeakMap()",
        "new WeakSet()",
        "new WeakRef({})",
        "(function () { return arguments })(1)",
        "(function* () {})()",
        "(async function* () {})()",
        "[][Symbol.iterator]()",
        "new Map().entries()",
        "Object(Symbol('s'))",
        "new FinalizationRegistry(() => 1)",
        "globalThis",
        "await import('main.js')",
    ] {
        if source == "globalThis" {
            continue;
        }
        assert_eq!(
            refused(&format!("return {{ it: {source} }};")),
            format!("{of_class} (at result.it)."),
            "{source}"
        );
    }
    // What can be called is passed by reference, and so is what is behind a proxy, which can't be known.
    for source in [
        "class {}",
        "async () => 1",
        "function* () {}",
        "Math.max",
        "console.log",
        "new Proxy(() => 1, {})",
        "new Proxy({}, {})",
        "new Proxy(new Date(), {})",
        "new (class extends RpcTarget {})()",
    ] {
        let body = format!(
            "const {{ RpcTarget }} = await import('cloudflare:workers'); return {{ it: {source} }};"
        );
        let Outcome::Value(value) = bench.run(&body).outcome else {
            panic!("{source} is passed by reference");
        };
        assert_eq!(
            value.externals,
            [External::Export(1, Kind::Target)],
            "{source}"
        );
    }
    assert_eq!(
        refused("return new Map([['k', { deep: Symbol() }]]);"),
        "A symbol could not be cloned: symbols have no copies (at result entry.deep)."
    );
    assert_eq!(
        refused("return Object.assign(new Error('m', { cause: { f: [Symbol()] } }));"),
        "A symbol could not be cloned: symbols have no copies (at result.cause.f[0])."
    );
    assert_eq!(
        refused("return Object.assign(new Error('m'), { extra: Symbol() });"),
        "A symbol could not be cloned: symbols have no copies (at result.extra)."
    );
}

#[test]
fn a_getter_that_throws_is_the_outcome() {
    let bench = Bench::new();
    for body in [
        "return { get x() { throw new RangeError('no'); } };",
        "return [{ a: { get x() { throw new RangeError('no'); } } }];",
        "return Object.defineProperty([1, 2], 1, { get() { throw new RangeError('no'); }, enumerable: true });",
        "return Object.defineProperty(new Error(), 'name', { get() { throw new RangeError('no'); } });",
        "return Object.defineProperty(new Error(), 'cause', { get() { throw new RangeError('no'); } });",
    ] {
        assert_eq!(thrown_text(&bench.run(body)), "RangeError: no", "{body}");
    }
}

#[test]
fn getters_that_change_what_is_being_written_do_no_harm() {
    let bench = Bench::new();
    let (four, hole) = (Value::from(4), Value::Hole);
    // An array that shrinks has holes where its elements were; one that grows is as long as it was.
    let shrunk = "const a = [0, 0, 3]; Object.defineProperty(a, 0, { get() { a.length = 1; return 4; } }); return a;";
    assert_eq!(
        bench.eval(shrunk),
        Value::Array(vec![four.clone(), hole.clone(), hole.clone()])
    );
    let grown =
        "const a = [0]; Object.defineProperty(a, 0, { get() { a.push(1); return 4; } }); return a;";
    assert_eq!(bench.eval(grown), Value::Array(vec![four.clone()]));
    let from_within = "const a = [{ get x() { a.length = 0; return 4; } }, 2]; return a;";
    let object = Value::object([("x", 4)]);
    assert_eq!(
        bench.eval(from_within),
        Value::Array(vec![object, hole.clone()])
    );
    // All properties of an object are read before its members.
    let deleted = "const o = { get a() { delete o.b; o.c = 1; return 4; }, b: 2, d: 3 }; return o;";
    assert_eq!(bench.eval(deleted), Value::object([("a", 4), ("d", 3)]));
    let member = "const o = { a: { get x() { delete o.b; return 4; } }, b: 2 }; return o;";
    assert_eq!(
        bench.eval(member),
        Value::object([("a", Value::object([("x", 4)])), ("b", 2.into())])
    );
    // Collections are copied before their members are looked into.
    let map = "const m = new Map([[{ get x() { m.clear(); return 4; } }, 1], [2, 3]]); return m;";
    let key = Value::object([("x", 4)]);
    assert_eq!(
        bench.eval(map),
        Value::Map(vec![(key, 1.into()), (2.into(), 3.into())])
    );
    // Results of getters have no other owner: their addresses must not be taken for those of others.
    let temporary =
        "return Array.from({ length: 100 }, (_, i) => ({ get x() { return { i }; } }));";
    let expected = (0..100).map(|i| Value::object([("x", Value::object([("i", i)]))]));
    assert_eq!(bench.eval(temporary), Value::Array(expected.collect()));
}

#[test]
fn buffers_that_are_gone_are_refused() {
    let bench = Bench::new();
    let text = |body: &str| thrown_text(&bench.run(body));
    let detached =
        "DataCloneError: An ArrayBuffer could not be cloned: it is detached (at result.b).";
    let outside = |path: &str| {
        format!(
            "DataCloneError: A view of an ArrayBuffer could not be cloned: the buffer was detached or resized, and the \
             view lies outside of it (at result.{path})."
        )
    };
    assert_eq!(
        text("const b = new ArrayBuffer(8); b.transfer(); return { b };"),
        detached
    );
    assert_eq!(
        text(
            "const b = new ArrayBuffer(8); const v = new Uint8Array(b); b.transfer(); return { v };"
        ),
        outside("v")
    );
    assert_eq!(
        text(
            "const b = new ArrayBuffer(8); const v = new DataView(b); b.transfer(); return { v };"
        ),
        outside("v")
    );
    let resizable = "const b = new ArrayBuffer(8, { maxByteLength: 16 });";
    assert_eq!(
        text(&format!(
            "{resizable} const v = new Uint8Array(b, 4, 4); b.resize(5); return {{ v }};"
        )),
        outside("v")
    );
    assert_eq!(
        text(&format!(
            "{resizable} const v = new DataView(b, 4, 4); b.resize(5); return {{ v }};"
        )),
        outside("v")
    );
    // Detached by a getter, when its size has been seen.
    assert_eq!(
        text(
            "const b = new ArrayBuffer(8); return { a: { get x() { b.transfer(); return 1; } }, b };"
        ),
        detached
    );
    // A view that tracks its buffer's length is as long as it is when it is written.
    let tracking = format!(
        "{resizable} const v = new Uint8Array(b, 4); return {{ get a() {{ b.resize(5); return 1; }}, v }};"
    );
    assert_eq!(
        bench.eval(&tracking),
        Value::object([("a", 1.into()), ("v", Value::uint8_array([0]))])
    );
    let resized = format!(
        "{resizable} const v = new Uint8Array(b); b.resize(16); v[15] = 1; return v.length;"
    );
    assert_eq!(bench.eval(&resized), 16.into());
}

#[test]
fn no_code_of_the_workers_runs_while_a_value_is_built() {
    let bench = Bench::new();
    let source = "
        const ran = [];
        const add = (name) => { ran[ran.length] = name; };
        for (const name of ['a', '5', 'name', 'message', 'stack', 'cause', 'self', 'length', 'value']) {
          Object.defineProperty(Object.prototype, name, {
            __proto__: null, set() { add(name); }, get() { add(name); }, configurable: true });
        }
        const patched = [
          [Map.prototype, ['set', 'has', Symbol.iterator]], [Set.prototype, ['add', Symbol.iterator]],
          [RegExp.prototype, ['exec', 'flags', 'source']], [Date.prototype, ['valueOf', 'getTime']],
          [Error.prototype, ['toString', 'stack']], [String.prototype, ['concat', 'valueOf']],
          [Object.getPrototypeOf(Uint8Array.prototype), ['buffer', 'set']],
          [Array.prototype, ['push', Symbol.iterator, 'forEach', 'join']],
        ];
        for (let i = 0; i < patched.length; i++) {
          for (let j = 0; j < patched[i][1].length; j++) {
            const name = patched[i][1][j];
            Object.defineProperty(patched[i][0], name, { __proto__: null, get() { add(String(name)); return () => 1; } });
          }
        }
        globalThis.Map = globalThis.Set = globalThis.Error = globalThis.Date = function () { add('constructor'); };
        export default { run(value) { return [ran.length, value]; } };
    ";
    let isolate = bench.isolate(worker(&[("main.js", source)]));
    let error = ErrorValue {
        stack: Some("s".into()),
        cause: Some(1.into()),
        props: vec![("a".into(), 1.into())],
        ..ErrorValue::new("MyError", "m")
    };
    let input = shared(Value::object([
        (
            "a",
            Value::Array(vec![1.into(), Value::Hole, shared(Value::array([1]))]),
        ),
        (
            "0",
            Value::Map(vec![(1.into(), Value::Set(vec![1.into()]))]),
        ),
        ("self", Value::Reference(0)),
        ("e", error.into()),
        ("r", regexp("a", "g")),
        ("d", Value::Date(1.0)),
        ("u", Value::uint8_array([1])),
        ("b", boxed("x")),
        ("n", bigint(true, &[1, 2, 3, 4, 5, 6, 7, 8, 9])),
        ("s", Value::String(text(b"\xed\xa0\x80"))),
    ]));
    let report = bench.call(isolate, "run", std::slice::from_ref(&input));
    let result = value(&report);
    assert_eq!(result.index(0), Some(&0.into()), "code ran");
    // The array without another reference is no longer marked as shared.
    assert!(result.index(1).unwrap().get("n").is_some());
}

#[test]
fn json_goes_in_and_out_as_text() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[(
        "main.js",
        "export default {
           echo(value) { return value; },
           nothing(_) {}, inside(_) { return { a: undefined, b: () => 1, c: [undefined, Symbol()] }; },
           date(_) { return new Date(0); }, custom(_) { return { toJSON() { return { x: 'é\\ud800' }; } }; },
           big(_) { return { a: 1n }; }, circle(_) { const a = {}; a.a = a; return a; }, map(_) { return new Map([[1, 2]]); },
           throwing(_) { return { toJSON() { throw new RangeError('no'); } }; },
         };",
    )]));
    let call = |method: &str, args: &str| {
        let mut call = bench.call_of(method, &[]);
        call.args = Bytes {
            form: Form::Json,
            bytes: args.into(),
            externals: Vec::new(),
        };
        call.result_form = Form::Json;
        bench.report(bench.send(isolate, call))
    };
    for text in [
        "null",
        "true",
        "1.5",
        "-0.5",
        "\"x\\ny\"",
        "\"\\ud800\"",
        "[]",
        "{}",
        "[1,{\"a\":[null]}]",
        "{\"__proto__\":1,\"a\":\"日本😀\"}",
    ] {
        assert_eq!(json(&call("echo", &format!("[{text}]"))), text);
    }
    assert_eq!(
        call("nothing", "[0]").outcome,
        Outcome::Value(Bytes::UNDEFINED)
    );
    assert_eq!(json(&call("inside", "[0]")), "{\"c\":[null,null]}");
    assert_eq!(json(&call("date", "[0]")), "\"1970-01-01T00:00:00.000Z\"");
    assert_eq!(json(&call("custom", "[0]")), "{\"x\":\"é\\ud800\"}");
    assert_eq!(json(&call("map", "[0]")), "{}");
    assert!(thrown_text(&call("big", "[0]")).starts_with("TypeError: "));
    assert!(thrown_text(&call("circle", "[0]")).starts_with("TypeError: "));
    assert_eq!(thrown_text(&call("throwing", "[0]")), "RangeError: no");
    for (args, text) in [
        (
            "[1",
            "TypeError: the arguments can't be decoded: the JSON text is malformed: ",
        ),
        (
            "",
            "TypeError: the arguments can't be decoded: the JSON text is malformed: ",
        ),
        (
            "[1] x",
            "TypeError: the arguments can't be decoded: the JSON text is malformed: ",
        ),
        ("{}", "TypeError: the arguments of a call must be an array"),
    ] {
        let report = call("echo", args);
        assert!(
            thrown_text(&report).starts_with(text),
            "{args}: {:?}",
            report.outcome
        );
    }
    let mut invalid = bench.call_of("echo", &[]);
    invalid.args = Bytes {
        form: Form::Json,
        bytes: b"[\"\xff\"]".to_vec(),
        externals: Vec::new(),
    };
    let report = bench.report(bench.send(isolate, invalid));
    assert!(
        thrown_text(&report).contains("the JSON text is not UTF-8"),
        "{:?}",
        report.outcome
    );
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(Value::Array(vec![]), |inner, _| Value::Array(vec![inner]))
}

fn is_too_deep(report: &Report) -> bool {
    matches!(&report.outcome, Outcome::Verdict(verdict) if verdict.kind == VerdictKind::ValueDepth)
}

#[test]
fn nesting_is_allowed_up_to_the_limit_and_not_one_level_further() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[("main.js", ECHO)]));
    // The arguments' array is a level, too.
    let echo = |depth: usize| bench.call(isolate, "run", &[nested(depth)]);
    assert_eq!(value(&echo(511)), nested(511));
    assert!(is_too_deep(&echo(512)));
    assert_eq!(
        value(&echo(1)),
        nested(1),
        "the isolate serves on: no code has run"
    );
    for kind in ["array", "object", "map", "error"] {
        // A result that is too deep ends the isolate, because code has run.
        let nest = |depth: u32| {
            let isolate = bench.isolate(worker(&[("main.js", NEST)]));
            bench.call(
                isolate,
                "run",
                &[Value::Array(vec![kind.into(), depth.into()])],
            )
        };
        let report = nest(512);
        assert!(decode(bytes(&report), &Bounds::default()).is_ok(), "{kind}");
        assert!(is_too_deep(&nest(513)), "{kind}");
    }
}

const NEST: &str = "export default {
  run([kind, depth]) {
    let it = kind === 'map' ? new Map() : kind === 'error' ? new Error('m') : kind === 'object' ? {} : [];
    for (let i = 1; i < depth; i++) {
      if (kind === 'map') it = new Map([[it, 1]]);
      else if (kind === 'error') it = new Error('m', { cause: it });
      else if (kind === 'object') it = { it };
      else it = [it];
    }
    return it;
  },
};";

#[test]
fn the_limit_on_nesting_can_be_raised_to_the_ceiling() {
    let bench = Bench::new();
    let limits = Limits {
        value_depth_max: DEPTH_CEILING as u64,
        ..Limits::default()
    };
    let isolate = bench.isolate(worker_with(&[("main.js", ECHO)], limits));
    let echo = |depth: usize, form: Form| {
        let mut call = bench.call_of("run", &[nested(depth)]);
        if form == Form::Json {
            let text = format!("{}{}", "[".repeat(depth + 1), "]".repeat(depth + 1));
            call.args = Bytes {
                form,
                bytes: text.into(),
                externals: Vec::new(),
            };
        }
        call.result_form = form;
        call.limits.value_depth_max = limits.value_depth_max;
        bench.report(bench.send(isolate, call))
    };
    for form in [Form::Cbor, Form::Json] {
        assert!(
            matches!(echo(DEPTH_CEILING - 1, form).outcome, Outcome::Value(_)),
            "{form:?}"
        );
        assert!(is_too_deep(&echo(DEPTH_CEILING, form)), "{form:?}");
    }
}

#[test]
fn json_is_as_deep_as_any_value_may_be() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[(
        "main.js",
        "export default {
        run(value) { return value; },
        nest(depth) { let it = []; for (let i = 1; i < depth; i++) it = [it]; return it; } };",
    )]));
    let call = |method: &str, args: String| {
        let mut call = bench.call_of(method, &[]);
        call.args = Bytes {
            form: Form::Json,
            bytes: args.into(),
            externals: Vec::new(),
        };
        call.result_form = Form::Json;
        bench.report(bench.send(isolate, call))
    };
    let brackets = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(json(&call("run", brackets(512))), brackets(511));
    assert!(is_too_deep(&call("run", brackets(513))));
    assert!(is_too_deep(&call("run", "[".repeat(1_000_000))));
    assert_eq!(
        json(&call("run", format!("[\"{}\"]", "[".repeat(1000)))),
        format!("\"{}\"", "[".repeat(1000))
    );
    assert_eq!(json(&call("nest", "[512]".into())), brackets(512));
    assert!(is_too_deep(&call("nest", "[513]".into())));
}

#[test]
fn structured_clone_copies_as_the_border_does() {
    let bench = Bench::new();
    for check in [
        "Object.is(structuredClone(-0), -0)",
        "(() => { const o = { n: 1 }; o.o = o; const c = structuredClone(o); return c !== o && c.o === c && c.n === 1 })()",
        "structuredClone(new Map([[1, new Set([2])]])).get(1).has(2)",
        "structuredClone(new Date(5)).getTime() === 5",
        "structuredClone([1, , 3]).length === 3 && !(1 in structuredClone([1, , 3]))",
        "structuredClone(new TypeError('m')) instanceof TypeError",
        "structuredClone(new Error('m')).stack.includes('main.js')",
        "structuredClone(new (class P { x = 1; get y() { return 2 } })()).x === 1",
        "Object.getPrototypeOf(structuredClone(new (class P {})())) === Object.prototype",
        "(() => { const b = new ArrayBuffer(8); const c = structuredClone(b, { transfer: [b] }); return b.detached && c.byteLength === 8 })()",
        "(() => { try { structuredClone(1, { transfer: [5] }) } catch (e) { return e.name === 'TypeError' } })()",
        "(() => { try { structuredClone({ f() {} }) } catch (e) { return e instanceof DOMException && e.message.endsWith('(at value.f).') } })()",
        "(() => { try { structuredClone(new Array(4e9)) } catch (e) { return e instanceof RangeError } })()",
        "(() => { let d = []; for (let i = 0; i < 5000; i++) d = [d]; try { structuredClone(d) } catch (e) { return e instanceof RangeError } })()",
        "(() => { let n = 0; const o = { get x() { return n++ < 3 ? structuredClone(o) : 5 } }; return structuredClone(o).x.x.x.x === 5 })()",
    ] {
        assert_eq!(
            bench.eval(&format!("return {check};")),
            Value::Bool(true),
            "{check}"
        );
    }
}

#[test]
fn a_result_that_is_too_large_is_refused_before_it_takes_memory() {
    let bench = Bench::new();
    for body in [
        "return new Array(4294967295);",
        "return [[new Array(4294967295)]];",
        "const s = 'x'.repeat(1 << 16); return Array.from({ length: 40 }, () => s);",
        "return new Uint8Array(33 << 20);",
        "return { a: new ArrayBuffer(1 << 20) };",
    ] {
        let source = format!("export default {{ run() {{ {body} }} }};");
        let isolate = bench.isolate(worker(&[("main.js", &source)]));
        let mut call = bench.call_of("run", &[Value::Null]);
        call.limits.result_bytes_max = 1 << 20;
        let report = bench.report(bench.send(isolate, call));
        let Outcome::Verdict(verdict) = &report.outcome else {
            panic!("{body}: {:?}", report.outcome);
        };
        assert_eq!(verdict.kind, VerdictKind::ResultSize, "{body}");
        assert_eq!(report.usage.memory_denied, 0, "{body}");
    }
}

/// Calls an echo with raw bytes for its arguments.
fn raw(bench: &Bench, isolate: u64, bytes: Vec<u8>) -> Report {
    let mut call = bench.call_of("run", &[]);
    call.args = Bytes {
        form: Form::Cbor,
        bytes,
        externals: Vec::new(),
    };
    bench.report(bench.send(isolate, call))
}

#[test]
fn bytes_that_are_no_value_are_a_type_error_and_the_isolate_serves_on() {
    let bench = Bench::new();
    let isolate = bench.isolate(worker(&[("main.js", ECHO)]));
    for (bytes, text) in [
        (&b"\x81"[..], "input ends at byte 1 before the value does"),
        (b"", "input ends at byte 0 before the value does"),
        (b"\x81\x01\x01", "more bytes follow the value at byte 2"),
        (
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "input ends at byte 10 before the value does",
        ),
        (
            b"\x9a\xff\xff\xff\xff\x01",
            "input ends at byte 6 before the value does",
        ),
        (
            b"\x81\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",
            "input ends at byte 10 before the value does",
        ),
        (
            b"\x81\xbb\x7f\xff\xff\xff\xff\xff\xff\xff",
            "input ends at byte 10 before the value does",
        ),
        (
            b"\x81\xd8\x1d\x00",
            "reference to shared object 0 at byte 1, of which 0 have begun",
        ),
        (
            b"\x81\xd9\x9c\x40\x00",
            "external 0 at byte 1 is not in the table of 0",
        ),
        (b"\x81\xa1\x01\x02", "key at byte 2 is not a string"),
        (b"\x81\x61\xff", "invalid text at byte 1"),
        (
            b"\x81\xd9\x9c\x42\xf7",
            "content of tag 40002 at byte 4 is not null",
        ),
    ] {
        let report = raw(&bench, isolate, bytes.to_vec());
        assert_eq!(
            thrown_text(&report),
            format!("TypeError: the arguments can't be decoded: {text}"),
            "{bytes:02x?}"
        );
    }
    let report = raw(&bench, isolate, encode(&Value::object([("a", 1)])));
    assert_eq!(
        thrown_text(&report),
        "TypeError: the arguments of a call must be an array"
    );
    let report = raw(&bench, isolate, encode(&Value::array([regexp("(", "")])));
    assert!(
        thrown_text(&report).starts_with("SyntaxError: "),
        "{:?}",
        report.outcome
    );
    assert_eq!(value(&bench.call(isolate, "run", &[1.into()])), 1.into());
}

/// A value of many kinds, for mutation.
fn specimen() -> Value {
    let error = ErrorValue {
        stack: Some("s".into()),
        cause: Some(Value::Reference(1)),
        props: vec![("p".into(), Value::Null)],
        ..ErrorValue::new("TypeError", "m")
    };
    Value::Array(vec![shared(Value::object([
        (
            "array",
            shared(Value::Array(vec![
                1.into(),
                Value::Hole,
                Value::Reference(1),
                2.5.into(),
            ])),
        ),
        (
            "map",
            Value::Map(vec![("k".into(), Value::Set(vec![bigint(true, &[9; 12])]))]),
        ),
        ("error", error.into()),
        ("regexp", regexp("a+", "gi")),
        ("date", Value::Date(1e12)),
        ("bytes", Value::ArrayBuffer(vec![1, 2, 3])),
        ("typed", typed(TypedArrayKind::Float32, &[0; 8])),
        ("view", Value::DataView(vec![7])),
        ("boxed", boxed("x")),
        ("text", Value::String(text(b"\xed\xa0\x80"))),
        ("self", Value::Reference(0)),
    ]))])
}

fn leaf_value() -> impl Strategy<Value = Value> {
    let whole = TypedArrayKind::ALL.to_vec();
    prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i128>().prop_map(|number| Value::BigInt(number.into())),
        any::<(bool, Vec<u8>)>().prop_map(|(negative, bytes)| bigint(negative, &bytes)),
        any::<String>().prop_map(Value::from),
        (-8_640_000_000_000_000_i64..=8_640_000_000_000_000).prop_map(|ms| Value::Date(ms as f64)),
        any::<Vec<u8>>().prop_map(Value::ArrayBuffer),
        any::<Vec<u8>>().prop_map(Value::DataView),
        (prop::sample::select(whole), any::<Vec<u8>>()).prop_map(|(kind, mut bytes)| {
            bytes.truncate(bytes.len() / kind.element_bytes() * kind.element_bytes());
            typed(kind, &bytes)
        }),
        any::<f64>().prop_map(boxed),
        "[a-z0-9+*]{0,3}".prop_filter_map("a pattern", |source| {
            let is_pattern = !source.starts_with(['+', '*'])
                && !["++", "**", "+*", "*+"]
                    .iter()
                    .any(|twice| source.contains(twice));
            (is_pattern && !source.is_empty()).then(|| regexp(&source, "gi"))
        }),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    leaf_value().prop_recursive(6, 60, 8, |inner| {
        // No two keys alike, and none that JavaScript puts first.
        let properties = prop::collection::btree_map("k[a-zé😀]{0,4}", inner.clone(), 0..6);
        let entries = prop::collection::btree_map(any::<i32>(), inner.clone(), 0..5);
        let element = prop_oneof![9 => inner.clone(), 1 => Just(Value::Hole)];
        prop_oneof![
            prop::collection::vec(element, 0..8).prop_map(Value::Array),
            properties.clone().prop_map(Value::object),
            entries.prop_map(|entries| {
                Value::Map(
                    entries
                        .into_iter()
                        .map(|(key, value)| (key.into(), value))
                        .collect(),
                )
            }),
            prop::collection::btree_set(any::<i32>(), 0..5)
                .prop_map(|members| Value::Set(members.into_iter().map(Value::from).collect())),
            (
                "[A-Z][a-z]{0,5}",
                any::<String>(),
                prop::option::of(inner),
                properties
            )
                .prop_map(|(name, message, cause, props)| {
                    let props = props.into_iter().map(|(key, value)| (key.into(), value));
                    let props = props.collect();
                    ErrorValue {
                        cause,
                        props,
                        ..ErrorValue::new(name, message)
                    }
                    .into()
                }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_value_that_goes_in_comes_out(input in any_value()) {
        let report = BENCH.with(|bench| {
            let isolate = bench.isolate(worker(&[("main.js", ECHO)]));
            let report = bench.call(isolate, "run", std::slice::from_ref(&input));
            bench.threads().send(Message::End { isolate });
            report
        });
        prop_assert_eq!(&value(&report), &input);
        if !input.is_undefined() {
            let expected = encode(&input);
            prop_assert_eq!(bytes(&report), &expected[..]);
        }
    }
}

/// An edit of bytes: where, with what, and how.
type Edit = (prop::sample::Index, u8, u8);

fn edited(original: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for (index, byte, kind) in edits {
        let at = index.index(bytes.len());
        match kind {
            0 => bytes[at] = *byte,
            1 => bytes[at] ^= 1 << (byte % 8),
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, *byte),
        }
    }
    bytes
}

thread_local! {
    static BENCH: Bench = Bench::new();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// The guest takes what the host's decoder takes, and nothing else; whatever it is, the isolate serves on.
    #[test]
    fn hostile_bytes_are_judged_as_the_host_judges_them(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..4)
    ) {
        let bytes = edited(&encode(&specimen()), &edits);
        let expected = decode(&bytes, &Bounds::default());
        let (report, next) = BENCH.with(|bench| {
            let isolate = bench.isolate(worker(&[("main.js", ECHO)]));
            let report = raw(bench, isolate, bytes);
            let next = bench.call(isolate, "run", &[1.into()]);
            bench.threads().send(Message::End { isolate });
            (report, next)
        });
        match (&report.outcome, expected) {
            (Outcome::Value(_), Ok(value)) => prop_assert!(value.as_array().is_some()),
            // Only an engine knows what is a pattern, and what else its constructors take.
            (Outcome::Threw(thrown), Ok(value)) if value.as_array().is_some() => {
                let is_the_engines = ["SyntaxError", "TypeError"].contains(&&thrown.name[..]);
                prop_assert!(is_the_engines, "{}: {}", thrown.name, thrown.message);
            }
            (Outcome::Threw(thrown), Ok(_)) => {
                prop_assert_eq!(&thrown.message, "the arguments of a call must be an array");
            }
            (Outcome::Threw(thrown), Err(error)) => {
                let expected = format!("the arguments can't be decoded: {error}");
                prop_assert_eq!(&thrown.message, &expected);
                prop_assert_eq!(&thrown.name, "TypeError");
            }
            (Outcome::Value(_), Err(error)) => prop_assert!(false, "passed, but {}", error),
            (Outcome::Verdict(verdict), _) => {
                prop_assert_eq!(verdict.kind, VerdictKind::ValueDepth);
                prop_assert!(!verdict.started);
            }
        }
        prop_assert_eq!(value(&next), Value::from(1));
    }
}
