package main

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
)

// addCore adds the controller of core add-ons, and its metrics.
func addCore(made manager.Manager, marks *mergedcatalogue.Marks, options *options) error {
	controller := coreaddon.New(wiring.CoreAddon(made, marks, coreaddon.Options{
		Namespace: options.Namespace, CatalogueNamespace: options.CatalogueNamespace, WorkerName: options.WorkerName,
	}))
	if err := metrics.Registry.Register(controller); err != nil {
		return fmt.Errorf("registering its metrics: %w", err)
	}
	return controller.SetupWithManager(made)
}
