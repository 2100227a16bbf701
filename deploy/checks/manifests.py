"""The rendered objects one by one against the API's schemas, and together: names, selectors, ports, times."""

import json
import math
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from .tree import Case, Problem, Tree

# The oldest that Chart.yaml allows and the newest that the validator knows.
KUBERNETES_VERSIONS = ("1.27", "1.37")
PROBES = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
# What the server needs between the end of the drain and the kill: cancelling what is left, writing out its logs.
DRAIN_HEADROOM_SECONDS = 5


def kubernetes(tree: Tree) -> Iterator[Problem]:
    oldest = yaml.safe_load((tree.chart_path / "Chart.yaml").read_text())["kubeVersion"]
    if not oldest.startswith(f">={KUBERNETES_VERSIONS[0]}."):
        yield Problem("Chart.yaml", f"kubeVersion {oldest} starts elsewhere than {KUBERNETES_VERSIONS[0]}, the oldest checked")
    for case in tree.cases:
        for manifest in case.manifests:
            if manifest["kind"] == "PodMonitor":
                continue  # a custom resource: see pod_monitor
            for version in KUBERNETES_VERSIONS:
                try:
                    # Strict: a field that the API does not know is an error, not ignored.
                    kubernetes_validate.validate(manifest, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    path = ".".join(map(str, error.absolute_path))
                    yield Problem(f"{case.where(manifest)} (Kubernetes {version})", f"{path}: {error.message}")
                except kubernetes_validate.SchemaNotFoundError as error:
                    yield Problem(f"{case.where(manifest)} (Kubernetes {version})", error.message)


def pod_monitor(tree: Tree) -> Iterator[Problem]:
    schema = json.loads((tree.root / "schemas" / "podmonitor.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    monitors = [(case, monitor) for case in tree.cases for monitor in case.of_kind("PodMonitor")]
    if {case.name for case, _ in monitors} != {"full"}:
        yield Problem("PodMonitor", "must be rendered by the set `full` and no other: the CRD may be absent")
    for case, monitor in monitors:
        for error in validator.iter_errors(monitor):
            yield Problem(case.where(monitor), f"{error.json_path}: {error.message}")


def wiring(tree: Tree) -> Iterator[Problem]:
    """What names something names something that is there."""
    for case in tree.cases:
        (deployment,) = case.of_kind("Deployment")
        template = deployment["spec"]["template"]
        labels, spec = template["metadata"]["labels"], template["spec"]
        (container,) = spec["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}

        for where, selector in selectors(case):
            if not selector or not selector.items() <= labels.items():
                yield Problem(where, f"selects {selector}, the pods have {labels}")
        paths = {probe: container[probe]["httpGet"]["path"] for probe in PROBES}
        if paths != PROBES:
            yield Problem(case.where(deployment), f"probes {paths}, must probe {PROBES}")
        for where, port in port_references(case, container):
            if port not in ports:
                yield Problem(where, f"names the port {port!r}, the container has {ports}")
        accounts = [account["metadata"]["name"] for account in case.of_kind("ServiceAccount")]
        if accounts != [spec["serviceAccountName"]]:
            yield Problem(case.where(deployment), f"runs as {spec['serviceAccountName']}, the chart makes {accounts}")
        yield from settings_wired(case.where(deployment), container, spec, ports)


def selectors(case: Case) -> Iterator[tuple[str, dict[str, str]]]:
    for manifest in case.manifests:
        spec, where = manifest.get("spec", {}), case.where(manifest)
        match manifest["kind"]:
            case "Service":
                yield where, spec["selector"]
            case "Deployment":
                yield where, spec["selector"]["matchLabels"]
                for constraint in spec["template"]["spec"].get("topologySpreadConstraints", []):
                    yield f"{where} topology spread", constraint["labelSelector"]["matchLabels"]
            case "PodDisruptionBudget" | "PodMonitor":
                yield where, spec["selector"]["matchLabels"]
            case "NetworkPolicy":
                yield where, spec["podSelector"]["matchLabels"]


def port_references(case: Case, container: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for probe in PROBES:
        yield f"{case.name}: {probe}", container[probe]["httpGet"]["port"]
    for service in case.of_kind("Service"):
        for port in service["spec"]["ports"]:
            yield case.where(service), port["targetPort"]
    for policy in case.of_kind("NetworkPolicy"):
        for rule in policy["spec"]["ingress"]:
            for port in rule["ports"]:
                yield case.where(policy), port["port"]
    for monitor in case.of_kind("PodMonitor"):
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            yield case.where(monitor), endpoint["port"]


def settings_wired(
    where: str, container: dict[str, Any], spec: dict[str, Any], ports: dict[str, int]
) -> Iterator[Problem]:
    """The server's settings agree with the pod around it."""
    settings = {entry["name"]: entry["value"] for entry in container["env"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}

    for name, port in (("CORACLE_LISTEN", ports["rpc"]), ("CORACLE_ADMIN", ports["admin"])):
        if not settings[name].endswith(f":{port}"):
            yield Problem(where, f"{name} is {settings[name]}, the container's port {port}")
    (item,) = volumes["auth"]["secret"]["items"]
    if settings["CORACLE_TOKEN_FILE"] != f"{mounts['auth']}/{item['path']}":
        yield Problem(where, f"no token file at {settings['CORACLE_TOKEN_FILE']}")
    if settings["CORACLE_CACHE_DIR"] != mounts["cache"] or volumes["cache"]["emptyDir"].get("medium") != "Memory":
        yield Problem(where, f"no memory-backed cache at {settings['CORACLE_CACHE_DIR']}")
    if spec.get("enableServiceLinks", True):
        yield Problem(where, "enableServiceLinks lets a Service named coracle set CORACLE_PORT")

    drain_seconds = (int(settings["CORACLE_DRAIN_DELAY_MS"]) + int(settings["CORACLE_DRAIN_GRACE_MS"])) / 1000
    seconds_min = math.floor(drain_seconds + DRAIN_HEADROOM_SECONDS) + 1
    if spec["terminationGracePeriodSeconds"] < seconds_min:
        yield Problem(
            where, f"is killed after {spec['terminationGracePeriodSeconds']} s, the drain needs {seconds_min} s"
        )


def network(tree: Tree) -> Iterator[Problem]:
    """Deny by default: both directions named, no rule without peers, nothing out but DNS unless the values say so."""
    for case in tree.cases:
        for policy in case.of_kind("NetworkPolicy"):
            spec, where = policy["spec"], case.where(policy)
            if set(spec["policyTypes"]) != {"Ingress", "Egress"}:
                yield Problem(where, f"covers only {spec['policyTypes']}")
            for direction, peers in (("ingress", "from"), ("egress", "to")):
                for rule in spec[direction]:
                    if not rule.get(peers) or not all(rule[peers]):
                        yield Problem(where, f"an {direction} rule without peers is a rule for everybody: {rule}")
                    if not rule.get("ports"):
                        yield Problem(where, f"an {direction} rule without ports is a rule for all: {rule}")
            if case.name == "default" and {p["port"] for rule in spec["egress"] for p in rule["ports"]} != {53}:
                yield Problem(where, f"lets out more than DNS: {spec['egress']}")
            if case.name == "locked" and (spec["ingress"] or spec["egress"]):
                yield Problem(where, "has rules, though every list in the values is empty")
    rendered = {case.name for case in tree.cases if case.of_kind("NetworkPolicy")}
    if rendered != {"default", "full", "locked"}:
        yield Problem("NetworkPolicy", f"must be rendered by all sets but `minimal`, is by {sorted(rendered)}")
