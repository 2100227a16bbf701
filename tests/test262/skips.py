"""Which tests are run nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from checkout import Test

LIST: Final = Path(__file__).with_name("skipped.txt")


class Skips:
    """The list in ``skipped.txt``."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], str] = {}
        for line in LIST.read_text().splitlines():
            if line and not line.startswith("#"):
                what, reason = line.split(" | ")
                kind, name = what.split()
                self._reasons[kind, name] = reason

    def reason(self, test: Test) -> tuple[str, str] | None:
        """What the test is skipped for, such as ``feature Temporal``, and why; None where it is run."""
        asked = [("feature", name) for name in sorted(test.features)] + [("flag", name) for name in test.flags]
        if "$262" in test.source:
            asked += [("host", name) for name in re.findall(r"\$262\.(\w+)", test.source)]
        for wanted in asked:
            if wanted in self._reasons:
                return " ".join(wanted), self._reasons[wanted]
        return None
