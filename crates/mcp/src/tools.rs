//! What a model sees.

use rmcp::model::{JsonObject, Tool};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the list of tools may cost, in tokens by the estimate of `coracle_codemode::tokens_estimated`.
pub const TOKENS_MAX: usize = 1_000;

const SEARCH: &str = "\
- `query`: words of what you need, such as \"list issues\"; empty lists all. The answer has the tools' paths \
(`namespace.tool`) and what they do.
- `describe`: paths, or names of namespaces. The answer has their TypeScript declarations. Read them before calling a tool.
- `offset`: where the next page begins, if the answer names one.";

const INVOKE: &str = "\
Call a tool by its path with one object of arguments, as `search` declares them, and get its result. An error has a `code`.";

const RESULT: &str = "\
Go on with a program that was paused, and get its result. It says what the program still waits for if nobody has approved yet.";

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

/// The arguments of `result`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultInput {
    pub(crate) run: String,
}

/// The arguments of `invoke`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InvokeInput {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: JsonObject,
}

/// The arguments of `execute` and `code`.
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

/// What an agent sees of all there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `search` and `execute`, whatever the number of tools.
    #[default]
    Search,
    /// `code` alone, which runs a program and has the declarations of all tools in its description, as far as they fit
    /// `types_tokens_max`: for few tools.
    Code,
    /// `search` and `invoke`, which calls one tool: for agents that are not to write programs.
    PassThrough,
}

fn search_text(caller: &str) -> String {
    format!("Find and describe the tools that {caller} can call.\n\n{SEARCH}")
}

/// What an agent is told when it connects.
pub(crate) fn instructions(mode: Mode) -> &'static str {
    match mode {
        Mode::Search => {
            "Find tools with `search`, then call them from a program given to `execute`."
        }
        Mode::Code => "Write one program that calls the tools, and give it to `code`.",
        Mode::PassThrough => "Find tools with `search`, then call them with `invoke`.",
    }
}

/// The tools of a mode. `declarations` are those of all tools behind it, for the one that shows them.
pub(crate) fn tools(
    mode: Mode,
    has_runs: bool,
    declarations: impl FnOnce() -> String,
) -> Vec<Tool> {
    let searched = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string" },
            "describe": { "type": "array", "items": { "type": "string" } },
            "offset": { "type": "integer", "minimum": 0 },
        },
    });
    let program = json!({
        "type": "object",
        "properties": { "code": { "type": "string", "description": "The program." } },
        "required": ["code"],
    });
    let invoked = json!({
        "type": "object",
        "properties": {
            "tool": { "type": "string", "description": "Its path, such as `github.list_issues`." },
            "arguments": { "type": "object" },
        },
        "required": ["tool"],
    });
    let mut tools = match mode {
        Mode::Search => vec![
            Tool::new(
                "search",
                search_text("programs given to `execute`"),
                object(searched),
            ),
            Tool::new("execute", EXECUTE, object(program)),
        ],
        Mode::Code => {
            let declarations = declarations();
            let text = format!("{EXECUTE}\n\nThe tools:\n\n```ts\n{declarations}\n```");
            vec![Tool::new("code", text, object(program))]
        }
        Mode::PassThrough => vec![
            Tool::new("search", search_text("`invoke`"), object(searched)),
            Tool::new("invoke", INVOKE, object(invoked)),
        ],
    };
    if has_runs && mode != Mode::PassThrough {
        let run = json!({
            "type": "object",
            "properties": { "run": { "type": "string" } },
            "required": ["run"],
        });
        tools.push(Tool::new("result", RESULT, object(run)));
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_codemode::tokens_estimated;

    #[test]
    fn the_list_of_tools_is_short() {
        for mode in [Mode::Search, Mode::PassThrough] {
            let none = || unreachable!("it shows no declarations");
            let text = serde_json::to_string(&tools(mode, true, none)).expect("tools are JSON");
            let tokens = tokens_estimated(&text);
            assert!(tokens <= TOKENS_MAX, "{mode:?}: {tokens} tokens");
        }
    }
}
