//! Full load for a long time, in turns without hostile workers and with them.

use crate::{
    phases::ms,
    process::Server,
    rpc::{self, Called, Client},
    samples::Samples,
    workloads::Workloads,
};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

/// Who calls at once, each on a connection of its own, one call after the other.
pub(crate) const CALLERS: usize = 40;
/// Of these, who loads hostile workers where there are any.
pub(crate) const HOSTILE: usize = 2;
/// CPU time of one hostile call, in milliseconds.
pub(crate) const HOSTILE_CPU_MS_MAX: u64 = 50;
const QUIET_SECONDS: u64 = 30;
const HOSTILE_SECONDS: u64 = 120;

/// What the good callers do: each kind in turn.
#[derive(Clone, Default)]
pub(crate) struct Good {
    /// A fresh sandbox of one of the ten small workers.
    pub(crate) small_ms: Samples,
    /// A fresh sandbox of one of the ten scripts.
    pub(crate) scripts_ms: Samples,
    /// A call of a sandbox that lives.
    pub(crate) warm_ms: Samples,
}

impl Good {
    fn add(&mut self, other: &Self) {
        self.small_ms.add(&other.small_ms);
        self.scripts_ms.add(&other.scripts_ms);
        self.warm_ms.add(&other.warm_ms);
    }
}

/// What is left while nobody calls.
pub(crate) struct AtRest {
    pub(crate) after_seconds: f64,
    pub(crate) loads: usize,
    pub(crate) rss_bytes: f64,
    pub(crate) open_files: usize,
}

#[derive(Default)]
pub(crate) struct Soaked {
    /// Beside nobody, and beside hostile workers.
    pub(crate) quiet: Good,
    pub(crate) beside: Good,
    pub(crate) quiet_seconds: f64,
    pub(crate) beside_seconds: f64,
    /// Hostile calls by file and by what became of them.
    pub(crate) stopped: BTreeMap<(String, String), usize>,
    pub(crate) at_rest: Vec<AtRest>,
    pub(crate) loads: usize,
    pub(crate) panics: f64,
    pub(crate) cordons_lost: f64,
    pub(crate) threads_lost: f64,
}

impl Soaked {
    pub(crate) fn json(&self) -> Value {
        let good = |good: &Good| {
            json!({
                "small_ms": good.small_ms.json(),
                "scripts_ms": good.scripts_ms.json(),
                "warm_ms": good.warm_ms.json(),
            })
        };
        json!({
            "quiet": good(&self.quiet),
            "beside": good(&self.beside),
            "loads": self.loads,
            "panics": self.panics,
            "cordons_lost": self.cordons_lost,
        })
    }
}

/// What all callers of one turn share.
struct Turn<'a> {
    workloads: &'a Workloads,
    until: Instant,
    unique: &'a Cell<usize>,
    good: RefCell<Good>,
    stopped: &'a RefCell<BTreeMap<(String, String), usize>>,
}

/// Fails where a good call gets anything but its answer, a hostile one anything but a verdict or an exception, where the server
/// ends, or where something is left in it.
pub(crate) async fn soak(
    executable: &Path,
    options: &[&str],
    workloads: &Workloads,
    seconds: u64,
) -> anyhow::Result<Soaked> {
    let mut server = Server::start_with(executable, options)?;
    let (unique, stopped) = (Cell::new(0), RefCell::default());
    let mut soaked = Soaked::default();
    let began = Instant::now();
    while soaked.beside_seconds < seconds as f64 {
        for (turn_seconds, hostile) in [(QUIET_SECONDS, 0), (HOSTILE_SECONDS, HOSTILE)] {
            let turn_began = Instant::now();
            let turn = Turn {
                workloads,
                until: turn_began + Duration::from_secs(turn_seconds),
                unique: &unique,
                good: RefCell::default(),
                stopped: &stopped,
            };
            let good = (0..CALLERS - HOSTILE).map(|_| turn.call_good(&server.address));
            let hostile = (0..hostile).map(|first| turn.call_hostile(&server.address, first));
            futures::try_join!(
                futures::future::try_join_all(good),
                futures::future::try_join_all(hostile),
            )?;
            let took = turn_began.elapsed().as_secs_f64();
            if turn_seconds == QUIET_SECONDS {
                soaked.quiet.add(&turn.good.borrow());
                soaked.quiet_seconds += took;
            } else {
                soaked.beside.add(&turn.good.borrow());
                soaked.beside_seconds += took;
            }
        }
        anyhow::ensure!(server.lives(), "the server has ended");
        is_empty(&server).await?;
        let at_rest = AtRest {
            after_seconds: began.elapsed().as_secs_f64(),
            loads: unique.get(),
            rss_bytes: server.rss_bytes()?,
            open_files: server.open_files(),
        };
        eprintln!(
            "soak: {:.0} s, {} loads, {:.1} MiB, {} files, small p99 {:.2} ms beside, {:.2} ms alone",
            at_rest.after_seconds,
            at_rest.loads,
            at_rest.rss_bytes / f64::from(1 << 20),
            at_rest.open_files,
            soaked.beside.small_ms.quantile(0.99),
            soaked.quiet.small_ms.quantile(0.99),
        );
        soaked.at_rest.push(at_rest);
    }
    soaked.loads = unique.get();
    soaked.panics = server.metric("coracle_panics_total")?;
    soaked.cordons_lost = server.metric("coracle_cordons_lost_total")?;
    soaked.threads_lost = server.metric("coracle_threads_lost")?;
    server.stop()?;
    soaked.stopped = stopped.into_inner();
    Ok(soaked)
}

/// Waits until nothing of the clients' is left, and a little longer for memory that is given back later.
async fn is_empty(server: &Server) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    for name in [
        "coracle_connections",
        "coracle_sessions_live",
        "coracle_workers_live",
        "coracle_isolates_live",
        "coracle_calls_in_flight",
    ] {
        while server.metric(name)? != 0.0 {
            if Instant::now() > deadline {
                bail!("{name} is {} with no client left", server.metric(name)?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

impl Turn<'_> {
    fn next(&self) -> usize {
        self.unique.set(self.unique.get() + 1);
        self.unique.get()
    }

    async fn call_good(&self, address: &str) -> anyhow::Result<()> {
        let client = Client::connect(address).await?;
        let (warm, _) = self.workloads.small.unique(0);
        let warm_worker = client.load(&warm.source);
        let warm_entrypoint = rpc::entrypoint(&warm_worker, 0, 0);
        rpc::call_expecting(&warm_entrypoint, &warm.argument, &warm.expected).await?;
        for round in 0.. {
            let began = Instant::now();
            if began > self.until {
                break;
            }
            let set = match round % 5 {
                4 => None,
                3 => Some(&self.workloads.scripts),
                _ => Some(&self.workloads.small),
            };
            match set {
                None => {
                    rpc::call_expecting(&warm_entrypoint, &warm.argument, &warm.expected).await?;
                }
                Some(set) => {
                    let (workload, source) = set.unique(self.next());
                    let worker = client.load(&source);
                    let entrypoint = rpc::entrypoint(&worker, 0, 0);
                    rpc::call_expecting(&entrypoint, &workload.argument, &workload.expected)
                        .await?;
                }
            }
            let took = ms(began);
            let mut good = self.good.borrow_mut();
            match round % 5 {
                4 => good.warm_ms.push(took),
                3 => good.scripts_ms.push(took),
                _ => good.small_ms.push(took),
            }
        }
        Ok(())
    }

    async fn call_hostile(&self, address: &str, first: usize) -> anyhow::Result<()> {
        let client = Client::connect(address).await?;
        let hostile = &self.workloads.hostile;
        for round in first.. {
            if Instant::now() > self.until {
                break;
            }
            let (file, source) = &hostile[round % hostile.len()];
            let source = format!("{source}// {}\n", self.next());
            let worker = client.load(&source);
            let entrypoint = rpc::entrypoint_within(&worker, HOSTILE_CPU_MS_MAX);
            let called = rpc::call(&entrypoint, &Value::Null).await;
            let ended = ending(&called.with_context(|| file.clone())?);
            *self
                .stopped
                .borrow_mut()
                .entry((file.clone(), ended))
                .or_default() += 1;
        }
        Ok(())
    }
}

/// What became of a hostile call, in a word.
pub(crate) fn ending(called: &Called) -> String {
    match called {
        Called::Value { .. } => "answers".into(),
        Called::Threw(what) => {
            let name = what.split(':').next().unwrap_or_default();
            format!("{name} thrown")
        }
        Called::Stopped(stopped) => stopped.limit.clone(),
    }
}
