"""A server of the official SDK, whose tools are an agent's.

    server.py stdio COUNT_FILE
    server.py http COUNT_FILE PORT TOKEN

Each line that it appends to COUNT_FILE is a call of `count`.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

TRANSPORT, COUNT_FILE, *OTHERS = sys.argv[1:]
NOTHING = {"type": "object", "properties": {}}
NUMBER = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
TWO = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


def tool(name, description="", schema=NOTHING, output=None):
    return types.Tool(name=name, description=description, input_schema=schema, output_schema=output)


PAGES = [
    [
        tool("add-numbers", "Adds two numbers.\n*/ declare const evil: never; /*", TWO, NUMBER),
        tool("count", "Counts."),
        tool("fail"),
        tool("picture"),
    ],
    [tool("text"), tool("json"), tool("ask"), tool("slow"), tool("grow", "Has a tool more."), tool("environment")],
    [tool("get-x"), tool("get_x"), tool("then"), tool("die"), tool("large")],
]


def text(value):
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def list_tools(ctx, params):
    cursor = params.cursor if params else None
    page = int(cursor or 0)
    more = page + 1 < len(PAGES)
    return types.ListToolsResult(tools=PAGES[page], next_cursor=str(page + 1) if more else None)


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    match params.name:
        case "add-numbers":
            answer = {"sum": arguments["a"] + arguments["b"]}
            return types.CallToolResult(content=[], structured_content=answer)
        case "count":
            with open(COUNT_FILE, "a") as file:
                file.write("called\n")
            return text("counted")
        case "fail":
            return types.CallToolResult(content=[types.TextContent(type="text", text="no luck")], is_error=True)
        case "picture":
            data = base64.b64encode(b"\x89PNG").decode()
            return types.CallToolResult(content=[types.ImageContent(type="image", data=data, mime_type="image/png")])
        case "text":
            return text("plain words")
        case "json":
            return text(json.dumps({"of": "text"}))
        case "ask":
            schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
            answer = await ctx.session.elicit_form("May I?", schema, related_request_id=ctx.request_id)
            return text(answer.action)
        case "slow":
            await asyncio.sleep(600)
        case "grow":
            PAGES[2].append(tool(f"grown-{len(PAGES[2])}"))
            await ctx.session.send_tool_list_changed()
            return text("grown")
        case "environment":
            child = subprocess.Popen(["sleep", "600"])
            return text(json.dumps({"names": sorted(os.environ), "process": os.getpid(), "child": child.pid}))
        case "die":
            os._exit(3)
        case "large":
            return text("x" * (5 << 20))
        case name:
            return text(f"this is {name}")


SERVER = Server("test", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
# What a log says is nobody's business, and must block nobody either.
sys.stderr.write("hello from the server\n" * 10_000)


async def over_stdio():
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options(NotificationOptions(tools_changed=True)))


def over_http(port, token):
    app = SERVER.streamable_http_app()

    async def guarded(scope, receive, send):
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"").decode()
            if sent != f"Bearer {token}":
                await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
                await send({"type": "http.response.body", "body": b"no"})
                return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=int(port), log_level="error")


match TRANSPORT:
    case "stdio":
        asyncio.run(over_stdio())
    case "http":
        over_http(*OTHERS)
    case "silent":
        time.sleep(600)
    case "mute":
        sys.exit("there is nothing to serve")
