"""Workers that load workers, with the session's loader."""

from __future__ import annotations

import asyncio

import pytest
from conftest import module

import coracle

PARENT = module("""
    code(source, env) {
        const [compatibilityDate, mainModule] = ['2026-01-01', 'child.js'];
        return { compatibilityDate, mainModule, modules: { [mainModule]: source }, env };
    }
    child(source, env) { return this.env.LOADER.load(this.code(source, env)).getEntrypoint(); }
    async load(source, method, ...args) { return await this.child(source)[method](...args); }
    async give(source, env, ...args) { return await this.child(source, env).run(...args); }
    async handOn(source) { return await this.child(source, { INNER: this.env.LOADER }).run(); }
    async named(id, source) { return await this.env.LOADER.get(id, () => this.code(source)).getEntrypoint().next(); }
""")


def child(methods: str) -> str:
    """A child's source: the default export is a class with these methods."""
    return module(methods)["main.js"]


@pytest.fixture
async def parent(session: coracle.Session) -> coracle.Stub:
    return session.load(PARENT, env={"LOADER": session.loader}).entrypoint()


async def test_a_worker_loads_and_calls_a_worker(parent: coracle.Stub) -> None:
    assert await parent.load(child("double(n) { return n * 2; }"), "double", 21) == 42
    # Each load is a worker of its own.
    counts = child("next() { return globalThis.n = (globalThis.n ?? 0) + 1; }")
    assert [await parent.load(counts, "next") for _ in range(2)] == [1, 1]
    assert [await parent.named("a", counts) for _ in range(2)] == [1, 2]
    assert await parent.named("b", counts) == 1


async def test_a_child_calls_python_through_its_parent(session: coracle.Session) -> None:
    async def price(item: str) -> float:
        await asyncio.sleep(0)
        return {"apple": 0.5}[item]

    parent = session.load(PARENT, env={"LOADER": session.loader}).entrypoint()
    source = child("async run(item) { return 3 * await this.env.PRICE(item); }")
    assert await parent.give(source, {"PRICE": price}, "apple") == 1.5
    with pytest.raises(coracle.JsError) as threw:
        await parent.give(source, {"PRICE": price}, "pear")
    assert (threw.value.name, threw.value.message) == ("KeyError", "'pear'")


async def test_the_loader_is_passed_on(parent: coracle.Stub) -> None:
    source = child("""
        async run() {
            const modules = { 'c.js': `export default { run(_) { return 'innermost'; } }` };
            const worker = this.env.INNER.load({ compatibilityDate: '2026-01-01', mainModule: 'c.js', modules });
            return await worker.getEntrypoint().run(0);
        }
    """)
    assert await parent.handOn(source) == "innermost"


async def test_what_is_wrong_with_a_childs_code_is_the_parents_error(parent: coracle.Stub) -> None:
    with pytest.raises(coracle.JsError, match="Failed to start Worker"):
        await parent.load("no javascript at all", "run")


async def test_a_child_has_no_higher_limits_than_its_parent(session: coracle.Session) -> None:
    entry = session.load(PARENT, env={"LOADER": session.loader}, limits=coracle.Limits(cpu_ms_max=40)).entrypoint()
    with pytest.raises(coracle.JsError) as stopped:
        await entry.load(child("spin() { for (;;); }"), "spin")
    verdict = stopped.value.props["verdict"]
    assert verdict["limitName"] == "cpu_ms_max" and verdict["limit"] <= 40


async def test_get_takes_the_loader_and_finds_the_worker_again(session: coracle.Session) -> None:
    asked = 0

    def source() -> coracle.Code:
        nonlocal asked
        asked += 1
        return PARENT

    for _ in range(2):
        entry = session.get("parent", source, env={"LOADER": session.loader}).entrypoint()
        assert await entry.load(child("one() { return 1; }"), "one") == 1
    assert asked == 1


async def test_the_loader_is_for_env_of_its_own_session_only(server: coracle.Server, session: coracle.Session) -> None:
    entry = session.load(module("echo(v) { return v; }")).entrypoint()
    with pytest.raises(coracle.RefusedError, match="loader: those can be passed in env only"):
        await entry.echo([session.loader])
    async with coracle.connect(server.address) as other:
        with pytest.raises(coracle.EncodeError, match="the loader of another session can't be sent"):
            session.load(PARENT, env={"LOADER": other.loader})
