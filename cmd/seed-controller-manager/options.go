package main

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// options are the manager's flags.
type options struct {
	manager.Flags
	driftInterval, sourceInterval time.Duration
	storeFolder                   string
	storeLimit                    resource.QuantityValue
	sourceCIDRs, clusterCIDRs     []netip.Prefix
	mirrors                       fetch.Mirrors
	insecureSources               bool
	allowPrereleases              bool
	restrictions                  catalogue.Restrictions
	concurrency                   int
	rendering                     rendering
	query                         queryOptions
	templates                     templateOptions
}

func newOptions() *options { return &options{} }

func (o *options) register(set *flag.FlagSet) {
	o.Register(set)
	set.DurationVar(&o.driftInterval, "drift-interval", 10*time.Minute, "the time between two looks at applied objects")
	set.DurationVar(&o.sourceInterval, "source-interval", 5*time.Minute, "the time between two looks at a source")
	set.StringVar(&o.storeFolder, "store-folder", filepath.Join(os.TempDir(), "trellis-store"), "where fetched content is kept, by digest")
	o.storeLimit.Quantity = resource.MustParse("4Gi")
	set.Var(&o.storeLimit, "store-limit", "how much fetched content is kept; what was not used for the longest time goes first")
	manager.ListVar(set, &o.sourceCIDRs, "allow-source-cidrs",
		"address ranges, comma-separated, that sources may be at although they are loopback, link-local or cluster-internal", manager.CIDR)
	manager.ListVar(set, &o.clusterCIDRs, "cluster-cidrs",
		"the seed's own service and pod networks, comma-separated: no source is fetched from there", manager.CIDR)
	set.Var(&o.mirrors, "source-mirror", "from=to, comma-separated or repeated: prefixes of git remotes, Helm repositories and images, "+
		"and where they are fetched from instead")
	set.BoolVar(&o.insecureSources, "allow-insecure-sources", false, "allow sources over plain http, for labs")
	set.BoolVar(&o.allowPrereleases, "allow-prereleases", false, "let a platform that is a pre-release lie in ranges that name none")
	set.TextVar(&o.restrictions, strings.TrimPrefix(catalogue.FlagRestrictions, "--"), catalogue.Restrictions{},
		"what add-ons of Custom catalogues don't get, comma-separated: kube-namespaces keeps them out of kube-system, kube-public and "+
			"kube-node-lease, pod-security from labels pod-security.kubernetes.io/* on Namespaces")
	o.rendering.register(set)
	set.IntVar(&o.concurrency, "concurrency", 10, "the number of installations worked on at a time")
	o.query.register(set)
	o.templates.register(set)
}
