"""Counts what became of the tests, compares it with expected.txt, and writes it down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tests
from runners import Results
from tests import HERE, Test

EXPECTED = HERE / "expected.txt"
PAGE = HERE.parent.parent / "docs" / "conformance.md"
BEGIN, END = "<!-- wpt: begin -->\n", "<!-- wpt: end -->\n"

HARNESS = "(harness)"
"""Stands for a subtest that fails where something went wrong with the test as a whole."""

_NAMES_MAX = 200
"""More than so many names of one test are pinned by their number and hash."""


class Outcome:
    """A test in the sandbox and in Node. What either of the two has as a subtest counts as one for both: a subtest
    that is missing has failed."""

    def __init__(self, ours: Results, node: Results | None) -> None:
        self.ours, self.node = ours, node
        names = dict.fromkeys(ours.subtests)
        names.update(dict.fromkeys(node.subtests if node else ()))
        if ours.harness is not None or (node and node.harness is not None) or not names:
            names[HARNESS] = None
        self._names = list(names)

    @property
    def total(self) -> int:
        return len(self._names)

    def passed(self, results: Results | None) -> int:
        return 0 if results is None else self.total - len(self.failures(results))

    def failures(self, results: Results | None = None) -> dict[str, str]:
        """What failed and why; by default in the sandbox."""
        results = self.ours if results is None else results
        failed: dict[str, str] = {}
        for name in self._names:
            if name == HARNESS:
                if results.harness is not None or not results.subtests:
                    failed[name] = results.harness or "there are no subtests"
            elif name not in results.subtests:
                failed[name] = "is missing"
            elif (why := results.subtests[name]) is not None:
                failed[name] = why
        return failed


def keep(file: Path, test: Test, outcome: Outcome) -> None:
    """Notes what became of a test, a line each."""
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as lines:
        both = [outcome.ours, outcome.node]
        print(json.dumps([test.name, *(vars(results) if results else None for results in both)]), file=lines)


def read_kept(file: Path, todo: list[Test]) -> dict[Test, Outcome]:
    """What is known of a run that was stopped."""
    by_name = {test.name: test for test in todo}
    kept: dict[Test, Outcome] = {}
    for line in file.read_text().splitlines():
        name, ours, node = json.loads(line)
        if name in by_name:
            kept[by_name[name]] = Outcome(Results(**ours), Results(**node) if node else None)
    return kept


def _pin(failures: Mapping[str, str]) -> list[str]:
    """What expected.txt has of a test."""
    names = sorted(json.dumps(name) for name in failures)
    if len(names) <= _NAMES_MAX:
        return names
    return [f"{len(names)} subtests, whose names have the hash {hashlib.sha256(chr(10).join(names).encode()).hexdigest()}"]


def write_expected(outcomes: Mapping[Test, Outcome]) -> None:
    lines = [
        "# The subtests of web-platform-tests that fail. `tests/wpt/run --update` writes this file; others must pass.",
    ]
    for test, outcome in outcomes.items():
        if pinned := _pin(outcome.failures()):
            lines += ["", test.name, *("  " + line for line in pinned)]
    EXPECTED.write_text("\n".join(lines) + "\n")


def _expected() -> dict[str, list[str]]:
    pinned: dict[str, list[str]] = {}
    name = ""
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("  "):
            pinned[name].append(line[2:])
        elif line and not line.startswith("# "):
            name = line
            pinned[name] = []
    return pinned


def surprises(outcomes: Mapping[Test, Outcome], *, is_whole: bool) -> list[str]:
    """What differs from expected.txt, a line each."""
    pinned, found = _expected(), []
    for test, outcome in outcomes.items():
        failures = outcome.failures()
        expected, actual = set(pinned.pop(test.name, [])), set(_pin(failures))
        for line in sorted(actual - expected):
            why = failures[json.loads(line)] if line.startswith('"') else "others than expected"
            found.append(f"unexpected failure: {test.name}: {line}: {why}")
        for line in sorted(expected - actual):
            found.append(f"unexpected pass: {test.name}: {line}")
    if is_whole:
        found += [f"expected.txt has a test that did not run: {name}" for name in pinned]
    return found


def _rate(passed: int, total: int) -> str:
    return f"{100 * passed / total:.1f} %" if total else "–"


def table(outcomes: Mapping[Test, Outcome], *, with_node: bool = True) -> str:
    rows = []
    for suite in [*tests.SUITES, None]:
        chosen = [outcome for test, outcome in outcomes.items() if suite in (test.suite, None)]
        if not chosen:
            continue
        total = sum(outcome.total for outcome in chosen)
        ours = sum(outcome.passed(outcome.ours) for outcome in chosen)
        node = sum(outcome.passed(outcome.node) for outcome in chosen)
        label = f"`{suite}`" if suite else "**all**"
        of_node = f"{node:,} | {_rate(node, total)}" if with_node else "| "
        rows.append(f"| {label} | {len(chosen)} | {total:,} | {ours:,} | {_rate(ours, total)} | {of_node} |")
    head = ["| suite | tests | subtests | Coracle passes | | Node passes | |", "|---|---:|---:|---:|---:|---:|---:|"]
    return "\n".join([*head, *rows])


def write_page(outcomes: Mapping[Test, Outcome], commit: str, checkout: Path, node_version: str) -> None:
    """Puts the rates into docs/conformance.md."""
    excluded: dict[str, int] = {}
    for reason in tests.excluded().values():
        excluded[reason] = excluded.get(reason, 0) + 1
    reasons = "\n".join(f"| {reason} | {count} |" for reason, count in excluded.items())
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(
        f"{before}{BEGIN}web-platform-tests at commit `{commit}`, Node {node_version}:\n\n{table(outcomes)}\n\n"
        f"Left out, file by file in `tests/wpt/excluded.txt`:\n\n| why | files |\n|---|---:|\n{reasons}\n{END}{after}"
    )
