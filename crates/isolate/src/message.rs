//! What goes to isolates and what comes back: owned bytes and small integers, nothing that ties the two sides to one
//! process.

use crate::loading::Loading;
pub use coracle_abi::Form;
use coracle_loader::Limits;
use std::sync::Arc;

/// An encoded value. Passed through untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// What `bytes` are.
    pub form: Form,
    /// Empty for [`Form::Undefined`].
    pub bytes: Vec<u8>,
    /// What the bytes refer to by index.
    pub externals: Vec<External>,
}

impl Bytes {
    /// The value `undefined`.
    pub const UNDEFINED: Self = Self {
        form: Form::Undefined,
        bytes: Vec::new(),
        externals: Vec::new(),
    };

    /// A value without externals.
    #[must_use]
    pub fn data(form: Form, bytes: Vec<u8>) -> Self {
        Self {
            form,
            bytes,
            externals: Vec::new(),
        }
    }
}

/// A worker as an isolate needs it: immutable, shared by the isolates that run it one after the other.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// A `coracle_abi::Load` message.
    pub load: Arc<[u8]>,
    /// Who pays. Tenants share the stacks.
    pub tenant: u64,
    /// What `fetch` and `connect` are refused with; none where there is something that they go to.
    pub outbound_refusal: Option<Arc<str>>,
    /// Whether console output is told as it comes ([`Event::Logged`]), besides being reported.
    pub logs_streamed: bool,
    /// What holds for the isolate and, unless a call lowers it, for every invocation.
    pub limits: Limits,
}

/// To an isolate.
#[derive(Debug)]
pub enum Message {
    /// Makes an isolate. Its instance starts with the first call.
    Start {
        /// Never reused.
        isolate: u64,
        /// What it runs.
        worker: WorkerSpec,
    },
    /// Calls into it.
    Call {
        /// The callee.
        isolate: u64,
        /// The call; boxed, because the others are small.
        call: Box<Call>,
    },
    /// The caller no longer wants the result.
    Cancel {
        /// The isolate that serves the call.
        isolate: u64,
        /// The call.
        invocation: u64,
    },
    /// Answers a call that an isolate made ([`Event::Called`]), or a [`Loading::Get`]. What comes too late is dropped, and its imports are let go
    /// of.
    Settle {
        /// The isolate that made the call.
        isolate: u64,
        /// Its id for the call.
        operation: u64,
        /// The answer.
        answer: Box<Answer>,
    },
    /// Nobody holds these objects of an isolate's any more.
    Release {
        /// The isolate.
        isolate: u64,
        /// The ids that it gave them out with.
        exports: Vec<u64>,
    },
    /// Collects the isolate's garbage when it comes to rest, at nobody's expense. What it frees can be used again inside
    /// of the isolate; the pool gets nothing back.
    Collect {
        /// The isolate.
        isolate: u64,
    },
    /// Ends the isolate and what runs in it, unreported: whoever sends this has answered the callers. Calls that are
    /// sent later are answered with `isolate_lost`.
    End {
        /// The isolate.
        isolate: u64,
    },
}

/// What a call does with the value at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAccess {
    /// Calls it.
    Call,
    /// Reads it.
    Get,
    /// Nothing: only evaluates the modules.
    Ready,
}

/// One invocation.
#[derive(Clone, Debug)]
pub struct Call {
    /// Never reused; not 0.
    pub invocation: u64,
    /// The main module's export.
    pub entrypoint: Arc<str>,
    /// Called in the entrypoint's place: an object that the isolate has given out.
    pub export: Option<u64>,
    /// Property names from the entrypoint to the callee.
    pub path: Vec<String>,
    /// What to do with it.
    pub access: CallAccess,
    /// An array, or undefined for no arguments.
    pub args: Bytes,
    /// An object, or undefined.
    pub props: Arc<Bytes>,
    /// How the result should be encoded: CBOR or JSON.
    pub result_form: Form,
    /// The invocation's limits.
    pub limits: Limits,
}

/// From an isolate.
#[derive(Debug)]
pub enum Event {
    /// An invocation ended. Every call leads to this exactly once, unless its isolate is told to end before.
    Finished {
        /// The isolate that served it.
        isolate: u64,
        /// The invocation.
        invocation: u64,
        /// How it ended and what it cost.
        report: Box<Report>,
        /// Whether it runs on. [`Event::Lingered`] tells when that is over.
        held: bool,
        /// False for the invocation that ended the isolate; `Ended` follows, and nothing in between. The others that were
        /// lost with it have been reported before, with true: their own fate says nothing about the isolate.
        isolate_reusable: bool,
    },
    /// What an invocation has written to the console, where that is wanted at once.
    Logged {
        /// The isolate.
        isolate: u64,
        /// The invocation.
        invocation: u64,
        /// The lines.
        logs: Vec<Log>,
    },
    /// What an invocation did after its report: once for one that was held, when that is over, and for others where they
    /// did anything.
    Lingered {
        /// The isolate.
        isolate: u64,
        /// The invocation.
        invocation: u64,
        /// What it did.
        aftermath: Box<Aftermath>,
        /// As in [`Event::Finished`].
        isolate_reusable: bool,
    },
    /// An isolate calls something outside. It is answered with [`Message::Settle`].
    Called {
        /// The isolate.
        isolate: u64,
        /// The invocation that pays.
        invocation: u64,
        /// The isolate's id for the call; never reused in it.
        operation: u64,
        /// The call.
        call: Box<OutwardCall>,
    },
    /// An isolate loads workers.
    Loading {
        /// The isolate.
        isolate: u64,
        /// The invocation that pays.
        invocation: u64,
        /// The isolate's id for it; never reused in it.
        operation: u64,
        /// What it asks for.
        request: Loading,
    },
    /// An isolate lets go of imports. It may name what it never had.
    Released {
        /// The isolate.
        isolate: u64,
        /// What it lets go of.
        imports: Vec<u64>,
    },
    /// Nobody waits for the answer of a call any more.
    CallDropped {
        /// The isolate.
        isolate: u64,
        /// The isolate's id for the call.
        operation: u64,
    },
    /// The isolate is gone, and its place in the pool is free.
    Ended {
        /// The isolate.
        isolate: u64,
    },
}

/// A call out of an isolate. Everything in it is the guest's word.
#[derive(Clone, Debug, PartialEq)]
pub struct OutwardCall {
    /// What is called: an import that the isolate should hold, or [`OUTBOUND`](coracle_abi::OUTBOUND).
    pub import: u64,
    /// Whether the guest takes it for a source or a sink. If it is none, the call must not be made: it was not counted.
    pub is_stream: bool,
    /// Property names from there to the callee; 64 at most.
    pub path: Vec<String>,
    /// Call or get.
    pub access: CallAccess,
    /// An array, or undefined.
    pub args: Bytes,
}

impl OutwardCall {
    /// What its path and its arguments take, the props of what they refer to included.
    pub(crate) fn bytes(&self) -> u64 {
        let of = |external: &External| match external {
            External::Loopback { entrypoint, props } => entrypoint.len() + props.len(),
            External::Export(..) | External::Import(..) => 0,
        };
        let referred: usize = self.args.externals.iter().map(of).sum();
        let path: usize = self.path.iter().map(String::len).sum();
        (path + self.args.bytes.len() + referred) as u64
    }

    /// The imports that it is of and refers to.
    pub(crate) fn imports(&self) -> Vec<u64> {
        let import = |external: &External| match external {
            External::Import(import, _) => Some(*import),
            External::Export(..) | External::Loopback { .. } => None,
        };
        let referred = self.args.externals.iter().filter_map(import);
        referred.chain([self.import]).collect()
    }
}

/// What a call out of an isolate came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// As an invocation's outcome.
    Outcome(Outcome),
    /// It could not be made, or nobody answers any more.
    Failed(String),
    /// Of [`Loading::Get`]: the import of the worker.
    Worker(u64),
    /// Of [`Loading::Get`]: there is none yet, and the isolate is to load it for this operation.
    Provide,
}

/// How an invocation ended and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What it cost.
    pub usage: Usage,
    /// Its console output, in order.
    pub logs: Vec<Log>,
    /// Bytes of console output beyond the limit.
    pub log_bytes_dropped: u64,
}

/// What an invocation did after its report.
#[derive(Clone, Debug, PartialEq)]
pub struct Aftermath {
    /// What stopped it, if anything did.
    pub verdict: Option<Verdict>,
    /// What it cost on top of what was reported.
    pub usage: Usage,
    /// Its console output, in order.
    pub logs: Vec<Log>,
    /// Bytes of console output beyond the limit.
    pub log_bytes_dropped: u64,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With a value.
    Value(Bytes),
    /// With an exception of the worker's.
    Threw(Box<Thrown>),
    /// By a limit, or by what the sandbox does to it. A guest can't bring this about by saying so.
    Verdict(Verdict),
}

/// What the JavaScript threw, and entries of tables of externals.
pub use coracle_abi::{External, Kind, Thrown};

/// What stopped an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind.
    pub kind: VerdictKind,
    /// The limit's name as in `docs/limits.md`, or empty.
    pub limit_name: &'static str,
    /// How much was used, in the limit's unit.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// Whether code of the invocation ran.
    pub started: bool,
    /// Calls that had left the isolate.
    pub subrequests_sent: u32,
    /// Detail for [`VerdictKind::Trap`]; empty otherwise.
    pub detail: String,
}

/// The kinds of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerdictKind {
    /// `fuel_max`.
    Fuel,
    /// `cpu_ms_max`.
    Cpu,
    /// `startup_fuel_max`.
    Startup,
    /// `wall_ms_max`.
    Wall,
    /// `memory_bytes_max`.
    Memory,
    /// The Wasm stack ran out, which the engine's own check should have kept from happening.
    Stack,
    /// `subrequests_max`.
    Subrequests,
    /// `timers_max`: timers pending at once in an isolate.
    Timers,
    /// `exports_max`.
    Exports,
    /// `args_bytes_max`.
    ArgsSize,
    /// `result_bytes_max`.
    ResultSize,
    /// `value_depth_max`.
    ValueDepth,
    /// Nothing was left that could have settled the call.
    Hung,
    /// The caller dropped the call, or its session ended.
    Cancelled,
    /// Another invocation was stopped, and the isolate with it.
    IsolateLost,
    /// The isolate made room for another one.
    IsolateEvicted,
    /// The engine broke, or the guest broke the border's rules.
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

/// What an invocation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fuel for evaluating the modules; 0 where the isolate was there already.
    pub fuel_load: u64,
    /// Fuel for the invocation itself.
    pub fuel_run: u64,
    /// CPU time in microseconds, load and run.
    pub cpu_us: u64,
    /// Wall time in microseconds, from the call's arrival at the isolate.
    pub wall_us: u64,
    /// The isolate's linear memory at its largest.
    pub memory_peak_bytes: u64,
    /// Growths of memory that were refused.
    pub memory_denied: u32,
    /// Calls out of the isolate.
    pub subrequests: u32,
    /// Encoded arguments.
    pub bytes_in: u64,
    /// Encoded result.
    pub bytes_out: u64,
    /// Whether the isolate had served before.
    pub isolate_reused: bool,
}

/// Console levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `console.debug`
    Debug,
    /// `console.info`
    Info,
    /// `console.log` and what prints like it.
    Log,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}

/// A console line.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Its level.
    pub level: LogLevel,
    /// What was written.
    pub message: String,
    /// The same as values, where the worker was loaded so: each in CBOR, as the guest says.
    pub arguments: Vec<Vec<u8>>,
    /// The guest's clock when it was.
    pub timestamp_ms: f64,
}

impl Log {
    /// Bytes of the text and of the values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.len() + self.arguments.iter().map(Vec::len).sum::<usize>()
    }
}
