"""Becomes a server that the kernel ends when the program that started it is gone, even where that was killed.

Run as a script, without the package::

    python -I -S launch.py PID_OF_THE_PROGRAM BINARY [ARGUMENTS]

A program of its own, because the signal has to be asked for between fork and exec, where the code of a process that has
threads may wait for ever for a lock that no thread holds any more.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""From <sys/prctl.h>. Outlives exec. What counts is the thread that started this process."""


def main() -> None:
    """See the module."""
    program, *command = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"the server can't be bound to the program's life: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(program):
        sys.exit("the program that started the server is gone")
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"the server can't be started: {error}")


if __name__ == "__main__":
    main()
