"""Loading, calling, and what calls come back with."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Load, eventually, metric, module, settles

import coracle

MODULE_OF_STUBS = module("make() { return () => 1; } run(f) { return f(); }")
ADD = module("add(a, b) { console.log('adding', a, b); return a + b; }")


async def test_a_worker_is_loaded_and_called(session: coracle.Session) -> None:
    assert session.tenant == "default"
    worker = await session.load(ADD)
    entry = worker.entrypoint("default")
    assert await entry.call("add", 20, 22) == 42
    assert await entry.add(20, 22) == 42
    assert await entry["add"](20, 22) == 42


async def test_the_whole_way_takes_no_waiting_in_between(session: coracle.Session) -> None:
    assert await session.load(ADD).entrypoint().add(1, 2) == 3


async def test_an_outcome_has_usage_and_logs(session: coracle.Session) -> None:
    outcome = await session.load(ADD).entrypoint().invoke("add", 1, 2)
    assert (outcome.value, outcome.error) == (3, None)
    assert [(line.level, line.message) for line in outcome.logs] == [("log", "adding 1 2")]
    assert outcome.usage.fuel_run > 0 and outcome.usage.fuel_load > 0 and outcome.usage.cpu_micros > 0
    assert (outcome.usage.bytes_in, outcome.usage.bytes_out, outcome.log_bytes_dropped) == (3, 1, 0)


async def test_modules_of_all_kinds(session: coracle.Session) -> None:
    worker = await session.load(
        {
            "main.js": "import cjs from 'lib.cjs'; import json from 'a.json'; import text from 'a.txt'; import data from 'a.bin';\n"
            "import { WorkerEntrypoint } from 'cloudflare:workers';\n"
            "export default class extends WorkerEntrypoint { all() { return [cjs.n, json, text, data]; } }",
            "lib.cjs": coracle.CommonJs("exports.n = 7;"),
            "a.json": coracle.Json({"ä": [1, None]}),
            "a.txt": coracle.Text("plain"),
            "a.bin": b"\0\xff",
        },
        main_module="main.js",
    )
    assert await worker.entrypoint().all() == [7, {"ä": [1, None]}, "plain", coracle.ArrayBuffer(b"\0\xff")]


async def test_env_props_and_named_entrypoints(session: coracle.Session) -> None:
    worker = await session.load(
        {
            "main.js": "import { WorkerEntrypoint } from 'cloudflare:workers';\n"
            "export class Named extends WorkerEntrypoint { where() { return [this.env, this.ctx.props]; } }"
        },
        env={"PLACE": "here", "N": 1},
    )
    assert await worker.entrypoint("Named", props={"who": "ada"}).where() == [{"PLACE": "here", "N": 1}, {"who": "ada"}]


async def test_limits_of_worker_and_entrypoint(session: coracle.Session) -> None:
    worker = await session.load(module("spin() { for (;;); }"), limits=coracle.Limits(cpu_ms_max=40))
    for entry, name in (
        (worker.entrypoint(), "cpu_ms_max"),
        (worker.entrypoint(limits=coracle.Limits(fuel_max=60_000_000)), "fuel_max"),
    ):
        with pytest.raises(coracle.VerdictError) as stopped:
            await entry.spin()
        verdict = stopped.value
        assert (verdict.limit_name, verdict.started) == (name, True)
        assert verdict.used >= verdict.limit > 0
        assert verdict.usage is not None and verdict.usage.fuel_run > 0
        assert isinstance(verdict, coracle.CpuExceeded if name == "cpu_ms_max" else coracle.FuelExceeded)


def test_limits_are_checked_where_they_are_written() -> None:
    for bad in (0, -1, 1.5, 2**64, "1"):
        with pytest.raises(ValueError, match="cpu_ms_max is a whole number above 0"):
            coracle.Limits(cpu_ms_max=bad)  # type: ignore[arg-type]


async def test_outbound_is_the_sessions_policy_or_nowhere(session: coracle.Session) -> None:
    source = module("async go() { try { await fetch('http://a.test'); } catch (e) { return e.name; } }")
    assert isinstance(await session.load(source).entrypoint().go(), str)
    assert isinstance(await session.load(source, outbound=None).entrypoint().go(), str)


async def test_refused_code_says_all_that_is_wrong(session: coracle.Session) -> None:
    with pytest.raises(coracle.RefusedError, match="No such module: gone.js"):
        await session.load(ADD, main_module="gone.js")
    # Without a wait it shows at the first call.
    with pytest.raises(coracle.RefusedError, match="No such module: gone.js"):
        await session.load(ADD, main_module="gone.js").entrypoint().add(1, 2)
    with pytest.raises(TypeError, match="module 'a.js' is a str"):
        session.load({"a.js": 1})  # type: ignore[dict-item]


async def test_ready_evaluates_the_modules(session: coracle.Session) -> None:
    assert (await session.load(ADD).ready()).result is coracle.UNDEFINED
    with pytest.raises(coracle.JsError) as threw:
        await session.load({"main.js": "throw new TypeError('not today')"}).ready()
    assert (threw.value.name, threw.value.message, threw.value.during_load) == ("TypeError", "not today", True)


async def test_what_a_worker_throws_arrives_whole(load: Load) -> None:
    entry = await load(
        "far() { const e = new RangeError('too far', { cause: 'why' }); e.code = 7; throw e; } five() { throw 5; }"
        "own() { class MyError extends Error { name = 'MyError'; } console.warn('x'); throw new MyError('mine'); }"
    )
    with pytest.raises(coracle.JsError) as threw:
        await entry.far()
    error = threw.value
    assert (error.name, error.message, error.cause, error.props) == ("RangeError", "too far", "why", {"code": 7})
    assert (error.module, error.line, error.remote, error.value) == ("main.js", 2, True, error)
    assert error.column > 0 and "at far (main.js:2:" in error.stack
    assert error.usage is not None and error.usage.fuel_run > 0
    with pytest.raises(coracle.JsError) as threw:
        await entry.five()
    assert (threw.value.name, threw.value.value) == ("Error", 5)
    outcome = await entry.invoke("own")
    assert isinstance(outcome.error, coracle.JsError) and outcome.error.name == "MyError"
    assert [line.level for line in outcome.logs] == ["warn"] == [line.level for line in outcome.error.logs]
    with pytest.raises(coracle.JsError):
        _ = outcome.value


async def test_a_call_that_can_never_end_is_found_out(load: Load) -> None:
    entry = await load("hang() { return new Promise(() => {}); }")
    with pytest.raises(coracle.Hung) as hung:
        await entry.hang()
    assert hung.value.kind == "hung" and hung.value.limit_name == ""


async def test_every_kind_of_verdict_has_a_class() -> None:
    from coracle.schema import wire

    kinds = wire.VerdictKind.schema.enumerants
    snake = {"".join(f"_{c.lower()}" if c.isupper() else c for c in kind) for kind in kinds}
    assert snake == set(coracle.VerdictError.KINDS)


async def test_three_hundred_calls_at_once(session: coracle.Session) -> None:
    entry = session.load(ADD).entrypoint()
    assert await asyncio.gather(*[entry.add(n, 1) for n in range(300)]) == [n + 1 for n in range(300)]


async def test_calls_take_place_in_the_order_in_which_they_were_sent(load: Load) -> None:
    entry = await load("make() { let n = 0; return () => ++n; } next() { return globalThis.n = (globalThis.n ?? 0) + 1; }")
    expected = list(range(1, 51))
    assert await asyncio.gather(*[entry.next() for _ in expected]) == expected
    function = await entry.make()
    assert await asyncio.gather(*[function() for _ in expected]) == expected
    pipelined = entry.make()
    assert await asyncio.gather(*[pipelined() for _ in expected]) == expected


MAKE = """
    make() { let n = 40; class Counter extends RpcTarget { add(by) { return n += by; } get value() { return n; } }
             return { counter: new Counter(), double: (x) => x * 2, plain: [1] }; }
    plain() { return { 1: { deep: 'x' }, a: 1 }; }
    getter() { class Store extends RpcTarget { get(key) { return `got ${key}`; } call(x) { return `called ${x}`; } }
               return new Store(); }
"""


async def test_stubs_come_back_and_keep_their_state(load: Load) -> None:
    entry = await load(MAKE)
    made = await entry.make()
    assert made["plain"] == [1]
    counter, double = made["counter"], made["double"]
    assert [await counter.add(1), await counter.add(1)] == [41, 42]
    assert await counter.value == 42 == await counter.get("value")
    assert await double(21) == 42
    with pytest.raises(coracle.JsError, match="does not implement the method") as missing:
        await counter.reset()
    assert missing.value.name == "TypeError"
    store = await entry.getter()
    assert [await store["get"]("a"), await store.call("get", "a"), await store.call("call", 1)] == ["got a", "got a", "called 1"]


async def test_calls_go_through_results_that_are_not_there_yet(load: Load) -> None:
    entry = await load(MAKE)
    made = entry.make()
    assert await asyncio.gather(*[made.counter.add(1), made.counter.add(1), made.double(5)]) == [41, 42, 10]
    assert (await made)["plain"][0] == 1
    assert await entry.plain()["1"].deep == "x"
    with pytest.raises(coracle.JsError, match="not a function"):
        await entry.plain().a()
    with pytest.raises(coracle.JsError, match="no such thing"):
        await (await load("fail() { throw new Error('no such thing'); }")).fail().a.b.c(1)


async def test_stubs_are_let_go_of(server: coracle.Server, load: Load) -> None:
    # What an isolate has given out is bounded, so giving out ever more works only if each is let go of.
    entry = await load("make() { return () => 1; }", limits=coracle.Limits(exports_max=3))
    for _ in range(5):
        async with await entry.make() as function:
            assert await function() == 1
    with pytest.raises(coracle.DisposedError):
        await function()
    for _ in range(5):
        (await entry.make()).dispose()
    for _ in range(10):
        assert await (await entry.make())() == 1


async def test_stubs_are_let_go_of_by_the_garbage_collector_in_any_thread(load: Load) -> None:
    entry = await load("make() { return () => 1; }", limits=coracle.Limits(exports_max=3))
    for _ in range(10):
        cycle: dict[str, Any] = {"stub": await entry.make()}
        cycle["self"] = cycle
        held = cycle["stub"]._handle.connection.held
        number = cycle["stub"]._handle.number
        del cycle
        collecting = threading.Thread(target=gc.collect)
        collecting.start()
        collecting.join()
        await eventually(lambda number=number: number not in held)  # type: ignore[misc]


async def test_cancelling_the_task_cancels_the_call(server: coracle.Server, load: Load) -> None:
    entry = await load("nap(ms) { return new Promise((done) => setTimeout(done, ms)); } add(a, b) { return a + b; }")
    await entry.add(1, 2)
    nap = asyncio.ensure_future(entry.nap(25_000))
    await settles(server, "coracle_calls_in_flight", 1)
    nap.cancel()
    with pytest.raises(asyncio.CancelledError):
        await nap
    await settles(server, "coracle_calls_in_flight", 0)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(entry.nap(25_000), 0.05)
    await settles(server, "coracle_calls_in_flight", 0)


async def test_a_call_that_is_given_up_or_dropped_is_cancelled(server: coracle.Server, load: Load) -> None:
    entry = await load("nap(ms) { return new Promise((done) => setTimeout(done, ms)); }")
    nap = entry.nap(25_000)
    await settles(server, "coracle_calls_in_flight", 1)
    nap.cancel()
    await settles(server, "coracle_calls_in_flight", 0)
    nap = entry.nap(25_000)
    await settles(server, "coracle_calls_in_flight", 1)
    del nap
    await settles(server, "coracle_calls_in_flight", 0)


async def test_closing_a_session_ends_its_calls_and_its_stubs(server: coracle.Server) -> None:
    session = await coracle.connect(server.address)
    entry = session.load(module("nap() { return new Promise((done) => setTimeout(done, 20000)); }")).entrypoint()
    nap = asyncio.ensure_future(entry.nap())
    await settles(server, "coracle_calls_in_flight", 1)
    await session.close()
    with pytest.raises(coracle.DisconnectedError, match="closed"):
        await nap
    with pytest.raises(coracle.DisconnectedError, match="closed"):
        await entry.nap()
    await session.close()
    await settles(server, "coracle_calls_in_flight", 0)


async def test_sessions_of_one_program_do_not_mix(server: coracle.Server, session: coracle.Session) -> None:
    async with coracle.connect(server.address) as other:
        stub = await other.load(module("make() { return () => 1; }")).entrypoint().make()
        with pytest.raises(coracle.EncodeError, match="another session"):
            session.load(ADD).entrypoint().add(stub, 1)
        assert await stub() == 1
    assert await session.load(ADD).entrypoint().add(1, 1) == 2


async def test_a_stub_of_another_session_is_refused_anywhere(server: coracle.Server, session: coracle.Session) -> None:
    async with coracle.connect(server.address) as other:
        stub = await other.load(module("make() { return () => 1; }")).entrypoint().make()
        entry = session.load(module("run(f) { return f(); }")).entrypoint()
        refused: list[Callable[[], object]] = [
            lambda: entry.run(stub),
            lambda: entry.run({"deep": [coracle.Map({1: {stub}})]}),
            lambda: session.load(ADD, env={"stub": stub}),
            lambda: session.load(ADD, outbound=stub),
            lambda: session.load(ADD, tails=[stub]),
            lambda: session.load(ADD, streaming_tails=[stub]),
            lambda: session.get("foreign", lambda: ADD, env={"stub": stub}),
            lambda: session.load(ADD).entrypoint(props={"stub": stub}),
        ]
        for use in refused:
            with pytest.raises(coracle.EncodeError, match="a stub of another session can't be sent"):
                use()
        # What a callback returns is told to the worker.
        with pytest.raises(coracle.JsError, match="a stub of another session can't be sent"):
            await entry.run(lambda: [stub])
        # And none of it has broken what is there.
        assert await stub() == 1 == await entry.run(lambda: 1)


async def test_a_stub_that_was_disposed_of_is_refused_anywhere(session: coracle.Session) -> None:
    entry = session.load(MODULE_OF_STUBS).entrypoint()
    stub, kept = await entry.make(), await entry.make()
    stub.dispose()
    refused: list[Callable[[], object]] = [
        lambda: stub(),
        lambda: stub.call("method"),
        lambda: stub.get("property"),
        lambda: stub.method(1),
        lambda: entry.run([stub]),
        lambda: session.load(ADD, env={"stub": stub}),
        lambda: session.load(ADD, outbound=stub),
        lambda: session.load(ADD, tails=[stub]),
    ]
    for use in refused:
        with pytest.raises(coracle.DisposedError, match="the stub was used after it had been disposed of"):
            use()
    with pytest.raises(coracle.DisposedError):
        await stub.property
    with pytest.raises(coracle.DisposedError):
        await stub.fetch("https://worker.test/")
    with pytest.raises(coracle.JsError, match="DisposedError: the stub was used after it had been disposed of"):
        await entry.run(lambda: stub)
    stub.dispose()
    assert await kept() == 1


async def test_stubs_of_a_session_that_is_closed_are_refused(server: coracle.Server) -> None:
    async with coracle.connect(server.address) as session:
        worker = session.load(MODULE_OF_STUBS)
        entry = worker.entrypoint()
        stub = await entry.make()
    refused: list[Callable[[], object]] = [
        lambda: stub(),
        lambda: entry.run(stub),
        lambda: worker.entrypoint(),
        lambda: session.load(ADD),
        lambda: session.load(ADD, env={"loader": session.loader}),
        lambda: session.get("closed", lambda: ADD),
    ]
    for use in refused:
        with pytest.raises(coracle.DisconnectedError, match="the session is closed"):
            use()
    stub.dispose()


async def test_nothing_is_left_behind(server: coracle.Server) -> None:
    async with coracle.connect(server.address) as session:
        assert await session.load(ADD).entrypoint().add(1, 1) == 2
    for series in ("coracle_calls_in_flight", "coracle_connections", "coracle_sessions_live", "coracle_workers_live"):
        await settles(server, series, 0)
    assert metric(server, "coracle_panics_total") == 0
