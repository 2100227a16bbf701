//! `coracle completions`: what a shell needs to complete this command.

use crate::{cli::Cli, exit::Exit, failure::Failure, terminal};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print completions for a shell.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  coracle completions bash > ~/.local/share/bash-completion/completions/coracle
  coracle completions zsh > \"${fpath[1]}/_coracle\"
  coracle completions fish > ~/.config/fish/completions/coracle.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "coracle", &mut script);
    terminal::write_stdout(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
