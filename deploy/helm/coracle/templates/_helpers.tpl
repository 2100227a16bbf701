{{/* The name of all objects: 52 characters at most, so that "-headless" still fits into a DNS label. */}}
{{- define "coracle.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects our pods. It never changes between versions: a Deployment's selector is immutable. */}}
{{- define "coracle.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "coracle.labels" -}}
{{ include "coracle.selectorLabels" . }}
app.kubernetes.io/component: server
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "coracle.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
Drain delay and grace rounded up to seconds, and 10 s: the server needs 5 s beyond them to cancel what is left and to
write out its logs, and a kubelet that fires early would kill it in the middle of that.
*/}}
{{- define "coracle.terminationGracePeriodSeconds" -}}
{{- $drainMs := add (int64 .Values.drain.delayMs) (int64 .Values.drain.graceMs) -}}
{{- add (div (add $drainMs 999) 1000) 10 -}}
{{- end -}}

{{/* The volume of the file of policies; nothing where there is none. */}}
{{- define "coracle.outboundSource" -}}
{{- with .Values.outbound -}}
{{- if .existingConfigMap -}}
configMap:
  name: {{ .existingConfigMap | quote }}
  defaultMode: 0400
  items:
    - key: {{ .key | quote }}
      path: outbound.json
{{- else if .existingSecret -}}
secret:
  secretName: {{ .existingSecret | quote }}
  defaultMode: 0400
  items:
    - key: {{ .key | quote }}
      path: outbound.json
{{- end -}}
{{- end -}}
{{- end -}}
