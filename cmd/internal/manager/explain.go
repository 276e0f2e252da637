package manager

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kkpKinds are those that KKP brings.
var kkpKinds = []string{"Cluster", "Seed", "KubermaticConfiguration"}

// Where kinds come from.
const (
	fromChart = "apply the CRDs of chart trellis-master, or on a seed of trellis-seed: " +
		"helm show crds <chart> | kubectl apply --server-side --force-conflicts -f -"
	fromKKP = "KKP brings it; without KKP it is in deploy/standalone/crds, and crds-standalone.yaml of a release"
)

// Explain is the error that a manager ends with, with what is to be done where the API server lacks
// a kind, or all of a group.
func Explain(err error) error {
	var none *meta.NoKindMatchError
	var groups *apiutil.ErrResourceDiscoveryFailed
	switch {
	case errors.As(err, &none) && slices.Contains(kkpKinds, none.GroupKind.Kind):
		return fmt.Errorf("the API server has no kind %s: %s: %w", none.GroupKind, fromKKP, err)
	case errors.As(err, &none):
		return fmt.Errorf("the API server has no kind %s: %s: %w", none.GroupKind, fromChart, err)
	case errors.As(err, &groups):
		return fmt.Errorf("the API server lacks kinds: %s; those of KKP: %s: %w", fromChart, fromKKP, err)
	}
	return err
}
