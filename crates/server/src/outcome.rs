//! What a call comes back with.

use crate::router::Address;
use coracle_isolate::{Outcome, Report, Usage, Verdict, VerdictKind};
use coracle_loader::Refusal;

/// Bytes of the name and of the message of what a client's object threw, and of the value itself: as of what workers throw.
pub(crate) const THROWN_TEXT_BYTES_MAX: usize = 16 << 10;
pub(crate) const THROWN_VALUE_BYTES_MAX: usize = 256 << 10;

/// The answer to a call: how it ended, or the refusal to take it on.
pub type CallAnswer = Result<Answered, Refusal>;

/// How a call ended, and what its result refers to.
pub struct Answered {
    /// The report. The externals in it are another's numbers and mean nothing here.
    pub report: Box<Report>,
    /// What the result refers to by index.
    pub externals: Vec<Address>,
}

impl Answered {
    /// Of a call that was given up for its caller.
    pub(crate) fn cancelled() -> Self {
        Self::of(Report {
            outcome: Outcome::Verdict(Verdict::without_limit(VerdictKind::Cancelled, true)),
            usage: Usage::default(),
            logs: Vec::new(),
            log_bytes_dropped: 0,
        })
    }

    /// Of a result that refers to nothing.
    pub(crate) fn of(report: Report) -> Self {
        Self {
            report: Box::new(report),
            externals: Vec::new(),
        }
    }
}
