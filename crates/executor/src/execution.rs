//! All that is to be known of a program that has run.

use coracle_client::{LogLine, Usage};
use coracle_codemode::{Cut, Limits, preview, truncate};
use serde::Serialize;
use serde_json::{Value as Json, json};

/// What came of a program. There is always one, whatever the program did.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Its result within `result_chars_max`, as it is shown; null where there is an error, or no result.
    pub result: Json,
    /// What was left out of `result`, if anything was.
    pub truncated: Option<Truncated>,
    /// All of its result.
    pub result_whole: Json,
    /// What kept it from having a result.
    pub error: Option<ExecutionError>,
    /// What it wrote to the console, also where it failed.
    pub logs: Vec<LogLine>,
    /// Bytes of console output beyond the limit.
    pub log_bytes_dropped: u64,
    /// The calls of tools in the order in which they were made, also those that were refused.
    pub calls: Vec<CallRecord>,
    /// What it cost.
    pub usage: Usage,
}

/// What is not shown of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Characters of JSON that are shown.
    pub chars: usize,
    /// Characters that there are.
    pub chars_whole: usize,
    /// What was left out where, the first of them.
    pub cuts: Vec<Cut>,
    /// The same in a sentence.
    pub summary: String,
}

/// Why there is no result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionError {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// The error's name, such as `TypeError`.
    pub name: String,
    /// What went wrong.
    pub message: String,
    /// Where, by the program's own lines; one frame a line.
    pub stack: String,
    /// From 1; 0 where unknown.
    pub line: u32,
    /// From 1, in UTF-16 code units; 0 where unknown.
    pub column: u32,
    /// The `code` of the error that was thrown, such as `arguments_invalid` of a tool's; empty where it had none.
    pub tool_code: String,
    /// The limit that was hit, such as `memory_bytes_max`; empty where none was.
    pub limit: String,
    /// What mends it, where that can be told; else empty.
    pub hint: String,
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The program threw.
    #[default]
    Exception,
    /// A tool's error, which the program did not catch.
    ToolError,
    /// It is no program.
    SyntaxError,
    /// It took longer than it may, waiting counted.
    Timeout,
    /// It computed more than it may.
    CpuLimit,
    /// It took more memory than it may.
    MemoryLimit,
    /// It waits for something that can't come.
    PendingPromise,
    /// Another limit, which `limit` names.
    Limit,
    /// Its result has no JSON.
    ResultInvalid,
    /// It waits for somebody's approval, and will be gone on with.
    Paused,
    /// The server can't be reached, has too much to do, or does not do as it should.
    Internal,
}

impl ErrorCode {
    /// Whether a limit has stopped the program.
    #[must_use]
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::CpuLimit | Self::MemoryLimit | Self::PendingPromise | Self::Limit
        )
    }
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// What was called, as the program named it, at most 200 bytes.
    pub tool: String,
    /// What became of it.
    pub status: CallStatus,
    /// The code of its error; empty where it has none.
    pub code: String,
    /// Whether the program had ended while it was underway.
    pub unawaited: bool,
    /// Microseconds that it waited for its turn.
    pub queued_micros: u64,
    /// Microseconds that it took then.
    pub duration_micros: u64,
    /// Its arguments, as JSON.
    pub arguments_bytes: usize,
    /// Its result, as JSON.
    pub result_bytes: usize,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It was underway when the run ended, and nobody knows.
    Unfinished,
    /// It has a result.
    Ok,
    /// It has failed, or was refused.
    Failed,
}

impl Execution {
    /// Makes that its result, of which `result_chars_max` characters are shown.
    pub fn show(&mut self, result: Json, limits: &Limits) {
        let shown = preview(&result, limits);
        self.truncated = truncate::explain(&shown).map(|summary| Truncated {
            chars: shown.chars,
            chars_whole: shown.chars_whole,
            cuts: shown.cuts,
            summary,
        });
        (self.result, self.result_whole) = (shown.value, result);
    }

    /// All of it as one document, with the result as it is shown.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let logs = self.logs.iter().map(|line| {
            json!({ "level": line.level.as_str(), "message": line.message, "timestampMs": line.timestamp_ms })
        });
        let usage = &self.usage;
        json!({
            "result": self.result,
            "error": self.error,
            "truncated": self.truncated.as_ref().map(Truncated::to_json),
            "logs": logs.collect::<Vec<_>>(),
            "logBytesDropped": self.log_bytes_dropped,
            "calls": self.calls,
            "usage": {
                "fuelLoad": usage.fuel_load,
                "fuelRun": usage.fuel_run,
                "cpuMicros": usage.cpu_micros,
                "wallMicros": usage.wall_micros,
                "memoryPeakBytes": usage.memory_peak_bytes,
                "memoryDenied": usage.memory_denied,
                "subrequests": usage.subrequests,
                "bytesIn": usage.bytes_in,
                "bytesOut": usage.bytes_out,
            },
        })
    }

    /// The calls that the program did not wait for.
    pub fn unawaited(&self) -> impl Iterator<Item = &CallRecord> {
        self.calls.iter().filter(|call| call.unawaited)
    }
}

impl Truncated {
    fn to_json(&self) -> Json {
        let cuts = self.cuts.iter().map(|cut| {
            let what = match cut.what {
                coracle_codemode::CutKind::Characters => "characters",
                coracle_codemode::CutKind::Items => "items",
                coracle_codemode::CutKind::Members => "members",
                coracle_codemode::CutKind::Value => "value",
            };
            json!({ "path": cut.path, "what": what, "count": cut.count })
        });
        json!({
            "chars": self.chars,
            "charsWhole": self.chars_whole,
            "summary": self.summary,
            "cuts": cuts.collect::<Vec<_>>(),
        })
    }
}
