//! What a call comes back with.

use crate::router::Address;
use coracle_isolate::Report;
use coracle_loader::Refusal;

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
    /// Of a result that refers to nothing.
    pub(crate) fn of(report: Report) -> Self {
        Self {
            report: Box::new(report),
            externals: Vec::new(),
        }
    }
}
