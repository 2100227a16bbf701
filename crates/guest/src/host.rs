//! The way out: the four imports, and the clock that the host sets at every entry.

use coracle_abi::finish;
use std::cell::{Cell, RefCell};

#[link(wasm_import_module = "coracle")]
unsafe extern "C" {
    #[link_name = "start"]
    fn import_start(operation: u32, pointer: *const u8, length: usize) -> u64;
    #[link_name = "finish"]
    fn import_finish(invocation: u64, kind: u32, pointer: *const u8, length: usize);
    #[link_name = "log"]
    fn import_log(level: u32, pointer: *const u8, length: usize);
    #[link_name = "random"]
    fn import_random(pointer: *mut u8, length: usize);
}

/// Starts a host operation; the host settles it later under the returned id.
pub(crate) fn start(operation: u32, argument: &[u8]) -> u64 {
    // SAFETY: pointer and length describe a live slice that the host only reads.
    unsafe { import_start(operation, argument.as_ptr(), argument.len()) }
}

struct Finished {
    invocation: u64,
    kind: u32,
    bytes: Vec<u8>,
}

struct FinishedQueue(RefCell<Vec<Finished>>);
// SAFETY: the guest has one thread.
unsafe impl Sync for FinishedQueue {}
static FINISHED: FinishedQueue = FinishedQueue(RefCell::new(Vec::new()));

/// Notes how an invocation (0: the load) ended, for [`report_finished`].
pub(crate) fn finish(invocation: u64, kind: u32, bytes: Vec<u8>) {
    FINISHED.0.borrow_mut().push(Finished {
        invocation,
        kind,
        bytes,
    });
}

/// Reports what has ended since the last report.
pub(crate) fn report_finished() {
    let finished = std::mem::take(&mut *FINISHED.0.borrow_mut());
    for Finished {
        invocation,
        kind,
        bytes,
    } in finished
    {
        let kind = match (invocation, kind) {
            (0, finish::UNDEFINED) if OF_THE_MOMENT.0.get() => finish::LOADED_NOW,
            _ => kind,
        };
        // SAFETY: pointer and length describe a live slice that the host only reads.
        unsafe { import_finish(invocation, kind, bytes.as_ptr(), bytes.len()) }
    }
}

/// Writes a console line.
pub(crate) fn log(level: u32, text: &str) {
    log_bytes(level, text.as_bytes());
}

/// Writes a console line, or what belongs to one.
pub(crate) fn log_bytes(level: u32, bytes: &[u8]) {
    // SAFETY: pointer and length describe a live slice that the host only reads.
    unsafe { import_log(level, bytes.as_ptr(), bytes.len()) }
}

/// Fills `bytes` with randomness fit for cryptography.
pub(crate) fn random(bytes: &mut [u8]) {
    // SAFETY: pointer and length describe a live, exclusively borrowed slice.
    unsafe { import_random(bytes.as_mut_ptr(), bytes.len()) }
}

struct Clock(Cell<f64>);
// SAFETY: the guest has one thread.
unsafe impl Sync for Clock {}
static NOW_MS: Clock = Clock(Cell::new(0.0));

struct Moment(Cell<bool>);
// SAFETY: the guest has one thread.
unsafe impl Sync for Moment {}
/// Whether the clock has been read, or chance asked, since the clock was set.
static OF_THE_MOMENT: Moment = Moment(Cell::new(false));

/// What comes of this entry would not come of it another time.
pub(crate) fn is_of_the_moment() {
    OF_THE_MOMENT.0.set(true);
}

/// Sets the clock. It stands still until the next entry.
pub(crate) fn set_now(now_ms: f64) {
    NOW_MS.0.set(now_ms);
    OF_THE_MOMENT.0.set(false);
}

/// What QuickJS calls for the time, in microseconds since the epoch. Defining it here keeps it from being an import.
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    is_of_the_moment();
    NOW_MS.0.get() * 1000.0
}
