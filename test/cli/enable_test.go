package cli_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

// Red when enable or disable writes without an answer, differs from install and uninstall, takes a second call for an error,
// or touches an installation that others own.
func TestEnableAndDisableInAFewClusters(t *testing.T) {
	seed, first := shop(t, "east")
	_, second := shop(t, "west")
	shell := on(t, "seed")
	call := []string{"enable", "--names", "prometheus@1.x,podinfo", "--clusters", "west,east", "--target-namespace", "tools"}
	shell.run(call...).fails(t, cli.ExitRefused, "--yes")
	got := shell.answering("n\n").run(call...)
	golden.Match(t, "testdata/enable-asks.txt", got.out+got.err)
	var all v1.AddonInstallationList
	if expect.List(t, seed, &all, client.InNamespace(first)); len(all.Items) > 0 || got.code != cli.ExitRefused {
		t.Fatalf("exit code %d, %d installations", got.code, len(all.Items))
	}
	expect.Create(t, seed, given.Installation(first, "mine", "podinfo", "apps"))
	got = shell.answering("y\n").run(call...).works(t)
	golden.Match(t, "testdata/enable.txt", got.out)
	for _, namespace := range []string{first, second} {
		if spec := read(t, seed, namespace, "prometheus").Spec; spec.AddonRef.Version != "1.x" || spec.TargetNamespace != "tools" {
			t.Errorf("got %+v", spec)
		}
	}
	if got := shell.run(append(call, "--yes")...).works(t); strings.Count(got.out, "unchanged") != 4 {
		t.Errorf("a second call: %q", got.out)
	}
	shell.run("enable", "--names", "promethus", "--clusters", "east", "-y").fails(t, cli.ExitNotFound, `did you mean "prometheus"?`)
	shell.run("enable", "--names", "podinfo", "--clusters", "eats", "-y").fails(t, cli.ExitNotFound, "eats")
	shell.run("enable", "--names", "podinfo", "--clusters", "east", "--selector", "a=b", "-y").fails(t, cli.ExitUsage, "selector")
	shell.run("enable", "--names", "podinfo", "-y").fails(t, cli.ExitUsage, "clusters")
	shell.run("enable", "--names", "podinfo,podinfo@6.0.0", "--clusters", "east", "-y").fails(t, cli.ExitUsage, "twice")
	// Without the checks, an empty name is the cluster of -n.
	shell.run("disable", "--names", "podinfo", "--clusters", "west/", "-n", first, "-y").fails(t, cli.ExitUsage, "names no cluster")
	shell.run("disable", "--names", "podinfo", "--clusters", "west,", "-n", first, "-y").fails(t, cli.ExitUsage, "empty name")

	off := []string{"disable", "--names", "podinfo,loki", "--clusters", "east,west"}
	got = shell.answering("y\n").run(off...).works(t)
	golden.Match(t, "testdata/disable.txt", got.out+got.err)
	if got := shell.run(append(off, "-y")...).works(t); got.out != "" || strings.Count(got.err, "unchanged") != 4 {
		t.Errorf("a second call: %q, %q", got.out, got.err)
	}
	expect.Create(t, seed, given.Installation(second, "core", "podinfo", "core", given.Core))
	shell.run(append(off, "-y")...).fails(t, cli.ExitRefused, "core add-on")
}

// Red when a set selects other clusters than asked for, is made twice, or an edited set is removed.
func TestEnableAndDisableBySets(t *testing.T) {
	seed := world.Client(t, sharedSeed().Config)
	shell := on(t, "seed")
	call := []string{"enable", "--names", "prometheus@1.x", "--selector", "env=prod,tier notin (test)", "-n", "masters"}
	shell.run(append(call, "-y")...).fails(t, cli.ExitContext, v1.ConfigMapUsage)
	shell.run("enable", "--names", "a", "--clusters", "a,b,c,d,e,f", "-n", "masters", "-y").fails(t, cli.ExitContext, "master")
	expect.Create(t, seed, world.Namespace("masters"))
	expect.Create(t, seed, configMap("masters", v1.ConfigMapUsage, nil))
	got := shell.answering("y\n").run(call...).works(t)
	golden.Match(t, "testdata/enable-set.txt", got.out+got.err)
	if got := shell.run(append(call, "-y")...).works(t); !strings.Contains(got.out, "unchanged") {
		t.Errorf("a second call: %q", got.out)
	}
	shell.run("enable", "--names", "prometheus", "--all-clusters", "-n", "masters", "-y").works(t)
	many := []string{"--names", "prometheus", "--clusters", "f,a,b,c,d,e", "-n", "masters", "-y"}
	shell.run(append([]string{"enable"}, many...)...).works(t)
	shell.run("enable", "--names", "prometheus", "--selector", " ", "-n", "masters", "-y").fails(t, cli.ExitUsage, "--all-clusters")
	shell.run("enable", "--names", "x", "--clusters", "a,b,c,d,e,team/f", "-n", "masters", "-y").fails(t, cli.ExitUsage, "team/f")
	var sets v1.AddonSetList
	expect.List(t, seed, &sets, client.InNamespace("masters"))
	var selected []string
	for _, set := range sets.Items {
		selector := set.Spec.ClusterSelector
		for _, one := range selector.MatchExpressions {
			selected = append(selected, one.Key+" "+string(one.Operator)+" "+strings.Join(one.Values, ","))
		}
	}
	if want := v1.FactName + " In a,b,c,d,e,f"; len(sets.Items) != 3 || !strings.Contains(strings.Join(selected, "\n"), want) {
		t.Errorf("%d sets select %q, want %q", len(sets.Items), selected, want)
	}
	off := append([]string{"disable"}, call[1:]...) // the version has no effect
	got = shell.answering("y\n").run(off...).works(t)
	golden.Match(t, "testdata/disable-set.txt", got.out+got.err)
	if expect.List(t, seed, &sets, client.InNamespace("masters")); len(sets.Items) != 2 {
		t.Errorf("%d sets are left", len(sets.Items))
	}
	if got := shell.run(append(off, "-y")...).works(t); !strings.Contains(got.err, "unchanged") {
		t.Errorf("a second call: %q", got.err)
	}
	expect.Change(t, seed, &sets.Items[0], func(set *v1.AddonSet) {
		set.Spec.Addons = append(set.Spec.Addons, v1.AddonSetItem{Name: "other", AddonRef: v1.AddonReference{Name: "other"}})
	})
	expect.Change(t, seed, &sets.Items[1], func(set *v1.AddonSet) {
		set.Spec.Addons = append(set.Spec.Addons, v1.AddonSetItem{Name: "other", AddonRef: v1.AddonReference{Name: "other"}})
	})
	shell.run(append([]string{"disable"}, many...)...).fails(t, cli.ExitRefused, "has other add-ons too")
	for i := range sets.Items {
		expect.Change(t, seed, &sets.Items[i], func(set *v1.AddonSet) {
			set.Spec.Addons, set.Spec.ClusterSelector = set.Spec.Addons[:1], &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
		})
	}
	for _, verb := range []string{"enable", "disable"} {
		shell.run(append([]string{verb}, many...)...).fails(t, cli.ExitRefused, "selects other clusters")
	}
}

// Red when disable removes a set that took the name of the one that it showed, or that was changed meanwhile.
func TestDisableRemovesOnlyTheSetThatItShows(t *testing.T) {
	seed := world.Client(t, sharedSeed().Config)
	expect.Create(t, seed, world.Namespace("racers"), configMap("racers", v1.ConfigMapUsage, nil))
	flags := []string{"--names", "podinfo", "--selector", "env=race", "-n", "racers"}
	on(t, "seed").run(append([]string{"enable", "-y"}, flags...)...).works(t)
	var sets v1.AddonSetList
	expect.List(t, seed, &sets, client.InNamespace("racers"))
	shown := sets.Items[0]
	shell := on(t, "seed")
	shell.input = strings.NewReader("y\n")
	shell.notes = atQuestion(func() {
		expect.Change(t, seed, &shown, func(set *v1.AddonSet) { set.Spec.ClusterSelector = &metav1.LabelSelector{} })
	})
	off := append([]string{"disable"}, flags...)
	got := shell.run(off...)
	if expect.List(t, seed, &sets, client.InNamespace("racers")); got.code != cli.ExitFailed || len(sets.Items) != 1 {
		t.Fatalf("a changed set: exit code %d: %s: %d sets", got.code, got.err, len(sets.Items))
	}
	expect.Change(t, seed, &shown, func(set *v1.AddonSet) {
		set.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "race"}}
	})
	another := shown.DeepCopy()
	another.ResourceVersion, another.UID = "", ""
	shell.input = strings.NewReader("y\n")
	shell.notes = atQuestion(func() {
		expect.Delete(t, seed, &shown)
		expect.Create(t, seed, another)
	})
	got = shell.run(off...)
	if expect.List(t, seed, &sets, client.InNamespace("racers")); got.code == cli.ExitDone || len(sets.Items) != 1 || sets.Items[0].UID != another.UID {
		t.Errorf("another set: exit code %d: %s: %d sets", got.code, got.err, len(sets.Items))
	}
}

// Red when an installation of another add-on, or one that others own, is removed, or nothing is asked.
func TestUninstallFromAllClusters(t *testing.T) {
	seed, first := shop(t, "north")
	_, second := shop(t, "south")
	expect.Create(t, seed, given.Installation(first, "one", "everywhere", "one"), given.Installation(second, "two", "everywhere", "two"),
		given.Installation(second, "core", "everywhere", "core", given.Core), given.Installation(second, "other", "elsewhere", "other"))
	shell := on(t, "seed")
	call := []string{"uninstall", "everywhere", "--all-clusters"}
	shell.run(call...).fails(t, cli.ExitRefused, "--yes")
	shell.run("uninstall", "everwhere", "--all-clusters", "-y").fails(t, cli.ExitNotFound, `did you mean "everywhere"?`)
	got := shell.answering("y\n").run(call...).works(t)
	golden.Match(t, "testdata/uninstall-everywhere.txt", got.out+got.err)
	for _, name := range []string{"core", "other"} {
		read(t, seed, second, name)
	}
	err := seed.Get(t.Context(), client.ObjectKey{Namespace: second, Name: "two"}, &v1.AddonInstallation{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it stays: %v", err)
	}
}
