package main

import (
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	trellis "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// admit serves admission of authored catalogues and sets.
func admit(made manager.Manager, master cluster.Cluster, flags *trellis.Flags) error {
	reader := webhook.Master(master.GetClient(), master.GetAPIReader())
	return flags.Admit(made, map[string]admission.Handler{
		webhook.PathCatalogues: &webhook.Catalogues{Master: reader, Namespace: flags.Namespace, WorkerName: flags.WorkerName},
		webhook.PathSets:       &webhook.Sets{Master: reader, Namespace: flags.Namespace},
	})
}
