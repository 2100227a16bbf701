//! Bodies of every kind.

use super::*;
use base64::{Engine, engine::general_purpose::STANDARD};

fn with_content(content: Value) -> Operation {
    operation_at(
        "/",
        json!({"requestBody": {"required": true, "content": content}}),
    )
}

fn sent(content: Value, body: Value) -> Result<(String, Vec<u8>), RequestError> {
    let made = request(&with_content(content), json!({"body": body}))?;
    let media_type = made.headers.iter().find(|(name, _)| name == "content-type");
    Ok((media_type.unwrap().1.clone(), made.body.unwrap()))
}

fn sent_text(content: Value, body: Value) -> (String, String) {
    let (media_type, bytes) = sent(content, body).unwrap();
    (media_type, String::from_utf8(bytes).unwrap())
}

/// A value is sent as its media type has it.
#[test]
fn bodies_are_of_their_media_type() {
    let bytes = json!({"$bytes": STANDARD.encode([0_u8, 255, 10])});
    for (media_type, body, sent_as, expected) in [
        (
            "application/json",
            json!({"a": [1]}),
            "application/json",
            &b"{\"a\":[1]}"[..],
        ),
        (
            "application/merge-patch+json",
            json!({"a": null}),
            "application/merge-patch+json",
            b"{\"a\":null}",
        ),
        ("*/*", json!(1), "application/json", b"1"),
        ("text/plain", json!("a\nb"), "text/plain", b"a\nb"),
        ("application/xml", json!("<a/>"), "application/xml", b"<a/>"),
        (
            "application/octet-stream",
            bytes.clone(),
            "application/octet-stream",
            &[0, 255, 10],
        ),
        (
            "application/octet-stream",
            json!("é"),
            "application/octet-stream",
            "é".as_bytes(),
        ),
        (
            "image/*",
            json!({"$bytes": "", "type": "image/png"}),
            "image/png",
            b"",
        ),
        ("image/*", bytes, "application/octet-stream", &[0, 255, 10]),
    ] {
        let (found, body) = sent(json!({media_type: {"schema": {}}}), body).unwrap();
        assert_eq!(
            (found.as_str(), body.as_slice()),
            (sent_as, expected),
            "{media_type}"
        );
    }
}

/// A form repeats the names of arrays, and sends objects as JSON unless it says how else.
#[test]
fn forms_are_spelled() {
    let schema = json!({"type": "object"});
    let (media_type, body) = sent_text(
        json!({"application/x-www-form-urlencoded": {"schema": schema, "encoding": {
            "deep": {"style": "deepObject", "explode": true}, "list": {"explode": false},
        }}}),
        json!({"a b": "c&d=é", "all": [1, 2], "list": [1, 2], "object": {"x": 1}, "deep": {"x": {"y": 2}}, "none": null}),
    );
    assert_eq!(media_type, "application/x-www-form-urlencoded");
    assert_eq!(
        body,
        "a%20b=c%26d%3D%C3%A9&all=1&all=2&list=1,2&object=%7B%22x%22%3A1%7D&deep%5Bx%5D%5By%5D=2"
    );
}

/// A form in parts: texts, files with their names and types, objects as JSON, arrays as several parts.
#[test]
fn forms_in_parts_are_built() {
    let (media_type, body) = sent_text(
        json!({"multipart/form-data": {
            "schema": {"type": "object", "properties": {"raw": {"type": "string", "format": "binary"}}},
            "encoding": {"meta": {"contentType": "application/vnd.x+json, text/plain"}},
        }}),
        json!({
            "note": "a", "meta": {"x": 1}, "raw": "text", "many": [1, 2],
            "file": {"$bytes": STANDARD.encode("data"), "name": "a\"\r\nb.txt", "type": "text/csv"},
        }),
    );
    assert_eq!(
        media_type,
        "multipart/form-data; boundary=coracle-form-00000000"
    );
    let part = |head: &str, content: &str| {
        format!(
            "--coracle-form-00000000\r\ncontent-disposition: form-data; {head}\r\n\r\n{content}\r\n"
        )
    };
    let expected = [
        part("name=\"note\"\r\ncontent-type: text/plain", "a"),
        part(
            "name=\"meta\"\r\ncontent-type: application/vnd.x+json",
            "{\"x\":1}",
        ),
        part(
            "name=\"raw\"; filename=\"raw\"\r\ncontent-type: application/octet-stream",
            "text",
        ),
        part("name=\"many\"\r\ncontent-type: text/plain", "1"),
        part("name=\"many\"\r\ncontent-type: text/plain", "2"),
        part(
            "name=\"file\"; filename=\"a%22%0D%0Ab.txt\"\r\ncontent-type: text/csv",
            "data",
        ),
        "--coracle-form-00000000--\r\n".to_owned(),
    ];
    assert_eq!(body, expected.concat());
}

/// No part can end the form: a boundary that stands in one is not taken.
#[test]
fn a_boundary_is_in_no_part() {
    let hostile = "--coracle-form-00000000--\r\n--coracle-form-00000001\r\ncontent-disposition: form-data; name=\"admin\"";
    let content = json!({"multipart/form-data": {"schema": {"type": "object"}}});
    let (media_type, body) = sent_text(content, json!({"a": hostile}));
    assert_eq!(
        media_type,
        "multipart/form-data; boundary=coracle-form-00000002"
    );
    assert_eq!(body.matches("--coracle-form-00000002").count(), 2);
}

/// What can't be a body of its media type is refused, and a media type of a file can't be a header of its own.
#[test]
fn other_values_are_refused() {
    for (media_type, body, said) in [
        ("application/x-www-form-urlencoded", json!([1]), "no object"),
        ("multipart/form-data", json!("a"), "no object"),
        ("text/plain", json!({"a": 1}), "no text"),
        ("application/octet-stream", json!(5), "no bytes"),
        (
            "application/octet-stream",
            json!({"$bytes": "!"}),
            "no bytes",
        ),
        (
            "multipart/form-data",
            json!({"a": {"$bytes": "", "type": "a/b\r\nx: y"}}),
            "media type",
        ),
        (
            "multipart/form-data",
            json!({"a": {"$bytes": "*"}}),
            "no base64",
        ),
    ] {
        let error = sent(json!({media_type: {"schema": {}}}), body).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let limits = Limits {
        body_bytes_max: 10,
        ..Limits::default()
    };
    let operation = with_content(json!({"application/json": {}}));
    let error = operation
        .request(SERVER, &json!({"body": "12345678901"}), &limits)
        .unwrap_err();
    assert!(error.to_string().contains("body_bytes_max"), "{error}");
}

/// Of several media types the most structured is taken, and another can be asked for.
#[test]
fn a_media_type_can_be_chosen() {
    let operation = with_content(
        json!({"image/png": {}, "application/json": {}, "application/x-www-form-urlencoded": {}}),
    );
    let made = request(&operation, json!({"body": {"a": 1}})).unwrap();
    assert_eq!(made.headers[0].1, "application/json");
    let form = json!({"body": {"a": 1}, "contentType": "application/x-www-form-urlencoded"});
    assert_eq!(request(&operation, form).unwrap().body.unwrap(), b"a=1");
    let error = request(&operation, json!({"body": 1, "contentType": "text/html"})).unwrap_err();
    assert!(error.to_string().contains("no media type"), "{error}");
    let input = operation.input();
    let types = &input.value()["properties"]["contentType"]["enum"];
    assert_eq!(types[0], "application/json");
    assert_eq!(
        request(&operation, json!({})).unwrap_err(),
        RequestError::ArgumentMissing("body".into())
    );
}

/// Bytes are what a binary schema takes, in the form that stands for them among arguments.
#[test]
fn bytes_are_judged() {
    let operation = with_content(json!({"application/octet-stream": {}}));
    let limits = Limits::default();
    let input = operation.input();
    let validator = crate::Validator::new(&input, &limits).unwrap();
    validator
        .validate(&json!({"body": {"$bytes": "aGk="}}))
        .unwrap();
    validator.validate(&json!({"body": "text"})).unwrap();
    validator
        .validate(&json!({"body": {"bytes": 1}}))
        .unwrap_err();
}
