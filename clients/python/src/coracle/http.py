"""HTTP values: what workers know as ``Headers``, ``Request``, ``Response``, ``Blob`` and ``File``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

from .streams import Reader, Stream

HeadersInit = Union["Headers", Mapping[str, str], Iterable[tuple[str, str]], None]
"""What headers can be made of."""

BodyInit = Union[None, bytes, str, Stream, AsyncIterable[bytes], Reader]
"""What a body can be made of."""


class Headers:
    """Header fields in order. Names may repeat, and are the same in upper and lower case."""

    def __init__(self, fields: HeadersInit = None) -> None:
        pairs = fields.fields() if isinstance(fields, Headers) else fields
        pairs = pairs.items() if isinstance(pairs, Mapping) else pairs or ()
        self._fields: list[tuple[str, str]] = [(name.lower(), value) for name, value in pairs]

    def fields(self) -> list[tuple[str, str]]:
        """Names, in lower case, and values."""
        return list(self._fields)

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value; of a repeated name all of them, with commas in between."""
        values = self.get_all(name)
        return ", ".join(values) if values else default

    def get_all(self, name: str) -> list[str]:
        """The values of that name."""
        return [value for known, value in self._fields if known == name.lower()]

    def append(self, name: str, value: str) -> None:
        """Adds a field beside those of that name."""
        self._fields.append((name.lower(), value))

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        del self[name]
        self.append(name, value)

    def __delitem__(self, name: str) -> None:
        self._fields = [(known, value) for known, value in self._fields if known != name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(known == name.lower() for known, _ in self._fields)

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._fields))

    def __len__(self) -> int:
        return len(dict(self._fields))

    def __eq__(self, other: object) -> bool:
        return self._fields == other._fields if isinstance(other, Headers) else NotImplemented

    def __repr__(self) -> str:
        return f"Headers({self._fields})"


class _Message:
    """What requests and responses have in common."""

    headers: Headers
    """The header fields."""
    body: None | bytes | Stream
    """The body. A stream can be read once."""

    def _init(self, headers: HeadersInit, body: BodyInit) -> None:
        self.headers = Headers(headers)
        if isinstance(body, str):
            body = body.encode()
            if "content-type" not in self.headers:
                self.headers["content-type"] = "text/plain;charset=UTF-8"
        self.body = body if body is None or isinstance(body, (bytes, Stream)) else Stream(body)

    async def bytes(self) -> bytes:
        """The whole body."""
        return await self.body.read() if isinstance(self.body, Stream) else self.body or b""

    async def text(self) -> str:
        """The whole body as text."""
        return (await self.bytes()).decode("utf-8", "replace")

    async def json(self) -> Any:
        """The whole body, which is JSON, as a value."""
        return json.loads(await self.bytes())


class Request(_Message):
    """A request: what workers get in ``fetch(request)``, and what they send to a gateway.

    :param url: An absolute URL.
    :param redirect: ``"follow"``, ``"error"`` or ``"manual"``.
    """

    def __init__(
        self, url: str, *, method: str = "GET", headers: HeadersInit = None, body: BodyInit = None, redirect: str = "follow"
    ) -> None:
        self.url, self.method, self.redirect = url, method, redirect
        self._init(headers, body)

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"


class Response(_Message):
    """A response: what workers and gateways answer a request with."""

    def __init__(
        self, body: BodyInit = None, *, status: int = 200, status_text: str = "", headers: HeadersInit = None
    ) -> None:
        self.status, self.status_text = status, status_text
        self._init(headers, body)

    @classmethod
    def of_json(cls, value: object, *, status: int = 200, headers: HeadersInit = None) -> Response:
        """A response with that value as JSON."""
        response = cls(json.dumps(value).encode(), status=status, headers=headers)
        if "content-type" not in response.headers:
            response.headers["content-type"] = "application/json"
        return response

    @property
    def ok(self) -> bool:
        """Whether the status says success."""
        return 200 <= self.status <= 299

    def __repr__(self) -> str:
        return f"<Response {self.status}>"


@dataclass(frozen=True)
class Blob:
    """A ``Blob``; with a name, a ``File``."""

    data: bytes
    type: str = ""
    name: str | None = None
    last_modified: float = 0
    """Milliseconds since 1970."""
