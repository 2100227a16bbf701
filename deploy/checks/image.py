"""The Dockerfile: hadolint, and the properties that the chart and the docs rely on. The image itself is not built."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .host import settings_of
from .pods import USER
from .tree import Problem, Tree

BASE = "gcr.io/distroless/cc-debian12:nonroot"
# The Debian release of BASE, in the builder's tag: a newer glibc there would give a binary that BASE can't start.
BUILDER_SUFFIX = "-bookworm"
ENTRYPOINT = ["/usr/local/bin/coracle"]
COMMAND = ["serve", "--listen", "0.0.0.0:7070", "--admin", "0.0.0.0:9090"]
LABELS = {"title", "description", "source", "documentation", "licenses", "version", "revision", "created", "base.name"}
IGNORED = {"target", "**/target", "dist", "**/.env"}
# Without a shell in the image, these could not do anything.
NEEDS_SHELL = {"RUN", "SHELL"}


@dataclass
class Stage:
    """One FROM and the instructions below it, continuation lines joined."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [arguments for instruction, arguments in self.instructions if instruction == name]


def stages(text: str) -> list[Stage]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    parsed: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, arguments = line.strip().partition(" ")
        if name.upper() == "FROM":
            parsed.append(Stage(arguments.split()[0]))
        elif name and parsed:
            parsed[-1].instructions.append((name.upper(), arguments.strip()))
    return parsed


def hadolint(tree: Tree) -> Iterator[Problem]:
    tool = Path(sys.prefix) / "bin" / "hadolint"
    command = [str(tool), "--no-color", "--failure-threshold", "style", str(tree.dockerfile_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        yield Problem("hadolint", (result.stdout + result.stderr).strip())


def dockerfile(tree: Tree) -> Iterator[Problem]:
    build, *between, final = stages(tree.dockerfile_path.read_text())
    where = "Dockerfile, final stage"
    if between:
        yield Problem("Dockerfile", f"has {len(between)} stages between build and final")
    if not build.base.endswith(BUILDER_SUFFIX):
        yield Problem("Dockerfile, build stage", f"{build.base} is of another Debian release than {BASE}")
    if not any(command.endswith("make build") for command in build.all("RUN")):
        yield Problem("Dockerfile, build stage", "does not run `make build`")

    if final.base != BASE:
        yield Problem(where, f"is based on {final.base}, not {BASE}")
    for name in NEEDS_SHELL:
        for arguments in final.all(name):
            yield Problem(where, f"has no shell, yet: {name} {arguments}")
    if final.all("USER") != [f"{USER}:{USER}"]:
        yield Problem(where, f"runs as {final.all('USER')}, the chart's pods as {USER}")
    for name, wanted in (("ENTRYPOINT", ENTRYPOINT), ("CMD", COMMAND)):
        found = [exec_form(arguments) for arguments in final.all(name)]
        if found != [wanted]:
            yield Problem(where, f"{name} is {final.all(name)}, must be {wanted} in exec form")
    copied = [arguments.split()[-1] for arguments in final.all("COPY")]
    if copied != ENTRYPOINT:
        yield Problem(where, f"copies {copied}, must be the binary alone")
    labels = set(re.findall(r"org\.opencontainers\.image\.([a-z.]+)=", " ".join(final.all("LABEL"))))
    if labels != LABELS:
        yield Problem(where, f"OCI labels missing or unknown: {sorted(labels ^ LABELS)}")

    exposed = {int(port) for arguments in final.all("EXPOSE") for port in arguments.split()}
    (container,) = tree.case("default").of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"]
    if exposed != {port["containerPort"] for port in container["ports"]}:
        yield Problem(where, f"exposes {sorted(exposed)}, the chart uses {container['ports']}")

    ignored = set(tree.dockerfile_path.with_name("Dockerfile.dockerignore").read_text().splitlines())
    if not IGNORED <= ignored:
        yield Problem("Dockerfile.dockerignore", f"does not leave out {sorted(IGNORED - ignored)}")


def exec_form(arguments: str) -> list[str] | None:
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return None


def settings_known(tree: Tree, binary: Path) -> Iterator[Problem]:
    """Every setting that the chart gives is one that `coracle serve --help` names."""
    result = subprocess.run([str(binary), "serve", "--help"], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        yield Problem(str(binary), f"`serve --help` failed: {result.stderr.strip()}")
        return
    known = set(re.findall(r"CORACLE_[A-Z0-9_]+", result.stdout))
    case = tree.case("full")
    (container,) = case.of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"]
    for entry in container["env"]:
        if entry not in case.values["extraEnv"] and entry["name"] not in known:
            yield Problem(str(binary), f"does not know {entry['name']}, which the chart sets")
    for name in settings_of(tree) - known:
        yield Problem(str(binary), f"does not know {name}, which the unit or the compose file sets")
