package cli_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

// installed makes a cluster with installations in every state.
func installed(t testing.TB, name string) (client.Client, string) {
	t.Helper()
	seed, namespace := cluster(t, name)
	inState(t, seed, given.Installation(namespace, "prometheus", "prometheus", "monitoring", given.In("1.x")), ready, at("1.2.0"),
		func(made *v1.AddonInstallation) {
			made.Status.AvailableUpdate, made.Status.Objects = "2.0.0", &v1.ObjectCounts{Total: 12, Healthy: 12, Summary: "12/12"}
		})
	inState(t, seed, given.Installation(namespace, "cache", "redis", "cache"), notReady(v1.ReasonFetching, "the chart is being fetched"))
	inState(t, seed, given.Installation(namespace, "broken", "podinfo", "apps", given.In("6.0.0")),
		notReady(v1.ReasonObjectExists, `Deployment "apps/podinfo" exists and has another owner`), at("6.0.0"))
	inState(t, seed, given.Installation(namespace, "far", "podinfo", "far"),
		metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1.ReasonClusterUnreachable, Message: "the API server does not answer"},
		at("6.0.0"))
	expect.Create(t, seed, given.Installation(namespace, "new", "podinfo", "new"))
	return seed, namespace
}

// Red when a column, a state or an order of rows changes.
func TestListShowsTheInstallationsOfACluster(t *testing.T) {
	installed(t, "listed")
	shell := on(t, "seed")
	for file, arguments := range map[string][]string{
		"list.txt":      {"list", "--cluster", "listed"},
		"list-wide.txt": {"list", "--cluster", "listed", "-o", "wide"},
		"list-name.txt": {"list", "-n", "cluster-listed", "-o", "name"},
		"list-path.txt": {"list", "--cluster", "listed", "-o", `jsonpath={range .items[*]}{.kind} {.spec.addonRef.name}{"\n"}{end}`},
		"list-some.txt": {"list", "--cluster", "listed", "--addon", "podinfo", "--state", "Failing"},
	} {
		got := shell.run(arguments...).works(t)
		golden.Match(t, "testdata/"+file, got.out+got.err)
	}
	shell.width = 40
	golden.Match(t, "testdata/list-narrow.txt", shell.run("list", "--cluster", "listed").works(t).out)
	shell.width, shell.colour = 120, true
	golden.Match(t, "testdata/list-colour.txt", shell.run("list", "--cluster", "listed").works(t).out)
}

// Red when installations of a neighbour in the namespace are listed, or a cluster of another namespace is not found.
func TestListDistinguishesClustersOfANamespace(t *testing.T) {
	seed, _ := cluster(t, "beside")
	expect.Create(t, seed, world.Namespace("team"))
	for _, name := range []string{"one", "two"} {
		offered(t, seed, client.ObjectKey{Namespace: "team", Name: "available-" + name})
		inState(t, seed, given.Installation("team", name+".prometheus", "prometheus", "monitoring", func(made *v1.AddonInstallation) {
			made.Spec.ClusterName = name
		}), ready, at("1.2.0"))
	}
	for _, arguments := range [][]string{
		{"--cluster", "two"}, {"--cluster", "team/two"}, {"--cluster", "two", "-n", "team"},
	} {
		got := on(t, "seed").run(append([]string{"list", "-o", "name"}, arguments...)...).works(t)
		if want := "addoninstallation.kubermatic.k8c.io/two.prometheus\n"; got.out != want {
			t.Errorf("%q: got %q, want %q", arguments, got.out, want)
		}
	}
	expect.Create(t, seed, world.Namespace("team-b"))
	offered(t, seed, client.ObjectKey{Namespace: "team-b", Name: "available-two"})
	on(t, "seed").run("list", "--cluster", "two").fails(t, cli.ExitUsage, `several clusters are named "two"`, "team-b/two")
}

// Red when the excluded versions are not shown, or not with their reason.
func TestAvailableShowsOffersAndWhatDoesNotFit(t *testing.T) {
	cluster(t, "offered", func(made *v1.AddonCatalogue) {
		prometheus := given.Addon("prometheus", v1.AddonVersion{Version: "2.0.0"}, v1.AddonVersion{Version: "1.2.0"},
			v1.AddonVersion{Version: "1.1.0"}, v1.AddonVersion{Version: "1.0.0"}, v1.AddonVersion{Version: "0.9.0"})
		prometheus.Description, prometheus.SupportedBy = "Metrics of all nodes and pods", "Team Observability"
		made.Spec.Addons = []v1.Addon{given.Addon("podinfo", v1.AddonVersion{Version: "6.0.0"}), prometheus}
		made.Status.ExcludedCount = 5
		made.Status.Excluded = []v1.ExcludedVersion{
			{Addon: "cilium", Version: "1.17.0", Reason: v1.ExcludedCore, Message: "core add-ons are not offered"},
			{Addon: "prometheus", Version: "3.1.0", Reason: v1.ExcludedK8sVersion, Message: "needs Kubernetes >= 1.38; it is 1.36.3"},
			{Addon: "prometheus", Version: "3.0.0", Reason: v1.ExcludedK8sVersion, Message: "needs Kubernetes >= 1.38; it is 1.36.3"},
		}
	})
	shell := on(t, "seed")
	got := shell.run("available", "--cluster", "offered").works(t)
	golden.Match(t, "testdata/available.txt", got.out+got.err)
	golden.Match(t, "testdata/available-wide.txt", shell.run("available", "--cluster", "offered", "-o", "wide").works(t).out)
	golden.Match(t, "testdata/available-name.txt", shell.run("available", "-n", "cluster-offered", "-o", "name").works(t).out)
	shell.width = 40
	golden.Match(t, "testdata/available-narrow.txt", shell.run("available", "--cluster", "offered").works(t).out)
}
