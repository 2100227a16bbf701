"""Byte streams in both directions, and HTTP on top of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from conftest import PATIENCE, Load, eventually, module

import coracle

SUM = """
    async sum(stream, most = Infinity) {
        let sum = 0, pieces = 0;
        for await (const piece of stream) { pieces++; for (const byte of piece) sum += byte; if (sum >= most) break; }
        return sum;
    }
    async text(stream) { return await new Response(stream).text(); }
    async failed(stream) {
        try { for await (const piece of stream); return 'all'; } catch (error) { return `${error.name}: ${error.message}`; }
    }
"""


class Pieces:
    """Counts what was taken of it, and whether it was closed."""

    def __init__(self, pieces: Iterator[bytes], fail_with: Exception | None = None) -> None:
        self.pieces, self.fail_with = pieces, fail_with
        self.given, self.is_closed = 0, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for piece in self.pieces:
                self.given += 1
                yield piece
            if self.fail_with is not None:
                raise self.fail_with
        finally:
            self.is_closed = True


def forever() -> Iterator[bytes]:
    while True:
        yield b"\1" * 1000


async def test_iterables_and_readers_arrive_as_streams(load: Load) -> None:
    entry = await load(SUM)
    assert await entry.text(coracle.Stream([b"one ", b"", b"two"])) == "one two"
    assert await entry.text(coracle.Stream(Pieces(iter([b"a", b"b"])))) == "ab"
    reader = asyncio.StreamReader()
    reader.feed_data(b"from a reader")
    reader.feed_eof()
    assert await entry.text(coracle.Stream(reader)) == "from a reader"
    assert await entry.text(coracle.Stream([])) == ""


async def test_the_reader_sets_the_pace_and_stopping_closes_the_source(load: Load) -> None:
    entry = await load(SUM)
    pieces = Pieces(forever())
    assert await entry.sum(coracle.Stream(pieces), 5_000) >= 5_000
    await eventually(lambda: pieces.is_closed)
    # As many as were asked for, and one that may have been asked for ahead.
    assert pieces.given <= 7


async def test_a_stream_that_has_nothing_at_the_moment_is_cancelled_all_the_same(load: Load) -> None:
    closed = asyncio.Event()

    async def waits() -> AsyncIterator[bytes]:
        try:
            yield b"abc"
            await asyncio.Event().wait()
        finally:
            closed.set()

    entry = await load("""
        async first(stream) {
            const reader = stream.getReader();
            const { value } = await reader.read();
            const next = reader.read();
            await scheduler.wait(20);
            await reader.cancel('enough');
            return [value.length, (await next).done];
        }""")
    assert await asyncio.wait_for(entry.first(coracle.Stream(waits())), PATIENCE) == [3, True]
    await asyncio.wait_for(closed.wait(), PATIENCE)
    reader = asyncio.StreamReader()
    reader.feed_data(b"abc")
    assert await asyncio.wait_for(entry.first(coracle.Stream(reader)), PATIENCE) == [3, True]


async def test_a_source_that_fails_fails_the_stream(load: Load) -> None:
    entry = await load(SUM)
    broken = Pieces(iter([b"a"]), coracle.JsError("broken pipe", name="RangeError"))
    assert await entry.failed(coracle.Stream(broken)) == "RangeError: broken pipe"
    assert "made of bytes and not of str" in await entry.failed(coracle.Stream(["text"]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="made of pieces"):
        coracle.Stream(b"bytes")  # type: ignore[arg-type]


async def test_a_stream_that_nobody_reads_is_closed_with_the_session_at_the_latest(server: coracle.Server) -> None:
    pieces = Pieces(forever())
    stream = coracle.Stream(pieces)
    assert await stream.read(10) == b"\1" * 10
    async with coracle.connect(server.address) as session:
        assert await session.load(module("ignore(stream) { return 1; }")).entrypoint().ignore(stream) == 1
    del stream
    await eventually(lambda: pieces.is_closed)


MAKE = """
    make(n) { let left = n; return new ReadableStream({ type: 'bytes', pull(c) {
        if (left-- > 0) c.enqueue(new TextEncoder().encode(`${left} `)); else { c.close(); c.byobRequest?.respond(0); } } }); }
    endless() { return new ReadableStream({ type: 'bytes', pull(c) { c.enqueue(new Uint8Array(10)); },
        cancel(reason) { globalThis.cancelled = String(reason); } }); }
    state() { return globalThis.cancelled ?? 'not cancelled'; }
    breaks() { let n = 0; return new ReadableStream({ type: 'bytes', pull(c) {
        if (n++ < 2) c.enqueue(new Uint8Array(3)); else throw new RangeError('the well is dry'); } }); }
    upper() { return new TransformStream({ transform(piece, c) { c.enqueue(piece.map((byte) => byte - 32)); } }); }
    shout() { const { readable, writable } = this.upper(); return { readable, writable }; }
"""


async def test_streams_of_workers_are_read_in_any_way(load: Load) -> None:
    entry = await load(MAKE)
    assert b"".join([piece async for piece in await entry.make(3)]) == b"2 1 0 "
    assert await (await entry.make(3)).read() == b"2 1 0 "
    stream = await entry.make(3)
    read = [await stream.read(1) for _ in range(7)]
    assert read == [b"2", b" ", b"1", b" ", b"0", b" ", b""]
    assert await (await entry.make(0)).read() == b""
    broken = await entry.breaks()
    assert [await broken.read(2), await broken.read(2), await broken.read(2), await broken.read(2)] == [
        *(b"\0\0", b"\0", b"\0\0", b"\0")
    ]
    with pytest.raises(coracle.JsError, match="RangeError: the well is dry"):
        await broken.read(2)
    assert await broken.read(2) == b""


async def test_cancelling_and_letting_go_tell_the_worker(load: Load) -> None:
    entry = await load(MAKE)
    stream = await entry.endless()
    assert len(await stream.read(10)) == 10
    await stream.cancel("enough")
    assert await entry.state() == "enough"
    assert await stream.read(1) == b""
    stream = await entry.endless()
    del stream

    async def told() -> None:
        while await entry.state() == "enough":
            await asyncio.sleep(0.02)

    await asyncio.wait_for(told(), PATIENCE)


async def test_streams_are_written_to_in_both_directions(load: Load) -> None:
    entry = await load(MAKE)
    pair = await entry.shout()
    readable, writable = pair["readable"], pair["writable"]
    reading = asyncio.ensure_future(readable.read())
    for piece in (b"ab", b"cd"):
        await writable.write(piece)
    await writable.close()
    assert await reading == b"ABCD"

    written: list[bytes] = []
    ended: list[Any] = []
    writer = await load(
        "async fill(sink) { const w = sink.getWriter(); await w.write(new Uint8Array([1])); await w.write(new Uint8Array([2, 3])); await w.close(); }"
        "async fail(sink) { const w = sink.getWriter(); await w.write(new Uint8Array([9])); await w.abort('no more'); }"
    )

    async def take(piece: bytes) -> None:
        written.append(piece)

    await writer.fill(coracle.Sink(take, close=lambda: ended.append("closed")))
    assert (b"".join(written), ended) == (b"\1\2\3", ["closed"])
    await writer.fail(coracle.Sink(written.append, abort=ended.append))
    await eventually(lambda: len(ended) == 2)
    assert written[-1] == b"\x09"


async def test_a_long_stream_crosses_in_both_directions_at_once(load: Load) -> None:
    entry = await load(
        "invert(stream) {"
        "const inverting = new TransformStream({ transform(piece, c) { c.enqueue(piece.map((byte) => ~byte)); } });"
        "return stream.pipeThrough(inverting); }"
    )
    sent = random.Random(1).randbytes(3_000_000)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), 70_001):
            yield sent[start : start + 70_001]

    inverted = await (await entry.invert(coracle.Stream(pieces()))).read()
    assert inverted == bytes(byte ^ 0xFF for byte in sent)


async def test_a_stream_of_one_worker_is_passed_to_another(load: Load) -> None:
    maker, user = await load(MAKE), await load(SUM)
    assert await user.text(await maker.make(4)) == "3 2 1 0 "
    stream = await maker.make(2)
    assert await stream.read(1) == b"1"
    assert await user.text(stream) == " 0 "


FETCH = """
    async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === '/echo') return new Response(request.body, { status: 201, headers: { 'x-method': request.method } });
        return Response.json({ text: await request.text(), type: request.headers.get('content-type') });
    }
"""


async def test_entrypoints_are_fetched_from(load: Load) -> None:
    entry = await load(FETCH)
    body = coracle.Stream([b"one ", b"two"])
    response = await entry.fetch(coracle.Request("https://worker.test/echo", method="POST", body=body))
    assert (response.status, response.ok, response.headers["x-method"]) == (201, True, "POST")
    assert await response.bytes() == b"one two"
    response = await entry.fetch("https://worker.test/", method="PUT", body="short")
    assert await response.json() == {"text": "short", "type": "text/plain;charset=UTF-8"}
    with pytest.raises(coracle.JsError):
        await (await load("other() {}")).fetch("https://worker.test/")
    with pytest.raises(coracle.JsError, match="has to return a Response"):
        await (await load("fetch() { return 1; }")).fetch("https://worker.test/")


ASK = """
    async ask(url) {
        try { const r = await fetch(url, { method: 'POST', body: 'ahoy', headers: { a: 'b' } }); return [r.status, await r.text()]; }
        catch (error) { return [error.name, error.message]; }
    }
"""


async def test_a_gateway_gets_what_a_worker_fetches(load: Load) -> None:
    seen: list[Any] = []

    class Gateway:
        async def fetch(self, request: coracle.Request) -> coracle.Response:
            seen.append((request.url, request.method, request.headers["a"], await request.text()))
            if "forbidden" in request.url:
                raise PermissionError("not on the list")
            return coracle.Response(coracle.Stream([b"a", b"ye"]), status=202)

    entry = await load(ASK, outbound=Gateway())
    assert await entry.ask("https://api.test/v1?q=1") == [202, "aye"]
    assert seen == [("https://api.test/v1?q=1", "POST", "b", "ahoy")]
    assert await entry.ask("https://forbidden.test/") == ["PermissionError", "not on the list"]
    function = await load(ASK, outbound=lambda request: coracle.Response.of_json({"url": request.url}))
    assert await function.ask("https://api.test/") == [200, '{"url": "https://api.test/"}']
    # Another worker is one as well.
    worker = await load(FETCH)
    assert await (await load(ASK, outbound=worker)).ask("https://worker.test/echo") == [201, "ahoy"]
    with pytest.raises(TypeError, match=r"a gateway is a function, an object with fetch\(\) .* and not int"):
        await load(ASK, outbound=5)
    nowhere = await load(ASK, outbound=None)
    assert (await nowhere.ask("https://api.test/"))[0] == "Error"


async def test_a_gateway_answers_connections(load: Load) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data.upper())
        writer.close()

    class Gateway:
        async def connect(self, address: str, options: Any = None) -> dict[str, Any]:
            assert address == "db.test:5432"
            reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
            return {"readable": coracle.Stream(reader), "writable": coracle.Sink(writer, close=writer.write_eof)}

    async with await asyncio.start_server(shout, "127.0.0.1", 0) as listener:
        entry = await load(
            "async talk() { const { connect } = await import('cloudflare:sockets'); const socket = connect('db.test:5432');"
            "const w = socket.writable.getWriter(); await w.write(new TextEncoder().encode('ahoy')); await w.close();"
            "return await new Response(socket.readable).text(); }",
            outbound=Gateway(),
        )
        assert await entry.talk() == "AHOY"
