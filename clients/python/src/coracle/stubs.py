"""What stands for an object at the other side: stubs, the properties of stubs, and calls under way."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import DecodeError
from .outcome import Outcome

if TYPE_CHECKING:
    from .connection import Connection, Handle
    from .http import BodyInit, HeadersInit, Request, Response

Path = str | Sequence[str]
"""The name of a method or property, or the names that lead to it."""


class Remote:
    """What can be called at the other side: what :class:`Stub` and :class:`Call` have in common.

    An attribute that is none of Python's is one of the other side's: ``await stub.add(1, 2)`` calls the method ``add``, and
    ``await stub.counter.value`` reads a property. ``stub["get"](1)`` calls methods whose names Python has taken.
    """

    def _root(self) -> Handle:
        raise NotImplementedError

    def __call__(self, *args: Any) -> Call:
        """Calls what this stands for, a function."""
        return self._root().call((), args)

    def call(self, path: Path, *args: Any) -> Call:
        """Calls a method. The call is sent at once; await it for what it returns.

        Cancelling the task that waits for it cancels the call, and so does dropping what this returns.

        :param path: The method's name, or the names that lead to it.
        :raises EncodeError: If an argument can't be sent.
        """
        return self._root().call(_steps(path), args)

    async def invoke(self, path: Path, *args: Any) -> Outcome:
        """Calls a method, and returns how that ended, with what it cost. What it threw, and what stopped it, is not raised."""
        return await self._root().call(_steps(path), args).outcome_of_it()

    async def fetch(
        self,
        request: Request | str,
        *,
        method: str = "GET",
        headers: HeadersInit = None,
        body: BodyInit = None,
    ) -> Response:
        """Sends a request to its ``fetch`` handler.

        :param request: A :class:`~coracle.Request`; or a URL, which the other parameters go with.
        """
        from . import http

        if isinstance(request, str):
            request = http.Request(request, method=method, headers=headers, body=body)
        response = await self._root().call(("fetch",), (request,))
        if not isinstance(response, http.Response):
            raise DecodeError(f"fetch() came back with {type(response).__name__} and not with a Response")
        return response

    def get(self, *path: str) -> Call:
        """Reads a property: ``await stub.get("counter", "value")``."""
        return self._root().get(path)

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(name)
        return Member(self, (name,))

    def __getitem__(self, name: str) -> Member:
        return Member(self, (name,))


class Member:
    """A property of something at the other side. ``await`` reads it; calling it calls it."""

    __slots__ = ("_of", "_path")

    def __init__(self, of: Remote, path: tuple[str, ...]) -> None:
        self._of, self._path = of, path

    def __call__(self, *args: Any) -> Call:
        return self._of._root().call(self._path, args)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._of._root().get(self._path).__await__()

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(name)
        return Member(self._of, (*self._path, name))

    def __getitem__(self, name: str) -> Member:
        return Member(self._of, (*self._path, name))

    def __repr__(self) -> str:
        return f"<{'.'.join(self._path)} of {self._of!r}>"


class Stub(Remote):
    """A function, an object or an entrypoint of a worker's. It may be passed to workers of the same session.

    The other side lets go of what it stands for when the stub is disposed of or collected.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _root(self) -> Handle:
        return self._handle

    def dispose(self) -> None:
        """Lets go of it now. Calls under way are not touched."""
        self._handle.release()

    async def __aenter__(self) -> Stub:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.dispose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._handle.number}>"


class Loader:
    """What workers load workers with: put ``session.loader`` into ``env`` as ``LOADER``, and the worker has
    ``env.LOADER.load(code)`` and ``env.LOADER.get(id, callback)``. What it loads belongs to the same session and has no
    limit that is higher than its own.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle


class Call(Remote):
    """A call under way. ``await`` it for what it returns.

    Its result can be called, and its properties read, before it is there: ``await entry.open("a").read(10)`` goes out at once and
    takes one round trip.
    """

    def __init__(self, connection: Connection, promise: Any) -> None:
        self._connection = connection
        self._pipeline = connection.hold(connection.lean(promise.pipeline))
        self._promise = connection.hold(promise)
        self._receiving: asyncio.Task[Outcome] | None = None

    def _root(self) -> Handle:
        return self._pipeline

    async def outcome_of_it(self) -> Outcome:
        """How it ended. What it threw, and what stopped it, is not raised."""
        if self._receiving is None:
            self._receiving = asyncio.ensure_future(self._connection.receive(self._promise.take()))
        try:
            return await self._receiving
        finally:
            if self._receiving.done():
                self._pipeline.release()

    async def _value(self) -> Any:
        return (await self.outcome_of_it()).value

    def __await__(self) -> Generator[Any, None, Any]:
        return self._value().__await__()

    def cancel(self) -> None:
        """Gives the call up: what runs for it is cancelled."""
        if self._receiving is not None:
            self._receiving.cancel()
        self._promise.release()
        self._pipeline.release()

    def __repr__(self) -> str:
        return f"<Call {self._promise.number}>"


def _steps(path: Path) -> tuple[str, ...]:
    return (path,) if isinstance(path, str) else tuple(path)
