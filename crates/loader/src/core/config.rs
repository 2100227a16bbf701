//! How much the core lets in.

use crate::limits::grouped;
use std::fmt::Write;

/// The server-wide limits. Each counts what it names at one moment, unless its name says a time.
///
/// [`CORE_CONFIG_SPECS`] says what each one means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each field is described once, in `CORE_CONFIG_SPECS`, which also makes docs/limits.md"
)]
pub struct CoreConfig {
    pub isolates_max: u64,
    pub calls_in_flight_max: u64,
    pub calls_in_flight_per_session_max: u64,
    pub workers_per_session_max: u64,
    pub calls_queued_max: u64,
    pub queue_wait_ms_max: u64,
}

impl Default for CoreConfig {
    /// A thousand isolates fit into 1 GiB with room to spare; the rest follows from ten calls an
    /// isolate.
    fn default() -> Self {
        Self {
            isolates_max: 1_000,
            calls_in_flight_max: 10_000,
            calls_in_flight_per_session_max: 1_000,
            workers_per_session_max: 10_000,
            calls_queued_max: 1_000,
            queue_wait_ms_max: 10_000,
        }
    }
}

/// What the documentation says about a server-wide limit.
#[derive(Clone, Copy, Debug)]
pub struct CoreConfigSpec {
    /// The name as it is spelled in configuration, refusals and documentation.
    pub text: &'static str,
    /// Reads the field.
    pub get: fn(&CoreConfig) -> u64,
    /// What happens beyond it.
    pub outcome: &'static str,
    /// What it limits, in one sentence.
    pub description: &'static str,
}

/// Every server-wide limit, in the order of the fields.
pub const CORE_CONFIG_SPECS: [CoreConfigSpec; 6] = [
    CoreConfigSpec {
        text: "isolates_max",
        get: |config| config.isolates_max,
        outcome: "an idle isolate is evicted, else the call waits",
        description: "Isolates that exist at once, those on their way out included. At least 1, or every call would wait.",
    },
    CoreConfigSpec {
        text: "calls_in_flight_max",
        get: |config| config.calls_in_flight_max,
        outcome: "call refused, `overloaded`",
        description: "Calls in the whole process, running or waiting.",
    },
    CoreConfigSpec {
        text: "calls_in_flight_per_session_max",
        get: |config| config.calls_in_flight_per_session_max,
        outcome: "call refused, `overloaded`",
        description: "Of these, the calls of one session, so that no client uses them up for all.",
    },
    CoreConfigSpec {
        text: "workers_per_session_max",
        get: |config| config.workers_per_session_max,
        outcome: "load refused, `failed`",
        description: "Workers that one session holds; each keeps its code in memory until it is released.",
    },
    CoreConfigSpec {
        text: "calls_queued_max",
        get: |config| config.calls_queued_max,
        outcome: "call refused, `overloaded`",
        description: "Calls that wait for an isolate, if only until an idle one has gone, or for a quota of their tenant's.",
    },
    CoreConfigSpec {
        text: "queue_wait_ms_max",
        get: |config| config.queue_wait_ms_max,
        outcome: "call refused, `overloaded`",
        description: "Milliseconds that a call waits before it begins; its `wall_ms_max` if that is less.",
    },
];

/// The table of the server-wide limits in `docs/limits.md`, in Markdown, with a line feed after
/// each row.
pub fn core_config_table_markdown() -> String {
    let mut table =
        String::from("| limit | default | beyond it | what it limits |\n|---|---:|---|---|\n");
    for CoreConfigSpec {
        text,
        get,
        outcome,
        description,
    } in &CORE_CONFIG_SPECS
    {
        let default = grouped(get(&CoreConfig::default()));
        // Writing to a string can't fail.
        let _ = writeln!(
            table,
            "| `{text}` | {default} | {outcome} | {description} |"
        );
    }
    table
}
