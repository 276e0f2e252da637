{{- /* Both charts have this file: edit the seed's, and `make generate` copies it to the master's. */ -}}
{{- /* The names of the chart's CRDs, by those of their files: <group>_<plural>.yaml. */ -}}
{{- define "trellis.crdNames" -}}
{{- $names := list }}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" }}
{{- $parts := base $path | trimSuffix ".yaml" | splitList "_" }}
{{- $names = append $names (printf "%s.%s" (last $parts) (first $parts)) }}
{{- end }}
{{- $names | sortAlpha | toJson }}
{{- end }}

{{- /* The name of the objects of one task: .top is the chart, .task the task. */ -}}
{{- define "trellis.taskName" -}}
{{ printf "%s-%s" (include "trellis.name" .top | trunc 54 | trimSuffix "-") .task }}
{{- end }}

{{- /* Labels and annotations of a task's objects: .hook is Helm's event, .weight the order in it, .logPolicy when Helm shows its log, if
  ever. */ -}}
{{- define "trellis.taskMarks" -}}
{{- $annotations := dict "helm.sh/hook" .hook "helm.sh/hook-weight" .weight "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
{{- with get . "logPolicy" }}
{{- $annotations = set $annotations "helm.sh/hook-output-log-policy" . }}
{{- end }}
{{- include "trellis.marks" (dict "top" .top "annotations" $annotations "labels" (dict "app.kubernetes.io/component" .task)) }}
{{- end }}

{{- /* A task's account, with its rights in the whole cluster (.rules) and in the release's namespace (.namespaced). */ -}}
{{- define "trellis.taskAccount" -}}
{{- $marks := include "trellis.taskMarks" (merge (dict "weight" "-1") .) }}
{{- $name := include "trellis.taskName" . }}
{{- $clusterName := printf "%s:%s" .top.Release.Namespace $name }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .top.Release.Namespace }}
  {{- $marks | nindent 2 }}
{{- with .top.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $clusterName }}
  {{- $marks | nindent 2 }}
rules: {{- .rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $clusterName }}
  {{- $marks | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $clusterName }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ .top.Release.Namespace }}
{{- if get . "namespaced" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ .top.Release.Namespace }}
  {{- $marks | nindent 2 }}
rules: {{- .namespaced | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ .top.Release.Namespace }}
  {{- $marks | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ .top.Release.Namespace }}
{{- end }}
{{- end }}

{{- /* The pod of a task: .arguments come after those that all tasks have. Its labels are not those that the chart's Services,
  NetworkPolicy and PodDisruptionBudget select. */ -}}
{{- define "trellis.taskPod" -}}
{{- $top := .top }}
serviceAccountName: {{ include "trellis.taskName" . }}
restartPolicy: Never
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
containers:
- name: task
  image: {{ include "trellis.image" $top | quote }}
  imagePullPolicy: {{ $top.Values.image.pullPolicy }}
  args:
  - --task={{ .task }}
  - --namespace={{ $top.Release.Namespace }}
  - --catalogue-namespace={{ $top.Values.catalogueNamespace }}
  {{- with get . "arguments" }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $top.Values.extraEnv }}
  env: {{- toYaml . | nindent 2 }}
  {{- end }}
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 256Mi}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
{{- with $top.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $top.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $top.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* A task as a Job: .tries says how often it is tried again. Helm waits five minutes for it by default. */ -}}
{{- define "trellis.taskJob" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "trellis.taskName" . }}
  namespace: {{ .top.Release.Namespace }}
  {{- include "trellis.taskMarks" (merge (dict "weight" "0" "logPolicy" (get . "tell" | default "hook-failed")) .) | nindent 2 }}
spec:
  backoffLimit: {{ .tries }}
  activeDeadlineSeconds: 240
  # One that failed is kept for a day, for those who read its log.
  ttlSecondsAfterFinished: 86400
  template:
    metadata:
      {{- include "trellis.taskPodMarks" . | nindent 6 }}
    spec: {{- include "trellis.taskPod" . | nindent 6 }}
{{- end }}

{{- /* Labels and annotations of a task's pod. */ -}}
{{- define "trellis.taskPodMarks" -}}
labels: {{- merge (dict "app.kubernetes.io/name" (printf "%s-%s" .top.Chart.Name .task) "app.kubernetes.io/instance" .top.Release.Name) (.top.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with .top.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
