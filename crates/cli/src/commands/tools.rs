//! `coracle tools`: what tools there are for programs, and their types.

use crate::{
    commands::exec::write_json,
    exit::Exit,
    failure::Failure,
    logging,
    terminal::{self, Terminal},
    text::visible,
    tools::ToolsArgs,
};
use clap::{Args, Subcommand};
use coracle_codemode::{Description, Found};
use serde_json::json;
use std::fmt::Write as _;

/// Look at the tools that programs have.
#[derive(Args)]
pub(crate) struct ToolsCommandArgs {
    #[command(subcommand)]
    command: ToolsCommand,
}

#[derive(Subcommand)]
enum ToolsCommand {
    /// Find tools by words
    Search {
        /// What is wanted; nothing lists all
        #[arg(value_name = "WORD")]
        words: Vec<String>,

        /// Where the page begins
        #[arg(long, value_name = "N", default_value_t = 0)]
        offset: usize,

        /// Write one JSON document
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        tools: ToolsArgs,
    },
    /// Declare tools in TypeScript
    Describe {
        /// Paths such as github.list_issues, or namespaces
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<String>,

        #[command(flatten)]
        tools: ToolsArgs,
    },
    /// Declare all tools in TypeScript, as far as they fit
    Types {
        #[command(flatten)]
        tools: ToolsArgs,
    },
}

pub(crate) async fn tools(args: ToolsCommandArgs) -> Result<Exit, Failure> {
    let terminal = Terminal::detect();
    logging::install_for_command(terminal);
    match args.command {
        ToolsCommand::Search {
            words,
            offset,
            json,
            tools,
        } => {
            let tools = tools.open(|_| ()).await?;
            let found = tools.toolbox.search(&words.join(" "), offset);
            let is_found = !found.tools.is_empty();
            match json {
                true => write_json(&document(&found), terminal)?,
                false => terminal::write_stdout(&text(&found))?,
            }
            tools.close().await;
            Ok(if is_found { Exit::Ok } else { Exit::Threw })
        }
        ToolsCommand::Describe { paths, tools } => {
            let tools = tools.open(|_| ()).await?;
            let paths: Vec<&str> = paths.iter().map(|path| &path[..]).collect();
            let exit = declare(&tools.toolbox.describe(&paths));
            tools.close().await;
            exit
        }
        ToolsCommand::Types { tools } => {
            let tools = tools.open(|_| ()).await?;
            let exit = declare(&tools.toolbox.types());
            tools.close().await;
            exit
        }
    }
}

fn document(found: &Found<'_>) -> serde_json::Value {
    let tools = found.tools.iter().map(|tool| {
        json!({ "path": tool.path(), "description": tool.description, "parameters": tool.parameters })
    });
    json!({
        "tools": tools.collect::<Vec<_>>(),
        "total": found.total,
        "next": found.next,
        "suggestions": found.suggestions,
    })
}

fn text(found: &Found<'_>) -> String {
    let mut text = String::new();
    for tool in &found.tools {
        let summary = tool.description.lines().next().unwrap_or_default();
        let line = format!(
            "{} ({})  {summary}",
            tool.path(),
            tool.parameters.join(", ")
        );
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}", visible(line.trim_end()));
    }
    if let Some(next) = found.next {
        let _ = writeln!(
            text,
            "{} of {}; --offset {next} shows more",
            found.tools.len(),
            found.total
        );
    }
    if !found.suggestions.is_empty() {
        let _ = writeln!(
            text,
            "nothing found; did you mean {}?",
            visible(&found.suggestions.join(", "))
        );
    } else if found.tools.is_empty() {
        text.push_str("nothing found\n");
    }
    text
}

fn declare(description: &Description) -> Result<Exit, Failure> {
    terminal::write_stdout(&visible(&description.declarations.text))?;
    for (path, problem) in &description.untyped {
        terminal::write_stderr(&visible(&format!(
            "warning: {path} is declared without types: {problem}\n"
        )));
    }
    for (path, alike) in &description.missing {
        let mut text = format!("there is no tool {path}");
        if !alike.is_empty() {
            let _ = write!(text, "; did you mean {}?", alike.join(" or "));
        }
        terminal::write_stderr(&format!("{}\n", visible(&text)));
    }
    Ok(match description.missing.is_empty() {
        true => Exit::Ok,
        false => Exit::Threw,
    })
}
