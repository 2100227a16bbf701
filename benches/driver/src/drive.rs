//! One kind of load, again and again, so that a profiler can be put beside the server.

use crate::{
    phases::{FETCHES, SMALL, cold, cold_busy, ms, tools},
    process::Server,
    rpc::{self, Client},
    workloads::Workloads,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    time::{Duration, Instant},
};

const MIB: f64 = 1024.0 * 1024.0;

/// What is done again and again.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Load {
    /// A small worker is loaded and called, one after the other.
    Cold,
    /// The same, sixteen at a time.
    ColdBusy,
    /// A live worker is called.
    Warm,
    /// A live worker is called, which asks a gateway of the caller's.
    Gateway,
    /// A fresh worker calls a function of the caller's ten times in turn.
    Tools,
}

/// What it came to.
pub(crate) struct Driven {
    load: Load,
    count: usize,
    wall_us: f64,
    cpu_us: f64,
    /// Resident memory of the server's processes before and after, in bytes.
    rss_bytes: [f64; 2],
}

impl Driven {
    pub(crate) fn text(&self) -> String {
        format!(
            "{:?}: {} times, {:.0} µs and {:.0} µs of server CPU each; {:.1} MiB resident before and {:.1} after\n",
            self.load,
            self.count,
            self.wall_us,
            self.cpu_us,
            self.rss_bytes[0] / MIB,
            self.rss_bytes[1] / MIB,
        )
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "count": self.count,
            "wall_us": self.wall_us,
            "cpu_us": self.cpu_us,
            "rss_bytes": self.rss_bytes,
        })
    }
}

/// Loads a server of its own; its process ids are told on standard error once it is warm.
pub(crate) async fn drive(
    executable: &Path,
    workloads: &Workloads,
    load: Load,
    seconds: u64,
) -> anyhow::Result<Driven> {
    let server = Server::start(executable)?;
    let client = Client::connect(&server.address).await?;
    let worker = client.load(SMALL);
    let entrypoint = rpc::entrypoint(&worker, 0, 0);
    let fetches = client.load_with(FETCHES, Some(rpc::gateway()));
    let fetching = rpc::entrypoint(&fetches, 0, 0);
    let mut unique = 0;
    cold_busy(&client, &workloads.small, unique, 500).await?;
    unique += 500;
    eprintln!("processes: {:?}", server.family());
    let cpu = server.cpu_us()?;
    let rss_before = server.rss_bytes()?;
    let began = Instant::now();
    let mut count = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        let times = 100;
        match load {
            Load::Cold => {
                cold(&client, &workloads.small, &mut unique, times).await?;
            }
            Load::ColdBusy => {
                cold_busy(&client, &workloads.small, unique, times).await?;
                unique += times;
            }
            Load::Warm => {
                for _ in 0..times {
                    rpc::call_expecting(&entrypoint, &json!(1), &json!(2)).await?;
                }
            }
            Load::Gateway => {
                for _ in 0..times {
                    rpc::call_expecting(&fetching, &json!(1), &json!(201)).await?;
                }
            }
            Load::Tools => {
                tools(&client, &workloads.tools_sequential, times).await?;
            }
        }
        count += times;
    }
    let wall_us = ms(began) * 1000.0 / count as f64;
    let cpu_us = (server.cpu_us()? - cpu) / count as f64;
    let rss_bytes = [rss_before, server.rss_bytes()?];
    server.stop()?;
    Ok(Driven {
        load,
        count,
        wall_us,
        cpu_us,
        rss_bytes,
    })
}
