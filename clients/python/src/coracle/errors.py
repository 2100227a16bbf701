"""What can go wrong. Everything is a :class:`CoracleError`.

Three kinds, kept apart: what the JavaScript threw (:class:`JsError`), what a limit stopped (:class:`VerdictError`), and what
is about the connection and the server (all others), where the class says what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .values import UNDEFINED

if TYPE_CHECKING:
    from .outcome import LogLine, Usage


class CoracleError(Exception):
    """The base of all errors of this package."""


class ConnectError(CoracleError, ConnectionError):
    """There is no server at the address."""


class DisconnectedError(CoracleError, ConnectionError):
    """The connection is gone, or the server is going: connect again."""


class UnauthenticatedError(CoracleError, PermissionError):
    """The token was not accepted, or one is needed."""


class RefusedError(CoracleError):
    """The request is wrong or was refused; sending it again does not help. The message says why."""


class OverloadedError(CoracleError):
    """The server has too much to do; try again later."""


class UnimplementedError(CoracleError):
    """The server is older than this client and does not know the request."""


class EncodeError(CoracleError, TypeError):
    """A value can't be sent. The message says which and what to do."""


class DecodeError(CoracleError, ValueError):
    """Bytes from the other side are no value."""


class DisposedError(CoracleError):
    """A stub was used after it had been disposed of, or its session closed."""


class ServeError(CoracleError):
    """A server could not be started."""


class JsError(CoracleError):
    """A JavaScript error: one that a worker threw, or one that is a value.

    Raise one in a callback to choose what arrives: ``raise JsError("no more than ten", name="RangeError", code=7)``. Other
    exceptions arrive with the name of their class, their ``str()`` and their public attributes.

    :param message: The error's message.
    :param name: Its name, which says which class it is of in JavaScript.
    :param props: Its other properties.
    """

    name: str
    """``"TypeError"``, or the ``name`` of what was thrown; ``"Error"`` where that was a primitive."""
    message: str
    """The error's message."""
    stack: str
    """Frames of the worker's own modules, innermost first, one a line. Empty where unknown."""
    module: str
    """The module in which it was thrown. Empty where unknown."""
    line: int
    """From 1; 0 where unknown."""
    column: int
    """From 1; 0 where unknown."""
    value: Any
    """What was thrown, if it was no error, such as a string; else the error itself. UNDEFINED where it can't be copied."""
    remote: bool
    """Whether a call threw it, rather than it being a value."""
    during_load: bool
    """Thrown while the modules were evaluated: the method was not called."""
    errors: Any
    """What an ``AggregateError`` collects; UNDEFINED where there is no such property."""
    cause: Any
    """The error's ``cause``; UNDEFINED where there is no such property."""
    props: dict[str, Any]
    """Its other properties."""
    usage: Usage | None
    """What the call cost; none where it is a value."""
    logs: list[LogLine]
    """What the call wrote to the console."""

    def __init__(self, message: str = "", *, name: str = "Error", **props: Any) -> None:
        super().__init__(message)
        self.name, self.message, self.props = name, message, props
        self.stack, self.module, self.line, self.column = "", "", 0, 0
        self.value, self.remote, self.during_load = self, False, False
        self.cause, self.errors = UNDEFINED, UNDEFINED
        self.usage, self.logs = None, []

    def __str__(self) -> str:
        text = f"{self.name}: {self.message}" if self.message else self.name
        return f"{text} ({self.module}:{self.line}:{self.column})" if self.module else text


class VerdictError(CoracleError):
    """What the sandbox stopped, and why. A worker can't forge one. docs/limits.md says of each kind whether to try again."""

    kind: str
    """Such as ``"memory"`` or ``"hung"``; the subclass says the same."""
    limit_name: str
    """The limit, such as ``"memory_bytes_max"``; empty where no limit was."""
    used: int
    """How much was used, in the limit's unit."""
    limit: int
    """The limit."""
    message: str
    """A sentence that says what happened and what can be done."""
    started: bool
    """Whether any code of the call ran. If not, it is safe to call again."""
    subrequests_sent: int
    """Calls that had left the sandbox before it was stopped."""
    usage: Usage | None
    """What the call cost."""
    logs: list[LogLine]
    """What the call wrote to the console."""

    KINDS: ClassVar[dict[str, type[VerdictError]]] = {}

    def __init_subclass__(cls, kind: str) -> None:
        VerdictError.KINDS[kind] = cls

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        limit_name: str = "",
        used: int = 0,
        limit: int = 0,
        started: bool = True,
        subrequests_sent: int = 0,
    ) -> None:
        super().__init__(message)
        self.kind, self.limit_name, self.used, self.limit, self.message = kind, limit_name, used, limit, message
        self.started, self.subrequests_sent = started, subrequests_sent
        self.usage, self.logs = None, []

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class FuelExceeded(VerdictError, kind="fuel"):
    """``fuel_max`` is used up."""


class CpuExceeded(VerdictError, kind="cpu"):
    """``cpu_ms_max`` is used up."""


class StartupExceeded(VerdictError, kind="startup"):
    """``startup_fuel_max`` is used up: the modules do too much before the first call."""


class WallExceeded(VerdictError, kind="wall"):
    """``wall_ms_max`` has passed."""


class MemoryExceeded(VerdictError, kind="memory"):
    """``memory_bytes_max`` is reached, or the memory of all sandboxes together."""


class StackExceeded(VerdictError, kind="stack"):
    """The stack of the sandbox ran out."""


class SubrequestsExceeded(VerdictError, kind="subrequests"):
    """``subrequests_max`` is reached."""


class ArgsSizeExceeded(VerdictError, kind="args_size"):
    """Arguments and ``props`` are larger than ``args_bytes_max``."""


class ResultSizeExceeded(VerdictError, kind="result_size"):
    """The result is larger than ``result_bytes_max``."""


class ValueDepthExceeded(VerdictError, kind="value_depth"):
    """A value is nested deeper than ``value_depth_max``."""


class Hung(VerdictError, kind="hung"):
    """The call waits for a promise that nothing is left to settle."""


class InvocationCancelled(VerdictError, kind="cancelled"):
    """The caller gave the call up, or its session ended."""


class IsolateLost(VerdictError, kind="isolate_lost"):
    """Another call in the same sandbox was stopped, and the sandbox with it."""


class IsolateEvicted(VerdictError, kind="isolate_evicted"):
    """The server took the sandbox back, because it shuts down."""


class EngineTrap(VerdictError, kind="trap"):
    """The engine broke. This is a fault of Coracle's: please report it."""


class ExportsExceeded(VerdictError, kind="exports"):
    """``exports_max`` is reached."""


class TimersExceeded(VerdictError, kind="timers"):
    """More timers are pending than are allowed."""
