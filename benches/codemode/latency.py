"""How long `execute` takes with calls of tools, and beside endless loops."""

import asyncio
import contextlib
import sys
import time
from dataclasses import dataclass

import coracle
from market import Market
from mcp import ClientSession

REPEATS = {1: 20, 10: 20, 100: 5}
LOOPS = 100
PATIENT = ("--wall-ms", "300000", "--limit", "subrequest_ms_max=300000")
ONE_AFTER_THE_OTHER = "for (let n = 0; n < {calls}; n++) await market.getRates(); return {calls};"
AT_ONCE = "return (await Promise.all(Array.from({{ length: {calls} }}, () => market.getRates()))).length;"
SHAPES = {"one after the other": ONE_AFTER_THE_OTHER, "at once": AT_ONCE}


@dataclass
class Row:
    where: str
    shape: str
    calls: int
    milliseconds: list[float]

    @property
    def median(self) -> float:
        return sorted(self.milliseconds)[len(self.milliseconds) // 2]


async def measured(session: ClientSession, where: str) -> list[Row]:
    rows = []
    for shape, program in SHAPES.items():
        for calls, repeats in REPEATS.items():
            code = program.format(calls=calls)
            row = Row(where, shape, calls, [])
            for n in range(repeats + 1):
                begun = time.perf_counter()
                answer = await session.call_tool("execute", {"code": code})
                elapsed = (time.perf_counter() - begun) * 1_000
                if answer.structured_content != {"result": calls}:
                    raise SystemExit(f"{where}, {calls} calls: {answer}")
                if n > 0:  # The first one warms up.
                    row.milliseconds.append(elapsed)
            print(f"{where}, {shape}, {calls}: {row.median:.1f} ms", file=sys.stderr, flush=True)
            rows.append(row)
    return rows


@contextlib.asynccontextmanager
async def loops(server: coracle.Server):
    """Keeps endless loops running: where one has been stopped by its limit, the next begins."""
    session = await coracle.connect(server.address)
    # Compiled once; each call has a sandbox of its own.
    worker = await session.load({"main.js": "export default { run(_) { for (;;); } }"})
    stopped = asyncio.Event()

    async def again() -> None:
        while True:
            try:
                await worker.entrypoint().run(None)
            except coracle.VerdictError:
                stopped.set()

    tasks = [asyncio.create_task(again()) for _ in range(LOOPS)]
    await asyncio.sleep(2)
    try:
        yield
        # They were there all the time: none has failed, and what ends one is its limit.
        await asyncio.wait_for(stopped.wait(), 120)
        failed = [task.exception() for task in tasks if task.done()]
        if failed:
            raise SystemExit(f"a loop could not run: {failed[0]}")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.close()


async def latencies(market: Market) -> list[Row]:
    market.renew()
    async with market.coracle(flags=PATIENT) as session:
        rows = await measured(session, "in the command")
    with coracle.serve() as server:
        async with market.coracle(flags=(*PATIENT, "--connect", server.address)) as session:
            rows += await measured(session, "on a server")
            async with loops(server):
                rows += await measured(session, f"on a server, beside {LOOPS} endless loops")
    return rows
