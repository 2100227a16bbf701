//! What goes to isolates and what comes back: owned bytes and small integers, nothing that ties the two sides to one
//! process.

pub use crate::verdict::{Verdict, VerdictKind};
use crate::{loading::Loading, wire};
pub use coracle_abi::Form;
use coracle_loader::{Limits, Trust};
use minicbor::{Decode, Encode};
use std::sync::Arc;

/// An encoded value. Passed through untouched.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Bytes {
    /// What `bytes` are.
    #[n(0)]
    pub form: Form,
    /// Empty for [`Form::Undefined`].
    #[cbor(n(1), with = "minicbor::bytes")]
    pub bytes: Vec<u8>,
    /// What the bytes refer to by index.
    #[cbor(n(2), with = "wire::externals")]
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
#[derive(Clone, Debug, Encode, Decode)]
pub struct WorkerSpec {
    /// A `coracle_abi::Load` message.
    #[cbor(n(0), with = "wire::octets")]
    pub load: Arc<[u8]>,
    /// Who pays. Tenants share the CPU, the stacks and the memory.
    #[n(1)]
    pub tenant: u64,
    /// How large a part of them is the tenant's.
    #[n(5)]
    pub share: TenantShare,
    /// Whom it may share a process with, where isolates are in several. Stays on this side.
    #[cbor(skip)]
    pub trust: Trust,
    /// What `fetch` and `connect` are refused with; none where there is something that they go to.
    #[cbor(n(2), with = "wire::optional_text")]
    pub outbound_refusal: Option<Arc<str>>,
    /// Whether console output is told as it comes ([`Event::Logged`]), besides being reported.
    #[n(3)]
    pub logs_streamed: bool,
    /// What holds for the isolate and, unless a call lowers it, for every invocation.
    #[cbor(n(4), with = "wire::limits")]
    pub limits: Limits,
}

/// How large a tenant's part is of what tenants share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TenantShare {
    /// Its part of the CPU against that of others who want it too. At least 1.
    #[n(0)]
    pub weight: u32,
    /// Linear memory of all its isolates together, in bytes.
    #[n(1)]
    pub memory_bytes_max: u64,
}

impl Default for TenantShare {
    /// As large as anybody's, and no bound on memory.
    fn default() -> Self {
        Self {
            weight: 1,
            memory_bytes_max: u64::MAX,
        }
    }
}

/// To an isolate.
#[derive(Debug, Encode, Decode)]
pub enum Message {
    /// Makes an isolate. Its instance starts with the first call.
    #[n(0)]
    Start {
        /// Never reused.
        #[n(0)]
        isolate: u64,
        /// What it runs.
        #[n(1)]
        worker: WorkerSpec,
    },
    /// Calls into it.
    #[n(1)]
    Call {
        /// The callee.
        #[n(0)]
        isolate: u64,
        /// The call; boxed, because the others are small.
        #[n(1)]
        call: Box<Call>,
    },
    /// The caller no longer wants the result.
    #[n(2)]
    Cancel {
        /// The isolate that serves the call.
        #[n(0)]
        isolate: u64,
        /// The call.
        #[n(1)]
        invocation: u64,
    },
    /// Answers a call that an isolate made ([`Event::Called`]), or a [`Loading::Get`]. What comes too late is dropped, and its imports are let go
    /// of.
    #[n(3)]
    Settle {
        /// The isolate that made the call.
        #[n(0)]
        isolate: u64,
        /// Its id for the call.
        #[n(1)]
        operation: u64,
        /// The answer.
        #[n(2)]
        answer: Box<Answer>,
    },
    /// Nobody holds these objects of an isolate's any more.
    #[n(4)]
    Release {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The ids that it gave them out with.
        #[n(1)]
        exports: Vec<u64>,
    },
    /// Collects the isolate's garbage when it comes to rest, at nobody's expense. What it frees can be used again inside
    /// of the isolate; the pool gets nothing back.
    #[n(5)]
    Collect {
        /// The isolate.
        #[n(0)]
        isolate: u64,
    },
    /// Ends the isolate and what runs in it, unreported: whoever sends this has answered the callers. Calls that are
    /// sent later are answered with `isolate_lost`.
    #[n(6)]
    End {
        /// The isolate.
        #[n(0)]
        isolate: u64,
    },
}

/// What a call does with the value at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CallAccess {
    /// Calls it.
    #[n(0)]
    Call,
    /// Reads it.
    #[n(1)]
    Get,
    /// Nothing: only evaluates the modules.
    #[n(2)]
    Ready,
}

/// One invocation.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Call {
    /// Never reused; not 0.
    #[n(0)]
    pub invocation: u64,
    /// The main module's export.
    #[cbor(n(1), with = "wire::text")]
    pub entrypoint: Arc<str>,
    /// Called in the entrypoint's place: an object that the isolate has given out.
    #[n(2)]
    pub export: Option<u64>,
    /// Property names from the entrypoint to the callee.
    #[cbor(n(3), with = "wire::path")]
    pub path: Vec<String>,
    /// What to do with it.
    #[n(4)]
    pub access: CallAccess,
    /// An array, or undefined for no arguments.
    #[n(5)]
    pub args: Bytes,
    /// An object, or undefined.
    #[cbor(n(6), with = "wire::shared")]
    pub props: Arc<Bytes>,
    /// How the result should be encoded: CBOR or JSON.
    #[n(7)]
    pub result_form: Form,
    /// The invocation's limits.
    #[cbor(n(8), with = "wire::limits")]
    pub limits: Limits,
}

/// From an isolate.
#[derive(Debug, Encode, Decode)]
pub enum Event {
    /// An invocation ended. Every call leads to this exactly once, unless its isolate is told to end before.
    #[n(0)]
    Finished {
        /// The isolate that served it.
        #[n(0)]
        isolate: u64,
        /// The invocation.
        #[n(1)]
        invocation: u64,
        /// How it ended and what it cost.
        #[n(2)]
        report: Box<Report>,
        /// Whether it runs on. [`Event::Lingered`] tells when that is over.
        #[n(3)]
        held: bool,
        /// False for the invocation that ended the isolate; `Ended` follows, and nothing in between. The others that were
        /// lost with it have been reported before, with true: their own fate says nothing about the isolate.
        #[n(4)]
        isolate_reusable: bool,
    },
    /// What an invocation has written to the console, where that is wanted at once.
    #[n(1)]
    Logged {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The invocation.
        #[n(1)]
        invocation: u64,
        /// The lines.
        #[n(2)]
        logs: Vec<Log>,
    },
    /// What an invocation did after its report: once for one that was held, when that is over, and for others where they
    /// did anything.
    #[n(2)]
    Lingered {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The invocation.
        #[n(1)]
        invocation: u64,
        /// What it did.
        #[n(2)]
        aftermath: Box<Aftermath>,
        /// As in [`Event::Finished`].
        #[n(3)]
        isolate_reusable: bool,
    },
    /// An isolate calls something outside. It is answered with [`Message::Settle`].
    #[n(3)]
    Called {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The invocation that pays.
        #[n(1)]
        invocation: u64,
        /// The isolate's id for the call; never reused in it.
        #[n(2)]
        operation: u64,
        /// The call.
        #[n(3)]
        call: Box<OutwardCall>,
    },
    /// A request has left no further than its isolate, for the worker has nowhere to send it.
    #[n(8)]
    OutboundRefused {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The invocation that pays.
        #[n(1)]
        invocation: u64,
        /// What was called, and with which arguments.
        #[n(2)]
        call: Box<OutwardCall>,
    },
    /// An isolate loads workers.
    #[n(4)]
    Loading {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The invocation that pays.
        #[n(1)]
        invocation: u64,
        /// The isolate's id for it; never reused in it.
        #[n(2)]
        operation: u64,
        /// What it asks for.
        #[n(3)]
        request: Loading,
    },
    /// An isolate lets go of imports. It may name what it never had.
    #[n(5)]
    Released {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// What it lets go of.
        #[n(1)]
        imports: Vec<u64>,
    },
    /// Nobody waits for the answer of a call any more.
    #[n(6)]
    CallDropped {
        /// The isolate.
        #[n(0)]
        isolate: u64,
        /// The isolate's id for the call.
        #[n(1)]
        operation: u64,
    },
    /// The isolate is gone, and its place in the pool is free.
    #[n(7)]
    Ended {
        /// The isolate.
        #[n(0)]
        isolate: u64,
    },
}

/// A call out of an isolate. Everything in it is the guest's word.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct OutwardCall {
    /// What is called: an import that the isolate should hold, or [`OUTBOUND`](coracle_abi::OUTBOUND).
    #[n(0)]
    pub import: u64,
    /// Whether the guest takes it for a source or a sink. If it is none, the call must not be made: it was not counted.
    #[n(1)]
    pub is_stream: bool,
    /// Property names from there to the callee; 64 at most.
    #[cbor(n(2), with = "wire::path")]
    pub path: Vec<String>,
    /// Call or get.
    #[n(3)]
    pub access: CallAccess,
    /// An array, or undefined.
    #[n(4)]
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
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Answer {
    /// As an invocation's outcome.
    #[n(0)]
    Outcome(#[n(0)] Outcome),
    /// It could not be made, or nobody answers any more.
    #[n(1)]
    Failed(#[n(0)] String),
    /// Of [`Loading::Get`]: the import of the worker.
    #[n(2)]
    Worker(#[n(0)] u64),
    /// Of [`Loading::Get`]: there is none yet, and the isolate is to load it for this operation.
    #[n(3)]
    Provide,
}

/// How an invocation ended and what it cost.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Report {
    /// How it ended.
    #[n(0)]
    pub outcome: Outcome,
    /// What it cost.
    #[n(1)]
    pub usage: Usage,
    /// Its console output, in order.
    #[n(2)]
    pub logs: Vec<Log>,
    /// Bytes of console output beyond the limit.
    #[n(3)]
    pub log_bytes_dropped: u64,
}

/// What an invocation did after its report.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Aftermath {
    /// What stopped it, if anything did.
    #[n(0)]
    pub verdict: Option<Verdict>,
    /// What it cost on top of what was reported.
    #[n(1)]
    pub usage: Usage,
    /// Its console output, in order.
    #[n(2)]
    pub logs: Vec<Log>,
    /// Bytes of console output beyond the limit.
    #[n(3)]
    pub log_bytes_dropped: u64,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Outcome {
    /// With a value.
    #[n(0)]
    Value(#[n(0)] Bytes),
    /// With an exception of the worker's.
    #[n(1)]
    Threw(#[n(0)] Box<Thrown>),
    /// By a limit, or by what the sandbox does to it. A guest can't bring this about by saying so.
    #[n(2)]
    Verdict(#[n(0)] Verdict),
}

/// What the JavaScript threw, and entries of tables of externals.
pub use coracle_abi::{External, Kind, Thrown};

/// What an invocation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Usage {
    /// Fuel for evaluating the modules; 0 where the isolate was there already.
    #[n(0)]
    pub fuel_load: u64,
    /// Fuel for the invocation itself.
    #[n(1)]
    pub fuel_run: u64,
    /// CPU time in microseconds, load and run.
    #[n(2)]
    pub cpu_us: u64,
    /// Wall time in microseconds, from the call's arrival at the isolate.
    #[n(3)]
    pub wall_us: u64,
    /// The isolate's linear memory at its largest.
    #[n(4)]
    pub memory_peak_bytes: u64,
    /// Growths of memory that were refused.
    #[n(5)]
    pub memory_denied: u32,
    /// Calls out of the isolate.
    #[n(6)]
    pub subrequests: u32,
    /// Encoded arguments.
    #[n(7)]
    pub bytes_in: u64,
    /// Encoded result.
    #[n(8)]
    pub bytes_out: u64,
    /// Whether the isolate had served before.
    #[n(9)]
    pub isolate_reused: bool,
}

/// Console levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum LogLevel {
    /// `console.debug`
    #[n(0)]
    Debug,
    /// `console.info`
    #[n(1)]
    Info,
    /// `console.log` and what prints like it.
    #[n(2)]
    Log,
    /// `console.warn`
    #[n(3)]
    Warn,
    /// `console.error`
    #[n(4)]
    Error,
}

/// A console line.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Log {
    /// Its level.
    #[n(0)]
    pub level: LogLevel,
    /// What was written.
    #[n(1)]
    pub message: String,
    /// The same as values, where the worker was loaded so: each in CBOR, as the guest says.
    #[cbor(n(2), with = "wire::byte_strings")]
    pub arguments: Vec<Vec<u8>>,
    /// The guest's clock when it was.
    #[n(3)]
    pub timestamp_ms: f64,
}

impl Log {
    /// Bytes of the text and of the values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.len() + self.arguments.iter().map(Vec::len).sum::<usize>()
    }
}
