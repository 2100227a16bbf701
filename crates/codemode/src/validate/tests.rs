use super::*;
use serde_json::json;

fn validator(schema: Value) -> Validator {
    let limits = Limits::default();
    Validator::new(&Schema::new(schema, &limits).unwrap(), &limits).unwrap()
}

fn problems(schema: Value, value: Value) -> Vec<String> {
    match validator(schema).validate(&value) {
        Ok(()) => Vec::new(),
        Err(ArgumentsError::Invalid(problems)) => problems.iter().map(Problem::to_string).collect(),
        Err(error) => panic!("{error}"),
    }
}

/// Each message has the path, the rule and the value, so that it alone tells the mend.
#[test]
fn problems_say_path_rule_and_value() {
    let schema = json!({
        "type": "object",
        "properties": {
            "owner": {"type": "string", "pattern": "^[a-z]+$"},
            "labels": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "state": {"enum": ["open", "closed"]},
            "x-count": {"type": "integer", "minimum": 1},
        },
        "required": ["owner"],
        "additionalProperties": false,
    });
    for (value, expected) in [
        (
            json!({"owner": 5}),
            vec!["input.owner is 5, and string is wanted (type)"],
        ),
        (
            json!({"onwer": "a"}),
            vec![
                "input.owner is missing; input.onwer is there instead (required)",
                "input.onwer is not known there; did you mean input.owner? (additionalProperties)",
            ],
        ),
        (
            json!({"owner": "A1"}),
            vec!["input.owner is \"A1\", which does not match ^[a-z]+$ (pattern)"],
        ),
        (
            json!({"owner": "a", "labels": [{"name": "x"}, {}]}),
            vec!["input.labels[1].name is missing (required)"],
        ),
        (
            json!({"owner": "a", "state": "opn"}),
            vec![
                "input.state is \"opn\", and one of \"open\", \"closed\" is wanted; did you mean \"open\"? (enum)",
            ],
        ),
        (
            json!({"owner": "a", "x-count": 0}),
            vec!["input[\"x-count\"] is 0, and has to be at least 1 (minimum)"],
        ),
        (
            json!("text"),
            vec!["input is the text \"text\", and object is wanted (type)"],
        ),
    ] {
        assert_eq!(problems(schema.clone(), value), expected);
    }
}

/// Of alternatives, the one that was meant is told of.
#[test]
fn the_nearest_alternative_is_told_of() {
    let schema = json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["kind", "url"], "properties": {"kind": {"const": "web"}, "url": {"type": "string"}}},
        {"type": "object", "required": ["kind", "path"], "properties": {"kind": {"const": "file"}, "path": {"type": "string"}}},
    ]});
    assert_eq!(
        problems(schema, json!({"kind": "file", "path": 1})),
        [
            "input is {\"kind\":\"file\",\"path\":1}, and fits none of 3 alternatives (anyOf)",
            "input.path is 1, and string is wanted (type)"
        ]
    );
}

/// A schema that refers to itself judges values of any depth that is allowed.
#[test]
fn cycles_are_followed_as_far_as_the_value_goes() {
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "additionalProperties": false,
    }}});
    let value = json!({"children": [{"children": []}, {"children": [{"child": 1}]}]});
    assert_eq!(
        problems(schema, value),
        ["input.children[1].children[0].child is not known there (additionalProperties)"]
    );
}

/// A schema that means nothing but itself, and one whose alternatives double at each level, end.
#[test]
fn hostile_schemas_end() {
    let schema = validator(json!({"$ref": "#"}));
    let error = schema.validate(&json!(1)).unwrap_err();
    assert!(
        error.to_string().contains("validation_nesting_max"),
        "{error}"
    );
    let doubling = json!({"$ref": "#/$defs/a", "$defs": {"a": {
        "properties": {"x": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
        "required": ["nothing"],
    }}});
    let mut value = json!({});
    for _ in 0..60 {
        value = json!({"x": value});
    }
    let error = validator(doubling).validate(&value).unwrap_err();
    assert!(error.to_string().contains("validation_"), "{error}");
}

/// References are followed before the first call, so that none is found wanting in the middle of one.
#[test]
fn remote_references_are_refused() {
    let limits = Limits::default();
    let refused = |schema| {
        let schema = Schema::new(schema, &limits).unwrap();
        Validator::new(&schema, &limits).unwrap_err()
    };
    let remote =
        refused(json!({"properties": {"a": {"items": {"$ref": "https://example.com/schema"}}}}));
    assert_eq!(
        remote,
        SchemaError::ReferenceRemote("https://example.com/schema".into())
    );
    let dangling = refused(
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}}}),
    );
    assert_eq!(dangling, SchemaError::ReferenceDangling("#/$defs/b".into()));
}

/// A pattern that can't be checked in linear time is not checked, and that is said.
#[test]
fn unsupported_patterns_are_named() {
    let validator = validator(json!({"type": "string", "pattern": "^(?=a)b$"}));
    assert_eq!(validator.unchecked().len(), 1);
    assert_eq!(validator.unchecked()[0].pattern, "^(?=a)b$");
    validator.validate(&json!("anything")).unwrap();
}

/// What an operator of an OpenAPI document only sends back is not asked for; in plain JSON Schema the word means nothing.
#[test]
fn read_only_is_of_openapi() {
    let schema = json!({"required": ["id"], "properties": {"id": {"readOnly": true}}});
    assert_eq!(problems(schema.clone(), json!({})).len(), 1);
    let document = std::sync::Arc::new(crate::Document::new(json!({}).into(), Dialect::OpenApi30));
    let schema = Schema::within(&document, schema);
    let validator = Validator::new(&schema, &Limits::default()).unwrap();
    validator.validate(&json!({})).unwrap();
}

/// The number of problems told is bounded.
#[test]
fn problems_are_bounded() {
    let schema = json!({"items": {"type": "string"}});
    assert_eq!(problems(schema, json!(vec![1; 100])).len(), 16);
}

/// Binary fractions do not stand in the way of what people mean.
#[test]
fn multiples_are_decimal() {
    for (value, unit, is_multiple) in [
        (json!(0.3), json!(0.1), true),
        (json!(19.99), json!(0.01), true),
        (json!(7), json!(2), false),
        (json!(0.35), json!(0.1), false),
    ] {
        let found = problems(json!({"multipleOf": unit}), value.clone());
        assert_eq!(found.is_empty(), is_multiple, "{value}: {found:?}");
    }
}

/// Judging takes no longer than its steps: a long text and a long array count.
#[test]
fn steps_are_bounded() {
    let limits = Limits {
        validation_steps_max: 100,
        ..Limits::default()
    };
    let schema = Schema::new(json!({"items": {"type": "integer"}}), &Limits::default()).unwrap();
    let validator = Validator::new(&schema, &limits).unwrap();
    validator.validate(&json!(vec![1; 99])).unwrap();
    let error = validator.validate(&json!(vec![1; 100])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "validating the input has 101 steps, 100 are allowed (validation_steps_max)"
    );
}

/// Beside a reference nothing counts in draft 7, and everything since.
#[test]
fn what_stands_beside_a_reference_is_of_the_dialect() {
    let schema = |dialect: &str| {
        json!({
            "$schema": dialect, "$ref": "#/definitions/a", "minProperties": 1,
            "definitions": {"a": {"type": "object"}},
        })
    };
    let old = problems(schema("http://json-schema.org/draft-07/schema#"), json!({}));
    assert_eq!(old, Vec::<String>::new());
    let new = problems(
        schema("https://json-schema.org/draft/2020-12/schema"),
        json!({}),
    );
    assert_eq!(
        new,
        ["input has 0 members, and needs 1 at least (minProperties)"]
    );
}

/// What a failed alternative or a failed condition has seen is not seen; what `contains` has found is.
#[test]
fn only_what_holds_has_seen_anything() {
    let failed = json!({
        "anyOf": [true, {"properties": {"a": true}, "required": ["b"]}],
        "if": {"properties": {"a": {"const": 1}}}, "else": true,
        "unevaluatedProperties": false,
    });
    assert_eq!(
        problems(failed.clone(), json!({"a": 1})),
        Vec::<String>::new()
    );
    assert_eq!(
        problems(failed, json!({"a": 2})),
        ["input.a is not allowed here (false)"]
    );
    let items =
        json!({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": false});
    assert_eq!(
        problems(items.clone(), json!([1, "a"])),
        Vec::<String>::new()
    );
    assert_eq!(
        problems(items, json!([1, "a", 2])),
        ["input[2] is not allowed here (false)"]
    );
}
