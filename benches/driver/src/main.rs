//! The load driver: starts a server, loads it over its socket as a client would, and compares with workerd measured in
//! the same run on the same machine. `benches/run` calls it; what it writes is docs/performance.md.
//!
//! It speaks the schema directly, on one thread, so that its own cost stays small beside the server's. Every answer is
//! compared with what the workload's manifest expects.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

mod peer;
mod phases;
mod process;
mod report;
mod rpc;
mod samples;
mod workloads;

use anyhow::Context;
use clap::Parser;
use std::path::PathBuf;

/// Measures Coracle, and workerd beside it.
#[derive(Parser)]
struct Options {
    /// The server's executable.
    #[arg(long, default_value = "dist/coracle")]
    server: PathBuf,
    /// The folder of benchmarks.
    #[arg(long, default_value = "benches")]
    benches: PathBuf,
    /// Fewer samples, and no error where Criterion's results are missing.
    #[arg(long)]
    quick: bool,
    /// Without workerd: no ratios.
    #[arg(long)]
    alone: bool,
    /// Criterion's results, for the rows of the engine alone.
    #[arg(long, default_value = "target/criterion")]
    criterion: PathBuf,
    /// Where the report goes; standard output without it.
    #[arg(long)]
    output: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let workloads = workloads::Workloads::read(&options.benches.join("workloads"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let peers = if options.alone {
        None
    } else {
        Some(peer::measure(&options.benches, options.quick)?)
    };
    let ours = tokio::task::LocalSet::new()
        .block_on(
            &runtime,
            phases::measure(&options.server, &workloads, options.quick),
        )
        .context("measuring the server")?;
    let report = report::write(&ours, peers.as_ref(), &options.criterion, options.quick)
        .context("writing the report")?;
    match options.output {
        Some(path) => std::fs::write(&path, report).with_context(|| path.display().to_string())?,
        None => print!("{report}"),
    }
    println!("{}", serde_json::to_string(&ours.json())?);
    Ok(())
}
