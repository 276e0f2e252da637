{{- /* Both charts have this file: edit the seed's, and `make generate` copies it to the master's. */ -}}
{{- /* The lease of the leader, as the manager calls it. */ -}}
{{- define "trellis.lease" -}}
{{ .Chart.Name }}.addons.kubermatic.k8c.io{{ with .Values.workerName }}-{{ . }}{{ end }}
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

{{- /* Policies for the manager's own user: what it writes, by rules that name places in capitals. The chart
itself defines trellis.ownSecrets. */ -}}
{{- define "trellis.managerPolicies" -}}
{{- $top := .top }}
{{- $own := join "', '" (include "trellis.ownSecrets" $top | splitList ",") }}
{{- range $name, $policy := .policies }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ include "trellis.admissionName" $top }}.{{ $name }}
  {{- include "trellis.marks" (dict "top" $top) | nindent 2 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [{{ $policy.group | quote }}]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: {{ toJson $policy.resources }}
  matchConditions:
  - name: the-manager
    expression: request.userInfo.username == '{{ include "trellis.user" $top }}'
  variables:
  - name: all
    expression: "[object, oldObject].filter(it, it != null)"
  - name: annotations
    expression: "variables.all.map(it, has(it.metadata.annotations) ? it.metadata.annotations : {})"
  - name: finalizers
    expression: "variables.all.map(it, has(it.metadata.finalizers) ? it.metadata.finalizers : [])"
  # All but our own annotations and the finalizer are as they were.
  - name: sameMarks
    expression: >-
      variables.annotations.all(one, variables.annotations.all(other, one.all(key,
      key.startsWith('addons.kubermatic.k8c.io/') || {{ with get $policy "annotation" }}key == '{{ . }}' || {{ end }}(key in other && one[key] == other[key])))) &&
      variables.finalizers.all(one, variables.finalizers.all(other, one.all(name, name in other || name == '{{ get $policy "finalizer" }}')))
  validations:
  - expression: >-
      {{- $policy.rule | replace "RELEASENAMESPACE" $top.Release.Namespace | replace "CATALOGUENAMESPACE" $top.Values.catalogueNamespace | replace "OWNSECRETS" $own | replace "ADMISSIONNAME" (include "trellis.admissionName" $top) | replace "LEASENAME" (include "trellis.lease" $top) | trim | replace "\n    " "\n" | nindent 6 }}
    reason: Forbidden
    message: {{ printf "the manager %s" $policy.why | quote }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "trellis.admissionName" $top }}.{{ $name }}
  {{- include "trellis.marks" (dict "top" $top) | nindent 2 }}
spec:
  policyName: {{ include "trellis.admissionName" $top }}.{{ $name }}
  validationActions: [Deny]
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
{{- fail (printf "metricsBindAddress has port %d, which is one of the manager's others: use another, such as :8085" $port) }}
{{- end }}
{{- $port }}
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
{{- fail (printf "extraVolumes has %q, which is the name of a volume of the chart: use another" .name) }}
{{- end }}
{{- end }}
{{- if and (hasPrefix "http:" .Values.tracing.endpoint) (not .Values.tracing.insecure) }}
{{- fail "tracing.endpoint is plain http: use https, or set tracing.insecure" }}
{{- end }}
{{- $memory := dig "limits" "memory" "" (.Values.resources | default dict) }}
{{- with get .Values "render" }}
{{- $processes := add .children 1 }}
{{- if and $memory (ge (mul $processes (include "trellis.bytes" .memory | int64)) (include "trellis.bytes" (toString $memory) | int64)) }}
{{- fail (printf "resources.limits.memory is %v, and %d renderers of render.memory %s may take all of it: give the container more, or use fewer or smaller ones" $memory $processes .memory) }}
{{- end }}
{{- end }}
{{- end }}
