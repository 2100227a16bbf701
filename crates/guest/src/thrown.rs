//! Describing what was thrown, with its place in the worker's source.

use crate::{
    encode,
    engine::js::{Array, Ctx, Error, Result, Value},
    host, modules, prelude, state,
};
use coracle_abi::{Thrown, finish};

/// Bytes of a stack or message that are reported; a worker can make them as long as it likes.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Bytes that the thrown value itself may take; a larger one is left out.
const VALUE_BYTES_MAX: usize = 256 * 1024;
const VALUE_DEPTH_MAX: usize = 64;

/// `host.finishThrown(invocation, error)`
pub(crate) fn finish_with_error<'js>(ctx: Ctx<'js>, invocation: f64, error: Value<'js>) {
    report(&ctx, invocation as u64, error, false);
}

/// Reports an engine error, whose value is pending in the context.
pub(crate) fn finish_with_engine_error(
    ctx: &Ctx<'_>,
    invocation: u64,
    error: Error,
    during_load: bool,
) {
    match error {
        Error::Exception => report(ctx, invocation, ctx.catch(), during_load),
        other => finish_with_text(
            ctx,
            invocation,
            "TypeError",
            &other.to_string(),
            during_load,
        ),
    }
}

/// Reports an error of our own making.
pub(crate) fn finish_with_text(
    _ctx: &Ctx<'_>,
    invocation: u64,
    name: &str,
    message: &str,
    during_load: bool,
) {
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

fn report<'js>(ctx: &Ctx<'js>, invocation: u64, error: Value<'js>, during_load: bool) {
    let (name, message, stack) = describe(ctx, &error);
    let mut thrown = Thrown {
        name,
        message,
        during_load,
        ..Thrown::default()
    };
    for line in stack.lines() {
        let Some((module, line_number, column)) = frame(line) else {
            continue;
        };
        let column = shifted_column(module, line_number, column);
        if thrown.module.is_empty() {
            thrown.module = module.to_owned();
            thrown.line = line_number;
            thrown.column = column;
        }
        let (head, _) = line.rsplit_once(module).unwrap_or((line, ""));
        let close = if line.ends_with(')') { ")" } else { "" };
        thrown.stack += &format!("{head}{module}:{line_number}:{column}{close}\n");
    }
    if thrown.stack.ends_with('\n') {
        thrown.stack.pop();
    }
    match encode::cbor(ctx, &error, VALUE_BYTES_MAX, VALUE_DEPTH_MAX) {
        Ok(bytes) => thrown.value = bytes,
        Err(encode::EncodeError::Threw(Error::Exception)) => drop(ctx.catch()),
        Err(_) => {}
    }
    send(invocation, &thrown);
}

fn send(invocation: u64, thrown: &Thrown) {
    // Encoding into a Vec can't fail.
    let bytes = minicbor::to_vec(thrown).unwrap_or_default();
    host::finish(invocation, finish::THREW, &bytes);
}

/// Name, message and stack of anything, without letting its getters throw at us.
fn describe<'js>(ctx: &Ctx<'js>, error: &Value<'js>) -> (String, String, String) {
    let parts: Result<Array> = state::get()
        .hooks
        .describe(ctx)
        .and_then(|describe| describe.call((error.clone(),)));
    let Ok(parts) = parts else {
        ctx.catch();
        return (
            "Error".into(),
            "the error could not be described".into(),
            String::new(),
        );
    };
    let text = |index: usize| -> String {
        let value: Result<Value> = parts.get(index);
        let mut text = value
            .map(|value| encode::text_lossy(&value))
            .unwrap_or_default();
        if text.len() > TEXT_BYTES_MAX {
            let end = (0..=TEXT_BYTES_MAX)
                .rev()
                .find(|end| text.is_char_boundary(*end))
                .unwrap_or(0);
            text.truncate(end);
        }
        text
    };
    (text(0), text(1), text(2))
}

/// Module, line and column of a stack frame of the worker's own code: `    at name (main.js:3:9)` or `at main.js:3:9`.
fn frame(line: &str) -> Option<(&str, u32, u32)> {
    let place = line.trim_start().strip_prefix("at ")?;
    let place = match place.rfind(" (") {
        Some(open) if place.ends_with(')') => &place[open + 2..place.len() - 1],
        _ => place,
    };
    let (rest, column) = place.rsplit_once(':')?;
    let (module, line_number) = rest.rsplit_once(':')?;
    let (line_number, column) = (line_number.parse().ok()?, column.parse().ok()?);
    modules::is_known(module).then_some((module, line_number, column))
}

/// A CommonJS module's first line starts behind the wrapper's head.
fn shifted_column(module: &str, line: u32, column: u32) -> u32 {
    let head = modules::COMMON_JS_HEAD.len() as u32;
    if line == 1 && column > head && modules::is_common_js(module) {
        column - head
    } else {
        column
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
        None => encode::text_lossy(&value),
    }
}
