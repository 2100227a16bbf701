"""A server of the Model Context Protocol that lists each operation of an OpenAPI document as a tool: what Code Mode is compared with.

    plain.py DOCUMENT [OPERATION...]

It is as sparing as such servers can be: references are put in where they are used, what a body has stands beside the other
arguments, there are no schemas of results, and results are JSON without white space.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

DOCUMENT, *WANTED = sys.argv[1:]
SPEC = json.loads(Path(DOCUMENT).read_text())
ORIGIN, TOKEN_FILE = os.environ["MARKETPLACE_API"], os.environ["MARKETPLACE_TOKEN_FILE"]
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in SPEC["paths"].items()
    for method, operation in methods.items()
    if not WANTED or operation["operationId"] in WANTED
}


def resolved(schema):
    """The schema with its references put in. (None of this document's arguments has a cycle.)"""
    match schema:
        case {"$ref": reference}:
            return resolved(SPEC["components"]["schemas"][reference.rsplit("/", 1)[1]])
        case dict():
            return {key: resolved(value) for key, value in schema.items()}
        case list():
            return [resolved(value) for value in schema]
    return schema


def body_of(operation) -> dict:
    content = operation.get("requestBody", {"content": {"application/json": {"schema": {}}}})["content"]
    return resolved(content["application/json"]["schema"])


def tool(name: str) -> types.Tool:
    _, _, operation = OPERATIONS[name]
    parameters, body = operation.get("parameters", []), body_of(operation)
    described = {
        each["name"]: {**each["schema"], **({"description": each["description"]} if "description" in each else {})}
        for each in parameters
    }
    properties = {**described, **body.get("properties", {})}
    required = [each["name"] for each in parameters if each.get("required")] + body.get("required", [])
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return types.Tool(name=name, description=operation["summary"], input_schema=schema)


def send(name: str, arguments: dict) -> str:
    method, path, operation = OPERATIONS[name]
    query, rest = {}, dict(arguments)
    for parameter in operation.get("parameters", []):
        if (key := parameter["name"]) in rest:
            value = rest.pop(key)
            if parameter["in"] == "path":
                path = path.replace(f"{{{key}}}", quote(str(value), safe=""))
            else:
                query[key] = str(value).lower() if isinstance(value, bool) else value
    url = ORIGIN + path + (f"?{urlencode(query)}" if query else "")
    headers = {"Authorization": f"Bearer {Path(TOKEN_FILE).read_text().strip()}", "Content-Type": "application/json"}
    body = json.dumps(rest).encode() if method != "GET" else None
    with urlopen(Request(url, body, headers, method=method), timeout=60) as answer:
        return answer.read().decode()


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[tool(name) for name in OPERATIONS])


async def call_tool(ctx, params):
    try:
        text = await asyncio.to_thread(send, params.name, params.arguments or {})
    except OSError as error:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main():
    server = Server("plain", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
