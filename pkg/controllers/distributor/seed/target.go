package seed

import (
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// ManagedBy is the value of our managed-by label.
const ManagedBy = "distributor"

// Target is one seed, its address and its credentials.
type Target struct {
	Name string
	// Config leads to the seed; nil if there is none, and Problem, which is safe for status, says why.
	Config *rest.Config
	// ConfigID changes with the kubeconfig.
	ConfigID string
	Problem  string
	// KKPVersion is an annotation of merged objects.
	KKPVersion string
	// Confirmed is the UID in annotation confirm-seed.
	Confirmed string
}

// Wanted are the objects that every seed should have. All workers share it, and none changes it.
type Wanted struct {
	Addons map[string]*catalogue.MergedAddon
	// Refused add-ons are neither written nor deleted: the last good ones stay.
	Refused map[string]*catalogue.TooLargeError
	Secrets Secrets
	// Held are the catalogues, by name, whose content is unknown at present: merged add-ons with a part of them, or of
	// catalogues generated from them, are neither written nor deleted.
	Held map[string]bool
	// Leave are the versions of core add-ons that clusters must leave.
	Leave catalogue.Leave
	// Sets are the AddonSets that are copied, by name.
	Sets map[string]*copies.Set
}

// Secrets are copies of Secrets for sources, and for values of sets.
type Secrets struct {
	Copies map[string]SecretCopy
	// Held names Secrets that are missing on the master: their copies on seeds stay.
	Held map[string]bool
	// HoldValues keeps every copy with values: an invalid set may need it.
	HoldValues bool
	// Revoked are Secrets that none of the sets naming them may use: their copies are deleted even if others are held.
	Revoked map[string]bool
}

// SecretCopy is the copy of a marked Secret for a seed: the documented keys for sources, or those that sets name for
// values.
type SecretCopy struct {
	// Use is the value of label use.
	Use   string
	Hosts string
	// UsedBy is the value of annotation used-by of Secrets for values: the sets that may use it; nil if none is set.
	UsedBy *string
	// Revision differs for other contents, and reveals nothing about them.
	Revision string
	Data     map[string][]byte
}

// digests are those of the merged catalogues that a seed should have: for those that are not changed, the present
// ones.
func (w *Wanted) digests(have observed) map[string]string {
	digests := make(map[string]string, len(w.Addons))
	for name, addon := range w.Addons {
		digests[name] = addon.Digest
	}
	for name, found := range have.catalogues {
		if w.Refused[name] != nil || w.holder(found) != "" {
			digests[name] = found.digest
		}
	}
	return digests
}

// holder is the catalogue because of which a merged one is not changed; empty if there is none.
func (w *Wanted) holder(found observedObject) string {
	for _, name := range found.origins {
		if w.Held[name] {
			return name
		}
	}
	return ""
}
