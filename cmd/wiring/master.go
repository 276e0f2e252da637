package wiring

import (
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Distributor returns the dependencies of controller distributor.
func Distributor(
	made manager.Manager, master *distributor.Master, kinds fetch.Kinds, options distributor.Options,
) distributor.Dependencies {
	return distributor.Dependencies{
		Master: master, Recorder: made.GetEventRecorder("distributor"), SecretKeys: kinds.SecretKeys(), Options: options,
	}
}

// GitCatalogue returns the dependencies of controller gitcatalogue.
func GitCatalogue(
	made manager.Manager, master cluster.Cluster, content fetch.Store, kinds fetch.Kinds, options gitcatalogue.Options,
) gitcatalogue.Dependencies {
	return gitcatalogue.Dependencies{
		Master: master, Store: content, SourceKinds: kinds, Recorder: made.GetEventRecorder("gitcatalogue"), Options: options,
	}
}
