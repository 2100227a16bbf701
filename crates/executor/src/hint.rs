//! What mends a program that has failed, where that can be told from its error: one sentence for whoever has written it.
//!
//! An error's message says what went wrong. What models get wrong most is what there is in a sandbox, and what a tool takes and
//! returns, which no message of an engine's knows.

use crate::{CallRecord, ErrorCode, ExecutionError, Toolbox};

/// Namespaces that a hint names.
const NAMESPACES_MAX: usize = 8;
/// Names that are there in Node.js, and not here.
const NODE: [&str; 7] = [
    "require",
    "process",
    "Buffer",
    "module",
    "exports",
    "__dirname",
    "__filename",
];

/// How to mend it; empty where nothing better than the message is known.
pub(crate) fn hint(error: &ExecutionError, calls: &[CallRecord], toolbox: &Toolbox) -> String {
    match error.code {
        ErrorCode::Exception => exception(error, calls, toolbox),
        ErrorCode::ToolError if error.tool_code == "arguments_invalid" => {
            "its declaration says what it takes, which is one object".into()
        }
        _ => String::new(),
    }
}

fn exception(error: &ExecutionError, calls: &[CallRecord], toolbox: &Toolbox) -> String {
    let message = &error.message[..];
    if let Some(name) = message.strip_suffix(" is not defined") {
        let missing = match NODE.contains(&name) {
            true => "this is not Node.js",
            false => "nothing has that name here",
        };
        return format!("{missing}; {}", globals(toolbox));
    }
    if message.starts_with("No such module ") {
        return format!("there are no packages to import; {}", globals(toolbox));
    }
    if message.contains("not permitted to access the internet") {
        return format!("there is no network; {}", globals(toolbox));
    }
    if error.name != "TypeError" {
        return String::new();
    }
    match calls.iter().find(|call| call.unawaited) {
        Some(call) => format!(
            "{} was called without await, and returns a promise",
            call.tool
        ),
        None if calls.is_empty() => String::new(),
        None => {
            "a tool's declaration says what it returns, such as an object with a list in it".into()
        }
    }
}

/// What there is instead.
fn globals(toolbox: &Toolbox) -> String {
    let names: Vec<&str> = toolbox.namespaces().map(|(name, _)| name).collect();
    let shown = names[..names.len().min(NAMESPACES_MAX)].join(", ");
    match names.len() {
        0 => "there are no tools either".into(),
        1..=NAMESPACES_MAX => format!("tools are in the globals {shown}"),
        more => format!(
            "tools are in the globals {shown} and {} more",
            more - NAMESPACES_MAX
        ),
    }
}
