{{- /* Written by `make generate` from what the packages declare as their rights. */ -}}
{{- define "trellis.rights.everywhere" -}}
{{- if (and .Values.webhook.enabled (not .Values.webhook.certManager.enabled)) }}
# webhook: authorities of the certificate
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "trellis.admissionName" . | quote }}]
  verbs: [get, patch]
{{- end }}
{{- if .Values.metrics.secure }}
# cmd/internal/manager: who asks for metrics
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if .Values.metrics.secure }}
# cmd/internal/manager: whether they may get them
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
# loop: what changed is told, beside the object that it is about
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# controllers/distributor: catalogues are merged; one in the wrong namespace is told so
# controllers/distributor/report: catalogues that have a status
# controllers/gitcatalogue: catalogues with a repository
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [list, watch]
# controllers/distributor/report: the status of catalogues
# controllers/gitcatalogue: the status of catalogues
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues/status]
  verbs: [patch]
# controllers/distributor/fleet: sets, also in the wrong namespace, where they are told so
- apiGroups: [kubermatic.k8c.io]
  resources: [addonsets]
  verbs: [list, watch]
# controllers/distributor/fleet: the status of sets
- apiGroups: [kubermatic.k8c.io]
  resources: [addonsets/status]
  verbs: [patch]
{{- end }}
{{- define "trellis.rights.platform" -}}
# controllers/distributor: RBAC can't bind a creation to a name
# controllers/distributor/seed: RBAC can't bind a creation to a name
# controllers/distributor/usage: RBAC can't bind a creation to a name
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
# controllers/distributor: whose the add-ons of Custom catalogues are
# controllers/gitcatalogue: whose add-ons count
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-owners]
  verbs: [get, update]
# controllers/distributor: who used Secrets before they said who may
# controllers/distributor/seed: the identity of each seed
# controllers/gitcatalogue: who used Secrets before they said who may
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-seeds]
  verbs: [get, patch]
# controllers/distributor/usage: what the installations of seeds use
# controllers/gitcatalogue: which versions are in use
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-usage]
  verbs: [get, patch]
# fence: who leads is told
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# certificate: the webhooks' certificate
# controllers/distributor: kubeconfigs of seeds, and what goes to the seeds
# controllers/gitcatalogue: credentials of repositories, and whether they change
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
{{- if (and .Values.webhook.enabled (not .Values.webhook.certManager.enabled)) }}
# certificate: the webhooks' certificate
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "trellis.webhookSecret" . | quote }}]
  verbs: [update]
{{- end }}
# controllers/distributor: the last valid spec of each catalogue
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, create, update, delete]
# fence: RBAC can't bind a creation to a name
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# fence: one of several replicas works
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "trellis.lease" . | quote }}]
  verbs: [get, update]
# controllers/gitcatalogue: whether a name is taken, past the cache
# controllers/gitcatalogue: what is generated from git
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [get, create, update, patch, delete, control]
# controllers/distributor/fleet: the finalizer of sets
- apiGroups: [kubermatic.k8c.io]
  resources: [addonsets]
  verbs: [patch]
# cluster: seeds are found as they come
- apiGroups: [kubermatic.k8c.io]
  resources: [seeds]
  verbs: [list, watch]
{{- end }}
