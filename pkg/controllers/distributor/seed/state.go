package seed

import (
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// State is what a worker found out about its seed.
type State struct {
	Name string
	// Reached is set when the seed could be asked. Otherwise Problem says what is in the way.
	Reached bool
	Problem string
	// Unfetched is what the seed's installations said of sources when they were counted last.
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

// Behind says what keeps a seed from having these merged add-ons and Secrets; empty: it has them.
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

// Describe puts an error of a call into words that are fit for status: they name no address, quote no
// answer, and are the same when the same goes wrong again, so that status is not written over and over.
func Describe(err error) string {
	for _, answer := range answers {
		if answer.is(err) {
			return answer.text
		}
	}
	return cluster.DescribeFailure(err)
}

// answers of a seed's API server, in words of our own.
var answers = []struct {
	is   func(error) bool
	text string
}{
	{apierrors.IsBadRequest, "SeedOutdated: the seed's CRD does not know a field: upgrade chart trellis-seed there"},
	{apierrors.IsInvalid, "SeedOutdated: the seed's CRD refuses it: upgrade chart trellis-seed there"},
	{apierrors.IsAlreadyExists, "it exists on the seed and is not ours: delete or rename it there"},
	{apierrors.IsNotFound, "the seed does not have the kind or the namespace: is chart trellis-seed installed?"},
	{apierrors.IsUnauthorized, "the seed refuses the credentials: renew its kubeconfig Secret"},
	{apierrors.IsConflict, "it was changed by somebody else at the same time; tried again"},
	{apierrors.IsForbidden, "the seed forbids it: check the rights of its kubeconfig's user, and the seed's policies"},
	{apierrors.IsRequestEntityTooLargeError, "the seed's API server finds it too large"},
}
