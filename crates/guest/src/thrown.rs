//! Describing what was thrown, with its place in the worker's source.
//!
//! Anything can be thrown, and its getters may throw again: nothing that happens here keeps the report from being made.

use crate::{
    encode::{self, EncodeError, Instances, Manner, References},
    engine::js::{Ctx, Error, Result, Value},
    host, prelude, raw, stack, state,
};
use coracle_abi::{Thrown, finish, operation};
use coracle_value::sink::Field;

/// Bytes of a stack or message that are reported; a worker can make them as long as it likes.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The thrown value itself; what is larger or nested deeper is left out.
const VALUE: Manner = Manner {
    root: "error",
    bytes_max: 256 * 1024,
    depth_max: 64,
    instances: Instances::Refused,
    references: References::Refused,
};

/// `host.finishThrown(invocation, error)`
pub(crate) fn finish_with_error<'js>(ctx: Ctx<'js>, invocation: f64, error: Value<'js>) {
    state::rejections().borrow_mut().mark();
    report(&ctx, invocation as u64, &error, false);
}

/// Reports an engine error, whose value is pending in the context.
pub(crate) fn finish_with_engine_error(
    ctx: &Ctx<'_>,
    invocation: u64,
    error: Error,
    during_load: bool,
) {
    match error {
        Error::Exception => report(ctx, invocation, &ctx.catch(), during_load),
        other => finish_with_text(invocation, "TypeError", &other.to_string(), during_load),
    }
}

/// Reports an error of our own making.
pub(crate) fn finish_with_text(invocation: u64, name: &str, message: &str, during_load: bool) {
    send(
        invocation,
        &Thrown {
            name: name.into(),
            message: message.into(),
            during_load,
            ..Thrown::default()
        },
    );
}

/// `host.abort(error)`: ends the isolate, and every call in it with this.
pub(crate) fn abort<'js>(ctx: Ctx<'js>, error: Value<'js>) {
    // Encoding into a Vec can't fail.
    let bytes = minicbor::to_vec(describe(&ctx, &error, false)).unwrap_or_default();
    host::start(operation::ABORT, &bytes);
}

fn report<'js>(ctx: &Ctx<'js>, invocation: u64, error: &Value<'js>, during_load: bool) {
    send(invocation, &describe(ctx, error, during_load));
}

/// What there is to say of something that was thrown.
pub(crate) fn describe<'js>(ctx: &Ctx<'js>, error: &Value<'js>, during_load: bool) -> Thrown {
    let mut thrown = Thrown {
        name: name_of(ctx, error),
        message: message_of(ctx, error),
        during_load,
        ..Thrown::default()
    };
    if error.is_object()
        && !error.is_function()
        && let Some(stack) = caught(ctx, stack::for_location(error))
    {
        for frame in stack.own_frames() {
            if thrown.module.is_empty() {
                thrown.module = frame.module.to_string();
                thrown.line = frame.line;
                thrown.column = frame.column;
            } else {
                thrown.stack.push('\n');
            }
            thrown.stack += &frame.text();
        }
        truncate(&mut thrown.stack);
    }
    thrown.value = match encode::cbor(ctx, error, VALUE) {
        Ok(encoded) => encoded.bytes,
        Err(EncodeError::Threw(_)) => {
            raw::forget_exception(ctx);
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    thrown
}

/// What a caller is told of a worker whose modules could not be evaluated, in workerd's words.
pub(crate) fn failed_to_start(thrown: &Thrown) -> String {
    let Thrown {
        name,
        message,
        module,
        line,
        column,
        ..
    } = thrown;
    let mut text = format!("Failed to start Worker:\nUncaught {name}: {message}");
    if !module.is_empty() {
        text += &format!("\n  at {module}:{line}:{column}");
    }
    text
}

fn send(invocation: u64, thrown: &Thrown) {
    // Encoding into a Vec can't fail.
    let bytes = minicbor::to_vec(thrown).unwrap_or_default();
    host::finish(invocation, finish::THREW, bytes);
}

/// Takes the exception of a failed call away.
fn caught<T>(ctx: &Ctx<'_>, outcome: Result<T>) -> Option<T> {
    outcome.map_err(|_| raw::forget_exception(ctx)).ok()
}

/// The string under a key of what was thrown, if it is an object that has one.
fn text_of(ctx: &Ctx<'_>, error: &Value<'_>, field: Field) -> Option<String> {
    if !error.is_object() || error.is_function() {
        return None;
    }
    let bytes = caught(ctx, stack::text_property(error, field))??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn name_of(ctx: &Ctx<'_>, error: &Value<'_>) -> String {
    let mut name = text_of(ctx, error, Field::Name).unwrap_or_else(|| "Error".into());
    truncate(&mut name);
    name
}

/// The message of an error; of anything else what the console would show.
pub(crate) fn message_of<'js>(ctx: &Ctx<'js>, error: &Value<'js>) -> String {
    let message = text_of(ctx, error, Field::Message);
    let shown = || {
        if error.is_string() {
            return Some(raw::text_lossy(error));
        }
        Some(inspected(ctx, error))
    };
    let mut message = message.or_else(shown).unwrap_or_default();
    truncate(&mut message);
    message
}

/// What the console would show of a value.
pub(crate) fn inspected<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let inspect = state::get().hooks.inspect(ctx);
    let text: Option<Value> = caught(
        ctx,
        inspect.and_then(|inspect| inspect.call((value.clone(),))),
    );
    text.map(|text| raw::text_lossy(&text)).unwrap_or_default()
}

fn truncate(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    }
}

/// For failures of the prelude itself, before there is anything to describe them with.
pub(crate) fn describe_plainly(ctx: &Ctx<'_>, error: Error) -> String {
    if !matches!(error, Error::Exception) {
        return error.to_string();
    }
    let value = ctx.catch();
    match value.as_exception() {
        Some(exception) => format!(
            "{}: {}\n{}",
            prelude::SCRIPT_NAME,
            exception.message().unwrap_or_default(),
            exception.stack().unwrap_or_default()
        ),
        None => raw::text_lossy(&value),
    }
}
