"""The Kustomize base: what the chart renders with its defaults, without Helm's labels, and that kustomize builds it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .tree import Problem, Tree

NAME = "coracle"
OF_HELM = re.compile(r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n", re.MULTILINE)


def base_texts(tree: Tree) -> dict[str, str]:
    """The files of the base by name."""
    rendered = tree.chart.render({}, name=NAME, namespace=NAME)
    texts = {
        Path(name).name: OF_HELM.sub("", text).strip() + "\n"
        for name, text in sorted(rendered.items())
        if name.endswith(".yaml") and text.strip()
    }
    resources = "".join(f"  - {name}\n" for name in texts)
    head = "# Rendered from the chart by `deploy/validate --update`; change it in an overlay.\n"
    kustomization = f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}"
    return {**{name: head + text for name, text in texts.items()}, "kustomization.yaml": head + kustomization}


def base_rendered(tree: Tree) -> Iterator[Problem]:
    wanted = base_texts(tree)
    found = {path.name: path.read_text() for path in tree.base_path.iterdir()}
    for name in sorted(wanted.keys() | found.keys()):
        if found.get(name) != wanted.get(name):
            yield Problem(f"kustomize/base/{name}", "is not what the chart renders: run deploy/validate --update")


def base_update(tree: Tree) -> list[Path]:
    tree.base_path.mkdir(parents=True, exist_ok=True)
    for path in tree.base_path.iterdir():
        path.unlink()
    written = [tree.base_path / name for name in base_texts(tree)]
    for path, text in zip(written, base_texts(tree).values(), strict=True):
        path.write_text(text)
    return written


def base_builds(tree: Tree) -> Iterator[Problem]:
    kubectl = Path(sys.prefix) / "bin" / "kubectl"
    result = subprocess.run([kubectl, "kustomize", tree.base_path], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        yield Problem("kubectl kustomize", result.stderr.strip())
        return
    built = objects(result.stdout)
    written = objects("---\n".join(path.read_text() for path in tree.base_path.glob("[!k]*.yaml")))
    if built != written:
        yield Problem("kubectl kustomize", f"builds {sorted(built)}, the base has {sorted(written)}")


def objects(text: str) -> dict[str, Any]:
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in yaml.safe_load_all(text) if one}
