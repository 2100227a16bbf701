//! Stacks: what is shown of them, and where in the worker's source they point.
//!
//! The engine writes a stack as text, one frame a line, `    at name (main.js:3:9)`, and counts columns in bytes. What
//! leaves this module has no frames of the prelude, and columns as editors and other engines count them: UTF-16 code
//! units, from 1. A column is that of the token that the engine remembers, which for a call is the callee and for a
//! `new` the class, where V8 has the `new`.

use crate::{
    engine::js::{Array, Ctx, Result, Value},
    modules, prelude,
    raw::{self, Key},
    state,
};
use coracle_value::sink::Field;

/// A frame of the worker's own code.
pub(crate) struct Frame<'a> {
    /// What stands before the module.
    head: &'a str,
    pub(crate) module: &'a str,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// What stands after the column.
    tail: &'a str,
}

impl Frame<'_> {
    pub(crate) fn text(&self) -> String {
        let Self {
            head,
            module,
            line,
            column,
            tail,
        } = self;
        format!("{head}{module}:{line}:{column}{tail}")
    }
}

/// Who wrote a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The engine: columns count bytes.
    Engine,
    /// The worker, or whoever made the error that came from outside.
    Other,
}

/// The frames of the worker's own code.
pub(crate) fn own_frames(stack: &str, author: Author) -> impl Iterator<Item = Frame<'_>> {
    stack.lines().filter_map(move |line| frame(line, author))
}

fn frame(line: &str, author: Author) -> Option<Frame<'_>> {
    let place = line.trim_start().strip_prefix("at ")?;
    let (place, tail) = match place.strip_suffix(')') {
        Some(place) => (place, ")"),
        None => (place, ""),
    };
    // Functions and modules may be called anything, so every place where the module's name could begin is tried.
    let starts = place.match_indices(" (").map(|(at, _)| at + 2);
    let places = starts.filter(|_| !tail.is_empty()).chain([0]);
    places.map(|start| &place[start..]).find_map(|place| {
        let (rest, column) = place.rsplit_once(':')?;
        let (module, line_number) = rest.rsplit_once(':')?;
        let (line_number, column) = (line_number.parse().ok()?, column.parse().ok()?);
        if !modules::is_known(module) {
            return None;
        }
        let column = match author {
            Author::Engine => modules::utf16_column(module, line_number, column),
            Author::Other => column,
        };
        Some(Frame {
            head: &line[..line.len() - tail.len() - place.len()],
            module,
            line: line_number,
            column,
            tail,
        })
    })
}

/// An engine's stack without the prelude's frames, and without those of built-in functions that the prelude called. Each
/// frame is on a line, with nothing at the end.
fn cleaned(stack: &str) -> String {
    let of_prelude = format!("({}:", prelude::SCRIPT_NAME);
    let mut lines: Vec<String> = Vec::new();
    for line in stack.lines() {
        if line.contains(&of_prelude) {
            lines.pop_if(|callee| callee.ends_with(" (native)"));
            continue;
        }
        lines.push(match frame(line, Author::Engine) {
            Some(frame) => frame.text(),
            None => line.to_owned(),
        });
    }
    lines.join("\n")
}

/// `host.cleanStack(text)`
pub(crate) fn clean_stack<'js>(ctx: Ctx<'js>, stack: Value<'js>) -> Result<Value<'js>> {
    raw::string(&ctx, cleaned(&raw::text_lossy(&stack)).as_bytes())
}

/// The string that a property holds, own or inherited. Runs getters.
pub(crate) fn text_property(object: &Value<'_>, field: Field) -> Result<Option<Vec<u8>>> {
    let value = raw::get(object, &Key::new(object.ctx(), field.key().as_bytes())?)?;
    if !value.is_string() {
        return Ok(None);
    }
    raw::with_text(&value, <[u8]>::to_vec).map(Some)
}

/// An error's stacks: the engine's, and the one that the worker has set. Runs no getter.
fn stacks<'js>(error: &Value<'js>) -> Result<(Value<'js>, Value<'js>)> {
    let hooks = &state::get().hooks;
    let parts: Array = hooks.stacks(error.ctx())?.call((error.clone(),))?;
    let (engine, own): (Value, Value) = (parts.get(0)?, parts.get(1)?);
    // The engine gives these their stack as a property, like a worker would.
    if !engine.is_string() && raw::class_id(error) == hooks.samples().dom_exception {
        return Ok((own, engine));
    }
    Ok((engine, own))
}

/// The stack that leaves with an error of this name and message. `None`: it has none.
pub(crate) fn of_error(error: &Value<'_>, name: &[u8], message: &[u8]) -> Result<Option<Vec<u8>>> {
    let (engine, own) = stacks(error)?;
    if own.is_string() {
        let own = raw::with_text(&own, <[u8]>::to_vec)?;
        return Ok(Some(own).filter(|own| !own.is_empty()));
    }
    if !engine.is_string() {
        return Ok(None);
    }
    let frames = cleaned(&raw::text_lossy(&engine));
    let mut stack = name.to_vec();
    if !message.is_empty() {
        stack.extend_from_slice(b": ");
        stack.extend_from_slice(message);
    }
    if !frames.is_empty() {
        stack.push(b'\n');
        stack.extend_from_slice(frames.as_bytes());
    }
    Ok(Some(stack))
}

/// What tells best where an error was thrown: the engine's stack, or the one that it came with.
pub(crate) fn for_location(error: &Value<'_>) -> Result<(String, Author)> {
    let (engine, own) = stacks(error)?;
    Ok(if engine.is_string() {
        (raw::text_lossy(&engine), Author::Engine)
    } else {
        (raw::text_lossy(&own), Author::Other)
    })
}
