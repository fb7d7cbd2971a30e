{{- define "fairway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "fairway.fullname" -}}
{{- $name := include "fairway.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The selector of the pods, which must never change. Called with a dict of `root` and, for a part, `part`. */}}
{{- define "fairway.selector" -}}
app.kubernetes.io/name: {{ include "fairway.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .part }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "fairway.labels" -}}
{{ include "fairway.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "fairway.serviceAccount" -}}
{{- $values := get .root.Values .part }}
{{- if $values.serviceAccount.create }}
{{- default (printf "%s-%s" (include "fairway.fullname" .root) .part) $values.serviceAccount.name }}
{{- else }}
{{- default "default" $values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "fairway.image" -}}
{{- $all := .root.Values.image }}
{{- $own := (get .root.Values .part).image }}
{{- $repository := coalesce $own.repository $all.repository }}
{{- if contains "metallb/" $repository }}
{{- fail (printf "%s.image.repository is %s: an image of MetalLB; set an image of Fairway, or remove the value" .part $repository) }}
{{- end }}
{{- $tag := coalesce $own.tag $all.tag .root.Chart.AppVersion -}}
image: {{ printf "%s:%s" $repository $tag | quote }}
imagePullPolicy: {{ coalesce $own.pullPolicy $all.pullPolicy }}
{{- end }}

{{/* The image of FRR with Fairway's agent, which MetalLB's image lacks. */}}
{{- define "fairway.frrImage" -}}
{{- $image := .Values.speaker.frr.image }}
{{- $repository := $image.repository | default (printf "%s-frr" (coalesce .Values.speaker.image.repository .Values.image.repository)) }}
{{- if contains "frrouting/" $repository }}
{{- fail (printf "speaker.frr.image.repository is %s, which lacks Fairway's agent; set an image built from crates/frr/docker, or remove the value" $repository) }}
{{- end }}
{{- printf "%s:%s" $repository (coalesce $image.tag .Values.speaker.image.tag .Values.image.tag .Chart.AppVersion) | quote }}
{{- end }}

{{/* Maps MetalLB's log levels to ours. */}}
{{- define "fairway.logLevel" -}}
{{- get (dict "all" "trace" "none" "error") . | default . }}
{{- end }}

{{/* The identity and the place of the process. Every option of the program is also a variable. */}}
{{- define "fairway.environment" -}}
- name: FAIRWAY_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: FAIRWAY_POD
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: FAIRWAY_POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: FAIRWAY_METRICS_LISTEN
  value: {{ printf ":%v" .root.Values.prometheus.metricsPort | quote }}
{{- with .root.Values.prometheus.secureMetricsPort }}
- name: FAIRWAY_METRICS_SECURE_LISTEN
  value: {{ printf ":%v" . | quote }}
{{- end }}
{{- if include "fairway.metricsSecret" . }}
- name: FAIRWAY_METRICS_CERT_DIR
  value: /etc/fairway/metrics-tls
{{- end }}
- name: FAIRWAY_LOG_LEVEL
  value: {{ include "fairway.logLevel" (get .root.Values .part).logLevel }}
{{- with .root.Values.loadBalancerClass }}
- name: FAIRWAY_LB_CLASS
  value: {{ . | quote }}
{{- end }}
{{- with include "fairway.apiServer" .root }}
{{- . | trim | nindent 0 }}
{{- end }}
{{- end }}

{{/* The way to an API server that no service proxy is needed for. */}}
{{- define "fairway.apiServer" -}}
{{- with .Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ . | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ $.Values.apiServer.port | quote }}
{{- end }}
{{- end }}

{{/* The Secret with the certificate for metrics; empty: a self-signed one, or metrics without TLS. */}}
{{- define "fairway.metricsSecret" -}}
{{- $values := .root.Values.prometheus -}}
{{- $own := printf "%sMetricsTLSSecret" .part -}}
{{- $secret := coalesce (get $values $own) (get (.root.Values.tls | default dict) $own) $values.metricsTLSSecret -}}
{{- if $values.secureMetricsPort }}{{ $secret | default "" }}{{ end -}}
{{- end }}

{{- define "fairway.metricsPorts" -}}
- name: metrics
  containerPort: {{ .root.Values.prometheus.metricsPort }}
{{- with .root.Values.prometheus.secureMetricsPort }}
- name: metricshttps
  containerPort: {{ . }}
{{- end }}
{{- end }}

{{/* What both need to keep the objects of a kind whose definition is removed. */}}
{{- define "fairway.definitionRules" -}}
# Whether a definition is being removed: its objects stay in force for a time then.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames:
    - bfdprofiles.metallb.io
    - bgpadvertisements.metallb.io
    - bgpconfigurations.fairway.dev
    - bgppeers.metallb.io
    - communities.metallb.io
    - ipaddresspools.metallb.io
    - l2advertisements.metallb.io
  verbs: [get]
{{- end }}

{{/* What metrics with TLS need: the API server says which clients may read. */}}
{{- define "fairway.metricsRules" -}}
{{- if .Values.prometheus.secureMetricsPort }}
# Which clients may read metrics.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- end }}

{{- define "fairway.probes" -}}
{{- $values := get .root.Values .part -}}
{{- if $values.livenessProbe.enabled -}}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  {{- omit $values.livenessProbe "enabled" | toYaml | nindent 2 }}
{{- end }}
{{- if $values.readinessProbe.enabled }}
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  {{- omit $values.readinessProbe "enabled" | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{- define "fairway.podMetadata" -}}
{{- $values := get .root.Values .part -}}
labels:
  {{- include "fairway.labels" . | nindent 2 }}
  {{- with $values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: {{ .part }}
  {{- if .root.Values.prometheus.scrapeAnnotations }}
  prometheus.io/scrape: "true"
  {{- with .root.Values.prometheus.secureMetricsPort }}
  prometheus.io/scheme: https
  prometheus.io/port: {{ . | quote }}
  {{- else }}
  prometheus.io/port: {{ .root.Values.prometheus.metricsPort | quote }}
  {{- end }}
  {{- end }}
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What both kinds of pod have in common. */}}
{{- define "fairway.pod" -}}
{{- $values := get .root.Values .part -}}
serviceAccountName: {{ include "fairway.serviceAccount" . }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with $values.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The values of MetalLB's chart that this chart does not use. */}}
{{- define "fairway.unused" -}}
{{- $values := .Values }}
{{- $unused := list }}
{{- range $path := .Files.Lines "files/unused-values.txt" }}
{{- $at := $values }}
{{- $found := not (empty $path) }}
{{- range $word := splitList "." $path }}
{{- if and $found (kindIs "map" $at) (hasKey $at $word) }}
{{- $at = get $at $word }}
{{- else }}
{{- $found = false }}
{{- end }}
{{- end }}
{{- if $found }}{{ $unused = append $unused $path }}{{ end }}
{{- end }}
{{- join ", " $unused }}
{{- end }}
