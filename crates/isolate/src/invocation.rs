//! One invocation's books: what it may use, what it has used.

use crate::{
    border, fuel,
    message::{
        Aftermath, Bytes, Call, Log, Outcome, OutwardCall, Report, Usage, Verdict, VerdictKind,
    },
};
use coracle_loader::{LimitName, Limits};
use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

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
    /// Host operations that it waits for.
    pub(crate) operations: BTreeSet<u64>,
    pub(crate) subrequests_in_flight: u64,
    /// Subrequests that have to wait until fewer are in flight, by their operations.
    pub(crate) subrequests_held: VecDeque<(u64, Box<OutwardCall>)>,
    /// Its result has been reported; what of it still runs is charged to it until the entry ends.
    pub(crate) reported: bool,
    /// Operations that hold it open.
    pub(crate) holds: usize,
    /// It has been reported and is held open.
    pub(crate) held: bool,
    /// What it was stopped by after its report.
    pub(crate) stopped: Option<Verdict>,
    /// The part of its usage that has been told.
    told: Usage,
    /// Its caller gave it up in the middle of an entry.
    pub(crate) abandoned: bool,
    /// It has ended before, and pays out of what it had left for what is let go of.
    pub(crate) is_estate: bool,
}

impl Invocation {
    /// Opens the books. The limits are the call's, and never more than the isolate's own.
    pub(crate) fn new(call: &Call, isolate: &Limits, arrived: Duration, reused: bool) -> Self {
        Self {
            bytes_in: (call.args.bytes.len() + call.props.bytes.len()) as u64,
            reused,
            ..Self::of_limits(lower(&call.limits, isolate), arrived)
        }
    }

    /// Books of nothing yet.
    pub(crate) fn of_limits(limits: Limits, arrived: Duration) -> Self {
        Self {
            limits,
            arrived,
            started: false,
            fuel_load: 0,
            fuel_run: 0,
            cpu_load: Duration::ZERO,
            cpu_run: Duration::ZERO,
            subrequests: 0,
            bytes_in: 0,
            reused: false,
            logs: Vec::new(),
            log_bytes_left: limits.log_bytes_max,
            log_bytes_dropped: 0,
            operations: BTreeSet::new(),
            subrequests_in_flight: 0,
            subrequests_held: VecDeque::new(),
            reported: false,
            holds: 0,
            held: false,
            stopped: None,
            told: Usage::default(),
            abandoned: false,
            is_estate: false,
        }
    }

    /// Opens the books of an invocation again that has ended, for what is let go of: until nothing of that is underway. It
    /// has what it had left, and its wall time anew.
    pub(crate) fn reopen(&mut self, now: Duration) {
        self.arrived = now;
        self.told.wall_us = 0;
        self.held = true;
        self.is_estate = true;
    }

    pub(crate) fn fuel_left(&self) -> u64 {
        self.limits.fuel_max.saturating_sub(self.fuel_run)
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
            ..self.verdict_plain(kind)
        }
    }

    pub(crate) fn verdict_plain(&self, kind: VerdictKind) -> Verdict {
        Verdict {
            subrequests_sent: count(self.subrequests),
            ..Verdict::without_limit(kind, self.started)
        }
    }

    /// A verdict where the CPU time is used up.
    pub(crate) fn verdict_on_cpu(&self) -> Option<Verdict> {
        let limit = self.limits.cpu_ms_max;
        let cpu = self.cpu_load + self.cpu_run;
        (cpu > Duration::from_millis(limit)).then(|| {
            let used = cpu.as_millis() as u64;
            self.verdict(VerdictKind::Cpu, "cpu_ms_max", used, limit)
        })
    }

    /// A verdict where the wall time is used up.
    pub(crate) fn verdict_on_wall(&self, now: Duration) -> Verdict {
        let limit = self.limits.wall_ms_max;
        let used = now.saturating_sub(self.arrived).as_millis() as u64;
        self.verdict(VerdictKind::Wall, "wall_ms_max", used, limit)
    }

    /// Keeps a console line, if there is room left for it: what the border let through was judged by the console that it
    /// was written to first.
    pub(crate) fn keep_log(&mut self, log: Log) {
        let bytes = log.bytes() as u64;
        if self.log_bytes_left == 0 || bytes > self.log_bytes_left {
            self.log_bytes_dropped += bytes;
            return;
        }
        let cost = border::log_cost(log.bytes());
        self.log_bytes_left = self.log_bytes_left.saturating_sub(cost);
        self.logs.push(log);
    }

    /// Whether it waits for its result, or is held open after it.
    pub(crate) fn is_open(&self) -> bool {
        !self.reported || self.held
    }

    /// Closes the books, unless it is held: what comes on top then is told by [`Self::aftermath`].
    pub(crate) fn report(&mut self, outcome: Outcome, now: Duration, memory: Memory) -> Report {
        self.reported = true;
        self.held = self.holds > 0 && !matches!(outcome, Outcome::Verdict(_));
        let bytes_out = match &outcome {
            Outcome::Value(Bytes { bytes, .. }) => bytes.len() as u64,
            _ => 0,
        };
        let usage = self.usage(bytes_out, now, memory);
        self.told = usage;
        Report {
            outcome,
            usage,
            logs: std::mem::take(&mut self.logs),
            log_bytes_dropped: std::mem::take(&mut self.log_bytes_dropped),
        }
    }

    /// What it has done since it was reported; `None` where that is nothing and nobody waits for it.
    pub(crate) fn aftermath(&mut self, now: Duration, memory: Memory) -> Option<Aftermath> {
        let told = self.told;
        let usage = self.usage(told.bytes_out, now, memory);
        // Of an estate, what only took note of something is not told.
        let unsaid = if self.is_estate { fuel::SLICE } else { 0 };
        let more = usage.fuel_run.saturating_sub(told.fuel_run);
        let idle = more <= unsaid && usage.subrequests == told.subrequests;
        let is_awaited = std::mem::take(&mut self.held) && !self.is_estate;
        if idle && !is_awaited && self.stopped.is_none() {
            return None;
        }
        self.told = usage;
        Some(Aftermath {
            verdict: self.stopped.take(),
            usage: Usage {
                fuel_load: usage.fuel_load - told.fuel_load,
                fuel_run: more,
                cpu_us: usage.cpu_us - told.cpu_us,
                wall_us: usage.wall_us.saturating_sub(told.wall_us),
                memory_denied: usage.memory_denied - told.memory_denied,
                subrequests: usage.subrequests - told.subrequests,
                bytes_in: 0,
                bytes_out: 0,
                ..usage
            },
            logs: std::mem::take(&mut self.logs),
            log_bytes_dropped: std::mem::take(&mut self.log_bytes_dropped),
        })
    }

    fn usage(&self, bytes_out: u64, now: Duration, memory: Memory) -> Usage {
        Usage {
            fuel_load: self.fuel_load,
            fuel_run: self.fuel_run,
            cpu_us: (self.cpu_load + self.cpu_run).as_micros() as u64,
            wall_us: now.saturating_sub(self.arrived).as_micros() as u64,
            memory_peak_bytes: memory.bytes,
            memory_denied: memory.denied,
            subrequests: count(self.subrequests),
            bytes_in: self.bytes_in,
            bytes_out,
            isolate_reused: self.reused,
        }
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Of each limit the lower one.
pub(crate) fn lower(one: &Limits, other: &Limits) -> Limits {
    let mut lowered = *one;
    for name in LimitName::ALL {
        lowered.set(name, one.get(name).min(other.get(name)));
    }
    lowered
}

/// The isolate's memory when a report is made.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    pub(crate) denied: u32,
}
