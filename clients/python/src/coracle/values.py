"""JavaScript values that Python has no type for, and those whose Python type would lose something.

The rest needs none: ``None``, ``bool``, ``int``, ``float``, ``str``, ``list``, ``dict``, aware ``datetime``, ``bytes`` (a
``Uint8Array``), functions, and exceptions. README.md has the whole table.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSet
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, final

__all__ = [
    "HOLE",
    "UNDEFINED",
    "ArrayBuffer",
    "BigInt",
    "Boxed",
    "DataView",
    "Date",
    "HoleType",
    "Map",
    "RegExp",
    "Set",
    "TypedArray",
    "UndefinedType",
]


@final
class UndefinedType:
    """The type of :data:`UNDEFINED`."""

    __slots__ = ()
    _only: UndefinedType | None = None

    def __new__(cls) -> UndefinedType:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __reduce__(self) -> str:
        return "UNDEFINED"


@final
class HoleType:
    """The type of :data:`HOLE`."""

    __slots__ = ()
    _only: HoleType | None = None

    def __new__(cls) -> HoleType:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "HOLE"

    def __reduce__(self) -> str:
        return "HOLE"


UNDEFINED: Final = UndefinedType()
"""JavaScript's ``undefined``; ``None`` is its ``null``."""

HOLE: Final = HoleType()
"""An element that an array does not have, as in ``[1, , 3]``. Only in lists."""


class BigInt(int):
    """A JavaScript bigint. A plain ``int`` is sent as a number, and as a bigint only beyond ±(2**53 - 1)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"BigInt({int(self)})"


class ArrayBuffer(bytes):
    """A JavaScript ``ArrayBuffer``. Plain ``bytes`` are a ``Uint8Array``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ArrayBuffer({bytes(self)!r})"


class DataView(bytes):
    """A JavaScript ``DataView``, with the bytes that it shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"DataView({bytes(self)!r})"


FORMATS: Final[Mapping[str, str]] = {
    "Int8Array": "b",
    "Uint8Array": "B",
    "Uint8ClampedArray": "B",
    "Int16Array": "h",
    "Uint16Array": "H",
    "Int32Array": "i",
    "Uint32Array": "I",
    "BigInt64Array": "q",
    "BigUint64Array": "Q",
    "Float16Array": "e",
    "Float32Array": "f",
    "Float64Array": "d",
}
"""The classes of typed arrays, with how ``struct`` calls their elements."""


@dataclass(frozen=True)
class TypedArray:
    """A JavaScript typed array other than ``Uint8Array``.

    :param kind: Its class, such as ``"Int16Array"``.
    :param data: Its elements, little-endian.
    """

    kind: str
    data: bytes

    def __post_init__(self) -> None:
        if self.kind not in FORMATS:
            raise ValueError(f"there is no typed array {self.kind!r}")
        if len(self.data) % self.item_bytes:
            raise ValueError(f"{len(self.data)} bytes are not whole elements of a {self.kind}")

    @classmethod
    def of(cls, kind: str, elements: Iterable[float]) -> TypedArray:
        """The typed array of that class with those elements."""
        if kind not in FORMATS:
            raise ValueError(f"there is no typed array {kind!r}")
        elements = list(elements)
        return cls(kind, struct.pack(f"<{len(elements)}{FORMATS[kind]}", *elements))

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return struct.calcsize("<" + FORMATS[self.kind])

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return list(struct.unpack(f"<{len(self)}{FORMATS[self.kind]}", self.data))

    def __len__(self) -> int:
        return len(self.data) // self.item_bytes


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DATE_MS_MAX: Final = 8.64e15


@dataclass(frozen=True)
class Date:
    """A JavaScript ``Date`` that no ``datetime`` can hold: the invalid one, and those outside of the years 1 to 9999.

    :param milliseconds: Since 1970; NaN is the invalid date.
    """

    milliseconds: float

    @staticmethod
    def to_python(milliseconds: float) -> datetime | Date:
        """The date as an aware ``datetime``, if one can hold it."""
        try:
            return _EPOCH + timedelta(milliseconds=int(milliseconds))
        except (OverflowError, ValueError):
            return Date(milliseconds)

    @staticmethod
    def milliseconds_of(date: datetime | Date) -> float:
        """The milliseconds as JavaScript clips them."""
        if isinstance(date, datetime):
            if date.tzinfo is None:
                raise TypeError("a datetime without a time zone is no moment: use datetime.now(timezone.utc) and the like")
            return float((date - _EPOCH) // _MILLISECOND)
        milliseconds = date.milliseconds
        if math.isnan(milliseconds) or abs(milliseconds) > _DATE_MS_MAX:
            return math.nan
        return math.trunc(milliseconds) + 0.0


@dataclass(frozen=True)
class RegExp:
    """A JavaScript ``RegExp``. Python's patterns are another language, so neither becomes the other."""

    source: str
    flags: str = ""


@dataclass(frozen=True)
class Boxed:
    """What ``new Number(1)``, ``Object("a")`` and their like make: a primitive in an object."""

    value: bool | int | float | str


class _Key:
    """A key by JavaScript's rules: ``1`` and ``1.0`` are one, ``1`` and ``true`` are two, and objects are themselves only."""

    __slots__ = ("_compared", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self._compared: tuple[object, ...]
        if isinstance(value, bool) or value is None:
            self._compared = (type(value), value)
        elif isinstance(value, BigInt):
            # As text, whose hash is secret: a stranger can choose integers that all have one hash.
            self._compared = (BigInt, hex(value))
        elif isinstance(value, (int, float)):
            self._compared = (float, "NaN" if value != value else value)
        elif isinstance(value, str):
            self._compared = (str, value)
        else:
            self._compared = (object, id(value))

    def __hash__(self) -> int:
        return hash(self._compared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._compared == other._compared


class Map(MutableMapping[Any, Any]):
    """A JavaScript ``Map``: any value may be a key. Objects are equal to themselves only, as they are there.

    ``Map([(key, value), …])`` or ``Map({key: value})``.
    """

    def __init__(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries: dict[_Key, Any] = {}
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        for key, value in pairs:
            self[key] = value

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._entries[_Key(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries[_Key(key)] = value

    def __delitem__(self, key: Any) -> None:
        try:
            del self._entries[_Key(key)]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[Any]:
        return (key.value for key in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return self._entries == other._entries if isinstance(other, Map) else NotImplemented

    def __repr__(self) -> str:
        return f"<Map of {len(self)}>"


class Set(MutableSet[Any]):
    """A JavaScript ``Set``: any value may be a member. Objects are equal to themselves only, as they are there."""

    def __init__(self, members: Iterable[Any] = ()) -> None:
        self._members: dict[_Key, None] = {}
        for member in members:
            self.add(member)

    def add(self, value: Any) -> None:
        """Adds a member, unless it is there."""
        self._members.setdefault(_Key(value))

    def discard(self, value: Any) -> None:
        """Removes a member, if it is there."""
        self._members.pop(_Key(value), None)

    def __contains__(self, value: object) -> bool:
        return _Key(value) in self._members

    def __iter__(self) -> Iterator[Any]:
        return (key.value for key in self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"<Set of {len(self)}>"
