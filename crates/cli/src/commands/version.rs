//! `coracle version`: what exactly runs here.

use crate::{
    document,
    exit::Exit,
    failure::Failure,
    terminal::{self, Terminal},
};
use clap::Args;
use coracle_client::Value;
use coracle_isolate::{CPU_BASELINE, FUEL_SCHEDULE, Guest, QUICKJS_VERSION, WASMTIME_VERSION};

/// Print the version, and those of what is built in.
///
/// The guest's hash is what usage, metrics and golden fuel figures refer to: the same hash means the
/// same fuel for the same run.
#[derive(Args)]
pub(crate) struct VersionArgs {
    /// As a JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn version(args: &VersionArgs) -> Result<Exit, Failure> {
    let guest = Guest::embedded().hash();
    let text = if args.json {
        let document = Value::object([
            ("version", Value::from(VERSION)),
            ("guest", guest.into()),
            ("quickjs", QUICKJS_VERSION.into()),
            ("wasmtime", WASMTIME_VERSION.into()),
            ("cpuBaseline", CPU_BASELINE.into()),
            ("fuelSchedule", FUEL_SCHEDULE.into()),
        ]);
        document::text(&document, Terminal::detect().stdout)?
    } else {
        format!(
            "coracle {VERSION}\n\
             guest         {guest}\n\
             QuickJS-ng    {QUICKJS_VERSION}\n\
             Wasmtime      {WASMTIME_VERSION}\n\
             CPU baseline  {CPU_BASELINE}\n\
             fuel schedule {FUEL_SCHEDULE}\n"
        )
    };
    terminal::write_stdout(&text)?;
    Ok(Exit::Ok)
}
