//! The process's own log, on stderr. What workers write to their consoles is not in it.

use crate::{failure::Failure, terminal::Terminal};
use clap::ValueEnum;
use std::io;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt};

/// Lines of a server's log that may wait for whoever takes them; what comes then is given up, and counted.
const LINES_WAITING_MAX: usize = 8_192;

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
        .with_writer(io::stderr);
    log.without_time()
        .with_target(false)
        .with_ansi(terminal.paint.is_on())
        .init();
}

/// The log of a server, while it is held. It is written on a thread of its own: a full disk behind stderr, or a pipe that
/// nobody reads, costs lines of the log and nobody's call.
pub(crate) struct ServerLog {
    dropped: ErrorCounter,
    /// Dropping it writes what waits.
    _writer: WorkerGuard,
}

impl ServerLog {
    pub(crate) fn install(
        filter: &str,
        format: LogFormat,
        terminal: Terminal,
    ) -> Result<Self, Failure> {
        let filter = EnvFilter::try_new(filter)
            .map_err(|error| Failure::usage(format!("log filter {filter:?}: {error}")))?;
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(LINES_WAITING_MAX)
            .thread_name("log")
            .finish(io::stderr());
        let log_of_server = Self {
            dropped: writer.error_counter(),
            _writer: guard,
        };
        // What can't be logged can't be complained of in the log either.
        let log = fmt()
            .with_env_filter(filter)
            .log_internal_errors(false)
            .with_writer(writer);
        match format {
            LogFormat::Text => log.with_ansi(terminal.paint.is_on()).init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
        }
        Ok(log_of_server)
    }

    /// Says how many lines were given up so far, whenever it is called.
    pub(crate) fn lines_dropped(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let dropped = self.dropped.clone();
        move || dropped.dropped_lines() as u64
    }
}
