//! The names of the limits, and what is known of each by its name.

use super::LIMIT_SPECS;
use std::fmt;
use std::str::FromStr;

/// The name of a limit.
///
/// The order is that of the documentation and of [`LIMIT_SPECS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(
    missing_docs,
    reason = "each variant is described once, in `LIMIT_SPECS`, which also makes docs/limits.md"
)]
pub enum LimitName {
    FuelMax,
    CpuMsMax,
    StartupFuelMax,
    WallMsMax,
    MemoryBytesMax,
    SubrequestsMax,
    SubrequestsInFlightMax,
    SubrequestMsMax,
    CodeBytesMax,
    EnvBytesMax,
    ArgsBytesMax,
    ResultBytesMax,
    LogBytesMax,
    ValueDepthMax,
    ExportsMax,
}

/// What the documentation, the configuration and the error texts say about a limit.
#[derive(Clone, Copy, Debug)]
pub struct LimitSpec {
    /// Which limit this is.
    pub name: LimitName,
    /// The name as it is spelled everywhere: in configuration, verdicts, metrics and documentation.
    pub text: &'static str,
    /// What the number counts.
    pub unit: &'static str,
    /// What holds where nobody said anything.
    pub default: u64,
    /// The most that an operator may configure.
    pub ceiling: u64,
    /// What happens beyond it: the kind of the verdict in the schema's spelling, or what else.
    pub outcome: &'static str,
    /// How far past the limit an invocation may have got when it is stopped.
    pub slack: &'static str,
    /// What it limits, in one sentence.
    pub description: &'static str,
}

impl LimitName {
    /// Every limit, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::FuelMax,
        Self::CpuMsMax,
        Self::StartupFuelMax,
        Self::WallMsMax,
        Self::MemoryBytesMax,
        Self::SubrequestsMax,
        Self::SubrequestsInFlightMax,
        Self::SubrequestMsMax,
        Self::CodeBytesMax,
        Self::EnvBytesMax,
        Self::ArgsBytesMax,
        Self::ResultBytesMax,
        Self::LogBytesMax,
        Self::ValueDepthMax,
        Self::ExportsMax,
    ];

    /// The row of the table.
    pub fn spec(self) -> &'static LimitSpec {
        // In the order of the variants; a test holds the two together.
        &LIMIT_SPECS[self as usize]
    }

    /// The name as it is spelled in configuration, verdicts and documentation: `memory_bytes_max`.
    pub fn as_str(self) -> &'static str {
        self.spec().text
    }

    /// What the number counts.
    pub fn unit(self) -> &'static str {
        self.spec().unit
    }

    /// What holds where nobody said anything.
    pub fn default_value(self) -> u64 {
        self.spec().default
    }

    /// The most that an operator may configure.
    pub fn ceiling(self) -> u64 {
        self.spec().ceiling
    }

    /// What it limits, in one sentence.
    pub fn description(self) -> &'static str {
        self.spec().description
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no limit is called {text:?}; the limits are {}", LimitName::ALL.map(LimitName::as_str).join(", "))]
pub struct LimitNameUnknown {
    /// What was given instead of a name.
    pub text: String,
}

impl FromStr for LimitName {
    type Err = LimitNameUnknown;

    fn from_str(text: &str) -> Result<Self, LimitNameUnknown> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| LimitNameUnknown {
                text: text.to_owned(),
            })
    }
}
