{{- /* Each chart has this file: edit the seed's, and `make generate` copies it to the others. */ -}}
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

{{- /* Where the pod runs. A constraint without a selector is about the chart's pods. */ -}}
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

{{- /* Bytes of a quantity. */ -}}
{{- define "trellis.bytes" -}}
{{- $unit := regexFind "[A-Za-z]+$" . }}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- mulf (trimSuffix $unit . | float64) (get $factors $unit | float64) | int64 }}
{{- end }}
