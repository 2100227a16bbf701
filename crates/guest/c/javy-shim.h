/* Included ahead of every C file of the engine in the `javy` build (see build-javy).
 *
 * wasi-libc's headers insist on __wasi__, but QuickJS-ng takes it to mean that the stack can't be measured and leaves
 * its stack check out. So: read the headers that insist while it is defined, then take it away. Without this, deep
 * recursion would be a trap and not a RangeError.
 */
#define __wasi__ 1
#include <wasi/api.h>
#include <stdio.h>
#include <time.h>
#include <sys/time.h>
#include <unistd.h>
#undef __wasi__
