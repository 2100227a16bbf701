"""A server of one's own: the binary that the wheel carries, as a child process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Final

from .code import Limits
from .errors import ServeError
from .session import Session, connect

BUNDLED: Final = Path(__file__).with_name("bin") / "coracle"
LAUNCH: Final = Path(__file__).with_name("launch.py")

_LOG: Final = logging.getLogger("coracle.server")
_LEVELS: Final[Mapping[str, int]] = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.DEBUG}

_START_SECONDS_MAX: Final = 120.0
"""The sandbox may have to be compiled first, on a processor for which the binary was not made."""
_END_SECONDS_MAX: Final = 10.0
_SOCKET_PATH_BYTES_MAX: Final = 100


def binary() -> Path:
    """The server's binary: ``$CORACLE_BINARY``, or the one that this package carries.

    :raises ServeError: If there is none.
    """
    chosen = os.environ.get("CORACLE_BINARY")
    path = Path(chosen) if chosen else BUNDLED
    if not os.access(path, os.X_OK):
        raise ServeError(
            f"there is no server at {path}: set CORACLE_BINARY to one, or install a wheel for this platform, which carries one"
        )
    return path


def serve(*, limits: Limits | None = None, args: Sequence[str] = ()) -> Server:
    """Starts a server for this program alone, on a private Unix socket.

    ::

        async with coracle.serve() as session: ...       # ends with the block
        server = coracle.serve(); server.address         # ends with the interpreter, or when it is collected

    On Linux it also ends where the program is killed.

    :param limits: Limits for all workers, instead of the defaults.
    :param args: More arguments for ``coracle serve``.
    :raises ServeError: If it can't be started.
    """
    return Server(limits, args)


class Server:
    """A server in a child process. What it logs goes to the logger ``coracle.server``."""

    def __init__(self, limits: Limits | None = None, args: Sequence[str] = ()) -> None:
        program = binary()
        folder = tempfile.mkdtemp(prefix="coracle-", dir=_short_directory())
        command = [str(program), "serve", "--listen", f"unix:{folder}/socket"]
        # It ends with its only client, so it has nothing to wait for.
        command += ["--drain-delay-ms", "0", "--drain-grace-ms", "0", "--log-format", "json"]
        for name, value in ({} if limits is None else vars(limits)).items():
            if value is not None:
                command += ["--limit", f"{name}={value}"]
        command += args
        try:
            self._start = _Start(command)
        except OSError as error:
            shutil.rmtree(folder)
            raise ServeError(f"the server can't be started: {error}") from error
        self._process = self._start.process
        self._end = weakref.finalize(self, _end, self._process, folder, os.getpid())
        self._session: Session | None = None

    @property
    def address(self) -> str:
        """Where it listens. Waits until it does.

        :raises ServeError: If it ended instead.
        """
        return self._start.address()

    @property
    def admin(self) -> str | None:
        """Where its probes and metrics are, if it was started with ``--admin``. Waits until it listens."""
        self._start.address()
        return self._start.admin

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def close(self) -> None:
        """Ends it. Its sessions are disconnected."""
        self._end()

    def __enter__(self) -> Server:
        try:
            self._start.address()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Session:
        try:
            self._session = await connect(await asyncio.to_thread(self._start.address))
        except BaseException:
            self.close()
            raise
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            await asyncio.to_thread(self.close)


class _Start:
    """Starts a server, reads what it logs, and finds in it where it listens: in a thread that is there for as long as
    the server, because Linux takes the server for orphaned when the thread is gone that started it.
    """

    def __init__(self, command: list[str]) -> None:
        self.is_over = threading.Event()
        self.listen: str | None = None
        self.admin: str | None = None
        self.said: list[str] = []
        started: Future[subprocess.Popen[bytes]] = Future()
        threading.Thread(target=self.run, args=(command, started), name="coracle-server", daemon=True).start()
        self.process = started.result()

    def run(self, command: list[str], started: Future[subprocess.Popen[bytes]]) -> None:
        try:
            process = subprocess.Popen(
                _launched(command),
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        assert process.stderr is not None
        with process.stderr as lines:
            for raw in lines:
                try:
                    self.heard(raw.decode("utf-8", "replace").rstrip())
                except Exception:
                    # Of the program's logging, which must not end the server.
                    traceback.print_exc()
        self.is_over.set()
        process.wait()

    def heard(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            event = {"level": "WARN", "message": line}
        if not isinstance(event, dict):
            return
        if event.get("message") == "listening" and self.listen is None:
            self.listen, self.admin = str(event.get("listen")), event.get("admin")
            self.is_over.set()
        elif not self.is_over.is_set():
            self.said.append(line)
        details = {key: value for key, value in event.items() if key not in ("timestamp", "level", "message", "target")}
        level = _LEVELS.get(str(event.get("level")), logging.DEBUG)
        _LOG.log(level, "%s%s", event.get("message"), f" {details}" if details else "")

    def address(self) -> str:
        if not self.is_over.wait(_START_SECONDS_MAX):
            raise ServeError(f"the server did not start within {_START_SECONDS_MAX:.0f} s")
        if self.listen is None:
            said = "\n".join(self.said[-10:]) or "it said nothing"
            raise ServeError(f"the server did not start (exit code {self.process.wait(_END_SECONDS_MAX)}): {said}")
        return self.listen


def _launched(command: list[str]) -> list[str]:
    """The command, by way of what binds the server to the life of this process, where that can be had."""
    is_python = Path(sys.executable or "").name.startswith(("python", "pypy"))  # And not what Python is embedded in.
    if sys.platform != "linux" or not is_python:
        return command
    return [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), *command]


def _end(process: subprocess.Popen[bytes], folder: str, program: int) -> None:
    if os.getpid() != program:
        return  # A fork of the program ends, and the server is not its own.
    process.terminate()
    try:
        process.wait(_END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _short_directory() -> str | None:
    """Where the socket's folder goes: the usual place, unless the socket's path would be too long there."""
    usual = tempfile.gettempdir()
    return None if len(os.fsencode(usual)) + len("/coracle-12345678/socket") < _SOCKET_PATH_BYTES_MAX else "/tmp"


def _environment() -> dict[str, str]:
    """The environment without settings that are meant for another server."""
    others = {"CORACLE_LISTEN", "CORACLE_ADMIN", "CORACLE_TOKEN_FILE", "CORACLE_LOG", "CORACLE_LOG_FORMAT", "CORACLE_BINARY"}
    return {name: value for name, value in os.environ.items() if name not in others}
