package parts

import "slices"

// Why no tenth has a part.
const (
	measures = "it measures: run it where little else runs"
	builds   = "it builds programs that nothing else needs"
	releases = "it holds two releases against each other, which a commit may rightly tell apart, and builds one of them"
)

// Parts is the table. Each package runs in full in some part, without -short, and all but those that measure under
// the race detector.
func Parts() []Part {
	return slices.Concat(inProcess, platform, kills, attacks, upgrades, programs, figures)
}

// inProcess are packages whose code runs in the test's own process: `make test` has them with the race detector where
// they are concurrent themselves, and in the short form.
var inProcess = []Part{
	{
		Name: "installations", Minutes: 3, Packages: []string{"pkg/controllers/addoninstallation"}, Race: true,
		Why: "the largest package in full, under the race detector",
	},
	{
		Name: "controllers", Minutes: 4, Race: true,
		Packages: []string{"pkg/controllers/...", "pkg/clusters/access/...", "pkg/clusters/cluster"},
		Why:      "the other controllers in full, under the race detector",
	},
	{
		Name: "packages", Minutes: 4, Packages: []string{"pkg/...", "apis/...", "charts/...", "cmd/..."}, Race: true,
		Why: "all other packages of the product in full, under the race detector",
	},
	{
		Name: "tools", Minutes: 2, Packages: []string{"hack/..."}, Race: true,
		Why: "packages of builds and releases in full, under the race detector",
	},
}

// platform are packages below test that run the managers as processes, in full. The detector sees what is in the
// tests' own process.
var platform = []Part{
	{
		Name: "docs", Minutes: 3, Packages: []string{"test/docs"}, Race: true, Skip: elsewhere,
		Why: "the pages' commands on both kinds of sandbox",
	},
	{
		Name: "docs-elsewhere", Minutes: 2, Packages: []string{"test/docs"}, Race: true, Run: elsewhere,
		Why: "the pages' other commands, most of them on API servers of their own",
	},
	{
		Name: "endtoend", Minutes: 4, Packages: []string{"test/endtoend", "test/traces"}, Race: true,
		Why: "the whole platform with KKP's Clusters and with Cluster API's, and a story's traces",
	},
	{
		Name: "charts", Minutes: 3, Packages: []string{"test/charts"}, Race: true,
		Why: "charts on both minors of Kubernetes, each query of dashboards and alerts",
	},
	{
		Name: "admission", Minutes: 2, Packages: []string{"test/admission"}, Race: true,
		Why: "policies on both minors of Kubernetes",
	},
	{
		Name: "cluster-api", Minutes: 4, Packages: []string{"test/boot", "test/clusterapi"}, Race: true,
		Why: "new Clusters of Cluster API from a ClusterClass to the last add-on, with its own manager",
	},
	{
		Name: "sets", Minutes: 3, Packages: []string{"test/sets"}, Race: true,
		Why: "stories of AddonSets in full",
	},
	{
		Name: "hostile", Minutes: 2, Packages: []string{"test/hostile"}, Race: true,
		Why: "every mode of a hostile API server, and every act, in full",
	},
	{
		Name: "foundations", Minutes: 3, Packages: []string{"test/..."}, Race: true,
		Why: "fleets, pods, gates, the kinds on both minors and all else that tests need, in full",
	},
}

// elsewhere are the tests of test/docs whose commands run elsewhere than on the sandbox.
const elsewhere = "^Test(EveryOtherBlockIsTriedElsewhere|BlocksThat)"

// kills are the places at which a controller is killed. `make test` takes some, which the commit's hash chooses.
var kills = []Part{
	{
		Name: "kills", Minutes: 4, Packages: []string{"test/crash"}, Race: true, Run: "^TestKilledAtEveryWriteEndsTheSame$", Verbose: true,
		Why: "the manager of installations is killed before and after every write of each story",
	},
	{
		Name: "kills-access", Minutes: 4, Packages: []string{"test/crash"}, Race: true, Run: "^TestKilledAtEveryWriteOf", Verbose: true,
		Why: "the same where it writes copies of pull Secrets and credentials of agents",
	},
	{
		Name: "outages", Minutes: 4, Packages: []string{"test/crash"}, Race: true, Skip: "TestKilledAtEveryWrite",
		Arguments: []string{"-places", "20"}, Verbose: true,
		Why: "outages and deletions in every order; leaders are stopped for longer than their lease at 20 places",
	},
	{
		Name: "kills-sets", Minutes: 4, Packages: []string{"test/crash/sets"}, Race: true, Verbose: true,
		Why: "the controller of AddonSets on a seed is killed before and after every write",
	},
	{
		Name: "kills-master", Minutes: 4, Packages: []string{"test/seeds"}, Race: true, Verbose: true,
		Why: "the master is killed before and after every write of a set over two seeds",
	},
	{
		Name: "kills-upgrades", Minutes: 4, Packages: []string{"test/crash/upgrades"}, Race: true, Verbose: true,
		Why: "the manager is killed at every write of an upgrade",
	},
}

// attacks take as long as their arguments say. The first is a test, the others tell figures.
var attacks = []Part{
	{
		Name: "soak", Minutes: 4, Packages: []string{"test/soak"}, Verbose: true, Apart: measures, Arguments: []string{"-soak", "150s"},
		Why: "a platform under every attack at once; ARGS='-soak 20m', and '-seed n' to repeat an order of events",
	},
	{
		Name: "siege", Minutes: 3, Packages: []string{"test/soak"}, Bench: "HostileTenant", Verbose: true, Apart: measures,
		Arguments: []string{"-each", "1400ms", "-modes", "servers"},
		Why:       "what one tenant's API server costs the others, by every mode of attack; ARGS='-each 1m', '-modes name,name' for some",
	},
	{
		Name: "siege-acts", Minutes: 5, Packages: []string{"test/soak"}, Bench: "HostileTenant", Verbose: true, Apart: measures,
		Arguments: []string{"-each", "3s", "-turns", "1", "-modes", "acts"},
		Why:       "what an author and a tenant cost the others by every act; ARGS='-each 1m -turns 3', '-modes name,name' for some",
	},
}

// upgrades put one release in the place of another, out of the repository's history.
var upgrades = []Part{
	{
		Name: "upgrade", Apart: releases, Minutes: 3, Packages: []string{"test/upgrade"}, Race: true, Verbose: true, Skip: beside,
		Why: "from an early commit and back, and a seed from a backup",
	},
	{
		Name: "upgrade-beside", Apart: releases, Minutes: 3, Packages: []string{"test/upgrade"}, Race: true, Verbose: true, Run: beside,
		Why: "managers of two releases beside each other",
	},
	{
		Name: "upgrade-last", Apart: releases, Minutes: 4, Packages: []string{"test/upgrade"}, Verbose: true,
		Arguments: []string{"-former", "HEAD^", "-installations", "200"},
		Why:       "from the commit before with 200 installations: nothing is rendered or written; ARGS='-former commit'",
	},
}

// beside is the test of two releases beside each other.
const beside = "^TestManagersOfTwoReleases$"

// programs of others, which are built from source.
var programs = []Part{
	{
		Name: "cert-manager", Apart: builds, Minutes: 2, Packages: []string{"test/certmanager"}, Race: true, Verbose: true,
		Why: "the charts' webhooks with certificates by cert-manager, whose controllers are built from source",
	},
	{
		Name: "clusterctl", Apart: builds, Minutes: 2, Packages: []string{"test/clusterctl"}, Race: true, Verbose: true,
		Why: "a release installed, upgraded and removed by clusterctl, which is built from source",
	},
	{
		Name: "ocm", Apart: builds, Minutes: 2, Packages: []string{"test/ocm"}, Race: true, Verbose: true,
		Why: "an agent of Open Cluster Management, built from source, with credentials of ours",
	},
	{
		Name: "install", Apart: builds, Minutes: 3, Packages: []string{"test/release"}, Race: true, Verbose: true, Pinned: true,
		Why: "a release is made, and installed where one registry is the only host",
	},
}

// figures are held to their bars, so nothing else of the run is beside them and no detector slows them.
var figures = []Part{
	{
		Name: "fleet-sizes", Apart: measures, Minutes: 5, Packages: []string{"test/bench/clusters", "test/bench/sets"}, Verbose: true,
		Why: "hundreds of Clusters of either kind at rest and while a set rolls out",
	},
	{
		Name: "proportions", Apart: measures, Minutes: 2, Verbose: true,
		Packages: []string{"test/bench/..."},
		Why:      "how costs grow with what is given: tests of measurements",
	},
	{
		Name: "bench-installing", Apart: measures, Minutes: 5, Packages: []string{"test/bench/installing"}, Bench: ".", Verbose: true,
		Skip: "Tracing",
		Why:  "figures of one installation, and of one release in another's place",
	},
	{
		Name: "bench-tracing", Apart: measures, Minutes: 3, Packages: []string{"test/bench/installing"}, Bench: "Tracing", Verbose: true,
		Arguments: []string{"-hold-tracing"}, Why: "what traces cost, in pairs of rounds",
	},
	{
		Name: "bench-clusters", Apart: measures, Minutes: 3, Packages: []string{"test/bench/clusters"}, Bench: ".", Verbose: true,
		Why: "figures of thousands of Clusters of Cluster API",
	},
	{
		Name: "bench-sets", Apart: measures, Minutes: 4, Packages: []string{"test/bench/sets"}, Bench: ".", Verbose: true,
		Why: "figures of sets over 5,000 and 10,000 Clusters",
	},
	{
		Name: "bench-catalogues", Apart: measures, Minutes: 3, Bench: ".", Verbose: true,
		Packages: []string{"test/bench/addon", "test/bench/cli", "test/bench/distributor", "test/bench/query", "test/bench/rendering"},
		Why:      "figures of catalogues, seeds, queries, renderers and the command",
	},
	{
		Name: "bench-packages", Apart: measures, Minutes: 2, Bench: ".", Verbose: true,
		Packages: []string{
			"pkg/controllers/coreaddon", "pkg/controllers/addoninstallation", "pkg/catalogue", "pkg/fetch/store", "pkg/base/lru",
			"pkg/clusters/remote", "pkg/fleet/rollout", "pkg/base/tracing",
		},
		Why: "figures of single packages",
	},
}
