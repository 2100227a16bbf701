//! The load driver: starts a server, loads it over its socket as a client would, and compares with workerd measured in
//! the same run on the same machine. `benches/run` calls it; what it writes is docs/performance.md
//! and docs/reliability.md.
//!
//! It speaks the schema directly, on one thread, so that its own cost stays small beside the server's. Every answer is
//! compared with what the workload's manifest expects.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

mod drive;
mod peer;
mod phases;
mod process;
mod reliability;
mod report;
mod rpc;
mod samples;
mod soak;
mod workloads;

use anyhow::Context;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Measures Coracle, and workerd beside it.
#[derive(Parser)]
struct Options {
    /// The server's executable.
    #[arg(long, global = true, default_value = "dist/coracle")]
    server: PathBuf,
    /// The folder of benchmarks.
    #[arg(long, global = true, default_value = "benches")]
    benches: PathBuf,
    /// Without workerd: no ratios.
    #[arg(long, global = true)]
    alone: bool,
    /// Where the report goes; standard output without it.
    #[arg(long, global = true)]
    output: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// How fast, how large: docs/performance.md.
    Measure {
        /// Fewer samples, and no error where Criterion's results are missing.
        #[arg(long)]
        quick: bool,
        /// Criterion's results, for the rows of the engine alone.
        #[arg(long, default_value = "target/criterion")]
        criterion: PathBuf,
    },
    /// One kind of load for a while, for a profiler to look at the server meanwhile.
    Drive {
        /// The kind of load.
        load: drive::Load,
        /// For how long.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// What hostile workers do, and a long time under load: docs/reliability.md.
    Reliability {
        /// How long hostile workers are among the others under load.
        #[arg(long, default_value_t = 3_600)]
        seconds: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let workloads = workloads::Workloads::read(&options.benches.join("workloads"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tasks = tokio::task::LocalSet::new();
    let (report, figures) = match &options.what {
        What::Measure { quick, criterion } => {
            let peers = match options.alone {
                true => None,
                false => Some(peer::measure(&options.benches, *quick)?),
            };
            let ours = tasks
                .block_on(
                    &runtime,
                    phases::measure(&options.server, &workloads, *quick),
                )
                .context("measuring the server")?;
            let report = report::write(&ours, peers.as_ref(), criterion, *quick)
                .context("writing the report")?;
            (report, ours.json())
        }
        What::Drive { load, seconds } => {
            let driving = drive::drive(&options.server, &workloads, *load, *seconds);
            let driven = tasks.block_on(&runtime, driving)?;
            (driven.text(), driven.json())
        }
        What::Reliability { seconds } => {
            let measuring = reliability::measure(
                &options.server,
                &options.benches,
                &workloads,
                *seconds,
                options.alone,
            );
            let figures = tasks.block_on(&runtime, measuring)?;
            (figures.text(), figures.json())
        }
    };
    match options.output {
        Some(path) => std::fs::write(&path, report).with_context(|| path.display().to_string())?,
        None => print!("{report}"),
    }
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
