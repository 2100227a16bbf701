//! Encoding and decoding text, by the `encoding_rs` crate.

use super::{undefined, with_window};
use crate::{
    engine::js::{Ctx, Object, Result, Value, function::Func},
    native::Native,
    raw,
};
use coracle_value::TypedArrayKind;
use encoding_rs::{CoderResult, Decoder, DecoderResult, Encoding, REPLACEMENT};

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("encodeText", Func::from(encode))?;
    object.set("encodeInto", Func::from(encode_into))?;
    object.set("encodingName", Func::from(encoding_name))?;
    object.set("newDecoder", Func::from(new_decoder))?;
    object.set("decode", Func::from(decode))
}

/// `host.encodeText(text) -> Uint8Array`
fn encode<'js>(ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
    let buffer = raw::with_text(&text, |bytes| raw::array_buffer(&ctx, bytes))??;
    raw::typed_array(&buffer, TypedArrayKind::Uint8)
}

/// `host.encodeInto(text, buffer, offset, length) -> [code units read, bytes written]`: no part of a character.
fn encode_into<'js>(
    ctx: Ctx<'js>,
    text: Value<'js>,
    buffer: Value<'js>,
    offset: usize,
    length: usize,
) -> Result<Value<'js>> {
    let text = raw::text_lossy(&text);
    let (read, written) = with_window(&buffer, offset, length, |bytes| {
        let fit = floor_char_boundary(&text, bytes.len());
        bytes[..fit].copy_from_slice(&text.as_bytes()[..fit]);
        (text[..fit].encode_utf16().count(), fit)
    });
    let figures = [read, written].map(|figure| raw::number(&ctx, figure as f64));
    raw::array(&ctx, &figures)
}

fn floor_char_boundary(text: &str, most: usize) -> usize {
    let most = most.min(text.len());
    (0..=most)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// `host.encodingName(label) -> name`, or undefined where no decoder may have it.
fn encoding_name<'js>(ctx: Ctx<'js>, label: Value<'js>) -> Result<Value<'js>> {
    match Encoding::for_label(raw::text_lossy(&label).as_bytes()) {
        Some(encoding) if encoding != REPLACEMENT => {
            raw::string(&ctx, encoding.name().to_ascii_lowercase().as_bytes())
        }
        _ => Ok(undefined(&ctx)),
    }
}

/// `host.newDecoder(name, ignoreBOM) -> decoder`
fn new_decoder<'js>(ctx: Ctx<'js>, name: Value<'js>, ignore_bom: bool) -> Result<Value<'js>> {
    let encoding = Encoding::for_label(raw::text_lossy(&name).as_bytes());
    let encoding = encoding.unwrap_or(encoding_rs::UTF_8);
    Native::wrap(
        &ctx,
        if ignore_bom {
            encoding.new_decoder_without_bom_handling()
        } else {
            encoding.new_decoder_with_bom_removal()
        },
    )
}

/// `host.decode(decoder, buffer, offset, length, fatal, last) -> text`, or undefined where it is fatal that bytes are not
/// valid.
fn decode<'js>(
    ctx: Ctx<'js>,
    decoder: Value<'js>,
    buffer: Value<'js>,
    offset: usize,
    length: usize,
    fatal: bool,
    last: bool,
) -> Result<Value<'js>> {
    let text = Native::with(&decoder, |decoder: &mut Decoder| {
        with_window(&buffer, offset, length, |bytes| {
            if fatal {
                decode_strictly(decoder, bytes, last)
            } else {
                Some(decode_leniently(decoder, bytes, last))
            }
        })
    });
    match text.flatten() {
        Some(text) => raw::string(&ctx, text.as_bytes()),
        None => Ok(undefined(&ctx)),
    }
}

fn decode_leniently(decoder: &mut Decoder, mut bytes: &[u8], last: bool) -> String {
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
    loop {
        let (result, read, _) = decoder.decode_to_string(bytes, &mut text, last);
        bytes = &bytes[read..];
        match result {
            CoderResult::InputEmpty => return text,
            CoderResult::OutputFull => text.reserve(bytes.len() * 3 + 16),
        }
    }
}

fn decode_strictly(decoder: &mut Decoder, mut bytes: &[u8], last: bool) -> Option<String> {
    let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    let mut text = String::with_capacity(most.unwrap_or(0));
    loop {
        let (result, read) = decoder.decode_to_string_without_replacement(bytes, &mut text, last);
        bytes = &bytes[read..];
        match result {
            DecoderResult::InputEmpty => return Some(text),
            DecoderResult::OutputFull => text.reserve(bytes.len() * 3 + 16),
            DecoderResult::Malformed(..) => return None,
        }
    }
}
