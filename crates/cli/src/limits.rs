//! Limits on the command line. Names, units, defaults and ceilings are those of docs/limits.md, and
//! so are the error texts: `coracle_loader` reads the values.

use crate::failure::Failure;
use clap::Args;
use coracle_loader::{LimitName, Limits};

const MEBIBYTE: u64 = 1 << 20;

/// A limit and the value that it is to have.
pub(crate) type LimitValue = (LimitName, u64);

/// The limits of `run` and `check`: the common ones have flags of their own.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Fuel that the call may burn, about 15,000,000 a millisecond [default: 10000000000]
    #[arg(long, value_name = "N", value_parser = |text: &str| LimitName::FuelMax.parse_value(text))]
    fuel: Option<u64>,

    /// CPU time of the modules and the call in milliseconds, waiting not counted [default: 1000]
    #[arg(long, value_name = "N", value_parser = |text: &str| LimitName::CpuMsMax.parse_value(text))]
    cpu_ms: Option<u64>,

    /// Time of the call in milliseconds, waiting counted [default: 30000]
    #[arg(long, value_name = "N", value_parser = |text: &str| LimitName::WallMsMax.parse_value(text))]
    wall_ms: Option<u64>,

    /// Memory of the sandbox in mebibytes [default: 64]
    #[arg(long, value_name = "N", value_parser = parse_mebibytes)]
    memory_mb: Option<u64>,

    /// Any other limit by its name in docs/limits.md, such as result_bytes_max=1_000; may be repeated
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = parse_limit)]
    others: Vec<LimitValue>,
}

impl LimitArgs {
    /// What was asked for, each limit once.
    ///
    /// # Errors
    /// When a limit was given twice.
    pub(crate) fn asked(&self) -> Result<Vec<LimitValue>, Failure> {
        let flags = [
            (LimitName::FuelMax, self.fuel),
            (LimitName::CpuMsMax, self.cpu_ms),
            (LimitName::WallMsMax, self.wall_ms),
            (LimitName::MemoryBytesMax, self.memory_mb),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        each_once(flags.chain(self.others.iter().copied()))
    }
}

/// Each limit once, in the order given.
pub(crate) fn each_once(
    asked: impl Iterator<Item = LimitValue>,
) -> Result<Vec<LimitValue>, Failure> {
    let mut limits: Vec<LimitValue> = Vec::new();
    for (name, value) in asked {
        if limits.iter().any(|(known, _)| *known == name) {
            return Err(Failure::usage(format!("{name} is given twice")));
        }
        limits.push((name, value));
    }
    Ok(limits)
}

/// The defaults with what was asked for in their place: for a server of one's own, where a limit may
/// be raised up to its ceiling.
pub(crate) fn over_defaults(asked: &[LimitValue]) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in asked {
        limits.set(*name, *value);
    }
    limits
}

/// What a worker asks a server for, which can only lower what that allows.
pub(crate) fn as_request(asked: &[LimitValue]) -> Result<coracle_client::Limits, Failure> {
    let mut limits = coracle_client::Limits::default();
    for (name, value) in asked {
        limits.set(name.as_str(), *value).map_err(|_| {
            Failure::usage(format!(
                "{name} can't be asked for: only the server's configuration sets it"
            ))
        })?;
    }
    Ok(limits)
}

/// How a limit is spelled as a flag.
pub(crate) fn flag_of(name: LimitName) -> String {
    match name {
        LimitName::FuelMax => "--fuel N".into(),
        LimitName::CpuMsMax => "--cpu-ms N".into(),
        LimitName::WallMsMax => "--wall-ms N".into(),
        LimitName::MemoryBytesMax => "--memory-mb N".into(),
        name => format!("--limit {name}=N"),
    }
}

/// Reads `NAME=VALUE`.
pub(crate) fn parse_limit(text: &str) -> Result<LimitValue, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("write NAME=VALUE, such as cpu_ms_max=50, and not {text:?}"))?;
    let name: LimitName = name.trim().parse().map_err(|error| format!("{error}"))?;
    let value = name
        .parse_value(value.trim())
        .map_err(|error| error.to_string())?;
    Ok((name, value))
}

fn parse_mebibytes(text: &str) -> Result<u64, String> {
    let bytes = text
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(MEBIBYTE));
    let Some(bytes) = bytes else {
        return Err(format!(
            "{text:?} is not a whole number of mebibytes, such as 64"
        ));
    };
    LimitName::MemoryBytesMax
        .parse_value(&bytes.to_string())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_by_its_name() {
        assert_eq!(
            parse_limit("log_bytes_max=1_000"),
            Ok((LimitName::LogBytesMax, 1_000))
        );
        assert!(
            parse_limit("log_bytes_max")
                .expect_err("no value")
                .contains("NAME=VALUE")
        );
        let unknown = parse_limit("logs=1").expect_err("no limit");
        assert!(
            unknown.contains("no limit is called \"logs\"") && unknown.contains("log_bytes_max")
        );
        let unit = parse_limit("wall_ms_max=5s").expect_err("no number");
        assert!(
            unit.contains("write milliseconds in digits, such as 30000"),
            "{unit}"
        );
    }

    #[test]
    fn memory_is_given_in_mebibytes() {
        assert_eq!(parse_mebibytes("16"), Ok(16 << 20));
        for (text, hint) in [
            ("16M", "whole number"),
            ("0", "at least 1"),
            ("1025", "ceiling"),
            ("99999999999999999999", "whole"),
        ] {
            let error = parse_mebibytes(text).expect_err(text);
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_limit_given_twice_is_refused() {
        let args = LimitArgs {
            fuel: Some(1),
            others: vec![(LimitName::FuelMax, 2)],
            ..LimitArgs::default()
        };
        assert_eq!(
            args.asked().expect_err("twice").to_string(),
            "fuel_max is given twice"
        );
    }

    #[test]
    fn what_only_the_server_sets_can_not_be_asked_for() {
        let error = as_request(&[(LimitName::CodeBytesMax, 1)]).expect_err("the server's alone");
        assert!(
            error
                .to_string()
                .contains("only the server's configuration"),
            "{error}"
        );
        assert_eq!(
            as_request(&[(LimitName::FuelMax, 7)])
                .map(|limits| limits.fuel_max)
                .ok(),
            Some(7)
        );
    }
}
