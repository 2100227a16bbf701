"""How a call ended, with what it cost and what it wrote to the console."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from .errors import CoracleError, JsError, VerdictError
from .values import UNDEFINED, Date


@dataclass(frozen=True)
class Usage:
    """What one call cost."""

    fuel_load: int = 0
    """Fuel for evaluating the modules; 0 when the sandbox was already there."""
    fuel_run: int = 0
    """Fuel for the call itself."""
    fuel_schedule: int = 0
    """Version of the price list that fuel is counted by."""
    cpu_micros: int = 0
    """CPU time in microseconds."""
    wall_micros: int = 0
    """Wall time in microseconds, in the server."""
    memory_peak_bytes: int = 0
    """The sandbox's linear memory at its largest."""
    memory_denied: int = 0
    """Growths of memory that were refused."""
    subrequests: int = 0
    """Calls out of the sandbox."""
    bytes_in: int = 0
    """Encoded arguments."""
    bytes_out: int = 0
    """Encoded result."""
    isolate_reused: bool = False
    """Whether the sandbox had served before."""


@dataclass(frozen=True)
class LogLine:
    """A line that a worker wrote to the console."""

    level: Literal["debug", "info", "log", "warn", "error"]
    message: str
    timestamp: datetime | Date
    """The worker's clock when it was written."""


@dataclass(frozen=True)
class Outcome:
    """How a call ended. :attr:`value` is what it returned, or raises what it ended with."""

    result: Any = UNDEFINED
    """What it returned; UNDEFINED where it ended with an error."""
    error: JsError | VerdictError | None = None
    """What it ended with instead."""
    usage: Usage = field(default_factory=Usage)
    """What it cost, also when it failed."""
    logs: list[LogLine] = field(default_factory=list)
    """What it wrote to the console, in order, also when it failed."""
    log_bytes_dropped: int = 0
    """Bytes of console output beyond the limit."""

    @property
    def value(self) -> Any:
        """What it returned.

        :raises JsError: What it threw.
        :raises VerdictError: What stopped it.
        """
        if self.error is not None:
            raise self.error
        return self.result


__all__ = ["CoracleError", "LogLine", "Outcome", "Usage"]
