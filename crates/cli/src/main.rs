//! The `coracle` command: reads the command line, calls the command, ends with its exit code.
//!
//! Each command is a module below `commands`; what they share (flags, modules from disk, reports)
//! stands beside it. Decisions about workers, limits and connections are those of the crates below:
//! nothing here is trusted to keep a sandbox shut. What a sandbox says is a stranger's text, and is
//! made visible before it reaches a terminal.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod document;
mod exit;
mod failure;
mod frame;
mod guest;
mod json;
mod limits;
mod logging;
mod modules;
mod outbound;
mod report;
mod sandbox;
mod servers;
mod source_maps;
mod tenants;
mod terminal;
mod text;
mod tools;
mod worker;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::execute(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            terminal::write_stderr(&format!("error: {failure}\n"));
            failure.exit.into()
        }
    }
}
