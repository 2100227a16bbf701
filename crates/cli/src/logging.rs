//! The process's own log, on stderr. What workers write to their consoles is not in it.

use crate::{failure::Failure, terminal::Terminal};
use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, fmt};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What a command says that people wait for: warnings, and that a first start compiles the guest.
const FILTER_OF_COMMANDS: &str = "warn,coracle_isolate::image=info";

/// The log of a command that ends by itself: no times, since it is read at once.
pub(crate) fn install_for_command(terminal: Terminal) {
    let log = fmt()
        .with_env_filter(FILTER_OF_COMMANDS)
        .with_writer(std::io::stderr);
    log.without_time()
        .with_target(false)
        .with_ansi(terminal.paint.is_on())
        .init();
}

/// The log of a server.
pub(crate) fn install(filter: &str, format: LogFormat, terminal: Terminal) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::usage(format!("log filter {filter:?}: {error}")))?;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(terminal.paint.is_on()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
