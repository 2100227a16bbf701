"""What runs the server without a cluster: the systemd unit and the compose file, which restrict it as the chart's pods are."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from .pods import USER
from .tree import Problem, Tree

# Of 100; systemd calls a service up to 20 "OK".
EXPOSURE_MAX = 20
# What the unit must say, by directive, whatever systemd there is to ask.
UNIT = {
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "AmbientCapabilities": "",
    "DynamicUser": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateDevices": "yes",
    "PrivateUsers": "yes",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "KillMode": "mixed",
    "TimeoutStopSec": "45s",
    "MemoryMax": "2G",
}


def unit(tree: Tree) -> Iterator[Problem]:
    text = (tree.root / "systemd" / "coracle.service").read_text()
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            said.setdefault(name, []).append(value)
    for name, wanted in UNIT.items():
        if said.get(name) != [wanted]:
            yield Problem("coracle.service", f"{name} is {said.get(name)}, must be {wanted!r}")
    if shutil.which("systemd-analyze"):
        yield from analyzed(text)


def analyzed(text: str) -> Iterator[Problem]:
    """What systemd itself says. The program is replaced by one that is there: `verify` looks for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coracle.service"
        path.write_text(text.replace("/usr/local/bin/coracle", "/bin/true"))
        for arguments in (["verify"], ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager"]):
            command = ["systemd-analyze", *arguments, str(path)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if result.returncode != 0 or "coracle.service:" in result.stderr:
                said = result.stderr.strip() or result.stdout.strip().splitlines()[-1]
                yield Problem(f"systemd-analyze {arguments[0]}", said)


def vendored(name: str) -> dict[str, Any]:
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    return json.loads((schemas / f"{name}.json").read_text())


def compose(tree: Tree) -> Iterator[Problem]:
    document = yaml.safe_load((tree.root / "compose" / "compose.yaml").read_text())
    schema = vendored("compose-spec")
    for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(document):
        yield Problem("compose.yaml", f"{error.json_path}: {error.message}")
    service = document["services"]["coracle"]
    wanted = {
        "user": f"{USER}:{USER}",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "mem_limit": "2g",
        "stop_grace_period": "45s",
    }
    for name, value in wanted.items():
        if service.get(name) != value:
            yield Problem("compose.yaml", f"{name} is {service.get(name)!r}, must be {value!r}")
    for name in ("privileged", "cap_add", "network_mode", "pid", "ipc", "devices", "volumes"):
        if name in service:
            yield Problem("compose.yaml", f"gives {name}: {service[name]!r}")
    for port in service["ports"]:
        if not str(port).startswith("127.0.0.1:"):
            yield Problem("compose.yaml", f"publishes {port} beyond this machine, without TLS")


def settings_of(tree: Tree) -> set[str]:
    """The settings that the unit and the compose file give the server."""
    unit_text = (tree.root / "systemd" / "coracle.service").read_text()
    given = {line.split("=")[1] for line in unit_text.splitlines() if line.startswith("Environment=")}
    document = yaml.safe_load((tree.root / "compose" / "compose.yaml").read_text())
    return given | document["services"]["coracle"]["environment"].keys()


def workflows(tree: Tree) -> Iterator[Problem]:
    """GitHub's schema, and zizmor's rules for what a stranger could make of a workflow."""
    folder = tree.workflows_path
    found = sorted(folder.glob("*.yaml"))
    if not found:
        yield Problem("workflows", f"there are none in {folder}")
    schema = vendored("github-workflows")
    for path in found:
        # YAML 1.1 reads the key `on` as true.
        document = {"on" if key is True else key: value for key, value in yaml.safe_load(path.read_text()).items()}
        for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(document):
            yield Problem(path.name, f"{error.json_path}: {error.message}")
    tool = Path(sys.prefix) / "bin" / "zizmor"
    command = [tool, "--offline", "--no-progress", "--color=never", "--persona=pedantic", *found]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        yield Problem("zizmor", (result.stdout or result.stderr).strip())
