package sets_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestAClustersOwnValuesOutliveASetsNewDefault: what a set leaves to clusters stands in its item's valuesTemplate, and the users of one
// have set the same value in spec.values. It stands there after the set has another default, and after the cluster has moved
// on to the next release's set, which takes the installation over with a version and a default of its own. Red when a set writes its
// default into spec.values, when it counts above them, or when a default does not come to clusters that set nothing.
func TestAClustersOwnValuesOutliveASetsNewDefault(t *testing.T) {
	w := newWorld(t)
	fits := func(k8s v1.VersionRange) func(*v1.AddonVersion) {
		return func(version *v1.AddonVersion) { version.Constraints = &v1.Constraints{K8sVersion: k8s} }
	}
	w.offer(v1.CatalogueCustom, "cni", w.version("1.36.0", "plain", fits("~1.36")), w.version("1.37.0", "plain", fits("~1.37")))
	w.run()
	set := func(name, k8s, text string) *v1.AddonSet {
		return w.set(name, func(spec *v1.AddonSetSpec) {
			spec.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange("~" + k8s)}
			item := &spec.Addons[0]
			item.Name, item.AddonRef, item.ValuesTemplate = "cni", v1.AddonReference{Name: "cni", Version: k8s + ".x"}, "text: "+text
		})
	}
	older, newer := set("for-1-36", "1.36", "older"), set("for-1-37", "1.37", "newer")
	w.has("cni", "older", amber, birch, cedar)
	w.says(older, v1.ReasonComplete)
	was := w.now(birch, "cni")
	own := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"values":{"text":"own"}}}`))
	expect.Patch(t, w.home(birch), was.DeepCopy(), own)
	w.has("cni", "own", birch)

	w.edit(older, func(spec *v1.AddonSetSpec) { spec.Addons[0].ValuesTemplate = "text: mended" })
	w.has("cni", "mended", amber, cedar)
	w.says(older, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.has("cni", "own", birch)
	if now := w.now(birch, "cni"); now.Spec.ValuesTemplate != "text: mended" {
		t.Errorf("the default there is %q", now.Spec.ValuesTemplate)
	}

	for _, name := range []string{amber, birch} {
		moves := w.clusters[name]
		before := moves.DeepCopy()
		moves.Status.Versions.ControlPlane = "v1.37.2"
		expect.PatchStatus(t, w.home(name), moves, client.MergeFrom(before))
	}
	w.has("cni", "newer", amber)
	w.says(newer, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	w.has("cni", "own", birch)
	now := w.now(birch, "cni")
	isTakenOver := now.UID == was.UID && now.Labels[v1.LabelSet] == newer.Name
	if !isTakenOver || now.Spec.ValuesTemplate != "text: newer" || now.Status.Version != "1.37.0" {
		t.Errorf("the installation is %s of set %q with default %q and version %q, was %s",
			now.UID, now.Labels[v1.LabelSet], now.Spec.ValuesTemplate, now.Status.Version, was.UID)
	}
}
