//! `coracle usage`: what tenants and workers have cost, summed from a server's usage file.

use crate::{
    commands::exec::write_json,
    exit::Exit,
    failure::Failure,
    terminal::{self, Terminal},
    text::visible,
};
use clap::{Args, ValueEnum};
use coracle_server::{UsageLedger, UsageLine, UsageSums};
use serde_json::{Value as Json, json};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Sum what tenants and workers have cost, from the file that `serve --usage-file` writes.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  coracle usage /var/lib/coracle/usage.jsonl
  coracle usage /var/lib/coracle/usage.jsonl --by tenant,outcome --since 24h
  coracle usage /var/lib/coracle/usage.jsonl --tenant acme --by worker --json

Exit codes: 0 ok, 2 usage, or a line that is none.")]
pub(crate) struct UsageArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What to sum by; may be several
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        default_value = "tenant"
    )]
    by: Vec<By>,

    /// Only what was written since: a number with s, m, h or d [default: all]
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    since: Option<Duration>,

    /// Only this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,

    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

/// What usage is summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Who pays
    Tenant,
    /// The id that a worker was got by
    Worker,
    /// How calls ended
    Outcome,
    /// By which prices fuel is counted
    FuelSchedule,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Worker => "worker",
            Self::Outcome => "outcome",
            Self::FuelSchedule => "fuel_schedule",
        }
    }

    fn of(self, line: &UsageLine) -> String {
        match self {
            Self::Tenant => line.tenant.clone(),
            Self::Worker => line.worker.clone().unwrap_or_default(),
            Self::Outcome => line.outcome.clone(),
            Self::FuelSchedule => line.fuel_schedule.to_string(),
        }
    }
}

/// A number and its unit.
fn parse_age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time such as 90s, 30m, 24h or 7d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number = &text[..text.len() - unit.len_utf8()];
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

/// The file that a server writes to.
pub(crate) fn open(path: &Path) -> Result<UsageLedger, Failure> {
    let wrong = |error| Failure::usage(format!("{}: {error}", path.display()));
    UsageLedger::open(path).map_err(wrong)
}

pub(crate) fn usage(args: &UsageArgs) -> Result<Exit, Failure> {
    let sums = args.sums()?;
    let terminal = Terminal::detect();
    match args.json {
        true => write_json(&args.document(&sums), terminal)?,
        false => terminal::write_stdout(&args.table(&sums))?,
    }
    Ok(Exit::Ok)
}

type Sums = BTreeMap<Vec<String>, UsageSums>;

impl UsageArgs {
    fn sums(&self) -> Result<Sums, Failure> {
        let shown = self.file.display();
        let wrong = |problem: String| Failure::usage(format!("{shown}: {problem}"));
        let file = File::open(&self.file).map_err(|error| wrong(error.to_string()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let from = self
            .since
            .map_or(Duration::ZERO, |age| now.saturating_sub(age));
        let from_ms = from.as_millis() as u64;
        let mut sums = Sums::new();
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(|error| wrong(error.to_string()))?;
            let line: UsageLine = serde_json::from_str(&line)
                .map_err(|error| wrong(format!("line {}: {error}", index + 1)))?;
            let is_asked = self
                .tenant
                .as_ref()
                .is_none_or(|tenant| *tenant == line.tenant);
            if is_asked && line.at_ms >= from_ms {
                let key = self.by.iter().map(|by| by.of(&line)).collect();
                sums.entry(key).or_default().add(&line.sums);
            }
        }
        Ok(sums)
    }

    fn document(&self, sums: &Sums) -> Json {
        let rows = sums.iter().map(|(key, sums)| {
            // What is serialized is an object.
            let mut row = serde_json::to_value(sums).unwrap_or_else(|_| json!({}));
            for (by, value) in self.by.iter().zip(key) {
                row[by.name()] = value.clone().into();
            }
            row
        });
        rows.collect()
    }

    fn table(&self, sums: &Sums) -> String {
        const FIGURES: [&str; 6] = [
            "calls",
            "CPU s",
            "fuel, 10^9",
            "bytes in",
            "bytes out",
            "subrequests",
        ];
        let head = self.by.iter().map(|by| by.name().to_owned());
        let mut rows = vec![head.chain(FIGURES.map(str::to_owned)).collect::<Vec<_>>()];
        rows.extend(sums.iter().map(|(key, sums)| {
            let fuel = (sums.fuel_load + sums.fuel_run) as f64 / 1e9;
            let figures = [
                sums.calls.to_string(),
                format!("{:.3}", sums.cpu_us as f64 / 1e6),
                format!("{fuel:.3}"),
                sums.bytes_in.to_string(),
                sums.bytes_out.to_string(),
                sums.subrequests.to_string(),
            ];
            let key = key.iter().map(|value| visible(value));
            key.chain(figures).collect()
        }));
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.by.len() + FIGURES.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a string can't fail.
                let _ = match column < self.by.len() {
                    true => write!(text, "{cell:<width$}  "),
                    false => write!(text, "{cell:>width$}  "),
                };
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        assert_eq!(parse_age("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in [
            "",
            "h",
            "24",
            "1w",
            "-1h",
            "1.5h",
            "99999999999999999999d",
            "18446744073709551615d",
            "1\u{1f600}",
        ] {
            assert!(parse_age(wrong).is_err(), "{wrong:?}");
        }
    }
}
