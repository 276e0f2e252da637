{{- /* Written by `make generate` from what the packages declare as their rights. */ -}}
{{- define "trellis.rights.everywhere" -}}
# cluster: which user cluster each Cluster has
# controllers/addoninstallation: marked ones hold credentials of sources, values, and the pull Secret
# controllers/coreaddon: the custom core list
# controllers/sourcecheck: what was found about sources, and who shares in that
# pullsecret: which namespaces of user clusters have a copy of the pull Secret
# cluster: what templates see of the platform
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
# controllers/addon: cluster namespaces, as metadata
# controllers/addonset: cluster namespaces, as metadata
# controllers/coreaddon: cluster namespaces, as metadata
# controllers/standalone: cluster namespaces, as metadata
# webhook: whether one is being deleted
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- if .Values.standalone.enabled }}
# controllers/standalone: cluster namespaces are made where KKP does not
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, create, delete]
{{- end }}
# access: credentials of agents, and their outboxes
# certificate: the certificates of webhooks and query endpoint
# cluster: kubeconfigs of user clusters, and what Clusters name
# controllers/addoninstallation: marked ones hold credentials of sources, values, and the pull Secret
# mergedcatalogue: the key of the marks
# revision: release records, and the keys that they are sealed with
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, update, delete]
{{- if .Values.agents.enabled }}
# access: an agent may patch its outbox, and who gives a right has to have it
- apiGroups: [""]
  resources: [secrets]
  verbs: [patch]
{{- end }}
{{- if .Values.agents.enabled }}
# access: accounts of agents
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- if .Values.agents.enabled }}
# access: tokens of agents
- apiGroups: [""]
  resources: [serviceaccounts/token]
  verbs: [create]
{{- end }}
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
{{- range .Values.clusterAPI.providers }}
# cluster: what Clusters of Cluster API refer to: control planes, for their version, and what templates name
- apiGroups: [{{ .group }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
{{- end }}
{{- end }}
{{- range .Values.providerKinds }}
# cluster: what valuesFrom.providerRef may name
- apiGroups: [{{ .group }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
{{- end }}
{{- if (and .Values.webhook.enabled (not .Values.webhook.certManager.enabled)) }}
# webhook: authorities of the certificate
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "trellis.admissionName" . | quote }}]
  verbs: [get, patch]
{{- end }}
{{- if or .Values.metrics.secure .Values.query.enabled }}
# cmd/internal/manager: who asks for metrics
# query: who asks the query endpoint
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if or .Values.metrics.secure .Values.query.enabled }}
# cmd/internal/manager: whether they may get them
# query: what they may see
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if .Values.agents.enabled }}
# access: certificates of agents
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests]
  verbs: [get, create, delete]
{{- end }}
{{- if (and .Values.agents.enabled .Values.agents.approve) }}
# access: certificates of agents
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests/approval]
  verbs: [update]
{{- end }}
{{- if (and .Values.agents.enabled .Values.agents.approve) }}
# access: certificates of agents
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [{{ include "trellis.signers" . }}]
  verbs: [approve]
{{- end }}
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
# cluster: Clusters of Cluster API are found as they come
# cluster: requests for installations are taken off their Cluster
# controllers/clusterupgrade: what holds upgrades is put on Clusters, and taken off
- apiGroups: [cluster.x-k8s.io]
  resources: [clusters]
  verbs: [get, list, watch, patch]
{{- end }}
# loop: what changed is told, beside the object that it is about
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# controllers/addon: available catalogues
# controllers/clusterupgrade: condition UpgradeHeld as it was written last
# controllers/coreaddon: the core part of available catalogues
# controllers/coreaddon: available catalogues, as metadata
# mergedcatalogue: merged catalogues
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [get, list, watch, create, update, patch, control]
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
# controllers/addon: an API server may ask for it of who changes an owner: they are named after Clusters
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [delete]
{{- end }}
{{- if (not (has "cluster-api" .Values.clusterAPI.kinds)) }}
# controllers/addon: an API server may ask for it of who changes an owner
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  resourceNames: [available]
  verbs: [delete]
{{- end }}
# controllers/addon: the status of available catalogues
# controllers/clusterupgrade: condition UpgradeHeld
# controllers/coreaddon: the core part of available catalogues
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues/status]
  verbs: [patch]
# controllers/addon: installations that a Cluster asks for
# controllers/addoninstallation: installations are read, and have a finalizer
# controllers/addonset: installations of sets
# controllers/clusterupgrade: what upgrades wait for
# controllers/coreaddon: core add-ons
- apiGroups: [kubermatic.k8c.io]
  resources: [addoninstallations]
  verbs: [get, list, watch, create, patch, delete, control]
# controllers/addoninstallation: the status of installations
- apiGroups: [kubermatic.k8c.io]
  resources: [addoninstallations/status]
  verbs: [patch]
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# cluster: one of KKP's own that an installation takes the place of has to go first
- apiGroups: [kubermatic.k8c.io]
  resources: [addons]
  verbs: [list, watch]
{{- end }}
# controllers/addoninstallation: whether the set of an installation ends
# controllers/addonset: copies of sets are read, past the cache too, and have a finalizer
# controllers/coreaddon: copies of sets are read, past the cache too, and have a finalizer
- apiGroups: [kubermatic.k8c.io]
  resources: [addonsets]
  verbs: [get, list, watch, patch, control]
# controllers/addonset: the status of copies
# controllers/coreaddon: the status of copies
- apiGroups: [kubermatic.k8c.io]
  resources: [addonsets/status]
  verbs: [patch]
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# cluster: Clusters are found as they come
# cluster: requests for installations are taken off their Cluster
# controllers/standalone: the finalizer of a Cluster
- apiGroups: [kubermatic.k8c.io]
  resources: [clusters]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if .Values.standalone.enabled }}
# controllers/standalone: the status of a Cluster, where KKP does not write it
- apiGroups: [kubermatic.k8c.io]
  resources: [clusters/status]
  verbs: [patch]
{{- end }}
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# cluster: what templates see of KKP
- apiGroups: [kubermatic.k8c.io]
  resources: [ipamallocations]
  verbs: [list, watch]
{{- end }}
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# cluster: what templates see of KKP
- apiGroups: [kubermatic.k8c.io]
  resources: [kubermaticconfigurations]
  verbs: [list, watch]
{{- end }}
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# cluster: what templates see of KKP
- apiGroups: [kubermatic.k8c.io]
  resources: [seeds]
  verbs: [list, watch]
{{- end }}
{{- if .Values.agents.enabled }}
# access: what the platform lists for agents
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  verbs: [list, watch]
{{- end }}
{{- if .Values.agents.enabled }}
# access: rights of agents
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- if .Values.agents.enabled }}
# access: rights of agents
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- end }}
{{- define "trellis.rights.platform" -}}
# cluster: which user cluster each Cluster has, until it is gone
# controllers/sourcecheck: what was found about sources
# pullsecret: which namespaces of user clusters have a copy of the pull Secret
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, update, delete]
# fence: who leads is told
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# fence: RBAC can't bind a creation to a name
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# fence: one of several replicas works
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "trellis.lease" . | quote }}]
  verbs: [get, update]
{{- end }}
