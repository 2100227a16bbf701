"""The tables of bytes in schema/value.md."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[3] / "schema" / "value.md"


def vectors(table: str) -> list[tuple[str, str]]:
    """The rows of a table, without the marks around them."""
    section = DOCUMENT.read_text().split(f"<!-- vectors: {table} -->\n")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `(.*)` \| `(.*)` \|$", section, re.MULTILINE)
    assert len(rows) > 10, f"the table {table!r} of {DOCUMENT} can't be read"
    return rows
