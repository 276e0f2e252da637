package manager

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kkpKinds are the kinds that KKP installs.
var kkpKinds = []string{"Cluster", "Seed", "KubermaticConfiguration"}

// Sources of kinds.
const (
	fromChart = "apply the CRDs of chart trellis-master, or on a seed of trellis-seed: " +
		"helm show crds <chart> | kubectl apply --server-side --force-conflicts -f -"
	fromKKP = "KKP installs its CRDs; without KKP, apply the folder deploy/standalone/crds, or crds-standalone.yaml of a release"
)

// Explain returns the error that a manager ends with, with what to do if the API server lacks a kind, or all kinds of
// a group.
func Explain(err error) error {
	var none *meta.NoKindMatchError
	var groups *apiutil.ErrResourceDiscoveryFailed
	switch {
	case errors.As(err, &none) && slices.Contains(kkpKinds, none.GroupKind.Kind):
		return fmt.Errorf("the API server has no kind %s: %s: %w", none.GroupKind, fromKKP, err)
	case errors.As(err, &none):
		return fmt.Errorf("the API server has no kind %s: %s: %w", none.GroupKind, fromChart, err)
	case errors.As(err, &groups):
		return fmt.Errorf("the API server lacks kinds. For kinds of Trellis: %s; for kinds of KKP: %s: %w", fromChart, fromKKP, err)
	}
	return err
}
