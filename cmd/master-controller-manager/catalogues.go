package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/cmd/internal/sourcekinds"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// sources are the flags of catalogues in git, under the names that they have on seeds.
type sources struct {
	storeFolder              string
	storeLimit               resource.QuantityValue
	allowCIDRs, clusterCIDRs manager.CIDRs
	mirrors                  fetch.Mirrors
	insecure                 bool
}

func (s *sources) register(set *flag.FlagSet) {
	set.StringVar(&s.storeFolder, "store-folder", filepath.Join(os.TempDir(), "trellis-catalogues"),
		"where the content of git catalogues is kept, by digest")
	s.storeLimit.Quantity = resource.MustParse("1Gi")
	set.Var(&s.storeLimit, "store-limit", "how much fetched content is kept; what was not used for the longest time goes first")
	set.Var(&s.allowCIDRs, "allow-source-cidrs",
		"address ranges, comma-separated, that git catalogues may be at although they are loopback, link-local or cluster-internal")
	set.Var(&s.clusterCIDRs, "cluster-cidrs",
		"the master's own service and pod networks, comma-separated: no catalogue is fetched from there")
	set.Var(&s.mirrors, "source-mirror",
		"from=to, comma-separated or repeated: prefixes of git remotes, and where they are fetched from instead")
	set.BoolVar(&s.insecure, "allow-insecure-sources", false, "allow git catalogues over plain http, for labs")
}

// kinds of source: what catalogues in git are fetched by, and what is known of the Secrets of the others.
func (s *sources) kinds() fetch.Kinds {
	return sourcekinds.All(outbound.New(outbound.Options{
		AllowCIDRs: s.allowCIDRs, ClusterCIDRs: s.clusterCIDRs, AllowInsecure: s.insecure, Mirrors: s.mirrors,
	}))
}

// addGitCatalogues sets controller gitcatalogue up, with its store.
func addGitCatalogues(made ctrl.Manager, master cluster.Cluster, namespace string, flags *sources, kinds fetch.Kinds) error {
	content, err := store.New(store.Options{
		Folder: flags.storeFolder, Kinds: kinds, MaxBytes: flags.storeLimit.Value(),
		Mirrors: flags.mirrors, Metrics: store.NewMetrics(metrics.Registry),
	})
	if err != nil {
		return fmt.Errorf("opening the store %q: %w", flags.storeFolder, err)
	}
	if err := made.Add(content); err != nil {
		return fmt.Errorf("adding the store: %w", err)
	}
	return gitcatalogue.New(gitcatalogue.Dependencies{
		Master: master, Store: content, SourceKinds: kinds, Recorder: made.GetEventRecorder("gitcatalogue"),
		Options: gitcatalogue.Options{Namespace: namespace},
	}).SetupWithManager(made)
}
