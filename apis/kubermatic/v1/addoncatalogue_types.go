package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddonCatalogue lists add-ons with their versions. Objects of this kind have one of four roles, told apart by label
// addons.kubermatic.k8c.io/role: authored by an admin (no label), generated from a git catalogue, merged (on a seed, one
// object per add-on) and available (in a cluster namespace: what fits that cluster, names, versions and short texts only).
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
type AddonCatalogue struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec says which add-ons exist.
	// +required
	Spec AddonCatalogueSpec `json:"spec,omitzero"`
	// status says what became of the catalogue.
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

// CatalogueType tells catalogues of the platform's own core add-ons from all others.
//
// +kubebuilder:validation:Enum=Custom;Core
type CatalogueType string

const (
	// CatalogueCustom is a catalogue whose add-ons users may install.
	CatalogueCustom CatalogueType = "Custom"
	// CatalogueCore is a catalogue of core add-ons; the names it uses are reserved.
	CatalogueCore CatalogueType = "Core"
)

// AddonCatalogueSpec says which add-ons exist: either by listing them or by naming a git repository that does.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.git) && has(self.addons))",message="set either git or addons, not both: a git catalogue takes its add-ons from the repository"
// +kubebuilder:validation:XValidation:rule="self.type == 'Core' || !has(self.addons) || !self.addons.exists(a, a.versions.exists(v, has(v.template) && has(v.template.clusterSecrets) && v.template.clusterSecrets))",message="template.clusterSecrets is for Core catalogues: take it out"
type AddonCatalogueSpec struct {
	// type is Custom or Core. Names used by a Core catalogue are reserved for Core catalogues. It can't be changed.
	// +optional
	// +default="Custom"
	// +kubebuilder:default=Custom
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type can't be changed: delete the catalogue and create it anew"
	Type CatalogueType `json:"type,omitempty"`
	// priority decides which of two Core catalogues wins that define the same version of an add-on, and which of two Custom catalogues owns
	// an add-on that is new in both: the higher one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`
	// git names a repository that holds the add-ons.
	// +optional
	Git *CatalogueGit `json:"git,omitempty"`
	// addons lists the add-ons.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Addons []Addon `json:"addons,omitempty"`
}

// CatalogueGit is a repository whose *.yaml files below path describe add-ons.
type CatalogueGit struct {
	// remote is the URL of the repository, https or ssh, without password. By ssh, secretRef is needed.
	// +required
	Remote GitRemote `json:"remote,omitempty"`
	// ref says which commit to take. Absent: branch main.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// path is the folder in the repository, relative to its top. Absent: the top.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// interval is the time between two looks at the repository, at least 10s. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="interval must be at least 10s"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret with credentials for the repository. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt holds the certificate authorities of the server.
	// +optional
	CASecretRef *LocalReference `json:"caSecretRef,omitempty"`
}

// GitRemote is the URL of a git repository: https://host/path, ssh://user@host/path, or user@host:path, which is ssh, too.
// Passwords and keys don't belong into it: use secretRef.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^(https?://[^/@\s]+(/\S*)?|ssh://(\w[A-Za-z0-9._-]*@)?[A-Za-z0-9\[][A-Za-z0-9._:\]-]*/[A-Za-z0-9._~+@,=/-]+|\w[A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*:[A-Za-z0-9._~+@,=/][A-Za-z0-9._~+@,=/-]*)$`
type GitRemote string

// GitRef says which commit of a repository to take. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.branch), has(self.tag), has(self.commit), has(self.semver)].filter(x, x).size() == 1",message="set exactly one of branch, tag, commit and semver"
type GitRef struct {
	// branch takes the tip of a branch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`
	// tag takes the commit of a tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Tag string `json:"tag,omitempty"`
	// commit takes one commit by its full hash.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Commit string `json:"commit,omitempty"`
	// semver takes the newest tag in a semantic version range.
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

// VersionRange is a range of semantic versions, such as ">= 1.34, < 1.38", "1.x", "~1.2", "1.2 - 1.4" or "<1 || >=2".
// The rules here tell the usual mistakes; their cost is multiplied by every version of every add-on. What else is no range is
// refused by admission, and a catalogue with one says Invalid and is not merged.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:XValidation:rule=`self.matches(r'\d|x') || self in ['*', 'X']`,message="this is no range of versions: write it like \">= 1.34, < 1.38\" or \"1.x\""
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'\W$') || self.endsWith('*') || self.endsWith(' ')`,message="a range ends with a version: write it like \">= 1.34, < 1.38\" or \"1.x\""
type VersionRange string

// AddonName is the name of an add-on, a DNS label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type AddonName string

// Slot is the place of an add-on in the order in which a cluster gets its first ones.
//
// +kubebuilder:validation:Enum=CNI;CPI;CSI;System
type Slot string

const (
	// SlotCNI is for the cluster's network: nothing comes before it.
	SlotCNI Slot = "CNI"
	// SlotCPI is for the cloud provider, once the network is Applied.
	SlotCPI Slot = "CPI"
	// SlotCSI is for storage, once network and cloud provider are Applied.
	SlotCSI Slot = "CSI"
	// SlotSystem is for what else a cluster needs to work, once those before it are Applied.
	SlotSystem Slot = "System"
)

// Addon is one add-on with all its versions.
type Addon struct {
	// name identifies the add-on, a DNS label.
	// +required
	Name AddonName `json:"name,omitempty"`
	// slot is the add-on's place in the order of a cluster's first installations: CNI, CPI, CSI, System, each once those before it are
	// Applied. Absent: the rest, which comes once all of these are Ready.
	// +optional
	Slot Slot `json:"slot,omitempty"`
	// targetNamespace is for installations that name none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// createNamespace is for installations that name no target namespace.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// displayName is the name that users read.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// description says what the add-on is for.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
	// documentationURL leads to the add-on's documentation.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://\S+$`
	DocumentationURL string `json:"documentationURL,omitempty"`
	// versions lists the versions; two spellings of one semantic version are the same version and are refused.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Versions []AddonVersion `json:"versions,omitempty"`
}

// AddonVersion is one version of an add-on: where it comes from, how it is rendered, which clusters it fits.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) == has(self.source)",message="template and source belong together: set both, source beside template and not below it"
// +kubebuilder:validation:XValidation:rule="!has(self.source) || !has(self.source.helm) || !has(self.template) || self.template.method == 'helm'",message="source.helm needs template.method helm"
type AddonVersion struct {
	// version is the version's name; compared as a semantic version where it is one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$`
	Version string `json:"version,omitempty"`
	// deprecated is a sentence on why not to use this version any more. New installations don't choose it by range.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Deprecated string `json:"deprecated,omitempty"`
	// draft versions are not offered, and no range chooses them. An installation that names one exactly gets it.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// template says how the version is rendered.
	// +optional
	Template *Template `json:"template,omitempty"`
	// source says where the version's files come from.
	// +optional
	Source *Source `json:"source,omitempty"`
	// constraints say which clusters the version fits. Absent: all.
	// +optional
	Constraints *Constraints `json:"constraints,omitempty"`
	// values are the catalogue's defaults, above those of a chart and below all others.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *runtime.RawExtension `json:"values,omitempty"`
	// valuesTemplate is a Go template over the template data that gives values in YAML, above values.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
}

// Method says how files become objects.
//
// +kubebuilder:validation:Enum=go-template;helm
type Method string

const (
	// MethodGoTemplate renders manifests as Go templates over KKP's template data.
	MethodGoTemplate Method = "go-template"
	// MethodHelm renders a Helm chart and keeps a Helm release.
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
	// atomic goes back to the last good revision when an upgrade fails.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// requiredResourceTypes are kinds that the user cluster must serve before anything is rendered or applied.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RequiredResourceTypes []ResourceType `json:"requiredResourceTypes,omitempty"`
	// crds says what happens to CustomResourceDefinitions.
	// +optional
	CRDs *CRDPolicy `json:"crds,omitempty"`
	// onClusterDeletion says what becomes of the add-on when its Cluster is deleted. Absent: LetGo.
	// +optional
	OnClusterDeletion OnClusterDeletion `json:"onClusterDeletion,omitempty"`
	// health says by what the add-on is judged to be healthy. Absent: by its workloads.
	// +optional
	Health *HealthCheck `json:"health,omitempty"`
	// access asks for credentials for the hub, with which an agent in the user cluster logs in to the seed. It needs a platform that
	// gives them out.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Access []Access `json:"access,omitempty"`
	// helm holds options of method helm.
	// +optional
	Helm *HelmOptions `json:"helm,omitempty"`
	// clusterSecrets asks for the cluster's secrets in template data: the kubeconfig, the admin token and the provider's
	// credentials. Only versions of Core catalogues may; values by users then hold no template marks.
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
	// CRDSkip leaves CustomResourceDefinitions out.
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
	// CRDRemoveWhenUnused removes those that hold no objects any more.
	CRDRemoveWhenUnused CRDRemove = "WhenUnused"
	// CRDRemoveKeep keeps them.
	CRDRemoveKeep CRDRemove = "Keep"
)

// OnClusterDeletion says what becomes of an add-on when its Cluster is deleted.
//
// +kubebuilder:validation:Enum=LetGo;Remove
type OnClusterDeletion string

const (
	// ClusterDeletionLetGo leaves everything to go with the cluster, without a call to it.
	ClusterDeletionLetGo OnClusterDeletion = "LetGo"
	// ClusterDeletionRemove removes it while the Cluster is being deleted and its API server answers, for 10 minutes at most: for what it
	// made outside of the cluster, such as load balancers and volumes. The Cluster does not wait for it.
	ClusterDeletionRemove OnClusterDeletion = "Remove"
)

// CRDPolicy says what happens to CustomResourceDefinitions.
type CRDPolicy struct {
	// apply says how they are written. Absent: CreateReplace.
	// +optional
	Apply CRDApply `json:"apply,omitempty"`
	// remove says what happens on removal. Absent: WhenUnused for go-template, Keep for helm.
	// +optional
	Remove CRDRemove `json:"remove,omitempty"`
}

// HelmOptions are options of method helm.
type HelmOptions struct {
	// releaseName of the Helm release. Absent: from the installation's name.
	// +optional
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// disableHooks leaves the chart's hooks out.
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
	// displayName is the label that users read.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// internalName is the dotted path of the value, such as spec.replicas; "\." stands for a dot in a key.
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
	// helpText is shown beside the field.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	HelpText string `json:"helpText,omitempty"`
	// default is the value where none is given.
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

// Source says where files come from. Exactly one field is set.
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
	// remote is the URL of the repository, https or ssh, without password. By ssh, secretRef is needed.
	// +required
	Remote GitRemote `json:"remote,omitempty"`
	// ref says which commit to take. Absent: branch main.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// path is the folder in the repository, relative to its top. Absent: the top.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// secretRef names a Secret with credentials for the repository. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt holds the certificate authorities of the server.
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
	// caSecretRef names a Secret whose key ca.crt holds the certificate authorities of the registry.
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
	// version of the chart, exact.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// secretRef names a Secret with credentials. Custom catalogues need its annotation used-by.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt holds the certificate authorities of the server.
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

// AddonCatalogueStatus says what became of a catalogue.
type AddonCatalogueStatus struct {
	// conditions: Ready, Fetched (git) and Conflicting; on available ones Ready and AddonsReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// revision is the commit that a git catalogue was taken from.
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
	// seeds says how far each seed is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Seeds []SeedSync `json:"seeds,omitempty"`
	// syncedSeeds is the number of seeds that have everything of the catalogue.
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
	// core counts the cluster's core add-ons.
	// +optional
	Core *CoreAddonCounts `json:"core,omitempty"`
}

// CatalogueConflict is a version that more than one catalogue defines, an add-on of another catalogue, or a reserved name.
type CatalogueConflict struct {
	// addon is the name of the add-on.
	// +required
	Addon string `json:"addon,omitempty"`
	// version is empty where the whole add-on is concerned.
	// +optional
	Version string `json:"version,omitempty"`
	// wonBy is the name of the catalogue whose entry counts, a generated one too; with OwnedByOther, of the one that people wrote.
	// +required
	WonBy string `json:"wonBy,omitempty"`
	// reason is Duplicate, OwnedByOther or CoreReserved.
	// +required
	Reason string `json:"reason,omitempty"`
}

// SeedSync says how far one seed is.
type SeedSync struct {
	// name of the Seed.
	// +required
	Name string `json:"name,omitempty"`
	// synced is true when the seed has everything of the catalogue.
	// +optional
	Synced bool `json:"synced,omitempty"`
	// revision is the digest of the merged state that the seed has.
	// +optional
	Revision string `json:"revision,omitempty"`
	// lastSyncTime is when that revision arrived.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`
	// message says what is wrong and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// sources says which add-ons' content installations on the seed can't get.
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
	// message says what would be needed.
	// +optional
	Message string `json:"message,omitempty"`
}

// CoreAddonCounts counts the core add-ons of a cluster.
type CoreAddonCounts struct {
	// total is the size of the set.
	// +optional
	Total int32 `json:"total,omitempty"`
	// ready is the number of those that are Ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// failing is the number of those whose Ready is False.
	// +optional
	Failing int32 `json:"failing,omitempty"`
	// missing is the number of those that no catalogue has.
	// +optional
	Missing int32 `json:"missing,omitempty"`
}
