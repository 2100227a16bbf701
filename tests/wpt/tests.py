"""Finds the tests of a checkout of web-platform-tests, and makes a script of each that needs no page around it."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent

SUITES = {
    "url": ["url"],
    "urlpattern": ["urlpattern"],
    "encoding": ["encoding"],
    "fetch/api": [f"fetch/api/{part}" for part in ("headers", "request", "response", "body", "abort", "redirect")],
    "streams": ["streams"],
    "FileAPI": ["FileAPI"],
    "dom/abort": ["dom/abort"],
    "dom/events": ["dom/events"],
    "compression": ["compression"],
    "html/webappapis": [
        f"html/webappapis/{part}" for part in ("atob", "structured-clone", "timers", "microtask-queuing")
    ],
    "console": ["console"],
    "WebCryptoAPI": ["WebCryptoAPI"],
}
"""The folders of each suite."""

TIMEOUT_MILLISECONDS = {"normal": 60_000, "long": 240_000}
"""Six times what the tests ask for: the sandbox's interpreter, and machines that do something else besides."""

_SCRIPTS = re.compile(r"\.(any|window|worker)\.js$")
_PAGES = re.compile(r"\.(html|htm|xhtml)$")
_META = re.compile(r"^// META: (\w+)=(.*)$")
_SERVED_AS = {"resources/WebIDLParser.js": "resources/webidl2/lib/webidl2.js"}
"""What the checkout's server has under another name than the checkout."""
_HARNESS = {"/resources/testharness.js", "/resources/testharnessreport.js"}


@dataclass(frozen=True)
class Test:
    """One file in one variant."""

    suite: str
    path: str
    """In the checkout."""
    variant: str
    """The query of its URL: empty, or with its question mark."""

    @property
    def name(self) -> str:
        return self.path + self.variant


def excluded() -> dict[str, str]:
    """Reasons by path, as excluded.txt has them: a line with `# ` is the reason for the paths below it."""
    reasons, reason = {}, ""
    for line in (HERE / "excluded.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            reasons[line] = reason
    return reasons


def files(checkout: Path) -> Iterator[tuple[str, str]]:
    """Suite and path of every file of the suites that holds tests for a harness or for a person."""
    for suite, folders in SUITES.items():
        for folder in folders:
            for path in sorted((checkout / folder).rglob("*")):
                name = path.relative_to(checkout).as_posix()
                is_page = _PAGES.search(name) and (b"testharness.js" in path.read_bytes() or "-manual." in name)
                if path.is_file() and (_SCRIPTS.search(name) or is_page):
                    yield suite, name


def variants(checkout: Path, path: str) -> list[str]:
    """The variants that a file asks for; one without a query where it asks for none."""
    text = (checkout / path).read_text(encoding="utf-8", errors="replace")
    if _PAGES.search(path):
        found = re.findall(r"<meta name=[\"']?variant[\"']? content=[\"']([^\"']*)", text)
    else:
        found = [value for key, value in _metadata(text) if key == "variant"]
    return [variant.strip() for variant in found] or [""]


class Scripts:
    """Makes scripts of tests."""

    def __init__(self, checkout: Path, server: Server) -> None:
        self._checkout, self._server = checkout, server
        self._harness = (checkout / "resources" / "testharness.js").read_text(encoding="utf-8")

    def timeout_milliseconds(self, test: Test) -> int:
        text = self._read(test.path)
        is_long = ("timeout", "long") in _metadata(text) or 'name="timeout" content="long"' in text
        return TIMEOUT_MILLISECONDS["long" if is_long else "normal"]

    def of(self, test: Test) -> str:
        """A function in sloppy mode that answers a promise of the results, as JSON.

        Helpers are in its body one after the other, so that what one declares is there for the next, as it would be in a
        page. The test is a function inside, so that its own "use strict" holds.
        """
        if _PAGES.search(test.path):
            helpers, body = self._of_page(test.path)
        else:
            helpers, body = self._of_script(test.path)
        about = {
            "url": self._server.url(test.name),
            "globals": "window" if re.search(r"\.window\.js$|\.x?html?$", test.path) else "worker",
            "timeoutMilliseconds": self.timeout_milliseconds(test),
        }
        pieces = [
            # A helper that finds what CommonJS modules have would take itself for one.
            "(function (module, exports, require) {",
            f"const WPT = {json.dumps(about)};",
            *_evaluations(body),
            (HERE / "shim.js").read_text(),
            self._harness,
            (HERE / "report.js").read_text(),
            *helpers,
            "(function () {" + body + "\n}).call(globalThis);",
            "return globalThis.wptResults;",
            "})",
        ]
        return "\n".join(pieces)

    def _of_script(self, path: str) -> tuple[list[str], str]:
        text = self._read(path)
        names = [value for key, value in _metadata(text) if key == "script"]

        def imported(match: re.Match[str]) -> str:
            names.extend(re.findall(r"[\"']([^\"']+)[\"']", match[1]))
            return ""

        if path.endswith(".worker.js"):
            text = re.sub(r"importScripts\(([^)]*)\);?", imported, text)
        return [self._helper(path, name) for name in names if name not in _HARNESS], text

    def _of_page(self, path: str) -> tuple[list[str], str]:
        page = _Page()
        page.feed(self._read(path))
        helpers = [self._helper(path, name) for name in page.sources if name not in _HARNESS]
        return helpers, "\n".join(page.scripts)

    def _helper(self, importer: str, name: str) -> str:
        path = name[1:] if name.startswith("/") else (PurePosixPath(importer).parent / name).as_posix()
        parts: list[str] = []
        for part in path.split("/"):
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        place = "/".join(parts)
        return self._read(_SERVED_AS.get(place, place))

    def _read(self, path: str) -> str:
        text = (self._checkout / path).read_text(encoding="utf-8", errors="replace")
        return self._server.substitute(text) if ".sub." in path else text


@dataclass(frozen=True)
class Server:
    """Where the server of the checkout is. Two names for one machine make two hosts."""

    ports: tuple[int, int]
    closed_port: int
    """Stands where a port of another protocol should be, which nobody serves."""
    host: str = "localhost"
    other_host: str = "127.0.0.1"

    def url(self, name: str) -> str:
        return f"http://{self.host}:{self.ports[0]}/{name}"

    def substitute(self, text: str) -> str:
        """Fills in what the server would."""

        def value(match: re.Match[str]) -> str:
            name, *keys = re.findall(r"[\w-]+", match[1])
            if name == "ports":
                index = int(keys[1]) if len(keys) > 1 else 0
                return str(self.ports[index] if keys[0] == "http" else self.closed_port)
            if name in ("domains", "hosts"):
                return self.other_host
            if name == "location":
                return {"port": str(self.ports[0]), "host": f"{self.host}:{self.ports[0]}"}.get(keys[0], self.url(""))
            return self.host

        return re.sub(r"\{\{([^}]*)\}\}", value, text)


class _Page(html.parser.HTMLParser):
    """The scripts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.scripts: list[str] = []
        self._is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        source = dict(attrs).get("src")
        self._is_script = tag == "script" and source is None
        if tag == "script" and source is not None:
            self.sources.append(source)

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self.scripts.append(data)


def _evaluations(body: str) -> list[str]:
    """An `eval` for the harness for interfaces, which is given the source of objects; the sandbox makes no code of strings,
    so what there will be is compiled with the rest."""
    sources = set()
    for objects in re.findall(r"add_objects\((\{.*?\})\);", body, re.DOTALL):
        for _, source in re.findall(r"(['\"`])((?:\\.|(?!\1).)*)\1(?!\s*:)", objects):
            sources.add(re.sub(r"\\(.)", r"\1", source))
    if not sources:
        return []
    table = ", ".join(f"{json.dumps(source)}: () => ({source})" for source in sorted(sources))
    return ["const evaluations = { __proto__: null, " + table + " };", "var eval = (source) => evaluations[source]();"]


def _metadata(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.splitlines():
        match = _META.match(line)
        if match:
            found.append((match[1], match[2].strip()))
    return found
