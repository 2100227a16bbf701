"""Objects of this process that workers call.

A worker is a stranger: what it can reach is decided here. It sees public attributes of :class:`RpcTarget` instances and what is
in plain dicts and lists there, and nothing of what Python hangs on its objects.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from types import BuiltinMethodType, MethodType
from typing import Any, Final

from .errors import JsError
from .stubs import Remote, Stub

_TAIL_LOG: Final = logging.getLogger("coracle.tail")


class RpcTarget:
    """The base of objects that are passed by reference. Workers call public methods and read public attributes; names with a
    leading underscore are private. Methods may be ``async``.

    ::

        class Counter(coracle.RpcTarget):
            def __init__(self) -> None:
                self.value = 0

            def add(self, by: int) -> int:
                self.value += by
                return self.value
    """


class Target(ABC):
    """The base of objects that answer to any name, such as a proxy's."""

    @abstractmethod
    async def call(self, path: tuple[str, ...], args: list[Any]) -> Any:
        """A call of the method that the names lead to; none call the object itself."""

    async def get(self, path: tuple[str, ...]) -> Any:
        """Reads the property that the names lead to."""
        raise not_implemented(path[-1] if path else "")


class Gateway(Target):
    """What a worker's ``fetch()`` and ``connect()`` go to: an object with such methods, or a function that takes a request."""

    def __init__(self, gateway: object) -> None:
        if not (callable(gateway) or hasattr(gateway, "fetch") or hasattr(gateway, "connect")):
            kind = type(gateway).__name__
            raise TypeError(f"a gateway is a function, an object with fetch() or connect(), or a stub, and not {kind}")
        self.gateway = gateway

    async def call(self, path: tuple[str, ...], args: list[Any]) -> Any:
        if path not in (("fetch",), ("connect",)):
            raise not_implemented(path[-1] if path else "")
        method = getattr(self.gateway, path[0], None)
        if method is None and path[0] == "fetch" and callable(self.gateway):
            method = self.gateway
        if method is None:
            raise not_implemented(path[0])
        result = method(*args)
        return await result if inspect.isawaitable(result) else result


class Tail(Target):
    """What is told of a worker's calls: a function that takes the events, or an object with a method for them."""

    def __init__(self, tail: object) -> None:
        if isinstance(tail, Remote) or not is_target(tail):
            raise TypeError(f"a tail is a function, an RpcTarget or a stub, and not {type(tail).__name__}")
        self.tail = tail

    async def call(self, path: tuple[str, ...], args: list[Any]) -> Any:
        is_object = isinstance(self.tail, (RpcTarget, Target))
        try:
            await call(self.tail, path if is_object else (), args)
        except Exception:
            # Nobody waits for what a tail returns, so nobody else would say it.
            _TAIL_LOG.exception("a tail raised")
            raise


def is_target(value: object) -> bool:
    """Whether it is passed by reference."""
    if isinstance(value, (RpcTarget, Target)):
        return True
    return callable(value) and not isinstance(value, (type, Remote))


def identity(value: object) -> Hashable:
    """What is equal for what is the same object. Methods are made anew whenever they are read."""
    if isinstance(value, Gateway):
        return Gateway, identity(value.gateway)
    return value if isinstance(value, (MethodType, BuiltinMethodType)) else id(value)


async def call(target: object, path: tuple[str, ...], args: list[Any]) -> Any:
    """Calls the method at the path."""
    found, rest = _find(target, path)
    if isinstance(found, Target):
        return await found.call(rest, args)
    if isinstance(found, Stub):
        return await found.call(rest, *args)
    if rest or not is_target(found) or isinstance(found, RpcTarget):
        name = rest[0] if rest else path[-1] if path else ""
        raise JsError(f'"{name}" is not a function.', name="TypeError") if name else JsError(
            "the object is not a function.", name="TypeError"
        )
    function: Callable[..., Any] = found
    result = function(*args)
    return await result if inspect.isawaitable(result) else result


async def get(target: object, path: tuple[str, ...]) -> Any:
    """Reads the property at the path."""
    found, rest = _find(target, path)
    if isinstance(found, Target) and rest:
        return await found.get(rest)
    if isinstance(found, Stub) and rest:
        return await found.get(*rest)
    if rest:
        raise not_implemented(rest[0])
    return found


def _find(target: object, path: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    """What the path leads to; or an object on the way that goes on by itself, with the rest of the path."""
    for index, name in enumerate(path):
        if isinstance(target, (Target, Stub)):
            return target, path[index:]
        target = _member(target, name)
    return target, ()


def _member(target: object, name: str) -> object:
    if isinstance(target, RpcTarget) and not name.startswith("_"):
        try:
            return getattr(target, name)
        except AttributeError:
            raise not_implemented(name) from None
    if type(target) is dict and name in target:
        return target[name]
    if type(target) is list and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(target):
        return target[int(name)]
    raise not_implemented(name)


def not_implemented(name: str) -> JsError:
    """What a worker gets where there is no such method or property."""
    return JsError(f'The RPC receiver does not implement the method "{name}".', name="TypeError")
