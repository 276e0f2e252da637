{{- /* Written by `make generate` from what the packages declare as their rights. */ -}}
{{- define "trellis.rights.everywhere" -}}
# clusters/cluster: the identity of each Cluster's user cluster
# controllers/addoninstallation: marked ones hold credentials of sources, values, and the pull Secret
# controllers/coreaddon: the custom core list
# controllers/sourcecheck: results of checks of sources, and the seeds that share them
# install/pullsecret: records of the copies of the pull Secret in user clusters
# serve/query: ConfigMap extension-apiserver-authentication, with the authorities of client certificates
# clusters/cluster: the platform's values for templates
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
# controllers/addon: cluster namespaces, as metadata
# controllers/addonset: cluster namespaces, as metadata
# controllers/coreaddon: cluster namespaces, as metadata
# controllers/standalone: cluster namespaces, as metadata
# serve/webhook: whether one is being deleted
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- if .Values.standalone.enabled }}
# controllers/standalone: cluster namespaces are created if KKP does not
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, create, delete]
{{- end }}
# clusters/access: credentials of agents, and their outboxes
# clusters/cluster: kubeconfigs of user clusters, and Secrets that Clusters name
# controllers/addoninstallation: marked ones hold credentials of sources, values, and the pull Secret
# fleet/mergedcatalogue: the key of the marks
# install/revision: release records, and the keys that they are sealed with
# serve/certificate: the certificates of webhooks and query endpoint
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, update, delete]
{{- if .Values.agents.enabled }}
# clusters/access: an agent may patch its outbox, and the manager must have a right to grant it
- apiGroups: [""]
  resources: [secrets]
  verbs: [patch]
{{- end }}
{{- if .Values.agents.enabled }}
# clusters/access: accounts of agents
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- if .Values.agents.enabled }}
# clusters/access: tokens of agents
- apiGroups: [""]
  resources: [serviceaccounts/token]
  verbs: [create]
{{- end }}
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
{{- range .Values.clusterAPI.providers }}
# clusters/cluster: objects that Clusters of Cluster API refer to: control planes, for their version, and objects for templates
- apiGroups: [{{ .group }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
{{- end }}
{{- end }}
{{- range .Values.providerKinds }}
# clusters/cluster: objects that providerRef and objectRef of valuesFrom may name
- apiGroups: [{{ .group }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
{{- end }}
{{- if (and .Values.webhook.enabled (not .Values.webhook.certManager.enabled)) }}
# serve/webhook: the CA of the webhooks' certificate
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "trellis.admissionName" . | quote }}]
  verbs: [get, patch]
{{- end }}
{{- if or .Values.metrics.secure .Values.query.enabled }}
# cmd/internal/manager: authenticates clients that read metrics
# serve/query: authenticates clients of the query endpoint
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if or .Values.metrics.secure .Values.query.enabled }}
# cmd/internal/manager: authorizes clients that read metrics
# serve/query: authorizes clients of the query endpoint
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if .Values.agents.enabled }}
# clusters/access: certificates of agents
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests]
  verbs: [get, create, delete]
{{- end }}
{{- if (and .Values.agents.enabled .Values.agents.approve) }}
# clusters/access: certificates of agents
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests/approval]
  verbs: [update]
{{- end }}
{{- if (and .Values.agents.enabled .Values.agents.approve) }}
# clusters/access: certificates of agents
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [{{ include "trellis.signers" . }}]
  verbs: [approve]
{{- end }}
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
# clusters/cluster: Clusters of Cluster API are watched
# clusters/cluster: requests for installations are removed from their Cluster
# controllers/clusterupgrade: annotations that delay upgrades are set on Clusters and removed
- apiGroups: [cluster.x-k8s.io]
  resources: [clusters]
  verbs: [get, list, watch, patch]
{{- end }}
# base/loop: events about changes, in the namespace of their object
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# controllers/addon: available catalogues
# controllers/clusterupgrade: the last condition UpgradeHeld
# controllers/coreaddon: the core part of available catalogues
# controllers/coreaddon: available catalogues, as metadata
# fleet/mergedcatalogue: merged catalogues
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [get, list, watch, create, update, patch, control]
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
# controllers/addon: some API servers require it for changes of an owner; the names are those of Clusters
- apiGroups: [kubermatic.k8c.io]
  resources: [addoncatalogues]
  verbs: [delete]
{{- end }}
{{- if (not (has "cluster-api" .Values.clusterAPI.kinds)) }}
# controllers/addon: some API servers require it for changes of an owner
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
# controllers/addon: installations that a Cluster requests
# controllers/addoninstallation: installations are read, and have a finalizer
# controllers/addonset: installations of sets
# controllers/clusterupgrade: installations that upgrades wait for
# controllers/coreaddon: core add-ons
- apiGroups: [kubermatic.k8c.io]
  resources: [addoninstallations]
  verbs: [get, list, watch, create, patch, delete, control]
# controllers/addoninstallation: the status of installations
- apiGroups: [kubermatic.k8c.io]
  resources: [addoninstallations/status]
  verbs: [patch]
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# clusters/cluster: an Addon of KKP that an installation replaces has to be deleted first
- apiGroups: [kubermatic.k8c.io]
  resources: [addons]
  verbs: [list, watch]
{{- end }}
# controllers/addoninstallation: whether the set of an installation is being deleted
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
# clusters/cluster: Clusters are watched
# clusters/cluster: requests for installations are removed from their Cluster
# controllers/standalone: the finalizer of a Cluster
- apiGroups: [kubermatic.k8c.io]
  resources: [clusters]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if .Values.standalone.enabled }}
# controllers/standalone: the status of a Cluster, if KKP does not write it
- apiGroups: [kubermatic.k8c.io]
  resources: [clusters/status]
  verbs: [patch]
{{- end }}
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# clusters/cluster: KKP's data for templates
- apiGroups: [kubermatic.k8c.io]
  resources: [ipamallocations]
  verbs: [list, watch]
{{- end }}
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# clusters/cluster: KKP's data for templates
- apiGroups: [kubermatic.k8c.io]
  resources: [kubermaticconfigurations]
  verbs: [list, watch]
{{- end }}
{{- if (has "kkp" .Values.clusterAPI.kinds) }}
# clusters/cluster: KKP's data for templates
- apiGroups: [kubermatic.k8c.io]
  resources: [seeds]
  verbs: [list, watch]
{{- end }}
{{- if .Values.agents.enabled }}
# clusters/access: the rights that the platform allows agents
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  verbs: [list, watch]
{{- end }}
{{- if .Values.agents.enabled }}
# clusters/access: rights of agents
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, create, update, delete]
{{- end }}
{{- if or .Values.agents.enabled .Values.query.enabled }}
# clusters/access: rights of agents
# serve/query: candidates for the namespaces whose installations a client may list
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [list, watch]
{{- end }}
{{- if .Values.agents.enabled }}
# clusters/access: rights of agents
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- end }}
{{- define "trellis.rights.platform" -}}
# clusters/cluster: the identity of each Cluster's user cluster, until it is deleted
# controllers/sourcecheck: results of checks of sources
# install/pullsecret: records of the copies of the pull Secret in user clusters
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, update, delete]
# base/fence: events about the leader
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# base/fence: RBAC can't bind a creation to a name
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# base/fence: election of the leader
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "trellis.lease" . | quote }}]
  verbs: [get, update]
{{- end }}
{{- define "trellis.rights.public" -}}
{{- if .Values.query.enabled }}
# serve/query: how clients reach and trust the query endpoint
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [addon-query]
  verbs: [patch]
{{- end }}
{{- end }}
