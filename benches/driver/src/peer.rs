//! The peers, measured by what is in `benches/peers` in the same run: workerd, and Node for what V8 does.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::{path::Path, process::Command};

pub(crate) struct Peers {
    pub(crate) workerd: Value,
    pub(crate) node: Value,
}

pub(crate) fn measure(benches: &Path, quick: bool) -> anyhow::Result<Peers> {
    eprintln!("measuring: workerd");
    let mut workerd = Command::new(benches.join("peers/workerd/run"));
    if quick {
        workerd.arg("--quick");
    }
    let workerd = run(workerd)?;
    eprintln!("measuring: node");
    let mut node = Command::new("node");
    node.arg(benches.join("peers/node/run.mjs"));
    Ok(Peers {
        workerd,
        node: run(node)?,
    })
}

/// What hostile workers do to workerd.
pub(crate) fn hostile(benches: &Path) -> anyhow::Result<Value> {
    let mut workerd = Command::new(benches.join("peers/workerd/run"));
    workerd.arg("hostile");
    run(workerd)
}

fn run(mut command: Command) -> anyhow::Result<Value> {
    let name = format!("{command:?}");
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| name.clone())?;
    ensure!(
        output.status.success(),
        "{name} failed; `--alone` measures without peers"
    );
    serde_json::from_slice(&output.stdout).context(name)
}
