"""Policies for requests that leave: what narrows the policy of the session."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .http import Request
from .targets import RpcTarget


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Lets a worker's requests out where the policy of the session allows, and besides that a narrower one; give it as
    ``outbound``. It is never wider than that of the session, which allows nothing unless the server's configuration says so
    (docs/outbound.md).
    """

    name: str | None = None
    """A policy of the server's configuration that the tenant may name."""

    rules: Sequence[Mapping[str, Any]] | None = None
    """Rules, such as ``[{"allow": ["https://api.example.com"], "methods": ["GET"]}]``."""

    ask: Callable[[Request], bool | Awaitable[bool]] | None = None
    """Decides where a rule says "ask", of a request without its body. What it raises is a no."""

    def __post_init__(self) -> None:
        if self.name is not None and self.rules is not None:
            raise ValueError("a policy has a name or rules, and not both")

    @property
    def text(self) -> str:
        """The rules as the server reads them."""
        return json.dumps({"rules": list(self.rules or ())})


class Asker(RpcTarget):
    """The function that decides, as the server calls it."""

    def __init__(self, ask: Callable[[Request], bool | Awaitable[bool]]) -> None:
        self._ask = ask

    def ask(self, request: Request) -> bool | Awaitable[bool]:
        """Whether the request may leave."""
        return self._ask(request)
