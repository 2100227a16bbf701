/* The ways by which wasi-libc would leave the module, closed, for the `javy` build: the linker takes these functions
 * and makes no import. There is no file behind them, and the clock is the one that the host sets at every entry.
 *
 * In C, because what Rust defines for C is exported from the module as well.
 */
#include <stdint.h>

#define WASI(name) __imported_wasi_snapshot_preview1_##name

enum { BAD_DESCRIPTOR = 8, NOT_SEEKABLE = 70 };

/* The guest's clock in microseconds; see src/host.rs. */
double __rquickjs_host_now_us(void);

int32_t WASI(clock_time_get)(int32_t, int64_t, int32_t at) {
    *(uint64_t *)(uintptr_t)at = (uint64_t)(__rquickjs_host_now_us() * 1000);
    return 0;
}

int32_t WASI(fd_write)(int32_t, int32_t, int32_t, int32_t) { return BAD_DESCRIPTOR; }
int32_t WASI(fd_close)(int32_t) { return BAD_DESCRIPTOR; }
int32_t WASI(fd_fdstat_get)(int32_t, int32_t) { return BAD_DESCRIPTOR; }
int32_t WASI(fd_seek)(int32_t, int64_t, int32_t, int32_t) { return NOT_SEEKABLE; }
