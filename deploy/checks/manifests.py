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
# The kinds whose schemas Kubernetes does not have, and the one set of values that renders each.
CUSTOM = {"PodMonitor": "full", "PrometheusRule": "full", "ServiceMonitor": "operated", "ScaledObject": "operated"}
PROBES = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
# What the server needs between the end of the drain and the kill: cancelling what is left, writing out its logs.
DRAIN_HEADROOM_SECONDS = 5


def kubernetes(tree: Tree) -> Iterator[Problem]:
    oldest = yaml.safe_load((tree.chart_path / "Chart.yaml").read_text())["kubeVersion"]
    if not oldest.startswith(f">={KUBERNETES_VERSIONS[0]}."):
        yield Problem("Chart.yaml", f"kubeVersion {oldest} starts elsewhere than {KUBERNETES_VERSIONS[0]}, the oldest checked")
    for case in tree.cases:
        for manifest in case.manifests:
            if manifest["kind"] in CUSTOM:
                continue  # see custom_resources
            for version in KUBERNETES_VERSIONS:
                try:
                    # Strict: a field that the API does not know is an error, not ignored.
                    kubernetes_validate.validate(manifest, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    path = ".".join(map(str, error.absolute_path))
                    yield Problem(f"{case.where(manifest)} (Kubernetes {version})", f"{path}: {error.message}")
                except kubernetes_validate.SchemaNotFoundError as error:
                    yield Problem(f"{case.where(manifest)} (Kubernetes {version})", error.message)


def custom_resources(tree: Tree) -> Iterator[Problem]:
    for kind, only in CUSTOM.items():
        schema = json.loads((tree.root / "schemas" / f"{kind.lower()}.json").read_text())
        validator = jsonschema.Draft202012Validator(schema)
        found = [(case, manifest) for case in tree.cases for manifest in case.of_kind(kind)]
        if {case.name for case, _ in found} != {only}:
            yield Problem(kind, f"must be rendered by the set `{only}` and no other: the CRD may be absent")
        for case, manifest in found:
            for error in validator.iter_errors(manifest):
                yield Problem(case.where(manifest), f"{error.json_path}: {error.message}")


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
            case "ServiceMonitor":
                # Of Services, and of exactly one: else every pod is scraped once for each.
                services = [
                    service
                    for service in case.of_kind("Service")
                    if spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
                ]
                yield where, services[0]["spec"]["selector"] if len(services) == 1 else {}
            case "PodDisruptionBudget" | "PodMonitor":
                yield where, spec["selector"]["matchLabels"]
            case "NetworkPolicy":
                yield where, spec["podSelector"]["matchLabels"]


def scaled(tree: Tree) -> Iterator[Problem]:
    """A scaler scales the Deployment, by a metric that is exported, and then the Deployment names no number itself."""
    scalers = 0
    for case in tree.cases:
        (deployment,) = case.of_kind("Deployment")
        found = case.of_kind("HorizontalPodAutoscaler") + case.of_kind("ScaledObject")
        scalers += len(found)
        if len(found) > 1 or bool(found) == ("replicas" in deployment["spec"]):
            yield Problem(case.where(deployment), f"has replicas and a scaler, or neither, or two: {len(found)}")
        for scaler in found:
            if scaler["spec"]["scaleTargetRef"]["name"] != deployment["metadata"]["name"]:
                yield Problem(case.where(scaler), "scales something else")
            if "coracle_isolates_running" not in json.dumps(scaler["spec"]):
                yield Problem(case.where(scaler), "does not scale by coracle_isolates_running")
    if "`coracle_isolates_running` | gauge" not in (tree.repository / "docs" / "metrics.md").read_text():
        yield Problem("docs/metrics.md", "has no gauge coracle_isolates_running, which scalers use")
    if scalers != 2:
        yield Problem("scalers", f"two sets of values must have one, {scalers} have")


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
    for monitor in case.of_kind("ServiceMonitor"):
        for endpoint in monitor["spec"]["endpoints"]:
            yield case.where(monitor), endpoint["port"]


def settings_wired(
    where: str, container: dict[str, Any], spec: dict[str, Any], ports: dict[str, int]
) -> Iterator[Problem]:
    """The server's settings agree with the pod around it."""
    settings = {entry["name"]: entry["value"] for entry in container["env"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}

    if ("CORACLE_LISTEN_WEB" in settings) != ("web" in ports):
        yield Problem(where, f"the web port is in one of settings and ports only: {ports}")
    for name, port in (("CORACLE_LISTEN", "rpc"), ("CORACLE_ADMIN", "admin"), ("CORACLE_LISTEN_WEB", "web")):
        if name in settings and not settings[name].endswith(f":{ports.get(port)}"):
            yield Problem(where, f"{name} is {settings[name]}, the container's ports {ports}")
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
    if rendered != {"default", "full", "locked", "operated"}:
        yield Problem("NetworkPolicy", f"must be rendered by all sets but `minimal`, is by {sorted(rendered)}")
