use super::*;
use proptest::prelude::*;
use serde_json::json;

fn limits(result_chars_max: usize) -> Limits {
    Limits {
        result_chars_max,
        ..Limits::default()
    }
}

fn json_chars(value: &Value) -> usize {
    serde_json::to_string(value).unwrap().chars().count()
}

/// What fits is not touched.
#[test]
fn a_small_value_is_shown_whole() {
    let value = json!({"a": [1, 2.5, null, true], "b": "text"});
    let shown = preview(&value, &limits(1_000));
    assert_eq!(shown.value, value);
    assert!(!shown.is_cut && shown.cuts.is_empty());
    assert_eq!(explain(&shown), None);
}

/// A text keeps its beginning, and says how much is left out; a cut never splits an escape or a character.
#[test]
fn a_text_keeps_its_beginning() {
    let shown = preview(&json!("ab\n".repeat(100)), &limits(40));
    let text = shown.value.as_str().unwrap();
    assert!(
        text.starts_with("ab\nab\n") && text.ends_with(" more characters"),
        "{text}"
    );
    let kept = text.chars().position(|character| character == '…').unwrap() - 1;
    assert!(
        text.contains(&format!("… {} more", 300 - kept)),
        "{text}: {kept}"
    );
    assert_eq!(
        shown.cuts,
        [Cut {
            path: "result".into(),
            what: CutKind::Characters,
            count: 300 - kept
        }]
    );
}

/// An array keeps its first items, whole where they are small, and counts the others.
#[test]
fn an_array_keeps_its_head() {
    let shown = preview(&json!((0..1_000).collect::<Vec<_>>()), &limits(100));
    let items = shown.value.as_array().unwrap();
    let kept = items.len() - 1;
    assert!(kept > 15, "{items:?}");
    assert_eq!(items[..3], [json!(0), json!(1), json!(2)]);
    assert_eq!(items[kept], json!(format!("… {} more items", 1_000 - kept)));
}

/// One large member does not push out the others: they keep their keys and what is small of them.
#[test]
fn an_object_keeps_its_keys() {
    let value = json!({"log": "x".repeat(10_000), "status": "failed", "code": 7, "lines": vec!["y"; 10_000]});
    let shown = preview(&value, &limits(400));
    let keys: Vec<_> = shown.value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["log", "status", "code", "lines"]);
    assert_eq!(shown.value["status"], "failed");
    assert_eq!(shown.value["code"], 7);
    assert!(shown.value["log"].as_str().unwrap().len() > 100);
    assert!(shown.value["lines"].as_array().unwrap().len() > 10);
    let said = explain(&shown).unwrap();
    assert!(said.contains("characters of result.log"), "{said}");
}

/// An object with too many members says how many are left out.
#[test]
fn an_object_with_many_members_keeps_the_first() {
    let value: Map<String, Value> = (0..500).map(|n| (format!("k{n}"), json!(n))).collect();
    let shown = preview(&Value::Object(value), &limits(120));
    let members = shown.value.as_object().unwrap();
    assert_eq!(members["k0"], 0);
    let last = members.keys().next_back().unwrap();
    assert_eq!(last, &format!("… {} more members", 501 - members.len()));
}

/// Depth is bounded too, however small the value.
#[test]
fn deep_values_are_cut() {
    let mut value = json!("end");
    for _ in 0..70 {
        value = json!({"a": value});
    }
    let shown = preview(&value, &Limits::default());
    assert!(shown.is_cut);
    assert!(is_shallower(&shown.value, 64) && !is_shallower(&shown.value, 63));
}

/// The presets are those that the documentation names.
#[test]
fn the_article_has_its_bounds() {
    let article = Limits::article();
    assert_eq!(
        (article.program_chars_max, article.result_chars_max),
        (20_000, 12_000)
    );
    article.check_program(&"é".repeat(20_000)).unwrap();
    let error = article.check_program(&"é".repeat(20_001)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the program has 20001 characters, 20000 are allowed (program_chars_max)"
    );
}

/// A log keeps its end, where the error is.
#[test]
fn a_log_keeps_both_ends() {
    let log = format!("begin{}end", "x".repeat(1_000));
    let shown = preview_text(&log, 100);
    assert!(
        shown.starts_with("begin") && shown.ends_with("end"),
        "{shown}"
    );
    assert!(shown.chars().count() <= 100 && shown.contains("1008 characters"));
    assert_eq!(preview_text("short", 100), "short");
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,200}".prop_map(Value::from),
        "[\\x00-\\x1f\"\\\\…]{0,60}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 256, 12, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::vec(("(…|\"|\\PC){0,9}", inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The kinds of both are the same, all the way down to marks.
fn is_of_same_shape(shown: &Value, whole: &Value) -> bool {
    match (shown, whole) {
        (Value::Array(shown), Value::Array(whole)) => {
            shown.iter().zip(whole).all(|(a, b)| is_of_same_shape(a, b))
        }
        (Value::Object(shown), Value::Object(whole)) => shown.iter().all(|(key, a)| {
            key.starts_with(MARK) || whole.get(key).is_some_and(|b| is_of_same_shape(a, b))
        }),
        (Value::String(text), _) if text.contains(MARK) => true,
        _ => shown == whole,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever the value and the bound: what is shown is within the bound, is counted as the serializer counts, reads back
    /// as itself, has the shape of the whole, and is not cut again.
    #[test]
    fn a_preview_is_valid_within_bounds_and_final(value in values(), chars_max in 3_usize..600) {
        let limits = limits(chars_max);
        let shown = preview(&value, &limits);
        let text = serde_json::to_string(&shown.value).unwrap();
        prop_assert!(text.chars().count() <= chars_max, "{text}");
        prop_assert_eq!(shown.chars, text.chars().count());
        prop_assert_eq!(shown.chars_whole, json_chars(&value));
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &shown.value);
        prop_assert!(is_of_same_shape(&shown.value, &value), "{} of {}", shown.value, value);
        prop_assert_eq!(shown.is_cut, shown.value != value);
        let again = preview(&shown.value, &limits);
        prop_assert_eq!(again.value, shown.value);
        prop_assert!(!again.is_cut);
    }

    /// A text's preview has no more characters than asked for.
    #[test]
    fn a_text_is_within_bounds(text in "\\PC{0,300}", chars_max in 0_usize..200) {
        prop_assert!(preview_text(&text, chars_max).chars().count() <= chars_max);
    }
}
