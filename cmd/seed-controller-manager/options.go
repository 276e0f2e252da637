package main

import (
	"flag"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/cmd/internal/sources"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// options are the manager's flags.
type options struct {
	manager.Flags
	driftInterval, sourceInterval time.Duration
	orderTimeout                  time.Duration
	sources                       sources.Flags
	allowPrereleases              bool
	checkSources                  bool
	restrictions                  catalogue.Restrictions
	concurrency                   int
	rendering                     renderFlags
	query                         queryOptions
	clusters                      clusterOptions
	templates                     templateOptions
	agents                        agentOptions
}

func newOptions() *options { return &options{clusters: newClusterOptions()} }

func (o *options) register(set *flag.FlagSet) {
	o.Register(set)
	set.DurationVar(&o.driftInterval, "drift-interval", 10*time.Minute, "the time between two checks of applied objects")
	set.DurationVar(&o.orderTimeout, "order-timeout", 10*time.Minute,
		"how long an installation waits for add-ons with an earlier slot, and in upgrades for its dependencies; 0: not at all")
	set.DurationVar(&o.sourceInterval, "source-interval", 5*time.Minute, "the time between two checks of a source")
	set.BoolVar(&o.checkSources, "check-sources", true,
		"fetch and render each source of the catalogues once before any installation; the seeds divide the sources among them, and condition "+
			"SourcesReady of the catalogues on the master has the result")
	o.sources.Register(set, "trellis-store", "4Gi")
	set.BoolVar(&o.allowPrereleases, "allow-prereleases", false,
		"let pre-releases of KKP and Kubernetes match ranges that name no pre-release")
	set.TextVar(&o.restrictions, strings.TrimPrefix(catalogue.FlagRestrictions, "--"), catalogue.Restrictions{},
		"restrictions of add-ons of Custom catalogues, comma-separated: kube-namespaces forbids namespaces kube-system, kube-public and "+
			"kube-node-lease, pod-security forbids labels pod-security.kubernetes.io/* on Namespaces")
	o.rendering.register(set)
	set.IntVar(&o.concurrency, "concurrency", 10, "the number of concurrent reconciliations of installations")
	o.query.register(set)
	o.clusters.register(set)
	o.templates.register(set)
	o.agents.register(set)
}
