{{- /* The query endpoint's Service, and the beginning of its Secret's name. */ -}}
{{- define "trellis.query" -}}
{{ include "trellis.name" . | trunc 53 | trimSuffix "-" }}-query
{{- end }}

{{- /* The names of the query endpoint's own certificate. */ -}}
{{- define "trellis.queryHosts" -}}
{{- $name := include "trellis.query" . -}}
{{- $place := printf "%s.%s" $name .Release.Namespace -}}
{{ join "," (concat (list $name $place (printf "%s.svc" $place) (printf "%s.svc.cluster.local" $place)) .Values.query.hosts) }}
{{- end }}

{{- /* Whether ConfigMap addon-query says where this endpoint is; empty if not. A seed has one such ConfigMap, and a manager with a
worker name is a further one. */ -}}
{{- define "trellis.queryPublished" -}}
{{- if and .Values.query.enabled .Values.query.publish (not .Values.workerName) }}true{{ end }}
{{- end }}
