"""What jobs cost in tokens, with one call after the other and in Code Mode."""

import asyncio
import json
import subprocess
from dataclasses import dataclass, field

from market import HERE, TOKEN, Market
from mcp import ClientSession
from tasks import TASKS, Plain, Task


@dataclass
class Transcript:
    """What stands in a model's context: the tools, and each call and result as compact JSON and text."""

    surface: str
    question: str
    turns: list[list[str]] = field(default_factory=list)

    def texts(self) -> list[str]:
        return [self.surface, self.question, *("\n".join(turn) for turn in self.turns)]


@dataclass
class Cost:
    """In tokens, but for `calls`."""

    surface: int
    transcript: int
    read: int
    turns: int
    calls: int

    @property
    def total(self) -> int:
        return self.surface + self.transcript


def compact(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


async def listed(session: ClientSession) -> str:
    tools = (await session.list_tools()).tools
    return compact([{"name": each.name, "description": each.description, "inputSchema": each.input_schema} for each in tools])


async def called(session: ClientSession, transcript: Transcript, name: str, arguments: dict) -> str:
    answer = await session.call_tool(name, arguments)
    text = "".join(block.text for block in answer.content)
    if answer.is_error:
        raise SystemExit(f"{name} {arguments}: {text}")
    if TOKEN in text:
        raise SystemExit(f"{name} {arguments}: the token is in the answer")
    transcript.turns[-1] += [compact({"name": name, "arguments": arguments}), text]
    return text


async def one_by_one(session: ClientSession, task: Task) -> tuple[Transcript, object]:
    transcript, loop = Transcript(await listed(session), task.question), asyncio.get_running_loop()

    async def turn(calls):
        transcript.turns.append([])
        return [json.loads(await called(session, transcript, name, arguments)) for name, arguments in calls]

    plain = Plain(lambda calls: asyncio.run_coroutine_threadsafe(turn(calls), loop).result())
    answer = await asyncio.to_thread(task.plain, plain)
    return transcript, answer


async def in_code(session: ClientSession, task: Task, has_search: bool) -> tuple[Transcript, object]:
    transcript = Transcript(await listed(session), task.question)
    for search in task.searches if has_search else []:
        transcript.turns.append([])
        await called(session, transcript, "search", search)
    code = (HERE / "programs" / f"{task.name}.ts").read_text()
    transcript.turns.append([])
    told = json.loads(await called(session, transcript, "execute" if has_search else "code", {"code": code}))
    if set(told) != {"result"}:
        raise SystemExit(f"{task.name}: {told}")
    return transcript, told["result"]


def counted(transcripts: list[Transcript]) -> list[Cost]:
    texts = [text for each in transcripts for text in each.texts()]
    done = subprocess.run(["node", str(HERE / "count.mjs")], input="".join(json.dumps(text) + "\n" for text in texts),
                          stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
    counts = iter(int(line) for line in done.stdout.split())
    return [cost_of(each, [next(counts) for _ in each.texts()]) for each in transcripts]


def cost_of(transcript: Transcript, counts: list[int]) -> Cost:
    surface, *said = counts
    # Whoever answers next reads everything that was said before: one reading for each turn, and one for the answer.
    read = sum(surface + sum(said[:end]) for end in range(1, len(said) + 1))
    calls = sum(len(turn) // 2 for turn in transcript.turns)
    return Cost(surface, sum(said), read, len(transcript.turns), calls)


async def done(market: Market, tasks: list[Task], *operations: str, mode: str = "search") -> list[Transcript]:
    """Each job in both ways, of which each has a marketplace of its own. They have to answer and leave the same."""
    transcripts = []
    async with market.plain(*operations) as plain, market.coracle(*operations, flags=("--mode", mode)) as coracle:
        for task in tasks:
            market.renew()
            slow, expected = await one_by_one(plain, task)
            left = market.left()
            market.renew()
            fast, answer = await in_code(coracle, task, mode == "search")
            if answer != expected or not answer:
                raise SystemExit(f"{task.name}: one by one says {expected}, the program {answer}")
            if market.left() != left:
                raise SystemExit(f"{task.name}: the two ways leave something different")
            transcripts += [slow, fast]
    return transcripts


async def both(market: Market, tasks: list[Task], *operations: str, mode: str = "search") -> list[tuple[Task, Cost, Cost]]:
    costs = counted(await done(market, tasks, *operations, mode=mode))
    return list(zip(tasks, costs[::2], costs[1::2]))


async def twelve(market: Market):
    return await both(market, TASKS)


FEW = {
    "tracked": ["listShipments", "getShipment"],
    "again": ["listCustomers", "listOrders", "createOrder"],
}


async def few(market: Market):
    """Where there are only two or three tools, in both modes."""
    rows = []
    for name, operations in FEW.items():
        task = [each for each in TASKS if each.name == name]
        for mode in ("search", "code"):
            rows += [(mode, len(operations), *costs) for costs in await both(market, task, *operations, mode=mode)]
    return rows
