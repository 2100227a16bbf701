//! The table of limits: the only place that says a default, a ceiling or what a limit means.
//!
//! `docs/limits.md` holds the same table, made by [`limits_table_markdown`]; a test compares the
//! two.

use super::{LimitName, LimitSpec};
use std::fmt::Write;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Every limit, in the order of [`LimitName::ALL`].
pub const LIMIT_SPECS: [LimitSpec; 15] = [
    LimitSpec {
        name: LimitName::FuelMax,
        text: "fuel_max",
        unit: "fuel",
        default: 10_000_000_000,
        ceiling: 10_000_000_000_000,
        outcome: "fuel",
        slack: "one slice (about 0.2 ms)",
        description: "Fuel that one invocation may burn: about 15,000,000 a millisecond (13 to 20 million), the same for the same run.",
    },
    LimitSpec {
        name: LimitName::CpuMsMax,
        text: "cpu_ms_max",
        unit: "milliseconds",
        default: 1_000,
        ceiling: 3_600_000,
        outcome: "cpu",
        slack: "one slice (about 0.2 ms)",
        description: "CPU time of one invocation, that of evaluating the modules for it included; waiting is not counted.",
    },
    LimitSpec {
        name: LimitName::StartupFuelMax,
        text: "startup_fuel_max",
        unit: "fuel",
        default: 4_000_000_000,
        ceiling: 10_000_000_000_000,
        outcome: "startup",
        slack: "one slice (about 0.2 ms)",
        description: "Fuel for evaluating the modules of a fresh isolate.",
    },
    LimitSpec {
        name: LimitName::WallMsMax,
        text: "wall_ms_max",
        unit: "milliseconds",
        default: 30_000,
        ceiling: 86_400_000,
        outcome: "wall",
        slack: "a few ms",
        description: "Time from dispatch to answer of one invocation; waiting is counted.",
    },
    LimitSpec {
        name: LimitName::MemoryBytesMax,
        text: "memory_bytes_max",
        unit: "bytes",
        default: 64 * MIB,
        ceiling: GIB,
        outcome: "memory",
        slack: "none",
        description: "Linear memory of the isolate, the engine's own share included.",
    },
    LimitSpec {
        name: LimitName::SubrequestsMax,
        text: "subrequests_max",
        unit: "calls",
        default: 256,
        ceiling: 1_000_000,
        outcome: "subrequests",
        slack: "none",
        description: "Calls out of the isolate that one invocation may start.",
    },
    LimitSpec {
        name: LimitName::SubrequestsInFlightMax,
        text: "subrequests_in_flight_max",
        unit: "calls",
        default: 32,
        ceiling: 10_000,
        outcome: "none: the rest waits for answers",
        slack: "none",
        description: "Of these, how many may wait for their answers at once.",
    },
    LimitSpec {
        name: LimitName::SubrequestMsMax,
        text: "subrequest_ms_max",
        unit: "milliseconds",
        // Less than the wall time, so that who was not answered can still say so.
        default: 25_000,
        ceiling: 86_400_000,
        outcome: "none: that call throws",
        slack: "a few ms",
        description: "Time that one of these may wait for its answer, once it has left.",
    },
    LimitSpec {
        name: LimitName::CodeBytesMax,
        text: "code_bytes_max",
        unit: "bytes",
        default: 10 * MIB,
        ceiling: 64 * MIB,
        outcome: "load refused",
        slack: "none",
        description: "Sum of the bodies of a worker's modules.",
    },
    LimitSpec {
        name: LimitName::EnvBytesMax,
        text: "env_bytes_max",
        unit: "bytes",
        default: MIB,
        ceiling: 32 * MIB,
        outcome: "load refused",
        slack: "none",
        description: "Encoded size of a worker's `env`.",
    },
    LimitSpec {
        name: LimitName::ArgsBytesMax,
        text: "args_bytes_max",
        unit: "bytes",
        default: 32 * MIB,
        ceiling: 256 * MIB,
        outcome: "argsSize",
        slack: "none",
        description: "Encoded size of the arguments and the `props` of one call.",
    },
    LimitSpec {
        name: LimitName::ResultBytesMax,
        text: "result_bytes_max",
        unit: "bytes",
        default: 32 * MIB,
        ceiling: 256 * MIB,
        outcome: "resultSize",
        slack: "none",
        description: "Encoded size of the result of one call.",
    },
    LimitSpec {
        name: LimitName::LogBytesMax,
        text: "log_bytes_max",
        unit: "bytes",
        default: 256 * KIB,
        ceiling: 16 * MIB,
        outcome: "none: the rest is dropped and counted",
        slack: "none",
        description: "Console output of one invocation that is kept.",
    },
    LimitSpec {
        name: LimitName::ValueDepthMax,
        text: "value_depth_max",
        unit: "levels",
        default: 512,
        ceiling: coracle_value::DEPTH_CEILING as u64,
        outcome: "valueDepth",
        slack: "none",
        description: "Nesting of arguments, results, `env` and JSON modules.",
    },
    LimitSpec {
        name: LimitName::ExportsMax,
        text: "exports_max",
        unit: "references",
        default: 10_000,
        ceiling: 1_000_000,
        outcome: "exports",
        slack: "none",
        description: "Functions and targets that an isolate has handed out and that are still held.",
    },
];

/// The table of `docs/limits.md`, in Markdown, with a line feed after each row.
pub fn limits_table_markdown() -> String {
    let mut table = String::from(
        "| limit | unit | default | ceiling | beyond it | slack | what it limits |\n\
         |---|---|---:|---:|---|---|---|\n",
    );
    for spec in &LIMIT_SPECS {
        let outcome = match spec.outcome.contains(' ') {
            true => spec.outcome.to_owned(),
            false => format!("verdict `{}`", spec.outcome),
        };
        let (name, default, ceiling) = (spec.text, grouped(spec.default), grouped(spec.ceiling));
        let LimitSpec {
            unit,
            slack,
            description,
            ..
        } = spec;
        // Writing to a string can't fail.
        let _ = writeln!(
            table,
            "| `{name}` | {unit} | {default} | {ceiling} | {outcome} | {slack} | {description} |"
        );
    }
    table
}

/// A number with a comma between each group of three digits, as the documentation and the command
/// write it.
///
/// ```
/// assert_eq!(coracle_loader::limits::grouped(65_536), "65,536");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
