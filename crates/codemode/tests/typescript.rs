//! Declarations, judged by the TypeScript compiler: that they are TypeScript at all, and that they say what the schemas say.

#![allow(clippy::unwrap_used, reason = "a test without its oracle fails")]

mod support;

use coracle_codemode::{Api, Limits, NamespaceSignature, Schema, ToolSignature, declare, sanitize};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRng, TestRunner},
};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the compiler over a text, and fails with the lines that it finds wrong.
fn assert_compiles(source: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checks.ts");
    std::fs::write(&path, source).unwrap();
    let compiler = support::oracles().join("node_modules/typescript/bin/tsc");
    let (is_fine, said) = support::node(
        &[
            compiler.to_str().unwrap(),
            "--noEmit",
            "--strict",
            "--target",
            "es2022",
            "--lib",
            "es2022",
            "--types",
            "",
            "--pretty",
            "false",
            path.to_str().unwrap(),
        ],
        b"",
    );
    let lines: Vec<_> = source.lines().collect();
    let mut report = String::new();
    for error in said.lines().take(20) {
        let line = error
            .split(['(', ','])
            .nth(1)
            .and_then(|line| line.parse::<usize>().ok());
        let line = line.and_then(|line| lines.get(line - 1)).unwrap_or(&"");
        let _ = writeln!(report, "{error}\n    {line}");
    }
    assert!(is_fine, "{report}");
}

/// How the checks speak of types.
const PREAMBLE: &str = "
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type In<F extends (...all: any) => unknown> = NonNullable<Parameters<F>[0]>;
type Out<F> = F extends (...all: never) => Promise<infer T> ? T : \"no function\";
";

fn declared(namespace: &str, input: Option<&Schema>, output: Option<&Schema>) -> String {
    let limits = Limits {
        types_tokens_max: 1_000_000,
        ..Limits::default()
    };
    let tool = ToolSignature {
        identifier: "f",
        description: "Does it. */ export {}",
        is_deprecated: false,
        input,
        output,
    };
    let found = declare(
        &[NamespaceSignature {
            name: namespace,
            description: "",
            tools: vec![tool],
        }],
        &limits,
    );
    assert!(found.cuts.is_empty(), "{:?}", found.cuts);
    found.text
}

/// What each schema means, as a type that must be the same to the compiler.
fn meanings() -> Vec<(Value, &'static str)> {
    vec![
        // Plain types.
        (json!({"type": "string"}), "string"),
        (json!({"type": "integer"}), "number"),
        (json!({"type": ["string", "null"]}), "string | null"),
        (json!({}), "unknown"),
        (json!(true), "unknown"),
        (json!(false), "never"),
        // Parentheses within arrays, whatever is in them.
        (
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
            "(string | number)[]",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "nullable": true}}),
            "(string | null)[]",
        ),
        (
            json!({"type": "array", "items": {"allOf": [{"$ref": "#/$defs/u"}, {"enum": ["a", 1]}]},
                "$defs": {"u": {"type": ["string", "number"]}}}),
            "(\"a\" | 1)[]",
        ),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"enum": [1, 2]}}}),
            "(1 | 2)[][]",
        ),
        (json!({"type": "array"}), "unknown[]"),
        (json!({"type": "array", "items": false}), "[]"),
        // Alternatives beside properties: neither is lost.
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                "anyOf": [{"properties": {"b": {"type": "number"}}, "required": ["b"]},
                          {"properties": {"c": {"type": "boolean"}}, "required": ["c"]}]}),
            "{ a: string } & ({ b: number } | { c: boolean })",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            "{ a: string; b?: number } | { a?: string; b: number }",
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "number"}}, "required": ["b"]}]}),
            "{ a?: string; b: number }",
        ),
        (
            json!({"allOf": [{"$ref": "#/$defs/a"}], "required": ["x"], "$defs": {"a": {"properties": {"x": {"type": "string"}}}}}),
            "{ x: string }",
        ),
        (
            json!({"if": {"properties": {"k": {"const": 1}}}, "then": {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                "else": {"properties": {"b": {"type": "string"}}, "required": ["b"]}}),
            "{ a: string } | { b: string }",
        ),
        (json!({"not": {}}), "never"),
        // Values.
        (json!({"const": null}), "null"),
        (
            json!({"const": "a\"\\\n\u{2028}"}),
            "\"a\\\"\\\\\\n\\u2028\"",
        ),
        (
            json!({"enum": ["a", 1, -1.5, true, null, {"x": ["y"]}]}),
            "\"a\" | 1 | -1.5 | true | null | { x: [\"y\"] }",
        ),
        (
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            "\"a\" | null",
        ),
        (json!({"type": "string", "enum": ["a", 5]}), "\"a\""),
        (json!({"enum": []}), "never"),
        (
            json!({"type": "string", "enum": ["a"], "nullable": true}),
            "\"a\" | null",
        ),
        (
            json!({"type": "string", "anyOf": [{"const": "a"}, {"pattern": "^b"}]}),
            "string",
        ),
        // Tuples of either draft.
        (
            json!({"prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}),
            "[string, number]",
        ),
        (
            json!({"prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1, "items": {"type": "boolean"}}),
            "[string, number?, ...boolean[]]",
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}, {"enum": [1, 2]}], "minItems": 0}),
            "[string?, (1 | 2)?]",
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": ["number", "null"]}}),
            "[string, ...(number | null)[]]",
        ),
        // Other members.
        (json!({"type": "object"}), "{ [key: string]: unknown }"),
        (json!({"type": "object", "properties": {}}), "{}"),
        (
            json!({"type": "object", "additionalProperties": {"type": "number"}}),
            "{ [key: string]: number }",
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            "{ [key: string]: never }",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}),
            "{ [key: string]: string | number | undefined; a?: string }",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": true}),
            "{ [key: string]: unknown; a: string }",
        ),
        (
            json!({"patternProperties": {"^x-": {"type": "string"}, "^y-": {"type": "number"}}, "additionalProperties": false}),
            "{ [key: string]: string | number }",
        ),
        (
            json!({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "number"}}),
            "{ a?: number; b?: number }",
        ),
        (
            json!({"type": "object", "required": ["a"]}),
            "{ [key: string]: unknown; a: unknown }",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}),
            "{ a?: string; b: unknown }",
        ),
        // Names.
        (
            json!({"type": "object", "properties": {"x-y": {"type": "string"}, "1a": {"type": "string"}, "": {"type": "string"},
                "class": {"type": "string"}, "a\"\\": {"type": "string"}, "__proto__": {"type": "string"}, "日本": {"type": "string"}},
                "required": ["x-y", "1a", "", "class", "a\"\\", "__proto__", "日本"]}),
            "{ \"x-y\": string; \"1a\": string; \"\": string; class: string; \"a\\\"\\\\\": string; __proto__: string; 日本: string }",
        ),
        // References, cycles among them.
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
            "string",
        ),
        (
            json!({"$ref": "#/$defs/a", "type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"],
                "$defs": {"a": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}}),
            "{ a: string; b: number }",
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "number",
                "definitions": {"a": {"type": "string"}}}),
            "string",
        ),
        (json!({"$ref": "https://example.com/elsewhere"}), "unknown"),
        (json!({"$ref": "#/nowhere"}), "unknown"),
        (
            json!({"type": "array", "items": {"$ref": "#"}}),
            "Nested; type Nested = Nested[]",
        ),
        (
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
            "Node; type Node = { next?: Node }",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}],
                "$defs": {"tree": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}]}}}),
            "Tree; type Tree = string | { [key: string]: Tree }",
        ),
        // A type that is made of nothing but itself says nothing.
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "unknown",
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}}),
            "unknown",
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}], "properties": {"x": {"type": "string"}}},
                "b": {"allOf": [{"$ref": "#/$defs/a"}], "properties": {"y": {"$ref": "#/$defs/a"}}}}}),
            "A; type A = { x?: string; y?: A }",
        ),
        // Names of types that mean something else.
        (
            json!({"$ref": "#/$defs/Promise", "$defs": {"Promise": {"type": "string"}}}),
            "string",
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/a-b"}, {"$ref": "#/$defs/a_b"}, {"$ref": "#/$defs/aB"}, {"$ref": "#/$defs/1"}, {"$ref": "#/$defs/%E2%82%AC"}],
                "$defs": {"a-b": {"const": 1}, "a_b": {"const": 2}, "aB": {"const": 3}, "1": {"const": 4}, "€": {"const": 5}}}),
            "1 | 2 | 3 | 4 | 5",
        ),
    ]
}

/// Every schema of the table has the type that stands beside it, in both directions.
#[test]
fn schemas_mean_their_types() {
    let mut source = PREAMBLE.to_owned();
    for (index, (schema, meaning)) in meanings().into_iter().enumerate() {
        let schema = Schema::new(schema, &Limits::default()).unwrap();
        source += &declared(&format!("c{index}"), Some(&schema), Some(&schema));
        let (expected, more) = meaning
            .split_once(';')
            .filter(|(_, more)| more.starts_with(" type"))
            .unwrap_or((meaning, ""));
        let expected = match more {
            "" => expected.to_owned(),
            more => {
                let _ = writeln!(source, "declare namespace e{index} {{ {more} }}");
                format!("e{index}.{expected}")
            }
        };
        let _ = writeln!(
            source,
            "const out{index}: Same<Out<typeof c{index}.f>, {expected}> = true; // {}",
            schema
                .value()
                .to_string()
                .replace(['\u{2028}', '\u{2029}'], " ")
        );
    }
    assert_compiles(&source);
}

/// What OpenAPI adds: directions, discriminators, bytes, `nullable`.
#[test]
fn openapi_means_its_types() {
    let api = |version: &str, schemas: Value, schema: Value| {
        let content = json!({"application/json": {"schema": schema}});
        Api::of_value(
            json!({"openapi": version, "components": {"schemas": schemas}, "paths": {"/": {"post": {
                "requestBody": {"required": true, "content": content},
                "responses": {"200": {"content": content}},
            }}}}),
            &Limits::default(),
        )
        .unwrap()
    };
    let pet = json!({
        "Pet": {"oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
                "discriminator": {"propertyName": "kind", "mapping": {"kitty": "#/components/schemas/Cat"}}},
        "Cat": {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}, "required": ["kind", "lives"]},
        "Dog": {"type": "object", "properties": {"kind": {"type": "string"}, "friend": {"$ref": "#/components/schemas/Pet"}}, "required": ["kind"]},
        // Inheritance as documents have it: the whole refers to its parts, and each part to the whole.
        "Shape": {"oneOf": [{"$ref": "#/components/schemas/Circle"}], "discriminator": {"propertyName": "t"}},
        "Circle": {"allOf": [{"$ref": "#/components/schemas/Shape"}, {"type": "object", "properties": {"r": {"type": "number"}}}]},
    });
    let cases = [
        (
            "3.0.3",
            json!({"$ref": "#/components/schemas/Pet"}),
            "Pet; type Pet = { kind: 'kitty'; lives: number } | { kind: 'Dog'; friend?: Pet }",
            "",
        ),
        (
            "3.0.3",
            json!({"$ref": "#/components/schemas/Shape"}),
            "{ t: 'Circle'; r?: number }",
            "",
        ),
        (
            "3.0.3",
            json!({"type": "object", "properties": {"id": {"type": "string", "readOnly": true}, "key": {"type": "string", "writeOnly": true},
            "in": {"$ref": "#/components/schemas/Cat"}}, "required": ["id", "key"]}),
            "{ id: string; in?: { kind: string; lives: number } }",
            "{ key: string; in?: { kind: string; lives: number } }",
        ),
        (
            "3.0.3",
            json!({"type": "string", "format": "binary"}),
            "Uint8Array",
            "Uint8Array | string",
        ),
        (
            "3.1.0",
            json!({"type": ["integer", "null"], "exclusiveMinimum": 0}),
            "number | null",
            "",
        ),
        (
            "3.1.0",
            json!({"$ref": "#/components/schemas/Cat", "description": "A cat."}),
            "{ kind: string; lives: number }",
            "",
        ),
        (
            "3.0.3",
            json!({"allOf": [{"$ref": "#/components/schemas/Cat"}], "nullable": true}),
            "{ kind: string; lives: number } | null",
            "",
        ),
    ];
    let mut source = PREAMBLE.to_owned();
    for (index, (version, schema, out, input)) in cases.into_iter().enumerate() {
        let api = api(version, pet.clone(), schema);
        let operation = &api.operations[0];
        source += &declared(
            &format!("c{index}"),
            Some(&operation.input()),
            operation.output().as_ref(),
        );
        let (out, more) = out.split_once("; type").unwrap_or((out, ""));
        let mut expected = out.to_owned();
        if !more.is_empty() {
            let _ = writeln!(source, "declare namespace e{index} {{ type {more} }}");
            expected = format!("e{index}.{out}");
        }
        let _ = writeln!(
            source,
            "const out{index}: Same<Out<typeof c{index}.f>, {expected}> = true;"
        );
        let input = if input.is_empty() { &expected } else { input };
        let _ = writeln!(
            source,
            "const in{index}: Same<In<typeof c{index}.f>[\"body\"], {input}> = true;"
        );
    }
    assert_compiles(&source);
}

/// An argument can be left out where nothing of it is required, and only there.
#[test]
fn arguments_can_be_left_out_where_nothing_is_required() {
    let limits = Limits::default();
    let schema = |value| Schema::new(value, &limits).unwrap();
    let all_optional = schema(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let required = schema(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
    );
    let nothing =
        schema(json!({"type": "object", "properties": {}, "additionalProperties": false}));
    let mut source = declared("optional", Some(&all_optional), None);
    source += &declared("required", Some(&required), None);
    source += &declared("nothing", Some(&nothing), None);
    source += "
optional.f();
optional.f({});
optional.f({ a: \"x\" });
// @ts-expect-error
optional.f({ b: 1 });
required.f({ a: \"x\" });
// @ts-expect-error
required.f();
// @ts-expect-error
required.f({});
nothing.f();
// @ts-expect-error
nothing.f({ a: 1 });
";
    assert_compiles(&source);
}

/// Names and texts as hostile as can be, and references of which some lead nowhere and some in circles.
fn schemas() -> impl Strategy<Value = Value> {
    let name = prop_oneof!["[a-c]", "\\PC{0,4}", "(class|__proto__|x-y|1|\\*/|\"|\\\\)"];
    let words = prop_oneof![
        Just("*/ export const x = 1; /*".to_owned()),
        "\\PC{0,20}",
        Just("a\nb\u{2028}c*/".to_owned())
    ];
    let value = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(\\PC|[\"\\\\\n\r\u{0}\u{2028}]){0,5}".prop_map(Value::from),
        Just(json!({"a": [1, {"b-c": null}]})),
    ];
    let reference = prop_oneof![
        Just("#".to_owned()),
        "#/\\$defs/[a-e]",
        Just("#/nowhere".to_owned()),
        Just("https://example.com".to_owned()),
    ];
    let leaf = prop_oneof![
        4 => Just(json!({"type": "string"})),
        2 => Just(json!({"type": ["number", "null"], "nullable": true})),
        1 => any::<bool>().prop_map(Value::from),
        3 => reference.prop_map(|reference| json!({"$ref": reference})),
        2 => value.clone().prop_map(|value| json!({"const": value})),
        2 => proptest::collection::vec(value, 0..4).prop_map(|values| json!({"enum": values})),
        1 => words.clone().prop_map(|text| json!({"type": "string", "pattern": text, "format": text})),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let all = proptest::collection::vec(inner.clone(), 0..4);
        let named = proptest::collection::btree_map(name.clone(), inner.clone(), 0..4);
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (all.clone(), 0..4_u8).prop_map(|(items, least)| json!({"prefixItems": items, "minItems": least})),
            (all.clone(), inner.clone()).prop_map(|(items, rest)| json!({"items": items, "additionalItems": rest})),
            (named.clone(), proptest::collection::vec(name.clone(), 0..3), words.clone())
                .prop_map(|(all, required, text)| json!({"type": "object", "properties": all, "required": required, "description": text})),
            (named.clone(), inner.clone(), words.clone())
                .prop_map(|(all, others, text)| json!({"properties": all, "additionalProperties": others, "title": text, "default": text})),
            (named.clone(), named).prop_map(|(all, patterns)| json!({"properties": all, "patternProperties": patterns})),
            (all.clone(), prop_oneof![Just("anyOf"), Just("oneOf"), Just("allOf")]).prop_map(|(all, keyword)| json!({keyword: all})),
            (all, inner.clone()).prop_map(|(all, more)| {
                let mut schema = json!({"type": "object", "properties": {"p": more}, "anyOf": all, "nullable": true});
                schema["deprecated"] = json!(true);
                schema
            }),
            (inner.clone(), inner.clone(), inner).prop_map(|(one, other, third)| json!({"if": one, "then": other, "else": third, "not": {"const": 1}})),
        ]
    })
}

/// Whatever the schemas, their declarations are TypeScript: three hundred of them, in one run of the compiler.
#[test]
fn any_schema_becomes_typescript() {
    let config = Config::default();
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let limits = Limits::default();
    let strategy = (
        schemas(),
        proptest::collection::vec(schemas(), 5),
        "\\PC{0,12}",
    );
    let mut source = String::new();
    for index in 0..300 {
        let (mut schema, definitions, name) = strategy.new_tree(&mut runner).unwrap().current();
        if let Value::Object(keywords) = &mut schema {
            let definitions = ["a", "b", "c", "d", "e"]
                .into_iter()
                .map(String::from)
                .zip(definitions);
            keywords.insert("$defs".into(), Value::Object(definitions.collect()));
        }
        let schema = Schema::new(schema, &limits).unwrap();
        let tool = ToolSignature {
            identifier: &sanitize(&name, &limits),
            description: "*/ }",
            is_deprecated: index % 3 == 0,
            input: Some(&schema),
            output: Some(&schema),
        };
        // At each step of what is left out.
        let tokens = [100_000, 600, 300, 150, 100, 64][index % 6];
        let limits = Limits {
            types_tokens_max: tokens,
            ..Limits::default()
        };
        let namespace = format!("n{index}");
        let found = declare(
            &[NamespaceSignature {
                name: &namespace,
                description: "*/",
                tools: vec![tool],
            }],
            &limits,
        );
        assert!(found.tokens <= tokens);
        source += &found.text;
    }
    assert!(source.len() > 50_000, "{}", source.len());
    assert_compiles(&source);
}
