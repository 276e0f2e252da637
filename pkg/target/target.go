// Package target says what a cluster is to those who decide what goes onto it: which one, and the
// few things about it that decisions read. It is pure and reads no object that stands for a
// cluster: package cluster describes KKP's Clusters (cluster.Describe), and another kind will have
// a function of its own. Only OwnerOf names KKP's kind, for records, which name none.
//
// What templates see of a cluster is not here: that is package templatedata, in KKP's words.
package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Ref says which cluster is meant. What is empty in it is not asked for: one that has a namespace
// alone means whatever cluster the namespace has.
type Ref struct {
	// Kind of the object that stands for the cluster; records name none for KKP's.
	Kind schema.GroupKind
	// Namespace on the seed that holds what is kept of the cluster, its AddonInstallations among
	// it.
	Namespace string
	// Name and UID of the object. One that comes back under its name has another UID.
	Name string
	UID  types.UID
}

// InstalledIn is the cluster that an AddonInstallation is for: the one of its namespace.
func InstalledIn(installation *v1.AddonInstallation) Ref {
	return Ref{Namespace: installation.Namespace}
}

// Recorded is the cluster that status or records of a namespace name.
func Recorded(namespace string, identity v1.ClusterIdentity) Ref {
	return Ref{Namespace: namespace, Name: identity.Name, UID: identity.UID}
}

// Identity is what status and records say of the cluster.
func (r Ref) Identity() v1.ClusterIdentity { return v1.ClusterIdentity{Name: r.Name, UID: r.UID} }

// OwnerOf is what objects name that are to go with the cluster of a record, which is KKP's: its group is that of our own
// kinds.
func OwnerOf(identity v1.ClusterIdentity) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: "Cluster", Name: identity.Name, UID: identity.UID,
	}
}

// Matches says whether another Ref has all that this one asks for.
func (r Ref) Matches(other Ref) bool {
	return (r.Kind.Empty() || r.Kind == other.Kind) && (r.Namespace == "" || r.Namespace == other.Namespace) &&
		(r.Name == "" || r.Name == other.Name) && (r.UID == "" || r.UID == other.UID)
}

// Description is a cluster at one moment. What it shares with the object is only read.
type Description struct {
	Ref
	// KubernetesVersion is the control plane's; "" while it is not known.
	KubernetesVersion string
	// APIServerUp says whether the platform takes the API server for running.
	APIServerUp         bool
	Labels, Annotations map[string]string
	// Paused clusters are left as they are; what Deleted ones have is given up without a call.
	Paused, Deleted bool
	// Owner is for objects that are to go with the cluster.
	Owner metav1.OwnerReference
	// Object stands for the cluster. Events are reported on it, and who knows its kind reads the
	// rest there: KKP's part of a Cluster is a *Cluster of KKP.
	Object runtime.Object
}
