"""A connection: what it holds at the other side, and how values and outcomes go over it.

Cap'n Proto's objects belong to the thread of their event loop, and Python's garbage collector works in any. So a connection
keeps them in a table, and what users hold has their numbers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from itertools import count
from typing import Any, Final

import capnp

from . import targets
from .decode import decode
from .encode import SAFE_INTEGER_MAX, encode, fields_of_error, utf8
from .errors import (
    CoracleError,
    DecodeError,
    DisconnectedError,
    DisposedError,
    EncodeError,
    JsError,
    OverloadedError,
    RefusedError,
    UnauthenticatedError,
    UnimplementedError,
    VerdictError,
)
from .outcome import LogLine, Outcome, Usage
from .schema import wire
from .streams import ServedSink, ServedStream, Sink, Stream
from .stubs import Call, Loader, Stub
from .values import UNDEFINED, Date

TRAVERSAL_WORDS_MAX: Final = (256 << 20) // 8
"""Messages from the server may be larger than ours: results, and all logs of a call."""

VALUE_DEPTH_CEILING: Final = 1000
"""No server takes or sends deeper values, whatever it was told."""

KEPT_MAX: Final = 1_000
"""As many as the server keeps workers that were got by an id."""


class Handle:
    """The number of something that the connection holds. Let go of when it is collected, in whatever thread that happens."""

    __slots__ = ("connection", "number")

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection, self.number = connection, number

    def resolve(self) -> Any:
        """What it stands for."""
        held = self.connection.held.get(self.number)
        if held is None:
            self.connection.check_open()
            raise DisposedError("the stub was used after it had been disposed of")
        return held

    def take(self) -> Any:
        """What it stands for, which the connection then holds no more."""
        held = self.resolve()
        del self.connection.held[self.number]
        return held

    def release(self) -> None:
        """Lets go of it. For the connection's own thread."""
        self.connection.held.pop(self.number, None)

    def __del__(self) -> None:
        connection = self.connection
        if self.number in connection.held:
            try:
                connection.loop.call_soon_threadsafe(connection.held.pop, self.number, None)
            except RuntimeError:
                pass  # The loop is closed, and the connection with it.

    def call(self, path: Sequence[str], args: Sequence[object]) -> Call:
        """Sends a call."""
        request = self.resolve().call_request()
        request.path = list(path)
        self.connection.write_value(request.init("args"), list(args))
        return Call(self.connection, self.connection.send(request))

    def get(self, path: Sequence[str]) -> Call:
        """Sends a reading of a property."""
        request = self.resolve().get_request()
        request.path = list(path)
        return Call(self.connection, self.connection.send(request))


class Connection:
    """See the module. For one thread, that of the event loop in which it was made."""

    def __init__(self, stream: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.held: dict[int, Any] = {}
        self.numbers = count(1)
        self.stream = stream
        self.client = capnp.TwoPartyClient(stream, traversal_limit_in_words=TRAVERSAL_WORDS_MAX)
        self.gate = self.client.bootstrap().cast_as(wire.Gate)
        self.closed = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.kept: OrderedDict[Hashable, tuple[object, Any]] = OrderedDict()
        """Objects of this process with their capabilities, those that were kept last at the end."""

    def background(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does something that nobody waits for. What it raises is the business of whom it was done for."""

        async def quietly() -> None:
            with contextlib.suppress(Exception):
                await work()

        task = self.loop.create_task(quietly())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def close(self) -> None:
        """Lets go of everything and closes. Calls under way end with DisconnectedError."""
        self.closed = True
        self.held.clear()
        self.kept.clear()
        self.gate = None
        self.client.close()
        self.stream.close()

    def check_open(self) -> None:
        """Raises where it is closed."""
        if self.closed:
            raise DisconnectedError("the session is closed")

    def hold(self, held: Any) -> Handle:
        """Keeps something and returns its number."""
        number = next(self.numbers)
        self.held[number] = held
        return Handle(self, number)

    @staticmethod
    def lean(capability: Any) -> Any:
        """The capability without the message that it came in, which it would keep in memory."""
        capability._parent = None
        return capability

    def send(self, request: Any) -> Any:
        """Sends a request and returns its promise."""
        self.check_open()
        return request.send()

    # Values.

    def write_value(self, builder: Any, value: object, *, keep: bool = False) -> None:
        """Writes a value with what it refers to. See :meth:`capability` for ``keep``."""
        if value is UNDEFINED:
            return
        externals: list[Any] = []

        def export(candidate: object) -> int | None:
            external = self.export(candidate, keep)
            if external is None:
                return None
            externals.append(external)
            return len(externals) - 1

        builder.cbor = encode(value, export, VALUE_DEPTH_CEILING)
        if externals:
            table = builder.init("externals", len(externals))
            for index, (kind, external) in enumerate(externals):
                setattr(table[index], kind, external)

    def export(self, value: object, keep: bool = False) -> tuple[str, Any] | None:
        """The kind and the capability of something that is passed by reference; none for what is not."""
        if isinstance(value, (Stream, Sink)):
            kind = "source" if isinstance(value, Stream) else "sink"
            if isinstance(value.end, Stub) and value.end._handle.connection is self:
                return kind, value.end._handle.resolve()
            return kind, Served(self, ServedStream(value) if isinstance(value, Stream) else ServedSink(value))
        if isinstance(value, Loader):
            if value._handle.connection is not self:
                raise EncodeError("the loader of another session can't be sent")
            return "loader", value._handle.resolve()
        capability = self.capability(value, keep=keep)
        return None if capability is None else ("target", capability)

    def capability(self, value: object, *, keep: bool = False) -> Any:
        """The capability of something that can be called; none for what can't.

        :param keep: Whether an object of this process has one capability for all times, so that a worker is found again.
        """
        if isinstance(value, Call):
            raise EncodeError("a call under way can't be sent: await it first")
        if isinstance(value, Stub):
            if value._handle.connection is not self:
                raise EncodeError("a stub of another session can't be sent")
            return value._handle.resolve()
        if not targets.is_target(value):
            return None
        return self.keep(value) if keep else Served(self, value)

    def keep(self, value: object) -> Any:
        """The capability of an object of this process, the same each time, if it was not too long ago."""
        identity = targets.identity(value)
        if identity not in self.kept:
            # With the object, so that its identity is nobody else's meanwhile.
            self.kept[identity] = value, wire.Target._new_client(Served(self, value))
        self.kept.move_to_end(identity)
        if len(self.kept) > KEPT_MAX:
            self.kept.popitem(last=False)
        return self.kept[identity][1]

    def read_value(self, reader: Any) -> Any:
        """Reads a value with what it refers to."""
        externals = [self.read_external(external) for external in reader.externals]
        kind = reader.which()
        if kind == "cbor":
            return decode(reader.cbor, externals, VALUE_DEPTH_CEILING)
        return UNDEFINED if kind == "undefined" else _from_json(reader.json)

    def read_external(self, reader: Any) -> Stub | Stream | Sink:
        match str(reader.which()):
            case "target":
                return Stub(self.hold(self.lean(reader.target)))
            case "source":
                return Stream(Stub(self.hold(self.lean(reader.source))))
            case "sink":
                return Sink(Stub(self.hold(self.lean(reader.sink))))
        raise DecodeError("the value refers to a kind of thing that this client does not know")

    # Outcomes.

    async def receive(self, promise: Any) -> Outcome:
        """Waits for the results of a call."""
        try:
            return self.read_outcome(await promise)
        except capnp.KjException as error:
            failure = DisconnectedError("the session was closed") if self.closed else error_of(error)
        raise failure

    def read_outcome(self, results: Any) -> Outcome:
        outcome = results.outcome
        usage, logs = _read_usage(results.usage), [_read_log_line(line) for line in results.logs]
        value: Any = UNDEFINED
        error: JsError | VerdictError | None = None
        match str(outcome.which()):
            case "value":
                value = self.read_value(outcome.value)
            case "threw":
                error = self.read_thrown(outcome.threw)
            case "verdict":
                error = _read_verdict(outcome.verdict)
            case kind:
                raise DecodeError(f"the outcome {kind!r} is none that this client knows")
        if error is not None:
            error.usage, error.logs = usage, logs
        return Outcome(value, error, usage, logs, results.logBytesDropped)

    def read_thrown(self, thrown: Any) -> JsError:
        value = self.read_value(thrown.value)
        error = value if isinstance(value, JsError) else JsError()
        if error is not value:
            error.value = value
        error.name, error.message, error.args = thrown.name, thrown.message, (thrown.message,)
        error.stack, error.module, error.line, error.column = thrown.stack, thrown.module, thrown.line, thrown.column
        error.during_load, error.remote = thrown.duringLoad, True
        return error

    def write_thrown(self, builder: Any, error: Exception) -> None:
        """Writes what a callback raised."""
        raised: object = error
        if isinstance(error, VerdictError):
            raised = _error_of_verdict(error)
        elif isinstance(error, JsError):
            raised = error.value
        name, message, *_ = fields_of_error(raised if isinstance(raised, BaseException) else error)
        builder.name, builder.message = utf8(name), utf8(message)
        try:
            data = encode(raised, lambda _: None)
        except EncodeError:
            return  # The name and the message have to do.
        builder.init("value").cbor = data


class Served(wire.Target.Server):  # type: ignore[misc]
    """The Cap'n Proto side of an object of this process."""

    def __init__(self, connection: Connection, target: object) -> None:
        self.connection, self.target = connection, target

    def __del__(self) -> None:
        """Nobody can call it any more, which streams have to know."""
        if isinstance(self.target, (ServedStream, ServedSink)) and not self.connection.loop.is_closed():
            target, loop = self.target, self.connection.loop
            loop.call_soon_threadsafe(lambda: self.connection.background(target.released))

    async def call_context(self, context: Any) -> None:
        await self.answer(context, self.called(context.params))

    async def get_context(self, context: Any) -> None:
        await self.answer(context, targets.get(self.target, tuple(context.params.path)))

    async def called(self, params: Any) -> Any:
        path, args = tuple(params.path), self.connection.read_value(params.args)
        if args is UNDEFINED:
            args = []
        if not isinstance(args, list):
            raise DecodeError("the arguments of a call are an array")
        return await targets.call(self.target, path, args)

    async def answer(self, context: Any, result: Any) -> None:
        # Whatever goes wrong is told as an exception of JavaScript's: the library would tell it with a traceback.
        try:
            value = await result
            self.connection.write_value(context.results.outcome.init("value"), value)
        except Exception as error:
            self.connection.write_thrown(context.results.outcome.init("threw"), error)


def error_of(error: Any) -> CoracleError:
    """What the transport or the server refused."""
    # What the libraries of both sides put in front of a text.
    text = re.sub("(remote exception: )+(message = )?|(^|(?<=: ))message = ", "", str(error.description)).strip()
    match error.type:
        case "OVERLOADED":
            return OverloadedError(text)
        case "DISCONNECTED":
            return DisconnectedError(text)
        case "UNIMPLEMENTED":
            return UnimplementedError(text)
    return UnauthenticatedError(text) if text.startswith("unauthenticated") else RefusedError(text)


_LEVELS: Final = ("debug", "info", "log", "warn", "error")

_KINDS: Final = {"argsSize": "args_size", "resultSize": "result_size", "valueDepth": "value_depth"} | {
    "isolateLost": "isolate_lost",
    "isolateEvicted": "isolate_evicted",
}


def _read_usage(reader: Any) -> Usage:
    return Usage(
        fuel_load=reader.fuelLoad,
        fuel_run=reader.fuelRun,
        fuel_schedule=reader.fuelSchedule,
        cpu_micros=reader.cpuMicros,
        wall_micros=reader.wallMicros,
        memory_peak_bytes=reader.memoryPeakBytes,
        memory_denied=reader.memoryDenied,
        subrequests=reader.subrequests,
        bytes_in=reader.bytesIn,
        bytes_out=reader.bytesOut,
        isolate_reused=reader.isolateReused,
    )


def _read_log_line(reader: Any) -> LogLine:
    level = str(reader.level)
    if level not in _LEVELS:
        level = "log"
    return LogLine(level, reader.message, Date.to_python(reader.timestampMs))  # type: ignore[arg-type]


def _read_verdict(reader: Any) -> VerdictError:
    # A kind that this client is too old for is still a verdict, with a sentence that says the rest.
    try:
        kind = str(reader.kind)
    except Exception:
        kind = "unknown"
    kind = _KINDS.get(kind, kind)
    return VerdictError.KINDS.get(kind, VerdictError)(
        reader.message,
        kind=kind,
        limit_name=reader.limitName,
        used=reader.used,
        limit=reader.limit,
        started=reader.started,
        subrequests_sent=reader.subrequestsSent,
    )


def _error_of_verdict(verdict: VerdictError) -> JsError:
    """A verdict that a callback lets through, in the form in which workers see verdicts."""
    fields = ("kind", "limit_name", "used", "limit", "started", "subrequests_sent")
    camel = ("kind", "limitName", "used", "limit", "started", "subrequestsSent")
    figures = {name: getattr(verdict, field) for name, field in zip(camel, fields, strict=True)}
    return JsError(verdict.message, verdict=figures)


def _from_json(text: str) -> Any:
    def whole(digits: str) -> int | float:
        number = float(digits)
        return int(number) if abs(number) <= SAFE_INTEGER_MAX else number

    try:
        return json.loads(text, parse_int=whole)
    except (RecursionError, ValueError) as error:
        raise DecodeError(f"the other side's JSON can't be read: {error}") from None
