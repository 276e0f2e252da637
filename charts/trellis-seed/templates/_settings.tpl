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

{{- /* Whether metrics are served to others, with what has to be so for it: empty if not. */ -}}
{{- define "trellis.metricsServed" -}}
{{- if or .Values.metrics.service.enabled .Values.metrics.serviceMonitor.enabled }}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\]:|0$)" .Values.metricsBindAddress }}
{{- fail "metrics.service needs a metricsBindAddress that is not inside the pod, such as :8085" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) }}
{{- fail "metrics.service needs networkPolicy.metricsFrom: without, the chart's NetworkPolicy lets nobody scrape" }}
{{- end }}
true
{{- end }}
{{- end }}

{{- /* The number of the metrics' port. */ -}}
{{- define "trellis.metricsPort" -}}
{{ .Values.metricsBindAddress | splitList ":" | last | int }}
{{- end }}
