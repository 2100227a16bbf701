"""The server in the package: how it starts, ends and dies; and who is let in."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import PATIENCE, module

import coracle

ECHO = module("echo(v) { return v; } async run(f) { return await f(); }")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


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


def test_a_server_that_cant_start_says_why() -> None:
    with pytest.raises(coracle.ServeError, match="--no-such-setting"):
        with coracle.serve(args=["--no-such-setting"]):
            pass


def test_a_missing_binary_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORACLE_BINARY", "/nowhere/coracle")
    with pytest.raises(coracle.ServeError, match="there is no server at /nowhere/coracle: set CORACLE_BINARY"):
        coracle.serve()


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
