//! What `make demo` runs: a server, an agent's report on real data, hostile code being stopped, and what it all costs.
//!
//! It checks what it shows. Whatever is not as it should be ends it with a message and exit code 1, and the server that
//! it started ends with it on every way out.
//!
//! ```sh
//! cargo run --release --example demo -- --server target/release/coracle
//! ```

use coracle_client::{
    Answer, ConnectOptions, Coracle, Entrypoint, ModuleBody, Outcome, Usage, Value, Verdict,
    Worker, WorkerCode, args,
};
use std::{
    cell::Cell,
    env,
    error::Error,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{sleep, timeout_at},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The agent's worker; every module's name is its path in that folder.
const REPORT_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agent-report");
const REPORT_MODULES: [&str; 5] = [
    "main.js",
    "lib/join.js",
    "lib/summary.js",
    "customers.json",
    "orders.json",
];

/// Known from outside: jq, asked the same of the same data. See the README of the worker.
const REVENUE_CENTS_2025: f64 = 87_453_370.0;
const SALES_2025: f64 = 2_721.0;
const TOP_CUSTOMER_2025: &str = "Priya Tanaka";
const REVENUE_CENTS_DECEMBER: f64 = 6_434_256.0;

const ENDLESS_LOOP: &str =
    "export default { run() { for (;;) { try { for (;;) {} } catch {} } } };";
const MEMORY_BOMB: &str = "export default { run() { const held = []; \
     for (;;) { try { held.push(new Uint8Array(1 << 20).fill(1)); } catch {} } } };";

const ALONE_CALLS: usize = 30;
const COLD_CALLS: u32 = 200;
const WARM_CALLS: usize = 1_000;

/// The first start on a machine compiles the guest if the binary has none inside.
const START_DEADLINE: Duration = Duration::from_secs(120);
const END_DEADLINE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(demo_unless_told_to_end()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A signal is a way out like others: the server is dropped, so it does not stay behind.
async fn demo_unless_told_to_end() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = Box::pin(demo()) => outcome,
        _ = interrupt.recv() => Err("interrupted".into()),
        _ = terminate.recv() => Err("told to end".into()),
    }
}

async fn demo() -> Result<()> {
    let server = Server::start(&server_path()?).await?;
    println!("{}\n", server.announcement);
    let coracle = Coracle::connect(&server.address, ConnectOptions::default()).await?;

    let worker = coracle.load(report_code()?);
    let report = worker.entrypoint("default");
    show_report(&report).await?;
    show_hostile_code(&server.address, &report).await?;
    show_latencies(&coracle).await?;

    drop((coracle, worker, report));
    server.end().await
}

fn server_path() -> Result<PathBuf> {
    let mut arguments = env::args_os().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(flag), Some(path), None) if flag == "--server" => Ok(path.into()),
        _ => Err("usage: demo --server PATH, the path of the coracle binary".into()),
    }
}

fn report_code() -> Result<WorkerCode> {
    let mut code = WorkerCode::new("main.js").env(Value::object([("currency", "EUR")]));
    for name in REPORT_MODULES {
        let path = Path::new(REPORT_FOLDER).join(name);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let body = match name.ends_with(".json") {
            true => ModuleBody::Json(text),
            false => ModuleBody::EsModule(text),
        };
        code = code.module(name, body);
    }
    Ok(code)
}

/// The year's report: the first call, which also loads the worker.
async fn show_report(report: &Entrypoint) -> Result<()> {
    let request = Value::object([("from", "2025-01-01"), ("to", "2025-12-31")]);
    let start = Instant::now();
    let Answer {
        outcome,
        usage,
        logs,
        ..
    } = report.call("report", args![request]).await?;
    let first = start.elapsed();
    let Outcome::Value(summary) = outcome else {
        return Err(format!("the report did not come back: {outcome:?}").into());
    };

    let (sales, revenue) = (
        number(&summary, "sales")?,
        number(&summary, "revenueCents")?,
    );
    expect_equal("sales of 2025", sales, SALES_2025)?;
    expect_equal("revenue of 2025 in cents", revenue, REVENUE_CENTS_2025)?;
    let top = list(&summary, "topCustomers")?;
    expect_equal("the report's top customers", top.len(), 5)?;
    let top_name = top.first().map_or(Ok(""), |first| text(first, "name"))?;
    expect_equal("the top customer", top_name, TOP_CUSTOMER_2025)?;

    let records = summary.get("records").unwrap_or(&Value::Undefined);
    println!(
        "1. An agent's script joins {} customers with {} orders",
        grouped(number(records, "customers")?),
        grouped(number(records, "orders")?)
    );
    println!(
        "   2025           {} sales to {} customers, {} {} in all, {} each, {} refunded",
        grouped(sales),
        grouped(number(&summary, "customers")?),
        text(&summary, "currency")?,
        money(revenue),
        money(number(&summary, "averageCents")?),
        money(number(&summary, "refundedCents")?),
    );
    println!("   by segment     {}", totals(&summary, "bySegment")?);
    println!("   top countries  {}", totals(&summary, "byCountry")?);
    for (index, customer) in top.iter().enumerate() {
        println!(
            "   {:<15}{:<16}{}  {:<11}{:>10}",
            if index == 0 { "top customers" } else { "" },
            text(customer, "name")?,
            text(customer, "country")?,
            text(customer, "segment")?,
            money(number(customer, "revenueCents")?),
        );
    }
    for line in &logs {
        println!(
            "   its console    [{}] {}",
            line.level.as_str(),
            line.message
        );
    }
    println!("   {}", cost("first call", first, &usage));

    let again = Instant::now();
    let second = report.call("report", args![Value::Undefined]).await?;
    println!(
        "   {}\n",
        cost("second call", again.elapsed(), &second.usage)
    );
    match second.value()? == summary {
        true => Ok(()),
        false => Err("the second report is not the first".into()),
    }
}

fn cost(call: &str, elapsed: Duration, usage: &Usage) -> String {
    format!(
        "{call:<15}{}: fuel {} to load and {} to run, {:.1} ms CPU, {:.1} MiB",
        milliseconds(elapsed),
        grouped(usage.fuel_load as f64),
        grouped(usage.fuel_run as f64),
        usage.cpu_micros as f64 / 1000.0,
        usage.memory_peak_bytes as f64 / f64::from(1 << 20),
    )
}

/// A loop and a bomb from another client, while the report's client goes on as if nothing was.
async fn show_hostile_code(address: &str, report: &Entrypoint) -> Result<()> {
    let mut alone = Samples::default();
    for _ in 0..ALONE_CALLS {
        alone.add(december(report).await?);
    }
    println!(
        "2. Hostile code from a second client, while the first asks for December all the time"
    );
    let stop = Cell::new(false);
    let attack = async {
        let attacker = Coracle::connect(address, ConnectOptions::default()).await?;
        show_stopped(&attacker, "endless loop", ENDLESS_LOOP, &["cpu", "fuel"]).await?;
        show_stopped(&attacker, "memory bomb", MEMORY_BOMB, &["memory"]).await?;
        stop.set(true);
        Ok(())
    };
    let keep_calling = async {
        let mut meanwhile = Samples::default();
        while !stop.get() {
            meanwhile.add(december(report).await?);
        }
        Ok::<_, Box<dyn Error>>(meanwhile)
    };
    let ((), meanwhile) = tokio::try_join!(attack, keep_calling)?;
    println!(
        "   meanwhile      {} calls of the first worker answered, all with the right figure",
        meanwhile.count()
    );
    println!("                  {meanwhile}");
    println!("   before, alone  {alone}\n");
    // A call of a few milliseconds against an attack of a second: fewer would mean that it was kept waiting.
    match meanwhile.count() {
        0..3 => Err("the first worker was hardly answered while others were stopped".into()),
        _ => Ok(()),
    }
}

/// Asks for one month and checks the figure.
async fn december(report: &Entrypoint) -> Result<Duration> {
    let request = Value::object([("from", "2025-12-01"), ("to", "2025-12-31")]);
    let start = Instant::now();
    let answer = report.call("report", args![request]).await?;
    let elapsed = start.elapsed();
    let revenue = number(&answer.value()?, "revenueCents")?;
    expect_equal(
        "December's revenue in cents",
        revenue,
        REVENUE_CENTS_DECEMBER,
    )?;
    Ok(elapsed)
}

async fn show_stopped(attacker: &Coracle, name: &str, source: &str, kinds: &[&str]) -> Result<()> {
    let worker = attacker.load(WorkerCode::new("main.js").es_module("main.js", source));
    let start = Instant::now();
    let answer = worker.entrypoint("default").call("run", args![()]).await?;
    let verdict = expect_verdict(name, answer, kinds)?;
    println!(
        "   {name:<15}stopped after {}; verdict {}",
        milliseconds(start.elapsed()),
        verdict.kind
    );
    println!("                  \"{}\"", verdict.message);
    Ok(())
}

fn expect_verdict(name: &str, answer: Answer, kinds: &[&str]) -> Result<Box<Verdict>> {
    match answer.outcome {
        Outcome::Verdict(verdict) if kinds.contains(&verdict.kind.as_str()) => Ok(verdict),
        outcome => Err(format!(
            "the {name} ended with {outcome:?} and not with the verdict {}",
            kinds.join(" or ")
        )
        .into()),
    }
}

/// What a call costs at least: a worker that does next to nothing.
async fn show_latencies(coracle: &Coracle) -> Result<()> {
    let mut cold = Samples::default();
    for index in 0..COLD_CALLS {
        let start = Instant::now();
        let worker = small_worker(coracle, index);
        let answer = worker.entrypoint("default").call("add", args![1]).await?;
        cold.add(start.elapsed());
        expect_equal(
            "a cold call's isolate_reused",
            answer.usage.isolate_reused,
            false,
        )?;
        expect_equal(
            "a cold call's answer",
            number_of(answer)?,
            f64::from(index) + 1.0,
        )?;
    }
    let mut warm = Samples::default();
    let entrypoint = small_worker(coracle, 1).entrypoint("default");
    entrypoint.call("add", args![0]).await?.value()?;
    for _ in 0..WARM_CALLS {
        let start = Instant::now();
        let answer = entrypoint.call("add", args![1]).await?;
        warm.add(start.elapsed());
        expect_equal(
            "a warm call's isolate_reused",
            answer.usage.isolate_reused,
            true,
        )?;
        expect_equal("a warm call's answer", number_of(answer)?, 2.0)?;
    }
    println!("3. Latencies of a small worker over TCP, one call after the other");
    println!(
        "   cold           {cold}; {} x load, entrypoint and call, each a fresh sandbox",
        cold.count()
    );
    println!(
        "   warm           {warm}; {} x call",
        grouped(warm.count() as f64)
    );
    println!();
    Ok(())
}

/// Each with a source of its own, so that nothing of one can serve another.
fn small_worker(coracle: &Coracle, index: u32) -> Worker {
    let source = format!("export default {{ add(n) {{ return n + {index}; }} }};");
    coracle.load(WorkerCode::new("main.js").es_module("main.js", source))
}

fn number_of(answer: Answer) -> Result<f64> {
    let value = answer.value()?;
    let number = value.as_f64();
    number.ok_or_else(|| format!("{value:?} is not a number").into())
}

/// Latencies of calls that went well.
#[derive(Default)]
struct Samples(Vec<Duration>);

impl Samples {
    fn add(&mut self, elapsed: Duration) {
        let index = self.0.partition_point(|other| *other <= elapsed);
        self.0.insert(index, elapsed);
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that so many percent do not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Samples {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "p50 {}, p99 {}, max {}",
            milliseconds(self.percentile(50)),
            milliseconds(self.percentile(99)),
            milliseconds(self.percentile(100))
        )
    }
}

/// The server's process.
struct Server {
    child: Child,
    announcement: String,
    address: String,
}

impl Server {
    async fn start(path: &Path) -> Result<Self> {
        let child = Command::new(path)
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--drain-delay-ms", "0", "--log-format", "text"])
            // Whatever is set for another server is not for this one.
            .env_remove("CORACLE_TOKEN_FILE")
            .env_remove("CORACLE_LIMIT")
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        // From here on it ends with this value.
        let mut server = Self {
            child,
            announcement: String::new(),
            address: String::new(),
        };
        server.announcement = server.read_announcement().await?;
        server.address = address_in(&server.announcement)
            .ok_or_else(|| format!("no address in {:?}", server.announcement))?
            .to_owned();
        Ok(server)
    }

    /// The line that says where it listens. What it says later is read too, so that it never waits for us.
    async fn read_announcement(&mut self) -> Result<String> {
        let stderr = self.child.stderr.take().ok_or("the server has no stderr")?;
        let (sender, mut lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(|line| line.ok()) {
                let _ = sender.send(line);
            }
        });
        let deadline = tokio::time::Instant::now() + START_DEADLINE;
        let mut said = String::new();
        loop {
            let Ok(Some(line)) = timeout_at(deadline, lines.recv()).await else {
                return Err(format!("the server did not start; it said: {said:?}").into());
            };
            if line.contains(" listens on ") {
                return Ok(line);
            }
            said += &line;
            said.push('\n');
        }
    }

    /// Ends it as an operator or Kubernetes would, and looks at how it ended.
    async fn end(mut self) -> Result<()> {
        let start = Instant::now();
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args(["-TERM", &pid]).status()?;
        expect_equal("kill's success", kill.success(), true)?;
        let status = self.ended().await?;
        println!(
            "The server ended on SIGTERM after {} with {status}.",
            milliseconds(start.elapsed())
        );
        expect_equal("the server's exit code", status.code(), Some(0))
    }

    async fn ended(&mut self) -> Result<ExitStatus> {
        let deadline = Instant::now() + END_DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err("the server did not end on SIGTERM".into());
            }
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `coracle 0.1.0 listens on ADDRESS; admin on ADDRESS; ...`
fn address_in(announcement: &str) -> Option<&str> {
    let (_, rest) = announcement.split_once(" listens on ")?;
    rest.split(';').next().map(str::trim)
}

fn expect_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, expected {expected:?}").into()),
    }
}

fn number(value: &Value, key: &str) -> Result<f64> {
    let number = value.get(key).and_then(Value::as_f64);
    number.ok_or_else(|| format!("the report has no number {key:?}").into())
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    let text = value.get(key).and_then(Value::as_str);
    text.ok_or_else(|| format!("the report has no text {key:?}").into())
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    let list = value.get(key).and_then(Value::as_array);
    list.ok_or_else(|| format!("the report has no list {key:?}").into())
}

/// The largest totals in a line.
fn totals(summary: &Value, key: &str) -> Result<String> {
    let largest = list(summary, key)?.iter().take(5);
    let texts = largest.map(|total| {
        let revenue = money(number(total, "revenueCents")?);
        Ok(format!("{} {revenue}", text(total, "key")?))
    });
    Ok(texts.collect::<Result<Vec<_>>>()?.join("   "))
}

fn money(cents: f64) -> String {
    format!(
        "{}.{:02.0}",
        grouped((cents / 100.0).floor()),
        cents % 100.0
    )
}

/// A whole number with commas.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b","[..])).into_owned()
}

fn milliseconds(elapsed: Duration) -> String {
    format!("{:.2} ms", elapsed.as_secs_f64() * 1000.0)
}
