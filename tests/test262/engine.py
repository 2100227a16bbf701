"""The engine alone: run-test262 of QuickJS-ng, compiled for this machine from the very sources that a guest is made of."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from checkout import Checkout, Test
from record import Record, Run

TOOL: Final = Path(__file__).resolve().parents[2] / "tools" / "quickjs-test262"
_AT_ONCE: Final = 4000
"""Tests of which nothing is known before all are done."""
_FAILED: Final = re.compile(r"^(?P<path>\S+?\.js):\d+: (?P<strict>strict mode: )?(?P<message>.*)")


def run(checkout: Checkout, tests: Iterable[Test], guest: str, threads: int, record: Record) -> None:
    """Runs what is not in the record."""
    waiting = [test for test in tests if (test.path, test.modes[0]) not in record.outcomes]
    while waiting:
        part, waiting = _part(waiting)
        failed = _failed(checkout, checkout.folder, part, guest, threads)
        for test in part:
            for mode in test.modes:
                record.add((test.path, mode), failed.get((test.path, mode)))


def _part(tests: list[Test]) -> tuple[list[Test], list[Test]]:
    """Tests to be run at once, and the rest. Names that differ in leading zeros only are one name to run-test262."""
    part: dict[str, Test] = {}
    for index, test in enumerate(tests):
        name = re.sub(r"\d+", lambda digits: str(int(digits.group())), test.path)
        if name in part or len(part) == _AT_ONCE:
            return list(part.values()), tests[index:]
        part[name] = test
    return list(part.values()), []


def fails_as_eval(checkout: Checkout, runs: Iterable[tuple[Test, str]], guest: str, threads: int) -> set[Run]:
    """Which runs fail in the engine alone as well, where it is given scripts as a worker can be: by an indirect eval.

    Scripts that import are left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        tests = {}
        for test, mode in runs:
            if checkout.imports(test):
                continue  # What it imports is not there, which would prove nothing.
            wrapped = _as_eval(test, mode)
            tests[wrapped.path] = (wrapped, (test.path, mode))
            file = Path(folder) / wrapped.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wrapped.source, encoding="utf-8")
        if not tests:
            return set()
        failed = _failed(checkout, Path(folder), [test for test, _ in tests.values()], guest, threads)
    return {tests[path][1] for path, _ in failed}


def _as_eval(test: Test, mode: str) -> Test:
    flags = ["noStrict", *sorted(test.flags & {"async"})]
    negative = f"negative:\n  phase: runtime\n  type: {test.negative}\n" if test.negative else ""
    source = json.dumps('"use strict";\n' + test.source if mode == "strict" else test.source)
    return Test(
        path=f"{mode}/{test.path}",
        source=f"/*---\nflags: [{', '.join(flags)}]\nincludes: [{', '.join(test.includes)}]\n{negative}---*/\n"
        f"$262.evalScript = (source) => (0, eval)(source);\n(0, eval)({source});\n",
        flags=frozenset(flags),
        features=frozenset(),
        includes=test.includes,
        negative=test.negative,
    )


def _failed(checkout: Checkout, root: Path, tests: list[Test], guest: str, threads: int) -> dict[Run, str]:
    """What fails of the tests below ``root``, with what was said."""
    program = subprocess.run([TOOL, guest], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "test262.conf"
        features = sorted({feature for test in tests for feature in test.features})
        settings.write_text(
            "[config]\nmode=all\nasync=yes\nmodule=yes\nverbose=yes\n"
            f"harnessdir={checkout.folder / 'harness'}\nerrorfile={folder}/errors\n"
            + "\n".join(["[features]", *features, "[tests]", *(str(root / test.path) for test in tests)])
            + "\n"
        )
        Path(f"{folder}/errors").touch()
        command = [program, "-c", str(settings), "-a", "-u", "-t", str(threads)]
        with open(f"{folder}/output", "w+", encoding="utf-8") as output:
            ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT)
            output.seek(0)
            told = output.read()
        counted = re.search(r"Result: (\d+)/(\d+) error", told)
        if counted is None:
            raise RuntimeError(f"{program} ended with {ended.returncode}: {told[-2000:]}")
        runs = sum(len(test.modes) for test in tests)
        if int(counted.group(2)) != runs:
            raise RuntimeError(f"{program} has done {counted.group(2)} runs instead of {runs}: {told[-2000:]}")
        failed = _read(root, tests, Path(f"{folder}/errors").read_text(errors="replace"))
        if len(failed) != int(counted.group(1)):
            raise RuntimeError(f"{program} counts {counted.group(1)} failures and names {len(failed)}")
    return failed


def _read(root: Path, tests: list[Test], text: str) -> dict[Run, str]:
    by_path = {str(root / test.path): test for test in tests}
    failed = {}
    for line in text.splitlines():
        # A message may have several lines; those after the first are no failures.
        found = _FAILED.match(line)
        test = by_path.get(found.group("path")) if found else None
        if found and test:
            mode = "strict" if found.group("strict") else test.modes[0]
            failed[test.path, mode] = found.group("message")
    return failed
