"""What tails are told, and that telling them costs nobody anything."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from conftest import PATIENCE, Load, eventually, module, settles

import coracle

WORKER = """
    run(n) { console.log('ran', n, { a: 1 }); return n; }
    boom() { throw new RangeError('out'); }
    spin() { console.warn('before'); for (;;); }
"""

Event = dict[str, Any]


class Tail:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def take(self, events: list[Event]) -> None:
        await asyncio.sleep(0)
        self.events += events

    async def told(self, number: int) -> list[Event]:
        """Waits until that many events have come."""
        await eventually(lambda: len(self.events) >= number)
        return self.events


async def test_a_function_is_told_of_each_call_when_it_is_over(load: Load) -> None:
    tail = Tail()
    entry = await load(WORKER, tails=[tail.take], limits=coracle.Limits(cpu_ms_max=30))
    assert await entry.run(5) == 5
    with pytest.raises(coracle.JsError):
        await entry.boom()
    with pytest.raises(coracle.CpuExceeded):
        await entry.spin()
    ran, threw, stopped = await tail.told(3)
    assert (ran["outcome"], ran["event"], ran["entrypoint"]) == ("ok", {"rpcMethod": "run"}, "default")
    assert [(line["level"], line["message"]) for line in ran["logs"]] == [("log", ["ran", 5, {"a": 1}])]
    assert ran["usage"]["fuelRun"] > 0 and ran["verdict"] is None and not ran.get("dropped")
    assert (threw["outcome"], threw["event"], threw["exceptions"]) == ("ok", {"rpcMethod": "boom"}, [])
    assert (stopped["outcome"], stopped["verdict"]["limitName"]) == ("exceededCpu", "cpu_ms_max")
    assert [line["message"] for line in stopped["logs"]] == [["before"]]


async def test_a_streaming_tail_is_told_while_the_call_runs(load: Load) -> None:
    tail, may_end = Tail(), asyncio.Event()
    entry = await load(
        "async run(wait) { console.log('first'); await wait(); console.log('second'); }", streaming_tails=[tail.take]
    )
    running = asyncio.ensure_future(entry.run(may_end.wait))
    assert [event["event"]["type"] for event in await tail.told(2)] == ["onset", "log"]
    assert not running.done()
    may_end.set()
    await running
    events = await tail.told(4)
    assert [event["event"]["type"] for event in events] == ["onset", "log", "log", "outcome"]
    assert [event["sequence"] for event in events] == [0, 1, 2, 3]
    assert len({event["invocation"] for event in events}) == 1


async def test_objects_and_workers_are_tails_by_their_methods(load: Load) -> None:
    class Told(coracle.RpcTarget):
        def __init__(self) -> None:
            self.methods: list[str] = []

        def tail(self, events: list[Event]) -> None:
            self.methods += ["tail"] * len(events)

        async def tailStream(self, events: list[Event]) -> None:
            self.methods += ["tailStream"] * len(events)

    told, of_worker = Told(), Tail()
    methods = "tail(events) { return this.env.TELL(events.map((event) => event.event.rpcMethod)); }"
    worker = await load(methods, env={"TELL": of_worker.take})
    entry = await load(WORKER, tails=[told, worker], streaming_tails=[told])
    await entry.run(1)
    await eventually(lambda: sorted(told.methods) == ["tail", "tailStream", "tailStream", "tailStream"])
    assert await of_worker.told(1) == ["run"]  # type: ignore[comparison-overlap]


async def test_a_tail_that_raises_is_logged_and_told_again(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Event] = []

    def fails(events: list[Event]) -> None:
        told.extend(events)
        raise RuntimeError("the tail is broken")

    with caplog.at_level(logging.ERROR, "coracle.tail"):
        entry = await load(WORKER, tails=[fails])
        assert await entry.run(1) == 1
        await eventually(lambda: len(told) == 1)
        assert await entry.run(2) == 2
        await eventually(lambda: len(told) == 2)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("coracle.tail", "a tail raised")] * 2
    assert "the tail is broken" in caplog.text


async def test_a_tail_that_never_answers_delays_neither_calls_nor_other_tails(server: coracle.Server) -> None:
    told, cancelled = asyncio.Event(), asyncio.Event()

    async def never(events: list[Event]) -> None:
        told.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tail = Tail()
    async with coracle.connect(server.address) as session:
        entry = session.load(module(WORKER), tails=[never, tail.take]).entrypoint()
        for n in range(30):
            assert await asyncio.wait_for(entry.run(n), PATIENCE) == n
        await asyncio.wait_for(told.wait(), PATIENCE)
        events = await tail.told(30)
        assert [event["logs"][0]["message"][1] for event in events] == list(range(30))
        assert not cancelled.is_set()
    # It ends with the session.
    await asyncio.wait_for(cancelled.wait(), PATIENCE)
    await settles(server, "coracle_calls_in_flight", 0)


async def test_what_is_no_tail_is_refused(session: coracle.Session) -> None:
    for wrong in (5, "tail", Tail()):
        with pytest.raises(TypeError, match=f"a tail is a function, .* and not {type(wrong).__name__}"):
            session.load(module(WORKER), tails=[wrong])
    with pytest.raises(coracle.RefusedError, match="16"):
        await session.load(module(WORKER), tails=[print] * 17)
