//! A sandbox for tests: load modules, call, get the report.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, missing_docs, reason = "a test's module")]
#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use coracle_isolate::{
    Bytes, Call, CallAccess, Clock, Event, Form, Guest, Image, Machine, Message, Outcome, Report,
    Sandbox, SandboxConfig, Scheduler, SystemClock, Threads, ThreadsConfig, WorkerSpec,
};
use coracle_loader::Limits;
use coracle_value::Value;
use std::{
    path::PathBuf,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

pub const REFUSED: &str = "outbound requests are denied";

/// The guest under test: the built-in one, or the one that `CORACLE_TEST_GUEST` names.
pub fn guest() -> Guest {
    match std::env::var_os("CORACLE_TEST_GUEST") {
        Some(path) => Guest::from_wasm(std::fs::read(path).unwrap()).with_transpiler(),
        None => Guest::embedded(),
    }
}

pub static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    Image::obtain(&guest(), cache.as_deref()).unwrap()
});

pub struct Bench {
    threads: Threads,
    events: mpsc::Receiver<Event>,
    next: AtomicU64,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ThreadsConfig)) -> Self {
        Self::with_clock(Arc::new(SystemClock::default()), change)
    }

    pub fn with_clock(clock: Arc<dyn Clock>, change: impl FnOnce(&mut ThreadsConfig)) -> Self {
        let machine = Machine::read();
        let config = SandboxConfig {
            isolates_max: 64,
            running_max: 64,
            pagemap_scan: machine.pagemap_scan,
            snapshots_bytes_max: 16 << 20,
        };
        let sandbox = Arc::new(Sandbox::new(config, &IMAGE).unwrap());
        let mut config = ThreadsConfig {
            threads: 2,
            niceness: 0,
            pool_memory_bytes_max: 4 << 30,
            seed: None,
        };
        change(&mut config);
        let (sender, events) = mpsc::channel();
        let threads = Threads::start(sandbox, clock, config, move |event| {
            let _ = sender.send(event);
        });
        Self {
            threads,
            events,
            next: AtomicU64::new(1),
        }
    }

    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    pub fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes an isolate.
    pub fn isolate(&self, worker: WorkerSpec) -> u64 {
        let isolate = self.id();
        self.threads.send(Message::Start { isolate, worker });
        isolate
    }

    pub fn send(&self, isolate: u64, call: Call) -> u64 {
        let invocation = call.invocation;
        self.threads.send(Message::Call {
            isolate,
            call: Box::new(call),
        });
        invocation
    }

    /// The next event.
    pub fn event(&self) -> Event {
        self.events
            .recv_timeout(Duration::from_secs(60))
            .expect("an event within a minute")
    }

    /// The report of `invocation`; other events are dropped.
    pub fn report(&self, invocation: u64) -> Report {
        loop {
            if let Event::Finished {
                invocation: done,
                report,
                ..
            } = self.event()
                && done == invocation
            {
                return *report;
            }
        }
    }

    /// Calls `method` of the default entrypoint and waits.
    pub fn call(&self, isolate: u64, method: &str, args: &[Value]) -> Report {
        let call = self.call_of(method, args);
        self.report(self.send(isolate, call))
    }

    pub fn call_of(&self, method: &str, args: &[Value]) -> Call {
        Call {
            invocation: self.id(),
            entrypoint: "default".into(),
            export: None,
            path: vec![method.into()],
            access: CallAccess::Call,
            args: Bytes {
                form: Form::Cbor,
                bytes: coracle_value::encode(&Value::Array(args.to_vec())),
                externals: Vec::new(),
            },
            props: Arc::new(Bytes::UNDEFINED),
            result_form: Form::Cbor,
            limits: Limits::default(),
        }
    }
}

pub fn worker(modules: &[(&str, &str)]) -> WorkerSpec {
    worker_with(modules, Limits::default())
}

pub fn worker_with(modules: &[(&str, &str)], limits: Limits) -> WorkerSpec {
    use coracle_abi as abi;
    let load = abi::Load {
        main_module: modules[0].0,
        modules: modules
            .iter()
            .map(|(name, source)| abi::Module {
                name,
                kind: match name.rsplit_once('.').map(|(_, extension)| extension) {
                    Some("cjs" | "cts") => abi::ModuleKind::CommonJs,
                    Some("txt") => abi::ModuleKind::Text,
                    Some("json") => abi::ModuleKind::Json,
                    Some("bin") => abi::ModuleKind::Data,
                    _ => abi::ModuleKind::EsModule,
                },
                body: source.as_bytes().into(),
                mappings: "",
            })
            .collect(),
        env: abi::Encoded {
            form: Form::Undefined,
            bytes: [][..].into(),
            externals: Vec::new(),
        },
        value_depth_max: 512,
        code_bytes_max: 10 << 20,
        env_bytes_max: 1 << 20,
        log_arguments: false,
    };
    WorkerSpec {
        load: minicbor::to_vec(&load).unwrap().into(),
        tenant: 1,
        trust: coracle_loader::Trust::Shared,
        share: coracle_isolate::TenantShare::default(),
        outbound_refusal: Some(REFUSED.into()),
        logs_streamed: false,
        limits,
    }
}

/// The value that a report ended with.
pub fn value(report: &Report) -> Value {
    match &report.outcome {
        Outcome::Value(Bytes {
            form: Form::Undefined,
            ..
        }) => Value::Undefined,
        Outcome::Value(Bytes {
            form: Form::Cbor,
            bytes,
            ..
        }) => coracle_value::decode(bytes, &coracle_value::Bounds::default()).unwrap(),
        other => panic!("no value but {other:?}"),
    }
}

/// A module of a kind that its name does not tell.
pub struct Source<'a> {
    pub name: &'a str,
    pub kind: coracle_abi::ModuleKind,
    pub body: &'a [u8],
}

/// A worker of these modules, the first of them the main one, with this `env`.
pub fn worker_of(modules: &[Source<'_>], env: &Value) -> WorkerSpec {
    use coracle_abi as abi;
    let env = coracle_value::encode(env);
    let load = abi::Load {
        main_module: modules[0].name,
        modules: modules
            .iter()
            .map(|module| abi::Module {
                name: module.name,
                kind: module.kind,
                body: module.body.into(),
                mappings: "",
            })
            .collect(),
        env: abi::Encoded {
            form: Form::Cbor,
            bytes: env[..].into(),
            externals: Vec::new(),
        },
        value_depth_max: 512,
        code_bytes_max: 10 << 20,
        env_bytes_max: 1 << 20,
        log_arguments: false,
    };
    WorkerSpec {
        load: minicbor::to_vec(&load).unwrap().into(),
        tenant: 1,
        trust: coracle_loader::Trust::Shared,
        share: coracle_isolate::TenantShare::default(),
        outbound_refusal: Some(REFUSED.into()),
        logs_streamed: false,
        limits: Limits::default(),
    }
}

/// What was thrown.
pub fn thrown(report: &Report) -> coracle_isolate::Thrown {
    match &report.outcome {
        Outcome::Threw(thrown) => (**thrown).clone(),
        other => panic!("nothing thrown but {other:?}"),
    }
}

/// `name: message` of what was thrown.
pub fn thrown_text(report: &Report) -> String {
    let thrown = thrown(report);
    format!("{}: {}", thrown.name, thrown.message)
}

/// The JSON text that a report ended with.
pub fn json(report: &Report) -> String {
    match &report.outcome {
        Outcome::Value(Bytes {
            form: Form::Json,
            bytes,
            ..
        }) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("no JSON but {other:?}"),
    }
}

/// What was logged, each as `level: message`.
pub fn logs(report: &Report) -> Vec<String> {
    let line = |log: &coracle_isolate::Log| format!("{:?}: {}", log.level, log.message);
    report.logs.iter().map(line).collect()
}

impl Bench {
    /// Calls a worker that has only this main module: `run(arg, env, ctx)` of its default export.
    pub fn run_module(&self, source: &str, arg: Value) -> Report {
        let isolate = self.isolate(worker(&[("main.js", source)]));
        let report = self.call(isolate, "run", &[arg]);
        self.threads.send(Message::End { isolate });
        report
    }

    /// Runs the body of an async handler `run(arg, env, ctx)` in a worker of its own.
    pub fn run_with(&self, body: &str, arg: Value) -> Report {
        let source = format!("export default {{ async run(arg, env, ctx) {{ {body}\n}} }};");
        self.run_module(&source, arg)
    }

    /// The same without an argument.
    pub fn run(&self, body: &str) -> Report {
        self.run_with(body, Value::Undefined)
    }

    /// The value that the body of a handler returns.
    pub fn eval(&self, body: &str) -> Value {
        value(&self.run(body))
    }
}
