//! The two tools as a model sees them.

use rmcp::model::{JsonObject, Tool};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the list of tools may cost, in tokens by the estimate of `coracle_codemode::tokens_estimated`.
pub const TOKENS_MAX: usize = 1_000;

const SEARCH: &str = "\
Find and describe the tools that programs given to `execute` can call.

- `query`: words of what you need, such as \"list issues\"; empty lists all. The answer has the tools' paths \
(`namespace.tool`) and what they do.
- `describe`: paths, or names of namespaces. The answer has their TypeScript declarations. Read them before calling a tool.
- `offset`: where the next page begins, if the answer names one.";

const EXECUTE: &str = "\
Run a program in JavaScript or TypeScript in a sandbox, and get its result. Tools are global functions by namespace, take one \
object, and return promises:

    const issues = await github.list_issues({ owner: \"a\", repo: \"b\" });
    return issues.filter((issue) => issue.comments > 5).map(({ number, title }) => ({ number, title }));

Do the whole job in one program: loop, combine, filter, and run independent calls at once with Promise.all. Await every call. \
Return only what you need, as a large result is shortened. `console.log` is shown too. There are no files, no network, and no \
Node.js; imports are not available. An error of a tool is thrown, with `message` and `code`.";

/// The arguments of `search`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SearchInput {
    pub(crate) query: Option<String>,
    pub(crate) describe: Option<Vec<String>>,
    pub(crate) offset: usize,
}

/// The arguments of `execute`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteInput {
    pub(crate) code: String,
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

/// Both of them.
pub(crate) fn tools() -> Vec<Tool> {
    let search = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string" },
            "describe": { "type": "array", "items": { "type": "string" } },
            "offset": { "type": "integer", "minimum": 0 },
        },
    });
    let execute = json!({
        "type": "object",
        "properties": { "code": { "type": "string", "description": "The program." } },
        "required": ["code"],
    });
    vec![
        Tool::new("search", SEARCH, object(search)),
        Tool::new("execute", EXECUTE, object(execute)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_codemode::tokens_estimated;

    #[test]
    fn the_list_of_tools_is_short() {
        let text = serde_json::to_string(&tools()).expect("tools are JSON");
        let tokens = tokens_estimated(&text);
        assert!(tokens <= TOKENS_MAX, "{tokens} tokens");
    }
}
