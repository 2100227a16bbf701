"""Runs test262 in sandboxes and in the engine alone, and compares what fails with what is known to; see ``run``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import engine
import expected
import sandbox
from checkout import Checkout, Test
from record import Record, Run
from skips import Skips

DOCUMENTS: Final = (expected.HERE / "conformance.md", expected.HERE.parents[1] / "docs" / "conformance.md")


def main() -> int:
    """See the module. Answers the exit code."""
    options = _options()
    checkout = Checkout(options.checkout, options.commit)
    in_sandbox, alone = (Record(options.keep / options.guest / name if options.keep else None) for name in ("sandbox.jsonl", "engine.jsonl"))
    tests = _not_skipped(checkout, options.only)
    files_max = len(tests)
    if options.recorded:
        tests = [test for test in tests if all((test.path, mode) in in_sandbox.outcomes for mode in test.modes)]
    ran = {(test.path, mode): test for test in tests for mode in test.modes}
    print(f"test262 {checkout.commit}: {len(tests)} files of {files_max}, {len(ran)} runs", flush=True)

    engine.run(checkout, tests, options.guest, options.threads, alone)
    sandbox.run(checkout, tests, options.image, options.threads, in_sandbox)
    failed, failed_alone = (
        {run: outcome for run, outcome in record.outcomes.items() if run in ran and outcome is not None}
        for record in (in_sandbox, alone)
    )
    known = expected.Expected(options.guest)
    kinds = known.judge(failed, failed_alone)
    scripts = [(ran[run], run[1]) for run in failed.keys() - failed_alone.keys() if run[1] != "module"]
    kinds.update(dict.fromkeys(engine.fails_as_eval(checkout, scripts, options.guest, options.threads), expected.AS_EVAL))

    passed = [len(tests) - len({path for path, _ in each}) for each in (failed, failed_alone)]
    print(f"files that pass: {passed[0]} in a sandbox, {passed[1]} in the engine alone; runs that fail: {expected.summary(kinds)}")
    differences = known.differences(kinds, ran)
    for run, found, listed in differences:
        print(f"{' '.join(run)}: {found}, and not {listed}")
        print(f"    in a sandbox: {failed.get(run, 'passes')}\n    in the engine alone: {failed_alone.get(run, 'passes')}")
    if options.rewrite:
        known.rewrite(kinds, ran)
        if not options.only:
            row = _row(options.guest, (len(tests), files_max), len(ran), passed, kinds)
            expected.write_results(options.guest, row, DOCUMENTS)
    unexplained = expected.UNEXPLAINED in kinds.values()
    return 1 if unexplained or (differences and not options.rewrite) else 0


def _not_skipped(checkout: Checkout, only: str) -> list[Test]:
    skips = Skips()
    tests, skipped = [], Counter()
    for test in checkout.tests(only):
        reason = skips.reason(test)
        if reason is None:
            tests.append(test)
        else:
            skipped[reason] += 1
    for (what, why), count in skipped.most_common():
        print(f"{count:5} files are skipped for the {what}: {why}")
    return tests


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/test262/run", description="Runs test262 in sandboxes and in the engine alone.")
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of tc39/test262")
    parser.add_argument("--commit", help="its commit, where it is no git repository")
    parser.add_argument("--guest", choices=("default", "javy"), default="default", help="which guest it is about")
    parser.add_argument("--image", help="the guest's file, where it is not the one in the binary")
    parser.add_argument("--binary", type=Path, required=True, help="the server")
    parser.add_argument("--only", default="", help="only tests whose path contains this")
    parser.add_argument("--threads", type=int, default=2, help="how many threads run tests")
    parser.add_argument("--keep", type=Path, help="a folder that keeps what became of each run, so that an interrupted one goes on")
    parser.add_argument("--recorded", action="store_true", help="only judge the files that --keep has, and run nothing else")
    parser.add_argument("--rewrite", action="store_true", help="take what fails into the list and the documentation")
    options = parser.parse_args()
    os.environ["CORACLE_BINARY"] = str(options.binary.resolve())
    options.checkout = options.checkout.resolve()
    return options


def _row(guest: str, counts: tuple[int, int], runs: int, passed: list[int], kinds: dict[Run, str]) -> str:
    count, of = counts
    rates = [f"{number:,} ({100 * number / count:.2f} %)" for number in passed]
    ours = sum(1 for kind in kinds.values() if kind not in (expected.BOTH, expected.ALONE))
    by_kind = Counter(kinds.values())
    cells = [f"`{guest}`", f"{count:,}" if count == of else f"{count:,} of {of:,}", f"{runs:,}", *rates, f"{by_kind[expected.BOTH]}", f"{ours}", f"{by_kind[expected.ALONE]}"]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
