"""The tests of a checkout: which there are, how each is to be run, and what it expects."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDERS: Final = ("test/language", "test/built-ins")
HARNESS: Final = ("assert.js", "sta.js")
ASYNC_HARNESS: Final = "doneprintHandle.js"

_FILE_NAME: Final = re.compile(
    r"""["']((?:\.{1,2}/)+[^"'\\\n]+)["'](?:\s*,?\s*\{?\s*with:?\s*\{\s*type:\s*["'](\w+)["'])?"""
)
"""What may be imported: text that looks like the relative path of a file, and the type that is asked for."""
_LEXICAL: Final = re.compile(r"^(?:const|let|class) ([\w$]+)", re.MULTILINE)


@dataclass(frozen=True)
class Test:
    """One file."""

    path: str
    """In the checkout, such as ``test/language/x.js``."""
    source: str
    flags: frozenset[str]
    features: frozenset[str]
    includes: tuple[str, ...]
    negative: str | None
    """The class of the error that it must end with."""

    @property
    def modes(self) -> tuple[str, ...]:
        """How it is run: ``sloppy``, ``strict``, both, or ``module``."""
        if "module" in self.flags:
            return ("module",)
        if "raw" in self.flags or "noStrict" in self.flags:
            return ("sloppy",)
        if "onlyStrict" in self.flags:
            return ("strict",)
        return ("sloppy", "strict")


@dataclass(frozen=True)
class Imported:
    """A file that a test may import."""

    kind: str
    """``text`` or ``bytes`` where the import asks for that, or ``json`` or ``js`` by the name."""
    content: bytes

    @property
    def text(self) -> str:
        """What is in it."""
        return self.content.decode(errors="replace")


class Checkout:
    """A folder with a checkout, or with what was taken out of one."""

    def __init__(self, folder: Path, commit: str | None) -> None:
        self.folder = folder
        self.commit = commit or self._git_commit()
        self._harness: dict[str, str] = {}

    def tests(self, only: str) -> list[Test]:
        """All tests whose path contains ``only``, by their paths."""
        found = []
        for folder in FOLDERS:
            for path in sorted((self.folder / folder).rglob("*.js")):
                name = path.relative_to(self.folder).as_posix()
                if "_FIXTURE" not in name and only in name:
                    found.append(_read(name, path.read_bytes().decode()))
        return found

    def harness(self, test: Test) -> str:
        """What is evaluated before the test."""
        if "raw" in test.flags:
            return ""
        names = [*HARNESS, *([ASYNC_HARNESS] if "async" in test.flags else []), *test.includes]
        return "\n".join(self._harness_file(name) for name in dict.fromkeys(names))

    def imports(self, test: Test) -> dict[str, Imported]:
        """The files that the test may import, itself among them where it is a module, by their paths relative to its folder.

        A path that leaves the folder is cut off at it, as a worker's modules are.
        """
        base = (self.folder / test.path).parent
        found: dict[str, Imported] = {}
        if "module" in test.flags:
            found[Path(test.path).name] = Imported("js", test.source.encode())
        waiting = [("", test.source)]
        while waiting:
            folder, source = waiting.pop()
            for specifier, kind in _FILE_NAME.findall(source):
                file = base / folder / specifier
                name = _clamped(folder, specifier)
                if name in found or not file.is_file():
                    continue
                if kind not in ("text", "bytes"):
                    kind = "json" if name.endswith(".json") else "js"
                found[name] = Imported(kind, file.read_bytes())
                if kind == "js":
                    waiting.append((name.rpartition("/")[0], found[name].text))
        return found

    def _harness_file(self, file: str) -> str:
        if file not in self._harness:
            source = (self.folder / "harness" / file).read_bytes().decode()
            # What a script declares so stays; here it would end with the evaluation. (Some of it is inside of a function.)
            names = _LEXICAL.findall(source)
            kept = "".join(f'\nif (typeof {name} !== "undefined") globalThis.{name} = {name};' for name in names)
            self._harness[file] = source + kept
        return self._harness[file]

    def _git_commit(self) -> str:
        told = subprocess.run(["git", "-C", self.folder, "rev-parse", "HEAD"], capture_output=True, text=True)
        return told.stdout.strip() if told.returncode == 0 else "unknown"


def _clamped(folder: str, specifier: str) -> str:
    segments = [part for part in folder.split("/") if part]
    for part in specifier.split("/"):
        if part == "..":
            segments = segments[:-1]
        elif part != ".":
            segments.append(part)
    return "/".join(segments)


def _read(path: str, source: str) -> Test:
    _, _, text = source.partition("/*---")
    text = text.partition("---*/")[0].replace("\r\n", "\n").replace("\r", "\n")
    negative = re.search(r"^negative:\s*\n(?:[ \t]+.*\n?)+", text, re.MULTILINE)
    kind = re.search(r"type:\s*(\w+)", negative.group(0)) if negative else None
    return Test(
        path=path,
        source=source,
        flags=frozenset(_list(text, "flags")),
        features=frozenset(_list(text, "features")),
        includes=tuple(_list(text, "includes")),
        negative=kind.group(1) if kind else None,
    )


def _list(text: str, key: str) -> list[str]:
    """The list at a key, in either way of writing one."""
    found = re.search(rf"^{key}:[ \t]*\[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    if found:
        return [part.strip() for part in found.group(1).split(",") if part.strip()]
    found = re.search(rf"^{key}:[ \t]*\n((?:[ \t]*-[ \t]*.*\n?)+)", text, re.MULTILINE)
    if found:
        return [line.strip()[1:].strip() for line in found.group(1).strip().split("\n")]
    return []
