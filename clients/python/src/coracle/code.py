"""What a worker is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EsModule:
    """JavaScript with imports and exports. A plain ``str`` is the same."""

    source: str


@dataclass(frozen=True)
class CommonJs:
    """JavaScript with ``require`` and ``exports``."""

    source: str


@dataclass(frozen=True)
class Text:
    """A module whose default export is that string."""

    text: str


@dataclass(frozen=True)
class Json:
    """A module whose default export is that value, which must be JSON's."""

    value: Any

    def text(self) -> str:
        """Its text."""
        return json.dumps(self.value, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Data:
    """A module whose default export is an ``ArrayBuffer`` of those bytes. Plain ``bytes`` are the same."""

    data: bytes


@dataclass(frozen=True)
class Wasm:
    """A WebAssembly module. Servers refuse these so far."""

    data: bytes


Module = str | bytes | EsModule | CommonJs | Text | Json | Data | Wasm
"""A module's body."""


@dataclass(frozen=True)
class WorkerCode:
    """What a source of :meth:`~coracle.Session.get` returns where the modules alone don't say enough."""

    modules: Mapping[str, Module]
    """The modules by name."""
    main_module: str | None = None
    """The module whose exports are the entrypoints; by default the first."""
    compatibility_date: str = ""
    """``YYYY-MM-DD``; empty for the newest date that the server knows."""
    compatibility_flags: Sequence[str] = ()
    """By the Workers rules."""


@dataclass(frozen=True)
class Limits:
    """Limits that are asked for; none asks for none. They can only lower what the server allows. See docs/limits.md."""

    fuel_max: int | None = None
    """Fuel of one call; about 15,000,000 a millisecond."""
    cpu_ms_max: int | None = None
    """CPU time of one call in milliseconds, that of evaluating the modules for it included."""
    startup_fuel_max: int | None = None
    """Fuel for evaluating the modules."""
    wall_ms_max: int | None = None
    """Wall time of one call in milliseconds."""
    memory_bytes_max: int | None = None
    """Linear memory of the sandbox in bytes."""
    subrequests_max: int | None = None
    """Calls out of the sandbox that one call may start."""
    subrequests_in_flight_max: int | None = None
    """Of these, how many may wait at once."""
    subrequest_ms_max: int | None = None
    """How long one of these may wait for its answer, in milliseconds; then it throws."""
    args_bytes_max: int | None = None
    """Encoded arguments and ``props`` of a call in bytes."""
    result_bytes_max: int | None = None
    """Encoded result of a call in bytes."""
    log_bytes_max: int | None = None
    """Console output of a call in bytes."""
    value_depth_max: int | None = None
    """Nesting of arguments and results."""
    exports_max: int | None = None
    """Stubs that a sandbox may have given out."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (isinstance(value, int) and 0 < value < 2**64):
                raise ValueError(f"{name} is a whole number above 0 and not {value!r}")


def module_body(name: str, module: Module) -> dict[str, str | bytes]:
    """The module as the schema's union."""
    match module:
        case str():
            return {"esModule": module}
        case EsModule():
            return {"esModule": module.source}
        case CommonJs():
            return {"commonJs": module.source}
        case Text():
            return {"text": module.text}
        case Json():
            return {"json": module.text()}
        case bytes():
            return {"data": module}
        case Data():
            return {"data": module.data}
        case Wasm():
            return {"wasm": module.data}
    raise TypeError(f"module {name!r} is a str, bytes or one of coracle's module classes, and not {type(module).__name__}")


def write_code(builder: Any, code: WorkerCode) -> None:
    """Writes the code into the schema's struct."""
    if not isinstance(code.modules, Mapping):
        raise TypeError(f"modules are a mapping from names to bodies, and not {type(code.modules).__name__}")
    names = [_text("the name of a module", name) for name in code.modules]
    main_module = names[0] if code.main_module is None and names else code.main_module or ""
    builder.compatibilityDate = _text("compatibility_date", code.compatibility_date)
    builder.compatibilityFlags = [_text("a compatibility flag", flag) for flag in code.compatibility_flags]
    builder.mainModule = _text("main_module", main_module)
    builder.modules = [{"name": name, "body": module_body(name, module)} for name, module in code.modules.items()]


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a str, and not {type(value).__name__}")
    return value


def limits_fields(limits: Limits | None) -> dict[str, int]:
    """The limits as the schema's struct."""
    asked = {} if limits is None else vars(limits)
    return {_camel(name): value for name, value in asked.items() if value is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
