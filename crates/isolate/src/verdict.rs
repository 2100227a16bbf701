//! Verdicts: what stopped an invocation, with the figures, and the sentence that says so.

use crate::wire;
use minicbor::{Decode, Encode};

/// A name that is part of the program. (Spelled out in [`Verdict`], a decoder would have to live as long.)
type LimitText = &'static str;

/// What stopped an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Verdict {
    /// The kind.
    #[n(0)]
    pub kind: VerdictKind,
    /// The limit's name as in `docs/limits.md`, or empty.
    #[cbor(n(1), with = "wire::limit_name")]
    pub limit_name: LimitText,
    /// How much was used, in the limit's unit.
    #[n(2)]
    pub used: u64,
    /// The limit.
    #[n(3)]
    pub limit: u64,
    /// Whether code of the invocation ran.
    #[n(4)]
    pub started: bool,
    /// Calls that had left the isolate.
    #[n(5)]
    pub subrequests_sent: u32,
    /// Detail for [`VerdictKind::Trap`], and for an isolate that was lost with the process that it was in; empty otherwise.
    #[n(6)]
    pub detail: String,
}

/// The kinds of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum VerdictKind {
    /// `fuel_max`.
    #[n(0)]
    Fuel,
    /// `cpu_ms_max`.
    #[n(1)]
    Cpu,
    /// `startup_fuel_max`.
    #[n(2)]
    Startup,
    /// `wall_ms_max`.
    #[n(3)]
    Wall,
    /// `memory_bytes_max`.
    #[n(4)]
    Memory,
    /// The Wasm stack ran out, which the engine's own check should have kept from happening.
    #[n(5)]
    Stack,
    /// `subrequests_max`.
    #[n(6)]
    Subrequests,
    /// `timers_max`: timers pending at once in an isolate.
    #[n(7)]
    Timers,
    /// `exports_max`.
    #[n(8)]
    Exports,
    /// `args_bytes_max`.
    #[n(9)]
    ArgsSize,
    /// `result_bytes_max`.
    #[n(10)]
    ResultSize,
    /// `value_depth_max`.
    #[n(11)]
    ValueDepth,
    /// Nothing was left that could have settled the call.
    #[n(12)]
    Hung,
    /// The caller dropped the call, or its session ended.
    #[n(13)]
    Cancelled,
    /// Another invocation was stopped, and the isolate with it.
    #[n(14)]
    IsolateLost,
    /// The isolate made room for another one.
    #[n(15)]
    IsolateEvicted,
    /// The engine broke, or the guest broke the border's rules.
    #[n(16)]
    Trap,
}

impl VerdictKind {
    /// All kinds, for metrics and tests.
    pub const ALL: [Self; 17] = [
        Self::Fuel,
        Self::Cpu,
        Self::Startup,
        Self::Wall,
        Self::Memory,
        Self::Stack,
        Self::Subrequests,
        Self::Timers,
        Self::Exports,
        Self::ArgsSize,
        Self::ResultSize,
        Self::ValueDepth,
        Self::Hung,
        Self::Cancelled,
        Self::IsolateLost,
        Self::IsolateEvicted,
        Self::Trap,
    ];

    /// The kind's name in metrics, JSON and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::Cpu => "cpu",
            Self::Startup => "startup",
            Self::Wall => "wall",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Subrequests => "subrequests",
            Self::Timers => "timers",
            Self::Exports => "exports",
            Self::ArgsSize => "args_size",
            Self::ResultSize => "result_size",
            Self::ValueDepth => "value_depth",
            Self::Hung => "hung",
            Self::Cancelled => "cancelled",
            Self::IsolateLost => "isolate_lost",
            Self::IsolateEvicted => "isolate_evicted",
            Self::Trap => "trap",
        }
    }
}

impl Verdict {
    /// A verdict that no limit led to.
    #[must_use]
    pub fn without_limit(kind: VerdictKind, started: bool) -> Self {
        Self {
            kind,
            limit_name: "",
            used: 0,
            limit: 0,
            started,
            subrequests_sent: 0,
            detail: String::new(),
        }
    }

    /// A sentence that says what happened and what can be done.
    #[must_use]
    pub fn message(&self) -> String {
        let Self {
            limit_name,
            used,
            limit,
            ..
        } = self;
        match self.kind {
            VerdictKind::Fuel => format!("the call used {used} fuel of {limit}: raise {limit_name} or do less in one call"),
            VerdictKind::Cpu => format!("the call used {used} ms of CPU time of {limit}: raise {limit_name} or do less in one call"),
            VerdictKind::Startup => format!(
                "evaluating the modules used {used} fuel of {limit}: move work out of module scope or raise {limit_name}"
            ),
            VerdictKind::Wall => format!("the call took {used} ms of {limit}: raise {limit_name} or wait for less"),
            VerdictKind::Memory => format!(
                "the isolate needed {used} bytes of memory of {limit}: raise {limit_name} or hold less at once"
            ),
            VerdictKind::Stack => "the stack of the isolate ran out: the code recurses too deeply".into(),
            VerdictKind::Subrequests => {
                format!("the call started {used} subrequests of {limit}: raise {limit_name} or call out less often")
            }
            VerdictKind::Timers => format!("the isolate has {used} timers pending, {limit} are allowed: clear some"),
            VerdictKind::Exports => format!(
                "the isolate has given out {used} functions and objects, {limit} may be held at once: dispose of stubs or raise {limit_name}"
            ),
            VerdictKind::ArgsSize => {
                format!("the arguments have {used} bytes, {limit} are allowed: send less or raise {limit_name}")
            }
            VerdictKind::ResultSize => {
                format!("the result has {used} bytes or more, {limit} are allowed: return less or raise {limit_name}")
            }
            VerdictKind::ValueDepth => {
                format!("a value is nested deeper than {limit} levels: flatten it or raise {limit_name}")
            }
            VerdictKind::Hung => "the call can never end: it waits for a promise that nothing is left to settle".into(),
            VerdictKind::Cancelled => "the call was cancelled by its caller".into(),
            VerdictKind::IsolateLost if !self.detail.is_empty() => format!(
                "the isolate is gone: {}. The call may have run in part; call again if that does no harm",
                self.detail
            ),
            VerdictKind::IsolateLost => {
                "the isolate is gone, because another call in it was stopped by a limit or because its worker ended: get the \
                 function or object anew, or call the entrypoint again"
                    .into()
            }
            VerdictKind::IsolateEvicted => {
                "the server took the isolate back before the call was through, because it shuts down or needed the room: it \
                 may have run in part; connect again, and call again if that does no harm"
                    .into()
            }
            VerdictKind::Trap => format!("the isolate broke ({}): please report this", self.detail),
        }
    }
}
