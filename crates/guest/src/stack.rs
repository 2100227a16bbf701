//! Stacks: what is shown of them, and where in the worker's source they point.
//!
//! The engine writes a stack as text, one frame a line, `    at name (main.js:3:9)`, and counts columns in bytes. What
//! leaves this module has no frames of the prelude, and columns as editors and other engines count them: UTF-16 code
//! units, from 1, and places where a module's source map says that they come from. A column is that of the token that the engine remembers, which for a call is the callee and for a
//! `new` the class, where V8 has the `new`.

use crate::{
    engine::js::{Array, Ctx, Result, Value},
    modules, prelude,
    raw::{self, Key},
    state,
};
use coracle_value::sink::Field;
use std::borrow::Cow;

/// A frame of the worker's own code.
pub(crate) struct Frame<'a> {
    /// What stands before the module.
    head: &'a str,
    /// The worker's, or one that a source map names.
    pub(crate) module: Cow<'a, str>,
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

    fn function(&self) -> Option<&str> {
        let name = self.head.trim_start().strip_prefix("at ")?;
        name.strip_suffix(" (")
    }
}

/// Who wrote a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// The engine: columns count bytes.
    Engine,
    /// The worker, or whoever made the error that came from outside.
    Other,
}

/// An error's stack, with what it takes to read it.
pub(crate) struct Stack {
    text: String,
    author: Author,
    /// The names of the error's classes.
    classes: Vec<String>,
}

impl Stack {
    /// The frames of the worker's own code, without those in which the error was only being made.
    pub(crate) fn own_frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let frames = self.text.lines();
        let frames = frames.filter_map(|line| frame(line, self.author));
        frames.skip_while(|frame| is_constructor(frame, &self.classes))
    }
}

fn is_constructor(frame: &Frame<'_>, classes: &[String]) -> bool {
    let name = frame.function();
    name.is_some_and(|name| classes.iter().any(|class| class == name))
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
        let is_known = modules::is_known(module);
        let head = &line[..line.len() - tail.len() - place.len()];
        let frame = |module, line, column| Frame {
            head,
            module,
            line,
            column,
            tail,
        };
        match author {
            Author::Engine if is_known => {
                let column = modules::utf16_column(module, line_number, column);
                Some(match modules::origin(module, line_number, column) {
                    Some(origin) => {
                        let source = Cow::Owned(origin.source.to_string());
                        frame(source, origin.line, origin.column)
                    }
                    None => frame(Cow::Borrowed(module), line_number, column),
                })
            }
            Author::Other if is_known || modules::is_source(module) => {
                Some(frame(Cow::Borrowed(module), line_number, column))
            }
            Author::Engine | Author::Other => None,
        }
    })
}

/// An engine's stack without the prelude's frames, without those of built-in functions that the prelude called, and
/// without those in which the error was only being made. Each frame is on a line, with nothing at the end.
fn cleaned(stack: &str, classes: &[String]) -> String {
    let of_prelude = format!("({}:", prelude::SCRIPT_NAME);
    let mut lines: Vec<String> = Vec::new();
    let mut is_being_made = true;
    for line in stack.lines() {
        if line.contains(&of_prelude) {
            lines.pop_if(|callee| callee.ends_with(" (native)"));
            continue;
        }
        let frame = frame(line, Author::Engine);
        let is_constructor = frame.as_ref().is_some_and(|it| is_constructor(it, classes));
        is_being_made &= is_constructor;
        if !is_being_made {
            lines.push(frame.map_or_else(|| line.to_owned(), |frame| frame.text()));
        }
    }
    lines.join("\n")
}

/// `host.cleanStack(text, classes)`
pub(crate) fn clean_stack<'js>(
    ctx: Ctx<'js>,
    stack: Value<'js>,
    classes: Array<'js>,
) -> Result<Value<'js>> {
    let cleaned = cleaned(&raw::text_lossy(&stack), &texts(&classes)?);
    raw::string(&ctx, cleaned.as_bytes())
}

fn texts(list: &Array<'_>) -> Result<Vec<String>> {
    list.iter()
        .map(|text: Result<Value>| text.map(|text| raw::text_lossy(&text)))
        .collect()
}

/// The string that a property holds, own or inherited. Runs getters.
pub(crate) fn text_property(object: &Value<'_>, field: Field) -> Result<Option<Vec<u8>>> {
    let value = raw::get(object, &Key::new(object.ctx(), field.key().as_bytes())?)?;
    if !value.is_string() {
        return Ok(None);
    }
    raw::with_text(&value, <[u8]>::to_vec).map(Some)
}

/// An error's stacks: the engine's, and the one that the worker has set; and its classes' names. Runs no getter.
fn stacks<'js>(error: &Value<'js>) -> Result<(Value<'js>, Value<'js>, Vec<String>)> {
    let hooks = &state::get().hooks;
    let parts: Array = hooks.stacks(error.ctx())?.call((error.clone(),))?;
    let (engine, own): (Value, Value) = (parts.get(0)?, parts.get(1)?);
    let classes = texts(&parts.get(2)?)?;
    // The engine gives these their stack as a property, like a worker would.
    // An empty one came from elsewhere, without any.
    let is_empty = own.is_string() && raw::with_text(&own, <[u8]>::is_empty)?;
    if raw::class_id(error) == hooks.samples().dom_exception && !is_empty {
        return Ok((own, engine, classes));
    }
    Ok((engine, own, classes))
}

/// The stack that leaves with an error of this name and message. `None`: it has none.
pub(crate) fn of_error(error: &Value<'_>, name: &[u8], message: &[u8]) -> Result<Option<Vec<u8>>> {
    let (engine, own, classes) = stacks(error)?;
    if own.is_string() {
        let own = raw::with_text(&own, <[u8]>::to_vec)?;
        return Ok(Some(own).filter(|own| !own.is_empty()));
    }
    if !engine.is_string() {
        return Ok(None);
    }
    let frames = cleaned(&raw::text_lossy(&engine), &classes);
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
pub(crate) fn for_location(error: &Value<'_>) -> Result<Stack> {
    let (engine, own, classes) = stacks(error)?;
    let (text, author) = if engine.is_string() {
        (engine, Author::Engine)
    } else {
        (own, Author::Other)
    };
    Ok(Stack {
        text: raw::text_lossy(&text),
        author,
        classes,
    })
}
