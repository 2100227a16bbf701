//! What a request and a response say of themselves, read off their encoded form (`schema/value.md`). Bodies are not looked
//! at, and nothing is decoded that is not told.

use coracle_value::{
    Value,
    tag::{HEADERS, REQUEST, RESPONSE, SHARED},
};
use minicbor::{Decoder, data::Type};

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

fn read_headers(decoder: &mut Decoder<'_>) -> Option<Value> {
    skip_tags(decoder, HEADERS)?;
    let count = decoder.array().ok()??;
    let mut headers = Vec::new();
    for _ in 0..count.min(HEADERS_MAX) {
        if decoder.array().ok()? != Some(2) {
            return None;
        }
        let (name, value) = (decoder.str().ok()?, decoder.str().ok()?);
        headers.push((name.into(), value.into()));
    }
    (count <= HEADERS_MAX).then_some(Value::Object(headers))
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
            .and_then(|encoder| encoder.array(1)?.array(2)?.str("accept")?.str("*/*"));
        assert!(written.is_ok());
        encoder.into_writer()
    }

    #[test]
    fn a_request_is_told_by_url_method_and_headers() {
        let expected = Value::object([
            ("url", Value::from("https://a.example/")),
            ("method", "POST".into()),
            ("headers", Value::object([("accept", "*/*")])),
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
