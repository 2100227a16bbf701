//! The server's process: starting it, what it uses, ending it.

use anyhow::{Context, bail};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) started: Instant,
}

impl Server {
    pub(crate) fn start(executable: &Path) -> anyhow::Result<Self> {
        let started = Instant::now();
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let mut child = Command::new(executable)
            .args([
                "serve",
                "--listen",
                &address,
                "--admin",
                "127.0.0.1:0",
                "--drain-delay-ms",
                "0",
                // For the thousand calls at once.
                "--limit",
                "subrequests_max=2000",
                "--limit",
                "subrequests_in_flight_max=1000",
            ])
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| executable.display().to_string())?;
        // What it says is read, so that it never waits for us; the socket tells when it answers.
        if let Some(stderr) = child.stderr.take() {
            std::thread::spawn(move || {
                BufReader::new(stderr)
                    .lines()
                    .map_while(Result::ok)
                    .for_each(drop)
            });
        }
        Ok(Self {
            child,
            address,
            started,
        })
    }

    fn file(&self, name: &str) -> anyhow::Result<String> {
        Ok(fs::read_to_string(format!(
            "/proc/{}/{name}",
            self.child.id()
        ))?)
    }

    /// CPU time of all its threads in microseconds.
    pub(crate) fn cpu_us(&self) -> anyhow::Result<f64> {
        let mut total = 0.0;
        for entry in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(entry?.path().join("schedstat")).unwrap_or_default();
            total += text
                .split(' ')
                .next()
                .and_then(|ns| ns.parse::<f64>().ok())
                .unwrap_or(0.0)
                / 1000.0;
        }
        Ok(total)
    }

    /// Resident memory in bytes.
    pub(crate) fn rss_bytes(&self) -> anyhow::Result<f64> {
        self.memory("Rss:")
    }

    /// Resident memory with shared pages divided among those who share them, in bytes.
    pub(crate) fn pss_bytes(&self) -> anyhow::Result<f64> {
        self.memory("Pss:")
    }

    fn memory(&self, field: &str) -> anyhow::Result<f64> {
        let text = self.file("smaps_rollup")?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .context("no such field")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kib * 1024.0)
    }

    /// Ends it as Kubernetes would.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()?;
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait()? {
                return if status.success() {
                    Ok(())
                } else {
                    bail!("the server ended with {status}")
                };
            }
            if Instant::now() > deadline {
                bail!("the server did not end");
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}
