//! Each style, as OpenAPI's own table has it, and back again.

use super::*;
use percent_encoding::percent_decode_str;

fn with_style(location: &str, style: &str, explode: bool) -> Operation {
    let path = if location == "path" { "/{color}" } else { "/" };
    operation_at(
        path,
        json!({"parameters": [
            {"name": "color", "in": location, "required": true, "style": style, "explode": explode, "schema": {}},
        ]}),
    )
}

/// How a value is spelled where the parameter stands.
fn spelled(location: &str, style: &str, explode: bool, value: &Value) -> String {
    let operation = with_style(location, style, explode);
    let made = request(&operation, json!({"color": value})).unwrap();
    let header = |name: &str| {
        let found = made.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    match location {
        "header" => header("color"),
        "cookie" => header("cookie"),
        "query" => made
            .url
            .split_once('?')
            .map(|(_, query)| query.to_owned())
            .unwrap_or_default(),
        _ => made
            .url
            .strip_prefix("https://example.com/v1/")
            .unwrap()
            .to_owned(),
    }
}

/// The table of the specification: a text, an array and an object in every style.
#[test]
fn styles_are_those_of_the_table() {
    let text = json!("blue");
    let array = json!(["blue", "black", "brown"]);
    let object = json!({"R": 100, "G": 200, "B": 150});
    for (location, style, explode, of_text, of_array, of_object) in [
        (
            "path",
            "simple",
            false,
            "blue",
            "blue,black,brown",
            "R,100,G,200,B,150",
        ),
        (
            "path",
            "simple",
            true,
            "blue",
            "blue,black,brown",
            "R=100,G=200,B=150",
        ),
        (
            "path",
            "label",
            false,
            ".blue",
            ".blue,black,brown",
            ".R,100,G,200,B,150",
        ),
        (
            "path",
            "label",
            true,
            ".blue",
            ".blue.black.brown",
            ".R=100.G=200.B=150",
        ),
        (
            "path",
            "matrix",
            false,
            ";color=blue",
            ";color=blue,black,brown",
            ";color=R,100,G,200,B,150",
        ),
        (
            "path",
            "matrix",
            true,
            ";color=blue",
            ";color=blue;color=black;color=brown",
            ";R=100;G=200;B=150",
        ),
        (
            "query",
            "form",
            false,
            "color=blue",
            "color=blue,black,brown",
            "color=R,100,G,200,B,150",
        ),
        (
            "query",
            "form",
            true,
            "color=blue",
            "color=blue&color=black&color=brown",
            "R=100&G=200&B=150",
        ),
        (
            "query",
            "spaceDelimited",
            false,
            "color=blue",
            "color=blue%20black%20brown",
            "color=R%20100%20G%20200%20B%20150",
        ),
        (
            "query",
            "pipeDelimited",
            false,
            "color=blue",
            "color=blue%7Cblack%7Cbrown",
            "color=R%7C100%7CG%7C200%7CB%7C150",
        ),
        (
            "query",
            "deepObject",
            true,
            "color=blue",
            "color=blue&color=black&color=brown",
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
        ),
        (
            "header",
            "simple",
            false,
            "blue",
            "blue,black,brown",
            "R,100,G,200,B,150",
        ),
        (
            "header",
            "simple",
            true,
            "blue",
            "blue,black,brown",
            "R=100,G=200,B=150",
        ),
        (
            "cookie",
            "form",
            false,
            "color=blue",
            "color=blue,black,brown",
            "color=R,100,G,200,B,150",
        ),
        (
            "cookie",
            "form",
            true,
            "color=blue",
            "color=blue; color=black; color=brown",
            "R=100; G=200; B=150",
        ),
    ] {
        for (value, expected) in [(&text, of_text), (&array, of_array), (&object, of_object)] {
            let found = spelled(location, style, explode, value);
            assert_eq!(found, expected, "{location} {style} {explode} {value}");
        }
    }
}

/// Empty values: a name without a value where the style has names, nothing where there is nothing to say.
#[test]
fn empty_values_are_spelled() {
    assert_eq!(spelled("query", "form", true, &json!("")), "color=");
    assert_eq!(spelled("query", "form", true, &json!([])), "");
    assert_eq!(spelled("path", "matrix", false, &json!("")), ";color");
    assert_eq!(
        spelled("query", "form", true, &json!([null, "a"])),
        "color=a"
    );
}

/// `allowReserved` leaves what means something in URLs, except where it would end the value.
#[test]
fn reserved_characters_can_stay() {
    let operation = operation_at(
        "/",
        json!({"parameters": [{"name": "q", "in": "query", "allowReserved": true, "schema": {}}]}),
    );
    let made = request(&operation, json!({"q": "a/b?c:d&e#f+g h%"})).unwrap();
    assert_eq!(
        made.url,
        "https://example.com/v1/?q=a/b?c:d%26e%23f%2Bg%20h%25"
    );
}

/// A parameter with `content` is JSON; a nested value in a style that has no word for it is JSON too, or refused.
#[test]
fn nested_values_are_json_or_refused() {
    let operation = operation_at(
        "/",
        json!({"parameters": [
            {"name": "filter", "in": "query", "content": {"application/json": {"schema": {}}}},
            {"name": "deep", "in": "query", "style": "deepObject", "schema": {}},
            {"name": "form", "in": "query", "schema": {}},
        ]}),
    );
    let made = request(&operation, json!({"filter": {"a": [1]}})).unwrap();
    assert!(
        made.url.ends_with("?filter=%7B%22a%22%3A%5B1%5D%7D"),
        "{}",
        made.url
    );
    let made = request(&operation, json!({"deep": {"a": {"b": [1, 2], "c": null}}})).unwrap();
    assert!(
        made.url
            .ends_with("?deep%5Ba%5D%5Bb%5D=1&deep%5Ba%5D%5Bb%5D=2"),
        "{}",
        made.url
    );
    let made = request(&operation, json!({"form": [[1, 2]]})).unwrap();
    assert!(made.url.ends_with("?form=%5B1%2C2%5D"), "{}", made.url);
    let mut nested = json!(1);
    for _ in 0..20 {
        nested = json!({"a": nested});
    }
    let error = request(&operation, json!({"deep": nested})).unwrap_err();
    assert!(error.to_string().contains("nested deeper"), "{error}");
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

proptest! {
    /// Whatever the texts of an array, a server that splits by the style gets them back.
    #[test]
    fn arrays_come_back(items in proptest::collection::vec("\\PC{1,8}", 1..5)) {
        let value = json!(items.clone());
        for (location, style, explode, lead, separator) in [
            ("path", "simple", false, "", ","),
            ("path", "matrix", false, ";color=", ","),
            ("path", "matrix", true, ";color=", ";color="),
            ("query", "form", false, "color=", ","),
            ("query", "form", true, "color=", "&color="),
            ("query", "pipeDelimited", false, "color=", "%7C"),
        ] {
            if style == "pipeDelimited" && items.iter().any(|item| item.contains('|')) {
                // Which this style can't say.
                continue;
            }
            let operation = with_style(location, style, explode);
            let Ok(made) = request(&operation, json!({"color": value.clone()})) else {
                // A path that is `.` or `..`.
                prop_assert!(location == "path" && items.len() == 1 && items[0].trim_matches('.').is_empty());
                continue;
            };
            let spelled = made.url.strip_prefix("https://example.com/v1/").unwrap();
            let spelled = spelled.strip_prefix('?').unwrap_or(spelled);
            let read: Vec<_> = spelled.strip_prefix(lead).unwrap().split(separator).map(decode).collect();
            prop_assert_eq!(&read, &items, "{} {} {}", style, explode, spelled);
        }
    }

    /// Whatever the members of an object, a server that reads the query gets them back.
    #[test]
    fn objects_come_back(members in proptest::collection::btree_map("\\PC{1,6}", "\\PC{0,8}", 1..5)) {
        for (style, is_deep) in [("form", false), ("deepObject", true)] {
            let operation = with_style("query", style, true);
            let made = request(&operation, json!({"color": members.clone()})).unwrap();
            let url = url::Url::parse(&made.url).unwrap();
            let read: BTreeMap<String, String> = url
                .query_pairs()
                .map(|(name, value)| {
                    let name = if is_deep {
                        name.strip_prefix("color[").unwrap().strip_suffix(']').unwrap().to_owned()
                    } else {
                        name.into_owned()
                    };
                    (name, value.into_owned())
                })
                .collect();
            prop_assert_eq!(&read, &members, "{}", url);
        }
    }
}
