package main

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	trellis "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/webhook"
)

// admit serves admission of authored catalogues and sets.
func admit(made manager.Manager, cached client.Reader, flags *trellis.Flags) error {
	return flags.Admit(made, map[string]admission.Handler{
		webhook.PathCatalogues: &webhook.Catalogues{
			Master: made.GetAPIReader(), Namespace: flags.Namespace, WorkerName: flags.WorkerName,
			Room: &webhook.Room{Cached: cached},
		},
		webhook.PathSets: &webhook.Sets{Master: made.GetAPIReader(), Namespace: flags.Namespace},
	})
}
