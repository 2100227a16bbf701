"""Python functions and objects that workers call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import PATIENCE, Load, eventually, module

import coracle


class Counter(coracle.RpcTarget):
    kind = "counter"

    def __init__(self) -> None:
        self.value = 0
        self.tools = {"twice": lambda n: n * 2, "list": [lambda: "first"]}
        self._secret = "hidden"

    def add(self, by: int = 1) -> int:
        self.value += by
        return self.value

    async def slowly(self, by: int) -> int:
        await asyncio.sleep(0)
        return self.add(by)

    @property
    def doubled(self) -> int:
        return self.value * 2

    def me(self) -> Counter:
        return self

    def _private(self) -> str:
        return "private"


class Anything(coracle.Target):
    async def call(self, path: tuple[str, ...], args: list[Any]) -> Any:
        return [*path, args]

    async def get(self, path: tuple[str, ...]) -> Any:
        return ".".join(path)


async def test_functions_are_called_from_arguments_env_and_props(session: coracle.Session) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    async def greet(name: str) -> str:
        await asyncio.sleep(0)
        return f"hello {name}"

    worker = await session.load(
        {
            "main.js": "import { WorkerEntrypoint } from 'cloudflare:workers';\n"
            "export default class extends WorkerEntrypoint { async run(tools) {\n"
            "return [await tools.math.add(1, 2), await this.env.GREET('ada'), await this.ctx.props.shout('x')]; } }"
        },
        env={"GREET": greet},
    )
    entry = worker.entrypoint(props={"shout": str.upper})
    assert await entry.run({"math": {"add": add}}) == [3, "hello ada", "X"]


async def test_objects_are_called_by_their_public_names_only(load: Load) -> None:
    entry = await load(
        "async run(o) { return [await o.add(2), await o.slowly(3), await o.value, await o.doubled, await o.kind,"
        "await o.tools.twice(4), await o.tools.list[0](), await (await o.me()).add(1)]; }"
        "async refused(o, name) { try { return await o[name](); } catch (e) { return [e.name, e.message]; } }"
        "async unread(o, name) { try { return await o[name]; } catch (e) { return [e.name, e.message]; } }"
    )
    counter = Counter()
    assert await entry.run(counter) == [2, 5, 5, 10, "counter", 8, "first", 6]
    for name in ("_secret", "_private", "__class__", "__init__", "__dict__", "gone", "call", "get"):
        refused = ["TypeError", f'The RPC receiver does not implement the method "{name}".']
        assert await entry.refused(counter, name) == refused
        assert await entry.unread(counter, name) == refused
    assert await entry.refused(counter, "kind") == ["TypeError", '"kind" is not a function.']


async def test_what_python_hangs_on_functions_and_values_is_out_of_reach(load: Load) -> None:
    # The names are tried straight on the wire, where a worker's engine does not come in between.
    entry = await load("async probe(f, path) { let at = f; for (const name of path) at = at[name]; "
                       "try { return [await at()]; } catch (e) { return e.message; } }")  # fmt: skip

    class Holder(coracle.RpcTarget):
        text = "abc"
        number = 5
        module = asyncio

        def method(self) -> int:
            return 1

    for path in (["text", "upper"], ["number", "bit_length"], ["module", "sleep"], ["method", "__globals__"], ["method", "real"]):
        assert await entry.probe(Holder(), path) == f'The RPC receiver does not implement the method "{path[-1]}".'
    for path in (["__globals__"], ["__call__"], ["real"]):
        assert await entry.probe(len, path) == f'The RPC receiver does not implement the method "{path[-1]}".'


async def test_targets_answer_to_any_name(load: Load) -> None:
    entry = await load("async run(o) { return [await o.a.b(1, 2), await o.c.d, await o(3)]; }")
    assert await entry.run(Anything()) == [["a", "b", [1, 2]], "c.d", [[3]]]


async def test_functions_and_stubs_cross_in_every_direction(load: Load) -> None:
    entry = await load(
        "async give(keep) { return await keep((n) => n + 100); }"
        "async twice(f) { const kept = f.dup(); return async (x) => kept(await kept(x)); }"
        "async use(f) { return await f(7); }"
    )
    kept: list[coracle.Stub] = []

    async def keep(function: coracle.Stub) -> int:
        kept.append(function)
        return await function(1)  # type: ignore[no-any-return]

    assert await entry.give(keep) == 101
    assert await kept[0](5) == 105
    twice = await entry.twice(lambda n: n * 3)
    assert await twice(2) == 18
    assert await entry.use(twice) == 63

    class Holder(coracle.RpcTarget):
        def __init__(self) -> None:
            self.stub = twice

    assert await entry.use(Holder().stub) == 63
    # A stub of a worker's is followed on the way through an object of this process.
    through = await load("async run(o) { return await o.stub(1); }")
    assert await through.run(Holder()) == 9
    assert await (await load("same(a, b) { return a === b; }")).same(keep, keep) in (True, False)


class TooMany(Exception):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        self.detail = {"at": [1]}
        self._internal = "hidden"
        self.handle = object()


CATCH = """async run(f) { try { return await f(); } catch (e) {
    return [e instanceof Error, e.constructor.name, e.name, e.message, e.remote, { ...e }, String(e.stack).includes('.py')]; } }"""


async def test_exceptions_arrive_with_name_message_and_fields(load: Load) -> None:
    entry = await load(CATCH)

    def custom() -> None:
        raise TooMany("too many", 7) from ValueError("internal")

    async def javascripts() -> None:
        raise coracle.JsError("no more than ten", name="RangeError", code=8)

    def lone() -> None:
        raise ValueError("a\ud800")

    def nothing() -> None:
        raise KeyError

    arrived = await entry.run(custom)
    assert arrived[:5] == [True, "Error", "TooMany", "too many", True] and arrived[6] is False
    assert arrived[5] == {"code": 7, "detail": {"at": [1]}, "remote": True}
    arrived = await entry.run(javascripts)
    assert arrived[:5] == [True, "RangeError", "RangeError", "no more than ten", True]
    assert arrived[5]["code"] == 8
    assert (await entry.run(lone))[2] == "ValueError"
    assert (await entry.run(nothing))[2:4] == ["KeyError", ""]


async def test_an_error_that_passes_through_python_stays_what_it_is(load: Load) -> None:
    entry = await load(
        CATCH + "far() { const e = new RangeError('too far'); e.code = 7; throw e; } five() { throw 5; } spin() { for (;;); }"
        "async primitive(f) { try { await f(); } catch (e) { return [e.name, e.message]; } }"
        "async verdict(f) { try { await f(); } catch (e) { return e.verdict; } }"
    )
    arrived = await entry.run(lambda: entry.far())
    assert arrived[2:4] == ["RangeError", "too far"] and arrived[5]["code"] == 7
    other = await load("five() { throw 5; } spin() { for (;;); }", limits=coracle.Limits(cpu_ms_max=20))
    assert await entry.primitive(lambda: other.five()) == ["Error", "5"]
    assert (await entry.verdict(lambda: other.spin()))["limitName"] == "cpu_ms_max"


async def test_what_a_callback_cant_send_is_an_error_in_the_worker(load: Load) -> None:
    entry = await load("async run(f) { try { return await f(); } catch (e) { return `${e.name}: ${e.message}`; } }")
    assert "object can't be sent" in await entry.run(lambda: object())
    assert "can't be sent" in await entry.run(lambda: {"a": [1j]})
    assert "takes 1 positional argument" in await (await load(
        "async run(f) { try { await f(1, 2); } catch (e) { return e.message; } }")).run(_one)  # fmt: skip
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]
    assert "nested deeper" in await entry.run(lambda: deep)

    class Awkward(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text either")

    def awkward() -> None:
        raise Awkward

    assert await entry.run(awkward) == "Awkward: "


def _one(value: object) -> object:
    return value


async def test_a_callback_that_nobody_waits_for_any_more_is_cancelled(load: Load) -> None:
    entry = await load("async run(f) { return await f(); }", limits=coracle.Limits(wall_ms_max=300))
    cancelled = 0

    async def never() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            raise

    with pytest.raises(coracle.WallExceeded) as stopped:
        await entry.run(never)
    assert stopped.value.subrequests_sent == 1
    await eventually(lambda: cancelled == 1)
    # And where the caller gives its own call up.
    patient = await load("async run(f) { return await f(); }")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(patient.run(never), 0.2)
    await eventually(lambda: cancelled == 2)


async def test_a_thousand_callbacks_at_once(load: Load) -> None:
    entry = await load(
        "async run(f) { return (await Promise.all(Array.from({ length: 1000 }, (_, n) => f(n)))).reduce((a, b) => a + b); }",
        limits=coracle.Limits(subrequests_max=1000, subrequests_in_flight_max=1000),
    )
    # Limits only lower; the server's default of subrequests is 256, so several workers make the thousand.
    running = 0
    most = 0
    count = 0

    async def tool(n: int) -> int:
        nonlocal running, most, count
        running += 1
        count += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return n

    with pytest.raises(coracle.SubrequestsExceeded):
        await entry.run(tool)
    count = 0
    callers = [
        await load(
            "async run(f) { return (await Promise.all(Array.from({ length: 250 }, (_, n) => f(n)))).reduce((a, b) => a + b); }"
        )
        for _ in range(4)
    ]
    assert await asyncio.gather(*[caller.run(tool) for caller in callers]) == [250 * 249 // 2] * 4
    assert count == 1000 and most > 32


async def test_a_thousand_callbacks_of_one_call_all_wait_at_once() -> None:
    every = 1_000
    here, may_answer = 0, asyncio.Event()

    async def tool(n: int) -> list[int]:
        nonlocal here
        here += 1
        if here == every:
            may_answer.set()
        await may_answer.wait()
        return [n, n * n]

    limits = coracle.Limits(subrequests_max=every, subrequests_in_flight_max=every)
    async with coracle.serve(limits=limits) as session:
        entry = session.load(
            module("async run(f, most) { return await Promise.all(Array.from({ length: most }, (_, n) => f(n))); }")
        ).entrypoint()
        outcome = await asyncio.wait_for(entry.invoke("run", tool, every), PATIENCE)
        assert outcome.value == [[n, n * n] for n in range(every)]
        assert (here, outcome.usage.subrequests) == (every, every)
        with pytest.raises(coracle.SubrequestsExceeded):
            await entry.run(lambda n: n, every + 1)


async def test_functions_and_objects_are_found_wherever_they_are(session: coracle.Session) -> None:
    def nested(n: int) -> dict[str, Any]:
        functions = coracle.Map([(lambda: "key", lambda: n + 2)])
        return {"list": [lambda: n, [lambda: n + 1]], "map": functions, "object": Counter()}

    worker = await session.load(
        {
            "main.js": """
                import { WorkerEntrypoint } from 'cloudflare:workers';
                async function all({ list: [first, [second]], map, object }) {
                    const [[key, third]] = map;
                    return [await first(), await second(), await key(), await third(), await object.add(4)];
                }
                export default class extends WorkerEntrypoint {
                    fromArgs(x, nested) { return all(nested); }
                    fromEnv() { return all(this.env.deep.er); }
                    fromProps() { return all(this.ctx.props); }
                    async fromResult(f) { return all(await f(40)); }
                    back() { return { a: [new Map([[() => 'key', (n) => n + 1]])] }; }
                }
            """
        },
        env={"deep": {"er": nested(10)}},
    )
    entry = worker.entrypoint(props=nested(20))

    def expected(n: int) -> list[Any]:
        return [n, n + 1, "key", n + 2, 4]

    assert await entry.fromArgs(None, nested(0)) == expected(0)
    assert await entry.fromEnv() == expected(10)
    assert await entry.fromProps() == expected(20)
    assert await entry.fromResult(nested) == expected(40)
    back = await entry.back()
    [(key, function)] = back["a"][0].items()
    assert (await key(), await function(1)) == ("key", 2)


async def test_a_callback_that_raises_fails_the_call_that_does_not_catch_it_and_nothing_else(load: Load) -> None:
    def fails() -> None:
        raise TooMany("too many", 7)

    entry = await load(
        "async run(f) { return await f(); }"
        "async all(fs) { return (await Promise.allSettled(fs.map((f) => f()))).map(({ status }) => status); }"
    )
    with pytest.raises(coracle.JsError) as threw:
        await entry.run(fails)
    assert (threw.value.name, threw.value.message, threw.value.props["code"]) == ("TooMany", "too many", 7)
    assert await entry.all([fails, lambda: 1, fails]) == ["rejected", "fulfilled", "rejected"]
    assert await entry.run(lambda: "still here") == "still here"


async def test_a_call_under_way_is_no_value(load: Load) -> None:
    entry = await load("echo(v) { return v; }")
    call = entry.echo(1)
    with pytest.raises(coracle.EncodeError, match="await it first"):
        entry.echo(call)
    assert await call == 1


async def test_a_method_of_a_stub_is_a_function(load: Load) -> None:
    entry = await load("twice(n) { return n * 2; } async use(f) { return await f(4); }")
    assert await entry.use(entry.twice) == 8
