"""A server of the Model Context Protocol with two tools, over stdin and stdout: `search` and `execute` run programs of a model.

    run server.py

Programs run in Coracle, in workers that parent.js loads. The API is at MARKETPLACE_API; its token is in the file that
MARKETPLACE_TOKEN_FILE names, which only the sandboxes' server reads.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path

import coracle
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

HERE = Path(__file__).parent
API, TOKEN_FILE = os.environ["MARKETPLACE_API"], os.environ["MARKETPLACE_TOKEN_FILE"]

CODE = {"type": "object", "properties": {"code": {"type": "string", "maxLength": 20_000}}, "required": ["code"]}
SEARCH = """Runs a function over the OpenAPI document of a marketplace, to find out which operations there are and what they take.
`spec` is the document, with `paths` and `components.schemas`. There is no network. Example:
async () => Object.entries(spec.paths).filter(([path]) => path.includes("order")).map(([path, methods]) => [path, Object.keys(methods)])"""
EXECUTE = """Runs a function that calls the marketplace and returns what you want to know. `api` is its origin; requests to it are
authorized already, and there are no others. At most 10 requests, 50 ms of CPU time and 12,000 characters of answer. Example:
async () => (await fetch(api + "/products?limit=3")).json()"""
TOOLS = [
    types.Tool(name="search", description=SEARCH, input_schema=CODE),
    types.Tool(name="execute", description=EXECUTE, input_schema=CODE),
]

# Where requests may go, and with which credential.
POLICY = {
    "default_policy": "marketplace",
    "policies": {"marketplace": {"rules": [{"allow": [API], "private": True, "credential": "marketplace"}]}},
    "credentials": {"marketplace": {"secret": {"file": TOKEN_FILE}, "to": [API], "as": "bearer", "plain_http": True}},
}


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=TOOLS)


def caller(parent):
    async def call_tool(ctx, params):
        code = (params.arguments or {}).get("code")
        if params.name not in ("search", "execute") or not isinstance(code, str):
            return answer("there are search and execute, which take code", is_error=True)
        try:
            told = await parent.call(params.name, code)
        except coracle.CoracleError as error:
            return answer(str(error), is_error=True)
        return answer(told["text"], is_error=told["isError"])

    return call_tool


def answer(text, is_error):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


async def main():
    with tempfile.NamedTemporaryFile("w", suffix=".json") as policy:
        json.dump(POLICY, policy)
        policy.flush()
        async with coracle.serve(args=["--outbound-file", policy.name]) as session:
            document = json.loads((HERE / "openapi.json").read_text())
            modules = {"parent.js": (HERE / "parent.js").read_text(), "openapi.json": coracle.Json(document)}
            worker = await session.load(modules, env={"LOADER": session.loader, "API_ORIGIN": API})
            server = Server("marketplace", version="1", on_list_tools=list_tools, on_call_tool=caller(worker.entrypoint()))
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
