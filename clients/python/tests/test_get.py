"""Workers by an id, and where their code comes from."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from conftest import PATIENCE, eventually, module

import coracle
from coracle.connection import KEPT_MAX

COUNTER = module("next() { return globalThis.n = (globalThis.n ?? 0) + 1; } use(x) { return this.env.tool(x); }")


class Source:
    """Gives code, and counts how often it was asked."""

    def __init__(self, code: object = COUNTER) -> None:
        self.code, self.asked = code, 0

    def __call__(self) -> Any:
        self.asked += 1
        return self.code


async def next_of(session: coracle.Session, id: str, source: coracle.CodeSource, **options: Any) -> int:
    return int(await session.get(id, source, **options).entrypoint().next())


async def test_the_source_is_asked_where_there_is_no_worker(server: coracle.Server, session: coracle.Session) -> None:
    source = Source()
    worker = await session.get("asked once", source)
    assert [await worker.entrypoint().next() for _ in range(2)] == [1, 2]
    assert [await next_of(session, "asked once", source) for _ in range(2)] == [3, 4]
    assert source.asked == 1
    assert await next_of(session, "another id", source) == 1
    assert source.asked == 2
    # What holds data only is the tenant's.
    async with coracle.connect(server.address) as other:
        assert await next_of(other, "asked once", source) == 5
    assert source.asked == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"fingerprint": "v1"}, {"fingerprint": "v2"}),
        ({"env": {"place": "here"}}, {"env": {"place": "there"}}),
        ({"outbound": None}, {}),
        ({"limits": coracle.Limits(cpu_ms_max=500)}, {"limits": coracle.Limits(cpu_ms_max=400)}),
    ],
    ids=lambda options: next(iter(options), "none"),
)
async def test_all_arguments_tell_workers_apart(
    session: coracle.Session, one: dict[str, Any], other: dict[str, Any]
) -> None:
    source, id = Source(), f"apart by {next(iter(one))}"
    asked = [await next_of(session, id, source, **options) for options in (one, other, one, other)]
    assert (asked, source.asked) == ([1, 1, 2, 2], 2)


async def test_a_fingerprint_is_text_or_bytes(session: coracle.Session) -> None:
    source = Source()
    digest = hashlib.sha256(b"code").digest()
    assert [await next_of(session, "fingerprint", source, fingerprint=digest) for _ in range(2)] == [1, 2]
    assert await next_of(session, "fingerprint", source, fingerprint="ä") == 1
    assert await next_of(session, "fingerprint", source, fingerprint="ä".encode()) == 2


async def test_a_source_may_be_async_and_give_all_of_the_code(session: coracle.Session) -> None:
    async def source() -> coracle.WorkerCode:
        await asyncio.sleep(0)
        return coracle.WorkerCode(
            {
                "a.js": coracle.EsModule("export default 7"),
                "b.js": "import n from 'a.js'; export default { n: (_) => n }",
            },
            main_module="b.js",
            compatibility_date="2025-01-01",
        )

    worker = await session.get("all of the code", source)
    assert await worker.entrypoint().n(0) == 7


async def test_who_asks_meanwhile_waits_for_the_same_answer(session: coracle.Session) -> None:
    asked, may_answer = 0, asyncio.Event()

    async def source() -> coracle.Code:
        nonlocal asked
        asked += 1
        await may_answer.wait()
        return COUNTER

    calls = [asyncio.ensure_future(next_of(session, "single flight", source)) for _ in range(20)]
    await eventually(lambda: asked > 0)
    # A call that is there in full means that the server has read all gets before it.
    assert await session.load(COUNTER).entrypoint().next() == 1
    assert not any(call.done() for call in calls)
    may_answer.set()
    assert sorted(await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)) == list(range(1, 21))
    assert asked == 1


async def test_functions_and_objects_tell_workers_apart(server: coracle.Server, session: coracle.Session) -> None:
    class Tools(coracle.RpcTarget):
        def __init__(self, factor: int) -> None:
            self.factor = factor

        def multiply(self, n: int) -> int:
            return n * self.factor

        def __eq__(self, other: object) -> bool:
            return True  # All are equal, and none has a hash: that is not what makes them the same.

    def double(n: int) -> int:
        return n * 2

    double_too = [lambda n: n * 2]
    tools = [Tools(2), Tools(3)]
    source = Source()
    # Python makes a method anew whenever it is read.
    reads: list[Callable[[], object]] = [
        lambda: double,
        lambda: double_too[0],
        lambda: tools[0].multiply,
        lambda: tools[1].multiply,
    ]
    for read in reads:
        before = source.asked
        for _ in range(2):
            worker = session.get("tools", source, env={"tool": read()})
            assert await worker.entrypoint().use(5) in (10, 15)
        assert source.asked == before + 1
    for whole in tools * 2:
        await session.get("objects", source, env={"tool": whole})
    assert source.asked == 6
    # They are this session's.
    async with coracle.connect(server.address) as other:
        assert await other.get("tools", source, env={"tool": double}).entrypoint().use(5) == 10
    assert source.asked == 7


async def test_gateways_and_stubs_tell_workers_apart(session: coracle.Session) -> None:
    class Gateway:
        async def fetch(self, request: coracle.Request) -> coracle.Response:
            return coracle.Response(f"from {request.url}")

    source = Source(module("async go() { return await (await fetch('https://a.test/')).text(); }"))
    gateway, another = Gateway(), Gateway()
    for outbound in (gateway, another, gateway):
        assert await session.get("gateway", source, outbound=outbound).entrypoint().go() == "from https://a.test/"
    assert source.asked == 2

    function = await session.load(module("make() { return (n) => n + 1; }")).entrypoint().make()
    source = Source()
    for _ in range(2):
        assert await session.get("stub", source, env={"tool": function}).entrypoint().use(1) == 2
    assert source.asked == 1


async def test_not_more_is_kept_of_what_was_given_than_the_server_keeps_workers(session: coracle.Session) -> None:
    functions = [lambda n=n: n for n in range(KEPT_MAX + 5)]
    entry = session.get("many", Source(), env={"tool": functions[0], "all": functions}).entrypoint()
    assert await entry.use(3) == 3
    assert len(session._connection.kept) == KEPT_MAX


ANY: Any = 5


def fails_with(error: BaseException) -> Callable[[], Any]:
    def source() -> None:
        raise error

    return source


@pytest.mark.parametrize(
    ("source", "message", "cause"),
    [
        (fails_with(FileNotFoundError("no reports.js")), "FileNotFoundError: no reports.js", FileNotFoundError),
        (fails_with(coracle.JsError("not today", name="RangeError")), "RangeError: not today", coracle.JsError),
        (fails_with(ValueError("half a pair: \ud800")), "ValueError: half a pair: ?", ValueError),
        (lambda: None, "returns modules by name or a WorkerCode, and not NoneType", TypeError),
        (lambda: "export default {}", "returns modules by name or a WorkerCode, and not str", TypeError),
        (lambda: {"main.js": 5}, "module 'main.js' is a str, bytes or one of coracle's module classes", TypeError),
        (lambda: {5: ""}, "the name of a module is a str, and not int", TypeError),
        (lambda: coracle.WorkerCode(ANY), "modules are a mapping from names to bodies, and not int", TypeError),
        (lambda: coracle.WorkerCode(COUNTER, main_module=ANY), "main_module is a str, and not int", TypeError),
        (lambda: coracle.WorkerCode(COUNTER, compatibility_flags=[ANY]), "flag is a str, and not int", TypeError),
        (lambda must: COUNTER, "missing 1 required positional argument: 'must'", TypeError),
        (lambda: {}, "must contain at least one module", type(None)),
        (lambda: coracle.WorkerCode(COUNTER, main_module="gone.js"), "No such module: gone.js", type(None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_source_that_gives_no_code_fails_the_request_and_says_why(
    session: coracle.Session, source: Any, message: str, cause: type[Exception]
) -> None:
    with pytest.raises(coracle.RefusedError) as refused:
        await session.get("fails", source)
    assert message in str(refused.value) and isinstance(refused.value.__cause__, cause)
    # Without a wait it shows at the first call, without this side's files and lines.
    with pytest.raises(coracle.RefusedError) as refused:
        await session.get("fails", source).entrypoint().next()
    assert message in str(refused.value) and ".py" not in str(refused.value) and "message =" not in str(refused.value)


async def test_a_source_that_failed_is_asked_again(session: coracle.Session) -> None:
    with pytest.raises(coracle.RefusedError, match="not yet"):
        await session.get("again", fails_with(RuntimeError("not yet")))
    assert await next_of(session, "again", Source()) == 1


async def test_what_is_no_source_is_refused_at_once(session: coracle.Session) -> None:
    with pytest.raises(TypeError, match="a source is a function that returns the code, and not dict"):
        session.get("no source", COUNTER)  # type: ignore[arg-type]
    with pytest.raises(coracle.RefusedError, match="id: it has 1025 bytes, 1024 are allowed"):
        await session.get("x" * 1_025, Source())


async def test_a_source_is_cancelled_when_the_worker_is_disposed_of(session: coracle.Session) -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def never() -> coracle.Code:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return COUNTER

    worker = session.get("given up", never)
    await asyncio.wait_for(asked.wait(), PATIENCE)
    worker.dispose()
    await asyncio.wait_for(cancelled.wait(), PATIENCE)
    assert await next_of(session, "given up", Source()) == 1


async def test_a_source_of_a_session_that_goes_is_cancelled_and_the_next_is_asked(server: coracle.Server) -> None:
    cancelled, asked = asyncio.Event(), asyncio.Event()

    async def never() -> coracle.Code:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return COUNTER

    async with coracle.connect(server.address) as patient:
        async with coracle.connect(server.address) as hasty:
            first: Awaitable[int] = asyncio.ensure_future(next_of(hasty, "who goes", never))
            await asyncio.wait_for(asked.wait(), PATIENCE)
            second: Awaitable[int] = asyncio.ensure_future(next_of(patient, "who goes", Source()))
        with pytest.raises(coracle.DisconnectedError):
            await asyncio.wait_for(first, PATIENCE)
        await asyncio.wait_for(cancelled.wait(), PATIENCE)
        assert await asyncio.wait_for(second, PATIENCE) == 1
