"""The server in the package: how it starts, ends and dies; and who is let in."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from conftest import PATIENCE, eventually, module

import coracle

ECHO = module("echo(v) { return v; } async run(f) { return await f(); }")


def is_gone(pid: int) -> bool:
    """Whether the process has ended, also where its parent has not noticed."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True
    return "\nState:\tZ" in status


async def test_one_line_is_a_session_with_a_server_of_its_own() -> None:
    server = coracle.serve()
    async with server as session:
        assert await session.load(ECHO).entrypoint().echo(1) == 1
        folder = Path(server.address.removeprefix("unix:")).parent
        assert folder.stat().st_mode & 0o777 == 0o700
    assert is_gone(server.pid) and not folder.exists()


def test_it_ends_with_its_block_and_may_be_closed_twice() -> None:
    with coracle.serve() as server:
        assert server.address.startswith("unix:/")
        assert not is_gone(server.pid)
    assert is_gone(server.pid)
    server.close()


async def test_it_takes_limits_and_arguments() -> None:
    spin = module("spin() { for (;;); }")
    async with coracle.serve(limits=coracle.Limits(cpu_ms_max=30)) as session:
        with pytest.raises(coracle.CpuExceeded) as stopped:
            await session.load(spin).entrypoint().spin()
        assert stopped.value.limit == 30


def test_it_ends_with_the_interpreter() -> None:
    program = "import coracle; server = coracle.serve(); server.address; print(server.pid)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert is_gone(int(ended.stdout))


@pytest.mark.skipif(sys.platform != "linux", reason="it is Linux that tells the server")
async def test_it_ends_where_the_program_is_killed() -> None:
    program = "import coracle, time; s = coracle.serve(); print(s.pid, s.address, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        said = (await asyncio.wait_for(asyncio.to_thread(killed.stdout.readline), PATIENCE)).decode().split()
        pid, folder = int(said[0]), Path(said[1].removeprefix("unix:")).parent
        assert not is_gone(pid)
        killed.kill()
        await asyncio.to_thread(killed.wait, PATIENCE)
    # Nobody is left who could remove it.
    shutil.rmtree(folder)
    await eventually(lambda: is_gone(pid))


async def test_it_goes_on_when_a_fork_of_the_program_ends() -> None:
    program = textwrap.dedent("""
        import asyncio, coracle, os, sys
        server = coracle.serve()
        address = server.address
        if (fork := os.fork()) == 0:
            sys.exit()
        os.waitpid(fork, 0)
        async def main():
            async with coracle.connect(address) as session:
                print(session.tenant)
        asyncio.run(main())
    """)
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout) == (0, "default\n"), ended.stderr


async def test_a_program_that_is_killed_before_it_knows_of_the_server_leaves_none() -> None:
    launch = Path(coracle.__file__).with_name("launch.py")
    orphan = [sys.executable, "-I", "-S", str(launch), str(os.getppid()), sys.executable, "-c", "print('started')"]
    ended = subprocess.run(orphan, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "the program that started the server is gone\n")


async def test_it_goes_on_when_the_thread_is_gone_that_asked_for_it() -> None:
    servers: list[coracle.Server] = []

    def ask() -> None:
        servers.append(coracle.serve())
        # It listens, so it has asked for its signal before this thread ends.
        assert servers[0].address

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    with servers[0] as server:
        await asyncio.sleep(0.2)
        async with coracle.connect(server.address) as session:
            assert await session.load(ECHO).entrypoint().echo(1) == 1


async def test_logging_that_fails_does_not_end_it(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(record: logging.LogRecord) -> bool:
        raise RuntimeError("no logging today")

    logger = logging.getLogger("coracle.server")
    logger.addFilter(fails)
    try:
        with caplog.at_level(logging.DEBUG, logger.name):
            async with coracle.serve() as session:
                assert await session.load(ECHO).entrypoint().echo(1) == 1
    finally:
        logger.removeFilter(fails)
    assert "no logging today" in capsys.readouterr().err


def test_a_server_that_cant_start_says_why() -> None:
    with pytest.raises(coracle.ServeError, match="--no-such-setting"):
        with coracle.serve(args=["--no-such-setting"]):
            pass


def test_a_missing_binary_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORACLE_BINARY", "/nowhere/coracle")
    with pytest.raises(coracle.ServeError, match="there is no server at /nowhere/coracle: set CORACLE_BINARY"):
        coracle.serve()


def test_a_binary_that_is_none_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "coracle"
    binary.write_bytes(b"\x7fELF and nothing else")
    binary.chmod(0o755)
    monkeypatch.setenv("CORACLE_BINARY", str(binary))
    with pytest.raises(coracle.ServeError, match="the server can't be started: .*Exec format error"):
        with coracle.serve():
            pass


def test_the_command_is_the_binary() -> None:
    command = Path(sys.executable).with_name("coracle")
    told = subprocess.run([command, "version"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert told.stdout.startswith(f"coracle {coracle.__version__}\n")


async def test_tokens(tmp_path: Path) -> None:
    token = "a-token-that-is-long-enough-to-be-one-0123456789"
    file = tmp_path / "tokens"
    file.write_text(f"acme:{token}\n")
    file.chmod(0o600)
    with coracle.serve(args=["--token-file", str(file)]) as server:
        async with coracle.connect(server.address, token=token) as session:
            assert session.tenant == "acme"
            assert await session.load(ECHO).entrypoint().echo(1) == 1
        for wrong in (None, "wrong"):
            with pytest.raises(coracle.UnauthenticatedError):
                await coracle.connect(server.address, token=wrong)


async def test_loopback(tmp_path: Path) -> None:
    with coracle.serve(args=["--listen", "127.0.0.1:0"]) as server:
        addresses = server.address.split(", ")
        for address in addresses:
            async with coracle.connect(address) as session:
                assert await session.load(ECHO).entrypoint().echo(1) == 1


@pytest.mark.parametrize("address", ["127.0.0.1:1", "unix:/nowhere/socket", "7070", "", "127.0.0.1:http"])
async def test_where_no_server_is(address: str) -> None:
    with pytest.raises(coracle.ConnectError):
        await coracle.connect(address)


async def test_a_server_that_is_none_is_a_typed_error() -> None:
    async def gibberish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
        writer.close()

    async with await asyncio.start_server(gibberish, "127.0.0.1", 0) as listener:
        host, port = listener.sockets[0].getsockname()
        with pytest.raises(coracle.CoracleError):
            await asyncio.wait_for(coracle.connect(f"{host}:{port}"), PATIENCE)


async def test_a_server_that_dies_ends_calls_callbacks_and_later_ones() -> None:
    called = asyncio.Event()
    cancelled = asyncio.Event()

    async def never() -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with coracle.serve() as server:
        async with coracle.connect(server.address) as session:
            entry = session.load(ECHO).entrypoint()
            running = asyncio.ensure_future(entry.run(never))
            await asyncio.wait_for(called.wait(), PATIENCE)
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(coracle.DisconnectedError):
                await asyncio.wait_for(running, PATIENCE)
            with pytest.raises(coracle.DisconnectedError):
                await asyncio.wait_for(entry.echo(1), PATIENCE)
            await asyncio.wait_for(cancelled.wait(), PATIENCE)


def test_a_program_that_forgets_to_close_ends_all_the_same() -> None:
    program = textwrap.dedent("""
        import asyncio, coracle
        async def main():
            server = coracle.serve()
            session = await coracle.connect(server.address)
            worker = await session.load({"main.js": "export default { double(n) { return n * 2; } }"})
            stub = worker.entrypoint()
            call = stub.double(1)
            print(await stub.double(21))
        asyncio.run(main())
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout) == (0, "42\n"), ended.stderr
