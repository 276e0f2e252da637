package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/trellis-addons/trellis/cmd/internal/sources"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// addGitCatalogues sets controller gitcatalogue up, with its store.
func addGitCatalogues(
	made ctrl.Manager, master cluster.Cluster, namespace string, flags *sources.Flags, kinds fetch.Kinds,
) error {
	content, err := flags.Store(kinds, 0)
	if err != nil {
		return err
	}
	if err := made.Add(content); err != nil {
		return fmt.Errorf("adding the store: %w", err)
	}
	options := gitcatalogue.Options{Namespace: namespace}
	return gitcatalogue.New(wiring.GitCatalogue(made, master, content, kinds, options)).SetupWithManager(made)
}
