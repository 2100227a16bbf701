//! What the server counts, in Prometheus' text format.
//!
//! Every metric is made here, once, with all values that its labels can take. So counting is an atomic addition, a
//! scrape has the same series from the first to the last, and nobody outside can add one: no label ever carries a
//! tenant, a worker, an address or a guest's words, because a series each would be a way to fill the memory of whoever
//! scrapes. Sessions, front ends and the scheduler's sink call the methods; only the admin endpoint renders.
//! `docs/metrics.md` holds the inventory, and a test compares the two.

mod inventory;
mod labels;
mod register;
#[cfg(test)]
mod tests;

pub use self::inventory::{LabelInfo, MetricInfo};

pub(crate) use self::labels::outcome_name;
use self::{
    labels::{
        CONNECTION_REFUSALS, DIRECTIONS, END_CAUSE_COUNT, LINGERED, OUTBOUND_CONNECTIONS,
        OUTBOUND_RESULTS, OUTBOUND_UNJUDGED, OUTCOME_COUNT, OUTCOME_REFUSED, PHASES, REFUSALS,
        RESULTS, end_causes, outcome_index, outcomes, quotas,
    },
    register::{Labelled, Register},
};
use coracle_isolate::{Aftermath, Health, Report, Stats};
use coracle_loader::Quota;
use coracle_outbound::{Connections, Judge, Record, RequestDecision};
use prometheus::{Histogram, IntCounter, IntGauge, Registry, TextEncoder};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// What runs: the labels of `coracle_build_info`, and what `/version` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildInfo {
    /// The server's version.
    pub version: String,
    /// The guest's hash.
    pub guest: String,
    /// The version of Wasmtime.
    pub wasmtime: String,
    /// The version of QuickJS in the guest.
    pub quickjs: String,
    /// The CPU that the image is compiled for.
    pub cpu_baseline: String,
}

/// The counters of one server.
pub struct Metrics {
    registry: Registry,
    build: BuildInfo,
    loads: Labelled<2>,
    invocations: Labelled<OUTCOME_COUNT>,
    invocation_duration: Histogram,
    invocation_cpu: Histogram,
    fuel: Labelled<2>,
    lingered: Labelled<2>,
    isolates_live: IntGauge,
    isolates_max: IntGauge,
    isolates_running: IntGauge,
    isolates_queued: IntGauge,
    isolates_started: IntCounter,
    isolates_ended: Labelled<END_CAUSE_COUNT>,
    guest_memory: IntGauge,
    guest_memory_denied: IntCounter,
    snapshot_bytes: IntGauge,
    snapshot_loads: IntCounter,
    /// How many of the scheduler's loads from snapshots are in `snapshot_loads`.
    snapshot_loads_observed: AtomicU64,
    connections: IntGauge,
    connections_opened: IntCounter,
    connections_refused: Labelled<{ CONNECTION_REFUSALS.len() }>,
    sessions_live: IntGauge,
    logins: Labelled<2>,
    workers_live: IntGauge,
    calls_in_flight: IntGauge,
    requests_refused: Labelled<{ REFUSALS.len() }>,
    quota_refused: Labelled<{ Quota::ALL.len() }>,
    queue_wait: Histogram,
    log_bytes: IntCounter,
    log_bytes_dropped: IntCounter,
    bytes: Labelled<2>,
    subrequests: IntCounter,
    outbound_requests: Labelled<{ OUTBOUND_RESULTS.len() }>,
    outbound_duration: Histogram,
    outbound_bytes: Labelled<2>,
    outbound_redactions: IntCounter,
    outbound_unjudged: Labelled<2>,
    outbound_plain_http: IntCounter,
    outbound_connections: [IntGauge; OUTBOUND_CONNECTIONS.len()],
    outbound_connections_max: IntGauge,
    /// What knows how many connections are open.
    outbound_observed: OnceLock<Box<dyn Fn() -> Connections + Send + Sync>>,
    tail_events_dropped: IntCounter,
    panics: IntCounter,
    /// How many of the scheduler's panics are in `panics`.
    panics_observed: AtomicU64,
    threads_lost: IntGauge,
    cordons: IntGauge,
    cordons_lost: IntCounter,
    /// How many of the scheduler's lost cordons are in `cordons_lost`.
    cordons_lost_observed: AtomicU64,
    draining: IntGauge,
    log_lines_dropped: IntCounter,
    /// What knows how many lines of the log were given up.
    log_observed: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
}

impl Metrics {
    /// All metrics at zero, in a registry of their own: two servers in one process don't share any, except those of the
    /// process.
    #[must_use]
    pub fn new(build: BuildInfo) -> Arc<Self> {
        let registry = Registry::new();
        let new = Register(&registry);
        new.build_info(&build);
        new.process();
        Arc::new(Self {
            loads: new.labelled(
                "loads_total",
                "Workers that clients loaded, by result.",
                "result",
                RESULTS,
            ),
            invocations: new.labelled(
                "invocations_total",
                "Invocations that ended, by outcome: with a value, with an exception of the \
                 worker's, with a verdict, or refused before they reached an isolate.",
                "outcome",
                outcomes(),
            ),
            invocation_duration: new.histogram(
                "invocation_duration_seconds",
                "Wall time of invocations, from arrival at the isolate to the end.",
            ),
            invocation_cpu: new.histogram(
                "invocation_cpu_seconds",
                "CPU time of invocations, load and run together.",
            ),
            fuel: new.labelled(
                "fuel_total",
                "Fuel burnt, by phase: evaluating the modules (load) or serving invocations \
                 (run).",
                "phase",
                PHASES,
            ),
            lingered: new.labelled(
                "invocations_lingered_total",
                "Invocations that ran on after their answer, because of waitUntil, streams or \
                 others in the isolate, by how that ended: by itself (ok) or with a verdict. What it cost is \
                 in the other counters.",
                "result",
                LINGERED,
            ),
            isolates_live: new.gauge("isolates_live", "Isolates that exist."),
            isolates_max: new.gauge("isolates_max", "Isolates that may exist at once."),
            isolates_running: new.gauge(
                "isolates_running",
                "Isolates in the middle of running code.",
            ),
            isolates_queued: new.gauge("isolates_queued", "Isolates that wait for a thread."),
            isolates_started: new.counter("isolates_started_total", "Isolates that were started."),
            isolates_ended: new.labelled(
                "isolates_ended_total",
                "Isolates that ended, by cause; other stands for those that ended unasked, \
                 such as when they could not be started.",
                "cause",
                end_causes(),
            ),
            guest_memory: new.gauge("guest_memory_bytes", "Linear memory of all isolates."),
            snapshot_bytes: new.gauge(
                "snapshot_bytes",
                "Memory that is kept of workers that were loaded, for the next isolates of the same workers.",
            ),
            snapshot_loads: new.counter(
                "snapshot_loads_total",
                "Isolates whose modules were not evaluated, because a snapshot of an earlier load was there.",
            ),
            snapshot_loads_observed: AtomicU64::new(0),
            guest_memory_denied: new.counter(
                "guest_memory_denied_total",
                "Growths of an isolate's memory that were refused.",
            ),
            connections: new.gauge("connections", "Client connections that are open."),
            connections_opened: new.counter(
                "connections_total",
                "Client connections that were accepted.",
            ),
            connections_refused: new.labelled(
                "connections_refused_total",
                "Client connections that were refused, by reason.",
                "reason",
                CONNECTION_REFUSALS,
            ),
            sessions_live: new.gauge("sessions_live", "Sessions that are logged in."),
            logins: new.labelled(
                "logins_total",
                "Attempts to log in, by result.",
                "result",
                RESULTS,
            ),
            workers_live: new.gauge("workers_live", "Workers that clients hold."),
            calls_in_flight: new.gauge(
                "calls_in_flight",
                "Calls from clients that are not answered yet, those that wait for an isolate \
                 included.",
            ),
            requests_refused: new.labelled(
                "requests_refused_total",
                "Calls and other requests of clients that were refused, by reason: the \
                 server drains, the session is closed, or a maximum was reached.",
                "reason",
                REFUSALS,
            ),
            quota_refused: new.labelled(
                "quota_refused_total",
                "Calls that were refused because their tenant had used up a quota and they would have waited, or had \
                 waited, for longer than they may, by quota.",
                "quota",
                quotas(),
            ),
            queue_wait: new.histogram(
                "queue_wait_seconds",
                "Time that calls waited for an isolate or for a quota of their tenant's before they began; those that began \
                 at once are not in it.",
            ),
            log_bytes: new.counter("log_bytes_total", "Bytes of console output that were kept."),
            log_bytes_dropped: new.counter(
                "log_bytes_dropped_total",
                "Bytes of console output beyond log_bytes_max.",
            ),
            bytes: new.labelled(
                "bytes_total",
                "Bytes of encoded arguments (in) and results (out) of invocations.",
                "direction",
                DIRECTIONS,
            ),
            subrequests: new.counter("subrequests_total", "Calls out of isolates."),
            outbound_requests: new.labelled(
                "outbound_requests_total",
                "Requests and connections by a policy, each hop of a redirect by itself, by result: answered (ok), denied, \
                 or what they failed with.",
                "result",
                OUTBOUND_RESULTS,
            ),
            outbound_duration: new.histogram(
                "outbound_duration_seconds",
                "Time of requests that went out, from the decision to the end of the response's body or of the connection.",
            ),
            outbound_bytes: new.labelled(
                "outbound_bytes_total",
                "Bytes of bodies and connections by a policy: received (in) and sent (out).",
                "direction",
                DIRECTIONS,
            ),
            outbound_redactions: new.counter(
                "outbound_redactions_total",
                "Places in responses where a credential came back and was taken out.",
            ),
            outbound_unjudged: new.labelled(
                "outbound_unjudged_total",
                "Requests and connections that no policy was asked about: passed to a gateway, or refused because the worker \
                 has nowhere to send them (none).",
                "judge",
                OUTBOUND_UNJUDGED,
            ),
            outbound_plain_http: new.counter(
                "outbound_credentials_plain_http_total",
                "Credentials that were sent over plain http, as their configuration allows.",
            ),
            outbound_connections: new.gauges(
                "outbound_connections",
                "Connections that are open by policies: of HTTP, in use and idle, and by connect().",
                "kind",
                OUTBOUND_CONNECTIONS,
            ),
            outbound_connections_max: new.gauge(
                "outbound_connections_max",
                "How many connections may be open by policies.",
            ),
            outbound_observed: OnceLock::new(),
            tail_events_dropped: new.counter(
                "tail_events_dropped_total",
                "Events for tails that were lost, because a tail is slow, gone or refuses calls, or \
                 because calls of tails led to them.",
            ),
            panics: new.counter(
                "panics_total",
                "Panics of the host that were contained; each is a fault of Coracle's.",
            ),
            panics_observed: AtomicU64::new(0),
            threads_lost: new.gauge(
                "threads_lost",
                "Threads stuck in one slice for longer than a second; above zero the process \
                 is not live.",
            ),
            cordons: new.gauge(
                "cordons",
                "Processes that sandboxes are in; 0 where they are on threads of the server.",
            ),
            cordons_lost: new.counter(
                "cordons_lost_total",
                "Cordons that broke or had to be ended, with every call that was in them.",
            ),
            cordons_lost_observed: AtomicU64::new(0),
            draining: new.gauge("draining", "Whether the server is shutting down: 1 or 0."),
            log_lines_dropped: new.counter(
                "log_lines_dropped_total",
                "Lines of the server's own log that were given up, because nobody took them as fast as they were written.",
            ),
            log_observed: OnceLock::new(),
            registry,
            build,
        })
    }

    /// What runs.
    #[must_use]
    pub fn build_info(&self) -> &BuildInfo {
        &self.build
    }

    /// A client's load was answered.
    pub fn load(&self, ok: bool) {
        self.loads.at(usize::from(!ok)).inc();
    }

    /// An invocation ended in an isolate.
    pub fn invocation(&self, report: &Report) {
        let usage = &report.usage;
        self.invocations.at(outcome_index(&report.outcome)).inc();
        // Nothing took no time at all: such a call never reached an isolate, and would pull the quantiles down.
        if usage.wall_us > 0 {
            self.invocation_duration.observe(seconds(usage.wall_us));
            self.invocation_cpu.observe(seconds(usage.cpu_us));
        }
        let [load, run] = self.fuel.all();
        add(load, usage.fuel_load);
        add(run, usage.fuel_run);
        let [bytes_in, bytes_out] = self.bytes.all();
        add(bytes_in, usage.bytes_in);
        add(bytes_out, usage.bytes_out);
        add(&self.guest_memory_denied, usage.memory_denied.into());
        add(&self.subrequests, usage.subrequests.into());
        let log_bytes: usize = report.logs.iter().map(|log| log.message.len()).sum();
        add(&self.log_bytes, log_bytes as u64);
        add(&self.log_bytes_dropped, report.log_bytes_dropped);
    }

    /// An invocation has run on after its answer.
    pub fn lingered(&self, aftermath: &Aftermath) {
        let Aftermath { verdict, usage, .. } = aftermath;
        self.lingered.at(usize::from(verdict.is_some())).inc();
        let [load, run] = self.fuel.all();
        add(load, usage.fuel_load);
        add(run, usage.fuel_run);
        add(&self.guest_memory_denied, usage.memory_denied.into());
        add(&self.subrequests, usage.subrequests.into());
        let log_bytes: usize = aftermath.logs.iter().map(|log| log.message.len()).sum();
        add(&self.log_bytes, log_bytes as u64);
        add(&self.log_bytes_dropped, aftermath.log_bytes_dropped);
    }

    /// A request is over, or was refused.
    pub fn outbound(&self, record: &Record) {
        if record.judge != Judge::Policy {
            return self.outbound_unjudged.named(record.judge.as_str()).inc();
        }
        let result = match (record.decision, record.error) {
            (RequestDecision::Denied, _) => "denied",
            (_, "") => "ok",
            (_, error) => error,
        };
        self.outbound_requests.named(result).inc();
        if record.decision == RequestDecision::Allowed {
            self.outbound_duration
                .observe(record.duration.as_secs_f64());
            let is_plain = record.destination.starts_with("http://");
            if is_plain && !record.credential.is_empty() {
                self.outbound_plain_http.inc();
            }
        }
        let [bytes_in, bytes_out] = self.outbound_bytes.all();
        add(bytes_in, record.bytes_received);
        add(bytes_out, record.bytes_sent);
        add(&self.outbound_redactions, record.redactions);
    }

    /// Says where it is known how many connections are open. Once.
    pub fn observe_connections(&self, observe: impl Fn() -> Connections + Send + Sync + 'static) {
        let set = self.outbound_observed.set(Box::new(observe));
        debug_assert!(set.is_ok(), "said twice");
    }

    /// Says where it is known how many lines of the log were given up. Once.
    pub fn observe_log(&self, lines_dropped: impl Fn() -> u64 + Send + Sync + 'static) {
        let set = self.log_observed.set(Box::new(lines_dropped));
        debug_assert!(set.is_ok(), "said twice");
    }

    /// Events for tails were lost.
    pub fn tail_events_dropped(&self, count: u64) {
        add(&self.tail_events_dropped, count);
    }

    /// A call was refused before it reached an isolate. A reason that is not on the list counts as `other`.
    pub fn refused(&self, reason: &'static str) {
        self.invocations.at(OUTCOME_REFUSED).inc();
        self.request_refused(reason);
    }

    /// A request was refused that may not have been a call, or whose call has been counted already.
    pub fn request_refused(&self, reason: &'static str) {
        self.requests_refused.named(reason).inc();
    }

    /// A call was refused because of a quota. Besides [`refused`](Self::refused).
    pub fn quota_refused(&self, quota: Quota) {
        self.quota_refused.named(quota.as_str()).inc();
    }

    /// A call began after it had waited.
    pub fn queue_waited(&self, waited_ms: u64) {
        self.queue_wait.observe(waited_ms as f64 / 1_000.0);
    }

    /// An isolate was started.
    pub fn isolate_started(&self) {
        self.isolates_started.inc();
    }

    /// An isolate ended; the cause is a `coracle_loader::EndCause`, and any other word counts as `other`.
    pub fn isolate_ended(&self, cause: &'static str) {
        self.isolates_ended.named(cause).inc();
    }

    /// A client connected.
    pub fn connection_opened(&self) {
        self.connections_opened.inc();
        self.connections.inc();
    }

    /// A connection that was counted as opened is gone.
    pub fn connection_closed(&self) {
        self.connections.dec();
    }

    /// A client was turned away: `connections_max`; any other word counts as `other`.
    pub fn connection_refused(&self, reason: &'static str) {
        self.connections_refused.named(reason).inc();
    }

    /// Somebody logged in.
    pub fn session_opened(&self) {
        self.sessions_live.inc();
    }

    /// A session is over.
    pub fn session_closed(&self) {
        self.sessions_live.dec();
    }

    /// A login was answered.
    pub fn login(&self, ok: bool) {
        self.logins.at(usize::from(!ok)).inc();
    }

    /// A worker was admitted.
    pub fn worker_loaded(&self) {
        self.workers_live.inc();
    }

    /// An admitted worker is gone.
    pub fn worker_released(&self) {
        self.workers_live.dec();
    }

    /// A call came in.
    pub fn call_started(&self) {
        self.calls_in_flight.inc();
    }

    /// A call that was counted as started was answered or dropped.
    pub fn call_ended(&self) {
        self.calls_in_flight.dec();
    }

    /// A panic was contained outside the scheduler, which counts its own.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Whether the server is shutting down.
    pub fn set_draining(&self, draining: bool) {
        self.draining.set(draining.into());
    }

    /// Takes over what the scheduler knows. Called at scrape time, from the closure given to [`render`](Self::render).
    pub fn observe_scheduler(&self, stats: &Stats, health: &Health, isolates_max: u32) {
        self.isolates_live.set(gauge_value(stats.isolates));
        self.isolates_queued.set(gauge_value(stats.queued));
        self.isolates_running.set(gauge_value(stats.running));
        self.isolates_max.set(isolates_max.into());
        self.guest_memory.set(gauge_value(stats.memory_bytes));
        self.snapshot_bytes.set(gauge_value(stats.snapshot_bytes));
        let before = self
            .snapshot_loads_observed
            .fetch_max(stats.snapshot_hits, Ordering::Relaxed);
        self.snapshot_loads
            .inc_by(stats.snapshot_hits.saturating_sub(before));
        self.threads_lost.set(gauge_value(health.threads_lost));
        // The scheduler gives a total; two scrapes at once must not add the same difference twice.
        let before = self
            .panics_observed
            .fetch_max(stats.panics, Ordering::Relaxed);
        self.panics.inc_by(stats.panics.saturating_sub(before));
        self.cordons.set(gauge_value(stats.cordons));
        let before = self
            .cordons_lost_observed
            .fetch_max(stats.cordons_lost, Ordering::Relaxed);
        self.cordons_lost
            .inc_by(stats.cordons_lost.saturating_sub(before));
    }

    /// All metrics in the text format 0.0.4, after `observe` has brought them up to date.
    #[must_use]
    pub fn render(&self, observe: impl FnOnce(&Self)) -> String {
        observe(self);
        if let Some(observe) = self.outbound_observed.get() {
            let connections = observe();
            let [http, socket] = &self.outbound_connections;
            http.set(gauge_value(connections.http));
            socket.set(gauge_value(connections.socket));
            self.outbound_connections_max
                .set(gauge_value(connections.max));
        }
        if let Some(lines_dropped) = self.log_observed.get() {
            let known = self.log_lines_dropped.get();
            self.log_lines_dropped
                .inc_by(lines_dropped().saturating_sub(known));
        }
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .expect("a string can be written to, and no family is empty")
    }
}

/// Leaves the counter alone for nothing: writing to it would take its cache line from the other threads.
fn add(counter: &IntCounter, amount: u64) {
    if amount > 0 {
        counter.inc_by(amount);
    }
}

fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

fn gauge_value(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
