//! Validation, compared with that of Ajv, which clients of MCP use: both say the same of every schema and value.
//!
//! Left out is where Ajv differs from the specification: what stands beside `$ref` in draft 7 counts there, and
//! `unevaluatedProperties` and `unevaluatedItems` see what failed alternatives have seen. `src/validate/tests.rs` has those.

mod support;

use coracle_codemode::{Limits, Schema, Validator};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRng, TestRunner},
};
use serde_json::{Value, json};

/// Schemas with values, in which each keyword decides something.
fn cases() -> Vec<(Value, Vec<Value>)> {
    let draft_7 = "http://json-schema.org/draft-07/schema#";
    vec![
        (
            json!({"type": "integer"}),
            vec![json!(1), json!(1.0), json!(1.5), json!("1"), json!(null)],
        ),
        (
            json!({"enum": [1, "a", null, {"a": [1.0]}]}),
            vec![
                json!(1.0),
                json!("a"),
                json!(null),
                json!({"a": [1]}),
                json!({"a": [2]}),
            ],
        ),
        (
            json!({"minLength": 2, "maxLength": 3}),
            vec![json!("a"), json!("😀😀"), json!("abcd"), json!(1)],
        ),
        (
            json!({"pattern": "^\\d+[\\w-]$"}),
            vec![json!("12a"), json!("1"), json!("12-"), json!("١a")],
        ),
        (
            json!({"minimum": 1, "exclusiveMaximum": 3}),
            vec![json!(0), json!(1), json!(2.9), json!(3), json!("x")],
        ),
        (
            json!({"multipleOf": 2}),
            vec![json!(4), json!(5), json!(4.0)],
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": {"type": "number"}}),
            vec![json!([]), json!(["a", 1]), json!([1]), json!(["a", "b"])],
        ),
        (
            json!({"prefixItems": [true], "items": false}),
            vec![json!([1]), json!([1, 2])],
        ),
        (
            json!({"$schema": draft_7, "items": [{"type": "string"}], "additionalItems": {"type": "number"}}),
            vec![json!(["a", 1]), json!(["a", "b"]), json!([1])],
        ),
        (
            json!({"contains": {"type": "string"}, "minContains": 2, "maxContains": 3}),
            vec![
                json!(["a"]),
                json!(["a", 1, "b"]),
                json!(["a", "b", "c", "d"]),
            ],
        ),
        (
            json!({"contains": {"type": "string"}, "minContains": 0}),
            vec![json!([]), json!([1])],
        ),
        (
            json!({"uniqueItems": true}),
            vec![
                json!([1, 1.0]),
                json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
                json!(["1", 1]),
                json!([[1], [2]]),
            ],
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "patternProperties": {"^x": {"type": "number"}}, "additionalProperties": false}),
            vec![
                json!({"a": "a", "x1": 1}),
                json!({"x": "a"}),
                json!({"b": 1}),
                json!({"a": 1}),
            ],
        ),
        (
            json!({"propertyNames": {"maxLength": 2}, "minProperties": 1, "maxProperties": 2}),
            vec![
                json!({}),
                json!({"ab": 1}),
                json!({"abc": 1}),
                json!({"a": 1, "b": 1, "c": 1}),
            ],
        ),
        (
            json!({"required": ["a"], "dependentRequired": {"a": ["b"]}}),
            vec![json!({"a": 1}), json!({"a": 1, "b": 1}), json!({})],
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["c"]}}}),
            vec![json!({"a": 1}), json!({"a": 1, "c": 1}), json!({})],
        ),
        (
            json!({"$schema": draft_7, "dependencies": {"a": ["b"], "c": {"minProperties": 3}}}),
            vec![
                json!({"a": 1}),
                json!({"a": 1, "b": 1}),
                json!({"c": 1}),
                json!({"c": 1, "d": 1, "e": 1}),
            ],
        ),
        (
            json!({"oneOf": [{"type": "number"}, {"minimum": 5}]}),
            vec![json!(1), json!(6), json!("a")],
        ),
        (
            json!({"not": {"type": "string"}}),
            vec![json!("a"), json!(1)],
        ),
        (
            json!({"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"required": ["a"]}, "else": {"required": ["b"]}}),
            vec![
                json!({"k": 1, "a": 1}),
                json!({"k": 1}),
                json!({"b": 1}),
                json!({"k": 2}),
            ],
        ),
        (
            json!({"allOf": [{"properties": {"a": true}}], "properties": {"b": true}, "unevaluatedProperties": false}),
            vec![json!({"a": 1, "b": 1}), json!({"c": 1})],
        ),
        (
            json!({"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": true}, "required": ["b"]}], "unevaluatedProperties": false}),
            vec![
                json!({"a": 1}),
                json!({"b": 1}),
                json!({"a": 1, "b": 1}),
                json!({"a": 2, "b": 1}),
            ],
        ),
        (
            json!({"$ref": "#/$defs/a", "minProperties": 1, "$defs": {"a": {"type": "object"}}}),
            vec![json!({}), json!({"a": 1}), json!(1)],
        ),
        (
            json!({"properties": {"child": {"$ref": "#"}}, "required": ["v"]}),
            vec![
                json!({"v": 1, "child": {"v": 1}}),
                json!({"v": 1, "child": {}}),
            ],
        ),
        (
            json!({"$defs": {"a": {"$anchor": "x", "type": "string"}}, "$ref": "#x"}),
            vec![json!("a"), json!(1)],
        ),
        (json!(false), vec![json!(1)]),
    ]
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["number", "null"]})),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({"const": 1})),
        Just(json!({"enum": ["a", 2, null, []]})),
        Just(json!({"minLength": 2})),
        Just(json!({"pattern": "^[a-b]+$"})),
        Just(json!({"minimum": 2})),
        Just(json!({"required": ["a"]})),
        Just(json!({"minItems": 1})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"maxProperties": 1})),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({"$ref": "#/$defs/b"})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let all = proptest::collection::vec(inner.clone(), 1..3);
        let named = proptest::collection::btree_map("[a-c]", inner.clone(), 0..3);
        prop_oneof![
            inner.clone().prop_map(|items| json!({"items": items})),
            (all.clone(), inner.clone()).prop_map(|(items, rest)| json!({"prefixItems": items, "items": rest})),
            (named.clone(), inner.clone()).prop_map(|(all, others)| json!({"type": "object", "properties": all, "additionalProperties": others})),
            (all.clone(), prop_oneof![Just("anyOf"), Just("oneOf"), Just("allOf")]).prop_map(|(all, keyword)| json!({keyword: all})),
            inner.clone().prop_map(|not| json!({"not": not})),
            inner.clone().prop_map(|one| json!({"contains": one, "maxContains": 2})),
            (inner.clone(), inner.clone(), inner).prop_map(|(one, then, other)| json!({"if": one, "then": then, "else": other})),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(1)),
        Just(json!(2.5)),
        Just(json!("a")),
        Just(json!("abc")),
        Just(json!(true)),
        Just(json!(3.0)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|all| json!(all)),
        ]
    })
}

/// Of each keyword, and of a thousand schemas with eight values each, both say the same.
#[test]
fn ajv_says_the_same() {
    let config = Config::default();
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = (
        schemas(),
        schemas(),
        schemas(),
        proptest::collection::vec(values(), 8),
    );
    let mut all = cases();
    let fixed_count = all.len();
    for _ in 0..1_000 {
        let (mut schema, a, b, values) = strategy.new_tree(&mut runner).unwrap().current();
        if let Value::Object(keywords) = &mut schema {
            // What they refer to refers to nothing, so that none means only itself.
            let bare = |value: Value| {
                serde_json::from_str::<Value>(&value.to_string().replace("\"$ref\"", "\"title\""))
                    .unwrap()
            };
            keywords.insert("$defs".into(), json!({"a": bare(a), "b": bare(b)}));
        } else {
            continue;
        }
        all.push((schema, values));
    }
    let asked: Vec<_> = all
        .iter()
        .map(|(schema, values)| json!({"schema": schema, "values": values}))
        .collect();
    let script = support::oracles().join("judge.js");
    let (is_fine, said) = support::node(
        &[script.to_str().unwrap()],
        Value::from(asked).to_string().as_bytes(),
    );
    assert!(is_fine);
    let verdicts: Vec<Option<Vec<bool>>> = serde_json::from_str(&said).unwrap();
    assert_eq!(verdicts.len(), all.len());
    let limits = Limits::default();
    let mut compared = 0;
    let mut valid = 0;
    let mut differences = Vec::new();
    for (index, ((schema, values), verdict)) in all.iter().zip(verdicts).enumerate() {
        let Some(verdict) = verdict else {
            assert!(index >= fixed_count, "{schema}");
            continue;
        };
        let validator =
            Validator::new(&Schema::new(schema.clone(), &limits).unwrap(), &limits).unwrap();
        for (value, expected) in values.iter().zip(verdict) {
            compared += 1;
            let found = validator.validate(value);
            valid += usize::from(found.is_ok());
            if found.is_ok() != expected {
                differences.push(format!(
                    "{schema} {value}: Ajv says {expected}, and {found:?}"
                ));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(10)].join("\n")
    );
    assert!(
        compared > 5_000 && valid > 1_000 && compared - valid > 1_000,
        "{compared} {valid}"
    );
}
