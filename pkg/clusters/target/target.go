// Package target describes a cluster for decisions: its identity (Ref), and the few facts that decisions need
// (Description). It is pure and knows no kind of cluster: cluster.Describe describes KKP's. Only OwnerOf names KKP's
// kind, for records.
//
// The data of a cluster for templates is in package templatedata.
package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Ref identifies a cluster. Empty fields match any: a namespace alone means its cluster.
type Ref struct {
	// Kind of the object that represents the cluster; empty in records, for KKP's.
	Kind schema.GroupKind
	// Namespace on the seed with the cluster's AddonInstallations and other data.
	Namespace string
	// Name and UID of the object. A new object of the same name has another UID.
	Name string
	UID  types.UID
}

// GroupClusterAPI is the group of Cluster API's Clusters.
const GroupClusterAPI = "cluster.x-k8s.io"

// The kinds that represent clusters. KKP's group is the same as that of our own kinds.
var (
	KindKKP        = schema.GroupKind{Group: v1.GroupVersion.Group, Kind: "Cluster"}
	KindClusterAPI = schema.GroupKind{Group: GroupClusterAPI, Kind: "Cluster"}
)

// InstalledIn is the cluster that an AddonInstallation requests: the one in its namespace that it names. Without a
// name it is KKP's cluster there.
func InstalledIn(installation *v1.AddonInstallation) Ref {
	return Ref{Namespace: installation.Namespace, Name: installation.Spec.ClusterName}
}

// Has says whether an AddonInstallation belongs to this cluster, which was found, or requested: one that names no
// cluster belongs to KKP's.
func (r Ref) Has(installation *v1.AddonInstallation) bool {
	switch named := installation.Spec.ClusterName; {
	case installation.Namespace != r.Namespace:
		return false
	case named == "":
		return r.Name == "" || r.Kind == KindKKP
	default:
		return named == r.Name
	}
}

// Recorded is the cluster that a status or record in a namespace names.
func Recorded(namespace string, identity v1.ClusterIdentity) Ref {
	ref := Ref{Kind: KindKKP, Namespace: namespace, Name: identity.Name, UID: identity.UID}
	if identity.Group != "" {
		ref.Kind.Group = identity.Group
	}
	return ref
}

// Identity is the cluster's name and UID for status and records, and the group of its kind if it is not KKP's.
func (r Ref) Identity() v1.ClusterIdentity {
	identity := v1.ClusterIdentity{Name: r.Name, UID: r.UID}
	if !r.IsKKP() {
		identity.Group = r.Kind.Group
	}
	return identity
}

// IsKKP says whether the cluster is KKP's, or of no known kind. Then no other cluster shares its namespace, and names
// that Trellis chooses there do not contain the cluster's.
func (r Ref) IsKKP() bool { return r.Kind.Empty() || r.Kind == KindKKP }

// maximumKey is the maximal length of a Key, in characters: names of stored objects have a prefix before it.
const maximumKey = 200

// Key distinguishes a cluster from all others of its seed in the names of its stored objects: KKP's by its name,
// others by namespace and name.
func (r Ref) Key() string {
	if r.IsKKP() {
		return r.Name
	}
	return Shortened(r.Namespace+"."+r.Name, maximumKey)
}

// NameOf is the name of Trellis' object for an item (of a set, of the core list, of a request) in this cluster: the
// item's own in KKP's namespaces, otherwise with the cluster's before it.
func (r Ref) NameOf(item string) string {
	if r.IsKKP() {
		return item
	}
	return Shortened(r.Name+"."+item, maximumName)
}

const (
	// maximumName is the maximal length of an AddonInstallation's name, in characters.
	maximumName = 63
	// hashed is how many characters a hash takes in a shortened name, with the hyphen before it.
	hashed = 9
)

// Shortened is a name of at most this many characters: a longer one is cut, and ends in a hyphen and 8 hexadecimal
// digits, of the SHA-256 of the whole.
func Shortened(name string, maximum int) string {
	if len(name) <= maximum {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:maximum-hashed], "-.") + "-" + hex.EncodeToString(sum[:4])
}

// OwnerOf is the owner reference for objects that are deleted with a recorded cluster of KKP's.
func OwnerOf(identity v1.ClusterIdentity) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: KindKKP.Kind, Name: identity.Name, UID: identity.UID,
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
	// NoVersion says why it is unknown, as a text for users; empty if that is unknown too.
	NoVersion string
	// APIServerUp says whether the API server runs, according to the platform.
	APIServerUp         bool
	Labels, Annotations map[string]string
	// Paused clusters are not changed; a Deleted one's installations end, most without calls to it.
	Paused, Deleted bool
	// DeletedAt is since when it is Deleted.
	DeletedAt time.Time
	// Owner is the owner reference for objects that are deleted with the cluster.
	Owner metav1.OwnerReference
	// Upgrade is the state of an upgrade of its Kubernetes, and of its hold; nil: it can't be held.
	Upgrade *Upgrade
	// Object represents the cluster: events are reported on it, and code that knows its kind (a *Cluster of KKP) reads
	// more of it.
	Object runtime.Object
}

// annotationPaused pauses a Cluster of Cluster API, as its spec.paused does.
const annotationPaused = GroupClusterAPI + "/paused"

// Unpause says how to end a pause of the cluster.
func (d Description) Unpause() string {
	if d.Kind != KindClusterAPI {
		return "set its spec.pause to false"
	}
	if _, byAnnotation := d.Annotations[annotationPaused]; byAnnotation {
		return "remove its annotation " + annotationPaused + ", and set its spec.paused to false"
	}
	return "set its spec.paused to false"
}

// ProviderError reports why an object that providerRef or objectRef names can't be used.
type ProviderError struct {
	Kind    schema.GroupKind
	Name    string
	Problem string
	// IsMissing says that there is no such object.
	IsMissing bool
}

func (e *ProviderError) Error() string {
	return fmt.Sprintf("%s %q %s", e.Kind, e.Name, e.Problem)
}
