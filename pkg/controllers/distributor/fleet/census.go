package fleet

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// NewCensus counts the AddonSets of a platform namespace by state, once leads is closed.
func NewCensus(sets client.Reader, namespace string, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_sets",
		"AddonSets by their state on all seeds together, and the reason of their condition Ready.", loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		each := func(one *v1.AddonSet) { visit(one.Status.Conditions) }
		return loop.EachOf(ctx, sets, &v1.AddonSetList{}, each, client.InNamespace(namespace))
	})
}
