//! What a tool's answer is for a program.

use crate::upstream::shortened;
use coracle_executor::{Output, ToolError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value as Json;

/// Structured content goes before all else; then a text, read as JSON where it is an object or a list; then the blocks as
/// they are. An error of the tool's is an error of the call.
pub(super) fn of_result(tool: &str, result: CallToolResult) -> Result<Output, ToolError> {
    if result.is_error == Some(true) {
        let text = texts(&result.content);
        let message = match text.is_empty() {
            true => format!("{tool} has failed, and does not say why"),
            false => format!("{tool}: {}", shortened(&text)),
        };
        return Err(ToolError::new("tool_failed", message));
    }
    if let Some(structured) = result.structured_content {
        return Ok(Output::Json(structured));
    }
    let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    if result.content.iter().all(is_text) {
        return Ok(Output::Json(match result.content.is_empty() {
            true => Json::Null,
            false => of_text(texts(&result.content)),
        }));
    }
    let broken = |error: serde_json::Error| ToolError::new("tool_failed", error.to_string());
    let blocks = result.content.iter().map(serde_json::to_value);
    let mut blocks: Vec<Json> = blocks.collect::<Result<_, _>>().map_err(broken)?;
    Ok(Output::Json(match blocks.len() {
        1 => blocks.remove(0),
        _ => Json::Array(blocks),
    }))
}

fn of_text(text: String) -> Json {
    let is_structure = text.trim_start().starts_with(['{', '[']);
    let read = is_structure.then(|| serde_json::from_str(&text).ok());
    read.flatten().unwrap_or(Json::String(text))
}

fn texts(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(&text.text[..]),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(result: Json) -> Result<Output, ToolError> {
        of_result("x", serde_json::from_value(result).expect("a result"))
    }

    #[test]
    fn answers_become_what_programs_can_use() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let table = [
            (
                json!({"content": [text("a")], "structuredContent": {"b": 1}}),
                json!({"b": 1}),
            ),
            (json!({"content": [text("a"), text("b")]}), json!("a\nb")),
            (json!({"content": [text(" [1, 2]")]}), json!([1, 2])),
            (json!({"content": [text("[not JSON")]}), json!("[not JSON")),
            (json!({"content": [text("42")]}), json!("42")),
            (json!({"content": []}), json!(null)),
            (json!({"content": [image]}), image.clone()),
            (
                json!({"content": [text("a"), image]}),
                json!([text("a"), image]),
            ),
        ];
        for (result, expected) in table {
            assert_eq!(read(result.clone()), Ok(Output::Json(expected)), "{result}");
        }
        let deep = "[".repeat(100_000);
        let told = read(json!({"content": [text(&deep)]}));
        assert_eq!(told, Ok(Output::Json(deep.into())));
        let failed = read(json!({"content": [text("no luck")], "isError": true}));
        assert_eq!(failed, Err(ToolError::new("tool_failed", "x: no luck")));
        let long = text(&"y".repeat(100_000));
        let failed = read(json!({"content": [long], "isError": true})).expect_err("it failed");
        assert_eq!(failed.message.len(), "x: ".len() + 2_000);
    }
}
