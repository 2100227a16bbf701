//! What is measured of the server, one after the other, with nothing else going on.

use crate::{
    process::Server,
    rpc::{self, Called, Client},
    samples::Samples,
    workloads::{Set, Workload, Workloads},
};
use anyhow::Context;
use coracle_schema::worker;
use serde_json::{Value, json};
use std::{
    cell::Cell,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

/// Figures in milliseconds, bytes and microseconds as their names say.
pub(crate) struct Figures {
    pub(crate) echo_ms: Samples,
    pub(crate) start_to_first_answer_ms: Samples,
    pub(crate) cold_ms: Samples,
    pub(crate) cold_cpu_us: f64,
    pub(crate) cold_per_second: f64,
    pub(crate) cold_busy_cpu_us: f64,
    pub(crate) cold_scripts_ms: Samples,
    pub(crate) cold_scripts_cpu_us: f64,
    pub(crate) cold_large_ms: Samples,
    pub(crate) tools_sequential_ms: Samples,
    pub(crate) tools_concurrent_ms: Samples,
    pub(crate) warm_ms: Samples,
    /// Warm calls that send a request to a gateway of the client's.
    pub(crate) gateway_ms: Samples,
    /// From the end of a cordon under load to the next answer.
    pub(crate) refill_ms: Samples,
    pub(crate) warm_cpu_us: f64,
    pub(crate) warm_per_second: f64,
    pub(crate) live_isolates: usize,
    pub(crate) memory_per_isolate_bytes: f64,
    pub(crate) memory_per_script_bytes: f64,
    pub(crate) alone_p99_ms: f64,
    pub(crate) beside_loops_ms: Samples,
    pub(crate) loops: usize,
    pub(crate) json_ms: Vec<(String, f64)>,
    pub(crate) programs_ms: Vec<(String, f64)>,
    pub(crate) loads_flat: usize,
    pub(crate) rss_before_loads_bytes: f64,
    pub(crate) rss_after_loads_bytes: f64,
}

impl Figures {
    pub(crate) fn json(&self) -> Value {
        json!({
            "echo_ms": self.echo_ms.json(),
            "start_to_first_answer_ms": self.start_to_first_answer_ms.json(),
            "cold_ms": self.cold_ms.json(),
            "cold_cpu_us": self.cold_cpu_us,
            "cold_per_second": self.cold_per_second,
            "cold_busy_cpu_us": self.cold_busy_cpu_us,
            "cold_scripts_ms": self.cold_scripts_ms.json(),
            "cold_scripts_cpu_us": self.cold_scripts_cpu_us,
            "cold_large_ms": self.cold_large_ms.json(),
            "tools_sequential_ms": self.tools_sequential_ms.json(),
            "tools_concurrent_ms": self.tools_concurrent_ms.json(),
            "warm_ms": self.warm_ms.json(),
            "gateway_ms": self.gateway_ms.json(),
            "refill_ms": self.refill_ms.json(),
            "warm_cpu_us": self.warm_cpu_us,
            "warm_per_second": self.warm_per_second,
            "memory_per_isolate_bytes": self.memory_per_isolate_bytes,
            "memory_per_script_bytes": self.memory_per_script_bytes,
            "alone_p99_ms": self.alone_p99_ms,
            "beside_loops_ms": self.beside_loops_ms.json(),
            "json_ms": self.json_ms,
            "programs_ms": self.programs_ms,
            "rss_before_loads_bytes": self.rss_before_loads_bytes,
            "rss_after_loads_bytes": self.rss_after_loads_bytes,
            "loads": self.loads_flat,
        })
    }
}

pub(crate) const SMALL: &str = "export default { async run(n) { return n + 1; } };";

const LOOPS: &str = "export default { async run() { for (;;); } };";

pub(crate) const FETCHES: &str = "export default { async run(n) { return n + (await fetch('https://gateway.test/')).status; } };";

pub(crate) async fn measure(
    executable: &Path,
    workloads: &Workloads,
    quick: bool,
) -> anyhow::Result<Figures> {
    let scale = |full: usize, less: usize| if quick { less } else { full };
    let echo_ms = echo(scale(10_000, 2_000))?;
    let mut start_to_first_answer_ms = Samples::default();
    for _ in 0..scale(7, 3) {
        let server = Server::start(executable)?;
        let client = Client::connect(&server.address).await?;
        let worker = client.load(SMALL);
        rpc::call_expecting(&rpc::entrypoint(&worker, 0, 0), &json!(1), &json!(2)).await?;
        start_to_first_answer_ms.push(ms(server.started));
        server.stop()?;
    }

    let server = Server::start(executable)?;
    let client = Client::connect(&server.address).await?;
    let mut unique = 0;

    progress("cold, one after the other");
    let small = &workloads.small;
    cold(&client, small, &mut unique, scale(500, 100)).await?;
    let cpu = server.cpu_us()?;
    let count = scale(4_000, 500);
    let cold_ms = cold(&client, small, &mut unique, count).await?;
    let cold_cpu_us = (server.cpu_us()? - cpu) / count as f64;
    let cpu = server.cpu_us()?;
    let cold_scripts_ms = cold(&client, &workloads.scripts, &mut unique, count).await?;
    let cold_scripts_cpu_us = (server.cpu_us()? - cpu) / count as f64;

    progress("cold, sixteen at a time");
    let cpu = server.cpu_us()?;
    let began = Instant::now();
    let count = scale(8_000, 1_000);
    cold_busy(&client, small, unique, count).await?;
    unique += count;
    let cold_per_second = count as f64 / began.elapsed().as_secs_f64();
    let cold_busy_cpu_us = (server.cpu_us()? - cpu) / count as f64;

    progress("cold, 20 kB");
    let cold_large_ms = cold_large(&client, workloads, scale(200, 40)).await?;

    progress("calls of tools");
    let tools_sequential_ms =
        tools(&client, &workloads.tools_sequential, scale(1_000, 100)).await?;
    let tools_concurrent_ms = tools(&client, &workloads.tools_concurrent, scale(100, 20)).await?;

    progress("warm");
    let worker = client.load(SMALL);
    let entrypoint = rpc::entrypoint(&worker, 0, 0);
    let mut warm_ms = Samples::default();
    for _ in 0..scale(1_000, 200) {
        rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
    }
    let cpu = server.cpu_us()?;
    let count = scale(10_000, 1_000);
    for _ in 0..count {
        let began = Instant::now();
        rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
        warm_ms.push(ms(began));
    }
    let warm_cpu_us = (server.cpu_us()? - cpu) / count as f64;
    let began = Instant::now();
    let calls =
        (0..count).map(|_| async { rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await });
    bounded(calls, 64).await?;
    let warm_per_second = count as f64 / began.elapsed().as_secs_f64();

    let worker = client.load_with(FETCHES, Some(rpc::gateway()));
    let entrypoint = rpc::entrypoint(&worker, 0, 0);
    let mut gateway_ms = Samples::default();
    for _ in 0..scale(1_000, 200) {
        rpc::call_expecting(&entrypoint, &json!(1), &json!(201)).await?;
    }
    for _ in 0..count {
        let began = Instant::now();
        rpc::call_expecting(&entrypoint, &json!(1), &json!(201)).await?;
        gateway_ms.push(ms(began));
    }

    progress("JSON and programs");
    let json_ms = programs(&client, &workloads.json_source, &workloads.json).await?;
    let programs_ms = programs(&client, &workloads.cpu_source, &workloads.programs).await?;

    progress("live isolates");
    let live_isolates = scale(1_000, 300);
    let memory_per_isolate_bytes =
        memory_per_isolate(executable, &[], small, live_isolates).await?;
    let memory_per_script_bytes =
        memory_per_isolate(executable, &[], &workloads.scripts, live_isolates).await?;

    progress("beside endless loops");
    let loops = 100;
    let (alone, beside_loops_ms) = beside_loops(&server, &client, loops, scale(2_000, 200)).await?;

    progress("cordons that break");
    let refill_ms = refill(&server, &client, scale(30, 5)).await?;

    progress("many loads");
    let loads_flat = scale(100_000, 5_000);
    let rss_before_loads_bytes = server.rss_bytes()?;
    cold_busy(&client, small, unique, loads_flat).await?;
    let rss_after_loads_bytes = server.rss_bytes()?;
    server.stop()?;

    Ok(Figures {
        echo_ms,
        start_to_first_answer_ms,
        cold_ms,
        cold_cpu_us,
        cold_per_second,
        cold_busy_cpu_us,
        cold_scripts_ms,
        cold_scripts_cpu_us,
        cold_large_ms,
        tools_sequential_ms,
        tools_concurrent_ms,
        warm_ms,
        gateway_ms,
        refill_ms,
        warm_cpu_us,
        warm_per_second,
        live_isolates,
        memory_per_isolate_bytes,
        memory_per_script_bytes,
        alone_p99_ms: alone.quantile(0.99),
        beside_loops_ms,
        loops,
        json_ms,
        programs_ms,
        loads_flat,
        rss_before_loads_bytes,
        rss_after_loads_bytes,
    })
}

fn progress(what: &str) {
    eprintln!("measuring: {what}");
}

pub(crate) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// What this machine takes for 300 bytes there and back over TCP, with nothing in between: the floor of the other rows.
fn echo(count: usize) -> anyhow::Result<Samples> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echoing = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut bytes = [0; 300];
        while stream.read_exact(&mut bytes).is_ok() {
            stream.write_all(&bytes)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut bytes = [0; 300];
    let mut samples = Samples::default();
    for _ in 0..count {
        let began = Instant::now();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        samples.push(ms(began));
    }
    drop(stream);
    echoing
        .join()
        .map_err(|_| anyhow::anyhow!("the echo panicked"))??;
    Ok(samples)
}

/// A fresh sandbox for each call, which calls a function of this process.
pub(crate) async fn tools(
    client: &Client,
    workload: &Workload,
    count: usize,
) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    for index in 0..count {
        let began = Instant::now();
        let worker = client.load(&format!("{}// {index}", workload.source));
        let entrypoint = rpc::entrypoint(&worker, 0, 0);
        rpc::call_with_tool(&entrypoint, &workload.expected).await?;
        samples.push(ms(began));
    }
    Ok(samples)
}

/// Load, entrypoint and call, pipelined in one round trip, each from a source that was never seen before.
pub(crate) async fn cold(
    client: &Client,
    workloads: &Set,
    unique: &mut usize,
    count: usize,
) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..count {
        let (workload, source) = workloads.unique(*unique);
        *unique += 1;
        let began = Instant::now();
        let worker = client.load(&source);
        let entrypoint = rpc::entrypoint(&worker, 0, 0);
        rpc::call_expecting(&entrypoint, &workload.argument, &workload.expected).await?;
        samples.push(ms(began));
    }
    Ok(samples)
}

pub(crate) async fn cold_busy(
    client: &Client,
    workloads: &Set,
    first: usize,
    count: usize,
) -> anyhow::Result<()> {
    let calls = (first..first + count).map(|index| async move {
        let (workload, source) = workloads.unique(index);
        let worker = client.load(&source);
        let entrypoint = rpc::entrypoint(&worker, 0, 0);
        rpc::call_expecting(&entrypoint, &workload.argument, &workload.expected).await
    });
    bounded(calls, 16).await
}

/// Runs all of them, so many at a time.
async fn bounded<F>(calls: impl Iterator<Item = F>, at_once: usize) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<u64>>,
{
    use futures::StreamExt;
    let mut done = futures::stream::iter(calls).buffer_unordered(at_once);
    while let Some(outcome) = done.next().await {
        outcome?;
    }
    Ok(())
}

async fn cold_large(
    client: &Client,
    workloads: &Workloads,
    count: usize,
) -> anyhow::Result<Samples> {
    let maker = client.load(&workloads.large_source);
    let maker = rpc::entrypoint(&maker, 0, 0);
    let mut samples = Samples::default();
    for seed in 0..count {
        let Called::Value { value: source, .. } = rpc::call(&maker, &json!(seed + 1)).await? else {
            anyhow::bail!("the maker of large modules was stopped")
        };
        let source = source.as_str().context("a source")?;
        let began = Instant::now();
        let worker = client.load(source);
        match rpc::call(&rpc::entrypoint(&worker, 0, 0), &json!(7)).await? {
            Called::Value { value, .. } if value["seed"] == json!(seed + 1) => {
                samples.push(ms(began))
            }
            _ => anyhow::bail!("a large module did not answer"),
        }
    }
    Ok(samples)
}

/// The best of twenty-five calls of each program, in CPU time, in milliseconds.
async fn programs(
    client: &Client,
    source: &str,
    programs: &[(String, Value)],
) -> anyhow::Result<Vec<(String, f64)>> {
    let worker = client.load(source);
    // Far above what they need: a program must not be stopped by the default second.
    let entrypoint = rpc::entrypoint(&worker, 0, 0);
    let mut best = Vec::new();
    for (name, expected) in programs {
        let mut samples = Samples::default();
        for _ in 0..25 {
            let cpu_us = rpc::call_expecting(&entrypoint, &json!(name), expected)
                .await
                .context(name.clone())?;
            samples.push(cpu_us as f64 / 1000.0);
        }
        best.push((name.clone(), samples.min()));
    }
    Ok(best)
}

/// Ends the cordon in which eight loops of one worker each go round, and calls until there is an answer. No samples where
/// the server has no cordons.
pub(crate) async fn refill(
    server: &Server,
    client: &Client,
    count: usize,
) -> anyhow::Result<Samples> {
    let mut refill_ms = Samples::default();
    let worker = client.load(SMALL);
    let entrypoint = rpc::entrypoint(&worker, 0, 0);
    for _ in 0..count {
        rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
        let loops: Vec<_> = (0..8)
            .map(|_| rpc::entrypoint(&client.load(LOOPS), 0, 0))
            .map(|target| {
                tokio::task::spawn_local(async move { rpc::call(&target, &json!(1)).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Some(cordon) = server.cordon_in_use() else {
            return Ok(refill_ms);
        };
        let began = Instant::now();
        let killed = std::process::Command::new("kill")
            .args(["-KILL", &cordon.to_string()])
            .status()?;
        anyhow::ensure!(killed.success(), "the cordon can't be ended");
        while !matches!(
            rpc::call(&entrypoint, &json!(1)).await?,
            Called::Value { .. }
        ) {}
        refill_ms.push(ms(began));
        for spinning in loops {
            // Each is answered, with what became of it.
            spinning.await??;
        }
        // The next one is to find a spare cordon again.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(refill_ms)
}

/// In a server of its own, so that nothing that came before is counted.
pub(crate) async fn memory_per_isolate(
    executable: &Path,
    options: &[&str],
    workloads: &Set,
    count: usize,
) -> anyhow::Result<f64> {
    let server = Server::start_with(executable, options)?;
    let client = Client::connect(&server.address).await?;
    let mut held: Vec<worker::Client> = Vec::new();
    let mut before = 0.0;
    for index in 0..count + 50 {
        if index == 50 {
            // The first ones also touch what all of them share.
            before = server.pss_bytes()?;
        }
        let (workload, source) = workloads.unique(index);
        let worker = client.load(&source);
        rpc::call_expecting(
            &rpc::entrypoint(&worker, 0, 0),
            &workload.argument,
            &workload.expected,
        )
        .await?;
        held.push(worker);
    }
    let after = server.pss_bytes()?;
    drop(held);
    server.stop()?;
    Ok((after - before) / count as f64)
}

/// Warm calls of one client, alone and while another one's endless loops run.
async fn beside_loops(
    server: &Server,
    client: &Client,
    loops: usize,
    count: usize,
) -> anyhow::Result<(Samples, Samples)> {
    let worker = client.load(SMALL);
    let entrypoint = rpc::entrypoint(&worker, 0, 0);
    let sample = async |count: usize| -> anyhow::Result<Samples> {
        let mut samples = Samples::default();
        for _ in 0..count {
            let began = Instant::now();
            rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
            samples.push(ms(began));
        }
        Ok(samples)
    };
    let alone = sample(count).await?;
    let other = Client::connect(&server.address).await?;
    let running = Rc::new(Cell::new(0));
    let workers: Vec<_> = (0..loops)
        .map(|index| {
            other.load(&format!(
                "export default {{ run() {{ for (;;); }} }}; // {index}"
            ))
        })
        .collect();
    let mut tasks = Vec::new();
    for worker in &workers {
        let entrypoint = rpc::entrypoint(worker, 0, 20_000);
        let running = Rc::clone(&running);
        tasks.push(tokio::task::spawn_local(async move {
            running.set(running.get() + 1);
            let outcome = rpc::call(&entrypoint, &Value::Null).await;
            running.set(running.get() - 1);
            matches!(outcome, Ok(Called::Stopped(_)) | Err(_))
        }));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let beside = sample(count).await?;
    anyhow::ensure!(
        running.get() > 0,
        "the loops were over before the measurement was"
    );
    for task in &tasks {
        task.abort();
    }
    Ok((alone, beside))
}
