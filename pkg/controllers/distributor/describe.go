package distributor

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/cluster"
)

// describe puts an error of a call into words that are fit for status: they name no address, and they are the same when
// the same goes wrong again, so that status is not written over and over.
func describe(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return describeAnswer(err, answer.Status())
	}
	return cluster.DescribeFailure(err)
}

func describeAnswer(err error, status metav1.Status) string {
	switch {
	case apierrors.IsBadRequest(err):
		return "SeedOutdated: the seed's CRD does not know a field: upgrade chart trellis-seed there (" + status.Message + ")"
	case apierrors.IsInvalid(err):
		return "SeedOutdated: the seed's CRD refuses it: upgrade chart trellis-seed there (" + status.Message + ")"
	case apierrors.IsAlreadyExists(err):
		return "it exists on the seed and is not ours: delete or rename it there"
	case apierrors.IsNotFound(err):
		return "the seed does not have the kind or the namespace: is chart trellis-seed installed? (" + status.Message + ")"
	case apierrors.IsUnauthorized(err):
		return "the seed refuses the credentials: renew its kubeconfig Secret"
	case apierrors.IsConflict(err):
		return "it was changed by somebody else at the same time; tried again"
	}
	return fmt.Sprintf("the API server answered %s: %s", status.Reason, status.Message)
}
