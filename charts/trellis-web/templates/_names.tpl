{{- /* Each chart has this file: edit the seed's, and `make generate` copies it to the others. */ -}}
{{- /* The chart's own labels win over those that are given. */ -}}
{{- define "trellis.labels" -}}
{{- $own := include "trellis.selector" . | fromYaml }}
{{- $own = set $own "app.kubernetes.io/version" .Chart.AppVersion }}
{{- $own = set $own "app.kubernetes.io/managed-by" .Release.Service }}
{{- $own = set $own "app.kubernetes.io/part-of" "trellis" }}
{{- merge $own (.Values.commonLabels | default dict) | toYaml }}
{{- end }}

{{- define "trellis.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The name of everything namespaced: the release's, which has the namespace to itself. */ -}}
{{- define "trellis.name" -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of what is cluster-wide: two releases in two namespaces must not share it. */ -}}
{{- define "trellis.clusterName" -}}
{{ printf "%s:%s" .Release.Namespace (include "trellis.name" .) }}
{{- end }}
