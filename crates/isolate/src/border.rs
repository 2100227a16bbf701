//! The border: the four imports, and everything that the guest can reach of the host.
//!
//! Every pointer, length, id and byte that arrives here is hostile. An import checks, charges its price, and puts what
//! was asked into the [`Outbox`]; the actor acts on it after the slice. An import never runs for long, never waits, and
//! never calls anything outside of this file.

use crate::{
    fuel::{self, Tariff},
    message::{Log, LogLevel, VerdictKind},
    sandbox::MEMORY_BYTES_CEILING,
};
use coracle_abi::{IMPORT_MODULE, TIMERS_MAX, finish, operation};
use coracle_loader::Limits;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use wasmtime::{Caller, Engine, Linker, Memory, ResourceLimiter};

/// Bytes that one console line, one operation's argument and one description of an exception may have.
const LOG_LINE_BYTES_MAX: usize = 64 << 10;
const ARGUMENT_BYTES_MAX: usize = 64 << 10;
const THROWN_BYTES_MAX: usize = 1 << 20;
/// Bytes that `random` fills at once: the web platform's limit.
const RANDOM_BYTES_MAX: usize = 65_536;

/// What a guest asked for, for the actor to act on.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) finished: Vec<Finished>,
    pub(crate) started: Vec<Started>,
    pub(crate) cancelled: Vec<u64>,
    pub(crate) logs: Vec<Log>,
    pub(crate) log_bytes_dropped: u64,
    /// Growths of memory that were refused, and what the last of them would have led to.
    pub(crate) memory_denied: u32,
    pub(crate) memory_wanted: Option<MemoryWanted>,
    pub(crate) memory_bytes: u64,
    /// Timers that are pending.
    timers: usize,
}

impl Outbox {
    pub(crate) fn timer_done(&mut self) {
        self.timers = self.timers.saturating_sub(1);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct MemoryWanted {
    pub(crate) bytes: u64,
    pub(crate) limit: u64,
    pub(crate) limit_name: &'static str,
}

pub(crate) struct Finished {
    pub(crate) invocation: u64,
    pub(crate) kind: u32,
    pub(crate) bytes: Vec<u8>,
    /// The length that the guest gave; more than `bytes` where they were not worth copying.
    pub(crate) length: usize,
}

pub(crate) enum Started {
    Timer { operation: u64, ms: f64 },
    Fetch { operation: u64, url: String },
}

/// Why the host itself ended an entry; found in the error that the entry returns.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) kind: VerdictKind,
    pub(crate) limit_name: &'static str,
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "stopped: {}", self.kind.as_str())
    }
}

impl std::error::Error for Stop {}

/// Memory of all isolates together, so that many small ones can't do what one large one may not.
#[derive(Clone)]
pub(crate) struct PoolMemory {
    used: Arc<AtomicU64>,
    bytes_max: u64,
}

impl PoolMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            used: Arc::default(),
            bytes_max,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let taken = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if taken > self.bytes_max {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken <= self.bytes_max
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What an entry may do, set before each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowance {
    pub(crate) log_bytes: u64,
    pub(crate) subrequests_sent: u64,
    pub(crate) subrequests_max: u64,
}

/// What a store holds. The actor shares the outbox, because it can't reach the store while an entry is suspended.
pub(crate) struct State {
    outbox: Arc<Mutex<Outbox>>,
    memory: Option<Memory>,
    memory_bytes_max: u64,
    result_bytes_max: usize,
    pool: PoolMemory,
    pool_bytes: u64,
    next_operation: u64,
    allowance: Allowance,
    now_ms: f64,
    /// Prices charged and not yet taken from the store's fuel.
    charged: u64,
    charged_total: u64,
    /// `None`: the system's.
    seed: Option<u64>,
}

impl State {
    pub(crate) fn new(
        outbox: Arc<Mutex<Outbox>>,
        limits: &Limits,
        pool: PoolMemory,
        seed: Option<u64>,
    ) -> Self {
        Self {
            outbox,
            memory: None,
            memory_bytes_max: limits.memory_bytes_max.min(MEMORY_BYTES_CEILING as u64),
            result_bytes_max: usize::try_from(limits.result_bytes_max).unwrap_or(usize::MAX),
            pool,
            pool_bytes: 0,
            next_operation: 1,
            allowance: Allowance::default(),
            now_ms: 0.0,
            charged: 0,
            charged_total: 0,
            seed,
        }
    }

    /// For the guest's set-up at build time.
    pub(crate) fn for_snapshot() -> Self {
        Self::new(
            Arc::default(),
            &Limits::default(),
            PoolMemory::new(u64::MAX),
            Some(1),
        )
    }

    /// What the guest's set-up wrote before it failed.
    pub(crate) fn setup_log(&self) -> Vec<String> {
        self.outbox()
            .logs
            .iter()
            .map(|log| log.message.clone())
            .collect()
    }

    pub(crate) fn set_memory(&mut self, memory: Memory) {
        self.memory = Some(memory);
    }

    /// Prepares an entry.
    pub(crate) fn begin(&mut self, now_ms: f64, allowance: Allowance) {
        self.now_ms = now_ms;
        self.allowance = allowance;
        self.charged = 0;
        self.charged_total = 0;
    }

    /// What host operations cost in this entry, as far as it is not in the store's fuel.
    pub(crate) fn charged(&self) -> u64 {
        self.charged
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.pool.give_back(self.pool_bytes);
    }
}

/// The outbox is plain data: what a panicking thread left in it is still whole.
pub(crate) fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let (wanted, more) = (desired as u64, desired.saturating_sub(current) as u64);
        let refusal =
            if wanted > self.memory_bytes_max || maximum.is_some_and(|maximum| desired > maximum) {
                Some((wanted, self.memory_bytes_max, "memory_bytes_max"))
            } else if !self.pool.take(more) {
                Some((
                    self.pool.used() + more,
                    self.pool.bytes_max,
                    "pool_memory_bytes_max",
                ))
            } else {
                None
            };
        let outbox = Arc::clone(&self.outbox);
        let mut outbox = lock(&outbox);
        match refusal {
            None => {
                self.pool_bytes += more;
                outbox.memory_bytes = wanted;
                Ok(true)
            }
            Some((bytes, limit, limit_name)) => {
                outbox.memory_denied += 1;
                outbox.memory_wanted = Some(MemoryWanted {
                    bytes,
                    limit,
                    limit_name,
                });
                Ok(false)
            }
        }
    }

    fn table_growing(
        &mut self,
        _current: usize,
        _desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Within what the pool allows; nothing asks for it yet.
        Ok(true)
    }
}

/// Defines the imports. The guest's import list is compared with this in a test.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(IMPORT_MODULE, "start", start)?;
    linker.func_wrap(IMPORT_MODULE, "finish", finish_invocation)?;
    linker.func_wrap(IMPORT_MODULE, "log", log)?;
    linker.func_wrap(IMPORT_MODULE, "random", random)?;
    Ok(linker)
}

/// Bytes of the guest's, checked against its memory.
fn read<'a>(
    caller: &'a Caller<'_, State>,
    pointer: u32,
    length: usize,
) -> wasmtime::Result<&'a [u8]> {
    let memory = caller
        .data()
        .memory
        .ok_or_else(|| wasmtime::Error::msg("the guest calls out before it has memory"))?;
    let start = pointer as usize;
    memory
        .data(caller)
        .get(start..start.saturating_add(length))
        .ok_or_else(|| {
            wasmtime::Error::msg(format!(
                "{length} bytes at {pointer} are outside of the guest's memory"
            ))
        })
}

/// Takes the price before the work is done.
fn charge(caller: &mut Caller<'_, State>, tariff: Tariff, bytes: usize) -> wasmtime::Result<()> {
    let price = tariff.price(bytes);
    let state = caller.data_mut();
    state.charged += price;
    state.charged_total += price;
    let charged = state.charged;
    let Ok(fuel) = caller.get_fuel() else {
        return Ok(());
    };
    if charged > fuel {
        let _ = caller.set_fuel(0);
        return Err(wasmtime::Trap::OutOfFuel.into());
    }
    // Setting the fuel starts the slice anew, so it is done once a slice's worth has come together: a loop of host
    // calls still yields.
    if charged >= fuel::SLICE {
        caller.set_fuel(fuel - charged)?;
        caller.data_mut().charged = 0;
    }
    Ok(())
}

fn start(
    mut caller: Caller<'_, State>,
    kind: u32,
    pointer: u32,
    length: u32,
) -> wasmtime::Result<u64> {
    let length = length as usize;
    if length > ARGUMENT_BYTES_MAX {
        return Err(wasmtime::Error::msg(format!(
            "an operation's argument has {length} bytes"
        )));
    }
    charge(&mut caller, Tariff::START, length)?;
    let argument = read(&caller, pointer, length)?.to_vec();
    let number = || -> wasmtime::Result<[u8; 8]> {
        argument[..].try_into().map_err(|_| {
            wasmtime::Error::msg(format!("an argument of {length} bytes is no number"))
        })
    };
    match kind {
        operation::TIMER => {
            let ms = f64::from_le_bytes(number()?);
            let operation = next_operation(caller.data_mut());
            let mut outbox = caller.data().outbox();
            outbox.timers += 1;
            if outbox.timers > TIMERS_MAX {
                let (kind, used, limit) =
                    (VerdictKind::Timers, outbox.timers as u64, TIMERS_MAX as u64);
                drop(outbox);
                return Err(Stop {
                    kind,
                    limit_name: "timers_max",
                    used,
                    limit,
                }
                .into());
            }
            outbox.started.push(Started::Timer { operation, ms });
            Ok(operation)
        }
        operation::CANCEL => {
            let cancelled = u64::from_le_bytes(number()?);
            caller.data().outbox().cancelled.push(cancelled);
            Ok(0)
        }
        operation::FETCH => {
            let state = caller.data_mut();
            state.allowance.subrequests_sent += 1;
            let Allowance {
                subrequests_sent: used,
                subrequests_max: limit,
                ..
            } = state.allowance;
            if used > limit {
                return Err(Stop {
                    kind: VerdictKind::Subrequests,
                    limit_name: "subrequests_max",
                    used,
                    limit,
                }
                .into());
            }
            let operation = next_operation(state);
            let url = String::from_utf8_lossy(&argument).into_owned();
            state
                .outbox()
                .started
                .push(Started::Fetch { operation, url });
            Ok(operation)
        }
        unknown => Err(wasmtime::Error::msg(format!(
            "the guest asked for operation {unknown}, which does not exist"
        ))),
    }
}

fn next_operation(state: &mut State) -> u64 {
    let operation = state.next_operation;
    state.next_operation += 1;
    operation
}

fn finish_invocation(
    mut caller: Caller<'_, State>,
    invocation: u64,
    kind: u32,
    pointer: u32,
    length: u32,
) -> wasmtime::Result<()> {
    let length = length as usize;
    let copied_max = match kind {
        finish::CBOR | finish::JSON => caller.data().result_bytes_max,
        finish::THREW => THROWN_BYTES_MAX,
        _ => 8,
    };
    // What is too large to be passed on is not copied; its size says the rest.
    let copied = if length > copied_max { 0 } else { length };
    charge(&mut caller, Tariff::FINISH, copied)?;
    let bytes = read(&caller, pointer, copied)?.to_vec();
    caller.data().outbox().finished.push(Finished {
        invocation,
        kind,
        bytes,
        length,
    });
    Ok(())
}

fn log(
    mut caller: Caller<'_, State>,
    level: u32,
    pointer: u32,
    length: u32,
) -> wasmtime::Result<()> {
    let length = length as usize;
    let allowed = caller.data().allowance.log_bytes;
    let copied = length
        .min(LOG_LINE_BYTES_MAX)
        .min(usize::try_from(allowed).unwrap_or(usize::MAX));
    charge(&mut caller, Tariff::LOG, copied)?;
    // The rest is only counted; that it exists is checked all the same.
    read(&caller, pointer, length)?;
    let message = String::from_utf8_lossy(read(&caller, pointer, copied)?).into_owned();
    let level = match level {
        0 => LogLevel::Debug,
        1 => LogLevel::Info,
        2 => LogLevel::Log,
        3 => LogLevel::Warn,
        _ => LogLevel::Error,
    };
    let state = caller.data_mut();
    // An empty line takes room, too: its record does.
    state.allowance.log_bytes = allowed.saturating_sub(copied.max(LOG_RECORD_BYTES) as u64);
    let timestamp_ms = state.now_ms;
    let mut outbox = state.outbox();
    outbox.log_bytes_dropped += (length - copied) as u64;
    if allowed > 0 {
        outbox.logs.push(Log {
            level,
            message,
            timestamp_ms,
        });
    }
    Ok(())
}

/// What a console line counts for at least, so that empty lines are bounded as well.
const LOG_RECORD_BYTES: usize = 16;

fn random(mut caller: Caller<'_, State>, pointer: u32, length: u32) -> wasmtime::Result<()> {
    let length = length as usize;
    if length > RANDOM_BYTES_MAX {
        return Err(wasmtime::Error::msg(format!(
            "the guest asked for {length} random bytes at once"
        )));
    }
    charge(&mut caller, Tariff::RANDOM, length)?;
    let mut bytes = vec![0; length];
    match &mut caller.data_mut().seed {
        Some(seed) => bytes
            .iter_mut()
            .for_each(|byte| *byte = (next_random(seed) >> 56) as u8),
        None => system_random(&mut bytes),
    }
    read(&caller, pointer, length)?;
    let memory = caller
        .data()
        .memory
        .ok_or_else(|| wasmtime::Error::msg("the guest has no memory"))?;
    memory.write(&mut caller, pointer as usize, &bytes)?;
    Ok(())
}

/// xorshift64*, for isolates that must repeat themselves.
pub(crate) fn next_random(seed: &mut u64) -> u64 {
    let mut state = *seed | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    *seed = state;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Fills `bytes` from the kernel.
pub(crate) fn system_random(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                unreachable!("getrandom without flags fails only on kernels that lack it: {error}")
            }
        }
    }
}
