"""Where things are in deploy/, and what the chart renders for each set of values in helm/tests/."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import helm_python
import yaml

RELEASE = "demo"
NAMESPACE = "sandboxes"
REFUSED = "refused.yaml"


@dataclass(frozen=True)
class Problem:
    """Something wrong: where, and what about it. Printed as it is."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Case:
    """One set of values and what came of it: manifests by template, empty ones left out, and the notes."""

    name: str
    values: dict[str, Any]
    texts: dict[str, str]
    notes: str

    @cached_property
    def manifests(self) -> list[dict[str, Any]]:
        return [document for text in self.texts.values() for document in yaml.safe_load_all(text) if document]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [manifest for manifest in self.manifests if manifest["kind"] == kind]

    def where(self, manifest: dict[str, Any]) -> str:
        return f"{self.name}: {manifest['kind']}/{manifest['metadata']['name']}"


class Tree:
    """A deploy/ folder: the real one or a broken copy. Rendering happens once."""

    def __init__(self, root: Path, workspace_path: Path) -> None:
        self.root = root
        self.workspace_path = workspace_path
        self.chart_path = root / "helm" / "coracle"
        self.tests_path = root / "helm" / "tests"
        self.golden_path = root / "helm" / "golden"
        self.dockerfile_path = root / "docker" / "Dockerfile"
        self.alerts_path = self.chart_path / "monitoring" / "alerts.yaml"
        self.dashboard_path = self.chart_path / "monitoring" / "dashboard.json"
        self.alert_tests_path = root / "monitoring" / "alerts.test.yaml"
        self.base_path = root / "kustomize" / "base"
        # A link to where GitHub looks for them, so that a broken variant has a copy.
        self.workflows_path = root / "workflows"
        # Not copied with a broken variant: what stands outside of deploy/ is not broken by one.
        self.repository = workspace_path.parent

    @cached_property
    def chart(self) -> helm_python.Chart:
        return helm_python.Chart.load(self.chart_path)

    @cached_property
    def refused(self) -> list[dict[str, Any]]:
        return yaml.safe_load((self.tests_path / REFUSED).read_text())

    @cached_property
    def cases(self) -> list[Case]:
        return [self._render(path) for path in sorted(self.tests_path.glob("*.yaml")) if path.name != REFUSED]

    def case(self, name: str) -> Case:
        return next(case for case in self.cases if case.name == name)

    def _render(self, path: Path) -> Case:
        # Helm's own reader, so that a value is here what it is to a user.
        values = helm_python.values_from_yaml(path.read_text())
        rendered = self.chart.render(values, name=RELEASE, namespace=NAMESPACE)
        texts = {name: text.strip() + "\n" for name, text in sorted(rendered.items()) if text.strip()}
        notes = texts.pop("coracle/templates/NOTES.txt", "")
        return Case(path.stem, values, texts, notes)


def pod_specs(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod spec in a case, of whatever kind the object around it is."""

    def walk(where: str, node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        if isinstance(node, dict):
            if "containers" in node:
                yield where, node
            for value in node.values():
                yield from walk(where, value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(where, value)

    for manifest in case.manifests:
        yield from walk(case.where(manifest), manifest)
