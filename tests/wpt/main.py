"""See the file `run` beside this one."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import report
import runners
import tests

ROOT = Path(__file__).resolve().parent.parent.parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/wpt/run")
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of web-platform-tests")
    parser.add_argument("--commit", help="its commit, where it is not a git repository")
    parser.add_argument("--binary", type=Path, default=ROOT / "dist" / "coracle")
    parser.add_argument("--guest", type=Path, help="another guest than the one in the binary")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--update", action="store_true", help="write expected.txt and docs/conformance.md")
    parser.add_argument("--resume", action="store_true", help="go on with the run that was stopped")
    parser.add_argument("--no-node", action="store_true", help="leave Node out; not with --update")
    parser.add_argument("words", nargs="*", help="of the names of the tests to run")
    asked = parser.parse_args()
    if asked.update and (asked.words or asked.no_node):
        parser.error("--update needs a whole run, with Node")
    return asked


def chosen(asked: argparse.Namespace) -> list[tests.Test]:
    """The tests to run. Ends the program where the list of excluded files names one that is not there."""
    reasons = tests.excluded()
    found = dict((path, suite) for suite, path in tests.files(asked.checkout))
    gone = [path for path in reasons if path not in found]
    if gone:
        sys.exit("excluded.txt names files that the checkout has not: " + ", ".join(gone))
    every = [
        tests.Test(suite, path, variant)
        for path, suite in found.items()
        if path not in reasons
        for variant in tests.variants(asked.checkout, path)
    ]
    return [test for test in every if not asked.words or any(word in test.name for word in asked.words)]


async def main() -> int:
    asked = arguments()
    commit = asked.commit or runners.commit(asked.checkout)
    todo = chosen(asked)
    outcomes: dict[tests.Test, report.Outcome] = {}
    # What is asked for by name is kept only where it is a part of a whole run.
    kept = ROOT / "target" / "wpt.jsonl"
    if asked.resume and kept.exists():
        outcomes = report.read_kept(kept, todo)
    elif not asked.words:
        kept.unlink(missing_ok=True)
    places = asyncio.Semaphore(asked.jobs)

    async with runners.server_of(asked.checkout) as server, runners.Sandbox(asked.binary, asked.guest, server) as sandbox:
        scripts = tests.Scripts(asked.checkout, server)

        async def run(test: tests.Test) -> None:
            async with places:
                script, milliseconds = scripts.of(test), scripts.timeout_milliseconds(test)
                ours = await sandbox.run(script, milliseconds)
                node = None if asked.no_node else await runners.node(script, milliseconds)
            outcomes[test] = outcome = report.Outcome(ours, node)
            if asked.resume or not asked.words:
                report.keep(kept, test, outcome)
            print(f"{outcome.passed(outcome.ours)}/{outcome.total}\t{outcome.passed(node)} in Node\t{test.name}", flush=True)
            if asked.words:
                for name, message in outcome.failures().items():
                    print(f"    {name}: {message}")

        await asyncio.gather(*(run(test) for test in todo if test not in outcomes))

    in_order = {test: outcomes[test] for test in todo}
    print(report.table(in_order, with_node=not asked.no_node))
    if asked.update:
        report.write_expected(in_order)
        report.write_page(in_order, commit, asked.checkout, await runners.node_version())
        return 0
    surprises = report.surprises(in_order, is_whole=not asked.words)
    for surprise in surprises:
        print(surprise)
    return 1 if surprises else 0


async def until_stopped() -> int:
    """Ends the servers also where a signal ends the program."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await main()


if __name__ == "__main__":
    sys.exit(asyncio.run(until_stopped()))
