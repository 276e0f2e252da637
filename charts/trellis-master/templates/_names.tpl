{{- define "trellis.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: trellis
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

{{- /* The lease of the leader, as the manager calls it. */ -}}
{{- define "trellis.lease" -}}
trellis-master.addons.kubermatic.k8c.io{{ with .Values.workerName }}-{{ . }}{{ end }}
{{- end }}
