//! The closed sets of values that labels take.
//!
//! Sets that callers name by a word end in [`OTHER`], which takes what is not listed: a forgotten line here may cost
//! detail, never a count and never a series.

use coracle_isolate::{Outcome, VerdictKind};
use coracle_loader::{EndCause, Quota};

/// Stands for every value that a set does not list.
pub(super) const OTHER: &str = "other";

pub(super) const RESULTS: [&str; 2] = ["ok", "refused"];
pub(super) const LINGERED: [&str; 2] = ["ok", "verdict"];
pub(super) const PHASES: [&str; 2] = ["load", "run"];
pub(super) const DIRECTIONS: [&str; 2] = ["in", "out"];

/// How requests by a policy end: the words of `coracle_outbound::Error::code` besides `ok` and `denied`.
pub(super) const OUTBOUND_RESULTS: [&str; 15] = [
    "ok",
    "denied",
    "resolve_failed",
    "connect_failed",
    "tls_failed",
    "credential_failed",
    "request_invalid",
    "too_large",
    "too_slow",
    "redirect_refused",
    "protocol_failed",
    "body_failed",
    "budget_exceeded",
    "cancelled",
    OTHER,
];

/// Who decides about requests that no policy is asked about: words of `coracle_outbound::Judge`.
pub(super) const OUTBOUND_UNJUDGED: [&str; 2] = ["gateway", "none"];

/// What connections are open for.
pub(super) const OUTBOUND_CONNECTIONS: [&str; 2] = ["http", "socket"];

/// Why a connection was turned away.
pub(super) const CONNECTION_REFUSALS: [&str; 2] = ["connections_max", OTHER];

/// Why a call was refused: the words for `coracle_loader::Refusal` and `coracle_transport::Full`.
pub(super) const REFUSALS: [&str; 11] = [
    "draining",
    "session_closed",
    "calls_in_flight",
    "session_calls",
    "workers",
    "isolates",
    "queue_wait",
    "quota",
    "connection_bytes",
    "connections_bytes",
    OTHER,
];

/// Which quota of a tenant's a call was refused for.
pub(super) fn quotas() -> [&'static str; Quota::ALL.len()] {
    Quota::ALL.map(Quota::as_str)
}

const OUTCOME_OK: usize = 0;
const OUTCOME_EXCEPTION: usize = 1;
const OUTCOME_FIRST_VERDICT: usize = 2;
pub(super) const OUTCOME_REFUSED: usize = OUTCOME_FIRST_VERDICT + VerdictKind::ALL.len();
pub(super) const OUTCOME_COUNT: usize = OUTCOME_REFUSED + 1;

/// How invocations end.
pub(super) fn outcomes() -> [&'static str; OUTCOME_COUNT] {
    std::array::from_fn(|index| match index {
        OUTCOME_OK => "ok",
        OUTCOME_EXCEPTION => "exception",
        OUTCOME_REFUSED => "refused",
        verdict => VerdictKind::ALL[verdict - OUTCOME_FIRST_VERDICT].as_str(),
    })
}

/// The name of an outcome.
pub(crate) fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Value(_) => "ok",
        Outcome::Threw(_) => "exception",
        Outcome::Verdict(verdict) => verdict.kind.as_str(),
    }
}

/// Where [`outcomes`] has an outcome.
pub(super) fn outcome_index(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Value(_) => OUTCOME_OK,
        Outcome::Threw(_) => OUTCOME_EXCEPTION,
        Outcome::Verdict(verdict) => verdict_index(verdict.kind),
    }
}

/// Where [`outcomes`] has a verdict. `VerdictKind::ALL` lists the kinds in the order of their declaration.
pub(super) fn verdict_index(kind: VerdictKind) -> usize {
    OUTCOME_FIRST_VERDICT + kind as usize
}

pub(super) const END_CAUSES: [EndCause; 6] = [
    EndCause::Evicted,
    EndCause::NotReusable,
    EndCause::CallsDropped,
    EndCause::WorkerReleased,
    EndCause::SessionClosed,
    EndCause::DrainDeadline,
];
pub(super) const END_CAUSE_COUNT: usize = END_CAUSES.len() + 1;

/// Why isolates end.
pub(super) fn end_causes() -> [&'static str; END_CAUSE_COUNT] {
    std::array::from_fn(|index| {
        END_CAUSES
            .get(index)
            .map_or(OTHER, |cause| (*cause).as_str())
    })
}
