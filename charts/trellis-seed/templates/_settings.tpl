{{- /* Both charts have this file: edit the seed's, and `make generate` copies it to the master's. */ -}}
{{- /* Labels and annotations of an object: .top is the chart, .labels and .annotations are the object's own. */ -}}
{{- define "trellis.marks" -}}
labels: {{- merge (include "trellis.labels" .top | fromYaml) (get . "labels" | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (get . "annotations" | default dict) (.top.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The same of the pod. What the selector names can't be taken back. */ -}}
{{- define "trellis.podMarks" -}}
labels: {{- merge (include "trellis.labels" . | fromYaml) (.Values.podLabels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.Values.podAnnotations | default dict) (.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The image, behind the registry and before the digest that are given. */ -}}
{{- define "trellis.image" -}}
{{- with (.Values.global).imageRegistry }}{{ . }}/{{ end -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* Where the pod runs. A constraint without a selector is about the manager's pods. */ -}}
{{- define "trellis.placement" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.topologySpreadConstraints }}
{{- $constraints := list }}
{{- range .Values.topologySpreadConstraints }}
{{- $selector := get . "labelSelector" | default (dict "matchLabels" (include "trellis.selector" $ | fromYaml)) }}
{{- $constraints = append $constraints (set (deepCopy .) "labelSelector" $selector) }}
{{- end }}
topologySpreadConstraints: {{- toYaml $constraints | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Whether metrics are served inside the pod only, or not at all: empty if not. */ -}}
{{- define "trellis.metricsInside" -}}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\]:|0$)" .Values.metricsBindAddress }}true{{ end }}
{{- end }}

{{- /* Whether metrics are served to others, with what has to be so for it: empty if not. */ -}}
{{- define "trellis.metricsServed" -}}
{{- if or .Values.metrics.service.enabled .Values.metrics.serviceMonitor.enabled }}
{{- if include "trellis.metricsInside" . }}
{{- fail "metrics.service needs a metricsBindAddress that is not inside the pod, such as :8085" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) }}
{{- fail "metrics.service needs networkPolicy.metricsFrom: without it, the chart's NetworkPolicy denies all scrapes" }}
{{- end }}
true
{{- end }}
{{- end }}

{{- /* The number of the metrics' port; 0: there is none. */ -}}
{{- define "trellis.metricsPort" -}}
{{- $port := .Values.metricsBindAddress | splitList ":" | last | int }}
{{- if has $port (list 8081 8443 9443) }}
{{- fail (printf "metricsBindAddress has port %d, which is one of the manager's others: take another, such as :8085" $port) }}
{{- end }}
{{- $port }}
{{- end }}

{{- /* Bytes of a quantity. */ -}}
{{- define "trellis.bytes" -}}
{{- $unit := regexFind "[A-Za-z]+$" . }}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- mulf (trimSuffix $unit . | float64) (get $factors $unit | float64) | int64 }}
{{- end }}

{{- /* Refuses values that no object of the chart could be made right with. */ -}}
{{- define "trellis.check" -}}
{{- $port := include "trellis.metricsPort" . }}
{{- if eq .Values.catalogueNamespace .Release.Namespace }}
{{- fail (printf "catalogueNamespace is %q, the release's own: merged catalogues need a namespace of their own, such as addon-catalogue" .Release.Namespace) }}
{{- end }}
{{- /* Beside the limit the volume has the store's index and, on a seed, what checks of sources fetch. */ -}}
{{- $beside := ternary "1280Mi" "256Mi" (hasKey .Values "render") }}
{{- if gt (add (include "trellis.bytes" .Values.store.limit | int64) (include "trellis.bytes" $beside | int64)) (include "trellis.bytes" .Values.store.sizeLimit | int64) }}
{{- fail (printf "store.limit is %s and store.sizeLimit %s: the volume needs %s more than the store's limit, or the pod is evicted" .Values.store.limit .Values.store.sizeLimit $beside) }}
{{- end }}
{{- range .Values.extraVolumes }}
{{- if has .name (list "store" "metrics-tls" "tracing-ca" "query-tls" "webhook-certificate" "webhook-path" "webhook-client") }}
{{- fail (printf "extraVolumes has %q, which is the name of a volume of the chart: take another" .name) }}
{{- end }}
{{- end }}
{{- if and (hasPrefix "http:" .Values.tracing.endpoint) (not .Values.tracing.insecure) }}
{{- fail "tracing.endpoint is plain http: take https, or set tracing.insecure" }}
{{- end }}
{{- $memory := dig "limits" "memory" "" (.Values.resources | default dict) }}
{{- with get .Values "render" }}
{{- $processes := add .children 1 }}
{{- if and $memory (ge (mul $processes (include "trellis.bytes" .memory | int64)) (include "trellis.bytes" (toString $memory) | int64)) }}
{{- fail (printf "resources.limits.memory is %v, and %d renderers of render.memory %s may take all of it: give the container more, or take fewer or smaller ones" $memory $processes .memory) }}
{{- end }}
{{- end }}
{{- end }}
