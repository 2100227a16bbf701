//! What the kernel says of a process.

use std::{fs, time::Instant};

/// Resident memory.
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// Resident memory at its largest since the process started.
pub fn resident_bytes_peak(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .expect("a process has it");
    let kibibytes: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kibibytes * 1024
}

/// How much CPU the threads of a process wanted: the time that they ran, and the time that they could have run and had
/// to wait for a core. Unlike the CPU time alone, it does not depend on what else the machine is doing.
pub struct Appetite {
    pid: u32,
    since: Instant,
    wanted_before_ns: u64,
}

impl Appetite {
    pub fn of(pid: u32) -> Self {
        Self {
            pid,
            since: Instant::now(),
            wanted_before_ns: wanted_ns(pid),
        }
    }

    /// In cores, on average since [`Appetite::of`].
    pub fn cores(&self) -> f64 {
        let wanted_ns = wanted_ns(self.pid) - self.wanted_before_ns;
        wanted_ns as f64 / self.since.elapsed().as_nanos() as f64
    }
}

fn wanted_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let of_task = |task: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let mut figures = text
            .split_ascii_whitespace()
            .map(|figure| figure.parse::<u64>().ok());
        Some(figures.next()?? + figures.next()??)
    };
    tasks.flatten().filter_map(of_task).sum()
}
