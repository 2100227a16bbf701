//! The limits of a worker: one struct of values, one struct of wishes, one table that describes
//! them.
//!
//! The server's configuration makes a [`Limits`]; a worker and an entrypoint may each bring a
//! [`LimitsRequest`], which only ever lowers it. Nothing here enforces a limit: the isolate, the
//! server and [`check`](crate::check) do.

mod name;
mod parse;
mod table;

pub use name::{LimitName, LimitNameUnknown, LimitSpec};
pub use parse::LimitValueInvalid;
pub use table::{LIMIT_SPECS, grouped, limits_table_markdown};

/// The limits that hold for one invocation. There is no way to spell "unlimited".
///
/// The units are the fields' names; [`LimitName::spec`] says what each one means and what happens
/// beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each field is described once, in `LIMIT_SPECS`, which also makes docs/limits.md"
)]
pub struct Limits {
    pub fuel_max: u64,
    pub cpu_ms_max: u64,
    pub startup_fuel_max: u64,
    pub wall_ms_max: u64,
    pub memory_bytes_max: u64,
    pub subrequests_max: u64,
    pub subrequests_in_flight_max: u64,
    pub subrequest_ms_max: u64,
    pub code_bytes_max: u64,
    pub env_bytes_max: u64,
    pub args_bytes_max: u64,
    pub result_bytes_max: u64,
    pub log_bytes_max: u64,
    pub value_depth_max: u64,
    pub exports_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_max: LimitName::FuelMax.default_value(),
            cpu_ms_max: LimitName::CpuMsMax.default_value(),
            startup_fuel_max: LimitName::StartupFuelMax.default_value(),
            wall_ms_max: LimitName::WallMsMax.default_value(),
            memory_bytes_max: LimitName::MemoryBytesMax.default_value(),
            subrequests_max: LimitName::SubrequestsMax.default_value(),
            subrequests_in_flight_max: LimitName::SubrequestsInFlightMax.default_value(),
            subrequest_ms_max: LimitName::SubrequestMsMax.default_value(),
            code_bytes_max: LimitName::CodeBytesMax.default_value(),
            env_bytes_max: LimitName::EnvBytesMax.default_value(),
            args_bytes_max: LimitName::ArgsBytesMax.default_value(),
            result_bytes_max: LimitName::ResultBytesMax.default_value(),
            log_bytes_max: LimitName::LogBytesMax.default_value(),
            value_depth_max: LimitName::ValueDepthMax.default_value(),
            exports_max: LimitName::ExportsMax.default_value(),
        }
    }
}

impl Limits {
    /// The value of the limit called `name`.
    pub fn get(&self, name: LimitName) -> u64 {
        // A copy, so that there is one list of the fields and not two.
        *{ *self }.field(name)
    }

    /// Sets the limit called `name`. The value is not checked: [`LimitName::parse_value`] does that
    /// for text.
    pub fn set(&mut self, name: LimitName, value: u64) {
        *self.field(name) = value;
    }

    /// These limits with what `request` asks for, wherever that is lower.
    ///
    /// A field that is `None`, zero, or higher than what holds already changes nothing. Zero counts
    /// as not asked because that is how it is spelled on the wire; so nobody gets an unlimited run
    /// by asking for zero.
    #[must_use]
    pub fn lowered_by(&self, request: &LimitsRequest) -> Self {
        let mut lowered = *self;
        for name in LimitName::ALL {
            if let Some(asked) = request.get(name).filter(|asked| *asked > 0) {
                lowered.set(name, asked.min(self.get(name)));
            }
        }
        lowered
    }

    /// The lower one of each.
    #[must_use]
    pub fn lower_of(&self, other: &Self) -> Self {
        let mut lower = *self;
        for name in LimitName::ALL {
            lower.set(name, self.get(name).min(other.get(name)));
        }
        lower
    }

    fn field(&mut self, name: LimitName) -> &mut u64 {
        match name {
            LimitName::FuelMax => &mut self.fuel_max,
            LimitName::CpuMsMax => &mut self.cpu_ms_max,
            LimitName::StartupFuelMax => &mut self.startup_fuel_max,
            LimitName::WallMsMax => &mut self.wall_ms_max,
            LimitName::MemoryBytesMax => &mut self.memory_bytes_max,
            LimitName::SubrequestsMax => &mut self.subrequests_max,
            LimitName::SubrequestsInFlightMax => &mut self.subrequests_in_flight_max,
            LimitName::SubrequestMsMax => &mut self.subrequest_ms_max,
            LimitName::CodeBytesMax => &mut self.code_bytes_max,
            LimitName::EnvBytesMax => &mut self.env_bytes_max,
            LimitName::ArgsBytesMax => &mut self.args_bytes_max,
            LimitName::ResultBytesMax => &mut self.result_bytes_max,
            LimitName::LogBytesMax => &mut self.log_bytes_max,
            LimitName::ValueDepthMax => &mut self.value_depth_max,
            LimitName::ExportsMax => &mut self.exports_max,
        }
    }
}

/// The limits that a worker or an entrypoint asks for. It can lower what the server allows and
/// never raise it.
///
/// `code_bytes_max` and `env_bytes_max` are missing: they judge the very message that would carry
/// the wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each field is described once, in `LIMIT_SPECS`, which also makes docs/limits.md"
)]
pub struct LimitsRequest {
    pub fuel_max: Option<u64>,
    pub cpu_ms_max: Option<u64>,
    pub startup_fuel_max: Option<u64>,
    pub wall_ms_max: Option<u64>,
    pub memory_bytes_max: Option<u64>,
    pub subrequests_max: Option<u64>,
    pub subrequests_in_flight_max: Option<u64>,
    pub subrequest_ms_max: Option<u64>,
    pub args_bytes_max: Option<u64>,
    pub result_bytes_max: Option<u64>,
    pub log_bytes_max: Option<u64>,
    pub value_depth_max: Option<u64>,
    pub exports_max: Option<u64>,
}

impl LimitsRequest {
    /// What is asked for under `name`; `None` also for the two limits that can't be asked for.
    pub fn get(&self, name: LimitName) -> Option<u64> {
        { *self }.field(name).and_then(|field| *field)
    }

    /// Asks for `value` under `name`. Returns false for the two limits that only the server's
    /// configuration sets.
    #[must_use]
    pub fn set(&mut self, name: LimitName, value: u64) -> bool {
        match self.field(name) {
            Some(field) => {
                *field = Some(value);
                true
            }
            None => false,
        }
    }

    fn field(&mut self, name: LimitName) -> Option<&mut Option<u64>> {
        match name {
            LimitName::FuelMax => Some(&mut self.fuel_max),
            LimitName::CpuMsMax => Some(&mut self.cpu_ms_max),
            LimitName::StartupFuelMax => Some(&mut self.startup_fuel_max),
            LimitName::WallMsMax => Some(&mut self.wall_ms_max),
            LimitName::MemoryBytesMax => Some(&mut self.memory_bytes_max),
            LimitName::SubrequestsMax => Some(&mut self.subrequests_max),
            LimitName::SubrequestsInFlightMax => Some(&mut self.subrequests_in_flight_max),
            LimitName::SubrequestMsMax => Some(&mut self.subrequest_ms_max),
            LimitName::CodeBytesMax | LimitName::EnvBytesMax => None,
            LimitName::ArgsBytesMax => Some(&mut self.args_bytes_max),
            LimitName::ResultBytesMax => Some(&mut self.result_bytes_max),
            LimitName::LogBytesMax => Some(&mut self.log_bytes_max),
            LimitName::ValueDepthMax => Some(&mut self.value_depth_max),
            LimitName::ExportsMax => Some(&mut self.exports_max),
        }
    }
}

#[cfg(test)]
mod tests;
