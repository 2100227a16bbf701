//! JSON text: strings, numbers, base64.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use coracle_value::{Text, TypedArrayKind, number_to_string};
use std::fmt::Write;

/// Without padding when it is written; with or without when it is read.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Appends a string literal.
pub(crate) fn push_str(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        push_char(json, character);
    }
    json.push('"');
}

/// Appends a string literal; lone surrogates are escapes.
pub(crate) fn push_text(json: &mut String, text: &Text) {
    if let Some(text) = text.as_str() {
        return push_str(json, text);
    }
    json.push('"');
    for unit in char::decode_utf16(text.to_utf16()) {
        match unit {
            Ok(character) => push_char(json, character),
            Err(lone) => _ = write!(json, "\\u{:04x}", lone.unpaired_surrogate()),
        }
    }
    json.push('"');
}

fn push_char(json: &mut String, character: char) {
    match character {
        '"' => json.push_str("\\\""),
        '\\' => json.push_str("\\\\"),
        '\n' => json.push_str("\\n"),
        '\r' => json.push_str("\\r"),
        '\t' => json.push_str("\\t"),
        '\u{0}'..='\u{1f}' => _ = write!(json, "\\u{:04x}", character as u32),
        character => json.push(character),
    }
}

/// Appends a number, or what stands for one that JSON has not.
pub(crate) fn push_number(json: &mut String, number: f64) {
    if number.is_nan() {
        json.push_str("[\"nan\"]");
    } else if number.is_infinite() {
        json.push_str(if number > 0.0 {
            "[\"inf\"]"
        } else {
            "[\"-inf\"]"
        });
    } else if number == 0.0 && number.is_sign_negative() {
        json.push_str("-0");
    } else {
        json.push_str(&number_to_string(number));
    }
}

/// Appends `["bytes", …]`.
pub(crate) fn push_bytes(json: &mut String, bytes: &[u8], container: Option<&str>) {
    json.push_str("[\"bytes\",\"");
    BASE64.encode_string(bytes, json);
    json.push('"');
    if let Some(container) = container {
        json.push_str(",\"");
        json.push_str(container);
        json.push('"');
    }
    json.push(']');
}

/// How long `["bytes", …]` is at most.
pub(crate) fn bytes_length(bytes: usize) -> usize {
    bytes / 3 * 4 + 64
}

pub(crate) fn read_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// The class of a typed array, where the protocol has it; none for a `Uint8Array`, which is not named.
pub(crate) fn class_of(kind: TypedArrayKind) -> Result<Option<&'static str>, &'static str> {
    Ok(Some(match kind {
        TypedArrayKind::Uint8 => return Ok(None),
        TypedArrayKind::Float16 => return Err("a Float16Array"),
        TypedArrayKind::Uint8Clamped => "Uint8ClampedArray",
        TypedArrayKind::Int8 => "Int8Array",
        TypedArrayKind::Uint16 => "Uint16Array",
        TypedArrayKind::Int16 => "Int16Array",
        TypedArrayKind::Uint32 => "Uint32Array",
        TypedArrayKind::Int32 => "Int32Array",
        TypedArrayKind::BigUint64 => "BigUint64Array",
        TypedArrayKind::BigInt64 => "BigInt64Array",
        TypedArrayKind::Float32 => "Float32Array",
        TypedArrayKind::Float64 => "Float64Array",
    }))
}

/// The typed array of a class, and how many bytes an element has.
pub(crate) fn kind_of(class: &str) -> Option<(TypedArrayKind, usize)> {
    Some(match class {
        "Uint8Array" => (TypedArrayKind::Uint8, 1),
        "Uint8ClampedArray" => (TypedArrayKind::Uint8Clamped, 1),
        "Int8Array" => (TypedArrayKind::Int8, 1),
        "Uint16Array" => (TypedArrayKind::Uint16, 2),
        "Int16Array" => (TypedArrayKind::Int16, 2),
        "Uint32Array" => (TypedArrayKind::Uint32, 4),
        "Int32Array" => (TypedArrayKind::Int32, 4),
        "BigUint64Array" => (TypedArrayKind::BigUint64, 8),
        "BigInt64Array" => (TypedArrayKind::BigInt64, 8),
        "Float32Array" => (TypedArrayKind::Float32, 4),
        "Float64Array" => (TypedArrayKind::Float64, 8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &Text) -> String {
        let mut json = String::new();
        push_text(&mut json, text);
        json
    }

    #[test]
    fn strings_are_json_and_lone_surrogates_are_escapes() {
        assert_eq!(
            written(&Text::from("a\"\\\n\u{1}é😀")),
            "\"a\\\"\\\\\\n\\u0001é😀\""
        );
        let lone = Text::from_utf16(&[0x61, 0xd800, 0x22]);
        assert_eq!(written(&lone), "\"a\\ud800\\\"\"");
    }

    #[test]
    fn numbers_are_written_as_javascript_writes_them_and_zero_keeps_its_sign() {
        for (number, text) in [
            (1.0, "1"),
            (-0.0, "-0"),
            (1e21, "1e+21"),
            (0.1, "0.1"),
            (f64::NAN, "[\"nan\"]"),
            (f64::NEG_INFINITY, "[\"-inf\"]"),
        ] {
            let mut json = String::new();
            push_number(&mut json, number);
            assert_eq!(json, text);
        }
    }

    #[test]
    fn base64_is_read_with_and_without_padding() {
        assert_eq!(read_base64("AQ"), Some(vec![1]));
        assert_eq!(read_base64("AQ=="), Some(vec![1]));
        assert_eq!(read_base64("A*"), None);
    }
}
