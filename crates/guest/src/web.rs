//! What the web platform's classes in the prelude leave to libraries: parsing URLs and forms, encoding text,
//! compression, cryptography.
//!
//! The prelude has checked what it passes: text is a string without lone surrogates, bytes are a buffer, an offset and a
//! length. What does not fit all the same is answered with `undefined`, or with less.

mod address;
mod compression;
mod crypto;
mod multipart;
mod text;
mod url;

use crate::{
    engine::js::{Ctx, Object, Result, Value},
    raw,
};

/// Puts the functions into the prelude's `host`.
pub(crate) fn install(object: &Object<'_>) -> Result<()> {
    compression::install(object)?;
    crypto::install(object)?;
    multipart::install(object)?;
    text::install(object)?;
    url::install(object)
}

/// Runs `read` over a window of an `ArrayBuffer`: nothing where it is detached, or lies not in there.
fn with_window<T>(
    buffer: &Value<'_>,
    offset: usize,
    length: usize,
    read: impl FnOnce(&mut [u8]) -> T,
) -> T {
    let mut read = Some(read);
    let answer = raw::with_buffer(buffer, |bytes| {
        let window = bytes.get_mut(offset..offset.saturating_add(length));
        read.take().map(|read| read(window.unwrap_or_default()))
    });
    match (answer.flatten(), read) {
        (Some(answer), _) => answer,
        (None, Some(read)) => read(&mut []),
        (None, None) => unreachable!("it is called where it was taken"),
    }
}

fn undefined<'js>(ctx: &Ctx<'js>) -> Value<'js> {
    Value::new_undefined(ctx.clone())
}
