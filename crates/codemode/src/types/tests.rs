use super::*;
use serde_json::{Value, json};

fn schema(value: Value) -> Schema {
    Schema::new(value, &Limits::default()).unwrap()
}

fn tool<'a>(
    identifier: &'a str,
    description: &'a str,
    input: Option<&'a Schema>,
) -> ToolSignature<'a> {
    ToolSignature {
        identifier,
        description,
        is_deprecated: false,
        input,
        output: None,
    }
}

fn declared(tools: Vec<ToolSignature<'_>>, tokens: usize) -> Declarations {
    let limits = Limits {
        types_tokens_max: tokens,
        ..Limits::default()
    };
    let namespace = NamespaceSignature {
        name: "test",
        description: "For tests.",
        tools,
    };
    declare(&[namespace], &limits)
}

/// What a model reads, whole.
#[test]
fn a_namespace_is_declared() {
    let input = schema(json!({
        "type": "object",
        "properties": {
            "owner": {"type": "string", "description": "Who has the repository."},
            "state": {"enum": ["open", "closed"], "default": "open"},
            "x-page": {"type": "integer", "minimum": 1},
            "label": {"$ref": "#/$defs/label"},
        },
        "required": ["owner"],
        "$defs": {"label": {"type": "object", "description": "A label.", "required": ["name"], "properties": {
            "name": {"type": "string"}, "parent": {"$ref": "#/$defs/label"},
        }}},
    }));
    let output = schema(json!({"type": "array", "items": {"type": ["string", "null"]}}));
    let list = ToolSignature {
        output: Some(&output),
        is_deprecated: true,
        ..tool("list", "Lists issues.\nAll of them.", Some(&input))
    };
    let empty = schema(json!({"type": "object", "properties": {}}));
    let found = declared(
        vec![list, tool("ping", "", Some(&empty)), tool("pong", "", None)],
        2_000,
    );
    assert_eq!(
        found.text,
        r#"/** For tests. */
declare namespace test {
  /**
   * Lists issues.
   * All of them.
   * @deprecated
   */
  function list(input: {
    /** Who has the repository. */
    owner: string;
    /** @default "open" */
    state?: "open" | "closed";
    /** @minimum 1 */
    "x-page"?: number;
    label?: Label;
  }): Promise<(string | null)[]>;
  function ping(): Promise<unknown>;
  function pong(): Promise<unknown>;
  /** A label. */
  type Label = { name: string; parent?: Label };
}
"#
    );
    assert_eq!(found.tokens, tokens_estimated(&found.text));
    assert!(found.cuts.is_empty() && found.tools_omitted == 0);
}

/// The same budget gives the same text, a smaller one never a longer, and what is left out is said.
#[test]
fn declarations_fit_their_budget() {
    let long =
        "A sentence about it. And many more words on what it is and what it is not. ".repeat(3);
    let input = schema(json!({
        "type": "object",
        "properties": {
            "a": {"type": "object", "description": long, "properties": {"b": {"type": "object", "description": long, "properties": {
                "c": {"enum": (0..40).map(|n| format!("value{n}")).collect::<Vec<_>>()},
            }}}},
            "r": {"$ref": "#/$defs/r"},
        },
        "$defs": {"r": {"type": "object", "properties": {"s": {"$ref": "#/$defs/s"}}},
                  "s": {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}},
                  "t": {"type": "object", "properties": {"long_name_of_a_property": {"type": "string", "description": long}}}},
    }));
    let names: Vec<_> = (0..30).map(|number| format!("tool_{number}")).collect();
    let tools = || -> Vec<ToolSignature<'_>> {
        names
            .iter()
            .map(|name| tool(name, &long, Some(&input)))
            .collect()
    };
    let mut before = usize::MAX;
    let mut omitted_before = 0;
    for budget in [
        100_000, 10_000, 5_000, 3_000, 2_000, 1_000, 500, 200, 100, 64, 1,
    ] {
        let found = declared(tools(), budget);
        assert!(found.tokens <= budget.max(64), "{budget}: {}", found.text);
        assert_eq!(found, declared(tools(), budget));
        assert!(found.tokens <= before && found.tools_omitted >= omitted_before);
        let is_whole = found.cuts.is_empty() && found.tools_omitted == 0;
        assert_eq!(found.text.contains("left out"), !is_whole, "{}", found.text);
        let shown = found.text.matches("  function ").count();
        assert_eq!(shown + found.tools_omitted, 30);
        if found.tools_omitted > 0 {
            assert!(
                found
                    .text
                    .contains(&format!("{} more tools", found.tools_omitted))
            );
        }
        before = found.tokens;
        omitted_before = found.tools_omitted;
    }
    assert!(declared(tools(), 100_000).cuts.is_empty());
    assert!(omitted_before > 25);
}

/// A hundred thousand tools take no longer than those that can be shown.
#[test]
fn many_tools_are_counted_not_shown() {
    let names: Vec<_> = (0..100_000)
        .map(|number| format!("tool_{number}"))
        .collect();
    let tools = names.iter().map(|name| tool(name, "", None)).collect();
    let found = declared(tools, 500);
    let shown = found.text.matches("  function ").count();
    assert!(
        shown > 20 && shown + found.tools_omitted == 100_000,
        "{shown}"
    );
}

/// Definitions that tools of one server repeat are one type; those that only have the same name are two.
#[test]
fn repeated_definitions_are_shared() {
    let of = |kind: &str| {
        schema(json!({
            "type": "object",
            "properties": {"item": {"$ref": "#/$defs/Item"}},
            "$defs": {"Item": {"type": "object", "properties": {"a": {"type": kind}}}},
        }))
    };
    let (one, same, other) = (of("string"), of("string"), of("number"));
    let tools = vec![
        tool("one", "", Some(&one)),
        tool("same", "", Some(&same)),
        tool("other", "", Some(&other)),
    ];
    let found = declared(tools, 1_000).text;
    assert_eq!(
        found.matches("type Item = { a?: string }").count(),
        1,
        "{found}"
    );
    assert_eq!(
        found.matches("type Item2 = { a?: number }").count(),
        1,
        "{found}"
    );
    assert_eq!(found.matches("item?: Item }").count(), 2, "{found}");
}

/// A document that refers to all of itself from everywhere ends, within the budget.
#[test]
fn a_web_of_references_ends() {
    let count = 300;
    let definitions: serde_json::Map<String, Value> = (0..count)
        .map(|number| {
            let properties: serde_json::Map<String, Value> = (1..20)
                .map(|step| {
                    let other = (number * 7 + step * 13) % count;
                    (
                        format!("p{step}"),
                        json!({"$ref": format!("#/$defs/D{other}")}),
                    )
                })
                .collect();
            let name = format!("D{number}");
            (name, json!({"type": "object", "properties": properties}))
        })
        .collect();
    let input = schema(json!({"$ref": "#/$defs/D0", "$defs": definitions}));
    let found = declared(vec![tool("all", "", Some(&input))], 3_000);
    assert!(found.tokens <= 3_000 && !found.cuts.is_empty());
    assert!(
        found.text.contains("function all(input: D0)"),
        "{}",
        found.text
    );
}
