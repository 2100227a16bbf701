"""Where the code comes from of a worker that is got by an id."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Union

from .code import Module, WorkerCode, write_code
from .encode import fields_of_error, utf8
from .schema import wire

Code = Union[WorkerCode, Mapping[str, Module]]
"""What a worker is made of: its modules by name, or those with the rest."""

CodeSource = Callable[[], Union[Code, Awaitable[Code]]]
"""Makes a worker's code: a function without parameters, sync or async."""


class ServedSource(wire.CodeSource.Server):  # type: ignore[misc]
    """The Cap'n Proto side of a source."""

    def __init__(self, source: CodeSource) -> None:
        self.source = source
        self.error: Exception | None = None
        """What went wrong when it was asked."""

    async def code_context(self, context: Any) -> None:
        """Answers with the code."""
        try:
            write_code(context.results.init("code"), await self.ask())
        except Exception as error:
            self.error = error
        if self.error is not None:
            raise _told(self.error)

    async def ask(self) -> WorkerCode:
        """The code, which is checked for being any."""
        answer: object = self.source()
        if inspect.isawaitable(answer):
            answer = await answer
        code = WorkerCode(answer) if isinstance(answer, Mapping) else answer
        if not isinstance(code, WorkerCode):
            raise TypeError(f"a source returns modules by name or a WorkerCode, and not {type(answer).__name__}")
        return code


def _told(error: Exception) -> Exception:
    """The exception as others are told of it: name and message, without the traceback that the library would tell."""
    name, message, *_ = fields_of_error(error)
    without = {"__module__": "builtins", "__traceback__": None}
    told: Exception = type(utf8(name).replace("\0", "") or "Error", (Exception,), without)(utf8(message))
    return told
