"""The chart as a chart: lint, values against their schema both ways, and rendered text against the goldens."""

import difflib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import jsonschema

from .tree import NAMESPACE, Case, Problem, Tree

SEVERITY_WARNING = 2

# In the schema and on purpose not in values.yaml: Helm's own key, and a limit that we advise against.
WITHOUT_DEFAULT = {"global", "resources.limits.cpu"}
# On purpose not closed: Helm's own key, and a Kubernetes type that is passed on as it is.
OPEN = {"global", "affinity"}


def lint(tree: Tree) -> Iterator[Problem]:
    for case in tree.cases:
        report = helm_python.chart.lint(tree.chart_path, case.values, strict=True, namespace=NAMESPACE)
        for message in report["messages"]:
            if message["severity"] >= SEVERITY_WARNING:
                yield Problem(f"{case.name}: {message['path']}", message["error"])
        for error in report["errors"]:
            yield Problem(case.name, error)


def version(tree: Tree) -> Iterator[Problem]:
    workspace = tomllib.loads(tree.workspace_path.read_text())["workspace"]["package"]["version"]
    application = tree.chart.metadata["appVersion"]
    if application != workspace:
        yield Problem("Chart.yaml", f"appVersion is {application}, Cargo.toml's version {workspace}")


def values_accepted(tree: Tree) -> Iterator[Problem]:
    for case in tree.cases:
        try:
            tree.chart.validate_schema(case.values)
        except helm_python.HelmValuesError as refusal:
            yield Problem(f"{case.name}.yaml", f"is refused, though it should pass: {refusal}")


def values_refused(tree: Tree) -> Iterator[Problem]:
    for entry in tree.refused:
        # Rendering as well as validating: it is what an install does.
        for attempt in (tree.chart.validate_schema, tree.chart.render):
            try:
                attempt(entry["values"])
            except helm_python.HelmValuesError as refusal:
                if entry["names"] not in str(refusal):
                    yield Problem("refused.yaml", f"{entry['case']}: refused, but not for {entry['names']}: {refusal}")
            else:
                yield Problem("refused.yaml", f"{entry['case']}: {attempt.__name__} accepts it")


def schema_strict(tree: Tree) -> Iterator[Problem]:
    schema = json.loads((tree.chart_path / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for path, node in objects(schema):
        if node.get("additionalProperties", True) is True and path.removeprefix("properties.") not in OPEN:
            yield Problem("values.schema.json", f"the object at {path or 'the top'} takes any key")


def objects(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield path, node
        for key, value in node.items():
            yield from objects(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from objects(value, f"{path}.{index}")


def values_documented(tree: Tree) -> Iterator[Problem]:
    """Every property of the schema has its default in values.yaml, where the comment says why."""
    schema = json.loads((tree.chart_path / "values.schema.json").read_text())

    def missing(properties: dict[str, Any], values: dict[str, Any], path: str) -> Iterator[str]:
        for key, node in properties.items():
            name = f"{path}{key}"
            if key not in values:
                yield name
            elif isinstance(values[key], dict):
                yield from missing(node.get("properties", {}), values[key], f"{name}.")

    for name in missing(schema["properties"], tree.chart.values, ""):
        if name not in WITHOUT_DEFAULT:
            yield Problem("values.yaml", f"says nothing of {name}, which the schema has")


def golden_texts(case: Case) -> dict[str, str]:
    """The goldens of a case by file name: all manifests in one file that kubectl would take, and the notes."""
    manifests = "".join(f"---\n# Source: {name}\n{text}" for name, text in case.texts.items())
    return {f"{case.name}.yaml": manifests, f"{case.name}.notes.txt": case.notes}


def golden(tree: Tree) -> Iterator[Problem]:
    wanted = {name: text for case in tree.cases for name, text in golden_texts(case).items()}
    found = {path.name: path.read_text() for path in tree.golden_path.iterdir()}
    for name in sorted(wanted.keys() | found.keys()):
        if name not in wanted:
            yield Problem(f"golden/{name}", "belongs to no set of values")
        elif found.get(name) != wanted[name]:
            lines = difflib.unified_diff(
                found.get(name, "").splitlines(), wanted[name].splitlines(), "golden", "rendered", lineterm="", n=2
            )
            text = "\n    ".join(lines)
            yield Problem(f"golden/{name}", f"differs; if that is meant, run deploy/validate --update\n    {text}")


def golden_update(tree: Tree) -> list[Path]:
    tree.golden_path.mkdir(exist_ok=True)
    for path in tree.golden_path.iterdir():
        path.unlink()
    written = []
    for case in tree.cases:
        for name, text in golden_texts(case).items():
            path = tree.golden_path / name
            path.write_text(text)
            written.append(path)
    return written
