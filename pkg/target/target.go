// Package target says what a cluster is for decisions: which one (Ref), and the few facts that
// decisions need (Description). It is pure and knows no kind of cluster: cluster.Describe describes
// KKP's. Only OwnerOf names KKP's kind, for records.
//
// What templates get of a cluster is in package templatedata.
package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Ref identifies a cluster. Empty fields match any: a namespace alone means its cluster.
type Ref struct {
	// Kind of the object that stands for the cluster; empty in records, for KKP's.
	Kind schema.GroupKind
	// Namespace on the seed with the cluster's AddonInstallations and other data.
	Namespace string
	// Name and UID of the object. A new object of the same name has another UID.
	Name string
	UID  types.UID
}

// InstalledIn is the cluster of an AddonInstallation: that of its namespace.
func InstalledIn(installation *v1.AddonInstallation) Ref {
	return Ref{Namespace: installation.Namespace}
}

// Recorded is the cluster that a status or record in a namespace names.
func Recorded(namespace string, identity v1.ClusterIdentity) Ref {
	return Ref{Namespace: namespace, Name: identity.Name, UID: identity.UID}
}

// Identity is the cluster's name and UID for status and records.
func (r Ref) Identity() v1.ClusterIdentity { return v1.ClusterIdentity{Name: r.Name, UID: r.UID} }

// OwnerOf is the owner reference for objects that end with a recorded cluster. KKP's group is the
// same as that of our own kinds.
func OwnerOf(identity v1.ClusterIdentity) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: "Cluster", Name: identity.Name, UID: identity.UID,
	}
}

// Matches says whether another Ref has all the fields that are set in this one.
func (r Ref) Matches(other Ref) bool {
	return (r.Kind.Empty() || r.Kind == other.Kind) && (r.Namespace == "" || r.Namespace == other.Namespace) &&
		(r.Name == "" || r.Name == other.Name) && (r.UID == "" || r.UID == other.UID)
}

// Description is a cluster at one moment. It shares data with the object: don't change it.
type Description struct {
	Ref
	// KubernetesVersion of the control plane; "" while unknown.
	KubernetesVersion string
	// APIServerUp says whether the API server runs, by the platform.
	APIServerUp         bool
	Labels, Annotations map[string]string
	// Paused clusters are not changed; a Deleted one's installations end without calls to it.
	Paused, Deleted bool
	// Owner is for objects that end with the cluster.
	Owner metav1.OwnerReference
	// Object stands for the cluster: events are reported on it, and those who know its kind (a
	// *Cluster of KKP) read more of it.
	Object runtime.Object
}
