package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AddonSet installs add-ons in every present and future cluster that its selector matches, in waves. Admins write AddonSets on the master,
// in the platform namespace. The master's manager copies them to every seed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=kubermatic
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Delete=false,Prune=false"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of an AddonSet has at most 63 characters"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.counts.selected`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.counts.current`
// +kubebuilder:printcolumn:name="Moving",type=integer,JSONPath=`.status.counts.moving`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`
// +kubebuilder:printcolumn:name="Blocked",type=integer,JSONPath=`.status.counts.blocked`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddonSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec defines which clusters get which add-ons.
	// +required
	Spec AddonSetSpec `json:"spec,omitzero"`
	// status reports the progress.
	// +optional
	Status AddonSetStatus `json:"status,omitzero"`
}

// AddonSetList is a list of AddonSets.
//
// +kubebuilder:object:root=true
type AddonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonSet `json:"items"`
}

// AddonSetType says what a set manages.
//
// +kubebuilder:validation:Enum=Custom;Core
type AddonSetType string

const (
	// AddonSetCustom creates installations of the add-ons that it lists.
	AddonSetCustom AddonSetType = "Custom"
	// AddonSetCore lists no add-ons: it rolls out the core add-ons of all clusters in its waves.
	AddonSetCore AddonSetType = "Core"
)

// RemovalPolicy says what happens to installations that a set no longer requests.
//
// +kubebuilder:validation:Enum=Delete;Orphan;Release
type RemovalPolicy string

const (
	// RemovalDelete deletes the installation and its applied objects.
	RemovalDelete RemovalPolicy = "Delete"
	// RemovalOrphan deletes the installation and leaves its applied objects in the user cluster.
	RemovalOrphan RemovalPolicy = "Orphan"
	// RemovalRelease leaves the installation, as if a user had created it.
	RemovalRelease RemovalPolicy = "Release"
)

// AddonSetSpec says which clusters get which add-ons.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Core' || (!has(self.addons) && !has(self.overrides) && !has(self.removal))",message="a set of type Core has no addons, overrides and removal: core add-ons come from rules and the custom core list"
// +kubebuilder:validation:XValidation:rule="self.type == 'Core' || (has(self.addons) && self.addons.size() > 0)",message="a set of type Custom has at least one item in addons"
// +kubebuilder:validation:XValidation:rule="self.type != 'Core' || (!has(self.clusterSelector.matchLabels) && !has(self.clusterSelector.matchExpressions))",message="the clusterSelector of a set of type Core is {}: core add-ons are on every cluster"
type AddonSetSpec struct {
	// type is Custom or Core. It can't be changed.
	// +optional
	// +default="Custom"
	// +kubebuilder:default=Custom
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type can't be changed: delete the set and create another"
	Type AddonSetType `json:"type,omitempty"`
	// paused stops all writes of the set. For type Core it stops all moves, but not pins, repairs and add-ons that new clusters lack.
	// status.pending shows the paused changes.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// priority decides which of two sets gets a name that both request in one cluster: the set with the higher priority, then the older set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`
	// clusterSelector selects Clusters by their labels and facts (addons.kubermatic.k8c.io/seed, datacenter, provider, namespace, name
	// and kind); {} selects all.
	// +required
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.size() <= 32) && (!has(self.matchExpressions) || self.matchExpressions.size() <= 32)",message="a selector has at most 32 matchLabels and 32 matchExpressions"
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// constraints select Clusters by their Kubernetes version, and platforms by their KKP version.
	// +nullable
	// +optional
	Constraints *Constraints `json:"constraints,omitempty"`
	// addons are the items: one installation each in every selected cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Addons []AddonSetItem `json:"addons,omitempty"`
	// overrides add values for some clusters. All matching overrides apply; later overrides override earlier ones, and all overrides override
	// the values of the item.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overrides []AddonSetOverride `json:"overrides,omitempty"`
	// removal is Delete, Orphan or Release, for installations that the set no longer requests. Absent: Delete.
	// +optional
	Removal RemovalPolicy `json:"removal,omitempty"`
	// rollout defines how changes roll out over the clusters. Absent: in all clusters at once.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// AddonSetItem is one add-on of a set.
type AddonSetItem struct {
	// name of the installations, in each cluster.
	// +required
	Name AddonName `json:"name,omitempty"`
	// addonRef names the add-on and its version, which is resolved for each cluster. It can't have a digest.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.digest)",message="addonRef.digest is set by the controller, for each cluster: remove it"
	AddonRef AddonReference `json:"addonRef,omitzero"`
	// targetNamespace is the namespace in the user cluster for objects without one. Absent: the catalogue's namespace for the add-on,
	// with its createNamespace. Existing installations keep their namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// createNamespace creates the target namespace if the user cluster doesn't have it.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// releaseName is the name of the Helm release, for charts. Absent: the catalogue's, or the item's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ReleaseName string `json:"releaseName,omitempty"`
	// values are written into the installations, and restored if a user changes them. Other values in the installations are not changed.
	// +nullable
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *runtime.RawExtension `json:"values,omitempty"`
	// valuesFrom reads values from labelled objects in the cluster's namespace. $(cluster) in a name is the name of the Cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`
	// valuesTemplate is a Go template over the cluster's template data that renders values in YAML. valuesFrom overrides these values.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// platformSecretRef names a Secret in the set's namespace, with label addons.kubermatic.k8c.io/use: values, and, for a set of type Custom,
	// with annotation addons.kubermatic.k8c.io/used-by that names the set as AddonSet/<name>. Trellis copies the Secret to the seeds.
	// valuesFrom overrides its values.
	// +optional
	PlatformSecretRef *PlatformSecretReference `json:"platformSecretRef,omitempty"`
	// reconcileStrategy is Continuous or Once.
	// +optional
	// +default="Continuous"
	// +kubebuilder:default=Continuous
	ReconcileStrategy ReconcileStrategy `json:"reconcileStrategy,omitempty"`
	// dependsOn names items of this set that must be Ready first, in each cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	DependsOn []AddonName `json:"dependsOn,omitempty"`
	// allow permits actions that otherwise need an approval for each installation. Adopt permits the adoption of existing objects, Downgrade
	// permits lower versions, and Prune permits the removal of many objects at a time.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Allow []Permission `json:"allow,omitempty"`
	// allowOptOut lets annotation addons.kubermatic.k8c.io/deviations of a Cluster leave out the item, or pin its version.
	// +optional
	AllowOptOut bool `json:"allowOptOut,omitempty"`
}

// Permission is an action that the installations of an item may do.
//
// +kubebuilder:validation:Enum=Adopt;Downgrade;Prune
type Permission string

const (
	// PermissionAdopt lets installations adopt existing objects.
	PermissionAdopt Permission = "Adopt"
	// PermissionDowngrade allows a lower version.
	PermissionDowngrade Permission = "Downgrade"
	// PermissionPrune approves prunes of many objects, but never of Namespaces, PersistentVolumeClaims and definitions in use.
	PermissionPrune Permission = "Prune"
)

// PlatformSecretReference names a Secret in the set's namespace.
type PlatformSecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// key names the key whose data is YAML. Absent: values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// AddonSetOverride adds values of an item for some clusters.
type AddonSetOverride struct {
	// clusterSelector selects Clusters by their labels and facts; {} selects all.
	// +required
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.size() <= 32) && (!has(self.matchExpressions) || self.matchExpressions.size() <= 32)",message="a selector has at most 32 matchLabels and 32 matchExpressions"
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// addon is the name of the item.
	// +required
	Addon AddonName `json:"addon,omitempty"`
	// values of the item in these clusters.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *runtime.RawExtension `json:"values,omitempty"`
}

// Pace says how many clusters move at a time, and when a move succeeds or fails.
type Pace struct {
	// maxConcurrency is how many clusters of a group move at a time on one seed. It is a number, or a percentage of the group's clusters,
	// rounded up. Absent: 10%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 1 && self <= 1000000)",message="maxConcurrency is a number from 1 to 1000000, or a percentage from 1% to 100%"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// maxFailures is how many clusters of a group may fail. More failures halt the rollout. It is a number, or a percentage of the group's
	// clusters on each seed, rounded down. Absent: 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 0 && self <= 1000000)",message="maxFailures is a number from 0 to 1000000, or a percentage from 1% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// soak is how long everything must be Ready until a move counts as a success, from 0s to 168h. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('168h')",message="soak is at most 168h"
	Soak *metav1.Duration `json:"soak,omitempty"`
	// progressDeadline is how long a move may take, from the last write to the cluster, until it counts as a failure, from 1s to
	// 168h. Absent: 30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="progressDeadline must be between 1s and 168h"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`
}

// Rollout says how changes roll out over the clusters of a set.
type Rollout struct {
	Pace `json:",inline"`
	// groups of clusters, in the order in which they move. A cluster is in the first group that selects it. All other clusters are in the last
	// group, "rest".
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Groups []RolloutGroup `json:"groups,omitempty"`
}

// GroupRest is the name of the last group, of clusters that no other selects.
const GroupRest = "rest"

// GroupStart says when a group starts.
//
// +kubebuilder:validation:Enum=Automatic;Approved
type GroupStart string

const (
	// StartAutomatic starts once all groups before are done.
	StartAutomatic GroupStart = "Automatic"
	// StartApproved also waits for annotation approve.
	StartApproved GroupStart = "Approved"
)

// RolloutGroup is one wave.
type RolloutGroup struct {
	// name of the group.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != 'rest'",message="rest is the name of the last group, of all clusters that no group selects"
	Name AddonName `json:"name,omitempty"`
	// clusterSelector selects Clusters by their labels and facts.
	// +required
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.size() <= 32) && (!has(self.matchExpressions) || self.matchExpressions.size() <= 32)",message="a selector has at most 32 matchLabels and 32 matchExpressions"
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// start is Automatic or Approved. A group with Approved waits for annotation addons.kubermatic.k8c.io/approve. Absent: Automatic.
	// +optional
	Start GroupStart `json:"start,omitempty"`
	Pace  `json:",inline"`
}

// AddonSetStatus reports the progress of a set.
type AddonSetStatus struct {
	// conditions: Ready and DeletionBlocked.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// catalogues is a digest of the merged catalogues that the set depends on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Catalogues string `json:"catalogues,omitempty"`
	// revision is a hash of everything that the set gives to clusters. On the master, it covers the revisions of all seeds.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Revision string `json:"revision,omitempty"`
	// startedAt is when the rollout of the revision started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// counts of clusters.
	// +optional
	Counts *ClusterCounts `json:"counts,omitempty"`
	// groups in their order; the last one is rest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=17
	Groups []GroupStatus `json:"groups,omitempty"`
	// pending lists outstanding changes, at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Pending []PendingChange `json:"pending,omitempty"`
	// pendingCount is the number of all pending changes, without those that are Blocked.
	// +optional
	PendingCount int32 `json:"pendingCount,omitempty"`
	// clusters that are failed, sick, away or blocked, at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Clusters []SetClusterStatus `json:"clusters,omitempty"`
	// removal is the removal that waits for annotation removal-approved.
	// +optional
	Removal *PendingRemoval `json:"removal,omitempty"`
	// seeds lists the seeds, at most 200. Only the set on the master has this field.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Seeds []SetSeedStatus `json:"seeds,omitempty"`
}

// ClusterCounts counts clusters by their state.
type ClusterCounts struct {
	// selected clusters, and those that still have installations of the set.
	// +optional
	Selected int32 `json:"selected"`
	// current clusters have everything that the set requests, and it works.
	// +optional
	Current int32 `json:"current"`
	// moving clusters were written, and are not done.
	// +optional
	Moving int32 `json:"moving"`
	// behind clusters don't have the requested state yet.
	// +optional
	Behind int32 `json:"behind"`
	// failed clusters were rolled back, or did not become Ready in time.
	// +optional
	Failed int32 `json:"failed"`
	// sick clusters failed too, but were not Ready before, or have a cause of their own that no other cluster reports. A cluster is also sick
	// if the time of its move is over and it is neither current nor failed, or if annotation leave-out names it.
	// +optional
	Sick int32 `json:"sick"`
	// away clusters are behind, and unreachable, paused or without a version.
	// +optional
	Away int32 `json:"away"`
	// blocked clusters have an item that can't be carried out there. Clusters that are failed, sick or away are not counted here.
	// +optional
	Blocked int32 `json:"blocked"`
	// new clusters were created after the revision began.
	// +optional
	New int32 `json:"new"`
}

// GroupState is the state of a group.
//
// +kubebuilder:validation:Enum=Waiting;AwaitingApproval;Open;NoEvidence;Done;Halted
type GroupState string

const (
	// GroupWaiting waits for the groups before it.
	GroupWaiting GroupState = "Waiting"
	// GroupAwaitingApproval waits for annotation approve.
	GroupAwaitingApproval GroupState = "AwaitingApproval"
	// GroupOpen moves its clusters.
	GroupOpen GroupState = "Open"
	// GroupNoEvidence has no cluster with the whole revision, to show that it works; later groups wait for annotation approve.
	GroupNoEvidence GroupState = "NoEvidence"
	// GroupDone has nothing left to move.
	GroupDone GroupState = "Done"
	// GroupHalted has more failures than allowed.
	GroupHalted GroupState = "Halted"
)

// GroupStatus reports the state of a group.
type GroupStatus struct {
	// name of the group.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// state of the group.
	// +required
	State GroupState `json:"state,omitempty"`
	// counts of the clusters.
	// +optional
	Counts ClusterCounts `json:"counts,omitzero"`
}

// ChangeKind says how an installation would change.
//
// +kubebuilder:validation:Enum=Install;Update;Remove;Blocked
type ChangeKind string

const (
	// ChangeInstall creates it.
	ChangeInstall ChangeKind = "Install"
	// ChangeUpdate changes it.
	ChangeUpdate ChangeKind = "Update"
	// ChangeRemove removes it, as spec.removal says.
	ChangeRemove ChangeKind = "Remove"
	// ChangeBlocked can't be carried out.
	ChangeBlocked ChangeKind = "Blocked"
)

// PendingChange is one change to some clusters.
type PendingChange struct {
	// item is the name of the item.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Item string `json:"item,omitempty"`
	// change is Install, Update, Remove or Blocked.
	// +required
	Change ChangeKind `json:"change,omitempty"`
	// from is the version before the change.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	From string `json:"from,omitempty"`
	// to is the version after the change.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	To string `json:"to,omitempty"`
	// clusters is the number of affected clusters.
	// +required
	Clusters int32 `json:"clusters,omitempty"`
	// example is the name of one of these clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Example string `json:"example,omitempty"`
}

// ClusterState is the state of a cluster in a set.
//
// +kubebuilder:validation:Enum=Current;Moving;Behind;Failed;Sick;Away;Blocked;New
type ClusterState string

// States of clusters; ClusterCounts explains each.
const (
	ClusterCurrent ClusterState = "Current"
	ClusterMoving  ClusterState = "Moving"
	ClusterBehind  ClusterState = "Behind"
	ClusterFailed  ClusterState = "Failed"
	ClusterSick    ClusterState = "Sick"
	ClusterAway    ClusterState = "Away"
	ClusterBlocked ClusterState = "Blocked"
	ClusterNew     ClusterState = "New"
)

// SetClusterStatus says why a cluster is not current.
type SetClusterStatus struct {
	// name of the Cluster.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// seed of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Seed string `json:"seed,omitempty"`
	// group of the cluster. Absent: the cluster is in no group, since it was written at once.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Group string `json:"group,omitempty"`
	// state of the cluster.
	// +required
	State ClusterState `json:"state,omitempty"`
	// item that the state is about.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Item string `json:"item,omitempty"`
	// reason of the installation, or of the set.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// cause is set if the cluster, and not the add-on, may be at fault, as in status.cause of the installation. A cluster with a cause is
	// Sick. It is Failed once a second cluster of the set has the same cause.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// message has details.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// PendingRemoval is a removal that waits for annotation removal-approved.
type PendingRemoval struct {
	// word is the annotation's value that approves the removal. On the master it is a list, separated by commas, with a token for each
	// seed.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Word string `json:"word,omitempty"`
	// count is the number of installations that the removal covers.
	// +required
	Count int32 `json:"count,omitempty"`
	// clusters with these installations, at most 10 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`
}

// SetSeedStatus reports the progress on a seed.
type SetSeedStatus struct {
	// name of the Seed.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// synced is true if the row describes the present set and catalogues.
	// +optional
	Synced bool `json:"synced"`
	// revision that the seed rolls out.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Revision string `json:"revision,omitempty"`
	// group is the group that the seed opened last.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Group string `json:"group,omitempty"`
	// counts of the clusters.
	// +optional
	Counts *ClusterCounts `json:"counts,omitempty"`
	// message describes a problem of the seed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
