"""The marketplace of examples/marketplace in this process, new for each job, and the servers in front of it."""

import contextlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).parent
EXAMPLE = HERE.parent.parent / "examples" / "marketplace"
DOCUMENT = EXAMPLE / "openapi.json"
TOKEN = Path(os.environ["MARKETPLACE_TOKEN_FILE"]).read_text().strip()


def _api():
    spec = importlib.util.spec_from_file_location("api", EXAMPLE / "api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


API = _api()


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


class Market:
    """The API while it runs, and files that lead to it."""

    def __init__(self) -> None:
        handler = API.Handler
        handler.operations, handler.lock, handler.token = API.Operations(json.loads(DOCUMENT.read_text())), threading.Lock(), TOKEN
        self.server = Server(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.folder = tempfile.TemporaryDirectory()
        self.renew()

    def renew(self) -> None:
        API.Handler.marketplace = API.Marketplace()

    def left(self) -> dict[str, list[str]]:
        """All that is there now, but for its order and the numbers of what is new."""
        kinds = {key: value for key, value in vars(API.Handler.marketplace).items() if key != "numbers"}
        listed = {key: value.values() if isinstance(value, dict) else value for key, value in kinds.items()}
        return {key: sorted(re.sub(r"-new-\d+", "-new", json.dumps(item)) for item in items) for key, items in listed.items()}

    def tools_file(self, *operations: str) -> str:
        """A tools file for all operations, or for some."""
        folder = Path(self.folder.name)
        rules = [{"allow": [self.origin], "private": True, "credential": "market"}]
        secret = {"file": os.environ["MARKETPLACE_TOKEN_FILE"]}
        (folder / "outbound.json").write_text(json.dumps({
            "default_policy": "market",
            "policies": {"market": {"rules": rules}},
            "credentials": {"market": {"secret": secret, "to": [self.origin], "as": "bearer", "plain_http": True}},
        }))  # fmt: skip
        allowed = [f"market.{name}" for name in operations] or ["market.*"]
        file = folder / f"tools-{len(operations)}.json"
        file.write_text(json.dumps({
            "namespaces": {"market": {"openapi": str(DOCUMENT), "server": self.origin}},
            "policy": {"default": "deny", "rules": [{"allow": allowed}]},
            "outbound": "outbound.json",
        }))  # fmt: skip
        return str(file)

    @contextlib.asynccontextmanager
    async def plain(self, *operations: str):
        arguments = [str(HERE / "plain.py"), str(DOCUMENT), *operations]
        environment = {**os.environ, "MARKETPLACE_API": self.origin}
        async with session(sys.executable, arguments, environment) as spoken:
            yield spoken

    @contextlib.asynccontextmanager
    async def coracle(self, *operations: str, flags: tuple[str, ...] = ()):
        arguments = ["mcp", "--tools", self.tools_file(*operations), *flags]
        async with session(os.environ["CORACLE_BINARY"], arguments, dict(os.environ)) as spoken:
            yield spoken


@contextlib.asynccontextmanager
async def session(command: str, arguments: list[str], environment: dict[str, str]):
    parameters = StdioServerParameters(command=command, args=arguments, env=environment)
    with tempfile.TemporaryFile("w+") as log:
        try:
            async with (
                stdio_client(parameters, errlog=log) as (read, write),
                ClientSession(read, write, read_timeout_seconds=300) as spoken,
            ):
                await spoken.initialize()
                yield spoken
        finally:
            log.seek(0)
            if TOKEN in log.read():
                sys.exit("the token is in a log")
