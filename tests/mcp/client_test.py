"""Speaks to `coracle mcp` with the official client, as an agent would.

    tests/mcp/run client_test.py BINARY TOOLS_FILE
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

BINARY, TOOLS = sys.argv[1:]


def text_of(result) -> str:
    return "".join(block.text for block in result.content)


async def execute(session: ClientSession, code: str) -> tuple[bool, dict]:
    result = await session.call_tool("execute", {"code": code})
    told = json.loads(text_of(result))
    assert result.structured_content == told, result
    return bool(result.is_error), told


async def talk(session: ClientSession) -> None:
    hello = await session.initialize()
    assert hello.server_info.name == "coracle", hello
    tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == ["search", "execute"]
    # Three and a half bytes a token: what the two cost, whatever is behind them.
    listed = json.dumps([tool.model_dump(exclude_none=True) for tool in tools])
    assert len(listed.encode()) / 3.5 <= 1_000, len(listed)

    found = text_of(await session.call_tool("search", {"query": "list pets"}))
    assert "shop.listPets" in found and "deletePet" not in found, found
    assert "Nothing found" in text_of(await session.call_tool("search", {"query": "xylophone"}))
    declared = text_of(await session.call_tool("search", {"describe": ["shop.listPets"]}))
    assert "function listPets(" in declared and "limit?: number" in declared, declared

    failed, told = await execute(session, "```ts\nconst pets: any[] = await shop.listPets({ limit: 2 });\npets.map((pet) => pet.name)\n```")
    assert (failed, told) == (False, {"result": ["Ada", "Bob"]}), told
    failed, told = await execute(session, "console.log('before');\nawait shop.listPets({ limit: 'two' })")
    assert failed and told["error"]["toolCode"] == "arguments_invalid", told
    assert told["error"]["line"] == 2 and told["console"] == "[log] before", told
    failed, told = await execute(session, "while (true) {}")
    assert failed and told["error"]["code"] == "cpu_limit", told
    failed, told = await execute(session, "await shop.deletePet({ id: 1 })")
    assert failed and told["error"]["toolCode"] == "tool_missing", told
    failed, told = await execute(session, "shop.listPets(); 1")
    assert told["callsNotAwaited"] == ["shop.listPets"], told
    failed, told = await execute(session, "Array.from({ length: 10000 }, (_, id) => ({ id }))")
    assert "characters are shown" in told["truncated"] and len(json.dumps(told)) < 60_000, told["truncated"]

    # A loop beside it keeps nobody waiting; all run at once.
    answers = await asyncio.gather(execute(session, "while (true) {}"), execute(session, "6 * 7"))
    assert answers[1] == (False, {"result": 42}), answers

    for name, arguments in [("execute", {}), ("execute", {"code": 1}), ("search", {"nope": 1}), ("nope", {})]:
        try:
            answer = await session.call_tool(name, arguments)
            assert answer.is_error, answer
        except Exception as error:
            assert name in str(error), error

    # What a program can see has no credential.
    secret = os.environ["CORACLE_TEST_SECRET"]
    failed, told = await execute(session, "await shop.echo()")
    assert not failed and secret not in json.dumps(told), told
    print("all is well")


async def main() -> None:
    server = StdioServerParameters(command=BINARY, args=["mcp", "--tools", TOOLS, "--cpu-ms", "300"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write, read_timeout_seconds=60) as session:
        await talk(session)


asyncio.run(main())
