//! Isolates without threads and without the machine's clock: what happens depends on nothing but what is sent.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, missing_docs, reason = "a test's module")]
#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use super::support::{IMAGE, worker_with};
use coracle_isolate::{
    Aftermath, Bytes, Call, CallAccess, Clock, Event, Form, Machine, Message, Outcome, Report,
    Sandbox, SandboxConfig, Scheduler, Stats, Stepper, StepperConfig, Verdict, WorkerSpec,
};
use coracle_loader::Limits;
use coracle_value::Value;
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, mpsc},
    time::Duration,
};

/// A clock that goes only when it is told to; CPU time passes by a fixed amount a slice.
pub struct TestClock {
    now: Mutex<Duration>,
    cpu: Mutex<Duration>,
    cpu_a_slice: Mutex<Duration>,
}

impl Default for TestClock {
    fn default() -> Self {
        Self {
            now: Mutex::new(Duration::from_secs(1_000)),
            cpu: Mutex::default(),
            cpu_a_slice: Mutex::new(Duration::from_micros(100)),
        }
    }
}

impl TestClock {
    pub fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    pub fn set_cpu_a_slice(&self, time: Duration) {
        *self.cpu_a_slice.lock().unwrap() = time;
    }
}

impl Clock for TestClock {
    fn monotonic(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn epoch_ms(&self) -> f64 {
        1_700_000_000_000.0 + self.monotonic().as_millis() as f64
    }

    fn thread_cpu(&self) -> Duration {
        // Read before and after a slice.
        let mut cpu = self.cpu.lock().unwrap();
        *cpu += *self.cpu_a_slice.lock().unwrap();
        *cpu
    }
}

/// One pool for all tests of a file.
static SANDBOX: LazyLock<Arc<Sandbox>> = LazyLock::new(|| sandbox(64, 64));

pub fn sandbox(isolates_max: u32, running_max: u32) -> Arc<Sandbox> {
    let config = SandboxConfig {
        isolates_max,
        running_max,
        pagemap_scan: Machine::read().pagemap_scan,
        snapshots_bytes_max: 16 << 20,
    };
    Arc::new(Sandbox::new(config, &IMAGE).unwrap())
}

/// A scheduler that runs when it is told to, and all that came of it.
pub struct Lab {
    pub stepper: Stepper,
    pub clock: Arc<TestClock>,
    events: mpsc::Receiver<Event>,
    pub seen: RefCell<Seen>,
    last: Cell<u64>,
}

/// What has happened so far.
#[derive(Default)]
pub struct Seen {
    /// Reports by invocation, in the order in which they came; there must never be two.
    pub reports: BTreeMap<u64, Vec<Report>>,
    /// Of these, whether the isolate serves on.
    pub reusable: BTreeMap<u64, bool>,
    pub ended: Vec<u64>,
    /// Invocations that have been reported and run on.
    pub held: BTreeSet<u64>,
    /// What they did then.
    pub aftermaths: BTreeMap<u64, Vec<Aftermath>>,
    /// Everything in order: an invocation, or `None` with the isolate that ended.
    pub order: Vec<(u64, Option<u64>)>,
}

impl Lab {
    pub fn new() -> Self {
        Self::with(Arc::clone(&SANDBOX), 4 << 30)
    }

    pub fn with(sandbox: Arc<Sandbox>, pool_memory_bytes_max: u64) -> Self {
        let clock = Arc::new(TestClock::default());
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
            seen: RefCell::default(),
            last: Cell::new(0),
        }
    }

    pub fn id(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    pub fn stats(&self) -> Stats {
        self.stepper.stats()
    }

    // --- what is sent ---

    pub fn isolate(&self, worker: WorkerSpec) -> u64 {
        let isolate = self.id();
        self.stepper.send(Message::Start { isolate, worker });
        isolate
    }

    pub fn source(&self, source: &str) -> u64 {
        self.isolate(worker_with(&[("main.js", source)], Limits::default()))
    }

    pub fn send(&self, isolate: u64, call: Call) -> u64 {
        let invocation = call.invocation;
        let call = Box::new(call);
        self.stepper.send(Message::Call { isolate, call });
        invocation
    }

    pub fn cancel(&self, isolate: u64, invocation: u64) {
        self.stepper.send(Message::Cancel {
            isolate,
            invocation,
        });
    }

    pub fn end(&self, isolate: u64) {
        self.stepper.send(Message::End { isolate });
    }

    /// A call of a method of the default entrypoint with one argument.
    pub fn call_of(&self, method: &str, argument: Value) -> Call {
        Call {
            invocation: self.id(),
            entrypoint: "default".into(),
            export: None,
            path: vec![method.into()],
            access: CallAccess::Call,
            args: Bytes {
                form: Form::Cbor,
                bytes: coracle_value::encode(&Value::Array(vec![argument])),
                externals: Vec::new(),
            },
            props: Arc::new(Bytes::UNDEFINED),
            result_form: Form::Cbor,
            limits: HIGH,
        }
    }

    // --- what happens ---

    /// One turn; false where there is nothing to do now.
    pub fn step(&self) -> bool {
        let more = self.stepper.step();
        self.note();
        more
    }

    /// Runs until there is nothing to do at this time.
    pub fn run(&self) {
        while self.step() {}
    }

    /// Runs until the next alarm and lets time pass up to it; false where there is none.
    pub fn run_to_alarm(&self) -> bool {
        self.run();
        let Some(at) = self.stepper.alarm_next() else {
            return false;
        };
        self.clock.pass(at.saturating_sub(self.clock.monotonic()));
        true
    }

    /// Takes in the events, and checks their order.
    fn note(&self) {
        let mut seen = self.seen.borrow_mut();
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Finished {
                    isolate,
                    invocation,
                    report,
                    held,
                    isolate_reusable,
                } => {
                    if held {
                        seen.held.insert(invocation);
                    }
                    assert!(!seen.ended.contains(&isolate) || !isolate_reusable);
                    seen.order.push((isolate, Some(invocation)));
                    seen.reusable.insert(invocation, isolate_reusable);
                    let reports = seen.reports.entry(invocation).or_default();
                    reports.push(*report);
                    assert_eq!(reports.len(), 1, "two reports of {invocation}: {reports:?}");
                }
                Event::Lingered {
                    invocation,
                    aftermath,
                    ..
                } => {
                    seen.held.remove(&invocation);
                    seen.aftermaths
                        .entry(invocation)
                        .or_default()
                        .push(*aftermath);
                }
                // Whoever tests these looks at what comes of them outside.
                Event::Logged { .. }
                | Event::Called { .. }
                | Event::CallDropped { .. }
                | Event::OutboundRefused { .. }
                | Event::Loading { .. }
                | Event::Released { .. } => {}
                Event::Ended { isolate } => {
                    assert!(!seen.ended.contains(&isolate), "{isolate} ended twice");
                    seen.ended.push(isolate);
                    seen.order.push((isolate, None));
                }
            }
        }
    }

    pub fn has_report(&self, invocation: u64) -> bool {
        self.seen.borrow().reports.contains_key(&invocation)
    }

    /// What an invocation did after its report, letting time pass as it must.
    pub fn aftermath(&self, invocation: u64) -> Aftermath {
        while !self.seen.borrow().aftermaths.contains_key(&invocation) {
            let more = self.step() || self.run_to_alarm();
            assert!(more, "nothing will be told of {invocation} any more");
        }
        self.seen.borrow().aftermaths[&invocation][0].clone()
    }

    pub fn is_held(&self, invocation: u64) -> bool {
        self.seen.borrow().held.contains(&invocation)
    }

    pub fn has_ended(&self, isolate: u64) -> bool {
        self.seen.borrow().ended.contains(&isolate)
    }

    pub fn is_reusable_after(&self, invocation: u64) -> bool {
        self.seen.borrow().reusable[&invocation]
    }

    /// The report of an invocation, letting time pass as it must.
    pub fn report(&self, invocation: u64) -> Report {
        while !self.has_report(invocation) {
            let idle = !self.step() && !self.has_report(invocation);
            assert!(
                !idle || self.run_to_alarm(),
                "{invocation} will never be reported"
            );
        }
        self.seen.borrow().reports[&invocation][0].clone()
    }

    /// The report of an invocation, without letting time pass.
    pub fn report_now(&self, invocation: u64) -> Report {
        self.run();
        self.seen
            .borrow()
            .reports
            .get(&invocation)
            .unwrap_or_else(|| panic!("{invocation} is not reported yet"))[0]
            .clone()
    }

    pub fn call(&self, isolate: u64, method: &str, argument: Value) -> Report {
        let call = self.call_of(method, argument);
        self.report(self.send(isolate, call))
    }

    /// Nothing is left of anything.
    #[track_caller]
    pub fn assert_empty(&self) {
        self.run();
        assert!(self.stats().is_empty(), "{:?}", self.stats());
    }
}

/// Limits that lower no worker's.
pub const HIGH: Limits = Limits {
    fuel_max: u64::MAX,
    cpu_ms_max: u64::MAX,
    startup_fuel_max: u64::MAX,
    wall_ms_max: u64::MAX,
    memory_bytes_max: u64::MAX,
    subrequests_max: u64::MAX,
    subrequests_in_flight_max: u64::MAX,
    subrequest_ms_max: u64::MAX,
    code_bytes_max: u64::MAX,
    env_bytes_max: u64::MAX,
    args_bytes_max: u64::MAX,
    result_bytes_max: u64::MAX,
    log_bytes_max: u64::MAX,
    value_depth_max: u64::MAX,
    exports_max: u64::MAX,
};

pub fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// The verdict that a report ended with.
#[track_caller]
pub fn verdict(report: &Report) -> Verdict {
    match &report.outcome {
        Outcome::Verdict(verdict) => verdict.clone(),
        other => panic!("no verdict but {other:?}"),
    }
}

/// Name and message of what a report says was thrown.
#[track_caller]
pub fn thrown(report: &Report) -> (String, String) {
    match &report.outcome {
        Outcome::Threw(thrown) => (thrown.name.clone(), thrown.message.clone()),
        other => panic!("nothing thrown but {other:?}"),
    }
}

pub fn text(value: &str) -> Value {
    Value::from(value)
}
