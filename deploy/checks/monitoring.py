"""Alerts and dashboard: that Prometheus takes them, that alerts fire, and that metrics, labels and runbook are there."""

import functools
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .tree import Problem, Tree

RUNBOOK = "https://github.com/coracle-run/coracle/blob/main/docs/operate.md#"
# What Prometheus itself adds.
OF_PROMETHEUS = {"up": {"job": None, "instance": None}}
TARGET_LABELS = {"job": None, "instance": None, "namespace": None, "le": None}
# What Grafana puts in before Prometheus sees the expression.
GRAFANA = {"$__rate_interval": "5m", "$job": "coracle"}
NAME = re.compile(r"\b((?:coracle|process)_[a-z0-9_]+|up)\b")
MATCHERS = re.compile(r"\b((?:coracle|process)_[a-z0-9_]+|up)\{([^}]*)\}")
MATCHER = re.compile(r'([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


def alerts(tree: Tree) -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(tree.alerts_path.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def panels(tree: Tree) -> Iterator[tuple[str, str]]:
    """The dashboard's expressions, each with the title of its panel, as Prometheus gets them."""
    for panel in json.loads(tree.dashboard_path.read_text())["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in GRAFANA.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression


def alerts_fire(tree: Tree) -> Iterator[Problem]:
    tests = yaml.safe_load(tree.alert_tests_path.read_text())
    cases = [case for test in tests["tests"] for case in test["alert_rule_test"]]
    for name in alerts(tree).keys() - {case["alertname"] for case in cases if case["exp_alerts"]}:
        yield Problem("alerts.test.yaml", f"nothing shows that {name} fires")
    with tempfile.TemporaryDirectory() as folder:
        for path in (tree.alerts_path, tree.alert_tests_path):
            (Path(folder) / path.name).write_text(path.read_text())
        yield from promtool(tree, "check", "rules", Path(folder) / tree.alerts_path.name)
        yield from promtool(tree, "test", "rules", Path(folder) / tree.alert_tests_path.name)


def dashboard_parses(tree: Tree) -> Iterator[Problem]:
    """Every expression is put into a rule, which is what promtool parses."""
    rules = [{"record": f"panel:{index}", "expr": expression} for index, (_, expression) in enumerate(panels(tree))]
    if not rules:
        yield Problem("dashboard.json", "asks nothing")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dashboard.yaml"
        path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
        yield from promtool(tree, "check", "rules", "--lint=none", path)


def promtool(tree: Tree, *arguments: str | Path) -> Iterator[Problem]:
    result = subprocess.run([promtool_path(tree.repository), *arguments], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        yield Problem(f"promtool {arguments[0]} {arguments[1]}", (result.stdout + result.stderr).strip())


@functools.cache
def promtool_path(repository: Path) -> str:
    fetched = subprocess.run([repository / "tools" / "promtool"], capture_output=True, text=True, timeout=300, check=True)
    return fetched.stdout.strip()


def inventory(tree: Tree) -> dict[str, dict[str, set[str] | None]]:
    """The series of docs/metrics.md with their labels and the values that these take; None where any may stand."""
    known: dict[str, dict[str, set[str] | None]] = {}
    for line in (tree.repository / "docs" / "metrics.md").read_text().splitlines():
        row = re.match(r"\| `((?:coracle|process)_[a-z0-9_]+)` \| (\w+) \| (.*?) \| ", line)
        if not row:
            continue
        name, kind, cell = row.groups()
        labels: dict[str, set[str] | None] = {}
        for part in filter(None, cell.split(";")):
            label, _, values = part.partition(":")
            labels[label.strip(" `")] = set(re.findall(r"`([^`]+)`", values)) or None
        for suffix in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            known[name + suffix] = labels
    return known


def metrics_known(tree: Tree) -> Iterator[Problem]:
    """What is asked for is exported: names, labels, and the values that labels are compared with."""
    known = {**inventory(tree), **OF_PROMETHEUS}
    asked = [(f"alert {name}", rule["expr"]) for name, rule in alerts(tree).items()]
    asked += [(f"panel {title}", expression) for title, expression in panels(tree)]
    for where, expression in asked:
        # What stands in quotes, or between "by" and its bracket's end, names no series.
        bare = re.sub(r'"[^"]*"', "", re.sub(r"\b(by|on|without|ignoring) *\([^)]*\)", "", expression))
        names = set(NAME.findall(bare))
        if not names:
            yield Problem(where, f"asks for no series: {expression}")
        for name in names - known.keys():
            yield Problem(where, f"asks for {name}, which docs/metrics.md does not have")
        for name, matchers in MATCHERS.findall(expression):
            for label, operator, value in MATCHER.findall(matchers):
                labels = {**TARGET_LABELS, **known.get(name, {})}
                if label not in labels:
                    yield Problem(where, f"{name} has no label {label}")
                    continue
                values = value.split("|") if "~" in operator else [value]
                for wrong in set(values) - labels[label] if labels[label] else set():
                    yield Problem(where, f"{name} has no {label}={wrong!r}")


def runbook(tree: Tree) -> Iterator[Problem]:
    """Every alert has an entry in docs/operate.md, which its link names, and there is none for an alert that is gone."""
    text = (tree.repository / "docs" / "operate.md").read_text()
    entries = set(re.findall(r"^### (Coracle\w+)$", text, re.MULTILINE))
    found = alerts(tree)
    for name, rule in found.items():
        if name not in entries:
            yield Problem("docs/operate.md", f"has no entry for {name}")
        if rule["annotations"].get("runbook_url") != RUNBOOK + name.lower():
            yield Problem(f"alert {name}", f"its runbook_url must be {RUNBOOK}{name.lower()}")
    for name in entries - found.keys():
        yield Problem("docs/operate.md", f"has an entry for {name}, which is no alert")


def rule_shipped(tree: Tree) -> Iterator[Problem]:
    """What the chart renders is the file that was tested, whole."""
    case = tree.case("full")
    (rule,) = case.of_kind("PrometheusRule")
    if rule["spec"] != yaml.safe_load(tree.alerts_path.read_text()):
        yield Problem(case.where(rule), "is not what monitoring/alerts.yaml says")
    (dashboard,) = case.of_kind("ConfigMap")
    if json.loads(dashboard["data"]["coracle.json"]) != json.loads(tree.dashboard_path.read_text()):
        yield Problem(case.where(dashboard), "is not what monitoring/dashboard.json says")
