//! Isolates without threads and without the machine's clock: what happens depends on nothing but what is sent.
//!
//! A [`Lab`] takes note of all that comes out of a scheduler, and panics where that is out of order: a call that is reported
//! twice, an isolate that ends twice, an event of one that has ended, a panic that the host contained.

use coracle_isolate::{
    Aftermath, Bytes, Call, CallAccess, Clock, Event, Form, Guest, Image, Machine, Message,
    OutwardCall, Report, Sandbox, SandboxConfig, Scheduler, Stats, Stepper, StepperConfig,
    WorkerSpec,
};
use coracle_loader::{LimitName, Limits};
use coracle_value::Value;
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

/// A clock that goes only when it is told to, and by a fixed amount with each slice that runs.
pub struct SimulatedClock(Mutex<Times>);

#[derive(Clone, Copy)]
struct Times {
    now: Duration,
    cpu: Duration,
    cpu_a_slice: Duration,
    wall_a_slice: Duration,
}

impl SimulatedClock {
    fn new() -> Self {
        Self(Mutex::new(Times {
            now: Duration::from_secs(1_000),
            cpu: Duration::ZERO,
            cpu_a_slice: Duration::from_micros(100),
            wall_a_slice: Duration::ZERO,
        }))
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.times().now += time;
    }

    /// What a slice takes from now on: of CPU time, and of time.
    pub fn set_a_slice(&self, cpu: Duration, wall: Duration) {
        let mut times = self.times();
        (times.cpu_a_slice, times.wall_a_slice) = (cpu, wall);
    }
}

impl Clock for SimulatedClock {
    fn monotonic(&self) -> Duration {
        self.times().now
    }

    fn epoch_ms(&self) -> f64 {
        1_700_000_000_000.0 + self.monotonic().as_millis() as f64
    }

    fn thread_cpu(&self) -> Duration {
        // Read before a slice and after it, so that half of the time is between the two.
        let mut times = self.times();
        let (cpu, wall) = (times.cpu_a_slice, times.wall_a_slice / 2);
        times.cpu += cpu;
        times.now += wall;
        times.cpu
    }
}

/// The guest that is built in, compiled once.
static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    Image::obtain(&Guest::embedded(), cache.as_deref())
        .expect("the guest that is built in compiles")
});

static SANDBOX: LazyLock<Arc<Sandbox>> = LazyLock::new(|| sandbox(&IMAGE, 16, 16));

/// A pool for so many isolates, of which so many may be in the middle of running code.
///
/// # Panics
/// The machine has no room for it.
pub(crate) fn sandbox(image: &Image, isolates_max: u32, running_max: u32) -> Arc<Sandbox> {
    let config = SandboxConfig {
        isolates_max,
        running_max,
        pagemap_scan: Machine::read().pagemap_scan,
        snapshots_bytes_max: 16 << 20,
    };
    Arc::new(Sandbox::new(config, image).expect("there is room for a pool"))
}

/// Limits that lower nobody's.
#[must_use]
pub fn limits_high() -> Limits {
    let mut limits = Limits::default();
    for name in LimitName::ALL {
        limits.set(name, u64::MAX);
    }
    limits
}

/// A scheduler that runs when it is told to, and all that came of it.
pub struct Lab {
    stepper: Stepper,
    /// The time in it.
    pub clock: Arc<SimulatedClock>,
    events: mpsc::Receiver<Event>,
    last: Cell<u64>,
    /// Nobody else's, so that what others have loaded is not found loaded already.
    tenant: u64,
    seen: RefCell<Seen>,
}

static TENANT_LAST: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Seen {
    reports: BTreeMap<u64, Report>,
    ended: BTreeSet<u64>,
    held: BTreeSet<u64>,
    aftermaths: BTreeMap<u64, Vec<Aftermath>>,
    called: Vec<Outward>,
}

/// A call that an isolate made and that waits for an answer.
pub(crate) struct Outward {
    pub(crate) isolate: u64,
    pub(crate) operation: u64,
    pub(crate) call: OutwardCall,
}

impl Lab {
    /// One with the guest that is built in; every isolate has the same randomness.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Arc::clone(&SANDBOX), 4 << 30)
    }

    /// One with a pool of its own, and so much memory for all isolates of it.
    pub(crate) fn with(sandbox: Arc<Sandbox>, pool_memory_bytes_max: u64) -> Self {
        let clock = Arc::new(SimulatedClock::new());
        let (sender, events) = mpsc::channel();
        let config = StepperConfig {
            pool_memory_bytes_max,
            seed: Some(1),
        };
        let stepper = Stepper::new(sandbox, Arc::clone(&clock) as _, config, move |event| {
            let _ = sender.send(event);
        });
        Self {
            stepper,
            clock,
            events,
            last: Cell::new(0),
            tenant: TENANT_LAST.fetch_add(1, Ordering::Relaxed) + 1,
            seen: RefCell::default(),
        }
    }

    /// An id that nothing else has.
    pub fn id(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// What there is at this time.
    pub fn stats(&self) -> Stats {
        self.stepper.stats()
    }

    /// Makes an isolate of the tenant of this lab.
    pub fn isolate(&self, worker: WorkerSpec) -> u64 {
        let worker = WorkerSpec {
            tenant: self.tenant,
            ..worker
        };
        let isolate = self.id();
        self.send(Message::Start { isolate, worker });
        isolate
    }

    /// Sends a call and says which it is.
    pub fn call(&self, isolate: u64, call: Call) -> u64 {
        let invocation = call.invocation;
        let call = Box::new(call);
        self.send(Message::Call { isolate, call });
        invocation
    }

    /// Sends anything else.
    pub fn send(&self, message: Message) {
        self.stepper.send(message);
    }

    /// A call of a method of the default entrypoint, with these arguments.
    pub fn call_of(&self, method: &str, args: Vec<Value>, limits: Limits) -> Call {
        Call {
            invocation: self.id(),
            entrypoint: "default".into(),
            export: None,
            path: vec![method.into()],
            access: CallAccess::Call,
            args: Bytes::data(Form::Cbor, coracle_value::encode(&Value::Array(args))),
            props: Arc::new(Bytes::UNDEFINED),
            result_form: Form::Cbor,
            limits,
        }
    }

    /// One turn; false where there is nothing to do at this time.
    ///
    /// # Panics
    /// Something is out of order.
    pub fn step(&self) -> bool {
        let more = self.stepper.step();
        let mut seen = self.seen.borrow_mut();
        while let Ok(event) = self.events.try_recv() {
            seen.note(event);
        }
        drop(seen);
        assert_eq!(self.stats().panics, 0, "the host panicked");
        more
    }

    /// Runs until there is nothing to do at this time, then lets time pass until there is; false where there never will be.
    pub fn run_to_alarm(&self) -> bool {
        while self.step() {}
        let Some(at) = self.stepper.alarm_next() else {
            return false;
        };
        self.clock.pass(at.saturating_sub(self.clock.monotonic()));
        true
    }

    /// The report of a call, which is waited for.
    ///
    /// # Panics
    /// There will never be one.
    pub fn report(&self, invocation: u64) -> Report {
        loop {
            if let Some(report) = self.report_so_far(invocation) {
                return report;
            }
            let more = self.step() || self.run_to_alarm();
            assert!(
                more || self.report_so_far(invocation).is_some(),
                "{invocation} will never be reported"
            );
        }
    }

    /// The report of a call, if there is one.
    pub fn report_so_far(&self, invocation: u64) -> Option<Report> {
        self.seen.borrow().reports.get(&invocation).cloned()
    }

    /// What a call did after its report, so far.
    pub fn aftermaths(&self, invocation: u64) -> Vec<Aftermath> {
        let seen = self.seen.borrow();
        seen.aftermaths
            .get(&invocation)
            .cloned()
            .unwrap_or_default()
    }

    /// Whether a call has been reported and runs on.
    pub fn is_held(&self, invocation: u64) -> bool {
        self.seen.borrow().held.contains(&invocation)
    }

    /// Whether an isolate has ended.
    pub fn has_ended(&self, isolate: u64) -> bool {
        self.seen.borrow().ended.contains(&isolate)
    }

    /// Calls out of isolates since this was last asked.
    pub(crate) fn take_called(&self) -> Vec<Outward> {
        std::mem::take(&mut self.seen.borrow_mut().called)
    }
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

impl Seen {
    fn note(&mut self, event: Event) {
        match event {
            Event::Finished {
                isolate,
                invocation,
                report,
                held,
                isolate_reusable,
            } => {
                assert!(
                    !self.ended.contains(&isolate) || !isolate_reusable,
                    "{isolate} has ended, and is said to serve on"
                );
                if held {
                    self.held.insert(invocation);
                }
                let before = self.reports.insert(invocation, *report);
                assert!(before.is_none(), "two reports of {invocation}: {before:?}");
            }
            Event::Lingered {
                invocation,
                aftermath,
                ..
            } => {
                assert!(
                    self.reports.contains_key(&invocation),
                    "{invocation} lingers before its report"
                );
                self.held.remove(&invocation);
                self.aftermaths
                    .entry(invocation)
                    .or_default()
                    .push(*aftermath);
            }
            Event::Called {
                isolate,
                operation,
                call,
                ..
            } => self.called.push(Outward {
                isolate,
                operation,
                call: *call,
            }),
            Event::Ended { isolate } => {
                assert!(self.ended.insert(isolate), "{isolate} ended twice");
            }
            Event::Logged { .. }
            | Event::OutboundRefused { .. }
            | Event::CallDropped { .. }
            | Event::Loading { .. }
            | Event::Released { .. } => {}
        }
    }
}

/// A worker of one module.
///
/// # Panics
/// It can't be encoded, which is a fault of the message's.
#[must_use]
pub fn worker(source: &str, limits: Limits) -> WorkerSpec {
    use coracle_abi as abi;
    let module = abi::Module {
        name: "main.js",
        kind: abi::ModuleKind::EsModule,
        body: source.as_bytes().into(),
        mappings: "",
    };
    let load = abi::Load {
        main_module: "main.js",
        modules: vec![module],
        env: abi::Encoded {
            form: Form::Undefined,
            bytes: [][..].into(),
            externals: Vec::new(),
        },
        value_depth_max: u32::try_from(limits.value_depth_max).unwrap_or(u32::MAX),
        code_bytes_max: 10 << 20,
        env_bytes_max: 1 << 20,
        log_arguments: false,
    };
    WorkerSpec {
        load: minicbor::to_vec(&load).expect("plain data").into(),
        tenant: 1,
        share: coracle_isolate::TenantShare::default(),
        trust: coracle_loader::Trust::Shared,
        outbound_refusal: None,
        logs_streamed: false,
        limits,
    }
}
