"""Cap'n Proto's event loop beside asyncio's: one for each, from the first session of a loop to the end of its last."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Final
from weakref import WeakKeyDictionary

import capnp


class _Running:
    def __init__(self) -> None:
        self.users = 0
        self.manager: AbstractAsyncContextManager[Any] | None = None
        self.lock = asyncio.Lock()


_RUNNING: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Running]] = WeakKeyDictionary()


async def acquire() -> None:
    """Starts it, unless it runs. A program that uses pycapnp itself may have started it; then it is left alone."""
    loop = asyncio.get_running_loop()
    running = _RUNNING.setdefault(loop, _Running())
    async with running.lock:
        if running.users == 0 and not hasattr(loop, "_kj_loop"):
            running.manager = capnp.kj_loop()
            await running.manager.__aenter__()
        running.users += 1


async def release() -> None:
    """Ends it with its last user."""
    running = _RUNNING[asyncio.get_running_loop()]
    async with running.lock:
        running.users -= 1
        if running.users == 0 and running.manager is not None:
            manager, running.manager = running.manager, None
            await manager.__aexit__(None, None, None)
