// Package target says what a cluster is to those who decide what goes onto it: which one, and the
// few things about it that decisions read. It is pure and knows no kind of object that stands for a
// cluster: package cluster describes KKP's Clusters (cluster.Describe), and another kind will have
// a function of its own.
//
// What templates see of a cluster is not here: that is package templatedata, in KKP's words.
package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ref says which cluster is meant.
type Ref struct {
	// Kind of the object that stands for the cluster.
	Kind schema.GroupKind
	// Namespace on the seed that holds what is kept of the cluster, its AddonInstallations among
	// it.
	Namespace string
	// Name and UID of the object. One that comes back under its name has another UID.
	Name string
	UID  types.UID
}

// Description is a cluster at one moment. Its maps are shared with the object, and only read.
type Description struct {
	Ref
	// KubernetesVersion is the control plane's; "" while it is not known.
	KubernetesVersion   string
	Labels, Annotations map[string]string
	// Paused clusters are left as they are; of Deleted ones everything is let go without a call.
	Paused, Deleted bool
	// Owner is for objects that are to go with the cluster.
	Owner metav1.OwnerReference
}
