package main

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/webhook"
)

// admit serves admission of what people write on a seed.
func admit(made manager.Manager, marks *mergedcatalogue.Marks, options *options) error {
	return options.Admit(made, map[string]admission.Handler{
		webhook.PathCatalogues: &webhook.Catalogues{Namespace: options.Namespace},
		webhook.PathInstallations: &webhook.Installations{
			Reader: made.GetClient(), Marks: marks, Clusters: wiring.Finder(made),
			CatalogueNamespace: options.CatalogueNamespace, AllowPrereleases: options.allowPrereleases,
			Restrictions: options.restrictions,
		},
	})
}
