"""From Python values to the bytes of schema/value.md, and the table of what they refer to.

A codec of our own, because a value is not any CBOR: shared objects are numbered by where their tags stand, a ``Map`` takes
whole objects as keys, and errors, holes and externals have rules of place. Does not recurse, so that depth is a number and
not a crash.
"""

from __future__ import annotations

import array
import datetime
import math
import re
import struct
from collections.abc import Callable, Generator, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from . import tags
from .errors import EncodeError, JsError
from .http import Blob, Headers, Request, Response
from .values import (
    HOLE,
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Boxed,
    DataView,
    Date,
    HoleType,
    Map,
    RegExp,
    Set,
    TypedArray,
)

DEPTH_MAX: Final = 512
"""Arrays and maps that may be open at once: what a server takes unless it is told otherwise."""

SAFE_INTEGER_MAX: Final = 2**53 - 1

_ATTRIBUTE_DEPTH_MAX: Final = 16

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG = range(7)

Frame = Generator[Any, None, None]
"""An array or map that is being written. Yields the frame of each member that is one itself, and writes all others."""
Export = Callable[[object], "int | None"]
"""Puts what is passed by reference into the table and returns its index; none if it is nothing of the kind."""


def encode(value: object, export: Export, depth_max: int = DEPTH_MAX) -> bytes:
    """The bytes of a value.

    :raises EncodeError: If something in it can't be sent.
    """
    return _Encoder(export, depth_max).run(value)


def wtf16(text: str) -> str:
    """The string as JavaScript sees it: two halves of a surrogate pair are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def utf8(text: str) -> str:
    """The text without lone surrogates, which the wire's texts can't hold."""
    return text.encode("utf-8", "replace").decode()


class _Encoder:
    def __init__(self, export: Export, depth_max: int) -> None:
        self.export = export
        self.depth_max = depth_max
        self.out = bytearray()
        self.starts: dict[int, tuple[int, object]] = {}
        """Where each object begins, by its ``id``. With the object, so that no ``id`` is used twice."""
        self.references: list[tuple[int, int]] = []
        """Where references are to stand, in place of a byte each, and where what they mean begins."""

    def run(self, value: object) -> bytes:
        frames: list[Frame] = []
        frame = self.write(value)
        while True:
            if frame is not None:
                if len(frames) >= self.depth_max:
                    raise EncodeError(f"the value is nested deeper than the {self.depth_max} levels allowed")
                frames.append(frame)
            if not frames:
                return self.finished()
            frame = next(frames[-1], None)
            if frame is None:
                frames.pop()

    def finished(self) -> bytes:
        """The bytes with the marks of shared objects, which are numbered by where they begin."""
        if not self.references:
            return bytes(self.out)
        starts = sorted({start for _, start in self.references})
        numbers = {start: number for number, start in enumerate(starts)}
        marks = [(start, b"\xd8\x1c", 0) for start in starts]
        marks += [(at, b"\xd8\x1d" + _head(_UNSIGNED, numbers[start]), 1) for at, start in self.references]
        result, done = bytearray(), 0
        for at, mark, replaced in sorted(marks):
            result += self.out[done:at]
            result += mark
            done = at + replaced
        return bytes(result + self.out[done:])

    def write(self, value: object) -> Frame | None:
        """Writes a value up to where its members begin, and returns what goes on from there."""
        out = self.out
        kind = type(value)
        if kind is str:
            self.text(value)  # type: ignore[arg-type]
        elif kind is int:
            self.integer(value)  # type: ignore[arg-type]
        elif kind is float:
            self.number(value)  # type: ignore[arg-type]
        elif value is None:
            out.append(0xF6)
        elif value is True:
            out.append(0xF5)
        elif value is False:
            out.append(0xF4)
        elif value is UNDEFINED:
            out.append(0xF7)
        elif kind is dict:
            return None if self.met(value) else self.properties(value)  # type: ignore[arg-type]
        elif kind is list:
            return None if self.met(value) else self.elements(value)  # type: ignore[arg-type]
        elif kind is tuple:
            return self.elements(value)  # type: ignore[arg-type]
        else:
            return self.write_other(value)
        return None

    def met(self, value: object) -> bool:
        """Whether the object was met before; then a reference to it is all that is written."""
        known = self.starts.setdefault(id(value), (len(self.out), value))
        if known[0] == len(self.out):
            return False
        self.references.append((len(self.out), known[0]))
        self.out.append(0)
        return True

    def write_other(self, value: object) -> Frame | None:
        if isinstance(value, HoleType):
            raise EncodeError("HOLE stands for an element that a list does not have, and can't be elsewhere")
        if isinstance(value, (bytes, bytearray, memoryview)):
            self.binary(value)
        elif isinstance(value, BigInt):
            self.bigint(value)
        elif isinstance(value, int):
            self.integer(int(value))
        elif isinstance(value, float):
            self.number(float(value))
        elif isinstance(value, str):
            self.text(str.__str__(value))
        elif isinstance(value, (datetime.datetime, Date)):
            self.date(value)
        elif isinstance(value, RegExp):
            self.head(_TAG, tags.REGEXP)
            self.head(_ARRAY, 2)
            self.text(value.source)
            self.text(value.flags)
        elif isinstance(value, Boxed):
            self.boxed(value)
        elif isinstance(value, array.array):
            self.array(value)
        elif isinstance(value, TypedArray):
            if not self.met(value):
                self.head(_TAG, tags.TYPED_ARRAYS[value.kind])
                self.byte_string(value.data)
        else:
            return self.write_object(value)
        return None

    def write_object(self, value: object) -> Frame | None:
        if self.met(value):
            return None
        if isinstance(value, Map):
            return self.entries(value)
        if isinstance(value, Mapping):
            return self.properties(value)
        if isinstance(value, (Set, set, frozenset)):
            self.head(_TAG, tags.SET)
            return self.elements(value, holes=False)
        if isinstance(value, (list, tuple)):
            return self.elements(value)
        if isinstance(value, BaseException):
            return self.error(value)
        if isinstance(value, Headers):
            self.head(_TAG, tags.HEADERS)
            return self.elements(value.fields())
        if isinstance(value, (Request, Response, Blob)):
            return self.record(*_record(value))
        index = self.export(value)
        if index is None:
            raise EncodeError(_refusal(value))
        self.head(_TAG, tags.EXTERNAL)
        self.head(_UNSIGNED, index)
        return None

    def integer(self, value: int) -> None:
        if 0 <= value <= 23:
            self.out.append(value)
        elif 0 <= value <= SAFE_INTEGER_MAX:
            self.head(_UNSIGNED, value)
        elif -SAFE_INTEGER_MAX <= value < 0:
            self.head(_NEGATIVE, -1 - value)
        else:
            self.bigint(value)

    def bigint(self, value: int) -> None:
        value = int(value)
        self.head(_TAG, tags.BIGINT_NEGATIVE if value < 0 else tags.BIGINT_POSITIVE)
        magnitude = -1 - value if value < 0 else value
        self.byte_string(magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "big"))

    def number(self, value: float) -> None:
        is_whole = value.is_integer() and abs(value) <= SAFE_INTEGER_MAX
        if is_whole and not (value == 0 and math.copysign(1, value) < 0):
            self.integer(int(value))
        else:
            # One NaN only: which of them it was is nobody's business.
            self.out.append(0xFB)
            self.out += struct.pack(">d", math.nan if value != value else value)

    def text(self, text: str) -> None:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            text = wtf16(text)
            data = text.encode("utf-8", "surrogatepass")
            if any("\ud800" <= character <= "\udfff" for character in text):
                self.head(_TAG, tags.WTF8)
                self.byte_string(data)
                return
        if len(data) <= 23:
            self.out.append(0x60 | len(data))
        else:
            self.head(_TEXT, len(data))
        self.out += data

    def binary(self, value: bytes | bytearray | memoryview) -> None:
        if isinstance(value, DataView):
            self.head(_TAG, tags.DATA_VIEW)
        elif not isinstance(value, ArrayBuffer):
            self.head(_TAG, tags.TYPED_ARRAYS["Uint8Array"])
        self.byte_string(value if isinstance(value, (bytes, bytearray)) else value.tobytes())

    def array(self, value: array.array[Any]) -> None:
        kinds = {("i", 1): "Int8Array", ("i", 2): "Int16Array", ("i", 4): "Int32Array", ("i", 8): "BigInt64Array"}
        kinds |= {("u", 1): "Uint8Array", ("u", 2): "Uint16Array", ("u", 4): "Uint32Array", ("u", 8): "BigUint64Array"}
        kinds |= {("f", 4): "Float32Array", ("f", 8): "Float64Array"}
        code = value.typecode
        family = "f" if code in "fd" else "i" if code.islower() and code not in "uw" else "u" if code in "BHILQ" else ""
        kind = kinds.get((family, value.itemsize))
        if kind is None:
            raise EncodeError(f"an array of type code {code!r} is no typed array in JavaScript")
        little = TypedArray.of(kind, value)
        self.head(_TAG, tags.TYPED_ARRAYS[kind])
        self.byte_string(little.data)

    def date(self, value: datetime.datetime | Date) -> None:
        try:
            milliseconds = Date.milliseconds_of(value)
        except TypeError as error:
            raise EncodeError(str(error)) from None
        self.head(_TAG, tags.DATE)
        self.number(milliseconds / 1000)

    def boxed(self, boxed: Boxed) -> None:
        if self.met(boxed):
            return
        if not isinstance(boxed.value, (bool, int, float, str)):
            raise EncodeError(f"Boxed is around a bool, number, BigInt or string and not around {_name(boxed.value)}")
        self.head(_TAG, tags.BOXED)
        self.write(boxed.value)

    def elements(self, values: Iterable[object], holes: bool = True) -> Frame:
        values = list(values)
        self.head(_ARRAY, len(values))
        for value in values:
            if value is HOLE and holes:
                self.head(_TAG, tags.HOLE)
                self.out.append(0xF6)
            elif (frame := self.write(value)) is not None:
                yield frame

    def properties(self, values: Mapping[Any, object]) -> Frame:
        self.head(_MAP, len(values))
        for key, value in values.items():
            if not isinstance(key, str):
                raise EncodeError(
                    f"the key {key!r:.100} of a dict is no string, as in a JavaScript object: use coracle.Map for a Map"
                )
            self.text(key)
            if (frame := self.write(value)) is not None:
                yield frame

    def entries(self, values: Map) -> Frame:
        self.head(_TAG, tags.MAP)
        self.head(_MAP, len(values))
        for entry in values.items():
            for part in entry:
                if (frame := self.write(part)) is not None:
                    yield frame

    def record(self, tag: int, fields: dict[str, object]) -> Frame:
        self.head(_TAG, tag)
        return self.properties(fields)

    def error(self, error: BaseException) -> Frame:
        name, message, stack, cause, errors, props = fields_of_error(error)
        optional = [bool(stack), cause is not UNDEFINED, errors is not UNDEFINED, bool(props)]
        self.head(_TAG, tags.ERROR)
        self.head(_MAP, 2 + sum(optional))
        for key, text in (("name", name), ("message", message), ("stack", stack)):
            if text or key != "stack":
                self.text(key)
                self.text(text)
        if cause is not UNDEFINED:
            self.text("cause")
            if (frame := self.write(cause)) is not None:
                yield frame
        if errors is not UNDEFINED:
            self.text("errors")
            if (frame := self.write(errors)) is not None:
                yield frame
        if props:
            self.text("props")
            yield self.properties(props)

    def byte_string(self, data: bytes | bytearray) -> None:
        self.head(_BYTES, len(data))
        self.out += data

    def head(self, major_type: int, argument: int) -> None:
        self.out += _head(major_type, argument)


def _record(value: Request | Response | Blob) -> tuple[int, dict[str, object]]:
    """The tag and the fields of an HTTP object."""
    if isinstance(value, Blob):
        file = {} if value.name is None else {"name": value.name, "lastModified": value.last_modified}
        return tags.BLOB, {"type": value.type, "bytes": ArrayBuffer(value.data), **file}
    body = ArrayBuffer(value.body) if isinstance(value.body, bytes) else value.body
    rest = {"headers": value.headers.fields(), "body": body}
    if isinstance(value, Request):
        return tags.REQUEST, {"url": value.url, "method": value.method, **rest, "redirect": value.redirect}
    return tags.RESPONSE, {"status": value.status, "statusText": value.status_text, **rest}


def fields_of_error(error: BaseException) -> tuple[str, str, str, Any, Any, dict[str, Any]]:
    """Name, message, stack, cause, errors and further properties of an exception, as JavaScript is told.

    Of other exceptions than JsError that is the name of the class, ``str()``, and those public attributes that can be copied.
    Where in this process it was raised, and why, is none of the worker's business.
    """
    if isinstance(error, JsError):
        return error.name, error.message, error.stack, error.cause, error.errors, error.props
    try:
        message = str(error)
    except Exception:
        message = ""
    props = {key: value for key, value in vars(error).items() if not key.startswith("_") and _can_be_copied(value)}
    return type(error).__name__, message, "", UNDEFINED, UNDEFINED, props


def _can_be_copied(value: object) -> bool:
    try:
        encode(value, lambda _: None, _ATTRIBUTE_DEPTH_MAX)
    except EncodeError:
        return False
    return True


def _head(major_type: int, argument: int) -> bytes:
    first = major_type << 5
    if argument <= 23:
        return bytes((first | argument,))
    if argument <= 0xFF:
        return bytes((first | 24, argument))
    if argument <= 0xFFFF:
        return struct.pack(">BH", first | 25, argument)
    if argument <= 0xFFFF_FFFF:
        return struct.pack(">BI", first | 26, argument)
    return struct.pack(">BQ", first | 27, argument)


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _refusal(value: object) -> str:
    match value:
        case datetime.date():
            hint = "use an aware datetime"
        case re.Pattern():
            hint = "Python's patterns are another language; use coracle.RegExp"
        case Decimal():
            hint = "make it a float or a str"
        case type():
            hint = "classes are not passed; use an instance or a function"
        case _:
            hint = "make it a subclass of coracle.RpcTarget to pass it by reference, or a dict to pass it by value"
    return f"{_name(value)} can't be sent: {hint}"
