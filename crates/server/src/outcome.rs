//! What a call comes back with.

use coracle_isolate::{Report, VerdictKind};
use coracle_loader::Refusal;

/// The answer to a call: a report, or the refusal to take it on.
pub type CallAnswer = Result<Box<Report>, Refusal>;

/// The names of all verdicts, as metrics and JSON spell them.
pub fn verdict_kind_names() -> impl Iterator<Item = &'static str> {
    VerdictKind::ALL.into_iter().map(VerdictKind::as_str)
}
