// Package sources has the parts of fetching that both managers share: the network for the kinds of source (listed in package
// wiring), the store, and the flags of both.
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
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// Flags limit the places of sources and the size of the store.
type Flags struct {
	folder              string
	limit               resource.QuantityValue
	allowCIDRs, cluster []netip.Prefix
	mirrors             fetch.Mirrors
	insecure            bool
}

// Register adds the flags, with a name below the folder for temporary files and a limit as defaults.
func (f *Flags) Register(set *flag.FlagSet, folder, limit string) {
	set.StringVar(&f.folder, "store-folder", filepath.Join(os.TempDir(), folder), "folder for fetched content, by digest")
	f.limit.Quantity = resource.MustParse(limit)
	set.Var(&f.limit, "store-limit", "disk space for fetched content, including running downloads; if it is full, "+
		"the manager removes content of the catalogue that uses most space, the least recently used first")
	manager.ListVar(set, &f.allowCIDRs, "allow-source-cidrs",
		"address ranges, comma-separated, that are allowed for sources although they are loopback, link-local or cluster-internal",
		manager.CIDR)
	manager.ListVar(set, &f.cluster, "cluster-cidrs",
		"service and pod networks of the manager's own cluster, comma-separated: no source is fetched from there",
		manager.CIDR)
	set.Var(&f.mirrors, "source-mirror",
		"from=to, comma-separated or repeated: replace a prefix of git remotes, Helm repositories or images by the prefix of a mirror")
	set.BoolVar(&f.insecure, "allow-insecure-sources", false, "allow sources over plain http, for labs")
}

// Kinds are the kinds of source that are served.
func (f *Flags) Kinds() fetch.Kinds {
	return contents.Kinds(outbound.New(outbound.Options{
		AllowCIDRs: f.allowCIDRs, ClusterCIDRs: f.cluster, AllowInsecure: f.insecure, Mirrors: f.mirrors,
	}))
}

// Store opens the store of fetched content, with the flags' and further options.
func (f *Flags) Store(options store.Options) (*store.Store, error) {
	options.Folder, options.MaxBytes, options.Mirrors = f.folder, f.limit.Value(), f.mirrors
	options.Metrics = store.NewMetrics(metrics.Registry)
	content, err := store.New(options)
	if err != nil {
		return nil, fmt.Errorf("opening the store %q: %w", f.folder, err)
	}
	return content, nil
}

// checksLimit is the volume that checks of sources use, in addition to --store-limit. The chart of the seed adds it.
const checksLimit = 1 << 30

// Checks opens the store of content that is checked once and not kept, with a network of its own: a failed check does
// not affect other fetches.
func (f *Flags) Checks() (*store.Store, error) {
	content, err := store.New(store.Options{
		Folder: filepath.Join(f.folder, "checks"), Kinds: f.Kinds(), Mirrors: f.mirrors, MaxBytes: checksLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the store of source checks: %w", err)
	}
	return content, nil
}
