"""HTTP objects as values."""

from __future__ import annotations

import math

import pytest

import coracle
from coracle.decode import decode
from coracle.encode import encode


def test_http_objects_are_written_and_read() -> None:
    request = coracle.Request("https://a.test/", method="PUT", headers={"X-A": "1"}, body="text", redirect="manual")
    back = decode(encode(request, lambda _: None))
    assert isinstance(back, coracle.Request)
    assert (back.url, back.method, back.redirect, back.body) == ("https://a.test/", "PUT", "manual", b"text")
    assert back.headers.fields() == [("x-a", "1"), ("content-type", "text/plain;charset=UTF-8")]
    response = decode(encode(coracle.Response(b"x", status=404, status_text="Gone"), lambda _: None))
    assert (response.status, response.status_text, response.body, response.ok) == (404, "Gone", b"x", False)
    headers = coracle.Headers([("a", "1"), ("B", "2"), ("A", "3")])
    assert decode(encode(headers, lambda _: None)) == headers
    assert (headers["a"], headers.get_all("A"), headers.get("c"), list(headers)) == ("1, 3", ["1", "3"], None, ["a", "b"])
    blob = coracle.Blob(b"x", "text/plain", "a.txt", 5)
    assert decode(encode([blob, coracle.Blob(b"")], lambda _: None)) == [blob, coracle.Blob(b"")]


HOSTILE = [
    ("d9 9c45 a0", "not an array"),
    ("d9 9c45 81 01", "pairs of strings"),
    ("d9 9c45 81 81 60", "pairs of strings"),
    ("d9 9c46 80", "not a map"),
    ("d9 9c46 a0", "its url is of the wrong kind"),
    ("d9 9c46 a1 63 75726c 01", "its url is of the wrong kind"),
    ("d9 9c47 a1 66 737461747573 f5", "its status is of the wrong kind"),
    ("d9 9c47 a1 64 626f6479 61 78", "its body is of the wrong kind"),
    ("d8 1c d9 9c47 a1 64 626f6479 d8 1d 00", "its body is of the wrong kind"),
    ("d9 9c48 a1 65 6279746573 f6", "its bytes is of the wrong kind"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE)
def test_http_objects_that_are_none_are_refused(data: str, message: str) -> None:
    with pytest.raises(coracle.DecodeError, match=message):
        decode(bytes.fromhex(data.replace(" ", "")))


def test_unknown_fields_are_ignored_and_absent_ones_have_defaults() -> None:
    response = decode(bytes.fromhex("d99c47a1617801"))
    assert (response.status, response.status_text, response.body) == (200, "", None)


def test_infinity_is_no_status() -> None:
    with pytest.raises(coracle.DecodeError):
        decode(encode(coracle.Response(status=math.inf), lambda _: None))  # type: ignore[arg-type]
