//! One cordon from the outside: its process, what waits to be sent to it, and its ledger.

use crate::{
    frame, hand_over,
    ledger::Ledger,
    process,
    protocol::{Order, State, Used},
};
use coracle_isolate::HandedDown;
use rustix::net::{SendFlags, send};
use std::{
    collections::{HashMap, VecDeque},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::ExitStatusExt},
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Bytes that may wait for a cordon. They are bounded by what callers may have under way; a cordon that lets so much pile up
/// does not read.
const BACKLOG_BYTES_MAX: usize = 1 << 30;

/// A cordon, from before its process is there until after it is gone.
pub(crate) struct Cordon {
    /// Never reused.
    pub(crate) id: u64,
    outgoing: Mutex<Outgoing>,
    wake: Condvar,
    ledger: Mutex<Ledger>,
    state: Mutex<State>,
    used: Mutex<HashMap<u64, Used>>,
    /// Linear memory of its isolates as it last said, in bytes.
    memory_bytes: AtomicU64,
    /// When it last said anything, or was made, in milliseconds.
    heard_ms: AtomicU64,
    ready: AtomicBool,
    retired: AtomicBool,
    /// What its isolates may have together, as it was last told.
    told_bytes_max: AtomicU64,
    process: Mutex<Option<Child>>,
    /// What it was doing when it was first found not to answer, or not to keep to a limit; none while all is well.
    doing: Mutex<Option<Doing>>,
    /// Why it was ended, if it was.
    sentence: OnceLock<String>,
}

/// What a process had done at a moment.
#[derive(Clone, Copy)]
struct Doing {
    at: Duration,
    cpu: Duration,
}

/// How long a process that does not answer is watched before it is ended.
const LOOK_TWICE_AFTER: Duration = Duration::from_millis(300);
/// The same where it gets no core.
const STARVED_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Outgoing {
    /// There once the process is.
    socket: Option<UnixStream>,
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the thread that writes is in the middle of a frame.
    writing: bool,
    closed: bool,
}

impl Cordon {
    pub(crate) fn new(id: u64, now: Duration) -> Self {
        Self {
            id,
            outgoing: Mutex::default(),
            wake: Condvar::new(),
            ledger: Mutex::default(),
            state: Mutex::default(),
            used: Mutex::default(),
            memory_bytes: AtomicU64::new(0),
            heard_ms: AtomicU64::new(now.as_millis() as u64),
            ready: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            told_bytes_max: AtomicU64::new(u64::MAX),
            process: Mutex::default(),
            doing: Mutex::default(),
            sentence: OnceLock::new(),
        }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        whole(&self.ledger)
    }

    // --- its process ---

    /// Starts the process: `executable cordon`, with nothing of ours but a socket and the image.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn spawn(&self, executable: &Path, image: HandedDown) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut process = whole(&self.process);
        let outgoing = ours.try_clone()?;
        hand_over::give(&ours, image.transpiler.as_ref().map(AsFd::as_fd))?;
        let child = Command::new(executable)
            .arg("cordon")
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(image.guest)
            .stderr(Stdio::inherit())
            .spawn()?;
        *process = Some(child);
        drop(process);
        let mut waiting = whole(&self.outgoing);
        waiting.socket = Some(outgoing);
        self.wake.notify_all();
        Ok(ours)
    }

    /// The process, while there is one.
    pub(crate) fn pid(&self) -> Option<u32> {
        whole(&self.process).as_ref().map(Child::id)
    }

    /// Whether it has to be ended, where something is wrong with it (`wrong`). Not while it wants a core and gets none: then the
    /// machine is too busy, and whatever it owes comes later.
    pub(crate) fn is_in_trouble(&self, wrong: bool, now: Duration) -> bool {
        let mut doing = whole(&self.doing);
        if !wrong {
            *doing = None;
            return false;
        }
        let Some(pid) = self.pid() else {
            // It is gone, or was never there.
            return true;
        };
        let (cpu, wants_core) = process::activity(pid);
        let first = *doing.get_or_insert(Doing { at: now, cpu });
        let watched = now.saturating_sub(first.at);
        let is_starved = wants_core && cpu.saturating_sub(first.cpu) < watched / 2;
        watched >= LOOK_TWICE_AFTER && !is_starved || watched >= STARVED_MAX
    }

    /// Ends it. Whoever reads from it finds out, and answers for what is lost.
    pub(crate) fn end(&self, reason: impl Into<String>) {
        let _ = self.sentence.set(reason.into());
        if let Some(process) = whole(&self.process).as_mut() {
            let _ = process.kill();
        }
    }

    /// Ends it because nobody needs it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.end("nobody needed it");
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Nothing more is sent.
    pub(crate) fn close(&self) {
        let mut outgoing = whole(&self.outgoing);
        outgoing.closed = true;
        outgoing.frames.clear();
        if let Some(socket) = outgoing.socket.take() {
            // Whoever is in the middle of writing to it goes on.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        drop(outgoing);
        self.wake.notify_all();
    }

    /// Waits for the process that has been ended or has ended itself. How that came about, for those who lost something.
    pub(crate) fn bury(&self) -> String {
        self.close();
        let process = whole(&self.process).take();
        let status = process.and_then(|mut process| {
            // One that only closed its socket still runs.
            let status = process.try_wait().ok().flatten();
            let _ = process.kill();
            status.or_else(|| process.wait().ok())
        });
        match (self.sentence.get(), status) {
            (Some(sentence), _) => sentence.clone(),
            (None, Some(status)) => manner(status),
            (None, None) => "its process could not be started".into(),
        }
    }

    // --- what it says ---

    pub(crate) fn hear(&self, now: Duration) {
        self.heard_ms
            .store(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// For how long it has said nothing.
    pub(crate) fn silence(&self, now: Duration) -> Duration {
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        now.saturating_sub(heard)
    }

    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        *whole(&self.state)
    }

    pub(crate) fn set_state(&self, state: State) {
        self.set_memory_bytes(state.memory_bytes);
        *whole(&self.state) = state;
    }

    /// What it says of tenants that have isolates in it; what it says of others is nothing.
    pub(crate) fn set_used(&self, tenants: Vec<Used>) {
        let mut used = whole(&self.used);
        let ledger = whole(&self.ledger);
        for of_tenant in tenants {
            if ledger.has_had(of_tenant.tenant) {
                used.insert(of_tenant.tenant, of_tenant);
            }
        }
    }

    pub(crate) fn used_by(&self, tenant: u64) -> Option<Used> {
        whole(&self.used).get(&tenant).copied()
    }

    pub(crate) fn take_used(&self) -> Vec<Used> {
        std::mem::take(&mut *whole(&self.used))
            .into_values()
            .collect()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_memory_bytes(&self, bytes: u64) {
        self.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    // --- what it is told ---

    /// Whether it has to be told this bound, because it is lower or much higher than the last one.
    pub(crate) fn is_told_anew(&self, bytes_max: u64) -> bool {
        let told = self.told_bytes_max.load(Ordering::Relaxed);
        let anew = bytes_max < told || bytes_max > told.saturating_add(told / 16);
        if anew {
            self.told_bytes_max.store(bytes_max, Ordering::Relaxed);
        }
        anew
    }

    /// Sends an order, at once if the socket takes it, and never waits.
    pub(crate) fn send(&self, order: &Order) {
        let Ok(frame) = frame::frame(order) else {
            return self.end("it was to be sent more than a frame holds");
        };
        let mut outgoing = whole(&self.outgoing);
        if outgoing.closed {
            return;
        }
        let written = match &outgoing.socket {
            Some(socket) if outgoing.frames.is_empty() && !outgoing.writing => {
                // What is wrong, if it is not just full, its reader finds out.
                let at_once = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                send(socket.as_fd(), &frame, at_once).unwrap_or_default()
            }
            _ => 0,
        };
        if written == frame.len() {
            return;
        }
        let rest = if written == 0 {
            frame
        } else {
            frame[written..].to_vec()
        };
        outgoing.bytes += rest.len();
        outgoing.frames.push_back(rest);
        let stuck = outgoing.bytes > BACKLOG_BYTES_MAX;
        drop(outgoing);
        self.wake.notify_all();
        if stuck {
            self.end("it did not read what it was sent");
        }
    }

    /// Writes what could not be sent at once, on a thread of its own, until the cordon is gone.
    pub(crate) fn write_on(&self) {
        let mut outgoing = whole(&self.outgoing);
        loop {
            if outgoing.closed {
                return;
            }
            let Some(socket) = outgoing
                .socket
                .as_ref()
                .filter(|_| !outgoing.frames.is_empty())
                .and_then(|socket| socket.try_clone().ok())
            else {
                outgoing = self
                    .wake
                    .wait(outgoing)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(frame) = outgoing.frames.pop_front() else {
                continue;
            };
            outgoing.writing = true;
            drop(outgoing);
            let written = (&socket).write_all(&frame);
            outgoing = whole(&self.outgoing);
            outgoing.writing = false;
            outgoing.bytes = outgoing.bytes.saturating_sub(frame.len());
            if written.is_err() {
                // Its reader finds out.
                outgoing.frames.clear();
                outgoing.closed = true;
            }
        }
    }
}

fn whole<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can leave anything half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a process ended, as part of a sentence.
fn manner(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(libc::SIGSEGV), _) => "the process that it was in broke (SIGSEGV)".into(),
        (Some(libc::SIGABRT), _) => "the process that it was in broke (SIGABRT)".into(),
        (Some(libc::SIGSYS), _) => "the process that it was in did what none may (SIGSYS)".into(),
        (Some(libc::SIGKILL), _) => {
            "the process that it was in was killed, perhaps for lack of memory (SIGKILL)".into()
        }
        (Some(signal), _) => format!("the process that it was in was ended by signal {signal}"),
        (None, code) => format!(
            "the process that it was in ended with code {}",
            code.unwrap_or(-1)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_before_there_is_a_process_waits_for_it() {
        let cordon = Cordon::new(1, Duration::ZERO);
        let order = Order::PoolMemory { bytes_max: 7 };
        cordon.send(&order);
        let (ours, theirs) = UnixStream::pair().unwrap();
        whole(&cordon.outgoing).socket = Some(ours);
        std::thread::scope(|scope| {
            scope.spawn(|| cordon.write_on());
            let (mut reader, mut buffer) = (&theirs, Vec::new());
            for _ in 0..2 {
                assert!(frame::read(&mut reader, &mut buffer, 100).unwrap());
                let Order::PoolMemory { bytes_max } = frame::content(&buffer).unwrap() else {
                    panic!("another order");
                };
                assert_eq!(bytes_max, 7);
                cordon.send(&order);
            }
            assert_eq!(cordon.bury(), "its process could not be started");
        });
    }

    #[test]
    fn orders_stay_in_order_and_whole_where_the_socket_is_full() {
        let cordon = Cordon::new(1, Duration::ZERO);
        let (ours, theirs) = UnixStream::pair().unwrap();
        whole(&cordon.outgoing).socket = Some(ours);
        std::thread::scope(|scope| {
            scope.spawn(|| cordon.write_on());
            // Far more than a socket holds, while nobody reads.
            for bytes_max in 0..100_000 {
                cordon.send(&Order::PoolMemory { bytes_max });
            }
            let (mut reader, mut buffer) = (io::BufReader::new(&theirs), Vec::new());
            for expected in 0..100_000 {
                assert!(frame::read(&mut reader, &mut buffer, 100).unwrap());
                let order = frame::content(&buffer).unwrap();
                assert!(matches!(order, Order::PoolMemory { bytes_max } if bytes_max == expected));
            }
            cordon.bury();
        });
    }

    #[test]
    fn a_process_that_broke_is_told_from_one_that_was_ended() {
        assert!(manner(ExitStatus::from_raw(libc::SIGSEGV)).contains("broke (SIGSEGV)"));
        assert!(manner(ExitStatus::from_raw(libc::SIGSYS)).contains("did what none may"));
        assert!(manner(ExitStatus::from_raw(3 << 8)).contains("code 3"));
    }
}
