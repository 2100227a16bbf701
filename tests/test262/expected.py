"""What is known to fail, and the difference between that and what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from record import Run

HERE: Final = Path(__file__).resolve().parent
BOTH: Final = "both"
"""Fails in the sandbox and in the engine alone."""
ALONE: Final = "alone"
"""Fails in the engine alone, and passes in the sandbox."""
AS_EVAL: Final = "as-eval"
"""Fails in the sandbox, and in the engine alone too where it evaluates the test's text by an indirect eval, as the driver does."""
UNEXPLAINED: Final = "unexplained"
"""Fails in the sandbox only, and nobody has said why."""


def reasons() -> dict[str, str]:
    """Why tests fail in the sandbox only: the words that ``expected-*.txt`` say it with, and what they mean."""
    lines = (HERE / "reasons.txt").read_text().splitlines()
    return dict(line.split(" | ") for line in lines if line and not line.startswith("#"))


class Expected:
    """The list of one guest: ``expected-default.txt`` or ``expected-javy.txt``."""

    def __init__(self, guest: str) -> None:
        self._path = HERE / f"expected-{guest}.txt"
        self._kinds: dict[Run, str] = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else []:
            if line and not line.startswith("#"):
                kind, path, *modes = line.split(" ")
                self._kinds.update({(path, mode): kind for mode in modes})
        known = {BOTH, ALONE, AS_EVAL, UNEXPLAINED, *reasons()}
        unknown = set(self._kinds.values()) - known
        if unknown:
            raise ValueError(f"{self._path.name}: no such reason: {', '.join(sorted(unknown))}")

    def judge(self, sandbox: Iterable[Run], engine: Iterable[Run]) -> dict[Run, str]:
        """What each failure is, in the words of the list."""
        sandbox, engine = set(sandbox), set(engine)
        kinds = {run: BOTH for run in sandbox & engine} | {run: ALONE for run in engine - sandbox}
        for run in sandbox - engine:
            kind = self._kinds.get(run, UNEXPLAINED)
            kinds[run] = UNEXPLAINED if kind in (BOTH, ALONE, AS_EVAL) else kind
        return kinds

    def differences(self, kinds: Mapping[Run, str], ran: Iterable[Run]) -> list[tuple[Run, str, str]]:
        """Where the list is wrong about runs that there were: the run, what it is, and what is listed."""
        wrong = []
        for run in sorted(ran):
            listed, found = self._kinds.get(run, "passes"), kinds.get(run, "passes")
            if listed != found:
                wrong.append((run, found, listed))
        return wrong

    def rewrite(self, kinds: Mapping[Run, str], ran: Iterable[Run]) -> None:
        """Takes what was found into the list. What is unexplained stays so until somebody writes a reason."""
        kept = {run: kind for run, kind in self._kinds.items() if run not in set(ran)}
        lines: dict[tuple[str, str], list[str]] = {}
        for (path, mode), kind in sorted({**kept, **kinds}.items()):
            lines.setdefault((kind, path), []).append(mode)
        text = (
            "# Runs that fail, by tests/test262/run --rewrite. `both`: in the sandbox and in the engine alone; `alone`: only in the\n"
            "# engine alone; `as-eval`: in the sandbox, and in the engine alone where it evaluates the test by an indirect eval; all other\n"
            "# words: in the sandbox only, for that reason of reasons.txt.\n"
        )
        text += "".join(f"{kind} {path} {' '.join(modes)}\n" for (kind, path), modes in sorted(lines.items()))
        self._path.write_text(text)


def write_results(guest: str, row: str, documents: Iterable[Path]) -> None:
    """Puts a guest's row of the table into documents."""
    for document in documents:
        text = document.read_text()
        document.write_text(re.sub(rf"^\| `{guest}` \|.*$", lambda _: row, text, flags=re.MULTILINE))


def summary(kinds: Mapping[Run, str]) -> str:
    """How many there are of each kind."""
    return ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(kinds.values()).items()))
