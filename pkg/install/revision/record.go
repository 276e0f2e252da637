package revision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Format of records; 1 had no seal. Newer ones keep the sealed index, for NewerRecordError.
const Format = 2

// State says how far a revision was applied.
type State string

const (
	// StateIntent: it may be partly applied. The inventory may be older than the user cluster.
	StateIntent State = "Intent"
	// StateApplied says that everything in Objects was applied and Inventory is complete.
	StateApplied State = "Applied"
)

// Record is one revision of an installation.
type Record struct {
	Format int `json:"format"`
	// Revision counts from 1 and never decreases.
	Revision int   `json:"revision"`
	State    State `json:"state"`

	Installation string `json:"installation"`
	// ClusterName and ClusterUID are those of the seed's Cluster, which owns the record, and ClusterAPIVersion is its
	// API version; "": KKP's.
	ClusterName       string    `json:"clusterName"`
	ClusterUID        types.UID `json:"clusterUID"`
	ClusterAPIVersion string    `json:"clusterAPIVersion,omitempty"`
	// Origin is the UID in the owner's ID if the Cluster has another one now (Reown).
	Origin types.UID `json:"origin,omitempty"`

	Addon string `json:"addon"`
	// Catalogue is the name of the catalogue that has the version.
	Catalogue   string `json:"catalogue,omitempty"`
	Version     string `json:"version"`
	EntryDigest string `json:"entryDigest,omitempty"`
	// Content is the digest of the catalogue's content that it was made from (catalogue.Origin).
	Content string `json:"content,omitempty"`
	// PlatformValues is the keyed digest of the platform's values among Values; "" for none.
	PlatformValues string `json:"platformValues,omitempty"`
	// From is the version of the same add-on that was applied before; "" for none.
	From     string      `json:"from,omitempty"`
	Core     bool        `json:"core,omitempty"`
	Method   v1.Method   `json:"method,omitempty"`
	Artifact v1.Artifact `json:"artifact,omitzero"`
	// Inputs is the HMAC over everything that the rendering depends on (InputsHash).
	Inputs string `json:"inputs,omitempty"`
	// Wanted is the HMAC over the parts that users wrote.
	Wanted string `json:"wanted,omitempty"`
	// ObjectsDigest is the SHA-256 of Objects.
	ObjectsDigest string `json:"objectsDigest,omitempty"`

	TargetNamespace string `json:"targetNamespace"`
	// CRDs has its defaults filled in.
	CRDs v1.CRDPolicy `json:"crds,omitzero"`
	// OnClusterDeletion is Remove, or "" for LetGo.
	OnClusterDeletion v1.OnClusterDeletion `json:"onClusterDeletion,omitempty"`

	// Previous is an earlier revision's Helm release, by name, whose Secrets must be removed.
	Previous *helmrelease.Release `json:"former,omitempty"`
	// Timeout is how long the objects may take to become healthy, counted from Time.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// Health is the version's health check; nil: the health of its workloads counts.
	Health *v1.HealthCheck `json:"health,omitempty"`
	// Hub has the credentials for the hub that the version requests.
	Hub
	// Settled says that the installation was Ready once, at which reconcileStrategy Once ends.
	Settled bool `json:"settled,omitempty"`

	// Atomic revisions roll back to LastGood if they are not applied and healthy within Timeout.
	Atomic bool `json:"atomic,omitempty"`
	// Healthy says that all objects were healthy once, of an atomic revision or a rollback.
	Healthy bool `json:"healthy,omitempty"`
	// LastGood is the last healthy revision before this one; 0 for none. It is kept.
	LastGood int       `json:"lastGood,omitempty"`
	Rollback *Rollback `json:"rollback,omitempty"`

	// Values were merged for the rendering, and may be secret; Origins are their layers by path.
	Values  map[string]any    `json:"values,omitempty"`
	Origins map[string]string `json:"origins,omitempty"`

	// Images are some of the container images of Objects and Hooks, for the status.
	Images    []string            `json:"images,omitempty"`
	Objects   []json.RawMessage   `json:"objects,omitempty"`
	Inventory ownership.Inventory `json:"inventory,omitempty"`
	// Superseded are objects of earlier revisions that must still be pruned.
	Superseded ownership.Inventory `json:"superseded,omitempty"`
	// Shared are the objects of siblings that are used; Inventory has none of them.
	Shared ownership.Inventory `json:"shared,omitempty"`
	// Siblings are the IDs of the add-on's other installations that were known before any of their objects was checked;
	// some may be deleted. Their remaining objects become this one's (ADR 111). A record with only objects in
	// namespaces, which are never shared, has none.
	Siblings []string `json:"siblings,omitempty"`
	// PreviousAddon is the add-on of earlier revisions, if it was another one.
	PreviousAddon string `json:"formerAddon,omitempty"`
	// SupersededOf is the number of objects, including Superseded, when Superseded was made.
	SupersededOf int                  `json:"supersededOf,omitempty"`
	Helm         *helmrelease.Release `json:"helm,omitempty"`
	// Set has the hooks of the Helm release, and their runs.
	hooks.Set
	Time metav1.Time `json:"time"`

	// Skipped is the newest revision, if it can't be read: the user cluster differs from this one.
	Skipped int `json:"-"`
	// Damage names the Secret of that revision, and why it can't be read.
	Damage string `json:"-"`

	stored stored
}

// emptyDigest is the ObjectsDigest without objects.
var emptyDigest = hex.EncodeToString(sha256.New().Sum(nil))

type stored struct {
	resourceVersion string
	parts           []int
	// light records lack their objects, values and manifest, and are never saved.
	light bool
	// granted are the platform's values of a light record.
	granted []any
}

// Rollback says why a revision has an earlier one's objects.
type Rollback struct {
	// To is the revision that is restored, Failed the one that it replaces.
	To     int `json:"to"`
	Failed int `json:"failed"`
	// Version and Inputs are those of the failed revision, which is not tried again.
	Version string `json:"version"`
	Inputs  string `json:"inputs"`
	// ReconcileAt is annotation reconcile-at then; another value requests a retry.
	ReconcileAt string `json:"reconcileAt,omitempty"`
	// Problem is why it failed, in a sentence without values.
	Problem string `json:"problem,omitempty"`
	// Cause is the cause that may be the user cluster's own; empty if there is none.
	Cause string `json:"cause,omitempty"`
}

// Unsaved is a copy of the record that becomes another revision.
func (r *Record) Unsaved() *Record {
	again := *r
	again.stored = stored{}
	return &again
}

// Light is the record for memory, without objects, values and manifest; hooks stay, since they run later. To save it,
// or to show it as a Helm release, load the record.
func (r *Record) Light() *Record {
	light := *r
	light.stored.granted = r.Granted()
	light.Objects, light.Values, light.Origins, light.stored.light = nil, nil, nil, true
	if r.Helm != nil {
		helm := *r.Helm
		helm.Manifest, helm.Config = "", nil
		light.Helm = &helm
	}
	return &light
}

// Granted are the values of the platform that the revision was made with, so that messages can omit them; nil for
// none.
func (r *Record) Granted() []any {
	switch {
	case r == nil || r.PlatformValues == "":
		return nil
	case r.stored.light:
		return r.stored.granted
	}
	return values.Origins(r.Origins).Of(r.Values, values.OriginPlatform)
}

// CopyProgress copies the progress of hooks and Helm release from a record that may be light.
func (r *Record) CopyProgress(kept *Record) {
	r.Hooks, r.HooksState = kept.Hooks, kept.HooksState
	if kept.Helm != nil && r.Helm != nil {
		helm := *kept.Helm
		helm.Manifest, helm.Config = r.Helm.Manifest, r.Helm.Config
		r.Helm = &helm
	}
}

// IsLight says whether the record lacks its objects, values and manifest.
func (r *Record) IsLight() bool { return r.stored.light }

// Holds says whether a revision has these objects, by their digest, and these hooks.
func (r *Record) Holds(objectsDigest string, wanted []hooks.Hook) bool {
	return r.ObjectsDigest == objectsDigest && r.HooksDigest == hooks.Digest(wanted)
}

// IsEmpty says whether the revision has no objects: its add-on has nothing for the cluster.
func (r *Record) IsEmpty() bool { return r.ObjectsDigest == emptyDigest }

// LeftBy is the mark of CustomResourceDefinitions that the installation leaves; "" for none.
func (r *Record) LeftBy() string {
	if r.Catalogue == "" {
		return ""
	}
	return r.Catalogue + "/" + r.Addon
}

// Has says whether the installation has an object, still has to prune it, or uses it.
func (r *Record) Has(key ownership.Key) bool {
	return slices.ContainsFunc(slices.Concat(r.Inventory, r.Superseded, r.Shared, r.ManagedSecrets), func(entry ownership.Entry) bool {
		return entry.Key == key
	})
}

// InCluster is the inventory of the user cluster. If newer records can't be read, any content may differ.
func (r *Record) InCluster() ownership.Inventory {
	if r.Skipped > 0 {
		return r.Inventory.Unconfirmed()
	}
	return r.Inventory
}

// Unreadable says which newer revision can't be read; nil if this one is the newest.
func (r *Record) Unreadable() error {
	if r == nil || r.Skipped == 0 {
		return nil
	}
	return fmt.Errorf("the record of revision %d can't be read: %s", r.Skipped, r.Damage)
}

// BelongTo makes a Cluster the owner of the record.
func (r *Record) BelongTo(cluster metav1.OwnerReference) {
	r.ClusterName, r.ClusterUID, r.ClusterAPIVersion = cluster.Name, cluster.UID, ""
	if target.OwnerOf(r.Cluster()).APIVersion != cluster.APIVersion {
		r.ClusterAPIVersion = cluster.APIVersion
	}
}

// Cluster is the Cluster that owns the record.
func (r *Record) Cluster() v1.ClusterIdentity {
	group := schema.FromAPIVersionAndKind(r.ClusterAPIVersion, "").Group
	return v1.ClusterIdentity{Group: group, Name: r.ClusterName, UID: r.ClusterUID}
}

// clusterOwner is that Cluster as owner of Secrets.
func (r *Record) clusterOwner() metav1.OwnerReference {
	owner := target.OwnerOf(r.Cluster())
	owner.APIVersion = cmp.Or(r.ClusterAPIVersion, owner.APIVersion)
	return owner
}

// Owner is the installation that the record belongs to.
func (r *Record) Owner() ownership.Owner {
	return ownership.Owner{ClusterUID: cmp.Or(r.Origin, r.ClusterUID), Installation: r.Installation}
}
