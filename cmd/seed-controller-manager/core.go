package main

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
)

// addCore adds the controller of core add-ons, and its metrics.
func addCore(made manager.Manager, marks *mergedcatalogue.Marks, options *options) error {
	controller := coreaddon.New(coreaddon.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Recorder: made.GetEventRecorder("coreaddon"),
		Finder: newFinder(made),
		Options: coreaddon.Options{
			Namespace: options.Namespace, CatalogueNamespace: options.CatalogueNamespace, WorkerName: options.WorkerName,
		},
	})
	if err := metrics.Registry.Register(controller); err != nil {
		return fmt.Errorf("registering its metrics: %w", err)
	}
	return controller.SetupWithManager(made)
}
