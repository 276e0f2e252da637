package copies

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Set is an AddonSet that every seed should have.
type Set struct {
	UID types.UID
	// Generation of the set on the master.
	Generation int64
	// Created is the set's creation time.
	Created metav1.Time
	// Spec is the copied spec, with its Digest; nil: the present one is refused, and the last good copy stays as it is.
	Spec   *v1.AddonSetSpec
	Digest string
	// Run numbers the reconciliation in which the set, or a catalogue that it depends on, last changed.
	Run int64
}

// Order is package fleet's order for one copy, in addition to its content.
type Order struct {
	// UID of the set; the Keeper ignores an order for another UID.
	UID types.UID
	// Generation of the set that the decision is based on: the gate counts the groups of this generation.
	Generation int64
	// Gate for the seed; empty: the copy's present one.
	Gate string
	// RemovalApproved is annotation removal-approved for the seed.
	RemovalApproved string
	// LeaveOut is annotation leave-out; empty if there is none, or it can't be read.
	LeaveOut string
	// Delete says that the set is being deleted.
	Delete bool
}

// Row is the state of one copy.
type Row struct {
	// UID of the set that was wanted when the copy was read.
	UID types.UID
	// There says that the copy exists.
	There bool
	// Gone says that an Order deleted the copy, and that it no longer exists.
	Gone bool
	// Synced says that Status is about the set and the catalogues that the master has.
	Synced bool
	// Run is the Run of the wanted Set.
	Run int64
	// RemovalApproved is the copy's annotation. Confirmed says that the deletion of the copy was ordered. Both are set
	// only if the copy has a valid mark.
	RemovalApproved string
	Confirmed       bool
	// Status is the seed's status, limited.
	Status v1.AddonSetStatus
	// Failure says why the copy is not as it should be, or can't be read; empty if it is.
	Failure string
}

// State is the state of all copies on a seed.
type State struct {
	Seed string
	// Reached says that the seed answered; otherwise Problem says why not.
	Reached bool
	Problem string
	At      time.Time
	// Rows by name of the set; nil if unknown.
	Rows map[string]Row
}
