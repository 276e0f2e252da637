{{- /* Both charts have this file: edit the seed's, and `make generate` copies it to the master's. */ -}}
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
