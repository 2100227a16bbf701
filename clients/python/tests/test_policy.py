"""Policies for requests that leave, against a real website and a server of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import coracle

AGENT = """export default {
    async visit(url) {
        try { return await (await fetch(url)).text(); } catch (error) { return [error.code, error.message]; }
    },
}"""


class Website(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{self.path} {self.headers['x-api-key']}".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def website() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Website) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def outbound_file(website: str, tmp_path: Path) -> str:
    secret = tmp_path / "secret"
    secret.write_text("sesame-open-2931")
    secret.chmod(0o600)
    rules = [
        {"allow": [website], "paths": ["/key"], "private": True, "credential": "key"},
        {"ask": [website], "paths": ["/ask/**"], "private": True},
        {"allow": [website], "private": True},
    ]
    credential = {
        "secret": {"file": str(secret)}, "to": [website], "as": {"header": {"name": "x-api-key"}}, "plain_http": True
    }
    config = {"default_policy": "site", "policies": {"site": {"rules": rules}}, "credentials": {"key": credential}}
    path = tmp_path / "outbound.json"
    path.write_text(json.dumps(config))
    return str(path)


async def test_a_worker_reaches_what_the_policy_allows_and_less_where_the_load_says_so(
    website: str, outbound_file: str
) -> None:
    asked: list[str] = []

    def ask(request: coracle.Request) -> bool:
        asked.append(request.url)
        return request.url.endswith("yes")

    async with coracle.serve(args=["--outbound-file", outbound_file]) as session:
        agent = (await session.load({"main.js": AGENT})).entrypoint()
        assert await agent.visit(f"{website}/a") == "/a None"
        # Put in outside, and taken out of what comes back.
        assert await agent.visit(f"{website}/key") == "/key [redacted]"
        code, message = await agent.visit("https://elsewhere.test/")
        assert code == "policy_denied"
        assert 'no rule of the policy "site" allows GET https://elsewhere.test/' in message

        rules = [{"allow": [website], "paths": ["/a"]}, {"ask": [website]}]
        narrowed = (await session.load({"main.js": AGENT}, outbound=coracle.Policy(rules=rules, ask=ask))).entrypoint()
        assert await narrowed.visit(f"{website}/a") == "/a None"
        assert await narrowed.visit(f"{website}/yes") == "/yes None"
        assert (await narrowed.visit(f"{website}/no"))[0] == "ask_denied"
        assert asked == [f"{website}/yes", f"{website}/no"]

        for policy, problem in (
            (coracle.Policy(name="site"), "may name"),
            (coracle.Policy(rules=[{"allow": ["a b"]}]), r"rules\[0\]\.allow\[0\]"),
        ):
            with pytest.raises(coracle.RefusedError, match=problem):
                await session.load({"main.js": AGENT}, outbound=policy)


async def test_a_policy_has_a_name_or_rules() -> None:
    with pytest.raises(ValueError, match="a name or rules"):
        coracle.Policy(name="a", rules=[])
