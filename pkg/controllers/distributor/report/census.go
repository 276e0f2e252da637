package report

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// mostSeeds is the number of seeds with separate figures.
const mostSeeds = 200

// NewCensus counts the authored catalogues of a platform namespace by state, once leads is closed.
func NewCensus(catalogues client.Reader, namespace string, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_catalogues",
		"Authored AddonCatalogues by their state and the reason of their condition Ready.", loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		return eachAuthored(ctx, catalogues, namespace, func(one *v1.AddonCatalogue) { visit(one.Status.Conditions) })
	})
}

// NewSeedCensus counts them by seed, and by whether the seed has their merged content, once leads is closed.
func NewSeedCensus(catalogues client.Reader, namespace string, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_seed_catalogues",
		"Authored AddonCatalogues by seed and by whether it has their merged content.", []string{"seed", "state"}, nil)
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
	return loop.EachOf(ctx, catalogues, &v1.AddonCatalogueList{}, func(one *v1.AddonCatalogue) {
		if one.Labels[v1.LabelRole] == "" {
			visit(one)
		}
	}, client.InNamespace(namespace))
}
