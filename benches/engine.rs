//! What an isolate costs without threads, sockets or RPC around it: the rows marked "engine" in `docs/performance.md`.
//!
//! `cargo bench -p coracle-isolate` prints Criterion's lines and, at the end, one line of JSON for memory. Under
//! `cargo test` everything runs once.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench may fail that way"
)]

use coracle_abi as abi;
use coracle_isolate::{
    Bytes, Call, CallAccess, Event, Form, Guest, Image, Machine, Message, Outcome, Report, Sandbox,
    SandboxConfig, Scheduler, Stepper, StepperConfig, SystemClock, WorkerSpec,
};
use coracle_loader::Limits;
use criterion::{BatchSize, Criterion};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

/// Isolates that are alive at once where memory is measured.
const LIVE: u64 = 1_000;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let mut criterion = Criterion::default()
        .sample_size(50)
        .measurement_time(Duration::from_secs(4))
        .configure_from_args();
    let bench = Bench::new();
    cold(&mut criterion, &bench, "small");
    cold(&mut criterion, &bench, "scripts");
    cold_large(&mut criterion, &bench);
    drop_isolate(&mut criterion, &bench);
    warm(&mut criterion, &bench);
    criterion.final_summary();
    if measured {
        println!("{}", density(&bench, LIVE));
    }
}

/// Load, first call and end of the ten workers of a set in turn, each with a source that was never seen.
fn cold(criterion: &mut Criterion, bench: &Bench, set: &str) {
    let workers = workers(set);
    let next = Cell::new(0);
    let setup = || {
        let number = next.get();
        next.set(number + 1);
        let (source, argument) = &workers[number % workers.len()];
        (spec(&format!("{source}\n// {number}")), call(argument))
    };
    criterion.bench_function(&format!("cold/{set}"), |bencher| {
        bencher.iter_batched(setup, |load| bench.once(load), BatchSize::SmallInput);
    });
    // The same workers again and again, which start from their snapshots.
    let seen = || {
        let number = next.get();
        next.set(number + 1);
        let (source, argument) = &workers[number % workers.len()];
        (spec(source), call(argument))
    };
    criterion.bench_function(&format!("seen/{set}"), |bencher| {
        bencher.iter_batched(seen, |load| bench.once(load), BatchSize::SmallInput);
    });
}

/// The same with a module of about 20 kB.
fn cold_large(criterion: &mut Criterion, bench: &Bench) {
    let maker = bench.start(spec(&workload("large.mjs")));
    let report = bench.call(maker, call(&json!(1)));
    bench.end(maker);
    let source: String = serde_json::from_slice(&value(&report)).unwrap();
    let next = Cell::new(0);
    let setup = || {
        next.set(next.get() + 1);
        (
            spec(&format!("{source}\n// {}", next.get())),
            call(&json!(7)),
        )
    };
    criterion.bench_function("cold/20kB", |bencher| {
        bencher.iter_batched(
            setup,
            |(spec, call)| {
                let isolate = bench.start(spec);
                let report = bench.call(isolate, call);
                bench.end(isolate);
                report
            },
            BatchSize::SmallInput,
        );
    });
}

/// The end of an isolate that was called once.
fn drop_isolate(criterion: &mut Criterion, bench: &Bench) {
    let workers = workers("small");
    let (source, argument) = &workers[0];
    criterion.bench_function("drop", |bencher| {
        bencher.iter_batched(
            || {
                let isolate = bench.start(spec(source));
                bench.call(isolate, call(argument));
                isolate
            },
            |isolate| bench.end(isolate),
            BatchSize::PerIteration,
        );
    });
}

/// A call into an isolate that has served before.
fn warm(criterion: &mut Criterion, bench: &Bench) {
    let isolate = bench.start(spec("export default { run: (n) => n + 1 }"));
    criterion.bench_function("warm", |bencher| {
        bencher.iter_batched(
            || call(&json!(1)),
            |call| bench.call(isolate, call),
            BatchSize::SmallInput,
        );
    });
    bench.end(isolate);
}

/// Memory of isolates that are alive at once: loaded and called once, and after a collection.
fn density(bench: &Bench, count: u64) -> Value {
    let workers = workers("small");
    // Whatever the first isolates touch for all of them.
    let warm = bench.start(spec(&workers[0].0));
    bench.call(warm, call(&workers[0].1));
    let before = memory();
    let isolates: Vec<u64> = (0..count)
        .map(|number| {
            let (source, argument) = &workers[number as usize % workers.len()];
            let isolate = bench.start(spec(&format!("{source}\n// {number}")));
            bench.call(isolate, call(argument));
            isolate
        })
        .collect();
    let called = memory();
    for isolate in &isolates {
        bench.stepper.send(Message::Collect { isolate: *isolate });
    }
    while bench.stepper.step() {}
    let collected = memory();
    let each = |kib: u64, before: u64| kib.saturating_sub(before) as f64 / count as f64;
    let line = json!({
        "isolates": count,
        "pss_kib_each": each(called.pss_kib, before.pss_kib),
        "rss_kib_each": each(called.rss_kib, before.rss_kib),
        "pss_kib_each_after_collection": each(collected.pss_kib, before.pss_kib),
        "rss_kib_each_after_collection": each(collected.rss_kib, before.rss_kib),
        "mappings_each": each(called.mappings, before.mappings),
    });
    isolates
        .into_iter()
        .chain([warm])
        .for_each(|isolate| bench.end(isolate));
    line
}

struct Memory {
    rss_kib: u64,
    pss_kib: u64,
    mappings: u64,
}

fn memory() -> Memory {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let field = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        number.unwrap().trim().parse().unwrap()
    };
    Memory {
        rss_kib: field("Rss:"),
        pss_kib: field("Pss:"),
        mappings: fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .count() as u64,
    }
}

struct Bench {
    stepper: Stepper,
    events: mpsc::Receiver<Event>,
    last: Cell<u64>,
}

impl Bench {
    fn new() -> Self {
        let cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
        let image = Image::obtain(&Guest::embedded(), cache.as_deref()).unwrap();
        let config = SandboxConfig {
            isolates_max: LIVE as u32 + 100,
            running_max: LIVE as u32 + 100,
            pagemap_scan: Machine::read().pagemap_scan,
            snapshots_bytes_max: 16 << 20,
        };
        let sandbox = Arc::new(Sandbox::new(config, &image).unwrap());
        let config = StepperConfig {
            pool_memory_bytes_max: u64::MAX,
            seed: None,
        };
        let (sender, events) = mpsc::channel();
        let clock = Arc::new(SystemClock::default());
        let stepper = Stepper::new(sandbox, clock, config, move |event| {
            sender.send(event).unwrap();
        });
        Self {
            stepper,
            events,
            last: Cell::new(0),
        }
    }

    fn id(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn start(&self, worker: WorkerSpec) -> u64 {
        let isolate = self.id();
        self.stepper.send(Message::Start { isolate, worker });
        isolate
    }

    fn call(&self, isolate: u64, mut call: Box<Call>) -> Report {
        call.invocation = self.id();
        self.stepper.send(Message::Call { isolate, call });
        loop {
            assert!(self.stepper.step(), "the call came to nothing");
            if let Ok(Event::Finished { report, .. }) = self.events.try_recv() {
                assert!(matches!(report.outcome, Outcome::Value(_)), "{report:?}");
                return *report;
            }
        }
    }

    /// An isolate's life with one call in it.
    fn once(&self, (spec, call): (WorkerSpec, Box<Call>)) -> Report {
        let isolate = self.start(spec);
        let report = self.call(isolate, call);
        self.end(isolate);
        report
    }

    fn end(&self, isolate: u64) {
        self.stepper.send(Message::End { isolate });
        while self.stepper.step() {}
        assert!(matches!(self.events.try_recv(), Ok(Event::Ended { .. })));
    }
}

fn workload(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/workloads");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Sources and arguments of the ten workers of a set.
fn workers(set: &str) -> Vec<(String, Value)> {
    let manifest: Value = serde_json::from_str(&workload("manifest.json")).unwrap();
    let entries = manifest[set].as_array().unwrap();
    entries
        .iter()
        .map(|entry| {
            let source = workload(entry["file"].as_str().unwrap());
            (source, entry["argument"].clone())
        })
        .collect()
}

fn spec(source: &str) -> WorkerSpec {
    let load = abi::Load {
        main_module: "main.js",
        modules: vec![abi::Module {
            name: "main.js",
            kind: abi::ModuleKind::EsModule,
            body: source.as_bytes().into(),
            mappings: "",
        }],
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
        outbound_refusal: Some("outbound requests are denied".into()),
        logs_streamed: false,
        limits: Limits::default(),
    }
}

fn call(argument: &Value) -> Box<Call> {
    Box::new(Call {
        invocation: 0,
        entrypoint: "default".into(),
        export: None,
        path: vec!["run".into()],
        access: CallAccess::Call,
        args: Bytes {
            form: Form::Json,
            bytes: json!([argument]).to_string().into_bytes(),
            externals: Vec::new(),
        },
        props: Arc::new(Bytes::UNDEFINED),
        result_form: Form::Json,
        limits: Limits::default(),
    })
}

fn value(report: &Report) -> Vec<u8> {
    match &report.outcome {
        Outcome::Value(value) => value.bytes.clone(),
        other => panic!("no value but {other:?}"),
    }
}
