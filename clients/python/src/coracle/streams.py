"""Byte streams: to be read (:class:`Stream`) and to be written (:class:`Sink`), of this process or of the other side.

A stream of this process is passed to a worker as it is; one that a worker passes arrives as the same class. Whoever reads sets
the pace: nothing is read before it is asked for, and one piece at a time is under way.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final, Protocol, Union, runtime_checkable

from .errors import DecodeError
from .stubs import Stub
from .targets import Target, not_implemented
from .values import UNDEFINED

PIECE_BYTES: Final = 1 << 18
"""Bytes that are asked for at once."""
PIECE_BYTES_MAX: Final = 1 << 20
"""Bytes of which none gives more at once."""


@runtime_checkable
class Reader(Protocol):
    """What reads like an ``asyncio.StreamReader``."""

    async def read(self, n: int, /) -> bytes:
        """At most that many bytes; none at the end."""


@runtime_checkable
class Writer(Protocol):
    """What writes like an ``asyncio.StreamWriter``."""

    def write(self, data: bytes, /) -> object:
        """Takes the bytes."""

    async def drain(self) -> object:
        """Waits until there is room for more."""

    def close(self) -> object:
        """Ends the stream."""


Readable = Union[Reader, AsyncIterable[bytes], Iterable[bytes]]
"""What a :class:`Stream` can be made of."""


class Stream(AsyncIterator[bytes]):
    """A stream of bytes to be read: a ``ReadableStream`` in a worker.

    ``async for piece in stream``, or ``await stream.read(100)``. To stop early is to ``await stream.cancel()``; letting go of a
    stream cancels it as well.

    :param source: What it reads from: an ``asyncio.StreamReader`` or the like, or an (async) iterable of bytes. What that
        raises is the stream's error.
    """

    def __init__(self, source: Readable | Stub) -> None:
        self.end: Final = source
        """What gives the bytes; a stub where that is the other side."""
        self._pieces: AsyncIterator[bytes] | None = None
        self._rest = memoryview(b"")
        self._is_over = False
        self._turn = asyncio.Lock()
        self._awaited: asyncio.Future[bytes] | None = None
        if isinstance(source, (bytes, bytearray, str)):
            raise TypeError(f"a stream is made of pieces: use Stream([{type(source).__name__}(…)])")
        if not isinstance(source, (Stub, Reader)):
            self._pieces = aiter(source) if isinstance(source, AsyncIterable) else _iterate(source)

    async def read(self, n: int = -1) -> bytes:
        """At most that many bytes, and none at the end; without a number all that there are."""
        if n < 0:
            return b"".join([piece async for piece in self])
        return b"" if n == 0 else await self._pull(n)

    async def cancel(self, reason: object = UNDEFINED) -> None:
        """Ends the stream, which tells whoever feeds it."""
        if self._is_over:
            return
        self._is_over, self._rest = True, memoryview(b"")
        if isinstance(self.end, Stub):
            await self.end.call("cancel", reason)
            self.end.dispose()
            return
        # A piece that is waited for will not come: who waits finds the end.
        if self._awaited is not None:
            self._awaited.cancel()
        async with self._turn:
            if self._pieces is not None and hasattr(self._pieces, "aclose"):
                await self._pieces.aclose()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._pull(PIECE_BYTES)
        if not piece:
            raise StopAsyncIteration
        return piece

    async def _pull(self, bytes_max: int) -> bytes:
        """At least one byte and at most that many; none at the end."""
        async with self._turn:
            if self._is_over:
                return b""
            self._awaited = asyncio.ensure_future(self._next(min(bytes_max, PIECE_BYTES_MAX)))
            try:
                piece = await self._awaited
            except asyncio.CancelledError:
                if self._is_cancelled():
                    return b""
                raise
            except BaseException:
                self._is_over = True
                raise
            finally:
                self._awaited = None
            self._is_over = self._is_cancelled() or not piece
            return piece

    def _is_cancelled(self) -> bool:
        return self._is_over

    async def _next(self, bytes_max: int) -> bytes:
        if isinstance(self.end, Stub):
            piece = await self.end.call("pull", bytes_max)
            if piece is UNDEFINED:
                self.end.dispose()
                return b""
            if not isinstance(piece, bytes) or not 0 < len(piece) <= bytes_max:
                raise DecodeError("the stream sent something else than the bytes that it was asked for")
            return bytes(piece)
        if self._pieces is None:
            assert isinstance(self.end, Reader)
            return await self.end.read(bytes_max)
        while not self._rest:
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                return b""
            if not isinstance(piece, (bytes, bytearray, memoryview)):
                raise TypeError(f"a stream is made of bytes and not of {type(piece).__name__}")
            self._rest = memoryview(bytes(piece))
        asked, self._rest = self._rest[:bytes_max], self._rest[bytes_max:]
        return bytes(asked)

    def __repr__(self) -> str:
        return f"<Stream{', over' if self._is_over else ''}>"


class Sink:
    """A stream of bytes to be written: a ``WritableStream`` in a worker.

    :param target: What takes the bytes: an ``asyncio.StreamWriter`` or the like, or a function, sync or async.
    :param close: Called when all has been written.
    :param abort: Called with the reason where that will not happen.
    """

    def __init__(
        self,
        target: Writer | Callable[[bytes], object] | Stub,
        *,
        close: Callable[[], object] | None = None,
        abort: Callable[[Any], object] | None = None,
    ) -> None:
        self.end: Final = target
        """What takes the bytes; a stub where that is the other side."""
        self._close, self._abort = close, abort
        self._is_over = False

    async def write(self, data: bytes) -> None:
        """Writes, and returns when there is room for more."""
        if isinstance(self.end, Stub):
            for start in range(0, len(data), PIECE_BYTES_MAX):
                await self.end.call("write", data[start : start + PIECE_BYTES_MAX])
        elif isinstance(self.end, Writer):
            self.end.write(data)
            await self.end.drain()
        else:
            await _finished(self.end(data))

    async def close(self) -> None:
        """Ends the stream, and returns when all has been taken."""
        if self._is_over:
            return
        self._is_over = True
        if isinstance(self.end, Stub):
            await self.end.call("close")
            self.end.dispose()
        elif isinstance(self.end, Writer):
            self.end.close()
        if self._close is not None:
            await _finished(self._close())

    async def abort(self, reason: object = UNDEFINED) -> None:
        """Gives the stream up."""
        if self._is_over:
            return
        self._is_over = True
        if isinstance(self.end, Stub):
            await self.end.call("abort", reason)
            self.end.dispose()
        elif isinstance(self.end, Writer):
            self.end.close()
        if self._abort is not None:
            await _finished(self._abort(reason))


class ServedStream(Target):
    """A stream of this process as the other side calls it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    async def call(self, path: tuple[str, ...], args: list[Any]) -> Any:
        match path, args:
            case ("pull",), [int(bytes_max)] if bytes_max > 0:
                return await self.stream._pull(bytes_max) or UNDEFINED
            case ("cancel",), [*reason]:
                return await self.stream.cancel(*reason[:1])
        raise not_implemented(path[-1] if path else "")

    async def released(self) -> None:
        """Nobody can read it any more."""
        await self.stream.cancel()


class ServedSink(Target):
    """A sink of this process as the other side calls it."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    async def call(self, path: tuple[str, ...], args: list[Any]) -> Any:
        match path, args:
            case ("write",), [bytes(data)]:
                await self.sink.write(bytes(data))
            case ("close",), []:
                await self.sink.close()
            case ("abort",), [*reason]:
                await self.sink.abort(*reason[:1])
            case _:
                raise not_implemented(path[-1] if path else "")
        return UNDEFINED

    async def released(self) -> None:
        """Nobody can write to it any more, and it was not closed."""
        await self.sink.abort("nobody writes to this stream any more")


async def _iterate(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _finished(result: object) -> None:
    if inspect.isawaitable(result):
        awaitable: Awaitable[object] = result
        await awaitable
