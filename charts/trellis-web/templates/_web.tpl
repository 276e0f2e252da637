{{- /* The host of publicURL, without the port. */ -}}
{{- define "trellis.host" -}}
{{- $host := (urlParse .Values.publicURL).hostname }}
{{- if not $host }}
{{- fail "ingress and httpRoute need publicURL: they have its host" }}
{{- end }}
{{- $host }}
{{- end }}

{{- /* The port of the Service. */ -}}
{{- define "trellis.servicePort" -}}
{{ .Values.service.port | default (ternary 443 80 (ne .Values.tlsSecret "")) }}
{{- end }}

{{- /* The ConfigMap with the configuration. */ -}}
{{- define "trellis.configMap" -}}
{{ .Values.configMap | default (include "trellis.name" .) }}
{{- end }}

{{- /* The configuration of the program: docs/spec/web.md. */ -}}
{{- define "trellis.config" -}}
{{- $config := dict "publicURL" .Values.publicURL "keysFolder" "/etc/trellis-web/keys" "seeds" .Values.seeds }}
{{- if .Values.tlsSecret }}
{{- $_ := set $config "tlsFolder" "/etc/trellis-web/tls" }}
{{- end }}
{{- if .Values.master.server }}
{{- $_ := set $config "master" (include "trellis.filled" .Values.master | fromJson) }}
{{- end }}
{{- $login := dict "kind" .Values.login.kind }}
{{- if eq .Values.login.kind "OIDC" }}
{{- $oidc := omit .Values.login.oidc "secret" }}
{{- if .Values.login.oidc.secret }}
{{- $_ := set $oidc "secretFile" "/etc/trellis-web/oidc/secret" }}
{{- end }}
{{- $_ := set $login "oidc" (include "trellis.filled" $oidc | fromJson) }}
{{- end }}
{{- set $config "login" $login | toYaml }}
{{- end }}

{{- /* A map without its empty values, as JSON. */ -}}
{{- define "trellis.filled" -}}
{{- $filled := dict }}
{{- range $name, $value := . }}
{{- if $value }}{{ $_ := set $filled $name $value }}{{ end }}
{{- end }}
{{- toJson $filled }}
{{- end }}

{{- /* Whether metrics have a Service: empty if not. */ -}}
{{- define "trellis.metricsServed" -}}
{{- if or .Values.metrics.service.enabled .Values.metrics.serviceMonitor.enabled }}true{{ end }}
{{- end }}

{{- define "trellis.metricsPort" -}}8081{{- end }}

{{- /* Refuses values with which no pod would start. */ -}}
{{- define "trellis.check" -}}
{{- $oidc := .Values.login.oidc }}
{{- if .Values.configMap }}
{{- if or .Values.seeds .Values.master.server $oidc.issuer }}
{{- fail "configMap has the whole configuration: leave out master, seeds and login, except for login.oidc.secret" }}
{{- end }}
{{- else }}
{{- if not .Values.publicURL }}
{{- fail "publicURL is missing: the address that browsers use, such as https://addons.example.com" }}
{{- end }}
{{- if not .Values.seeds }}
{{- fail "seeds is empty: list each seed as {name, server, ca, query, queryCA}" }}
{{- end }}
{{- $names := list }}
{{- range .Values.seeds }}
{{- if has .name $names }}
{{- fail (printf "seeds has %q twice" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- if and (eq .Values.login.kind "OIDC") (not (and $oidc.issuer $oidc.clientID)) }}
{{- fail "login.kind OIDC needs login.oidc.issuer and login.oidc.clientID" }}
{{- end }}
{{- if and (ne .Values.login.kind "OIDC") (or $oidc.issuer $oidc.clientID $oidc.secret) }}
{{- fail "login.oidc is for login.kind OIDC" }}
{{- end }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs" }}
{{- end }}
{{- range .Values.extraVolumes }}
{{- if has .name (list "config" "keys" "tls" "oidc") }}
{{- fail (printf "extraVolumes has %q, which is the name of a volume of the chart: use another" .name) }}
{{- end }}
{{- end }}
{{- end }}
