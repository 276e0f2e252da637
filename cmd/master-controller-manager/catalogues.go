package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/trellis-addons/trellis/cmd/internal/sources"
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
	return gitcatalogue.New(gitcatalogue.Dependencies{
		Master: master, Store: content, SourceKinds: kinds, Recorder: made.GetEventRecorder("gitcatalogue"),
		Options: gitcatalogue.Options{Namespace: namespace},
	}).SetupWithManager(made)
}
