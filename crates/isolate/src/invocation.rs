//! One invocation's books: what it may use, what it has used.

use crate::message::{Bytes, Call, Log, Outcome, Report, Usage, Verdict, VerdictKind};
use coracle_loader::Limits;
use std::time::Duration;

pub(crate) struct Invocation {
    pub(crate) limits: Limits,
    pub(crate) arrived: Duration,
    /// Whether any of its code ran.
    pub(crate) started: bool,
    pub(crate) fuel_load: u64,
    pub(crate) fuel_run: u64,
    pub(crate) cpu_load: Duration,
    pub(crate) cpu_run: Duration,
    pub(crate) subrequests: u64,
    pub(crate) bytes_in: u64,
    pub(crate) reused: bool,
    pub(crate) logs: Vec<Log>,
    pub(crate) log_bytes_left: u64,
    pub(crate) log_bytes_dropped: u64,
    /// Its result has been reported; what it left running is still charged to it.
    pub(crate) reported: bool,
}

impl Invocation {
    pub(crate) fn new(call: &Call, arrived: Duration, reused: bool) -> Self {
        Self {
            limits: call.limits,
            arrived,
            started: false,
            fuel_load: 0,
            fuel_run: 0,
            cpu_load: Duration::ZERO,
            cpu_run: Duration::ZERO,
            subrequests: 0,
            bytes_in: (call.args.bytes.len() + call.props.bytes.len()) as u64,
            reused,
            logs: Vec::new(),
            log_bytes_left: call.limits.log_bytes_max,
            log_bytes_dropped: 0,
            reported: false,
        }
    }

    pub(crate) fn fuel_left(&self) -> u64 {
        self.limits.fuel_max.saturating_sub(self.fuel_run)
    }

    pub(crate) fn cpu_exceeded(&self) -> bool {
        self.cpu_run > Duration::from_millis(self.limits.cpu_ms_max)
    }

    /// A verdict on this invocation for exceeding `limit`.
    pub(crate) fn verdict(
        &self,
        kind: VerdictKind,
        limit_name: &'static str,
        used: u64,
        limit: u64,
    ) -> Verdict {
        Verdict {
            limit_name,
            used,
            limit,
            subrequests_sent: self.subrequests as u32,
            ..self.verdict_plain(kind)
        }
    }

    pub(crate) fn verdict_plain(&self, kind: VerdictKind) -> Verdict {
        Verdict {
            subrequests_sent: self.subrequests as u32,
            ..Verdict::without_limit(kind, self.started)
        }
    }

    /// Closes the books.
    pub(crate) fn report(&mut self, outcome: Outcome, now: Duration, memory: Memory) -> Report {
        self.reported = true;
        let bytes_out = match &outcome {
            Outcome::Value(Bytes { bytes, .. }) => bytes.len() as u64,
            _ => 0,
        };
        Report {
            outcome,
            usage: Usage {
                fuel_load: self.fuel_load,
                fuel_run: self.fuel_run,
                cpu_us: (self.cpu_load + self.cpu_run).as_micros() as u64,
                wall_us: now.saturating_sub(self.arrived).as_micros() as u64,
                memory_peak_bytes: memory.bytes,
                memory_denied: memory.denied,
                subrequests: self.subrequests as u32,
                bytes_in: self.bytes_in,
                bytes_out,
                isolate_reused: self.reused,
            },
            logs: std::mem::take(&mut self.logs),
            log_bytes_dropped: self.log_bytes_dropped,
        }
    }
}

/// The isolate's memory when a report is made.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    pub(crate) denied: u32,
}
