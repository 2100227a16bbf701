"""From the bytes of schema/value.md to Python values. Everything read here comes from a stranger.

Accepts and refuses what the document says, with its messages. Does not recurse, believes no length before that many bytes are
there, and builds no more than the bytes have.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Generator, Iterable, Sequence
from types import GeneratorType
from typing import Any, Final

from . import tags
from .encode import DEPTH_MAX, SAFE_INTEGER_MAX
from .errors import DecodeError, JsError
from .http import Blob, Headers, Request, Response
from .streams import Stream
from .values import FORMATS, HOLE, UNDEFINED, ArrayBuffer, BigInt, Boxed, DataView, Date, Map, RegExp, Set, TypedArray

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE, _FLOAT, _BREAK = range(10)

_TYPED_ARRAYS: Final = {tag: (kind, False) for kind, tag in tags.TYPED_ARRAYS.items()} | {
    tag: (kind, True) for kind, tag in tags.TYPED_ARRAYS_BIG_ENDIAN.items()
}
_PRIMITIVE_TAGS: Final = frozenset((tags.BIGINT_POSITIVE, tags.BIGINT_NEGATIVE, tags.WTF8))
_NO_IDENTITY_TAGS: Final = _PRIMITIVE_TAGS | {tags.SHARED, tags.REFERENCE, tags.HOLE}
_SIMPLES: Final = {20: False, 21: True, 22: None, 23: UNDEFINED}
_ERROR_FIELDS: Final = ("name", "message", "stack", "cause", "errors", "props")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_DATE_MS_MAX: Final = 8.64e15

Frame = Generator[Any, Any, Any]
"""An array or map that is being read. Returns itself in the end. For a member that is an array or map it yields that one's frame
and is sent what it returned; all others it reads itself."""


def decode(data: bytes, externals: Sequence[object] = (), depth_max: int = DEPTH_MAX) -> Any:
    """The value that the bytes are.

    :param externals: What the value may refer to.
    :raises DecodeError: If the bytes are not exactly one value.
    """
    return _Decoder(data, externals, depth_max).run()


class _NoPrimitive:
    """Stands where something else than a primitive begins."""


_NO_PRIMITIVE: Final = _NoPrimitive()


class _Decoder:
    def __init__(self, data: bytes, externals: Sequence[object], depth_max: int) -> None:
        self.data = data
        self.at = 0
        self.externals = externals
        self.depth_max = depth_max
        self.frames: list[Frame] = []
        self.shared: list[Any] = []
        self.is_shared = False
        """Whether what is read next is marked as shared."""

    def run(self) -> Any:
        frames = self.frames
        value = self.item(False)
        while True:
            if type(value) is GeneratorType:
                frames.append(value)
                value = None
            elif not frames:
                break
            try:
                value = frames[-1].send(value)
            except StopIteration as ended:
                frames.pop()
                value = ended.value
        if self.at < len(self.data):
            raise DecodeError(f"more bytes follow the value at byte {self.at}")
        return value

    # Heads and strings: the rules of form.

    def end(self) -> DecodeError:
        return DecodeError(f"input ends at byte {len(self.data)} before the value does")

    def take(self, count: int) -> bytes:
        at = self.at
        if count > len(self.data) - at:
            raise self.end()
        self.at = at + count
        return self.data[at : at + count]

    def take_break(self) -> bool:
        if self.data[self.at : self.at + 1] == b"\xff":
            self.at += 1
            return True
        return False

    def head(self) -> tuple[int, Any]:
        """The kind and argument of what comes next. A length that is None means members up to a break."""
        at = self.at
        byte = self.take(1)[0]
        major_type, short = byte >> 5, byte & 0x1F
        argument: int | None
        if short <= 23:
            argument = short
        elif short <= 27:
            argument = int.from_bytes(self.take(1 << (short - 24)), "big")
        elif short == 31:
            argument = None
        else:
            raise DecodeError(f"malformed item 0x{byte:02x} at byte {at}")
        if major_type < 7:
            if argument is None and major_type not in (_BYTES, _TEXT, _ARRAY, _MAP):
                raise DecodeError(f"malformed item 0x{byte:02x} at byte {at}")
            return major_type, argument
        if argument is None:
            return _BREAK, None
        if 25 <= short <= 27:
            return _FLOAT, struct.unpack((">e", ">f", ">d")[short - 25], self.data[at + 1 : self.at])[0]
        if short == 24 and argument < 32:
            raise DecodeError(f"malformed item 0x{byte:02x} at byte {at}")
        return _SIMPLE, argument

    def chunks(self, major_type: int) -> list[bytes]:
        chunks = []
        while not self.take_break():
            at = self.at
            kind, length = self.head()
            if kind != major_type or length is None:
                raise DecodeError(f"malformed item 0x{self.data[at]:02x} at byte {at}")
            chunks.append(self.take(length))
        return chunks

    def bytes_of(self, length: int | None) -> bytes:
        return b"".join(self.chunks(_BYTES)) if length is None else self.take(length)

    def tag_bytes(self, tag: int) -> bytes:
        at = self.at
        kind, length = self.head()
        if kind != _BYTES:
            raise _content_invalid(tag, "a byte string", at)
        return self.bytes_of(length)

    def short_text(self, byte: int, at: int) -> str:
        """Text of less than 24 bytes, as most keys are."""
        self.at = end = at + byte - 0x5F
        if end > len(self.data):
            raise self.end()
        try:
            return self.data[at + 1 : end].decode()
        except UnicodeDecodeError:
            raise DecodeError(f"invalid text at byte {at}") from None

    def text(self, kind: int, argument: Any, at: int) -> str | None:
        """The string that begins with this head, if one does."""
        if kind == _TEXT:
            # Each chunk is UTF-8 by itself: a character must not be cut.
            chunks = self.chunks(_TEXT) if argument is None else [self.take(argument)]
            try:
                return "".join([chunk.decode() for chunk in chunks])
            except UnicodeDecodeError:
                raise DecodeError(f"invalid text at byte {at}") from None
        if kind == _TAG and argument == tags.WTF8:
            at = self.at
            try:
                text = self.tag_bytes(tags.WTF8).decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise DecodeError(f"invalid text at byte {at}") from None
            if _PAIR.search(text):
                raise DecodeError(f"invalid text at byte {at}")
            return text
        return None

    # Items.

    def item(self, in_array: bool) -> Any:
        """What comes next: a value, or the frame of an array or map."""
        at = self.at
        byte = self.data[at] if at < len(self.data) else 0xFF
        if byte < 0x18:
            self.at += 1
            return byte
        if 0x60 <= byte < 0x78:
            return self.short_text(byte, at)
        kind, argument = self.head()
        if kind == _TAG and argument == tags.SHARED:
            at = self.at
            kind, argument = self.head()
            if not (kind in (_BYTES, _ARRAY, _MAP) or (kind == _TAG and argument not in _NO_IDENTITY_TAGS)):
                raise _content_invalid(tags.SHARED, "an object", at)
            self.shared.append(None)
            self.is_shared = True
        if kind == _ARRAY:
            return self.array(argument, at)
        if kind == _MAP:
            return self.object(argument, at)
        if kind == _BYTES:
            return self.known(ArrayBuffer(self.bytes_of(argument)))
        if kind == _TAG and argument not in _PRIMITIVE_TAGS:
            return self.tagged(argument, at, in_array)
        value = self.primitive(kind, argument, at)
        if value is _NO_PRIMITIVE:
            raise DecodeError(f"unexpected break at byte {at}")
        return value

    def known(self, value: Any) -> Any:
        """Remembers an object, before its members are read, if it is marked as shared."""
        if self.is_shared:
            self.shared[-1] = value
            self.is_shared = False
        return value

    def primitive(self, kind: int, argument: Any, at: int) -> Any:
        if kind in (_UNSIGNED, _NEGATIVE, _FLOAT):
            return _number(kind, argument)
        if kind == _SIMPLE:
            if argument in _SIMPLES:
                return _SIMPLES[argument]
            raise DecodeError(f"unknown simple value {argument} at byte {at}")
        if kind == _TAG and argument == tags.BIGINT_POSITIVE:
            return BigInt.from_bytes(self.tag_bytes(argument), "big")
        if kind == _TAG and argument == tags.BIGINT_NEGATIVE:
            return BigInt(-1 - int.from_bytes(self.tag_bytes(argument), "big"))
        text = self.text(kind, argument, at)
        return _NO_PRIMITIVE if text is None else text

    def tagged(self, tag: int, tag_at: int, in_array: bool) -> Any:
        if tag in _TYPED_ARRAYS:
            return self.known(self.typed_array(tag))
        if tag == tags.DATA_VIEW:
            return self.known(DataView(self.tag_bytes(tag)))
        if tag == tags.HOLE and not in_array:
            raise DecodeError(f"hole at byte {tag_at} is not in an array")
        if tag not in _TAGS:
            raise DecodeError(f"unknown tag {tag} at byte {tag_at}")
        at = self.at
        kind, argument = self.head()
        return _TAGS[tag](self, kind, argument, at, tag_at)

    def set(self, kind: int, length: Any, at: int, _: int) -> Any:
        if kind != _ARRAY:
            raise _content_invalid(tags.SET, "an array", at)
        return self.members(length, at)

    def map(self, kind: int, length: Any, at: int, _: int) -> Any:
        if kind != _MAP:
            raise _content_invalid(tags.MAP, "a map", at)
        return self.entries(length, at)

    def error(self, kind: int, length: Any, at: int, _: int) -> Any:
        if kind != _MAP:
            raise _content_invalid(tags.ERROR, "a map", at)
        return self.fields(length, at)

    def date(self, kind: int, argument: Any, at: int, _: int) -> Any:
        if kind not in (_UNSIGNED, _NEGATIVE, _FLOAT):
            raise _content_invalid(tags.DATE, "a number", at)
        seconds = _number(kind, argument)
        return self.known(Date.to_python(_milliseconds(float(seconds))))

    def regexp(self, kind: int, length: Any, at: int, _: int) -> Any:
        invalid = _content_invalid(tags.REGEXP, "an array of two strings", at)
        if kind != _ARRAY or length not in (None, 2):
            raise invalid
        self.check_depth(at)
        texts = []
        for _index in range(2):
            text_at = self.at
            text = self.text(*self.head(), text_at)
            if text is None:
                raise invalid
            texts.append(text)
        if length is None and not self.take_break():
            raise invalid
        return self.known(RegExp(*texts))

    def hole(self, kind: int, argument: Any, at: int, _: int) -> Any:
        if (kind, argument) != (_SIMPLE, 22):
            raise _content_invalid(tags.HOLE, "null", at)
        return HOLE

    def boxed(self, kind: int, argument: Any, at: int, _: int) -> Any:
        value = self.primitive(kind, argument, at)
        if value is _NO_PRIMITIVE or value is UNDEFINED or value is None:
            raise _content_invalid(tags.BOXED, "a bool, number, bigint or string", at)
        return self.known(Boxed(value))

    def reference(self, kind: int, index: Any, at: int, tag_at: int) -> Any:
        if kind != _UNSIGNED:
            raise _content_invalid(tags.REFERENCE, "an unsigned integer", at)
        if index >= len(self.shared):
            begun = len(self.shared)
            raise DecodeError(f"reference to shared object {index} at byte {tag_at}, of which {begun} have begun")
        return self.shared[index]

    def external(self, kind: int, index: Any, at: int, tag_at: int) -> Any:
        if kind != _UNSIGNED:
            raise _content_invalid(tags.EXTERNAL, "an unsigned integer", at)
        if index >= len(self.externals):
            raise DecodeError(f"external {index} at byte {tag_at} is not in the table of {len(self.externals)}")
        return self.known(self.externals[index])

    def typed_array(self, tag: int) -> bytes | TypedArray:
        kind, big_endian = _TYPED_ARRAYS[tag]
        at = self.at
        data = self.tag_bytes(tag)
        if kind == "Uint8Array":
            return data
        size = struct.calcsize("<" + FORMATS[kind])
        if len(data) % size:
            raise DecodeError(f"{len(data)} bytes at byte {at} are not whole elements of a {kind}")
        if big_endian:
            data = b"".join(data[start : start + size][::-1] for start in range(0, len(data), size))
        return TypedArray(kind, data)

    def headers(self, kind: int, length: Any, at: int, _: int) -> Any:
        if kind != _ARRAY:
            raise _content_invalid(tags.HEADERS, "an array", at)
        self.check_depth(at)
        return self._headers(self.opened(length, 1), at)

    def _headers(self, count: Iterable[Any], at: int) -> Frame:
        headers = self.known(Headers())
        fields = []
        for _ in count:
            member = self.item(False)
            fields.append((yield member) if type(member) is GeneratorType else member)
        headers.__init__(_header_fields(fields, tags.HEADERS, at))
        return headers

    def record(self, tag: int, kind: int, length: Any, at: int) -> Any:
        if kind != _MAP:
            raise _content_invalid(tag, "a map", at)
        self.check_depth(at)
        return self._record(tag, self.opened(length, 2), at)

    def _record(self, tag: int, count: Iterable[Any], at: int) -> Frame:
        # Made before its fields are read, so that they may refer to it.
        record = self.known(_RECORDS[tag].__new__(_RECORDS[tag]))
        fields: dict[str, Any] = {}
        for _ in count:
            key = self.key()
            member = self.item(False)
            fields[key] = (yield member) if type(member) is GeneratorType else member
        _fill(record, fields, tag, at)
        return record

    # Arrays and maps.

    def check_depth(self, at: int) -> None:
        if len(self.frames) >= self.depth_max:
            raise DecodeError(f"nesting at byte {at} is deeper than the {self.depth_max} levels allowed")

    def array(self, length: int | None, at: int) -> Frame:
        self.check_depth(at)
        return self._array(self.opened(length, 1))

    def _array(self, count: Iterable[Any]) -> Frame:
        elements: list[Any] = self.known([])
        for _ in count:
            member = self.item(True)
            elements.append((yield member) if type(member) is GeneratorType else member)
        return elements

    def object(self, length: int | None, at: int) -> Frame:
        self.check_depth(at)
        return self._object(self.opened(length, 2))

    def _object(self, count: Iterable[Any]) -> Frame:
        properties: dict[str, Any] = self.known({})
        for _ in count:
            key = self.key()
            member = self.item(False)
            properties[key] = (yield member) if type(member) is GeneratorType else member
        return properties

    def members(self, length: int | None, at: int) -> Frame:
        self.check_depth(at)
        return self._members(self.opened(length, 1))

    def _members(self, count: Iterable[Any]) -> Frame:
        members: Set = self.known(Set())
        for _ in count:
            member = self.item(False)
            members.add((yield member) if type(member) is GeneratorType else member)
        return members

    def entries(self, length: int | None, at: int) -> Frame:
        self.check_depth(at)
        return self._entries(self.opened(length, 2))

    def _entries(self, count: Iterable[Any]) -> Frame:
        entries: Map = self.known(Map())
        for _ in count:
            key = self.item(False)
            if type(key) is GeneratorType:
                key = yield key
            member = self.item(False)
            entries[key] = (yield member) if type(member) is GeneratorType else member
        return entries

    def fields(self, length: int | None, at: int) -> Frame:
        self.check_depth(at)
        return self._fields(self.opened(length, 2))

    def _fields(self, count: Iterable[Any]) -> Frame:
        error: JsError = self.known(JsError())
        due = 0
        for _ in count:
            at = self.at
            key = self.key()
            index = _ERROR_FIELDS.index(key) if key in _ERROR_FIELDS else -1
            # Name and message must be there; any other field may be left out.
            if not (index == due or (index > due and due >= 2)):
                raise DecodeError(f"field of an error at byte {at} is unknown, repeated or out of order")
            due = index + 1
            if key in ("cause", "errors"):
                member = self.item(False)
                setattr(error, key, (yield member) if type(member) is GeneratorType else member)
                continue
            at = self.at
            kind, argument = self.head()
            if key == "props":
                if kind != _MAP:
                    raise DecodeError(f"props of an error at byte {at} is not a map")
                error.props = yield self.object(argument, at)
                continue
            text = self.text(kind, argument, at)
            if text is None:
                raise DecodeError(f"{key} of an error at byte {at} is not a string")
            setattr(error, key, text)
        if due < 2:
            raise DecodeError(f"error at byte {self.at} has no {_ERROR_FIELDS[due]}")
        error.args = (error.message,)
        return error

    def key(self) -> str:
        at = self.at
        byte = self.data[at] if at < len(self.data) else 0
        if 0x60 <= byte < 0x78:
            return self.short_text(byte, at)
        text = self.text(*self.head(), at)
        if text is None:
            raise DecodeError(f"key at byte {at} is not a string")
        return text

    def opened(self, length: int | None, items_each: int) -> Iterable[Any]:
        """Counts the members of an array or the entries of a map, and ends where it ends."""
        if length is None:
            return iter(self.take_break, True)
        # An item takes at least a byte. Refusing here what can't be met keeps claims from being believed.
        if length * items_each > len(self.data) - self.at:
            raise self.end()
        return range(length)


_TAGS: Final[dict[int, Callable[[_Decoder, int, Any, int, int], Any]]] = {
    tags.SET: _Decoder.set,
    tags.MAP: _Decoder.map,
    tags.ERROR: _Decoder.error,
    tags.DATE: _Decoder.date,
    tags.REGEXP: _Decoder.regexp,
    tags.HOLE: _Decoder.hole,
    tags.BOXED: _Decoder.boxed,
    tags.REFERENCE: _Decoder.reference,
    tags.EXTERNAL: _Decoder.external,
    tags.HEADERS: _Decoder.headers,
    tags.REQUEST: lambda decoder, kind, length, at, _: decoder.record(tags.REQUEST, kind, length, at),
    tags.RESPONSE: lambda decoder, kind, length, at, _: decoder.record(tags.RESPONSE, kind, length, at),
    tags.BLOB: lambda decoder, kind, length, at, _: decoder.record(tags.BLOB, kind, length, at),
}

_RECORDS: Final[dict[int, type[Request] | type[Response] | type[Blob]]] = {
    tags.REQUEST: Request,
    tags.RESPONSE: Response,
    tags.BLOB: Blob,
}


def _fill(record: Any, fields: dict[str, Any], tag: int, at: int) -> None:
    """Makes the object of its fields. Unknown ones are ignored."""

    def field(name: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        value = fields.get(name, default)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise _content_invalid(tag, f"a {_RECORDS[tag].__name__}: its {name} is of the wrong kind", at)
        return value

    if tag == tags.BLOB:
        name = field("name", (str, type(None)), None)
        modified = field("lastModified", (int, float), 0)
        Blob.__init__(record, bytes(field("bytes", bytes, b"")), field("type", str, ""), name, modified)
        return
    headers = _header_fields(field("headers", list, []), tag, at)
    body = field("body", (bytes, Stream, type(None)), None)
    body = bytes(body) if isinstance(body, bytes) else body
    if tag == tags.REQUEST:
        method, redirect = field("method", str, "GET"), field("redirect", str, "follow")
        Request.__init__(record, field("url", str, None), method=method, headers=headers, body=body, redirect=redirect)
    else:
        status, text = field("status", int, 200), field("statusText", str, "")
        Response.__init__(record, body, status=status, status_text=text, headers=headers)


def _header_fields(fields: list[Any], tag: int, at: int) -> list[tuple[str, str]]:
    for pair in fields:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise _content_invalid(tag, "made of headers, which are pairs of strings", at)
    return [(name, value) for name, value in fields]


def _content_invalid(tag: int, expected: str, at: int) -> DecodeError:
    return DecodeError(f"content of tag {tag} at byte {at} is not {expected}")


def _number(kind: int, argument: Any) -> int | float:
    """A JavaScript number: an int where it is whole and exact, else a float."""
    number: int | float = -1 - argument if kind == _NEGATIVE else argument
    if isinstance(number, int):
        return number if abs(number) <= SAFE_INTEGER_MAX else float(number)
    if number.is_integer() and abs(number) <= SAFE_INTEGER_MAX and (number != 0 or math.copysign(1, number) > 0):
        return int(number)
    return math.nan if number != number else number


def _milliseconds(seconds: float) -> float:
    """The milliseconds of a date that is written as this many seconds; NaN for the invalid date.

    The fraction is rounded by itself: the product of the whole number is rounded once already.
    """
    if not math.isfinite(seconds):
        return math.nan
    whole = float(math.trunc(seconds))
    milliseconds = whole * 1000 + math.floor((seconds - whole) * 1000 + 0.5)
    return milliseconds + 0.0 if abs(milliseconds) <= _DATE_MS_MAX else math.nan
