{{- /* Written by `make generate` from what the packages declare as their rights. */ -}}
{{- define "trellis.rights.everywhere" -}}
{{- if (and .Values.webhook.enabled (not .Values.webhook.certManager.enabled)) }}
# serve/webhook: the CA of the webhooks' certificate
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "trellis.admissionName" . | quote }}]
  verbs: [get, patch]
{{- end }}
{{- if .Values.metrics.secure }}
# cmd/internal/manager: authenticates clients that read metrics
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if .Values.metrics.secure }}
# cmd/internal/manager: authorizes clients that read metrics
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
# base/loop: events about changes, in the namespace of their object
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# controllers/distributor: catalogues are merged; one in the wrong namespace gets a warning
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
# controllers/distributor/fleet: sets; one in the wrong namespace gets a warning
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
# controllers/distributor: which Custom catalogue owns each add-on
# controllers/gitcatalogue: which catalogue owns each add-on
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-owners]
  verbs: [get, update]
# controllers/distributor: users of Secrets from before the Secrets named them
# controllers/distributor/seed: the identity of each seed
# controllers/gitcatalogue: users of Secrets from before the Secrets named them
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-seeds]
  verbs: [get, patch]
# controllers/distributor/usage: the versions that installations on seeds use
# controllers/gitcatalogue: which versions are in use
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-usage]
  verbs: [get, patch]
# base/fence: events about the leader
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# controllers/distributor: kubeconfigs of seeds, and Secrets that are copied to seeds
# controllers/gitcatalogue: credentials of repositories, and whether they change
# serve/certificate: the webhooks' certificate
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
{{- if (and .Values.webhook.enabled (not .Values.webhook.certManager.enabled)) }}
# serve/certificate: the webhooks' certificate
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "trellis.webhookSecret" . | quote }}]
  verbs: [update]
{{- end }}
# controllers/distributor: the last valid spec of each catalogue
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, create, update, delete]
# base/fence: RBAC can't bind a creation to a name
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# base/fence: election of the leader
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "trellis.lease" . | quote }}]
  verbs: [get, update]
# controllers/gitcatalogue: whether a name is in use, past the cache
# controllers/gitcatalogue: catalogues that are generated from git
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [get, create, update, patch, delete, control]
# controllers/distributor/fleet: the finalizer of sets
- apiGroups: [kubermatic.k8c.io]
  resources: [addonsets]
  verbs: [patch]
# clusters/cluster: Seeds are watched
- apiGroups: [kubermatic.k8c.io]
  resources: [seeds]
  verbs: [list, watch]
{{- end }}
