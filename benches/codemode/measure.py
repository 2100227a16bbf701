"""Writes docs/codemode-benchmark.md.

    benches/codemode/run             measures
    benches/codemode/run --check     only does the twelve jobs in both ways, and fails where they differ
"""

import asyncio
import json
import os
import statistics
import sys
from pathlib import Path

from market import DOCUMENT, HERE, Market
from tasks import TASKS
from tokens import done, few, twelve

PAGE = HERE.parent.parent / "docs" / "codemode-benchmark.md"
OPERATIONS = sum(len(methods) for methods in json.loads(DOCUMENT.read_text())["paths"].values())
HEAD = """# What Code Mode saves, and where it does not

Written by `make codemode-bench`, from [benches/codemode](../benches/codemode). **No model is involved:** the calls, searches and programs are
written down there, as a model would make them that makes no mistake. They are run for real against the marketplace of
[examples/marketplace](../examples/marketplace/README.md), and both ways have to come to the same answer and leave the same behind.

- **One by one**: a server of the Model Context Protocol that lists the API's operations as tools. It is as sparing as such servers can be: no
  schemas of results, results without white space. Pages are as large as they can be, and calls that don't depend on each other share a turn.
- **Code Mode**: `coracle mcp` over the same document. A search, a declaration of the tools that were found, a program.
- **Tokens** are those of o200k_base, counted by `gpt-tokenizer` 4.0.0, of names, descriptions and schemas of the tools (*tools*) and of the question,
  calls and results (*transcript*). What a client puts around them, and what a model thinks and answers, is in neither.
- *Read* is the sum of what is read again in each turn and for the answer, as it is without a cache.
"""


def saved(before: int, after: int) -> float:
    return 100 * (1 - after / before)


def percent(value: float) -> str:
    return f"{value:.0f} %".replace("-", "−")


def table(head: list[str], rows: list[list[object]]) -> str:
    line = "|".join(["---"] + ["---:"] * (len(head) - 1))
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", f"|{line}|", *("| " + " | ".join(row) + " |" for row in cells)]) + "\n"


def summary(name: str, shares: list[float], aim: bool) -> str:
    good = sum(share >= 81 for share in shares)
    text = f"{name}, {percent(statistics.median(shares))} fewer at the median ({percent(min(shares))} to {percent(max(shares))}), and at least 81 % fewer in {good} of {len(shares)} jobs"
    if aim:
        reached = good >= 5 and statistics.median(shares) >= 70
        text += f". Our aim, 70 % at the median and 81 % in five, is {'reached' if reached else '**not reached**'} by this count"
    return text


def tokens_of(rows) -> str:
    told = [
        [task.name, plain.calls, plain.turns, plain.transcript, plain.total, plain.read,
         code.turns, code.transcript, code.total, code.read,
         percent(saved(plain.total, code.total)), percent(saved(plain.read, code.read))]
        for task, plain, code in rows
    ]  # fmt: skip
    head = ["job", "calls", "turns", "transcript", "with tools", "read", "turns in Code Mode", "transcript", "with tools", "read",
            "fewer", "fewer read"]  # fmt: skip
    _, plain, code = rows[0]
    once = summary("Everything counted once", [saved(plain.total, code.total) for _, plain, code in rows], True)
    read = summary("Counted as it is read", [saved(plain.read, code.read) for _, plain, code in rows], False)
    return f"""
## Twelve jobs

The tools are {plain.surface:,} tokens one by one, {plain.surface / OPERATIONS:.0f} for each operation, and {code.surface:,} in Code Mode, whatever their number.

{table(head, told)}
- {once}.
- {read}.
- What the jobs are is in [tasks.py](../benches/codemode/tasks.py), with the calls; the programs are [beside it](../benches/codemode/programs).
- Code Mode saves most where results are large or calls many, and least where few calls bring little: there, what is left is the price of tools that
  nobody calls.
"""


def few_of(rows) -> str:
    told = [
        [f"{task.name}, {count} tools", f"`--mode {mode}`", plain.surface, plain.total, code.surface, code.total, percent(saved(plain.total, code.total))]
        for mode, count, task, plain, code in rows
    ]
    return f"""
## Where there are few tools

A server that has only the two or three tools that a job needs:

{table(["job", "Code Mode", "tools, one by one", "with transcript", "tools in Code Mode", "with transcript", "fewer"], told)}
Below zero, Code Mode costs more. `--mode code`, which has no searches, costs less than the two tools there, and more than listing the tools as they are.
"""


def latency_of(rows) -> str:
    told = [
        [f"{row.where}, {row.shape}", row.calls, f"{row.median:.1f}", f"{min(row.milliseconds):.1f}", f"{max(row.milliseconds):.1f}"]
        for row in rows
    ]
    return f"""
## How long a program takes

`execute` from the agent's request to its answer, with a fresh sandbox, and calls of a tool that is a request to the API on the same machine
(Python's `http.server`, whose own time is in here). In milliseconds, of 20 runs, of 5 where there are 100 calls; {os.cpu_count()} cores, which the
agent, the API and Coracle share.

{table(["where", "calls", "median", "least", "most"], told)}
The loops are a hundred calls of a worker that never ends by itself; where the limit on CPU time stops one, the next begins.
"""


async def main() -> None:
    market = Market()
    if sys.argv[1:] == ["--check"]:
        transcripts = await done(market, TASKS)
        print(f"{len(transcripts) // 2} jobs come to the same in both ways")
        return
    from latency import latencies

    text = HEAD + tokens_of(await twelve(market)) + few_of(await few(market))
    Path(PAGE).write_text(text)
    Path(PAGE).write_text(text + latency_of(await latencies(market)))
    print(f"{PAGE} is written", file=sys.stderr)


asyncio.run(main())
