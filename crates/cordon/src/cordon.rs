//! One cordon from the outside: its process, what waits to be sent to it, and its ledger.

use crate::{
    frame,
    hand_over::{self, Pipe},
    ledger::Ledger,
    process,
    protocol::{Order, State, Used},
};
use coracle_isolate::HandedDown;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio, ioctl_fionread, write},
};
use std::{
    collections::{HashMap, VecDeque},
    io,
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

/// Orders that wait to go together, at most: the first should not wait long while isolates have nothing to do.
const POSTED_MAX: usize = 8;
/// The same in bytes.
const POSTED_BYTES_MAX: usize = 64 << 10;

/// How often whoever waits for a full pipe looks whether it still matters.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What has become of an order that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// It waits, and it is the first one.
    First,
    /// It waits with others, or nothing does.
    More,
}

/// A cordon, from before its process is there until after it is gone.
pub(crate) struct Cordon {
    /// Never reused.
    pub(crate) id: u64,
    outgoing: Mutex<Outgoing>,
    /// What it has said and nobody has read, once its process is there.
    said: Mutex<Option<OwnedFd>>,
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
    /// There once the process is. It does not wait.
    pipe: Option<OwnedFd>,
    /// Frames that go together.
    posted: Vec<u8>,
    posted_count: usize,
    /// Frames that the pipe did not take.
    backlog: VecDeque<Vec<u8>>,
    backlog_bytes: usize,
    /// Whether the thread that writes is in the middle of a frame.
    writing: bool,
    closed: bool,
}

impl Cordon {
    pub(crate) fn new(id: u64, now: Duration) -> Self {
        Self {
            id,
            outgoing: Mutex::default(),
            said: Mutex::default(),
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

    /// Starts the process: `executable cordon`, with nothing of ours but pipes and the image. What it says comes out of the
    /// one that is returned.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn spawn(&self, executable: &Path, image: HandedDown) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        let (orders, told) = (Pipe::new()?, Pipe::new()?);
        ioctl_fionbio(&orders.writer, true)?;
        let mut process = whole(&self.process);
        hand_over::give(
            &ours,
            orders.reader.as_fd(),
            told.writer.as_fd(),
            image.transpiler.as_ref().map(AsFd::as_fd),
        )?;
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
        whole(&self.said).get_or_insert(told.reader.try_clone()?);
        whole(&self.outgoing).pipe = Some(orders.writer);
        self.wake.notify_all();
        Ok(told.reader)
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
        outgoing.backlog.clear();
        outgoing.posted.clear();
        outgoing.pipe = None;
        drop(outgoing);
        self.wake.notify_all();
    }

    /// Waits for the process that has been ended or has ended itself. How that came about, for those who lost something.
    pub(crate) fn bury(&self) -> String {
        self.close();
        let process = whole(&self.process).take();
        let status = process.and_then(|mut process| {
            // One that only closed its pipe still runs.
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

    /// Puts an order with those that [`Cordon::deliver`] sends. Where that would be many, they go at once.
    pub(crate) fn post(&self, order: &Order) -> Posted {
        let mut outgoing = whole(&self.outgoing);
        if outgoing.closed {
            return Posted::More;
        }
        let outcome = frame::append(order, &mut outgoing.posted);
        if outcome.is_err() {
            drop(outgoing);
            self.end("it was to be sent more than a frame holds");
            return Posted::More;
        }
        outgoing.posted_count += 1;
        if outgoing.posted_count >= POSTED_MAX || outgoing.posted.len() >= POSTED_BYTES_MAX {
            self.deliver_from(outgoing);
            return Posted::More;
        }
        match outgoing.posted_count {
            1 => Posted::First,
            _ => Posted::More,
        }
    }

    /// Sends what was posted, at once if the pipe takes it, and never waits.
    pub(crate) fn deliver(&self) {
        self.deliver_from(whole(&self.outgoing));
    }

    /// Sends an order and whatever was posted before.
    pub(crate) fn send(&self, order: &Order) {
        self.post(order);
        self.deliver();
    }

    fn deliver_from(&self, mut outgoing: MutexGuard<'_, Outgoing>) {
        if outgoing.closed || outgoing.posted.is_empty() {
            return;
        }
        let written = match &outgoing.pipe {
            // What is wrong, if it is not just full, its reader finds out.
            Some(pipe) if outgoing.backlog.is_empty() && !outgoing.writing => {
                write(pipe, &outgoing.posted).unwrap_or_default()
            }
            _ => 0,
        };
        outgoing.posted_count = 0;
        if written == outgoing.posted.len() {
            outgoing.posted.clear();
            outgoing.posted.shrink_to(frame::BUFFER_KEPT_BYTES);
            return;
        }
        let mut rest = std::mem::take(&mut outgoing.posted);
        rest.drain(..written);
        outgoing.backlog_bytes += rest.len();
        outgoing.backlog.push_back(rest);
        let stuck = outgoing.backlog_bytes > BACKLOG_BYTES_MAX;
        drop(outgoing);
        self.wake.notify_all();
        if stuck {
            self.end("it did not read what it was sent");
        }
    }

    /// Whether it has said something that nobody has read yet.
    pub(crate) fn is_unread(&self) -> bool {
        let said = whole(&self.said);
        let pipe = said.as_ref();
        pipe.is_some_and(|pipe| ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0))
    }

    /// Writes all of it, and waits as long as that takes, unless nothing more is to be sent.
    fn write_all(&self, pipe: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if whole(&self.outgoing).closed {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let mut writable = [PollFd::new(pipe, PollFlags::OUT)];
            match poll(&mut writable, Some(&LOOK_EVERY)).and_then(|_| write(pipe, bytes)) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes what could not be sent at once, on a thread of its own, until the cordon is gone.
    pub(crate) fn write_on(&self) {
        let mut outgoing = whole(&self.outgoing);
        loop {
            if outgoing.closed {
                return;
            }
            let Some(pipe) = outgoing
                .pipe
                .as_ref()
                .filter(|_| !outgoing.backlog.is_empty())
                .and_then(|pipe| pipe.try_clone().ok())
            else {
                outgoing = self
                    .wake
                    .wait(outgoing)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(frame) = outgoing.backlog.pop_front() else {
                continue;
            };
            outgoing.writing = true;
            drop(outgoing);
            let written = self.write_all(&pipe, &frame);
            outgoing = whole(&self.outgoing);
            outgoing.writing = false;
            outgoing.backlog_bytes = outgoing.backlog_bytes.saturating_sub(frame.len());
            if written.is_err() {
                // Its reader finds out.
                outgoing.backlog.clear();
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
    use crate::frame::{Filled, Frames};

    /// What a process of the cordon would read from.
    fn orders(cordon: &Cordon) -> OwnedFd {
        let Pipe { reader, writer } = Pipe::new().unwrap();
        ioctl_fionbio(&writer, true).unwrap();
        whole(&cordon.outgoing).pipe = Some(writer);
        reader
    }

    /// What the next order says.
    fn told_bytes_max(frames: &mut Frames, orders: &OwnedFd) -> u64 {
        loop {
            if let Some(content) = frames.next().unwrap() {
                let Order::PoolMemory { bytes_max } = frame::content(content).unwrap() else {
                    panic!("another order");
                };
                return bytes_max;
            }
            let filled = frames.fill(orders).unwrap();
            assert_ne!(filled, Filled::End);
        }
    }

    #[test]
    fn orders_that_are_posted_go_together_and_not_later_than_when_they_are_many() {
        let cordon = Cordon::new(1, Duration::ZERO);
        let orders = orders(&cordon);
        let post = |bytes_max| cordon.post(&Order::PoolMemory { bytes_max });
        let mut frames = Frames::new(100);
        assert_eq!(post(0), Posted::First);
        assert_eq!(post(1), Posted::More);
        assert_eq!(ioctl_fionread(&orders).unwrap(), 0);
        cordon.deliver();
        assert_ne!(ioctl_fionread(&orders).unwrap(), 0);
        for expected in 0..2 {
            assert_eq!(told_bytes_max(&mut frames, &orders), expected);
        }
        assert_eq!(post(2), Posted::First);
        for bytes_max in 3..2 + POSTED_MAX as u64 {
            assert_eq!(post(bytes_max), Posted::More);
        }
        for expected in 2..2 + POSTED_MAX as u64 {
            assert_eq!(told_bytes_max(&mut frames, &orders), expected);
        }
    }

    #[test]
    fn what_is_sent_before_there_is_a_process_waits_for_it() {
        let cordon = Cordon::new(1, Duration::ZERO);
        let order = Order::PoolMemory { bytes_max: 7 };
        cordon.send(&order);
        let orders = orders(&cordon);
        std::thread::scope(|scope| {
            scope.spawn(|| cordon.write_on());
            let mut frames = Frames::new(100);
            for _ in 0..2 {
                assert_eq!(told_bytes_max(&mut frames, &orders), 7);
                cordon.send(&order);
            }
            assert_eq!(cordon.bury(), "its process could not be started");
        });
    }

    #[test]
    fn orders_stay_in_order_and_whole_where_the_pipe_is_full() {
        let cordon = Cordon::new(1, Duration::ZERO);
        let orders = orders(&cordon);
        std::thread::scope(|scope| {
            scope.spawn(|| cordon.write_on());
            // Far more than a pipe holds, while nobody reads.
            for bytes_max in 0..100_000 {
                cordon.send(&Order::PoolMemory { bytes_max });
            }
            let mut frames = Frames::new(100);
            for expected in 0..100_000 {
                assert_eq!(told_bytes_max(&mut frames, &orders), expected);
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
