//! The server's process: starting it, what it uses, ending it.

use anyhow::{Context, bail};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    admin: String,
    pub(crate) started: Instant,
}

impl Server {
    pub(crate) fn start(executable: &Path) -> anyhow::Result<Self> {
        Self::start_with(executable, &[])
    }

    /// The same, with more options.
    pub(crate) fn start_with(executable: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let started = Instant::now();
        let address = format!("127.0.0.1:{}", free_port()?);
        let admin = format!("127.0.0.1:{}", free_port()?);
        let mut child = Command::new(executable)
            .args([
                "serve",
                "--listen",
                &address,
                "--admin",
                &admin,
                "--drain-delay-ms",
                "0",
                // For the thousand calls at once.
                "--limit",
                "subrequests_max=2000",
                "--limit",
                "subrequests_in_flight_max=1000",
            ])
            .args(options)
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
            admin,
            started,
        })
    }

    /// A series of `/metrics` without labels.
    pub(crate) fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut stream = TcpStream::connect(&self.admin)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .with_context(|| format!("no {name} in /metrics"))?;
        Ok(value.trim().parse()?)
    }

    /// Files that it and its cordons have open.
    pub(crate) fn open_files(&self) -> usize {
        let family = self.family().into_iter();
        let open =
            family.map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count));
        open.sum()
    }

    /// Whether it still runs.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The processes that it has sandboxes in.
    pub(crate) fn cordons(&self) -> Vec<u32> {
        let parent = format!("PPid:\t{}\n", self.child.id());
        let processes = fs::read_dir("/proc").into_iter().flatten();
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid: &u32| {
                let status = fs::read_to_string(format!("/proc/{pid}/status"));
                status.is_ok_and(|status| status.contains(&parent))
            })
            .collect()
    }

    /// The cordon that sandboxes are in, and not the spare one: it has used most CPU.
    pub(crate) fn cordon_in_use(&self) -> Option<u32> {
        let used = |pid: &u32| cpu_us(*pid).map_or(0, |us| us as u64);
        self.cordons().into_iter().max_by_key(used)
    }

    pub(crate) fn family(&self) -> Vec<u32> {
        let mut family = self.cordons();
        family.push(self.child.id());
        family
    }

    /// CPU time of all its threads and those of its cordons in microseconds.
    pub(crate) fn cpu_us(&self) -> anyhow::Result<f64> {
        self.family().into_iter().map(cpu_us).sum()
    }

    /// Resident memory in bytes.
    pub(crate) fn rss_bytes(&self) -> anyhow::Result<f64> {
        self.memory("Rss:")
    }

    /// The same of one process; 0 where it has ended.
    pub(crate) fn rss_bytes_of(pid: u32) -> f64 {
        memory(pid, "Rss:").unwrap_or(0.0)
    }

    /// Resident memory with shared pages divided among those who share them, in bytes.
    pub(crate) fn pss_bytes(&self) -> anyhow::Result<f64> {
        self.memory("Pss:")
    }

    fn memory(&self, field: &str) -> anyhow::Result<f64> {
        let sizes = self.family().into_iter().map(|pid| memory(pid, field));
        sizes.sum()
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

fn cpu_us(pid: u32) -> anyhow::Result<f64> {
    let mut total = 0.0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(entry?.path().join("schedstat")).unwrap_or_default();
        let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
        total += ns.unwrap_or(0.0) / 1000.0;
    }
    Ok(total)
}

fn memory(pid: u32, field: &str) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .context("no such field")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib * 1024.0)
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}
