package main

import (
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// admit serves admission of objects that users write on a seed, and of copies of sets.
func (s *seed) admit() error {
	return s.options.Admit(s, map[string]admission.Handler{
		webhook.PathCatalogues: &webhook.Catalogues{Seed: s.GetAPIReader(), Namespace: s.options.Namespace},
		webhook.PathSets: &webhook.Sets{Namespace: s.options.Namespace, Seed: &webhook.SeedClusters{
			Reader: s.GetClient(), Uncached: s.GetAPIReader(), Clusters: s.Clusters, CatalogueNamespace: s.options.CatalogueNamespace,
			WorkerName: s.options.WorkerName,
		}},
		webhook.PathInstallations: &webhook.Installations{
			Reader: s.GetClient(), Marks: s.marks, Clusters: s.Clusters,
			CatalogueNamespace: s.options.CatalogueNamespace, AllowPrereleases: s.options.allowPrereleases,
			Restrictions: s.options.restrictions,
		},
	})
}
