"""Tests in sandboxes of a server: each in a fresh worker, loaded and called like everybody's."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import coracle
from checkout import Checkout, Imported, Test
from record import Record

DRIVER: Final = (Path(__file__).with_name("driver.js")).read_text()
LIMITS: Final = coracle.Limits(
    # Some tests ask about every code point there is: the longest take a quarter of this.
    startup_fuel_max=30_000_000_000,
    cpu_ms_max=60_000,
    wall_ms_max=600_000,
)
IN_FLIGHT: Final = 16
ATTEMPTS_MAX: Final = 5
"""A test may lose its process to another one, or to a machine so busy that the process is taken for stuck."""


def run(checkout: Checkout, tests: Iterable[Test], image: str | None, threads: int, record: Record) -> None:
    """Runs what is not in the record."""
    asyncio.run(_run(checkout, list(tests), image, threads, record))


async def _run(checkout: Checkout, tests: list[Test], image: str | None, threads: int, record: Record) -> None:
    waiting = [(test, mode) for test in tests for mode in test.modes if (test.path, mode) not in record.outcomes]
    runs, done = iter(waiting), 0
    arguments = ["--isolate-threads", str(threads)] + (["--guest", image] if image else [])

    async with coracle.serve(limits=LIMITS, args=arguments) as session:

        async def work() -> None:
            nonlocal done
            for test, mode in runs:
                for _ in range(ATTEMPTS_MAX):
                    problem = await _problem(session, checkout, test, mode)
                    if problem is None or not problem.startswith("IsolateLost"):
                        break
                record.add((test.path, mode), problem)
                done += 1
                if done % 1000 == 0:
                    print(f"{done} of {len(waiting)} runs", file=sys.stderr, flush=True)

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def _problem(session: coracle.Session, checkout: Checkout, test: Test, mode: str) -> str | None:
    """What is wrong with how one run ended."""
    is_module = mode == "module"
    modules: dict[str, coracle.Module] = {
        "test262-driver.js": DRIVER,
        "test262-harness.txt": coracle.Text(checkout.harness(test)),
        "test262-test.txt": coracle.Text('"use strict";\n' + test.source if mode == "strict" else test.source),
        "test262-how.json": coracle.Json(
            {"module": "./" + test.path.rpartition("/")[2] if is_module else None, "isAsync": "async" in test.flags}
        ),
    }
    for name, file in checkout.imports(test).items():
        modules[name] = _module(file)
    try:
        worker = session.load(modules, main_module="test262-driver.js")
        try:
            outcome = await worker.entrypoint().invoke("outcome", None)
            ended = outcome.value
        finally:
            worker.dispose()
    except coracle.CoracleError as error:
        # What is wrong with a module's text may be told when the worker is loaded.
        if isinstance(error, coracle.JsError) and error.name == test.negative:
            return None
        return f"{type(error).__name__}: {error}"
    how, name, message = ended.split("\n", 2)
    if test.negative is not None:
        return None if (how, name) == ("threw", test.negative) else f"expected {test.negative}: {ended!r}"
    return None if how == "done" else f"{name}: {message}" if how == "threw" else ended


def _module(file: Imported) -> coracle.Module:
    match file.kind:
        case "js":
            return file.text
        case "json":
            return _Raw(file.text)
        case "bytes":
            return file.content
        case _:
            return coracle.Text(file.text)


class _Raw(coracle.Json):
    """JSON that may be wrong."""

    def text(self) -> str:
        return str(self.value)
