//! Settings in the environment that there are not: a misspelled one must not go unnoticed.

use crate::cli::Cli;
use clap::CommandFactory;
use std::{env, ffi::OsStr};

/// The names in the environment that start like a setting and are none, in order.
pub(super) fn unknown_settings() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unknown(names)
}

fn unknown(names: impl Iterator<Item = String>) -> Vec<String> {
    let command = Cli::command();
    let known: Vec<&OsStr> = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .filter_map(clap::Arg::get_env)
        .collect();
    let unknown =
        |name: &String| name.starts_with("CORACLE_") && !known.contains(&OsStr::new(name));
    let mut names: Vec<String> = names.filter(unknown).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_setting_is_noticed() {
        let names = [
            "PATH",
            "CORACLE_TOKENS_FILE",
            "CORACLE_TOKEN_FILE",
            "CORACLE_TOKEN",
            "CORACLE_PORT",
        ];
        let unknown = unknown(names.into_iter().map(str::to_owned));
        assert_eq!(unknown, ["CORACLE_PORT", "CORACLE_TOKENS_FILE"]);
    }
}
