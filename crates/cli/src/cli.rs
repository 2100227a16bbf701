//! The command line as a whole: what commands there are, and what holds for all of them.

use crate::{
    commands::{
        check, completions, cordon, exec, image, mcp, policy, run, runs, serve, token, tools,
        usage, version,
    },
    exit,
};
use clap::{Parser, Subcommand};

/// Run untrusted JavaScript in sandboxes.
///
/// `coracle run` and `coracle check` work by themselves, with the sandbox inside the command;
/// `coracle serve` starts a server that clients speak to over Cap'n Proto.
#[derive(Parser)]
#[command(name = "coracle", version, max_term_width = 100, after_help = after_help())]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Box<serve::ServeArgs>),
    Run(Box<run::RunArgs>),
    Check(Box<check::CheckArgs>),
    Exec(Box<exec::ExecArgs>),
    Tools(tools::ToolsCommandArgs),
    Mcp(Box<mcp::McpArgs>),
    Runs(runs::RunsArgs),
    Policy(policy::PolicyArgs),
    Usage(usage::UsageArgs),
    Token(token::TokenArgs),
    Completions(completions::CompletionsArgs),
    Version(version::VersionArgs),
    #[command(hide = true)]
    Cordon(cordon::CordonArgs),
    #[command(hide = true)]
    Image(image::ImageCommandArgs),
}

fn after_help() -> String {
    format!(
        "Exit codes:\n{}\nStart with:\n  coracle run hello.js --args '[\"world\"]'\n  \
         coracle run --help        says what hello.js looks like\n",
        exit::table_text()
    )
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_documentation_lists_every_variable_of_the_environment() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md"));
        let variables = page.split('`').filter(|text| text.starts_with("CORACLE_"));
        let documented: BTreeSet<&str> = variables.collect();
        let command = Cli::command();
        let known: BTreeSet<&str> = command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments)
            .filter_map(|argument| argument.get_env()?.to_str())
            .collect();
        assert_eq!(documented, known);
    }

    #[test]
    fn every_flag_of_serve_can_be_set_in_the_environment_under_its_own_name() {
        let command = Cli::command();
        let serve = command.find_subcommand("serve").expect("there is one");
        for argument in serve
            .get_arguments()
            .filter(|argument| argument.get_id() != "help")
        {
            let flag = argument
                .get_long()
                .expect("serve has no positional arguments");
            let variable = format!("CORACLE_{}", flag.to_uppercase().replace('-', "_"));
            assert_eq!(argument.get_env(), Some(variable.as_ref()), "--{flag}");
        }
    }
}
