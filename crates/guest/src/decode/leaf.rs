//! Values without members.

use crate::{
    engine::js::{Ctx, Result, Value},
    raw::{self, Key},
    state,
};
use coracle_value::sink::{Chunks, Leaf, Primitive, TextBytes};

pub(super) fn string<'js>(ctx: &Ctx<'js>, text: TextBytes<'_>) -> Result<Value<'js>> {
    match text {
        TextBytes::Utf8(text) => raw::string(ctx, text.as_bytes()),
        TextBytes::Chunks(chunks) => with_bytes(chunks, |bytes| raw::string(ctx, bytes)),
    }
}

pub(super) fn key_of<'js>(ctx: &Ctx<'js>, text: TextBytes<'_>) -> Result<Key<'js>> {
    match text {
        TextBytes::Utf8(text) => Key::new(ctx, text.as_bytes()),
        TextBytes::Chunks(chunks) => with_bytes(chunks, |bytes| Key::new(ctx, bytes)),
    }
}

fn with_bytes<T>(chunks: Chunks<'_>, read: impl FnOnce(&[u8]) -> T) -> T {
    match chunks {
        Chunks::One(bytes) => read(bytes),
        many => read(&many.to_vec()),
    }
}

pub(super) fn primitive<'js>(ctx: &Ctx<'js>, value: Primitive<'_>) -> Result<Value<'js>> {
    Ok(match value {
        Primitive::Undefined => Value::new_undefined(ctx.clone()),
        Primitive::Null => Value::new_null(ctx.clone()),
        Primitive::Bool(bool) => Value::new_bool(ctx.clone(), bool),
        Primitive::Number(number) => raw::number(ctx, number),
        Primitive::Text(text) => string(ctx, text)?,
        Primitive::BigInt { negative, content } => {
            let digits = with_bytes(content, hexadecimal);
            state::get().hooks.bigint(ctx)?.call((digits, negative))?
        }
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    let mut text = String::with_capacity(2 * bytes.len() + 3);
    text.push_str("0x0");
    for byte in bytes {
        text.extend([digit(byte >> 4), digit(*byte)]);
    }
    text
}

/// A leaf that is an object.
pub(super) fn object<'js>(ctx: &Ctx<'js>, leaf: Leaf<'_>) -> Result<Value<'js>> {
    let hooks = &state::get().hooks;
    match leaf {
        Leaf::Date(milliseconds) => raw::date(ctx, milliseconds),
        Leaf::RegExp { source, flags } => hooks
            .regexp(ctx)?
            .call((string(ctx, source)?, string(ctx, flags)?)),
        Leaf::ArrayBuffer(bytes) => with_bytes(bytes, |bytes| raw::array_buffer(ctx, bytes)),
        Leaf::DataView(bytes) => {
            let buffer = with_bytes(bytes, |bytes| raw::array_buffer(ctx, bytes))?;
            hooks.data_view(ctx)?.call((buffer,))
        }
        Leaf::TypedArray {
            kind,
            big_endian,
            bytes,
        } => {
            let buffer = if big_endian {
                let mut bytes = bytes.to_vec();
                bytes
                    .chunks_exact_mut(kind.element_bytes())
                    .for_each(<[u8]>::reverse);
                raw::array_buffer(ctx, &bytes)?
            } else {
                with_bytes(bytes, |bytes| raw::array_buffer(ctx, bytes))?
            };
            raw::typed_array(&buffer, kind)
        }
        Leaf::Boxed(value) => hooks.boxed(ctx)?.call((primitive(ctx, value)?,)),
        // The walk finds no external in a table of none, and the rest are no objects.
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}
