//! The exit codes: one table for the process, for `--help` and for docs/cli.md.

use std::{fmt::Write, process::ExitCode};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    Threw,
    Usage,
    Stopped,
    Server,
    Paused,
    /// The number of the second signal that told `serve` to end.
    Signal(u8),
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Threw => 1,
            Self::Usage => 2,
            Self::Stopped => 3,
            Self::Server => 4,
            Self::Paused => 5,
            // As shells report a process that a signal ended.
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Codes and meanings.
const TABLE: [(&str, &str); 7] = [
    ("0", "all went well"),
    (
        "1",
        "the code threw or its result can't be JSON (run, exec), it has problems (check), nothing was found (tools), or the request is not allowed (policy check)",
    ),
    (
        "2",
        "the command line is wrong, a file can't be read, or the code was refused",
    ),
    ("3", "the code was stopped by a limit, or can never end"),
    (
        "4",
        "the server can't be started or reached or turned the client away, or stdout can't be written",
    ),
    (
        "5",
        "the run waits for somebody's approval (exec --runs, runs approve, runs resume)",
    ),
    (
        "130, 143",
        "serve was told a second time to end (SIGINT, SIGTERM)",
    ),
];

/// The table as `--help` shows it.
pub(crate) fn table_text() -> String {
    TABLE
        .iter()
        .fold(String::new(), |mut text, (code, meaning)| {
            // Writing to a string can't fail.
            let _ = writeln!(text, "  {code:<8}  {meaning}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_this_table() {
        let mut expected = String::from("| code | meaning |\n|---:|---|\n");
        for (code, meaning) in TABLE {
            let _ = writeln!(expected, "| {code} | {meaning} |");
        }
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md"));
        assert!(
            page.contains(&expected),
            "docs/cli.md should have:\n{expected}"
        );
    }

    #[test]
    fn every_exit_has_its_row() {
        let rows: Vec<&str> = TABLE
            .iter()
            .flat_map(|(codes, _)| codes.split(", "))
            .collect();
        let exits = [
            Exit::Ok,
            Exit::Threw,
            Exit::Usage,
            Exit::Stopped,
            Exit::Server,
            Exit::Paused,
        ];
        let codes = exits.into_iter().chain([Exit::Signal(2), Exit::Signal(15)]);
        let codes: Vec<String> = codes.map(|exit| exit.code().to_string()).collect();
        assert_eq!(codes, rows);
    }
}
