//! What is noted of an invocation for the tails of its worker.

use super::Tail;
use crate::room::Taken;
use coracle_isolate::{Aftermath, Bytes, Call, CallAccess, Log, Outcome, Report, Thrown, Verdict};
use coracle_outbound::{Record, Underway};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// Bytes of the arguments of `fetch` that are looked at for what was asked for.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Bytes of a result of `fetch` that are kept to see which response it is.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// What anything takes that is noted, besides its texts and values.
const NOTED_BYTES: usize = 1_000;
/// What a log takes, and a value in it, besides its bytes.
const LOG_BYTES: usize = 100;
const ARGUMENT_BYTES: usize = 50;

/// An invocation that is told of.
pub(crate) struct Trace {
    pub(super) tails: Arc<[Arc<Tail>]>,
    pub(super) invocation: u64,
    pub(super) entrypoint: Arc<str>,
    pub(super) path: Vec<String>,
    pub(super) access: CallAccess,
    /// The arguments of a call of `fetch`.
    pub(super) request: Option<Vec<u8>>,
    pub(super) begun_ms: f64,
    /// How many calls of tails have led to it.
    pub(super) depth: u8,
    /// Events that were streamed.
    sequence: AtomicU64,
    /// Requests that left, or were denied.
    outbound: Mutex<Outbound>,
}

/// Records that are kept for the end of an invocation.
const RECORDS_MAX: usize = 100;
/// What a record takes, besides its texts.
const RECORD_BYTES: usize = 300;

#[derive(Default)]
struct Outbound {
    /// Requests under way, by their numbers.
    underway: HashMap<u64, Arc<Underway>>,
    /// Nothing is told any more.
    is_over: bool,
    records: Vec<Record>,
    room: Vec<Taken>,
    is_truncated: bool,
}

impl Trace {
    pub(crate) fn new(tails: &Arc<[Arc<Tail>]>, call: &Call, depth: u8) -> Arc<Self> {
        let is_fetch = call.path == ["fetch"] && call.args.bytes.len() <= REQUEST_BYTES_MAX;
        Arc::new(Self {
            tails: Arc::clone(tails),
            invocation: call.invocation,
            entrypoint: Arc::clone(&call.entrypoint),
            path: call.path.clone(),
            access: call.access,
            request: is_fetch.then(|| call.args.bytes.clone()),
            begun_ms: now_ms(),
            depth,
            sequence: AtomicU64::new(0),
            outbound: Mutex::default(),
        })
    }

    fn outbound(&self) -> MutexGuard<'_, Outbound> {
        self.outbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is under way, and will be told of when it is over, or the invocation is.
    pub(crate) fn begin_request(&self, number: u64, request: &Arc<Underway>) {
        let mut outbound = self.outbound();
        if !outbound.is_over {
            outbound.underway.insert(number, Arc::clone(request));
        }
    }

    /// A request is over. `tell` is called if it has not been told of, before anything else is.
    pub(crate) fn end_request(&self, record: &Record, tell: impl FnOnce()) {
        let mut outbound = self.outbound();
        if outbound.underway.remove(&record.number).is_some() {
            tell();
            self.keep_record(&mut outbound, record);
        }
    }

    /// The invocation is over: requests that are under way still are told of with what is known.
    pub(crate) fn end_requests(&self, tell: impl Fn(&Record)) {
        let mut outbound = self.outbound();
        outbound.is_over = true;
        let underway = std::mem::take(&mut outbound.underway);
        let mut records: Vec<Record> = underway.values().map(|request| request.record()).collect();
        records.sort_unstable_by_key(|record| record.number);
        for record in records {
            tell(&record);
            self.keep_record(&mut outbound, &record);
        }
    }

    /// Keeps a record for the end, if somebody is told then and there is room for it.
    fn keep_record(&self, outbound: &mut Outbound, record: &Record) {
        if !self.is_told_logs() {
            return;
        }
        match self.take_room(record_bytes(record)) {
            Some(room) if outbound.records.len() < RECORDS_MAX => {
                outbound.records.push(record.clone());
                outbound.room.push(room);
            }
            _ => outbound.is_truncated = true,
        }
    }

    /// The records that were kept, and whether there were more.
    pub(super) fn take_outbound(&self) -> (Vec<Record>, bool) {
        let mut outbound = self.outbound();
        outbound.room.clear();
        (std::mem::take(&mut outbound.records), outbound.is_truncated)
    }

    pub(crate) fn invocation(&self) -> u64 {
        self.invocation
    }

    pub(super) fn is_fetch(&self) -> bool {
        self.path == ["fetch"]
    }

    pub(super) fn next(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// Events are not streamed that should have been.
    pub(super) fn skip(&self, events: u64) {
        self.sequence.fetch_add(events, Ordering::Relaxed);
    }

    /// Whether there is a tail of that kind that can take something in.
    pub(super) fn has_room(&self, is_streaming: bool) -> bool {
        let mut tails = self.tails.iter();
        tails.any(|tail| tail.is_streaming == is_streaming && tail.has_room())
    }

    pub(crate) fn is_streamed(&self) -> bool {
        self.tails.iter().any(|tail| tail.is_streaming)
    }

    /// Whether somebody is told at the end what was written.
    fn is_told_logs(&self) -> bool {
        self.tails.iter().any(|tail| !tail.is_streaming)
    }

    /// Takes room for something that is noted, with texts and values of that many bytes; none where there is no room
    /// for it, or in no tail.
    pub(crate) fn take_room(&self, bytes: usize) -> Option<Taken> {
        let tail = self.tails.iter().find(|tail| tail.has_room())?;
        tail.room.take((bytes + NOTED_BYTES) as u64).ok()
    }

    /// What happened is not told. Answers how many events are lost.
    pub(crate) fn lose(&self, streamed: u64, finished: u64) -> u64 {
        self.skip(streamed);
        let lost = self.tails.iter().map(|tail| {
            let lost = if tail.is_streaming {
                streamed
            } else {
                finished
            };
            tail.lose(lost);
            lost
        });
        lost.sum()
    }

    /// How many events are streamed at the end of an invocation with that outcome.
    pub(crate) fn outcome_events(&self, outcome: &Outcome) -> u64 {
        1 + u64::from(self.exception(outcome).is_some())
    }

    /// What a handler of `fetch`, or module scope, has thrown. What a method throws was delivered to its caller, and is
    /// no failure of the worker's.
    pub(super) fn exception<'a>(&self, outcome: &'a Outcome) -> Option<&'a Thrown> {
        match outcome {
            Outcome::Threw(thrown) if self.is_fetch() || thrown.during_load => Some(thrown),
            _ => None,
        }
    }

    /// A report as far as it is told.
    pub(crate) fn told_of(&self, report: &Report) -> Report {
        Report {
            outcome: match &report.outcome {
                Outcome::Value(value) => Outcome::Value(self.told_of_value(value)),
                Outcome::Threw(thrown) => Outcome::Threw(Box::new(told_of_thrown(thrown))),
                Outcome::Verdict(verdict) => Outcome::Verdict(verdict.clone()),
            },
            logs: match self.is_told_logs() {
                true => report.logs.clone(),
                false => Vec::new(),
            },
            ..*report
        }
    }

    fn told_of_value(&self, value: &Bytes) -> Bytes {
        match self.is_fetch() && value.bytes.len() <= RESPONSE_BYTES_MAX {
            true => Bytes::data(value.form, value.bytes.clone()),
            false => Bytes::UNDEFINED,
        }
    }

    /// Bytes of what [`Trace::told_of`] keeps.
    pub(crate) fn report_bytes(&self, report: &Report) -> usize {
        let outcome = match &report.outcome {
            Outcome::Value(value) if self.is_fetch() => value.bytes.len().min(RESPONSE_BYTES_MAX),
            Outcome::Threw(thrown) => thrown.name.len() + thrown.message.len() + thrown.stack.len(),
            Outcome::Value(_) | Outcome::Verdict(_) => 0,
        };
        let request = self.request.as_ref().map_or(0, Vec::len);
        let logs = match self.is_told_logs() {
            true => logs_bytes(&report.logs),
            false => 0,
        };
        outcome + request + logs
    }
}

/// Without the value, which is not told.
fn told_of_thrown(thrown: &Thrown) -> Thrown {
    Thrown {
        name: thrown.name.clone(),
        message: thrown.message.clone(),
        stack: thrown.stack.clone(),
        during_load: thrown.during_load,
        ..Thrown::default()
    }
}

/// What a record takes in memory.
pub(crate) fn record_bytes(record: &Record) -> usize {
    let texts: [&str; 5] = [
        &record.sender.tenant,
        &record.method,
        &record.destination,
        &record.rule,
        &record.credential,
    ];
    texts.iter().map(|text| text.len()).sum::<usize>() + RECORD_BYTES
}

/// What logs take in memory.
pub(crate) fn logs_bytes(logs: &[Log]) -> usize {
    let bytes = |log: &Log| log.bytes() + LOG_BYTES + ARGUMENT_BYTES * log.arguments.len();
    logs.iter().map(bytes).sum()
}

/// How a call ended that is held, until nothing is left of it.
pub(crate) struct Kept {
    pub(crate) report: Report,
    /// What it takes until then.
    pub(crate) room: Taken,
}

/// How an invocation ended, and what it did after that.
pub(crate) struct Ending {
    /// Of a value only what a response says of itself.
    pub(super) report: Report,
    pub(super) aftermath: Option<Aftermath>,
    pub(super) ended_ms: f64,
}

impl Ending {
    pub(crate) fn new(report: Report, aftermath: Option<Aftermath>) -> Box<Self> {
        Box::new(Self {
            report,
            aftermath,
            ended_ms: now_ms(),
        })
    }

    pub(super) fn outcome_events(&self, trace: &Trace) -> u64 {
        trace.outcome_events(&self.report.outcome)
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        let after = self.aftermath.as_ref();
        let after = after.and_then(|aftermath| aftermath.verdict.as_ref());
        match &self.report.outcome {
            Outcome::Verdict(verdict) => Some(verdict),
            _ => after,
        }
    }
}

pub(super) fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_millis() as f64)
}
