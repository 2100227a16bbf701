//! `coracle token`: tokens for those who log in, and the lines of a token file that stand for them.

use crate::{
    exit::Exit,
    failure::Failure,
    terminal::{self, Terminal},
};
use chrono::{Days, NaiveDate, Utc};
use clap::{Args, Subcommand, value_parser};
use sha2::{Digest as _, Sha256};
use std::{
    fs::OpenOptions,
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Bytes of randomness in a token.
const RANDOM_BYTES: usize = 32;
/// Read of a token at most.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Make tokens for those who log in.
///
/// A token file of `serve --token-file` keeps the hash of a token, so that whoever reads the file
/// has no token.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  coracle token new --tenant acme --file tokens             the token goes to stdout, its line into the file
  coracle token new --tenant acme --expires-days 90 --file tokens
  coracle token hash --tenant acme < token >> tokens        the line of a token that is there already")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token; write it to stdout, and its line to the file or to stderr
    New {
        #[command(flatten)]
        line: LineArgs,

        /// The token file that its line is added to; made for its owner only where there is none
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Read a token from stdin, and write its line to stdout
    Hash {
        #[command(flatten)]
        line: LineArgs,
    },
}

#[derive(Args)]
struct LineArgs {
    /// Whose token it is
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,

    /// How many days it is good after today [default: for ever]
    #[arg(long, value_name = "DAYS", value_parser = value_parser!(u64).range(..=36_500))]
    expires_days: Option<u64>,
}

impl LineArgs {
    fn line(&self, token: &str, today: NaiveDate) -> Result<String, Failure> {
        let day = self
            .expires_days
            .map(|days| today.checked_add_days(Days::new(days)));
        let expires = match day {
            None => String::new(),
            Some(Some(day)) => format!(";expires={}", day.format("%Y-%m-%d")),
            Some(None) => return Err(Failure::usage("there is no such day")),
        };
        let hash = hex::encode(Sha256::digest(token));
        let line = format!("{}{expires};sha256:{hash}\n", self.tenant);
        // What can't be read again is not written.
        coracle_server::Tokens::parse(&line).map_err(Failure::usage)?;
        Ok(line)
    }
}

pub(crate) fn token(args: &TokenArgs) -> Result<Exit, Failure> {
    let _ = Terminal::detect();
    let today = Utc::now().date_naive();
    match &args.command {
        TokenCommand::New { line, file } => {
            let mut bytes = [0; RANDOM_BYTES];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(
                |error| Failure::server(format!("no random number is to be had: {error}")),
            )?;
            let token = hex::encode(bytes);
            let line = line.line(&token, today)?;
            match file {
                Some(path) => append(path, &line)
                    .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?,
                None => terminal::write_stderr(&format!("the line of the token file: {line}")),
            }
            terminal::write_stdout(&format!("{token}\n"))?;
        }
        TokenCommand::Hash { line } => {
            let mut token = String::new();
            let read = io::stdin()
                .take(TOKEN_BYTES_MAX + 1)
                .read_to_string(&mut token);
            read.map_err(|error| Failure::usage(format!("stdin: {error}")))?;
            let token = token.trim_end_matches(['\r', '\n']);
            if !(16..=TOKEN_BYTES_MAX as usize).contains(&token.len()) {
                return Err(Failure::usage("a token has 16 to 4096 characters"));
            }
            terminal::write_stdout(&line.line(token, today)?)?;
        }
    }
    Ok(Exit::Ok)
}

/// On a line of its own, also where the last one has no end.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    file.write_all([gap, line].concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_hash_and_the_day() {
        let args = LineArgs {
            tenant: "acme".into(),
            expires_days: Some(2),
        };
        let today = NaiveDate::from_ymd_opt(2026, 2, 27).expect("a day");
        let line = args.line("0123456789abcdef", today).expect("a line");
        let hash = hex::encode(Sha256::digest("0123456789abcdef"));
        assert_eq!(line, format!("acme;expires=2026-03-01;sha256:{hash}\n"));
        let wrong = LineArgs {
            tenant: "a b".into(),
            expires_days: None,
        };
        assert!(wrong.line("0123456789abcdef", today).is_err());
    }
}
