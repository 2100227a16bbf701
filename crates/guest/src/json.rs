//! Values as JSON text, for callers that have only that.
//!
//! The engine parses and writes; here is what it does not care for: the nesting that a call allows, which is counted
//! before the engine recurses into the text, and errors that say what the text was.

use crate::{
    decode::DecodeError,
    encode::EncodeError,
    engine::js::{Ctx, Error, Exception, Value},
    raw, thrown,
};

/// Parses JSON text.
pub(crate) fn parse<'js>(
    ctx: &Ctx<'js>,
    bytes: &[u8],
    depth_max: usize,
) -> Result<Value<'js>, DecodeError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DecodeError::Malformed(format!("the JSON text is not UTF-8: {error}")))?;
    if is_deeper(bytes, depth_max) {
        return Err(DecodeError::TooDeep);
    }
    raw::parse_json(ctx, text, "<json>").map_err(|error| match error {
        Error::Exception => {
            let error = ctx.catch();
            let message = thrown::message_of(ctx, &error);
            DecodeError::Malformed(format!("the JSON text is malformed: {message}"))
        }
        other => DecodeError::Threw(other),
    })
}

/// Parses the body of a JSON module.
pub(crate) fn parse_module<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    body: &[u8],
) -> Result<Value<'js>, Error> {
    let text = String::from_utf8_lossy(body);
    raw::parse_json(ctx, &text, name).map_err(|error| match error {
        Error::Exception => {
            let error = ctx.catch();
            let message = thrown::message_of(ctx, &error);
            Exception::throw_syntax(
                ctx,
                &format!("The module \"{name}\" is not JSON: {message}"),
            )
        }
        other => other,
    })
}

/// The JSON text of a value, as `JSON.stringify` has it. `None` where that answers `undefined`.
pub(crate) fn stringify<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    bytes_max: usize,
    depth_max: usize,
) -> Result<Option<Vec<u8>>, EncodeError> {
    let Some(text) = ctx.json_stringify(value.clone())? else {
        return Ok(None);
    };
    let bytes = raw::with_text(text.as_value(), <[u8]>::to_vec)?;
    if bytes.len() > bytes_max {
        Err(EncodeError::TooLarge(bytes.len()))
    } else if is_deeper(&bytes, depth_max) {
        Err(EncodeError::TooDeep)
    } else {
        Ok(Some(bytes))
    }
}

/// Whether more than `depth_max` arrays and objects are open at once.
fn is_deeper(text: &[u8], depth_max: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > depth_max {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
