package report

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// mostSeeds have figures of their own.
const mostSeeds = 200

// NewCensus counts the authored catalogues of a platform namespace by state, once leads is closed.
func NewCensus(catalogues client.Reader, namespace string, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_catalogues",
		"Authored AddonCatalogues by how they stand and the reason of their condition Ready.", loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		return eachAuthored(ctx, catalogues, namespace, func(one *v1.AddonCatalogue) { visit(one.Status.Conditions) })
	})
}

// NewSeedCensus counts them by seed, and by whether it has what was merged of them, once leads is
// closed.
func NewSeedCensus(catalogues client.Reader, namespace string, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_seed_catalogues",
		"Authored AddonCatalogues by seed and by whether it has what was merged of them.", []string{"seed", "state"}, nil)
	seeds := text.NewWords(mostSeeds, text.ObjectName)
	return loop.NewLabelledCensus(description, leads, func(ctx context.Context, count func(first, second string)) error {
		return eachAuthored(ctx, catalogues, namespace, func(one *v1.AddonCatalogue) {
			for i := range one.Status.Seeds {
				state := "behind"
				if one.Status.Seeds[i].Synced {
					state = "synced"
				}
				count(seeds.Label(one.Status.Seeds[i].Name), state)
			}
		})
	})
}

func eachAuthored(ctx context.Context, catalogues client.Reader, namespace string, visit func(*v1.AddonCatalogue)) error {
	list := &v1.AddonCatalogueList{}
	if err := catalogues.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Labels[v1.LabelRole] == "" {
			visit(&list.Items[i])
		}
	}
	return nil
}
