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
