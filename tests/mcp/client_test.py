"""Speaks to `coracle mcp` with the official client, as an agent would: over stdin and stdout, and over HTTP.

    tests/mcp/run client_test.py BINARY TOOLS_FILE
"""

import asyncio
import contextlib
import http.client
import json
import os
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

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


# A picture of one transparent point.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


async def show(session: ClientSession) -> None:
    """Images are content of their own, and no base64 is in what a model reads."""
    image = json.dumps({"type": "image", "mimeType": "image/png", "data": PICTURE})
    for program, count, result in [
        (f"return {image}", 1, "(image 1, below)"),
        (f"return [1, {image}, {image}]", 2, [1, "(image 1, below)", "(image 2, below)"]),
        (f"return {{ chart: {image}, sum: 3 }}", 1, {"chart": "(image 1, below)", "sum": 3}),
        ("return { type: 'image', mimeType: 'image/png', data: 'no base64!' }", 0,
         {"type": "image", "mimeType": "image/png", "data": "no base64!"}),
    ]:
        answer = await session.call_tool("execute", {"code": program})
        assert answer.structured_content == {"result": result}, answer
        images = [block for block in answer.content if block.type == "image"]
        assert [(block.data, block.mime_type) for block in images] == [(PICTURE, "image/png")] * count, answer
        assert PICTURE not in answer.content[0].text


async def other_modes() -> None:
    async with stdio("--mode", "code") as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == ["code"]
        assert "function listPets(" in tools[0].description and "deletePet" not in tools[0].description
        answer = await session.call_tool("code", {"code": "(await shop.listPets({ limit: 1 }))[0].name"})
        assert answer.structured_content == {"result": "Ada"}, answer
        try:
            answer = await session.call_tool("execute", {"code": "1"})
            assert answer.is_error, answer
        except Exception as error:
            assert "only code" in str(error), error
    async with stdio("--mode", "pass-through") as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "invoke"]
        answer = await session.call_tool("invoke", {"tool": "shop.listPets", "arguments": {"limit": 2}})
        assert answer.structured_content == {"result": [{"name": "Ada"}, {"name": "Bob"}]}, answer
        for tool, arguments, code in [
            ("shop.listPets", {"limit": "two"}, "arguments_invalid"),
            ("shop.deletePet", {"id": 1}, "tool_missing"),
            ("shop.broken", {}, "http_status"),
        ]:
            answer = await session.call_tool("invoke", {"tool": tool, "arguments": arguments})
            assert answer.is_error and answer.structured_content["error"]["code"] == code, answer


@contextlib.asynccontextmanager
async def stdio(*flags: str):
    arguments = ["mcp", "--tools", TOOLS, "--cpu-ms", "300", *flags]
    server = StdioServerParameters(command=BINARY, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write, read_timeout_seconds=60) as session:
        yield session


TOKEN = "a-token-of-more-than-sixteen-characters"


async def over_http() -> None:
    with tempfile.NamedTemporaryFile("w") as tokens:
        tokens.write(TOKEN)
        tokens.flush()
        server = await asyncio.create_subprocess_exec(
            BINARY, "mcp", "--tools", TOOLS, "--cpu-ms", "300", "--listen", "127.0.0.1:0", "--token-file", tokens.name,
            "--origin", "https://app.example", stderr=asyncio.subprocess.PIPE,
        )
        try:
            said = b"a warning or two"
            while said and not said.startswith(b"coracle mcp: "):
                said = await server.stderr.readline()
            drained = asyncio.create_task(server.stderr.read())
            url = said.decode().strip().removeprefix("coracle mcp: ")
            port = int(url.removeprefix("http://127.0.0.1:").removesuffix("/mcp"))
            await asyncio.to_thread(who_is_turned_away, port)
            client = create_mcp_http_client({"Authorization": f"Bearer {TOKEN}"})
            async with (
                client,
                streamable_http_client(url, http_client=client) as streams,
                ClientSession(*streams[:2], read_timeout_seconds=60) as session,
            ):
                await talk(session)
            server.terminate()
            assert await asyncio.wait_for(server.wait(), 20) == 0
            assert TOKEN.encode() not in await drained
        finally:
            with contextlib.suppress(ProcessLookupError):
                server.kill()


def who_is_turned_away(port: int) -> None:
    def asked(method: str, path: str, body: bytes = b"", **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("Authorization", f"Bearer {TOKEN}")
        named.setdefault("Content-Type", "application/json")
        named.setdefault("Accept", "application/json, text/event-stream")
        try:
            connection.request(method, path, body, {name: value for name, value in named.items() if value})
            return connection.getresponse().status
        except (BrokenPipeError, ConnectionResetError):
            return 413  # It is not read to its end.
        finally:
            connection.close()

    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}}).encode()
    assert asked("POST", "/mcp", hello) == 200
    for authorization in ["", "Bearer ", "Bearer " + TOKEN[:-1], f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN]:
        assert asked("POST", "/mcp", hello, Authorization=authorization) == 401, authorization
    # A page that has found out the address, by its own name or from its own origin.
    assert asked("POST", "/mcp", hello, Host="evil.example") == 403
    assert asked("POST", "/mcp", hello, Host=f"evil.example:{port}") == 403
    assert asked("POST", "/mcp", hello, Origin="https://evil.example") == 403
    assert asked("POST", "/mcp", hello, Origin="null") == 403
    assert asked("POST", "/mcp", hello, Origin="https://app.example") == 200
    assert asked("POST", "/other", hello) == 404
    assert asked("POST", "/mcp", b"{" * 5_000_000) == 413
    assert 400 <= asked("POST", "/mcp", b"nonsense") < 500
    assert 400 <= asked("GET", "/mcp", Mcp_Session_Id="made-up") < 500


async def main() -> None:
    async with stdio() as session:
        await talk(session)
        await show(session)
    await other_modes()
    await over_http()
    print("all is well")


asyncio.run(main())
