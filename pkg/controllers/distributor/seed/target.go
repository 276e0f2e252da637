package seed

import (
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// ManagedBy is the value of our managed-by label.
const ManagedBy = "distributor"

// Target is one seed and the way to it.
type Target struct {
	Name string
	// Config leads to the seed; nil where Problem says why there is no way.
	Config *rest.Config
	// ConfigID changes with the kubeconfig.
	ConfigID string
	// Problem is what keeps us from the seed, fit for status.
	Problem string
	// KKPVersion is stamped onto merged objects.
	KKPVersion string
	// Confirmed is the UID in annotation confirm-seed.
	Confirmed string
}

// Wanted is what every seed should have. It is shared by all workers and never changed.
type Wanted struct {
	Addons map[string]*catalogue.MergedAddon
	// Refused add-ons are neither written nor deleted: the last good ones stay.
	Refused map[string]*catalogue.TooLargeError
	Secrets Secrets
	// Held are catalogues, by name, whose content can't be told at present: merged add-ons with a
	// part of them are neither written nor deleted.
	Held map[string]bool
	// Leave are the versions of core add-ons that clusters are to leave.
	Leave catalogue.Leave
}

// Secrets are the source Secrets that go along with the merged catalogue.
type Secrets struct {
	Copies map[string]SecretCopy
	// Held are named by an entry but missing on the master: what a seed has of them stays.
	Held map[string]bool
	// HoldAll keeps every copy: an add-on was refused, and what the seeds have of it may need some.
	HoldAll bool
}

// SecretCopy is what a seed gets of a source Secret: documented keys only.
type SecretCopy struct {
	Hosts string
	// Revision tells contents apart without telling anything about them.
	Revision string
	Data     map[string][]byte
}

// holder is the catalogue that keeps a merged one as it is; empty: none.
func (w *Wanted) holder(found observedObject) string {
	for _, name := range found.origins {
		if w.Held[name] {
			return name
		}
	}
	return ""
}
