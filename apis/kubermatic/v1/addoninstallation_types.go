package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// AddonInstallation asks for one add-on in a user cluster: that of spec.clusterName, or the one that KKP keeps in the namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=addoninst,categories=kubermatic
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Delete=false,Prune=false"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of an AddonInstallation has at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !self.spec.dependsOn.exists(n, n == self.metadata.name)",message="an installation can't depend on itself: take its name out of dependsOn"
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
	// spec says what is to be installed.
	// +required
	Spec AddonInstallationSpec `json:"spec,omitzero"`
	// status says what is installed.
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

// ReconcileStrategy says how long an installation is kept reconciled.
//
// +kubebuilder:validation:Enum=Continuous;Once
type ReconcileStrategy string

const (
	// ReconcileContinuous applies every change and repairs drift.
	ReconcileContinuous ReconcileStrategy = "Continuous"
	// ReconcileOnce applies nothing more after the first Ready.
	ReconcileOnce ReconcileStrategy = "Once"
)

// DeletionPolicy says what deletion of an installation does to what it applied.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionDelete removes what the installation applied.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves it.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// AddonInstallationSpec says what is to be installed.
//
// +kubebuilder:validation:XValidation:rule="has(self.releaseName) == has(oldSelf.releaseName) && (!has(self.releaseName) || self.releaseName == oldSelf.releaseName)",message="releaseName can't be changed: delete the installation and create it anew"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterName) || has(self.clusterName) && self.clusterName == oldSelf.clusterName",message="clusterName can't be changed: delete the installation and create it anew"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetNamespace) || has(self.targetNamespace) && self.targetNamespace == oldSelf.targetNamespace",message="targetNamespace can't be changed: delete the installation and create it anew"
type AddonInstallationSpec struct {
	// clusterName names a Cluster of this namespace. Absent: the Cluster that KKP keeps here; elsewhere it is required. It can be set once.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`
	// addonRef names the add-on and its version. Its name can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="addonRef.name can't be changed: correct it if it is misspelt; for another add-on, delete the installation and create it again"
	AddonRef AddonReference `json:"addonRef,omitzero"`
	// coreAddon is true on installations of the core add-on controller, and only there. It can't be changed.
	// +optional
	// +default=false
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="coreAddon can't be changed: only the core add-on controller makes core installations; to remove one for good, take it out of ConfigMap custom-core-addons or change the setting of the Cluster that asks for it"
	CoreAddon bool `json:"coreAddon"`
	// targetNamespace is the namespace in the user cluster for objects without one. Absent: what the catalogue says of the add-on, which is
	// written here then, together with its createNamespace. It can be set once.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// createNamespace makes the target namespace if the user cluster doesn't have it.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// releaseName of the Helm release, above template.helm.releaseName of the catalogue; other methods have none. It can't be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// values are the user's values, above all others.
	// +nullable
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *runtime.RawExtension `json:"values,omitempty"`
	// valuesFrom takes values from marked objects in the own namespace, later ones above earlier ones, below values.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`
	// valuesTemplate is a Go template over the template data that gives values in YAML, above form defaults and below valuesFrom. It never
	// sees secrets of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// dependsOn names installations of the same cluster, itself not among them. Each has to be Ready before this one is applied for the first
	// time, for as long as that takes, and before another version of it is applied, for as long as the seed's --order-timeout. They may be made
	// later.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	DependsOn []InstallationName `json:"dependsOn,omitempty"`
	// paused stops all work on the installation but its removal.
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
// +kubebuilder:validation:XValidation:rule=`!has(self.digest) || has(self.version) && !self.version.matches(r'[<>=~^*,|\s]|^v?([^.+-]*\.)*[xX]([.+-]|$)')`,message="digest needs an exact version: it says which content of that version is meant"
type AddonReference struct {
	// name of the add-on.
	// +required
	Name AddonName `json:"name,omitempty"`
	// version is exact or a range (one with any of "<>=~^*,|", a space or an x part). Absent: the newest that fits.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?|\s*(([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?((\s*,\s*|\s+)([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)*|v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?\s+-\s+v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)(\s*\|\|(\s*([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?((\s*,\s*|\s+)([<>]=?|=[<>]?|!=|~>?|\^)?\s*v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)*|\s+v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?\s+-\s+v?(\d{1,9}|[xX*])(\.(\d{1,9}|[xX*])){0,2}([-+][0-9A-Za-z.+-]*[0-9A-Za-z])?)){0,15}\s*)$')`,message="this is neither a version nor a range: write it like \"1.2.3\", \">= 1.34, < 1.38\" or \"1.x\""
	Version string `json:"version,omitempty"`
	// digest is the content of the version that is meant: the SHA-256 over the canonical JSON of its template, source, values and
	// valuesTemplate in the catalogue; not of its name, deprecated and constraints. status.lastApplied.entryDigest has it of what is
	// applied. Where the catalogue has other content under that version, what is applied stays and is kept reconciled from its record.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// ValuesSource is one source of values. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.secretRef), has(self.configMapRef), has(self.providerRef)].filter(x, x).size() == 1",message="set exactly one of secretRef, configMapRef and providerRef"
type ValuesSource struct {
	// secretRef takes a key of a Secret.
	// +optional
	SecretRef *KeyReference `json:"secretRef,omitempty"`
	// configMapRef takes a key of a ConfigMap.
	// +optional
	ConfigMapRef *KeyReference `json:"configMapRef,omitempty"`
	// providerRef takes an object of an allowed kind whose status.secretRef names a Secret.
	// +optional
	ProviderRef *ProviderReference `json:"providerRef,omitempty"`
}

// KeyReference names a key of an object in the own namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targetPath) || has(self.key)",message="targetPath needs key: name the key whose text goes there"
type KeyReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// key whose data is YAML, or, with targetPath, one text. Absent: values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// targetPath is the dotted path of the value that the text of key becomes, such as database.password; "\." stands for a dot in a key.
	// The text is taken as it is, also where it reads as a number. Absent: key holds a YAML document of values.
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
}

// AddonInstallationStatus says what is installed.
type AddonInstallationStatus struct {
	// conditions: Ready sums up; the others say how far each step is.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// cluster is the Cluster that the installation belongs to, from the first status on.
	// +optional
	Cluster *ClusterIdentity `json:"cluster,omitempty"`
	// version is the version that the user cluster has of the add-on; absent until one was applied to its end.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// target is the version that is wanted: what addonRef comes to, or what stays installed where that is refused. Where it differs from
	// version, conditions say why.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Target string `json:"target,omitempty"`
	// availableUpdate is the newest compatible version above target.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AvailableUpdate string `json:"availableUpdate,omitempty"`
	// artifact is the content of version; until one was applied, what was fetched.
	// +optional
	Artifact *Artifact `json:"artifact,omitempty"`
	// access are the credentials for the hub that the version has (template.access).
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Access []AccessState `json:"access,omitempty"`
	// lastApplied is what the user cluster got last.
	// +optional
	LastApplied *AppliedState `json:"lastApplied,omitempty"`
	// onClusterDeletion is Remove while the user cluster has something that is removed when its Cluster is deleted, by what the version says
	// that was applied last.
	// +optional
	OnClusterDeletion OnClusterDeletion `json:"onClusterDeletion,omitempty"`
	// release is the Helm release.
	// +optional
	Release *HelmReleaseState `json:"release,omitempty"`
	// objects counts the applied objects.
	// +optional
	Objects *ObjectCounts `json:"objects,omitempty"`
	// unhealthy lists objects that are not healthy, at most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Unhealthy []UnhealthyObject `json:"unhealthy,omitempty"`
	// cause says why the user cluster, and not the add-on, may be what keeps the installation from being Ready, such as Unschedulable or
	// QuotaExceeded. It is absent where nothing shows that. AddonSets go by it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// failures counts failed attempts in a row.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// nextAttempt is when everything is tried again at the latest. What is in the way in the user cluster is looked at every 15 s besides.
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
	// revision is the source's own word for it: a commit, a chart version, an image digest.
	// +optional
	Revision string `json:"revision,omitempty"`
	// digest of the content.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// AppliedState is what the user cluster got last.
type AppliedState struct {
	// addon is the name of the add-on, in its catalogue.
	// +optional
	Addon string `json:"addon,omitempty"`
	// version of the add-on.
	// +optional
	Version string `json:"version,omitempty"`
	// entryDigest is the content digest of the catalogue's version that it was made from, which addonRef.digest is compared with.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	EntryDigest string `json:"entryDigest,omitempty"`
	// artifactDigest is the digest of the content it was rendered from.
	// +optional
	ArtifactDigest string `json:"artifactDigest,omitempty"`
	// inputs is the keyed hash of everything that the objects depend on.
	// +optional
	Inputs string `json:"inputs,omitempty"`
	// objects is the hash of the rendered objects.
	// +optional
	Objects string `json:"objects,omitempty"`
	// k8sVersion is the Kubernetes version of the cluster that it was made for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	K8sVersion string `json:"k8sVersion,omitempty"`
	// time of the last change.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// platformValues is the keyed digest of the platform's values that it was made with, which the grant of its set is compared with.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PlatformValues string `json:"platformValues,omitempty"`
	// volumeClaims counts the PersistentVolumeClaims among the objects, which go with the installation.
	// +optional
	VolumeClaims int32 `json:"volumeClaims,omitempty"`
}

// HelmReleaseState is the Helm release as the record has it; the user cluster may show it later.
type HelmReleaseState struct {
	// name of the release.
	// +optional
	Name string `json:"name,omitempty"`
	// revision of the release.
	// +optional
	Revision int32 `json:"revision,omitempty"`
	// status of the release in Helm's words.
	// +optional
	Status string `json:"status,omitempty"`
}

// ObjectCounts counts applied objects.
type ObjectCounts struct {
	// total number of objects.
	// +optional
	Total int32 `json:"total"`
	// healthy ones.
	// +optional
	Healthy int32 `json:"healthy"`
	// failing ones.
	// +optional
	Failing int32 `json:"failing"`
	// summary is healthy/total, for lists.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary,omitempty"`
}

// UnhealthyObject is an object that is not healthy.
type UnhealthyObject struct {
	// ref is Kind namespace/name.
	// +required
	Ref string `json:"ref,omitempty"`
	// reason is a word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the object's own message.
	// +optional
	Message string `json:"message,omitempty"`
	// cause says why the user cluster, and not the add-on, may be at fault, as in status.cause.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
}
