//! The usage ledger: what each tenant and worker has cost, in a file that is only added to.
//!
//! Calls are summed by tenant, worker and outcome, and every second a line of JSON is written for each sum that is not
//! nothing. So the file is exact, however many calls there are, and its size is bounded by how many tenants and workers are
//! active. What can't be written is kept and written later; a process that is killed loses its last second.

use coracle_isolate::{FUEL_SCHEDULE, Usage};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How often lines are written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Sums that are kept in memory. Calls of further workers are summed without their worker's name.
const SUMS_MAX: usize = 10_000;
/// What a line has of a worker's name.
const WORKER_BYTES_MAX: usize = 200;

/// One line: what the calls of a worker have cost that ended alike, within a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLine {
    /// When it was written: milliseconds since 1970.
    pub at_ms: u64,
    /// Who pays.
    pub tenant: String,
    /// The id that it was got by, at most 200 bytes of it; none for one that was loaded, and where there are too many.
    pub worker: Option<String>,
    /// As in `coracle_invocations_total`: `ok`, `threw`, or the kind of a verdict; `after` for what was done after the answer.
    pub outcome: String,
    /// By which prices fuel is counted.
    pub fuel_schedule: u32,
    /// The sums.
    #[serde(flatten)]
    pub sums: UsageSums,
}

/// What calls have cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSums {
    /// How many calls.
    pub calls: u64,
    /// Fuel for evaluating modules.
    pub fuel_load: u64,
    /// Fuel for calls.
    pub fuel_run: u64,
    /// CPU time in microseconds.
    pub cpu_us: u64,
    /// Wall time in microseconds.
    pub wall_us: u64,
    /// Bytes of arguments.
    pub bytes_in: u64,
    /// Bytes of results.
    pub bytes_out: u64,
    /// Requests and calls that left.
    pub subrequests: u64,
}

impl UsageSums {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.fuel_load += other.fuel_load;
        self.fuel_run += other.fuel_run;
        self.cpu_us += other.cpu_us;
        self.wall_us += other.wall_us;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.subrequests += other.subrequests;
    }

    fn of(usage: &Usage, calls: u64) -> Self {
        Self {
            calls,
            fuel_load: usage.fuel_load,
            fuel_run: usage.fuel_run,
            cpu_us: usage.cpu_us,
            wall_us: usage.wall_us,
            bytes_in: usage.bytes_in,
            bytes_out: usage.bytes_out,
            subrequests: usage.subrequests.into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Account {
    tenant: Arc<str>,
    worker: Option<Box<str>>,
    outcome: &'static str,
}

type Sums = HashMap<Account, UsageSums>;

/// A file that usage is written to. Dropping it writes what is left.
pub struct UsageLedger {
    sums: Arc<Mutex<Sums>>,
    /// Asks for what is there to be written now. There until it is dropped.
    flushes: Option<mpsc::Sender<mpsc::SyncSender<()>>>,
    writer: Option<JoinHandle<()>>,
}

impl UsageLedger {
    /// Opens the file, or makes it for its owner only. It is opened anew for each second, so it may be moved away.
    ///
    /// # Errors
    /// It can't be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        append(path, b"")?;
        let sums: Arc<Mutex<Sums>> = Arc::default();
        let (flushes, asked) = mpsc::channel();
        let writer = Writer {
            path: path.to_owned(),
            sums: Arc::clone(&sums),
            has_failed: false,
        };
        let thread = thread::Builder::new().name("usage".into());
        Ok(Self {
            writer: Some(thread.spawn(move || writer.run(&asked))?),
            flushes: Some(flushes),
            sums,
        })
    }

    /// A call is over.
    pub(crate) fn count(
        &self,
        tenant: &Arc<str>,
        worker: Option<&str>,
        outcome: &'static str,
        usage: &Usage,
    ) {
        self.add(tenant, worker, outcome, UsageSums::of(usage, 1));
    }

    /// Something was done after a call's answer.
    pub(crate) fn count_after(&self, tenant: &Arc<str>, worker: Option<&str>, usage: &Usage) {
        self.add(tenant, worker, "after", UsageSums::of(usage, 0));
    }

    /// Writes what is there, if it can be written.
    pub(crate) fn flush(&self) {
        let (written, done) = mpsc::sync_channel(1);
        let asked = self.flushes.as_ref().map(|flushes| flushes.send(written));
        if asked.is_some_and(|asked| asked.is_ok()) {
            // The writer is there as long as this is.
            let _ = done.recv();
        }
    }

    fn add(&self, tenant: &Arc<str>, worker: Option<&str>, outcome: &'static str, more: UsageSums) {
        let worker = worker.map(|name| name[..name.floor_char_boundary(WORKER_BYTES_MAX)].into());
        let mut account = Account {
            tenant: Arc::clone(tenant),
            worker,
            outcome,
        };
        let mut sums = lock(&self.sums);
        if sums.len() >= SUMS_MAX && !sums.contains_key(&account) {
            account.worker = None;
        }
        sums.entry(account).or_default().add(&more);
    }
}

impl Drop for UsageLedger {
    fn drop(&mut self) {
        self.flushes = None;
        if let Some(writer) = self.writer.take() {
            // It has nothing to tell; a panic of it is one.
            let _ = writer.join();
        }
    }
}

struct Writer {
    path: PathBuf,
    sums: Arc<Mutex<Sums>>,
    has_failed: bool,
}

impl Writer {
    fn run(mut self, flushes: &mpsc::Receiver<mpsc::SyncSender<()>>) {
        loop {
            let asked = flushes.recv_timeout(INTERVAL);
            self.write();
            match asked {
                Ok(written) => drop(written.send(())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn write(&mut self) {
        let sums = std::mem::take(&mut *lock(&self.sums));
        if sums.is_empty() {
            return;
        }
        match append(&self.path, &lines(&sums)) {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                // Once, or a full disk would fill the log too.
                if !std::mem::replace(&mut self.has_failed, true) {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "usage can't be written; it is kept and written later");
                }
                let mut kept = lock(&self.sums);
                for (account, sum) in sums {
                    kept.entry(account).or_default().add(&sum);
                }
            }
        }
    }
}

fn lock(sums: &Mutex<Sums>) -> MutexGuard<'_, Sums> {
    sums.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lines(sums: &Sums) -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at_ms = since.map_or(0, |since| since.as_millis() as u64);
    let mut text = Vec::new();
    for (account, sums) in sums {
        let line = UsageLine {
            at_ms,
            tenant: (*account.tenant).to_owned(),
            worker: account.worker.as_deref().map(str::to_owned),
            outcome: account.outcome.to_owned(),
            fuel_schedule: FUEL_SCHEDULE,
            sums: *sums,
        };
        // Texts and numbers always have JSON.
        if serde_json::to_writer(&mut text, &line).is_ok() {
            text.push(b'\n');
        }
    }
    text
}

/// All or nothing: a part of it is cut off again.
fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let before = file.metadata()?.len();
    let written = file.write_all(text);
    if written.is_err() && file.metadata()?.len() > before {
        file.set_len(before)?;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Vec<UsageLine> {
        let text = std::fs::read_to_string(path).expect("a file");
        let lines = text.lines().map(serde_json::from_str::<UsageLine>);
        let mut lines: Vec<_> = lines.collect::<Result<_, _>>().expect("lines");
        lines.iter_mut().for_each(|line| line.at_ms = 0);
        lines.sort_by(|a, b| (&a.tenant, &a.worker).cmp(&(&b.tenant, &b.worker)));
        lines
    }

    fn usage(fuel_run: u64) -> Usage {
        Usage {
            fuel_run,
            ..Usage::default()
        }
    }

    #[test]
    fn calls_are_summed_and_none_is_lost() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("usage");
        let ledger = UsageLedger::open(&path).expect("a file");
        let (acme, other): (Arc<str>, Arc<str>) = ("acme".into(), "other".into());
        for fuel in 1..=100 {
            ledger.count(&acme, Some("w\n\"1"), "ok", &usage(fuel));
        }
        ledger.count_after(&acme, None, &usage(7));
        ledger.count(&other, None, "fuel", &usage(9));
        drop(ledger);
        let lines = read(&path);
        let told: Vec<_> = lines
            .iter()
            .map(|line| {
                let UsageLine {
                    tenant,
                    worker,
                    outcome,
                    sums,
                    ..
                } = line;
                (
                    &tenant[..],
                    worker.as_deref(),
                    &outcome[..],
                    sums.calls,
                    sums.fuel_run,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("acme", None, "after", 0, 7),
                ("acme", Some("w\n\"1"), "ok", 100, 5050),
                ("other", None, "fuel", 1, 9)
            ]
        );
    }

    #[test]
    fn too_many_workers_are_summed_without_their_names() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("usage");
        let ledger = UsageLedger::open(&path).expect("a file");
        let acme: Arc<str> = "acme".into();
        for number in 0..SUMS_MAX + 50 {
            ledger.count(&acme, Some(&number.to_string()), "ok", &usage(1));
        }
        assert!(lock(&ledger.sums).len() <= SUMS_MAX + 1);
        drop(ledger);
        let calls: u64 = read(&path).iter().map(|line| line.sums.calls).sum();
        assert_eq!(calls, SUMS_MAX as u64 + 50);
    }

    /// What can't be written is not gone.
    #[test]
    fn what_can_not_be_written_is_written_later() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("there/usage");
        let mut writer = Writer {
            path: path.clone(),
            sums: Arc::default(),
            has_failed: false,
        };
        let account = Account {
            tenant: "acme".into(),
            worker: None,
            outcome: "ok",
        };
        let one = UsageSums::of(&usage(5), 1);
        lock(&writer.sums).insert(account.clone(), one);
        writer.write();
        lock(&writer.sums).entry(account).or_default().add(&one);
        std::fs::create_dir(folder.path().join("there")).expect("a folder");
        writer.write();
        assert_eq!(read(&path)[0].sums.fuel_run, 10);
    }
}
