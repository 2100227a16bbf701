"""What became of the runs so far, kept in a file, so that a run that was interrupted goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

Run = tuple[str, str]
"""A test's path, and a mode of it."""


class Record:
    """Outcomes by run: None where it passed, or what was said."""

    def __init__(self, file: Path | None) -> None:
        self.outcomes: dict[Run, str | None] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                path, mode, outcome = json.loads(line)
                self.outcomes[path, mode] = outcome
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(file, "a", buffering=1, encoding="utf-8") if file is not None else None

    def add(self, run: Run, outcome: str | None) -> None:
        """One more."""
        self.outcomes[run] = outcome
        if self._file is not None:
            self._file.write(json.dumps([*run, outcome]) + "\n")
