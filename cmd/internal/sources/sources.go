// Package sources has what both managers need to fetch: the network by which the kinds of source
// (listed in package wiring) are reached, the store, and the flags of both.
package sources

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// Flags say where sources may be and how much of them is kept.
type Flags struct {
	folder              string
	limit               resource.QuantityValue
	allowCIDRs, cluster []netip.Prefix
	mirrors             fetch.Mirrors
	insecure            bool
}

// Register adds the flags, with a name below the folder for temporary files and a limit as defaults.
func (f *Flags) Register(set *flag.FlagSet, folder, limit string) {
	set.StringVar(&f.folder, "store-folder", filepath.Join(os.TempDir(), folder), "where fetched content is kept, by digest")
	f.limit.Quantity = resource.MustParse(limit)
	set.Var(&f.limit, "store-limit", "how much of the volume fetched content and running fetches take at most; beyond it, content of the "+
		"catalogue that has the most is removed, what was not used for the longest time first")
	manager.ListVar(set, &f.allowCIDRs, "allow-source-cidrs",
		"address ranges, comma-separated, that sources may be at although they are loopback, link-local or cluster-internal",
		manager.CIDR)
	manager.ListVar(set, &f.cluster, "cluster-cidrs",
		"the own service and pod networks of the cluster that this runs in, comma-separated: no source is fetched from there",
		manager.CIDR)
	set.Var(&f.mirrors, "source-mirror",
		"from=to, comma-separated or repeated: prefixes of git remotes, Helm repositories and images, and where they are fetched from instead")
	set.BoolVar(&f.insecure, "allow-insecure-sources", false, "allow sources over plain http, for labs")
}

// Kinds are the kinds of source that are served.
func (f *Flags) Kinds() fetch.Kinds {
	return wiring.SourceKinds(outbound.New(outbound.Options{
		AllowCIDRs: f.allowCIDRs, ClusterCIDRs: f.cluster, AllowInsecure: f.insecure, Mirrors: f.mirrors,
	}))
}

// Store opens the store of what is fetched, with the flags' and further options.
func (f *Flags) Store(options store.Options) (*store.Store, error) {
	options.Folder, options.MaxBytes, options.Mirrors = f.folder, f.limit.Value(), f.mirrors
	options.Metrics = store.NewMetrics(metrics.Registry)
	content, err := store.New(options)
	if err != nil {
		return nil, fmt.Errorf("opening the store %q: %w", f.folder, err)
	}
	return content, nil
}

// checksLimit is what checks of sources take of the volume, beside --store-limit. The chart of the seed adds it.
const checksLimit = 1 << 30

// Checks opens the store of what is looked at once and not kept, with a network of its own: what happens
// to a check there is nothing to other fetches.
func (f *Flags) Checks() (*store.Store, error) {
	content, err := store.New(store.Options{
		Folder: filepath.Join(f.folder, "checks"), Kinds: f.Kinds(), Mirrors: f.mirrors, MaxBytes: checksLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the store of checks: %w", err)
	}
	return content, nil
}
