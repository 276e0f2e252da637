package clusterctl

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/test/long"
)

// catalogue is what somebody wrote meanwhile.
const catalogue = `apiVersion: kubermatic.k8c.io/v1
kind: AddonCatalogue
metadata: {name: tools, namespace: kubermatic}
spec: {addons: [{name: web, versions: [{version: 1.0.0}]}]}
`

// clusterctl takes the folder as docs/spec/release.md says, and comes to the objects of the charts: on install, and on an upgrade that it
// finds by itself. Taken off again, what people wrote stays, with the kinds, the namespace and the roles. Red when a release has an image
// without a host, another contract, a text that clusterctl changes, an object of no chart or one too few, or when the seed's manager does
// not serve Clusters of Cluster API.
func TestClusterctlTakesTheRelease(t *testing.T) {
	long.Skip(t, "clusterctl", "clusterctl is built from source")
	folder := releases(t)
	putClusterAPI(t, folder)
	putCertManager(t)
	ctl, helm := newWorkplace(t, management), newWorkplace(t, byHelm)
	ctl.configure(folder)
	ctl.run("clusterctl", "init", "--core", "cluster-api", "--bootstrap", "-", "--control-plane", "-")
	endProbe(t)
	before := map[string]objects{management: everything(t, management), byHelm: everything(t, byHelm)}

	ctl.run("clusterctl", "init", "--addon", "trellis:v"+version)
	endProbe(t)
	expectServing(t)
	helm.install(folder, version)
	expectSame(t, before)

	for _, place := range []workplace{ctl, helm} {
		file := filepath.Join(place.home, "catalogue.yaml")
		write(t, file, catalogue)
		place.run("kubectl", "create", "-f", file)
	}
	expectPlan(t, ctl.run("clusterctl", "upgrade", "plan"), version+" v"+next)
	ctl.run("clusterctl", "upgrade", "apply", "--contract", "v1beta2")
	expectPlan(t, ctl.run("clusterctl", "upgrade", "plan"), next+" Already up to date")
	helm.install(folder, next)
	expectSame(t, before)

	ctl.run("clusterctl", "delete", "--addon", "trellis")
	expectLeft(t, everything(t, management).without(before[management]))
	ctl.run("kubectl", "delete", "clusterroles,clusterrolebindings", "--selector", "cluster.x-k8s.io/provider="+provider)
	for key, object := range everything(t, management).without(before[management]) {
		if !slices.Contains([]string{"CustomResourceDefinition", "Namespace", "AddonCatalogue"}, object.GetKind()) {
			t.Errorf("after the documented command there is still %s", key)
		}
	}
}

// values are those of each chart for a management cluster, as helm takes them.
var values = map[string]string{"trellis-master": "standalone.enabled=true", "trellis-seed": "clusterAPI.kinds={cluster-api}"}

// install installs the charts of a release, or upgrades to them, and what a platform without KKP needs besides.
func (w workplace) install(folder, version string) {
	w.t.Helper()
	at := filepath.Join(folder, provider, "v"+version)
	file := filepath.Join(w.home, "namespace.yaml")
	write(w.t, file, "apiVersion: v1\nkind: Namespace\n"+
		"metadata: {name: kubermatic, labels: {pod-security.kubernetes.io/enforce: restricted}}\n")
	w.run("kubectl", "apply", "--server-side", "-f", file, "-f", filepath.Join(at, "crds-standalone.yaml"))
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		archive := filepath.Join(at, chart+"-"+version+".tgz")
		w.run("helm", "upgrade", "--install", "--no-hooks", chart, archive, "--namespace", "kubermatic", "--set", values[chart])
	}
}

// expectSame holds when both clusters got the same objects, but for the notes that each installer keeps of them.
func expectSame(t *testing.T, before map[string]objects) {
	t.Helper()
	made := everything(t, management).without(before[management])
	maps.DeleteFunc(made, func(_ string, object *unstructured.Unstructured) bool { return object.GetKind() == "Provider" })
	want := everything(t, byHelm).without(before[byHelm])
	maps.DeleteFunc(want, func(key string, _ *unstructured.Unstructured) bool {
		return strings.HasPrefix(key, "Secret kubermatic/sh.helm.release.")
	})
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(made))); diff != "" {
		t.Fatalf("objects (-of the charts +by clusterctl):\n%s", diff)
	}
	if len(made) < 40 {
		t.Errorf("there are %d objects alone", len(made))
	}
	wanted, found := want.contents(t), made.contents(t)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if diff := cmp.Diff(wanted[key], found[key]); diff != "" {
			t.Errorf("%s (-of the chart +by clusterctl):\n%s", key, diff)
		}
		if made[key].GetLabels()["cluster.x-k8s.io/provider"] != provider && made[key].GetKind() != "AddonCatalogue" {
			t.Errorf("%s has labels %v, by which clusterctl would not find it", key, made[key].GetLabels())
		}
	}
}

// expectPlan looks for our line in what clusterctl says about upgrades.
func expectPlan(t *testing.T, plan, versions string) {
	t.Helper()
	want := provider + " kubermatic AddonProvider v" + versions
	for line := range strings.Lines(plan) {
		if strings.Join(strings.Fields(line), " ") == want {
			return
		}
	}
	t.Errorf("the plan has no line %q:\n%s", want, plan)
}

// expectLeft looks at what clusterctl leaves: of what is cluster-wide it takes off policies and webhooks alone.
func expectLeft(t *testing.T, left objects) {
	t.Helper()
	var kinds []string
	for _, object := range left {
		kinds = append(kinds, object.GetKind())
	}
	slices.Sort(kinds)
	want := []string{"AddonCatalogue", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"}
	if diff := cmp.Diff(want, slices.Compact(slices.Clone(kinds))); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	crds := 0
	for _, kind := range kinds {
		if kind == "CustomResourceDefinition" {
			crds++
		}
	}
	if crds != 5 {
		t.Errorf("%d CRDs are left", crds)
	}
}
