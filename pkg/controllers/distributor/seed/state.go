package seed

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// State is what a worker found out about its seed.
type State struct {
	Name string
	// Reached is set when the seed could be asked. Otherwise Problem says what is in the way.
	Reached bool
	Problem string
	// Unfetched is what the seed's installations say of sources; what they said when they were
	// counted last.
	Unfetched usage.Unfetched
	At        time.Time
	// Digests of the merged add-ons that the seed has; those of the last time it was reached.
	Digests map[string]string
	// Held says by name of a merged add-on which catalogue keeps it as it is.
	Held map[string]string
	// KeyFailed says what keeps the seed from having the key of marks; empty: nothing.
	KeyFailed string
	// FailedCatalogues and FailedSecrets say by name what could not be written or deleted.
	FailedCatalogues, FailedSecrets map[string]string
}

// Behind says what keeps a seed from having merged add-ons with these digests, and these Secrets;
// empty: it has them.
func (s *State) Behind(digests map[string]string, secrets []string) string {
	if !s.Reached {
		return s.Problem
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		if by := s.Held[name]; by != "" {
			return fmt.Sprintf("AddonCatalogue %q stays as it is: what catalogue %q says can't be told", name, by)
		}
		if failed := s.FailedCatalogues[name]; failed != "" {
			return failed
		}
		if s.Digests[name] != digests[name] {
			return fmt.Sprintf("AddonCatalogue %q is on its way", name)
		}
	}
	for _, name := range secrets {
		if failed := s.FailedSecrets[name]; failed != "" {
			return failed
		}
	}
	return s.KeyFailed
}

// isWhole says whether the seed has all that is wanted, as far as it was asked for.
func (s *State) isWhole() bool {
	return s.Reached && len(s.FailedCatalogues)+len(s.FailedSecrets)+len(s.KeyFailed) == 0
}
