//! What a model is told.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use coracle_codemode::{Description, Found, Limits, ToolEntry, preview, preview_text};
use coracle_executor::{CallStatus, Execution, Output};
use coracle_runs::Paused;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// What a tool's line in a list has of its description.
const SUMMARY_CHARS_MAX: usize = 200;
/// Images and sounds of one result that a model is shown, and the bytes of their base64.
const MEDIA_MAX: usize = 16;
const MEDIA_BYTES_MAX: usize = 8 << 20;
/// Calls that are named where a program did not wait for them.
const UNAWAITED_MAX: usize = 10;

/// A page of tools, one a line.
pub(crate) fn found(found: &Found<'_>) -> String {
    let mut text = String::new();
    for tool in &found.tools {
        text += &line(tool);
    }
    if found.tools.is_empty() {
        text += "Nothing found.";
        if !found.suggestions.is_empty() {
            // Writing to a string can't fail.
            let _ = write!(text, " Did you mean {}?", found.suggestions.join(", "));
        }
        text.push('\n');
    }
    if let Some(next) = found.next {
        let (shown, total) = (found.tools.len(), found.total);
        let _ = writeln!(
            text,
            "({shown} of {total}; the next page begins at offset {next})"
        );
    }
    text
}

fn line(tool: &ToolEntry) -> String {
    let summary = tool.description.lines().next().unwrap_or_default();
    let summary: String = summary.chars().take(SUMMARY_CHARS_MAX).collect();
    let parameters = tool.parameters.iter().take(12).cloned().collect::<Vec<_>>();
    let path = tool.path();
    match (parameters.is_empty(), summary.is_empty()) {
        (true, true) => format!("{path}\n"),
        (true, false) => format!("{path}: {summary}\n"),
        (false, true) => format!("{path} ({})\n", parameters.join(", ")),
        (false, false) => format!("{path} ({}): {summary}\n", parameters.join(", ")),
    }
}

/// Declarations, and what could not be declared.
pub(crate) fn described(description: &Description) -> String {
    let mut text = description.declarations.text.clone();
    for (path, alike) in &description.missing {
        let _ = match alike.is_empty() {
            true => writeln!(text, "// There is no tool {path}."),
            false => writeln!(
                text,
                "// There is no tool {path}; did you mean {}?",
                alike.join(", ")
            ),
        };
    }
    for (path, problem) in &description.untyped {
        let _ = writeln!(text, "// {path} is declared without types: {problem}");
    }
    text
}

/// Takes images and sounds out of a result, so that a model sees them instead of their base64: those that the result is, or
/// that stand in it as items of a list or values of an object. In their place stands which one of them it was.
pub(crate) fn without_media(
    mut execution: Execution,
    limits: &Limits,
) -> (Vec<ContentBlock>, Execution) {
    let mut media = Vec::new();
    let mut bytes = 0;
    let mut take = |value: &mut Value| {
        let Some((kind, block, size)) = medium(value) else {
            return;
        };
        bytes += size;
        if bytes <= MEDIA_BYTES_MAX && media.len() < MEDIA_MAX {
            media.push(block);
            *value = format!("({kind} {}, below)", media.len()).into();
        } else {
            *value = format!(
                "({kind}, left out: all of them have more than 8 MiB, or are more than 16)"
            )
            .into();
        }
    };
    let mut result = std::mem::take(&mut execution.result_whole);
    match &mut result {
        Value::Array(items) => items.iter_mut().for_each(take),
        value if medium(value).is_some() => take(value),
        Value::Object(members) => members.values_mut().for_each(take),
        _ => {}
    }
    if bytes > 0 {
        execution.show(result, limits);
    }
    (media, execution)
}

/// An image or a sound as MCP has it, with its name for people and its size.
fn medium(value: &Value) -> Option<(&'static str, ContentBlock, usize)> {
    let text = |name| value.get(name).and_then(Value::as_str);
    let (data, media_type) = (text("data")?, text("mimeType")?);
    BASE64_STANDARD.decode(data).ok()?;
    let size = data.len();
    match text("type")? {
        "image" => Some(("image", ContentBlock::image(data, media_type), size)),
        "audio" => Some(("audio", ContentBlock::audio(data, media_type), size)),
        _ => None,
    }
}

/// What a tool has answered that was called by itself.
pub(crate) fn invoked(output: Output, limits: &Limits) -> CallToolResult {
    let result = match output {
        Output::Json(result) => result,
        Output::Bytes(bytes) => json!({ "$bytes": BASE64_STANDARD.encode(bytes) }),
    };
    if let Some((_, block, _)) = medium(&result) {
        return CallToolResult::success(vec![block]);
    }
    let told = json!({ "result": preview(&result, limits).value });
    let mut answer = CallToolResult::success(vec![ContentBlock::text(told.to_string())]);
    answer.structured_content = Some(told);
    answer
}

/// What a run waits for, and how its result is had later.
pub(crate) fn paused(paused: &Paused) -> Value {
    let calls = paused.calls.iter().map(|call| {
        let arguments = call.arguments.to_string();
        json!({ "tool": call.tool, "arguments": preview_text(&arguments, SUMMARY_CHARS_MAX) })
    });
    json!({
        "paused": {
            "run": paused.id,
            "waitsForApprovalOf": calls.collect::<Vec<_>>(),
            "next": "A person has to approve. Call `result` with this run afterwards; do not start the program again.",
        },
    })
}

/// What came of a program: an object that has no more than there is to tell.
pub(crate) fn executed(execution: &Execution, limits: &Limits) -> Value {
    let mut told = Map::new();
    match &execution.error {
        None => {
            told.insert("result".into(), execution.result.clone());
        }
        Some(error) => {
            let mut shown =
                json!({ "code": error.code, "name": error.name, "message": error.message });
            if error.line > 0 {
                shown["line"] = error.line.into();
                shown["column"] = error.column.into();
            }
            if !error.tool_code.is_empty() {
                shown["toolCode"] = error.tool_code.clone().into();
            }
            if !error.hint.is_empty() {
                shown["hint"] = error.hint.clone().into();
            }
            if !error.stack.is_empty() {
                shown["stack"] = error.stack.clone().into();
            }
            told.insert("error".into(), shown);
        }
    }
    if let Some(truncated) = &execution.truncated {
        told.insert("truncated".into(), truncated.summary.clone().into());
    }
    if !execution.logs.is_empty() {
        let lines = execution.logs.iter();
        let lines = lines.map(|line| format!("[{}] {}", line.level.as_str(), line.message));
        let text = lines.collect::<Vec<_>>().join("\n");
        told.insert(
            "console".into(),
            preview_text(&text, limits.log_chars_max).into(),
        );
    }
    let unawaited: Vec<String> = execution
        .unawaited()
        .take(UNAWAITED_MAX)
        .map(|call| match call.status {
            CallStatus::Ok => call.tool.clone(),
            CallStatus::Failed => format!("{} (failed: {})", call.tool, call.code),
            CallStatus::Unfinished => format!("{} (given up)", call.tool),
        })
        .collect();
    if !unawaited.is_empty() {
        told.insert("callsNotAwaited".into(), unawaited.into());
    }
    Value::Object(told)
}
