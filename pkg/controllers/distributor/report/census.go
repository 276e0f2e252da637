package report

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// NewCensus counts the authored catalogues of a platform namespace by how they stand, from when
// leads is closed on: those in git as one each.
func NewCensus(catalogues client.Reader, namespace string, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_catalogues",
		"Authored AddonCatalogues by how they stand and the reason of their condition Ready.", loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		list := &v1.AddonCatalogueList{}
		if err := catalogues.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Labels[v1.LabelRole] == "" {
				visit(list.Items[i].Status.Conditions)
			}
		}
		return nil
	})
}
