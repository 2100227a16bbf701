//! What the core is told, what it answers, and the closed sets of reasons in between.

use super::{CallId, IsolateId, Quota, SessionId, TenantId, WorkerId};

/// Something that happened.
///
/// An event that names something the core does not know (any more) is ignored: the two sides run
/// apart, and an answer may cross a decision on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody logged in.
    SessionOpened {
        /// The new session.
        session: SessionId,
        /// Who pays for it.
        tenant: TenantId,
    },
    /// A session is over, by choice or because its connection broke.
    SessionClosed {
        /// The session.
        session: SessionId,
    },
    /// A worker's code was checked. Without an [`Effect::RefuseWorker`] it is admitted.
    WorkerLoaded {
        /// The new worker.
        worker: WorkerId,
        /// Whose it is.
        session: SessionId,
    },
    /// The client holds no stub of the worker any more, so no further call can come.
    WorkerReleased {
        /// The worker.
        worker: WorkerId,
    },
    /// A call for a worker came in.
    CallArrived {
        /// The new call.
        call: CallId,
        /// The worker that it is for.
        worker: WorkerId,
        /// How long it may wait before it begins, in milliseconds; `queue_wait_ms_max` if that is less.
        wait_ms_max: u64,
    },
    /// The client dropped a call and does not want its result.
    ///
    /// A call that still waits is lost at once. A dispatched one goes on until the guest is done
    /// with it ([`CallFinished`](Self::CallFinished)), but when only dropped calls are left in an
    /// isolate, it ends.
    CallDropped {
        /// The call.
        call: CallId,
    },
    /// A dispatched call has its outcome.
    CallFinished {
        /// The call.
        call: CallId,
        /// False after a trap, a limit or a denied growth of memory: nothing may run in that
        /// isolate again.
        isolate_reusable: bool,
    },
    /// An isolate is gone and its slot is free: as asked with [`Effect::EndIsolate`], or by itself,
    /// which includes that it could not be started.
    IsolateEnded {
        /// The isolate.
        isolate: IsolateId,
    },
    /// What a tenant's isolates have used. Said before what depends on it: calls that arrive for the tenant, its isolates that
    /// end, and time that passes while some of its calls wait.
    TenantMeasured {
        /// The tenant.
        tenant: TenantId,
        /// CPU time since the server started, in microseconds.
        cpu_us: u64,
        /// Linear memory at this moment, in bytes.
        memory_bytes: u64,
        /// What a fresh isolate takes at least, in bytes.
        fresh_bytes: u64,
    },
    /// A worker has sent bytes by a policy.
    BytesSent {
        /// The worker's tenant.
        tenant: TenantId,
        /// How many.
        bytes: u64,
    },
    /// Nothing but time: as asked with [`Core::wake_at_ms`](super::Core::wake_at_ms).
    TimePassed,
    /// The isolates together have almost as much memory as they may. One that is idle goes, if there is one; it is said
    /// again while memory stays short.
    MemoryShort,
    /// No new work from now on; what is in flight may finish.
    DrainStarted,
    /// What is still in flight has had its time.
    DrainDeadline,
}

/// Something to be done, in the order in which it stands in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start an isolate with a worker's code.
    StartIsolate {
        /// The new isolate.
        isolate: IsolateId,
        /// The worker to load into it.
        worker: WorkerId,
    },
    /// Run a call.
    Dispatch {
        /// The call.
        call: CallId,
        /// Where.
        isolate: IsolateId,
    },
    /// Answer a call that has not been dispatched with a refusal.
    RefuseCall {
        /// The call.
        call: CallId,
        /// Why.
        refusal: Refusal,
    },
    /// Answer `load` with a refusal; the worker does not exist.
    RefuseWorker {
        /// The worker.
        worker: WorkerId,
        /// Why.
        refusal: Refusal,
    },
    /// Answer a call with a verdict: it will not finish.
    LoseCall {
        /// The call.
        call: CallId,
        /// Why.
        cause: LossCause,
    },
    /// Take an isolate down, and confirm with [`Event::IsolateEnded`]. No call is in it any more.
    EndIsolate {
        /// The isolate.
        isolate: IsolateId,
        /// Why.
        cause: EndCause,
    },
    /// Nothing is in flight any more after [`Event::DrainStarted`]. Said once.
    DrainComplete,
}

/// Why something new was not let in. On the wire `disconnected` while the server drains, because
/// another one may take it; else `overloaded` where it is [retryable](Self::retryable), and `failed`
/// where it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The server shuts down.
    #[error(
        "draining: the server is shutting down and takes no new work; connect again to reach another one"
    )]
    Draining,
    /// The session ended before.
    #[error("the session is closed; log in again")]
    SessionClosed,
    /// The process has too many calls.
    #[error(
        "overloaded: the server has {limit} calls in flight, its maximum (calls_in_flight_max); retry later"
    )]
    CallsInFlight {
        /// `calls_in_flight_max`.
        limit: u64,
    },
    /// The session has too many calls.
    #[error(
        "overloaded: the session has {limit} calls in flight, its maximum (calls_in_flight_per_session_max); \
         retry when one has finished"
    )]
    SessionCalls {
        /// `calls_in_flight_per_session_max`.
        limit: u64,
    },
    /// The session has too many workers.
    #[error(
        "the session holds {limit} workers, its maximum (workers_per_session_max); release some of them first"
    )]
    Workers {
        /// `workers_per_session_max`.
        limit: u64,
    },
    /// Every isolate that the tenant can have is busy, and as many calls wait for one as may.
    #[error(
        "overloaded: the server's isolates (isolates_max is {limit}) are busy and the queue is full; \
         retry in {retry_after_ms} ms"
    )]
    Isolates {
        /// `isolates_max` of the server.
        limit: u64,
        /// When there may be one: about as long as those in line have waited.
        retry_after_ms: u64,
    },
    /// No isolate became free in the time that the call may wait.
    #[error(
        "overloaded: the server's isolates (isolates_max is {limit}) were busy for the {waited_ms} ms that the call may \
         wait (queue_wait_ms_max, or its wall_ms_max); retry in {retry_after_ms} ms"
    )]
    QueueWait {
        /// `isolates_max` of the server.
        limit: u64,
        /// How long it waited.
        waited_ms: u64,
        /// When there may be one: about as long as it has waited.
        retry_after_ms: u64,
    },
    /// The tenant has used up a quota, and the call would have to wait, or has waited, for longer than it may.
    #[error(
        "overloaded: the tenant's {quota} is {limit}, and {used} are used; retry in {retry_after_ms} ms"
    )]
    Quota {
        /// Which one.
        quota: Quota,
        /// What it is, in the unit of its name.
        limit: u64,
        /// What is used, in the same unit, rounded up. It may be more: what runs goes on.
        used: u64,
        /// When there is something left again; where that hangs on calls that run, about as long as those in line have
        /// waited.
        retry_after_ms: u64,
    },
}

impl Refusal {
    /// Whether the same request may succeed later without the client changing anything.
    pub fn retryable(self) -> bool {
        match self {
            Self::Draining
            | Self::CallsInFlight { .. }
            | Self::SessionCalls { .. }
            | Self::Isolates { .. }
            | Self::QueueWait { .. }
            | Self::Quota { .. } => true,
            Self::SessionClosed | Self::Workers { .. } => false,
        }
    }
}

/// Why a call will not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// The isolate broke or hit a limit through no fault of this call.
    IsolateLost,
    /// The server took the isolate back.
    IsolateEvicted,
    /// The client went away, or dropped the call.
    Cancelled,
}

impl LossCause {
    /// The name as it is spelled in documentation and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IsolateLost => "isolate_lost",
            Self::IsolateEvicted => "isolate_evicted",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why an isolate is taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndCause {
    /// It was idle for longest among its tenant's, and its slot or its memory was needed.
    Evicted,
    /// A call left it in a state in which nothing may run again.
    NotReusable,
    /// Only calls were left in it that nobody waits for.
    CallsDropped,
    /// Nobody can call its worker any more.
    WorkerReleased,
    /// Its owner is gone.
    SessionClosed,
    /// The server shuts down and waited long enough.
    DrainDeadline,
}

impl EndCause {
    /// The name as it is spelled in documentation and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::NotReusable => "not_reusable",
            Self::CallsDropped => "calls_dropped",
            Self::WorkerReleased => "worker_released",
            Self::SessionClosed => "session_closed",
            Self::DrainDeadline => "drain_deadline",
        }
    }
}
