package addoninstallation

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// NewCensus counts all installations of a seed by how they stand, from when leads is closed on.
func NewCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_installations", "AddonInstallations by how they stand and the reason of their condition Ready.",
		loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		list := &kubermaticv1.AddonInstallationList{}
		if err := installations.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			visit(list.Items[i].Status.Conditions)
		}
		return nil
	})
}
