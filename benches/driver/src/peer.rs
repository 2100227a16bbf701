//! workerd, measured by `benches/peers/workerd` in the same run.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::{path::Path, process::Command};

pub(crate) fn measure(benches: &Path, quick: bool) -> anyhow::Result<Value> {
    eprintln!("measuring: workerd");
    let mut command = Command::new(benches.join("peers/workerd/run"));
    if quick {
        command.arg("--quick");
    }
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("benches/peers/workerd/run")?;
    ensure!(
        output.status.success(),
        "workerd could not be measured; `--alone` measures without it"
    );
    serde_json::from_slice(&output.stdout).context("what benches/peers/workerd/run printed")
}
