package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// AddonInstallation requests one add-on in a user cluster: the cluster of spec.clusterName, or KKP's cluster of the namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=addoninst,categories=kubermatic
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Delete=false,Prune=false"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of an AddonInstallation has at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !self.spec.dependsOn.exists(n, n == self.metadata.name)",message="an installation can't depend on itself: remove its name from dependsOn"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Addon",type=string,JSONPath=`.spec.addonRef.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Target-Namespace",type=string,JSONPath=`.spec.targetNamespace`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Deleting",type=date,JSONPath=`.metadata.deletionTimestamp`
// +kubebuilder:printcolumn:name="Core",type=boolean,priority=1,JSONPath=`.spec.coreAddon`
// +kubebuilder:printcolumn:name="Update",type=string,priority=1,JSONPath=`.status.availableUpdate`
// +kubebuilder:printcolumn:name="Objects",type=string,priority=1,JSONPath=`.status.objects.summary`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddonInstallation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the requested state.
	// +required
	Spec AddonInstallationSpec `json:"spec,omitzero"`
	// status is the observed state.
	// +optional
	Status AddonInstallationStatus `json:"status,omitzero"`
}

// AddonInstallationList is a list of AddonInstallations.
//
// +kubebuilder:object:root=true
type AddonInstallationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonInstallation `json:"items"`
}

// ReconcileStrategy says how long Trellis reconciles an installation.
//
// +kubebuilder:validation:Enum=Continuous;Once
type ReconcileStrategy string

const (
	// ReconcileContinuous applies every change and repairs drift.
	ReconcileContinuous ReconcileStrategy = "Continuous"
	// ReconcileOnce applies nothing after the first Ready.
	ReconcileOnce ReconcileStrategy = "Once"
)

// DeletionPolicy says what the deletion of an installation does to its applied objects.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionDelete removes them.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves them.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// AddonInstallationSpec is the requested state.
//
// +kubebuilder:validation:XValidation:rule="has(self.releaseName) == has(oldSelf.releaseName) && (!has(self.releaseName) || self.releaseName == oldSelf.releaseName)",message="releaseName can't be changed: delete the installation and create it again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterName) || has(self.clusterName) && self.clusterName == oldSelf.clusterName",message="clusterName can't be changed: delete the installation and create it again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetNamespace) || has(self.targetNamespace) && self.targetNamespace == oldSelf.targetNamespace",message="targetNamespace can't be changed: delete the installation and create it again"
type AddonInstallationSpec struct {
	// clusterName names a Cluster of this namespace. Absent: KKP's Cluster of the namespace. Without KKP, it is required. It can be set once.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`
	// addonRef names the add-on and its version. Its name can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="addonRef.name can't be changed: correct it if it is misspelt; for another add-on, delete the installation and create it again"
	AddonRef AddonReference `json:"addonRef,omitzero"`
	// coreAddon is true only on installations of the core add-on controller. It can't be changed.
	// +optional
	// +default=false
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="coreAddon can't be changed: only the core add-on controller creates core installations; to remove one permanently, remove it from ConfigMap custom-core-addons or change the setting of the Cluster that requests it"
	CoreAddon bool `json:"coreAddon"`
	// targetNamespace is the namespace in the user cluster for objects without one. Absent: the catalogue's namespace for the add-on,
	// which Trellis then writes here, with the catalogue's createNamespace. It can be set once.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// createNamespace creates the target namespace if the user cluster doesn't have it.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// releaseName of the Helm release. It overrides template.helm.releaseName of the catalogue. Add-ons of other methods have no release. It
	// can't be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// values are the user's values. They override all others.
	// +nullable
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *runtime.RawExtension `json:"values,omitempty"`
	// valuesFrom reads values from labelled objects in the installation's namespace. Later entries override earlier ones, and values overrides
	// all entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`
	// valuesTemplate is a Go template over the template data that renders values in YAML. These override defaults of the form, and valuesFrom
	// overrides them. The template never sees secrets of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// dependsOn names other installations of the same cluster, which may be created later. Before this installation is applied for the first
	// time, each of them has to be Ready, without a time limit. Before another version is applied, the installation waits for them for at most
	// the seed's --order-timeout.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	DependsOn []InstallationName `json:"dependsOn,omitempty"`
	// paused stops all work on the installation except its removal.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// reconcileStrategy is Continuous or Once.
	// +optional
	// +default="Continuous"
	// +kubebuilder:default=Continuous
	ReconcileStrategy ReconcileStrategy `json:"reconcileStrategy,omitempty"`
	// deletionPolicy is Delete or Orphan.
	// +optional
	// +default="Delete"
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// InstallationName is the name of an AddonInstallation, a DNS subdomain.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type InstallationName string

// AddonReference names an add-on and a version of it.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.digest) || has(self.version) && !self.version.matches(r'[<>=~^*,|\s]|^v?([^.+-]*\.)*[xX]([.+-]|$)')`,message="digest needs an exact version: it identifies the content of that version"
type AddonReference struct {
	// name of the add-on.
	// +required
	Name AddonName `json:"name,omitempty"`
	// version is an exact version or a range (with any of "<>=~^*,|", a space or an x part). Absent: the newest version that fits.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?|\s*(([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?((\s*,\s*|\s+)([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)*|v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?\s+-\s+v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)(\s*\|\|(\s*([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?((\s*,\s*|\s+)([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)*|\s+v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?\s+-\s+v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)){0,15}\s*)$')`,message="this is neither a version nor a range: write it like \"1.2.3\", \">= 1.34, < 1.38\" or \"1.x\""
	Version string `json:"version,omitempty"`
	// digest pins the content of the version. It is the SHA-256 of the canonical JSON of the version's template, source, values,
	// valuesTemplate and valuesFrom in the catalogue, without its name, deprecated and constraints. status.lastApplied.entryDigest has the digest of the
	// applied content. If the catalogue has other content under that version, the applied content stays and is reconciled from its record.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// ValuesSource is one source of values. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.secretRef), has(self.configMapRef), has(self.providerRef), has(self.objectRef)].filter(x, x).size() == 1",message="set exactly one of secretRef, configMapRef, providerRef and objectRef"
type ValuesSource struct {
	// secretRef reads a key of a Secret.
	// +optional
	SecretRef *KeyReference `json:"secretRef,omitempty"`
	// configMapRef reads a key of a ConfigMap.
	// +optional
	ConfigMapRef *KeyReference `json:"configMapRef,omitempty"`
	// providerRef reads an object of an allowed kind whose status.secretRef names a Secret, as a text or in field name.
	// +optional
	ProviderRef *ProviderReference `json:"providerRef,omitempty"`
	// objectRef reads a part of an object of an allowed kind.
	// +optional
	ObjectRef *ObjectReference `json:"objectRef,omitempty"`
}

// KeyReference names a key of an object in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targetPath) || has(self.key)",message="targetPath needs key: name the key whose text goes there"
type KeyReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// key names the key whose data is YAML, or, with targetPath, one text value. Absent: values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// targetPath is the dotted path where the text of key becomes a value, such as database.password; "\." is a dot in a key. The value
	// is always a text, even if it looks like a number. Absent: key contains a YAML document of values.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	TargetPath string `json:"targetPath,omitempty"`
	// optional references may be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ProviderReference names an object whose status.secretRef names a Secret with values.
type ProviderReference struct {
	// apiGroup of the kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// optional: the object may be missing, and then gives no values. If it exists, its Secret has to exist too.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// AddonInstallationStatus is the observed state.
type AddonInstallationStatus struct {
	// conditions: Ready is the summary; the others report the state of each step.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// cluster is the Cluster of the installation, from the first status on.
	// +optional
	Cluster *ClusterIdentity `json:"cluster,omitempty"`
	// version is the add-on's version in the user cluster; absent until a version is completely applied.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// target is the version that addonRef resolves to, or the installed version if that version is refused. If target differs from version,
	// conditions explain why.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Target string `json:"target,omitempty"`
	// availableUpdate is the newest compatible version above target.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AvailableUpdate string `json:"availableUpdate,omitempty"`
	// artifact is the content of version. Until a version is applied, it is the fetched content.
	// +optional
	Artifact *Artifact `json:"artifact,omitempty"`
	// access lists the version's credentials for the hub (template.access).
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Access []AccessState `json:"access,omitempty"`
	// configs lists the objects that objectRef names, in the version of the catalogue and in the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=24
	Configs []ConfigState `json:"configs,omitempty"`
	// lastApplied is the state that was last applied to the user cluster.
	// +optional
	LastApplied *AppliedState `json:"lastApplied,omitempty"`
	// onClusterDeletion is Remove while the user cluster has objects that are removed when its Cluster is deleted, as the last applied version
	// requires.
	// +optional
	OnClusterDeletion OnClusterDeletion `json:"onClusterDeletion,omitempty"`
	// release is the Helm release.
	// +optional
	Release *HelmReleaseState `json:"release,omitempty"`
	// objects counts the applied objects.
	// +optional
	Objects *ObjectCounts `json:"objects,omitempty"`
	// inventory counts the installation's objects in the user cluster by kind: the most frequent kinds first, at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Inventory []KindCount `json:"inventory,omitempty"`
	// unhealthy lists objects that are not healthy, at most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Unhealthy []UnhealthyObject `json:"unhealthy,omitempty"`
	// cause is set if the user cluster, and not the add-on, may prevent the installation from being Ready, such as Unschedulable or
	// QuotaExceeded. It is absent if nothing shows that. AddonSets use this field.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// failures counts consecutive failed attempts.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// nextAttempt is the latest time of the next attempt. Obstacles in the user cluster are also checked every 15 s.
	// +optional
	NextAttempt *metav1.Time `json:"nextAttempt,omitempty"`
}

// ClusterIdentity is the name and UID of a Cluster.
type ClusterIdentity struct {
	// group of its kind. Absent: KKP's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// name of the Cluster.
	// +required
	Name string `json:"name,omitempty"`
	// uid of the Cluster.
	// +required
	UID types.UID `json:"uid,omitempty"`
}

// Artifact is fetched content.
type Artifact struct {
	// revision is the source's name of the content: a commit, a chart version, an image digest.
	// +optional
	Revision string `json:"revision,omitempty"`
	// digest of the content.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// AppliedState is the state that was last applied to the user cluster.
type AppliedState struct {
	// addon is the name of the add-on, in its catalogue.
	// +optional
	Addon string `json:"addon,omitempty"`
	// version of the add-on.
	// +optional
	Version string `json:"version,omitempty"`
	// entryDigest is the content digest of the catalogue's version that was applied. It is compared with addonRef.digest.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	EntryDigest string `json:"entryDigest,omitempty"`
	// artifactDigest is the digest of the rendered content.
	// +optional
	ArtifactDigest string `json:"artifactDigest,omitempty"`
	// inputs is the keyed hash of everything that the objects depend on.
	// +optional
	Inputs string `json:"inputs,omitempty"`
	// objects is the hash of the rendered objects.
	// +optional
	Objects string `json:"objects,omitempty"`
	// k8sVersion is the cluster's Kubernetes version that the objects were rendered for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	K8sVersion string `json:"k8sVersion,omitempty"`
	// time of the last change.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// platformValues is the keyed digest of the platform's values that were applied. It is compared with the grant of the installation's
	// set.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PlatformValues string `json:"platformValues,omitempty"`
	// volumeClaims counts the PersistentVolumeClaims among the objects, which are removed with the installation.
	// +optional
	VolumeClaims int32 `json:"volumeClaims,omitempty"`
	// images are the container images of the objects and hooks, as the user cluster gets them: the first 50 in alphabetical order, without
	// those that contain secret values or have more than 512 characters.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=512
	Images []string `json:"images,omitempty"`
}

// HelmReleaseState is the Helm release as recorded; the user cluster may show it later.
type HelmReleaseState struct {
	// name of the release.
	// +optional
	Name string `json:"name,omitempty"`
	// revision of the release.
	// +optional
	Revision int32 `json:"revision,omitempty"`
	// status of the release, as Helm names it.
	// +optional
	Status string `json:"status,omitempty"`
}

// ObjectCounts counts applied objects.
type ObjectCounts struct {
	// total number of objects.
	// +optional
	Total int32 `json:"total"`
	// healthy is the number of healthy objects.
	// +optional
	Healthy int32 `json:"healthy"`
	// failing is the number of failing objects.
	// +optional
	Failing int32 `json:"failing"`
	// summary is healthy/total, for lists.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary,omitempty"`
}

// KindCount is the number of objects of a kind.
type KindCount struct {
	// group of the kind. Absent: the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind of the objects.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// count is the number of objects.
	// +required
	Count int32 `json:"count,omitempty"`
}

// UnhealthyObject is an object that is not healthy.
type UnhealthyObject struct {
	// ref is Kind namespace/name.
	// +required
	Ref string `json:"ref,omitempty"`
	// reason is one CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the object's own message.
	// +optional
	Message string `json:"message,omitempty"`
	// cause is set if the user cluster, and not the add-on, may be at fault, as in status.cause.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
}
