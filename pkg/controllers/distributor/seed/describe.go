package seed

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-addons/trellis/pkg/cluster"
)

// Describe puts an error of a call into words that are fit for status: they name no address, quote no
// answer, and are the same when the same goes wrong again, so that status is not written over and over.
func Describe(err error) string {
	switch {
	case apierrors.IsBadRequest(err):
		return "SeedOutdated: the seed's CRD does not know a field: upgrade chart trellis-seed there"
	case apierrors.IsInvalid(err):
		return "SeedOutdated: the seed's CRD refuses it: upgrade chart trellis-seed there"
	case apierrors.IsAlreadyExists(err):
		return "it exists on the seed and is not ours: delete or rename it there"
	case apierrors.IsNotFound(err):
		return "the seed does not have the kind or the namespace: is chart trellis-seed installed?"
	case apierrors.IsUnauthorized(err):
		return "the seed refuses the credentials: renew its kubeconfig Secret"
	case apierrors.IsConflict(err):
		return "it was changed by somebody else at the same time; tried again"
	case apierrors.IsForbidden(err):
		return "the seed forbids it: check the rights of its kubeconfig's user, and the seed's policies"
	case apierrors.IsRequestEntityTooLargeError(err):
		return "the seed's API server finds it too large"
	}
	return cluster.DescribeFailure(err)
}
