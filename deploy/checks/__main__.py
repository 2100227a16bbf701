"""The command behind deploy/validate: which checks there are, in which order, and how they report."""

import argparse
import functools
import sys
import time
import traceback
from pathlib import Path

import helm_python

from . import chart, host, image, kustomize, manifests, monitoring, pods
from .teeth import Check, teeth
from .tree import Tree

CHECKS: dict[str, Check] = {
    "lint": chart.lint,
    "version": chart.version,
    "values accepted": chart.values_accepted,
    "values refused": chart.values_refused,
    "schema strict": chart.schema_strict,
    "values documented": chart.values_documented,
    "kubernetes": manifests.kubernetes,
    "custom resources": manifests.custom_resources,
    "wiring": manifests.wiring,
    "scaled": manifests.scaled,
    "network": manifests.network,
    "restricted": pods.restricted,
    "hadolint": image.hadolint,
    "Dockerfile": image.dockerfile,
    "alerts fire": monitoring.alerts_fire,
    "dashboard parses": monitoring.dashboard_parses,
    "metrics known": monitoring.metrics_known,
    "runbook": monitoring.runbook,
    "rule shipped": monitoring.rule_shipped,
    "base rendered": kustomize.base_rendered,
    "base builds": kustomize.base_builds,
    "unit": host.unit,
    "compose": host.compose,
    "workflows": host.workflows,
    "golden": chart.golden,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/validate", description="Checks all of deploy/ without a cluster.")
    parser.add_argument("--update", action="store_true", help="rewrite the goldens from what the chart renders now")
    parser.add_argument("--binary", type=Path, help="a built coracle, to compare the chart's settings with")
    options = parser.parse_args()
    if options.binary and not options.binary.is_file():
        parser.error(f"no binary at {options.binary}")

    root = Path(__file__).resolve().parent.parent
    tree = Tree(root, root.parent / "Cargo.toml")
    if options.update:
        for path in chart.golden_update(tree) + kustomize.base_update(tree):
            print(f"wrote {path.relative_to(tree.root)}")

    checks = dict(CHECKS)
    if options.binary:
        checks["settings known"] = functools.partial(image.settings_known, binary=options.binary)
    # Last, and given the checks without the optional one: a broken variant has no binary of its own.
    checks["teeth"] = lambda tree: teeth(tree, CHECKS)
    failed = sum(not passes(name, check, tree) for name, check in checks.items())
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def passes(name: str, check: Check, tree: Tree) -> bool:
    start = time.monotonic()
    try:
        problems = [str(problem) for problem in check(tree)]
    except helm_python.HelmError as error:
        problems = [f"the chart does not render: {error}"]
    except Exception:
        problems = [f"crashed:\n{traceback.format_exc()}"]
    print(f"{'FAIL' if problems else 'ok':4} {name} ({time.monotonic() - start:.2f} s)")
    for problem in problems:
        print(f"  {problem}")
    return not problems


if __name__ == "__main__":
    sys.exit(main())
