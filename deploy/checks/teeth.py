"""Broken variants that must fail: each is one edit of deploy/, and the one check that has to object to it.

A check that passes on all of them would pass on anything. The edits are made in a copy.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import helm_python

from .tree import Problem, Tree

Check = Callable[[Tree], Iterator[Problem]]

CHART = "helm/coracle/"
DEPLOYMENT = CHART + "templates/deployment.yaml"
POLICY = CHART + "templates/networkpolicy.yaml"
SCHEMA = CHART + "values.schema.json"
DOCKERFILE = "docker/Dockerfile"
UNIT = "systemd/coracle.service"
COMPOSE = "compose/compose.yaml"
RELEASE = "workflows/release.yaml"
ALERTS = CHART + "monitoring/alerts.yaml"


@dataclass(frozen=True)
class Break:
    """In `file`, the first `old` becomes `new`; then `check` must object."""

    check: str
    file: str
    old: str
    new: str


BREAKS = [
    Break("lint", CHART + "Chart.yaml", "version: 0.1.0", "version: one"),
    Break("lint", CHART + "Chart.yaml", "apiVersion: v2\n", ""),
    Break("values accepted", SCHEMA, '"userNamespace": {"type": "boolean"},', ""),
    Break("values refused", SCHEMA, '"additionalProperties": false,', '"additionalProperties": true,'),
    Break("values refused", SCHEMA, '"required": ["memory"],', ""),
    Break("values refused", SCHEMA, '"CORACLE_ADMIN", "CORACLE_TOKEN_FILE",', ""),
    Break("values refused", SCHEMA, ', {"minItems": 1}', ""),
    Break("values refused", SCHEMA, '"existingConfigMap": {"minLength": 1}, ', '"existingConfigMap": {"minLength": 999}, '),
    Break("values refused", SCHEMA, ', "CORACLE_OUTBOUND_FILE"', ""),
    Break("values refused", SCHEMA, ', "CORACLE_ISOLATION"', ""),
    Break("golden", CHART + "templates/_helpers.tpl", "path: outbound.json", "path: policies.json"),
    Break("restricted", DEPLOYMENT, "mountPath: /etc/coracle/outbound\n              readOnly: true",
          "mountPath: /etc/coracle/outbound"),
    Break("restricted", DEPLOYMENT, 'secretName: {{ . | quote }}\n            defaultMode: 0400',
          'secretName: {{ . | quote }}\n            defaultMode: 0444'),
    Break("schema strict", SCHEMA, '"type": "object",\n        "additionalProperties": false', '"type": "object"'),
    Break("values documented", CHART + "values.yaml", "userNamespace: false", ""),
    Break("version", CHART + "Chart.yaml", "appVersion: ", "appVersion: 9"),
    Break("golden", DEPLOYMENT, "revisionHistoryLimit: 3", "revisionHistoryLimit: 4"),
    Break("golden", CHART + "templates/NOTES.txt", "network policy is on", "network policy is off"),
    Break("golden", "helm/golden/minimal.yaml", "replicas: 1", "replicas: 2"),
    Break("kubernetes", DEPLOYMENT, "replicas: {{ .Values.replicas }}", "replicas: many"),
    Break("kubernetes", DEPLOYMENT, "periodSeconds: 1", "periodSecond: 1"),
    Break("kubernetes", CHART + "templates/poddisruptionbudget.yaml", "policy/v1", "policy/v1beta1"),
    Break("kubernetes", CHART + "Chart.yaml", ">=1.27.0-0", ">=1.20.0-0"),
    Break("custom resources", CHART + "templates/podmonitor.yaml", "podMetricsEndpoints:", "endpoints:"),
    Break("custom resources", CHART + "values.yaml", "enabled: false\n  interval", "enabled: true\n  interval"),
    Break("custom resources", CHART + "templates/podmonitor.yaml", "scrapeTimeout:", "timeout:"),
    Break("wiring", CHART + "templates/service.yaml", "targetPort: rpc", "targetPort: grpc"),
    Break("wiring", CHART + "templates/podmonitor.yaml", "port: admin", "port: metrics"),
    Break("wiring", POLICY, "- port: rpc", "- port: capnp"),
    Break("wiring", CHART + "templates/_helpers.tpl", "1000) 10", "1000) 5"),
    Break("wiring", CHART + "templates/_helpers.tpl", "(add $drainMs 999)", "(sub $drainMs 5999)"),
    Break("wiring", DEPLOYMENT, "enableServiceLinks: false", "enableServiceLinks: true"),
    Break("wiring", DEPLOYMENT, "path: tokens", "path: token"),
    Break("wiring", DEPLOYMENT, "path: /readyz", "path: /livez"),
    Break("wiring", DEPLOYMENT, "medium: Memory", 'medium: ""'),
    Break("wiring", DEPLOYMENT, 'value: {{ printf "%s:9090"', 'value: {{ printf "%s:9091"'),
    Break("network", POLICY, "policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]"),
    Break("network", POLICY, "egress: []", "egress: [{}]"),
    Break("network", POLICY, "{{- with .rpcFrom }}\n    - from:\n        {{- toYaml . | nindent 8 }}",
          "{{- with .rpcFrom }}\n    - from: []"),
    Break("network", CHART + "values.yaml", "extraEgress: []",
          "extraEgress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}], ports: [{port: 443}]}]"),
    Break("custom resources", CHART + "templates/servicemonitor.yaml", "endpoints:", "podMetricsEndpoints:"),
    Break("custom resources", CHART + "templates/prometheusrule.yaml", "spec:", "spec:\n  rules: []"),
    Break("custom resources", CHART + "templates/scaledobject.yaml", "type: prometheus", "type: prometeus"),
    Break("wiring", CHART + "templates/servicemonitor.yaml", "coracle-service: metrics\n  endpoints", "coracle-service: metric\n  endpoints"),
    Break("wiring", DEPLOYMENT, '"%s:7071"', '"%s:7070"'),
    Break("wiring", CHART + "templates/service.yaml", "targetPort: web", "targetPort: http"),
    Break("scaled", DEPLOYMENT, '{{- if eq .Values.autoscaling.by "none" }}', '{{- if true }}'),
    Break("scaled", CHART + "templates/horizontalpodautoscaler.yaml", "coracle_isolates_running", "coracle_isolates_busy"),
    Break("scaled", CHART + "templates/scaledobject.yaml", "{{ include \"coracle.fullname\" . }}\n  minReplica", "x\n  minReplica"),
    Break("values refused", SCHEMA, '"CORACLE_LISTEN_WEB", ', ""),
    Break("values refused", SCHEMA, '"serviceMonitor": {"properties": {"enabled": {"const": true}}}',
          '"serviceMonitor": {"properties": {"enabled": {"const": 2}}}'),
    Break("alerts fire", ALERTS, "> 0.85\n        for: 10m", "> 0.95\n        for: 10m"),
    Break("alerts fire", ALERTS, 'outcome="trap"}[15m]) > 0', 'outcome="trap"}[15m]) > 0)'),
    Break("alerts fire", ALERTS, "coracle_draining[2m]", "coracle_threads_lost[2m]"),
    Break("alerts fire", "monitoring/alerts.test.yaml", "alertname: CoracleDown", "alertname: CoracleUp"),
    Break("dashboard parses", CHART + "monitoring/dashboard.json", "sum by (outcome) (rate(", "sum by (outcome) (rate(("),
    Break("metrics known", CHART + "monitoring/dashboard.json", "coracle_isolates_max", "coracle_isolates_most"),
    Break("metrics known", ALERTS, 'outcome="trap"', 'outcome="traps"'),
    Break("metrics known", ALERTS, 'result="denied"', 'outcome="denied"'),
    Break("runbook", ALERTS, "operate.md#coraclepanic", "operate.md#coraclepanics"),
    Break("runbook", ALERTS, "alert: CoraclePanic", "alert: CoraclePanics"),
    Break("rule shipped", CHART + "templates/prometheusrule.yaml", "monitoring/alerts.yaml", "Chart.yaml"),
    Break("base rendered", "kustomize/base/deployment.yaml", "replicas: 2", "replicas: 3"),
    Break("base rendered", CHART + "values.yaml", "replicas: 2", "replicas: 3"),
    Break("unit", UNIT, "NoNewPrivileges=yes", "NoNewPrivileges=no"),
    Break("unit", UNIT, "CapabilityBoundingSet=\n", "CapabilityBoundingSet=CAP_SYS_ADMIN\n"),
    Break("unit", UNIT, "TimeoutStopSec=45s", "TimeoutStopSec=30s"),
    Break("compose", COMPOSE, "read_only: true", "read_only: false"),
    Break("compose", COMPOSE, "cap_drop: [ALL]", "cap_drops: [ALL]"),
    Break("compose", COMPOSE, "- 127.0.0.1:9090:9090", "- 9090:9090"),
    Break("workflows", RELEASE, "runs-on:", "run-on:"),
    Break("workflows", RELEASE, "@11bd71901bbe5b1630ceea73d27597364c9af683", "@v4"),
    Break("workflows", RELEASE, "permissions: {}", "permissions: write-all"),
    Break("base builds", "kustomize/base/kustomization.yaml", "  - networkpolicy.yaml\n", ""),
    Break("base builds", "kustomize/base/kustomization.yaml", "  - deployment.yaml", "  - deployments.yaml"),
    Break("restricted", DEPLOYMENT, "runAsNonRoot: true", "runAsNonRoot: false"),
    Break("restricted", DEPLOYMENT, "runAsUser: 65532", "runAsUser: 0"),
    Break("restricted", DEPLOYMENT, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"),
    Break("restricted", DEPLOYMENT, "privileged: false", "privileged: true"),
    Break("restricted", DEPLOYMENT, "drop: [ALL]", "drop: [NET_RAW]"),
    Break("restricted", DEPLOYMENT, "drop: [ALL]", "drop: [ALL]\n              add: [SYS_ADMIN]"),
    Break("restricted", DEPLOYMENT, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
    Break("restricted", DEPLOYMENT, "type: RuntimeDefault", "type: Unconfined"),
    Break("restricted", DEPLOYMENT, "automountServiceAccountToken: false\n", ""),
    Break("restricted", DEPLOYMENT, "automountServiceAccountToken: false", "hostNetwork: true"),
    Break("restricted", DEPLOYMENT, "defaultMode: 0400", "defaultMode: 0444"),
    Break("restricted", DEPLOYMENT, "fsGroup: 65532", "supplementalGroups: []"),
    Break("restricted", DEPLOYMENT, "emptyDir:\n            medium: Memory\n            sizeLimit",
          "hostPath:\n            path"),
    Break("restricted", DEPLOYMENT, "mountPath: /etc/coracle/auth\n              readOnly: true",
          "mountPath: /etc/coracle/auth"),
    Break("hadolint", DOCKERFILE, "# hadolint ignore=DL3008\n", ""),
    Break("hadolint", DOCKERFILE, "rust:1.95-bookworm", "rust:latest"),
    Break("hadolint", DOCKERFILE, 'CMD ["serve"', "CMD serve"),
    Break("Dockerfile", DOCKERFILE, "USER 65532:65532", "USER nonroot"),
    Break("Dockerfile", DOCKERFILE, "USER 65532:65532\n", "USER 65532:65532\nRUN ldconfig\n"),
    Break("Dockerfile", DOCKERFILE, "FROM gcr.io/distroless/cc-debian12:nonroot", "FROM debian:bookworm-slim"),
    Break("Dockerfile", DOCKERFILE, "FROM rust:1.95-bookworm", "FROM rust:1.95-trixie"),
    Break("Dockerfile", DOCKERFILE, "EXPOSE 7070 9090", "EXPOSE 7070"),
    Break("Dockerfile", DOCKERFILE, 'ENTRYPOINT ["/usr/local/bin/coracle"]', "ENTRYPOINT /usr/local/bin/coracle"),
    Break("Dockerfile", DOCKERFILE, '"--admin", "0.0.0.0:9090"]', '"--admin", "127.0.0.1:9090"]'),
    Break("Dockerfile", DOCKERFILE, "org.opencontainers.image.licenses", "org.opencontainers.image.license"),
    Break("Dockerfile", "docker/Dockerfile.dockerignore", "\ndist\n", "\n"),
]


def teeth(tree: Tree, checks: dict[str, Check]) -> Iterator[Problem]:
    for name in checks.keys() - {entry.check for entry in BREAKS}:
        yield Problem("teeth", f"nothing shows that the check `{name}` can fail")
    for entry in BREAKS:
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "deploy"
            shutil.copytree(tree.root, broken)
            path = broken / entry.file
            text = path.read_text()
            if entry.old not in text:
                yield Problem("teeth", f"{entry.file} has no {entry.old!r} any more: the variant breaks nothing")
                continue
            path.write_text(text.replace(entry.old, entry.new, 1))
            if not objects(checks[entry.check], Tree(broken, tree.workspace_path)):
                yield Problem("teeth", f"`{entry.check}` passes with {entry.new!r} for {entry.old!r} in {entry.file}")


def objects(check: Check, tree: Tree) -> bool:
    """Whether the check fails, be it that the chart no longer renders. One that merely crashes proves nothing."""
    try:
        return any(True for _ in check(tree))
    except helm_python.HelmError:
        return True
