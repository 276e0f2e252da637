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

{{- /* The name of what is cluster-wide and takes no colon: webhook configurations and policies. */ -}}
{{- define "trellis.admissionName" -}}
{{ printf "%s.%s" .Release.Namespace (include "trellis.name" .) }}
{{- end }}

{{- /* The Secret with the webhooks' certificate. */ -}}
{{- define "trellis.webhookSecret" -}}
{{ printf "%s-webhook" (include "trellis.name" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{- /* The manager's user. */ -}}
{{- define "trellis.user" -}}
{{ printf "system:serviceaccount:%s:%s" .Release.Namespace (include "trellis.name" .) }}
{{- end }}

{{- /* CEL: the users of the cluster itself, who delete what has to go. */ -}}
{{- define "trellis.isCleaner" -}}
request.userInfo.username in ['system:serviceaccount:kube-system:namespace-controller', 'system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager']
{{- end }}

{{- /* CEL: an update of an object on its way out that leaves the spec as it is. */ -}}
{{- define "trellis.isLettingGo" -}}
request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && object.spec == oldObject.spec
{{- end }}

{{- /* CEL: the namespace is being deleted. */ -}}
{{- define "trellis.namespaceEnds" -}}
namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)
{{- end }}
