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
	// Created is when the set was.
	Created metav1.Time
	// Spec is what is copied, with its Digest; nil: the present one is refused, and the last good copy
	// stays as it is.
	Spec   *v1.AddonSetSpec
	Digest string
	// Pass is the one in which the set, or a catalogue that it depends on, changed last.
	Pass int64
}

// Order is what package fleet wants of one copy, besides what is in it.
type Order struct {
	// UID of the set; an order for another one does not count.
	UID types.UID
	// Generation of the set that was decided on: a gate counts groups, and is for those of that one.
	Generation int64
	// Gate for the seed; empty: the one that the copy has.
	Gate string
	// RemovalApproved is annotation removal-approved for the seed.
	RemovalApproved string
	// LeaveOut is annotation leave-out; empty: none, or one that can't be read.
	LeaveOut string
	// Delete says that the set is being deleted.
	Delete bool
}

// Row is what is known of one copy.
type Row struct {
	// UID of the set that was wanted when this was read.
	UID types.UID
	// There says that the copy exists.
	There bool
	// Gone says that the copy was ordered to be deleted and does not exist any more.
	Gone bool
	// Synced says that Status speaks of the set and the catalogues that the master has.
	Synced bool
	// Pass is that of the set that was wanted.
	Pass int64
	// RemovalApproved is the copy's, and Confirmed says that it was ordered to be deleted; both where it
	// is marked.
	RemovalApproved string
	Confirmed       bool
	// Status is what the seed says, cut.
	Status v1.AddonSetStatus
	// Failure says why the copy is not as it should be, or can't be read; empty: it is.
	Failure string
}

// State is what the worker of a seed knows of all copies.
type State struct {
	Seed string
	// Reached says that the seed answered; else Problem says why not.
	Reached bool
	Problem string
	At      time.Time
	// Rows by name of the set; nil: not known.
	Rows map[string]Row
}
