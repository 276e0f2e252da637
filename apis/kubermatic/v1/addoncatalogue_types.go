package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddonCatalogue defines add-ons with their versions. Label addons.kubermatic.k8c.io/role distinguishes four roles of this kind: authored
// by an admin (no label), generated from a git catalogue, merged (on a seed, one object per add-on) and available (in a cluster
// namespace: names, versions and short texts of the add-ons that fit that cluster).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=addoncat,categories=kubermatic
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Delete=false,Prune=false"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Addons",type=integer,JSONPath=`.status.addons`
// +kubebuilder:printcolumn:name="Versions",type=integer,JSONPath=`.status.versions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Sources",type=string,JSONPath=`.status.conditions[?(@.type=="SourcesReady")].message`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Seeds",type=integer,priority=1,JSONPath=`.status.syncedSeeds`
// +kubebuilder:printcolumn:name="Conflicting",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Conflicting")].status`
// +kubebuilder:printcolumn:name="Supported-By",type=string,priority=1,JSONPath=`.spec.supportedBy`
type AddonCatalogue struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec defines the add-ons.
	// +required
	Spec AddonCatalogueSpec `json:"spec,omitzero"`
	// status reports the state of the catalogue.
	// +optional
	Status AddonCatalogueStatus `json:"status,omitzero"`
}

// AddonCatalogueList is a list of AddonCatalogues.
//
// +kubebuilder:object:root=true
type AddonCatalogueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonCatalogue `json:"items"`
}

// CatalogueType distinguishes catalogues of the platform's own core add-ons from all others.
//
// +kubebuilder:validation:Enum=Custom;Core
type CatalogueType string

const (
	// CatalogueCustom is a catalogue whose add-ons users may install.
	CatalogueCustom CatalogueType = "Custom"
	// CatalogueCore is a catalogue of core add-ons; the names it uses are reserved.
	CatalogueCore CatalogueType = "Core"
)

// AddonCatalogueSpec defines add-ons, either as a list or by a git repository that contains them.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.git) && has(self.addons))",message="set either git or addons, not both: a git catalogue takes its add-ons from the repository"
// +kubebuilder:validation:XValidation:rule="self.type == 'Core' || !has(self.addons) || !self.addons.exists(a, a.versions.exists(v, has(v.template) && has(v.template.clusterSecrets) && v.template.clusterSecrets))",message="only Core catalogues may set template.clusterSecrets: remove it"
type AddonCatalogueSpec struct {
	// type is Custom or Core. Names in a Core catalogue are reserved for Core catalogues. It can't be changed.
	// +optional
	// +default="Custom"
	// +kubebuilder:default=Custom
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type can't be changed: delete the catalogue and create it again"
	Type CatalogueType `json:"type,omitempty"`
	// priority decides between catalogues, and the higher priority wins. It decides which of two Core catalogues provides a version of an
	// add-on that both define, and which of two Custom catalogues owns an add-on that is new in both.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`
	// supportedBy names who answers for the add-ons, such as a team or a vendor, in one line. An add-on may name another.
	// +optional
	SupportedBy SupportedBy `json:"supportedBy,omitempty"`
	// git names a repository that contains the add-ons.
	// +optional
	Git *CatalogueGit `json:"git,omitempty"`
	// addons lists the add-ons.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Addons []Addon `json:"addons,omitempty"`
}

// SupportedBy names the team or vendor that supports add-ons, in one line.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[^\pC\p{Zl}\p{Zp}]+$`
type SupportedBy string

// CatalogueGit is a repository whose *.yaml files below path define add-ons.
type CatalogueGit struct {
	// remote is the URL of the repository, https or ssh, without password. ssh needs secretRef.
	// +required
	Remote GitRemote `json:"remote,omitempty"`
	// ref selects the commit. Absent: branch main.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// path is the folder in the repository, relative to its top. Absent: the top.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// interval is the time between two checks of the repository, at least 10s. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="interval must be at least 10s"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret with credentials for the repository. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt contains the certificate authorities of the server.
	// +optional
	CASecretRef *LocalReference `json:"caSecretRef,omitempty"`
}

// GitRemote is the URL of a git repository: https://host/path, ssh://user@host/path, or user@host:path (ssh). Put passwords and keys into
// the Secret of secretRef.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^(https?://[^/@\s]+(/\S*)?|ssh://(\w[A-Za-z0-9._-]*@)?[A-Za-z0-9\[][A-Za-z0-9._:\]-]*/[A-Za-z0-9._~+@,=/-]+|\w[A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*:[A-Za-z0-9._~+@,=/][A-Za-z0-9._~+@,=/-]*)$`
type GitRemote string

// GitRef selects a commit of a repository. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.branch), has(self.tag), has(self.commit), has(self.semver)].filter(x, x).size() == 1",message="set exactly one of branch, tag, commit and semver"
type GitRef struct {
	// branch selects the newest commit of a branch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`
	// tag selects the commit of a tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Tag string `json:"tag,omitempty"`
	// commit selects a commit by its full hash.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Commit string `json:"commit,omitempty"`
	// semver selects the newest tag in a semantic version range.
	// +optional
	Semver VersionRange `json:"semver,omitempty"`
}

// LocalReference names an object in the namespace of the referring object.
type LocalReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// VersionRange is a range of semantic versions, such as ">= 1.34, < 1.38", "1.x", "~1.2", "1.2 - 1.4" or "<1 || >=2". The rules here
// refuse the usual mistakes; their cost is multiplied by every version of every add-on. Admission refuses all other invalid ranges; a
// catalogue with one is Invalid and not merged.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:XValidation:rule=`self.matches(r'\d|x') || self in ['*', 'X']`,message="this is not a range of versions: write it like \">= 1.34, < 1.38\" or \"1.x\""
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'\W$') || self.endsWith('*') || self.endsWith(' ')`,message="a range ends with a version: write it like \">= 1.34, < 1.38\" or \"1.x\""
type VersionRange string

// AddonName is the name of an add-on, a DNS label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type AddonName string

// Slot is the place of an add-on in the order of a cluster's first installations.
//
// +kubebuilder:validation:Enum=CNI;CPI;CSI;System
type Slot string

const (
	// SlotCNI is for the cluster's network, and comes first.
	SlotCNI Slot = "CNI"
	// SlotCPI is for the cloud provider, once the network is Applied.
	SlotCPI Slot = "CPI"
	// SlotCSI is for storage, once network and cloud provider are Applied.
	SlotCSI Slot = "CSI"
	// SlotSystem is for other prerequisites of a cluster, once the slots before it are Applied.
	SlotSystem Slot = "System"
)

// Addon is one add-on with all its versions.
type Addon struct {
	// name identifies the add-on, a DNS label.
	// +required
	Name AddonName `json:"name,omitempty"`
	// slot is the add-on's place in the order of a cluster's first installations: CNI, CPI, CSI, System. An add-on with a slot is applied once
	// all add-ons with an earlier slot are Applied. Absent: the add-on is applied once all add-ons with a slot are Ready.
	// +optional
	Slot Slot `json:"slot,omitempty"`
	// targetNamespace is the target namespace of installations that name no target namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// createNamespace is the value of createNamespace for installations that name no target namespace.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// displayName is the name that users see.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// description explains what the add-on is for.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
	// documentationURL links to the add-on's documentation.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://\S+$`
	DocumentationURL string `json:"documentationURL,omitempty"`
	// supportedBy names who answers for the add-on. Absent: spec.supportedBy of its catalogue.
	// +optional
	SupportedBy SupportedBy `json:"supportedBy,omitempty"`
	// versions lists the versions; two spellings of one semantic version are the same version and are refused.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Versions []AddonVersion `json:"versions,omitempty"`
}

// AddonVersion is one version of an add-on: its source, how it is rendered, which clusters it fits.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) == has(self.source)",message="set both template and source, next to each other: source is not a field of template"
// +kubebuilder:validation:XValidation:rule="!has(self.source) || !has(self.source.helm) || !has(self.template) || self.template.method == 'helm'",message="source.helm needs template.method helm"
type AddonVersion struct {
	// version is the version's name; compared as a semantic version if it is one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$`
	Version string `json:"version,omitempty"`
	// deprecated explains why users should no longer choose this version. Ranges no longer choose it for new installations.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Deprecated string `json:"deprecated,omitempty"`
	// draft versions are not offered, and ranges don't choose them. An installation that names a draft exactly gets it.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// template defines how the version is rendered.
	// +optional
	Template *Template `json:"template,omitempty"`
	// source is the source of the version's files.
	// +optional
	Source *Source `json:"source,omitempty"`
	// constraints define which clusters the version fits. Absent: all clusters.
	// +optional
	Constraints *Constraints `json:"constraints,omitempty"`
	// values are the catalogue's defaults. They override the chart's own values, and all other values override them.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *runtime.RawExtension `json:"values,omitempty"`
	// valuesTemplate is a Go template over the template data that renders values in YAML. These override the values in field values.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// valuesFrom reads default values from objects in the namespace of each cluster. In the name of an object, $(cluster) is replaced by the
	// name of the Cluster. These values override valuesTemplate, and later entries override earlier ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ValuesFrom []VersionValuesSource `json:"valuesFrom,omitempty"`
}

// VersionValuesSource is one source of values of a version.
type VersionValuesSource struct {
	// objectRef reads a part of an object of an allowed kind.
	// +required
	ObjectRef *ObjectReference `json:"objectRef,omitempty"`
}

// Method says how files become objects.
//
// +kubebuilder:validation:Enum=go-template;helm
type Method string

const (
	// MethodGoTemplate renders manifests as Go templates over KKP's template data.
	MethodGoTemplate Method = "go-template"
	// MethodHelm renders a Helm chart and records a Helm release.
	MethodHelm Method = "helm"
)

// Template says how a version is rendered and applied.
//
// +kubebuilder:validation:XValidation:rule="self.method == 'helm' || !has(self.helm)",message="helm options need method helm"
type Template struct {
	// method is go-template or helm.
	// +required
	Method Method `json:"method,omitempty"`
	// timeout is the time until everything must be healthy, from 1s to 24h. Absent: 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must be between 1s and 24h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// atomic rolls back to the last good revision when an upgrade fails.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// requiredResourceTypes are kinds that the user cluster must serve before anything is rendered or applied.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RequiredResourceTypes []ResourceType `json:"requiredResourceTypes,omitempty"`
	// crds defines how CustomResourceDefinitions are written and removed.
	// +optional
	CRDs *CRDPolicy `json:"crds,omitempty"`
	// onClusterDeletion defines what happens to the add-on when its Cluster is deleted. Absent: LetGo.
	// +optional
	OnClusterDeletion OnClusterDeletion `json:"onClusterDeletion,omitempty"`
	// health defines how the health of the add-on is evaluated. Absent: by its workloads.
	// +optional
	Health *HealthCheck `json:"health,omitempty"`
	// access requests credentials for the hub, which is the seed's API server. An agent in the user cluster uses them to log in to the hub.
	// The platform has to enable credentials for agents.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Access []Access `json:"access,omitempty"`
	// helm has options of method helm.
	// +optional
	Helm *HelmOptions `json:"helm,omitempty"`
	// clusterSecrets adds the cluster's secrets to template data: the kubeconfig, the admin token and the provider's credentials. Only
	// versions of Core catalogues may set it; values by users then can't contain template marks.
	// +optional
	ClusterSecrets bool `json:"clusterSecrets,omitempty"`
	// formSpec describes the fields that a user fills in.
	// +optional
	// +listType=map
	// +listMapKey=internalName
	// +kubebuilder:validation:MaxItems=32
	FormSpec []FormField `json:"formSpec,omitempty"`
}

// ResourceType is a kind that a cluster serves.
type ResourceType struct {
	// group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// version of the kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`
	// kind is the Kind, such as Prometheus, not the resource name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
}

// CRDApply says how CustomResourceDefinitions are written.
//
// +kubebuilder:validation:Enum=Skip;Create;CreateReplace
type CRDApply string

const (
	// CRDSkip does not write CustomResourceDefinitions.
	CRDSkip CRDApply = "Skip"
	// CRDCreate creates those that are missing.
	CRDCreate CRDApply = "Create"
	// CRDCreateReplace creates and updates them.
	CRDCreateReplace CRDApply = "CreateReplace"
)

// CRDRemove says what happens to CustomResourceDefinitions when the add-on is removed.
//
// +kubebuilder:validation:Enum=WhenUnused;Keep
type CRDRemove string

const (
	// CRDRemoveWhenUnused removes those that have no objects any more.
	CRDRemoveWhenUnused CRDRemove = "WhenUnused"
	// CRDRemoveKeep keeps them.
	CRDRemoveKeep CRDRemove = "Keep"
)

// OnClusterDeletion says what happens to an add-on when its Cluster is deleted.
//
// +kubebuilder:validation:Enum=LetGo;Remove
type OnClusterDeletion string

const (
	// ClusterDeletionLetGo does nothing: the add-on disappears with the cluster, without a call to it.
	ClusterDeletionLetGo OnClusterDeletion = "LetGo"
	// ClusterDeletionRemove removes the add-on while the Cluster is being deleted and its API server answers, for at most 10 minutes. Use
	// it for add-ons that create load balancers, volumes or other objects outside of the cluster. The deletion of the Cluster does not
	// wait for it.
	ClusterDeletionRemove OnClusterDeletion = "Remove"
)

// CRDPolicy says what happens to CustomResourceDefinitions.
type CRDPolicy struct {
	// apply defines how CustomResourceDefinitions are written. Absent: CreateReplace.
	// +optional
	Apply CRDApply `json:"apply,omitempty"`
	// remove defines what happens to CustomResourceDefinitions when the installation is removed. Absent: WhenUnused for go-template, Keep for
	// helm.
	// +optional
	Remove CRDRemove `json:"remove,omitempty"`
}

// HelmOptions are options of method helm.
type HelmOptions struct {
	// releaseName of the Helm release. Absent: derived from the installation's name.
	// +optional
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// disableHooks omits the chart's hooks.
	// +optional
	DisableHooks bool `json:"disableHooks,omitempty"`
}

// FormFieldType is the type of a form field's value. Only primary types exist.
//
// +kubebuilder:validation:Enum=number;integer;text;boolean;select
type FormFieldType string

// The types of form fields.
const (
	FormNumber  FormFieldType = "number"
	FormInteger FormFieldType = "integer"
	FormText    FormFieldType = "text"
	FormBoolean FormFieldType = "boolean"
	FormSelect  FormFieldType = "select"
)

// FormField is one field that a user fills in.
type FormField struct {
	// displayName is the label that users see.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// internalName is the dotted path of the value, such as spec.replicas; "\." is a dot in a key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	InternalName string `json:"internalName,omitempty"`
	// type of the value.
	// +required
	Type FormFieldType `json:"type,omitempty"`
	// required fields must have a value.
	// +optional
	Required bool `json:"required,omitempty"`
	// helpText is shown with the field.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	HelpText string `json:"helpText,omitempty"`
	// default is the value if the user enters none.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Default *runtime.RawExtension `json:"default,omitempty"`
	// options are the values to choose from, for type select.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	Options []string `json:"options,omitempty"`
}

// Source is the source of a version's files. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.git), has(self.docker), has(self.helm)].filter(x, x).size() == 1",message="set exactly one of git, docker and helm"
type Source struct {
	// git is a folder in a git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// docker is a folder in a container image.
	// +optional
	Docker *ImageSource `json:"docker,omitempty"`
	// helm is a chart in a Helm repository.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`
}

// GitSource is a folder in a git repository.
type GitSource struct {
	// remote is the URL of the repository, https or ssh, without password. ssh needs secretRef.
	// +required
	Remote GitRemote `json:"remote,omitempty"`
	// ref selects the commit. Absent: branch main.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// path is the folder in the repository, relative to its top. Absent: the top.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// secretRef names a Secret with credentials for the repository. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt contains the certificate authorities of the server.
	// +optional
	CASecretRef *LocalReference `json:"caSecretRef,omitempty"`
}

// ImageSource is a folder in a container image.
type ImageSource struct {
	// image is the reference of the image, by tag or digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s@]+(@sha256:[0-9a-f]{64})?$`
	Image string `json:"image,omitempty"`
	// path is the folder in the image. Absent: the root.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// secretRef names a Secret with registry credentials. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt contains the certificate authorities of the registry.
	// +optional
	CASecretRef *LocalReference `json:"caSecretRef,omitempty"`
}

// HelmSource is a chart in a Helm repository.
type HelmSource struct {
	// url of the repository, https:// with an index.yaml, or oci://.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(https?|oci)://[^/@\s]+(/\S*)?$`
	URL string `json:"url,omitempty"`
	// chart is the name of the chart.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`
	Chart string `json:"chart,omitempty"`
	// version is the exact version of the chart.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// secretRef names a Secret with credentials. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt contains the certificate authorities of the server.
	// +optional
	CASecretRef *LocalReference `json:"caSecretRef,omitempty"`
}

// Constraints say which clusters a version fits. An absent range fits all.
type Constraints struct {
	// kkpVersion is the range of KKP versions.
	// +optional
	KKPVersion VersionRange `json:"kkpVersion,omitempty"`
	// k8sVersion is the range of Kubernetes versions.
	// +optional
	K8sVersion VersionRange `json:"k8sVersion,omitempty"`
}

// AddonCatalogueStatus reports the state of a catalogue.
type AddonCatalogueStatus struct {
	// conditions: Ready, Fetched (git) and Conflicting; on available catalogues Ready and AddonsReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// revision is the commit that a git catalogue was read from.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Revision string `json:"revision,omitempty"`
	// addons is the number of add-ons.
	// +optional
	Addons int32 `json:"addons,omitempty"`
	// versions is the number of versions of all add-ons together.
	// +optional
	Versions int32 `json:"versions,omitempty"`
	// conflicts lists versions that two catalogues define, add-ons that another catalogue owns, and reserved names, at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Conflicts []CatalogueConflict `json:"conflicts,omitempty"`
	// conflictCount is the number of all conflicts.
	// +optional
	ConflictCount int32 `json:"conflictCount,omitempty"`
	// seeds reports the state on each seed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Seeds []SeedSync `json:"seeds,omitempty"`
	// syncedSeeds is the number of seeds that have the whole content of the catalogue.
	// +optional
	SyncedSeeds int32 `json:"syncedSeeds,omitempty"`
	// excluded lists versions that don't fit the cluster, at most 200.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Excluded []ExcludedVersion `json:"excluded,omitempty"`
	// excludedCount is the number of all versions that don't fit.
	// +optional
	ExcludedCount int32 `json:"excludedCount,omitempty"`
	// core lists and counts the cluster's core add-ons.
	// +optional
	Core *CoreAddons `json:"core,omitempty"`
}

// CatalogueConflict is a version that more than one catalogue defines, an add-on of another catalogue, or a reserved name.
type CatalogueConflict struct {
	// addon is the name of the add-on.
	// +required
	Addon string `json:"addon,omitempty"`
	// version is empty if the conflict concerns the whole add-on.
	// +optional
	Version string `json:"version,omitempty"`
	// wonBy is the name of the catalogue whose entry is used, even if it is a generated one; with OwnedByOther, the name of the catalogue
	// that people wrote.
	// +required
	WonBy string `json:"wonBy,omitempty"`
	// reason is Duplicate, OwnedByOther or CoreReserved.
	// +required
	Reason string `json:"reason,omitempty"`
}

// SeedSync reports the state of a catalogue on one seed.
type SeedSync struct {
	// name of the Seed.
	// +required
	Name string `json:"name,omitempty"`
	// synced is true if the seed has the whole content of the catalogue.
	// +optional
	Synced bool `json:"synced,omitempty"`
	// revision is the digest of the merged state that the seed has.
	// +optional
	Revision string `json:"revision,omitempty"`
	// lastSyncTime is when the seed got that revision.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`
	// message describes the problem and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// sources lists the add-ons whose content installations on the seed can't get.
	// +optional
	Sources string `json:"sources,omitempty"`
}

// ExcludedVersion is a version that doesn't fit the cluster, with the reason.
type ExcludedVersion struct {
	// addon is the name of the add-on.
	// +required
	Addon string `json:"addon,omitempty"`
	// version that doesn't fit.
	// +required
	Version string `json:"version,omitempty"`
	// reason is KKPVersion, K8sVersion, ConstraintInvalid, Core or Draft.
	// +required
	Reason string `json:"reason,omitempty"`
	// message names the versions that are required.
	// +optional
	Message string `json:"message,omitempty"`
}
