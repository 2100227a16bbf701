//! What a cordon does: sets up its pool, confines itself, and runs isolates until its server is gone.

use crate::{
    confine,
    frame::{self, Filled, Frames},
    hand_over,
    protocol::{Order, SetUp, State, Told, Used},
};
use coracle_isolate::{
    Event, HandedDown, Image, PoolMemory, Sandbox, SandboxConfig, SandboxError, Scheduler,
    SystemClock, Threads, ThreadsConfig,
};
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Condvar, Mutex, OnceLock, PoisonError},
    thread,
    time::Duration,
};

/// How often it says how it is.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
/// The first order is small.
const SET_UP_BYTES_MAX: u64 = 1 << 10;

/// Why a cordon ended that was not told to.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// It was not started by a server.
    #[error("a cordon is started by a server, which talks to it over its standard input")]
    Alone,
    /// Its pool can't be set up; the server has been told.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The kernel does not confine it, or the server can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs a cordon: `socket` leads to the server, `image` is the guest's code that the server handed down; the transpiler's
/// and the pipes that are talked over come over the socket. Returns when the server is gone.
///
/// # Errors
/// See [`InsideError`].
pub fn inside(socket: OwnedFd, image: OwnedFd) -> Result<(), InsideError> {
    let server = UnixStream::from(socket);
    // A peer that has a name, or none at all, is not the one that starts cordons.
    if !server.peer_addr().is_ok_and(|peer| peer.is_unnamed()) {
        return Err(InsideError::Alone);
    }
    let Some(given) = hand_over::take(&server)? else {
        return Ok(());
    };
    drop(server);
    let mut orders = Orders {
        pipe: given.orders,
        frames: Frames::new(SET_UP_BYTES_MAX),
    };
    let outlet = Arc::new(Outlet(Mutex::new(File::from(given.told))));
    let set_up = match orders.next(|| {})? {
        Some(Order::SetUp(set_up)) => set_up,
        Some(_) => return Err(InsideError::Alone),
        None => return Ok(()),
    };
    orders.frames.set_frame_bytes_max(set_up.frame_bytes_max);
    let image = Image::handed_down(HandedDown {
        guest: File::from(image),
        transpiler: given.transpiler.map(File::from),
    });
    let started = start(&set_up, &image, &outlet);
    if let Err(error) = &started {
        outlet.tell(&Told::Failed {
            image: matches!(error, InsideError::Sandbox(SandboxError::Image { .. })),
            reason: error.to_string(),
        });
    }
    let (threads, fresh_bytes) = started?;
    let threads = Arc::new(threads);
    report(&threads, &outlet)?;
    confine::confine_all_threads()?;
    outlet.tell(&Told::Ready { fresh_bytes });
    serve(&mut orders, &threads)?;
    Ok(())
}

fn start(
    set_up: &SetUp,
    image: &Image,
    outlet: &Arc<Outlet>,
) -> Result<(Threads, u64), InsideError> {
    let sandbox = SandboxConfig {
        isolates_max: set_up.isolates_max,
        running_max: set_up.running_max,
        pagemap_scan: set_up.pagemap_scan,
        snapshots_bytes_max: set_up.snapshots_bytes_max,
    };
    let sandbox = Arc::new(Sandbox::new(sandbox, image)?);
    // From here on there is nobody to tell but the server: what a stranger writes to the log would be taken for ours.
    let nowhere = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere).map_err(io::Error::from)?;
    rustix::stdio::dup2_stdout(&nowhere).map_err(io::Error::from)?;
    rustix::stdio::dup2_stderr(&nowhere).map_err(io::Error::from)?;
    confine::confine_self_and_threads_to_come()?;
    let fresh_bytes = sandbox.fresh_bytes();
    let config = ThreadsConfig {
        threads: set_up.threads.max(1) as usize,
        niceness: set_up.niceness,
        pool_memory_bytes_max: set_up.pool_memory_bytes_max,
        seed: set_up.seed,
    };
    let outlet = Arc::clone(outlet);
    let memory: Arc<OnceLock<PoolMemory>> = Arc::default();
    let told = Arc::clone(&memory);
    let threads = Threads::start(
        sandbox,
        Arc::new(SystemClock::default()),
        config,
        move |event: Event| {
            let memory_bytes = told.get().map_or(0, PoolMemory::used);
            outlet.tell(&Told::Event {
                event,
                memory_bytes,
            });
        },
    );
    let _ = memory.set(threads.pool_memory());
    Ok((threads, fresh_bytes))
}

/// Says how the cordon is, now and then, from a thread that does nothing else.
fn report(threads: &Arc<Threads>, outlet: &Arc<Outlet>) -> io::Result<()> {
    let (threads, outlet) = (Arc::downgrade(threads), Arc::clone(outlet));
    let report = move || {
        let mut news = News::default();
        let (never, unused) = (Condvar::new(), Mutex::new(()));
        while let Some(threads) = threads.upgrade() {
            let stats = threads.stats();
            let tenants = news.of(&threads);
            let state = State {
                queued: number(stats.queued),
                running: number(stats.running),
                alarms: number(stats.alarms),
                memory_bytes: stats.memory_bytes,
                panics: stats.panics,
                threads_lost: number(threads.health().threads_lost),
                snapshot_hits: stats.snapshot_hits,
                snapshot_bytes: stats.snapshot_bytes,
            };
            outlet.tell(&Told::Alive { state, tenants });
            drop(threads);
            let unused = unused.lock().unwrap_or_else(PoisonError::into_inner);
            drop(never.wait_timeout(unused, ALIVE_EVERY));
        }
    };
    thread::Builder::new().name("alive".into()).spawn(report)?;
    Ok(())
}

/// What was said of each tenant the last time.
#[derive(Default)]
struct News(HashMap<u64, Used>);

impl News {
    fn of(&mut self, threads: &Threads) -> Vec<Used> {
        let used = threads.usages().into_iter().map(|(tenant, usage)| Used {
            tenant,
            cpu_us: usage.cpu_us,
            memory_bytes: usage.memory_bytes,
        });
        used.filter(|used| self.0.insert(used.tenant, *used) != Some(*used))
            .collect()
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What the server says.
struct Orders {
    pipe: OwnedFd,
    frames: Frames,
}

impl Orders {
    /// The next order; none when the server is gone. Calls `idle` before it waits for one.
    fn next(&mut self, idle: impl Fn()) -> io::Result<Option<Order>> {
        loop {
            if let Some(content) = self.frames.next()? {
                return frame::content(content).map(Some);
            }
            idle();
            if self.frames.fill(&self.pipe)? == Filled::End {
                return Ok(None);
            }
        }
    }
}

/// Takes orders until there are none any more.
fn serve(orders: &mut Orders, threads: &Threads) -> io::Result<()> {
    // Nothing else to do: what has just come in begins here, for as long as a short call takes.
    while let Some(order) = orders.next(|| threads.assist())? {
        match order {
            Order::Message(message) => threads.send_unheard(message),
            Order::PoolMemory { bytes_max } => threads.pool_memory().set_bytes_max(bytes_max),
            Order::SetUp(_) => {}
        }
    }
    Ok(())
}

/// The way out, for all threads.
struct Outlet(Mutex<File>);

impl Outlet {
    /// Waits while the server does not read. One that is gone is told nothing: the reader sees that, too.
    fn tell(&self, told: &Told) {
        let mut frame = Vec::new();
        if frame::append(told, &mut frame).is_err() {
            // Longer than any limit on what is in it allows.
            return;
        }
        let mut server = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = server.write_all(&frame);
    }
}

/// Standard input and output as a cordon has them: the socket, and the image. Everything else that is open, because whoever
/// started the server had it open, is closed. To be called before anything else is.
///
/// # Errors
/// When they can't be duplicated, or the kernel has no `close_range`.
pub fn standard_descriptors() -> io::Result<(OwnedFd, OwnedFd)> {
    const FIRST_THAT_IS_NOT_STANDARD: libc::c_uint = 3;
    #[expect(unsafe_code, reason = "no safe function closes what it does not know")]
    // SAFETY: nothing in this process has opened anything yet, so nobody's descriptor is closed under them.
    let closed = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST_THAT_IS_NOT_STANDARD,
            libc::c_uint::MAX,
            0,
        )
    };
    if closed != 0 {
        return Err(io::Error::last_os_error());
    }
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let image = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((socket, image))
}
