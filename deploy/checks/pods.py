"""The restricted Pod Security Standard, and what we ask beyond it, on every pod spec that the chart renders."""

from collections.abc import Iterator
from typing import Any

from .tree import Problem, Tree, pod_specs

# The image's numeric user; checks/image.py compares it with the Dockerfile.
USER = 65532
# A subset of what the standard allows: the chart needs no other.
VOLUME_TYPES = {"secret", "configMap", "emptyDir"}


def restricted(tree: Tree) -> Iterator[Problem]:
    for case in tree.cases:
        found = list(pod_specs(case))
        if not found:
            yield Problem(case.name, "renders no pod at all")
        for where, spec in found:
            yield from pod_problems(where, spec)


def pod_problems(where: str, spec: dict[str, Any]) -> Iterator[Problem]:
    context = spec.get("securityContext", {})
    expected = {
        "automountServiceAccountToken": (spec.get("automountServiceAccountToken"), False),
        "hostNetwork": (spec.get("hostNetwork", False), False),
        "hostPID": (spec.get("hostPID", False), False),
        "hostIPC": (spec.get("hostIPC", False), False),
        "securityContext.runAsNonRoot": (context.get("runAsNonRoot"), True),
        "securityContext.runAsUser": (context.get("runAsUser"), USER),
        "securityContext.runAsGroup": (context.get("runAsGroup"), USER),
        "securityContext.seccompProfile.type": (context.get("seccompProfile", {}).get("type"), "RuntimeDefault"),
        "securityContext.sysctls": (context.get("sysctls", []), []),
    }
    yield from differences(where, expected)

    for volume in spec.get("volumes", []):
        (kind,) = volume.keys() - {"name"}
        if kind not in VOLUME_TYPES:
            yield Problem(where, f"volume {volume['name']} is a {kind}")
        if kind == "secret":
            mode = volume["secret"].get("defaultMode")
            if mode != 0o400:
                yield Problem(where, f"secret volume {volume['name']} has mode {mode}, not 0400")
            # Without it the files are root's alone, and 0400 would keep the server out.
            if context.get("fsGroup") != USER:
                group = context.get("fsGroup")
                yield Problem(where, f"secret volume {volume['name']} is unreadable: fsGroup is {group}")
        if kind == "emptyDir" and "sizeLimit" not in volume["emptyDir"]:
            yield Problem(where, f"volume {volume['name']} has no sizeLimit")

    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            yield from container_problems(f"{where} container {container['name']}", container)


def container_problems(where: str, container: dict[str, Any]) -> Iterator[Problem]:
    context = container.get("securityContext", {})
    capabilities = context.get("capabilities", {})
    expected = {
        "allowPrivilegeEscalation": (context.get("allowPrivilegeEscalation"), False),
        "privileged": (context.get("privileged", False), False),
        "readOnlyRootFilesystem": (context.get("readOnlyRootFilesystem"), True),
        "runAsNonRoot": (context.get("runAsNonRoot", True), True),
        "runAsUser": (context.get("runAsUser", USER), USER),
        "capabilities.drop": (capabilities.get("drop"), ["ALL"]),
        "capabilities.add": (capabilities.get("add", []), []),
        "seccompProfile.type": (context.get("seccompProfile", {}).get("type", "RuntimeDefault"), "RuntimeDefault"),
        "procMount": (context.get("procMount", "Default"), "Default"),
    }
    yield from differences(where, expected)

    if "memory" not in container.get("resources", {}).get("limits", {}):
        yield Problem(where, "has no memory limit to size its pool by")
    for port in container.get("ports", []):
        if "hostPort" in port:
            yield Problem(where, f"takes the node's port {port['hostPort']}")
    writable = [mount["name"] for mount in container.get("volumeMounts", []) if not mount.get("readOnly")]
    if writable != ["cache"]:
        yield Problem(where, f"may write to {writable}, not only to the cache")


def differences(where: str, expected: dict[str, tuple[Any, Any]]) -> Iterator[Problem]:
    for name, (found, wanted) in expected.items():
        if found != wanted:
            yield Problem(where, f"{name} is {found!r}, must be {wanted!r}")
