//! What can't be cloned, and saying where it is.

use super::Frame;
use crate::{
    engine::js::{Ctx, Error, Exception, Result, Value},
    prelude::Samples,
    raw, state,
};

/// What an object is called, and why it is refused.
pub(super) fn of_object(value: &Value<'_>, samples: &Samples) -> (&'static str, &'static str) {
    let class = raw::class_id(value);
    if value.is_proxy() {
        (
            "A Proxy",
            "what is behind it can't be known; of a promise of a call await the result",
        )
    } else if value.is_function() {
        ("A function", "here only data can be passed")
    } else if class == samples.promise {
        ("A promise", "await it first")
    } else {
        (
            "An object",
            "it is of a built-in class whose state can't be copied",
        )
    }
}

/// Adds the step from an open object to the member that is being written.
pub(super) fn push_step(path: &mut String, frame: &Frame<'_>) {
    match frame {
        Frame::Array { next, .. } => *path += &format!("[{}]", next.saturating_sub(1)),
        Frame::Members { kind, .. } => *path += &format!(" {kind}"),
        Frame::Error { current, .. } => {
            *path += &current.map_or(String::new(), |field| format!(".{}", field.key()));
        }
        Frame::Properties { current, .. } => {
            let Some(key) = current else { return };
            let text = key.with_text(|text| String::from_utf8_lossy(text).into_owned());
            match text {
                Ok(key) if is_identifier(&key) => *path += &format!(".{key}"),
                Ok(key) => *path += &format!("[{key:?}]"),
                Err(_) => raw::forget_exception(key.ctx()),
            }
        }
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
}

/// Throws a `DataCloneError`.
pub(crate) fn data_clone_error(ctx: &Ctx<'_>, message: &str) -> Error {
    let error: Result<Value> = state::get()
        .hooks
        .dom_exception(ctx)
        .and_then(|create| create.call((message, "DataCloneError")));
    match error {
        Ok(error) => ctx.throw(error),
        Err(_) => Exception::throw_type(ctx, message),
    }
}
