//! What hostile workers do, a long time under load, and what cordons cost: docs/reliability.md.

use crate::{
    peer,
    phases::{self, SMALL, ms},
    process::Server,
    report::{self, mib},
    rpc::{self, Client},
    samples::Samples,
    soak::{self, CALLERS, HOSTILE, HOSTILE_CPU_MS_MAX, Soaked},
    workloads::Workloads,
};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    fmt::Write,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

/// What one hostile worker did.
struct Endured {
    ended: String,
    ms: f64,
    /// A neighbour's calls meanwhile.
    neighbour_ms: Samples,
    grown_bytes: f64,
}

/// What the same costs with sandboxes in processes or on threads.
struct Cost {
    cold_ms: Samples,
    cold_busy_cpu_us: f64,
    warm_ms: Samples,
    warm_cpu_us: f64,
    memory_bytes: f64,
}

pub(crate) struct Figures {
    endured: Vec<(String, Endured)>,
    peer: Option<Value>,
    refill_ms: Samples,
    cordons: Cost,
    threads: Cost,
    soaked: Soaked,
}

/// Measures everything; `seconds` of it with hostile workers under load.
pub(crate) async fn measure(
    executable: &Path,
    benches: &Path,
    workloads: &Workloads,
    seconds: u64,
    alone: bool,
) -> anyhow::Result<Figures> {
    let peer = (!alone).then(|| peer::hostile(benches)).transpose()?;
    let endured = hostile(executable, workloads).await?;
    let refill_ms = {
        let server = Server::start(executable)?;
        let client = Client::connect(&server.address).await?;
        let refill_ms = phases::refill(&server, &client, 30).await?;
        server.stop()?;
        refill_ms
    };
    let cordons = cost(executable, workloads, "cordons").await?;
    let threads = cost(executable, workloads, "threads").await?;
    let soaked = soak::soak(executable, &[], workloads, seconds).await?;
    Ok(Figures {
        endured,
        peer,
        refill_ms,
        cordons,
        threads,
        soaked,
    })
}

/// Each hostile worker by itself, all in one server, with a neighbour who calls all the time.
async fn hostile(
    executable: &Path,
    workloads: &Workloads,
) -> anyhow::Result<Vec<(String, Endured)>> {
    let mut server = Server::start(executable)?;
    let client = Client::connect(&server.address).await?;
    let beside = Client::connect(&server.address).await?;
    let neighbour = rpc::entrypoint(&beside.load(SMALL), 0, 0);
    for _ in 0..200 {
        rpc::call_expecting(&neighbour, &json!(1), &json!(2)).await?;
    }
    let mut endured = Vec::new();
    for (file, source) in &workloads.hostile {
        eprintln!("reliability: {file}");
        let before = server.rss_bytes()?;
        let over = Rc::new(Cell::new(false));
        let calling = tokio::task::spawn_local({
            let (neighbour, over) = (neighbour.clone(), Rc::clone(&over));
            async move {
                let mut samples = Samples::default();
                while !over.get() || samples.count() < 20 {
                    let began = Instant::now();
                    rpc::call_expecting(&neighbour, &json!(1), &json!(2)).await?;
                    samples.push(ms(began));
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                anyhow::Ok(samples)
            }
        });
        let peak = Rc::new(Cell::new(before));
        let watching = tokio::task::spawn_local({
            let (family, peak) = (server.family(), Rc::clone(&peak));
            async move {
                loop {
                    let now: f64 = family.iter().map(|pid| Server::rss_bytes_of(*pid)).sum();
                    peak.set(peak.get().max(now));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
        let began = Instant::now();
        let entrypoint = rpc::entrypoint_within(&client.load(source), HOSTILE_CPU_MS_MAX);
        let called = rpc::call(&entrypoint, &Value::Null).await?;
        let took = ms(began);
        over.set(true);
        let neighbour_ms = calling.await??;
        watching.abort();
        anyhow::ensure!(server.lives(), "{file} has ended the server");
        endured.push((
            file.clone(),
            Endured {
                ended: soak::ending(&called),
                ms: took,
                neighbour_ms,
                grown_bytes: peak.get() - before,
            },
        ));
    }
    server.stop()?;
    Ok(endured)
}

async fn cost(executable: &Path, workloads: &Workloads, isolation: &str) -> anyhow::Result<Cost> {
    eprintln!("reliability: what {isolation} cost");
    let options = ["--isolation", isolation];
    let server = Server::start_with(executable, &options)?;
    let client = Client::connect(&server.address).await?;
    let mut unique = 0;
    phases::cold(&client, &workloads.small, &mut unique, 500).await?;
    let cold_ms = phases::cold(&client, &workloads.small, &mut unique, 4_000).await?;
    let count = 8_000;
    let cpu = server.cpu_us()?;
    phases::cold_busy(&client, &workloads.small, unique, count).await?;
    let cold_busy_cpu_us = (server.cpu_us()? - cpu) / count as f64;
    let entrypoint = rpc::entrypoint(&client.load(SMALL), 0, 0);
    let mut warm_ms = Samples::default();
    for _ in 0..1_000 {
        rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
    }
    let cpu = server.cpu_us()?;
    for _ in 0..count {
        let began = Instant::now();
        rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
        warm_ms.push(ms(began));
    }
    let warm_cpu_us = (server.cpu_us()? - cpu) / count as f64;
    server.stop()?;
    let memory_bytes =
        phases::memory_per_isolate(executable, &options, &workloads.small, 1_000).await?;
    Ok(Cost {
        cold_ms,
        cold_busy_cpu_us,
        warm_ms,
        warm_cpu_us,
        memory_bytes,
    })
}

impl Figures {
    pub(crate) fn json(&self) -> Value {
        json!({ "soak": self.soaked.json(), "refill_ms": self.refill_ms.json() })
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::from(
            "# Reliability\n\nWritten by `make reliability`: what hostile workers do to a server and to those beside them, and the same \
             with workerd on the same machine; what ending a cordon costs; and a long time under full load.\n",
        );
        self.hostile(&mut text);
        self.cordons(&mut text);
        self.soak(&mut text);
        report::conditions(&mut text, None, None, false);
        text
    }

    fn hostile(&self, text: &mut String) {
        let _ = write!(
            text,
            "\n## Hostile workers, one at a time\n\nEach file of `benches/workloads/hostile` is loaded with a CPU limit of {HOSTILE_CPU_MS_MAX} ms and the \
             server's other limits, all in one server, while a neighbour calls a worker of its own every two milliseconds. \
             workerd is given the same CPU limit in the worker's `limits`, and is started anew for each; its neighbour asks for an \
             empty answer, once, and gives up after ten seconds.\n\n\
             | worker | Coracle: ended by | after | neighbour, slowest | memory | workerd: the worker | neighbour | memory | process |\n\
             |---|---|---:|---:|---:|---|---:|---:|---|\n",
        );
        for (file, endured) in &self.endured {
            let name = file.trim_start_matches("hostile/").trim_end_matches(".js");
            let _ = write!(
                text,
                "| {name} | {} | {:.0} ms | {:.1} ms | {:.0} MiB |",
                endured.ended,
                endured.ms,
                endured.neighbour_ms.max(),
                mib(endured.grown_bytes).max(0.0),
            );
            let peer = self.peer.as_ref().map(|peer| &peer["outcomes"][file]);
            let _ = match peer {
                None => writeln!(text, " not measured | | | |"),
                Some(peer) => writeln!(
                    text,
                    " {} | {} | {} MiB | {}{} |",
                    of_peer(&peer["worker"]),
                    of_peer(&peer["neighbour"]),
                    peer["grown_mib"],
                    peer["process"].as_str().unwrap_or("?"),
                    match peer["serves"].as_bool() {
                        Some(true) => "",
                        _ => ", serves nobody",
                    },
                ),
            };
        }
    }

    fn cordons(&self, text: &mut String) {
        let (cordons, threads) = (&self.cordons, &self.threads);
        let _ = write!(
            text,
            "\n## Cordons\n\nA cordon in which eight endless loops run is killed {} times, with a client that calls until it is answered: p50 {:.1} ms, \
             slowest {:.1} ms until the next answer, from a fresh sandbox in another cordon (budget 50 ms).\n\n\
             | | cordons | threads |\n|---|---:|---:|\n\
             | cold over TCP, p50 | {:.3} ms | {:.3} ms |\n\
             | server CPU per small cold sandbox, sixteen at a time | {:.0} µs | {:.0} µs |\n\
             | warm call over TCP, p50 | {:.3} ms | {:.3} ms |\n\
             | server CPU per warm call | {:.0} µs | {:.0} µs |\n\
             | memory of a live isolate (PSS) | {:.3} MiB | {:.3} MiB |\n",
            self.refill_ms.count(),
            self.refill_ms.quantile(0.5),
            self.refill_ms.max(),
            cordons.cold_ms.quantile(0.5),
            threads.cold_ms.quantile(0.5),
            cordons.cold_busy_cpu_us,
            threads.cold_busy_cpu_us,
            cordons.warm_ms.quantile(0.5),
            threads.warm_ms.quantile(0.5),
            cordons.warm_cpu_us,
            threads.warm_cpu_us,
            mib(cordons.memory_bytes),
            mib(threads.memory_bytes),
        );
    }

    fn soak(&self, text: &mut String) {
        let soaked = &self.soaked;
        let _ = write!(
            text,
            "\n## A long time under full load\n\n{} good callers, each on a connection of its own, call as fast as they are answered: three fresh small \
             workers, a fresh script, a call of a worker that lives, and so on. For {:.0} s in all {HOSTILE} of {CALLERS} callers (5 %) were hostile \
             and went through all of the above, for the same tenant; for {:.0} s in between they were not there. {} workers were loaded. \
             Every good answer was compared with the right one, and every hostile call was stopped or threw.\n\n\
             | good calls | n | p50 | p99 | beside hostile: n | p50 | p99 | p99 against alone |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n",
            CALLERS - HOSTILE,
            soaked.beside_seconds,
            soaked.quiet_seconds,
            soaked.loads,
        );
        let (quiet, beside) = (&soaked.quiet, &soaked.beside);
        for (name, quiet, beside) in [
            ("fresh, small", &quiet.small_ms, &beside.small_ms),
            ("fresh, script", &quiet.scripts_ms, &beside.scripts_ms),
            ("warm", &quiet.warm_ms, &beside.warm_ms),
        ] {
            let _ = writeln!(
                text,
                "| {name} | {} | {:.1} ms | {:.1} ms | {} | {:.1} ms | {:.1} ms | {:.2} × |",
                quiet.count(),
                quiet.quantile(0.5),
                quiet.quantile(0.99),
                beside.count(),
                beside.quantile(0.5),
                beside.quantile(0.99),
                beside.quantile(0.99) / quiet.quantile(0.99),
            );
        }
        let _ = write!(
            text,
            "\nPanics: {}; cordons lost: {}; threads lost: {}.\n\n\
             At rest, with no client left:\n\n| after | workers loaded | resident memory | open files |\n|---:|---:|---:|---:|\n",
            soaked.panics, soaked.cordons_lost, soaked.threads_lost,
        );
        for at_rest in &soaked.at_rest {
            let _ = writeln!(
                text,
                "| {:.0} s | {} | {:.1} MiB | {} |",
                at_rest.after_seconds,
                at_rest.loads,
                mib(at_rest.rss_bytes),
                at_rest.open_files,
            );
        }
        text.push_str("\n| hostile worker | ended by | calls |\n|---|---|---:|\n");
        for ((file, ended), count) in &soaked.stopped {
            let name = file.trim_start_matches("hostile/").trim_end_matches(".js");
            let _ = writeln!(text, "| {name} | {ended} | {count} |");
        }
    }
}

/// What became of a request to workerd.
fn of_peer(outcome: &Value) -> String {
    let ms = outcome["ms"].as_f64().unwrap_or(f64::NAN);
    match outcome["failed"].as_str() {
        None => format!("answers after {ms:.0} ms"),
        Some(failed) if failed.contains("did not answer") => format!("none in {ms:.0} ms"),
        Some(failed) if failed.contains("answered 500") => format!("threw after {ms:.0} ms"),
        Some(_) => format!("connection lost after {ms:.0} ms"),
    }
}
