//! What a call comes back with.

use crate::{Error, Payload, Stub, Value};
use std::fmt;

/// A call's outcome, with its console output and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// What its value refers to.
    pub externals: Vec<Stub>,
    /// What it cost.
    pub usage: Usage,
    /// What it wrote to the console, also when it failed.
    pub logs: Vec<LogLine>,
    /// Bytes of console output beyond the limit.
    pub log_bytes_dropped: u64,
}

impl Answer {
    /// The value with what it refers to, or what kept it from being one as an error.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn payload(mut self) -> Result<Payload, Error> {
        let externals = std::mem::take(&mut self.externals);
        Ok(Payload {
            value: self.value()?,
            externals,
        })
    }

    /// The value, or what kept it from being one as an error.
    ///
    /// # Errors
    /// [`Error::Threw`] and [`Error::Verdict`].
    pub fn value(self) -> Result<Value, Error> {
        match self.outcome {
            Outcome::Value(value) => Ok(value),
            Outcome::Threw(thrown) => Err(Error::Threw(thrown)),
            Outcome::Verdict(verdict) => Err(Error::Verdict(verdict)),
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With a value.
    Value(Value),
    /// With an exception of the worker's.
    Threw(Box<Thrown>),
    /// By a limit, or by what the sandbox does to it.
    Verdict(Box<Verdict>),
}

/// What the JavaScript threw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thrown {
    /// The error's name.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Frames of the worker's own modules, one a line.
    pub stack: String,
    /// Where it was thrown; empty where unknown.
    pub module: String,
    /// From 1; 0 where unknown.
    pub line: u32,
    /// From 1; 0 where unknown.
    pub column: u32,
    /// The thrown value; undefined where it can't be cloned.
    pub value: Value,
    /// Thrown while the modules were evaluated: the method was not called.
    pub during_load: bool,
}

impl Thrown {
    /// What an object of this process throws.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self {
            name: name.into(),
            message: message.into(),
            ..Self::default()
        }
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.message)?;
        if !self.module.is_empty() {
            write!(
                formatter,
                " ({}:{}:{})",
                self.module, self.line, self.column
            )?;
        }
        Ok(())
    }
}

/// What stopped a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind, such as "memory" or "hung"; `docs/limits.md` lists them.
    pub kind: String,
    /// The limit, such as "memory_bytes_max"; empty where no limit was.
    pub limit_name: String,
    /// How much was used, in the limit's unit.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// A sentence that says what happened and what can be done.
    pub message: String,
    /// Whether code of the call ran. If not, it is safe to call again.
    pub started: bool,
    /// Calls that had left the isolate.
    pub subrequests_sent: u32,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind, self.message)
    }
}

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fuel for evaluating the modules; 0 where the isolate was there already.
    pub fuel_load: u64,
    /// Fuel for the call itself.
    pub fuel_run: u64,
    /// Version of the prices that fuel is counted by.
    pub fuel_schedule: u32,
    /// CPU time in microseconds.
    pub cpu_micros: u64,
    /// Wall time in microseconds, in the server.
    pub wall_micros: u64,
    /// The isolate's linear memory at its largest.
    pub memory_peak_bytes: u64,
    /// Growths of memory that were refused.
    pub memory_denied: u32,
    /// Calls out of the isolate.
    pub subrequests: u32,
    /// Encoded arguments.
    pub bytes_in: u64,
    /// Encoded result.
    pub bytes_out: u64,
    /// Whether the isolate had served before.
    pub isolate_reused: bool,
}

/// A console line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Its level.
    pub level: LogLevel,
    /// What was written.
    pub message: String,
    /// The worker's clock when it was, in milliseconds since the epoch.
    pub timestamp_ms: f64,
}

/// Console levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `console.debug`
    Debug,
    /// `console.info`
    Info,
    /// `console.log` and what prints like it.
    Log,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}

impl LogLevel {
    /// The level's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Log => "log",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}
