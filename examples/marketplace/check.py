"""What a model would see of the server: starts the API and the server, speaks to it with the official client, and shows each program
with its answer. Then come programs that attack. Fails where something is not as it should be.

    run check.py
"""

import asyncio
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).parent
TOKEN = Path(os.environ["MARKETPLACE_TOKEN_FILE"]).read_text().strip()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A place on the same machine where no program may go."""

    asked = 0

    def do_GET(self) -> None:
        Elsewhere.asked += 1
        self.send_response(200)
        self.end_headers()


class Conversation:
    """Calls of tools, all of which are shown, and none of which may have the token."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def text(self, tool: str, code: str, fails: bool = False) -> str:
        answered = await self.session.call_tool(tool, {"code": code})
        text = "".join(block.text for block in answered.content)
        print(f"{tool}  {shown(code)}\n    {shown(text)}")
        assert bool(answered.is_error) == fails, text
        assert TOKEN not in text, "the token is in an answer"
        assert len(text) <= 12_000, len(text)
        return text

    async def value(self, tool: str, code: str):
        return json.loads(await self.text(tool, code))


def shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) < 160 else f"{text[:150]} … ({len(text)})"


async def uses(talk: Conversation) -> None:
    """What it is for."""
    tools = (await talk.session.list_tools()).tools
    assert [tool.name for tool in tools] == ["search", "execute"]
    found = await talk.value("search", """async () => Object.entries(spec.paths).flatMap(([path, methods]) =>
        Object.entries(methods).filter(([, of]) => /place.* an order/i.test(of.summary)).map(([method]) => [method, path]))""")
    assert found == [["post", "/orders"]], found
    needed = await talk.value("search", "async () => spec.paths['/orders'].post.requestBody.content['application/json'].schema.required")
    assert needed == ["customer", "lines"], needed
    pending = "async () => (await (await fetch(api + '/orders?status=pending')).json()).total"
    before = await talk.value("execute", pending)
    order = await talk.value("execute", """async () => {
        const [lamp] = (await (await fetch(api + "/products?query=lamp&limit=1")).json()).items;
        const body = JSON.stringify({ customer: "c-1", lines: [{ product: lamp.id, quantity: 2 }] });
        const placed = await fetch(api + "/orders", { method: "POST", body, headers: { "content-type": "application/json" } });
        return { status: placed.status, order: await placed.json() };
    }""")
    assert order["status"] == 201 and order["order"]["customer"] == "c-1", order
    assert await talk.value("execute", pending) == before + 1
    ten = "async () => { let n = 0; for (; n < 10; n++) await (await fetch(api + '/rates')).text(); return n; }"
    assert await talk.value("execute", ten) == 10


async def attacks(talk: Conversation, elsewhere: str) -> None:
    """What programs try."""
    for tool in ("search", "execute"):
        assert "process is not defined" in await talk.text(tool, "async () => { return process.env }", fails=True)
    # Other places: from `search` nothing leaves, from `execute` the gateway says no.
    text = await talk.text("search", f"async () => (await fetch('{elsewhere}')).status", fails=True)
    assert "not permitted to access the internet" in text, text
    for url in (elsewhere, "https://example.com/", "http://169.254.169.254/latest", elsewhere.replace("127.0.0.1", "localhost")):
        assert await talk.value("execute", f"async () => (await fetch('{url}')).status") == 403
    sockets = "async () => (await import('cloudflare:sockets')).connect(api.slice(7)).opened"
    await talk.text("execute", sockets, fails=True)
    assert Elsewhere.asked == 0
    # The token: the program's own request does not have it, its own is not sent, and an API that says it back is not heard.
    own = "async () => { const request = new Request(api); return [...request.headers, Object.keys(globalThis).join(), String(this)]; }"
    await talk.text("execute", own)
    said = await talk.value("execute", "async () => (await fetch(api + '/headers', { headers: { authorization: 'Bearer mine' } })).json()")
    assert {name.lower(): value for name, value in said.items()}["authorization"] == "Bearer [redacted]", said
    named = "async () => JSON.stringify([await import('cloudflare:workers').then((module) => module.env), globalThis.env])"
    assert await talk.value("execute", named) == "[{},null]"
    # Endless loops, with waiting and without.
    for loop in ("for (;;);", "for (;;) await null;"):
        assert "CPU time" in await talk.text("execute", f"async () => {{ {loop} }}", fails=True)
    # Ten requests leave, and the eleventh ends the run.
    pending = "async () => (await (await fetch(api + '/orders?status=pending')).json()).total"
    before = await talk.value("execute", pending)
    order = "fetch(api + '/orders', { method: 'POST', body: JSON.stringify({ customer: 'c-1', lines: [] }) })"
    eleven = f"async () => {{ for (let n = 0; n < 11; n++) await (await {order}).text(); }}"
    assert "11 subrequests of 10" in await talk.text("execute", eleven, fails=True)
    assert await talk.value("execute", pending) == before + 10
    # Results and programs that are too long.
    text = await talk.text("execute", "async () => 'x'.repeat(1_000_000)")
    assert len(text) == 12_000 and "it had 1000002 characters" in text, text[-100:]
    long = "async () => 1 //" + "x" * 20_000
    assert "may have 20000" in await talk.text("execute", long, fails=True)
    # What leaves its function leaves nothing else, and the next run finds nothing of it.
    await talk.text("execute", "async () => 1)(), left: globalThis.left = 1, more: await (async () => 2")
    assert await talk.text("execute", "async () => globalThis.left") == "undefined"
    for wrong in ("this is no program", "async () => { throw new Error('mine') }", "async () => { throw null }"):
        await talk.text("execute", wrong, fails=True)


async def main() -> None:
    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    api = subprocess.Popen([sys.executable, str(HERE / "api.py"), "0"], stdout=subprocess.PIPE, text=True)
    try:
        origin = api.stdout.readline().split()[-1]
        environment = {**os.environ, "MARKETPLACE_API": origin}
        server = StdioServerParameters(command=sys.executable, args=[str(HERE / "server.py")], env=environment)
        with tempfile.TemporaryFile("w+") as heard:
            try:
                async with (
                    stdio_client(server, errlog=heard) as (read, write),
                    ClientSession(read, write, read_timeout_seconds=120) as session,
                ):
                    await session.initialize()
                    talk = Conversation(session)
                    await uses(talk)
                    await attacks(talk, f"http://127.0.0.1:{elsewhere.server_port}/")
            finally:
                heard.seek(0)
                log = heard.read()
                print(log.replace(TOKEN, "THE TOKEN"), end="")
            assert TOKEN not in log, "the token is in the log"
    finally:
        api.kill()
        api.wait()
    print("all is well")


asyncio.run(main())
