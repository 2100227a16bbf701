"""What the tests share: the server that the wheel carries, and sessions on it."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

import coracle

PATIENCE = 20.0
"""Seconds that one step may take on a machine that has a lot else to do."""


@pytest.fixture(scope="session")
def server() -> Iterator[coracle.Server]:
    with coracle.serve(args=["--admin", "127.0.0.1:0"]) as server:
        yield server


@pytest.fixture
async def session(server: coracle.Server) -> AsyncIterator[coracle.Session]:
    async with coracle.connect(server.address) as session:
        yield session


def module(methods: str) -> dict[str, str]:
    """A worker's modules: the default export is a class with these methods."""
    return {
        "main.js": "import { WorkerEntrypoint, RpcTarget } from 'cloudflare:workers';\n"
        f"export default class extends WorkerEntrypoint {{ {methods} }}"
    }


Load = Callable[..., Awaitable[coracle.Stub]]


@pytest.fixture
def load(session: coracle.Session) -> Load:
    """Loads a worker whose default export is a class with these methods, and returns its entrypoint."""

    async def load(methods: str, **options: object) -> coracle.Stub:
        worker = await session.load(module(methods), **options)  # type: ignore[arg-type]
        return worker.entrypoint()

    return load


def metric(server: coracle.Server, series: str) -> float:
    with urllib.request.urlopen(f"http://{server.admin}/metrics", timeout=PATIENCE) as response:
        lines = response.read().decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"{series} ")))


async def settles(server: coracle.Server, series: str, wanted: float) -> None:
    """Waits until a series of the server's metrics has that value."""

    async def watch() -> None:
        while (await asyncio.to_thread(metric, server, series)) != wanted:
            await asyncio.sleep(0.02)

    await asyncio.wait_for(watch(), PATIENCE)


async def eventually(condition: Callable[[], bool]) -> None:
    """Waits until it is so."""

    async def watch() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(watch(), PATIENCE)
