//! What a request and a response say of themselves, read off their encoded form (`schema/value.md`). Bodies are not looked
//! at, and nothing is decoded that is not told.

use coracle_value::{
    Value,
    tag::{HEADERS, REQUEST, RESPONSE, SHARED},
};
use minicbor::{Decoder, data::Type};
use std::collections::HashMap;

const HEADERS_MAX: u64 = 1_000;

/// URL, method and headers of the request that is the first of these arguments.
pub(super) fn request(args: &[u8]) -> Option<Value> {
    let mut decoder = Decoder::new(args);
    decoder.array().ok()?;
    let (mut url, mut method, mut headers) = (None, None, Value::Object(Vec::new()));
    for _ in 0..members(&mut decoder, REQUEST)? {
        match decoder.str().ok()? {
            "url" => url = Some(decoder.str().ok()?.to_owned()),
            "method" => method = Some(decoder.str().ok()?.to_owned()),
            "headers" => headers = read_headers(&mut decoder)?,
            _ => decoder.skip().ok()?,
        }
    }
    Some(Value::object([
        ("url", Value::from(url?)),
        ("method", Value::from(method.as_deref().unwrap_or("GET"))),
        ("headers", headers),
    ]))
}

/// The status of a response.
pub(super) fn status(value: &[u8]) -> Option<u16> {
    let mut decoder = Decoder::new(value);
    for _ in 0..members(&mut decoder, RESPONSE)? {
        if decoder.str().ok()? == "status" {
            return decoder.u16().ok();
        }
        decoder.skip().ok()?;
    }
    None
}

/// How many members the map has that follows with this tag.
fn members(decoder: &mut Decoder<'_>, wanted: u64) -> Option<u64> {
    skip_tags(decoder, wanted)?;
    decoder.map().ok()?
}

fn skip_tags(decoder: &mut Decoder<'_>, wanted: u64) -> Option<()> {
    while decoder.datatype().ok()? == Type::Tag {
        let tag = decoder.tag().ok()?.as_u64();
        if tag != wanted && tag != SHARED {
            return None;
        }
    }
    Some(())
}

/// Headers by name, in lower case as `Headers` has them. Where there are several of a name, their values are joined.
fn read_headers(decoder: &mut Decoder<'_>) -> Option<Value> {
    skip_tags(decoder, HEADERS)?;
    let count = decoder.array().ok()??;
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut known = HashMap::new();
    for _ in 0..count.min(HEADERS_MAX) {
        if decoder.array().ok()? != Some(2) {
            return None;
        }
        let (name, value) = (decoder.str().ok()?, decoder.str().ok()?);
        let name = name.to_ascii_lowercase();
        let index = *known.entry(name.clone()).or_insert(headers.len());
        match headers.get_mut(index) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(value);
            }
            None => headers.push((name, value.to_owned())),
        }
    }
    let headers = headers.into_iter();
    let headers = headers.map(|(name, value)| (name.into(), value.into()));
    (count <= HEADERS_MAX).then(|| Value::Object(headers.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use minicbor::{Encoder, data::Tag};

    fn args() -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new());
        let written = encoder
            .array(1)
            .and_then(|encoder| encoder.tag(Tag::new(REQUEST)))
            .and_then(|encoder| encoder.map(4))
            .and_then(|encoder| {
                encoder
                    .str("body")?
                    .null()?
                    .str("url")?
                    .str("https://a.example/")
            })
            .and_then(|encoder| encoder.str("method")?.str("POST")?.str("headers"))
            .and_then(|encoder| encoder.array(3)?.array(2)?.str("accept")?.str("a/b"))
            .and_then(|encoder| encoder.array(2)?.str("x")?.str("1"))
            .and_then(|encoder| encoder.array(2)?.str("Accept")?.str("*/*"));
        assert!(written.is_ok());
        encoder.into_writer()
    }

    #[test]
    fn a_request_is_told_by_url_method_and_headers() {
        let expected = Value::object([
            ("url", Value::from("https://a.example/")),
            ("method", "POST".into()),
            (
                "headers",
                Value::object([("accept", "a/b, */*"), ("x", "1")]),
            ),
        ]);
        assert_eq!(request(&args()), Some(expected));
    }

    #[test]
    fn what_is_no_request_is_none_however_it_is_cut() {
        let whole = args();
        for length in 0..whole.len() {
            assert_eq!(request(&whole[..length]), None);
        }
        assert_eq!((request(&[0x81, 0xa0]), status(&[0xa0])), (None, None));
    }
}
