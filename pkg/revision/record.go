package revision

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Format is the number of the record format that this release writes; records of format 1 had no seal. A newer one is a
// NewerFormatError, if its index is sealed as ours is: whatever else a format changes, that stays.
const Format = 2

// State says how far a revision got.
type State string

const (
	// StateIntent is about to be applied, or partly applied; the inventory may be behind the user cluster, Objects are not.
	StateIntent State = "Intent"
	// StateApplied says that everything in Objects was applied and Inventory is complete.
	StateApplied State = "Applied"
)

// Record is one revision of an installation.
type Record struct {
	// Format the record was written in.
	Format int `json:"format"`
	// Revision counts from 1 and never goes back.
	Revision int   `json:"revision"`
	State    State `json:"state"`

	// Installation is the AddonInstallation's name.
	Installation string `json:"installation"`
	// ClusterName and ClusterUID are the Cluster's on the seed; it owns the record.
	ClusterName string    `json:"clusterName"`
	ClusterUID  types.UID `json:"clusterUID"`
	// Origin is the UID that the owner's ID derives from, where the Cluster came back with another one (Reown); "" where it did not.
	Origin types.UID `json:"origin,omitempty"`

	// Addon, Version and EntryDigest say which catalogue entry was chosen.
	Addon       string `json:"addon"`
	Version     string `json:"version"`
	EntryDigest string `json:"entryDigest,omitempty"`
	// From is the version of the same add-on that was applied before; "" for none.
	From string `json:"from,omitempty"`
	// Core says that the add-on was installed as a core add-on.
	Core bool `json:"core,omitempty"`
	// Method is how Artifact became Objects.
	Method v1.Method `json:"method,omitempty"`
	// Artifact is the content it was rendered from.
	Artifact v1.Artifact `json:"artifact,omitzero"`
	// Inputs is the HMAC over everything that the rendering depends on (InputsHash).
	Inputs string `json:"inputs,omitempty"`
	// Wanted is the HMAC over the part of it that people say; what the cluster is besides does not count. "" in earlier records.
	Wanted string `json:"wanted,omitempty"`
	// ObjectsDigest is the SHA-256 of Objects.
	ObjectsDigest string `json:"objectsDigest,omitempty"`

	// TargetNamespace is where namespaced objects without a namespace went.
	TargetNamespace string `json:"targetNamespace"`
	// CRDs is the policy in force, with its defaults filled in.
	CRDs v1.CRDPolicy `json:"crds,omitzero"`

	// Former is a Helm release that an earlier revision had and this one has not, by name and namespace only: its Secrets
	// in the user cluster have to go.
	Former *helmrelease.Release `json:"former,omitempty"`
	// Timeout is how long the objects may take to become healthy, counted from Time.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// Settled says that the installation was Ready once, which is where reconcileStrategy Once ends.
	Settled bool `json:"settled,omitempty"`

	// Atomic says that the revision is to give way to LastGood if it is not applied and healthy within Timeout.
	Atomic bool `json:"atomic,omitempty"`
	// Healthy says that every object was healthy at some time. It is kept for revisions that are atomic, or a rollback.
	Healthy bool `json:"healthy,omitempty"`
	// LastGood is the number of the revision before this one that was healthy last; 0 for none. Its record is kept.
	LastGood int `json:"lastGood,omitempty"`
	// Rollback is set on a revision that brings an earlier one back.
	Rollback *Rollback `json:"rollback,omitempty"`

	// Values are the merged values that the objects were rendered with; they may be secret. Origins says which layer set each,
	// by dotted path (package values).
	Values  map[string]any    `json:"values,omitempty"`
	Origins map[string]string `json:"origins,omitempty"`

	// Objects are the rendered objects, as they are applied.
	Objects []json.RawMessage `json:"objects,omitempty"`
	// Inventory is what this revision has in the user cluster.
	Inventory ownership.Inventory `json:"inventory,omitempty"`
	// Superseded are objects of earlier revisions that are not in Objects and still have to be pruned.
	Superseded ownership.Inventory `json:"superseded,omitempty"`
	// Shared are objects of other installations of the add-on that this one uses; Inventory has none of them.
	Shared ownership.Inventory `json:"shared,omitempty"`
	// FormerAddon is the add-on of earlier revisions, where it was another one.
	FormerAddon string `json:"formerAddon,omitempty"`
	// SupersededOf is how many objects there were when Superseded was put together, those of it included.
	SupersededOf int `json:"supersededOf,omitempty"`
	// Helm is the release shown by `helm list`; nil for other methods.
	Helm *helmrelease.Release `json:"helm,omitempty"`
	// Set has the hooks of the Helm release, and how they ran.
	hooks.Set
	// Time at which the revision got into its state.
	Time metav1.Time `json:"time"`

	// Skipped is the newest revision that can't be read, where this one was loaded in its place; 0 where it is the newest. What the
	// user cluster has is not what this record says then.
	Skipped int `json:"-"`
	// Damage names the Secret of that revision, and says why it can't be read.
	Damage string `json:"-"`

	stored stored
}

// stored is where a record stands on the seed; the zero value is a record that was never saved.
type stored struct {
	resourceVersion string
	parts           []int
	// light records miss their objects, values and manifest, and are never saved.
	light bool
}

// Rollback says why a revision has an earlier one's objects.
type Rollback struct {
	// To is the revision that is brought back, Failed the one that gave way to it.
	To     int `json:"to"`
	Failed int `json:"failed"`
	// Version and Inputs are those of the failed revision, which are not tried again.
	Version string `json:"version"`
	Inputs  string `json:"inputs"`
	// ReconcileAt is the value of annotation reconcile-at when it gave way: another one has it tried again.
	ReconcileAt string `json:"reconcileAt,omitempty"`
	// Problem is why it failed, in a sentence for people; it holds no values.
	Problem string `json:"problem,omitempty"`
}

// Again is the record as one that was never saved, to become another revision.
func (r *Record) Again() *Record {
	again := *r
	again.stored = stored{}
	return &again
}

// Light is the record without its objects, values and manifest, to be kept in memory. Hooks stay, since they run after it was
// applied. It can't be saved, nor shown as a Helm release: load the record for that.
func (r *Record) Light() *Record {
	light := *r
	light.Objects, light.Values, light.Origins, light.stored.light = nil, nil, nil, true
	if r.Helm != nil {
		helm := *r.Helm
		helm.Manifest, helm.Config = "", nil
		light.Helm = &helm
	}
	return &light
}

// Follow takes over from a record in memory, which may be light, how its hooks fared and what its Helm release says.
func (r *Record) Follow(kept *Record) {
	r.Hooks, r.HooksState = kept.Hooks, kept.HooksState
	if kept.Helm != nil && r.Helm != nil {
		helm := *kept.Helm
		helm.Manifest, helm.Config = r.Helm.Manifest, r.Helm.Config
		r.Helm = &helm
	}
}

// IsLight says whether the record misses its objects, values and manifest.
func (r *Record) IsLight() bool { return r.stored.light }

// Holds says whether a revision has these objects, by their digest, and these hooks.
func (r *Record) Holds(objectsDigest string, wanted []hooks.Hook) bool {
	return r.ObjectsDigest == objectsDigest && r.HooksDigest == hooks.Digest(wanted)
}

// Standing is what the user cluster has at a record. Where newer ones can't be read, any object may have another content.
func (r *Record) Standing() ownership.Inventory {
	if r.Skipped > 0 {
		return r.Inventory.Doubted()
	}
	return r.Inventory
}

// Unreadable says which newer revision can't be read; nil where this one is the newest.
func (r *Record) Unreadable() error {
	if r == nil || r.Skipped == 0 {
		return nil
	}
	return fmt.Errorf("the record of revision %d can't be read: %s", r.Skipped, r.Damage)
}

// Owner is the installation that the record belongs to.
func (r *Record) Owner() ownership.Owner {
	return ownership.Owner{ClusterUID: cmp.Or(r.Origin, r.ClusterUID), Installation: r.Installation}
}
