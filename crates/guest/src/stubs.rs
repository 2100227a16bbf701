//! The symbols through which wasi-libc would leave the module, for the `javy` build: defined here, the linker makes no
//! import of them. There is no file, no environment and no process behind them.

use crate::host;

/// `EBADF`
const BAD_DESCRIPTOR: i32 = 8;
/// `ESPIPE`
const NOT_SEEKABLE: i32 = 70;
/// `ENOSYS`
const NOT_SUPPORTED: i32 = 52;

/// Writes a value where wasi-libc wants it.
///
/// # Safety
/// `address` is valid for a write of `T`, as wasi-libc's calling convention promises.
unsafe fn put<T>(address: i32, value: T) {
    // SAFETY: promised by the caller.
    unsafe { (address as usize as *mut T).write_unaligned(value) }
}

macro_rules! refuse {
    ($($name:ident($($argument:ty),*) = $code:expr;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name($(_: $argument),*) -> i32 { $code })*
    };
}

refuse! {
    __imported_wasi_snapshot_preview1_fd_write(i32, i32, i32, i32) = BAD_DESCRIPTOR;
    __imported_wasi_snapshot_preview1_fd_read(i32, i32, i32, i32) = BAD_DESCRIPTOR;
    __imported_wasi_snapshot_preview1_fd_close(i32) = BAD_DESCRIPTOR;
    __imported_wasi_snapshot_preview1_fd_fdstat_get(i32, i32) = BAD_DESCRIPTOR;
    __imported_wasi_snapshot_preview1_fd_seek(i32, i64, i32, i32) = NOT_SEEKABLE;
    __imported_wasi_snapshot_preview1_sched_yield() = NOT_SUPPORTED;
    __imported_wasi_snapshot_preview1_environ_get(i32, i32) = 0;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __imported_wasi_snapshot_preview1_environ_sizes_get(
    count: i32,
    size: i32,
) -> i32 {
    // SAFETY: wasi-libc passes addresses of its own variables.
    unsafe {
        put(count, 0u32);
        put(size, 0u32);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __imported_wasi_snapshot_preview1_clock_time_get(
    _clock: i32,
    _precision: i64,
    at: i32,
) -> i32 {
    // SAFETY: wasi-libc passes the address of its own variable.
    unsafe { put(at, (host::now_ms() * 1_000_000.0) as u64) }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __imported_wasi_snapshot_preview1_random_get(at: i32, length: i32) -> i32 {
    // SAFETY: wasi-libc passes a buffer of its own with its length.
    host::random(unsafe {
        std::slice::from_raw_parts_mut(at as usize as *mut u8, length as usize)
    });
    0
}

#[unsafe(no_mangle)]
extern "C" fn __imported_wasi_snapshot_preview1_proc_exit(_code: i32) -> ! {
    unreachable!("the engine asked to exit")
}
