"""What a test runs in: the sandbox of a server of ours, and Node; and the server of the checkout, which tests talk to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import coracle

from tests import HERE, Server

LIMITS = coracle.Limits(
    fuel_max=10_000_000_000_000,
    startup_fuel_max=100_000_000_000,
    cpu_ms_max=600_000,
    wall_ms_max=900_000,
    memory_bytes_max=512 * 1024 * 1024,
    subrequests_max=100_000,
    subrequests_in_flight_max=1_000,
    result_bytes_max=256 * 1024 * 1024,
)

MAIN = """
import run from "test.cjs";
export default { run: (_) => run.call(globalThis) };
"""

_SERVER_START_SECONDS_MAX = 60
_GRACE_SECONDS = 30
"""How long after its own timeout a test may take to say so."""


@dataclass(frozen=True)
class Results:
    """What became of a test."""

    harness: str | None = None
    """What went wrong with the test as a whole, or None."""
    subtests: dict[str, str | None] = field(default_factory=dict)
    """By name: None where it passed, else why not."""

    @staticmethod
    def of(text: str) -> Results:
        """Of what report.js made."""
        told = json.loads(text)
        status, message = told["harness"]
        subtests: dict[str, str | None] = {}
        for name, code, why in told["subtests"]:
            unique, count = name, 1
            while unique in subtests:
                count += 1
                unique = f"{name} ({count})"
            kind = ("failed", "timed out", "did not run", "lacked a precondition")[code - 1] if code else ""
            subtests[unique] = None if code == 0 else f"{kind}: {why}"
        harness = None if status == 0 else f"the harness ended with {status}: {message}"
        return Results(harness, subtests)


class Sandbox:
    """Fresh isolates of a server that may ask the server of the checkout, and nobody else."""

    def __init__(self, binary: Path, guest: Path | None, server: Server) -> None:
        os.environ["CORACLE_BINARY"] = str(binary.resolve())
        self._folder = Path(tempfile.mkdtemp(prefix="coracle-wpt-"))
        policy = self._folder / "outbound.json"
        hosts = [f"http://{host}:{port}" for host in (server.host, server.other_host) for port in server.ports]
        rules = [{"allow": hosts, "private": True}]
        policy.write_text(
            json.dumps({"default_policy": "wpt", "policies": {"wpt": {"rules": rules}}, "dns": {"system": True}})
        )
        args = ["--outbound-file", str(policy), *(["--guest", str(guest)] if guest else [])]
        self._server = coracle.serve(limits=LIMITS, args=args)

    async def __aenter__(self) -> Sandbox:
        self._session = await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, traceback)
        shutil.rmtree(self._folder)

    async def run(self, script: str, timeout_milliseconds: int) -> Results:
        try:
            async with asyncio.timeout(timeout_milliseconds / 1000 + _GRACE_SECONDS):
                modules = {"main.js": MAIN, "test.cjs": coracle.CommonJs("module.exports = " + script)}
                worker = self._session.load(modules, limits=LIMITS)
                return Results.of(await worker.entrypoint().run(None))
        except (coracle.CoracleError, TimeoutError) as error:
            return Results(f"{type(error).__name__}: {error}")


async def node(script: str, timeout_milliseconds: int) -> Results:
    """Runs it in a Node of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".js", encoding="utf-8", errors="surrogatepass") as file:
        file.write(script)
        file.flush()
        command = ["node", str(HERE / "node.mjs"), file.name]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(timeout_milliseconds / 1000 + _GRACE_SECONDS):
                output, _ = await process.communicate()
            return Results.of(output.decode())
        except TimeoutError:
            process.kill()
            await process.wait()
            return Results("it did not end in time")
        except ValueError:
            return Results(f"it ended with {process.returncode}, and without results")


async def node_version() -> str:
    process = await asyncio.create_subprocess_exec("node", "--version", stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode().strip().removeprefix("v")


def commit(checkout: Path) -> str:
    """The commit of the checkout."""
    told = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(f"{checkout} is no git repository: say with --commit what it is a copy of")
    return told.stdout.strip()


@contextlib.asynccontextmanager
async def server_of(checkout: Path) -> AsyncIterator[Server]:
    """Starts the checkout's server on loopback, HTTP only, and ends it with the block."""
    first, second, closed = _free_ports(3)
    server = Server((first, second), closed)
    ports: dict[str, list[int]] = {"http": [first, second]}
    for other in ("http-private", "http-public", "https", "https-private", "https-public", "ws", "wss", "webtransport-h3"):
        ports[other] = []
    config = {
        "browser_host": server.host,
        "alternate_hosts": {},
        "check_subdomains": False,
        "ports": ports,
        "ssl": {"type": "none"},
        # It has to answer to the other name too.
        "bind_address": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        said = (Path(folder) / "said").open("w+")
        process = subprocess.Popen(
            [sys.executable, "wpt", "serve", "--config", str(file)],
            cwd=checkout,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            for port in server.ports:
                await _answers(f"http://{server.other_host}:{port}/resources/testharness.js", process, Path(said.name))
            yield server
        finally:
            # It has a process for each port, which would outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            process.wait()


async def _answers(url: str, process: subprocess.Popen[bytes], said: Path) -> None:
    for _ in range(10 * _SERVER_START_SECONDS_MAX):
        if process.poll() is not None:
            sys.exit(f"the checkout's server ended: {said.read_text()}")
        with contextlib.suppress(OSError):
            await asyncio.to_thread(urllib.request.urlopen, url, timeout=5)
            return
        await asyncio.sleep(0.1)
    sys.exit(f"the checkout's server did not answer: {said.read_text()}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
