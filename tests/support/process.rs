//! What the kernel says of a process.

use std::{fs, time::Instant};

/// The processes that a server has its sandboxes in.
pub fn cordons(server: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("there are processes");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|pid| status(*pid, "PPid:").is_some_and(|parent| parent == server.to_string()))
        .collect()
}

/// A server and its cordons.
pub fn family(server: u32) -> Vec<u32> {
    let mut family = cordons(server);
    family.push(server);
    family
}

/// Resident memory of a server and its cordons.
pub fn resident_bytes(server: u32) -> u64 {
    let sizes = family(server).into_iter().map(resident_bytes_of);
    sizes.sum()
}

/// Resident memory of one process.
pub fn resident_bytes_of(pid: u32) -> u64 {
    bytes(pid, "VmRSS:")
}

/// Resident memory at its largest since the processes of a server started, or since
/// [`forget_resident_peak`].
pub fn resident_bytes_peak(server: u32) -> u64 {
    let sizes = family(server).into_iter().map(|pid| bytes(pid, "VmHWM:"));
    sizes.sum()
}

/// Has [`resident_bytes_peak`] count from now on.
pub fn forget_resident_peak(server: u32) {
    for pid in family(server) {
        fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process is ours");
    }
}

/// A line of a process's status; none where it is gone.
pub fn status(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().to_owned())
}

/// 0 for one that has just gone.
fn bytes(pid: u32, field: &str) -> u64 {
    let size = status(pid, field).unwrap_or_default();
    let kibibytes: u64 = size.trim_end_matches(" kB").parse().unwrap_or(0);
    kibibytes * 1024
}

/// How much CPU the threads of a server and its cordons wanted: the time that they ran, and the time that they could have run and had
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
            wanted_before_ns: wanted_ns_of_family(pid),
        }
    }

    /// In cores, on average since [`Appetite::of`].
    pub fn cores(&self) -> f64 {
        let wanted_ns = wanted_ns_of_family(self.pid) - self.wanted_before_ns;
        wanted_ns as f64 / self.since.elapsed().as_nanos() as f64
    }
}

fn wanted_ns_of_family(server: u32) -> u64 {
    family(server).into_iter().map(wanted_ns).sum()
}

/// How long the threads of a process have run or waited for a core.
pub fn wanted_ns(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let of_task = |task: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let mut figures = text
            .split_ascii_whitespace()
            .map(|figure| figure.parse::<u64>().ok());
        Some(figures.next()?? + figures.next()??)
    };
    tasks.flatten().filter_map(of_task).sum()
}
