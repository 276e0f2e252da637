package sets_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// rowsSay says what each cluster's row in the set's status is to have for a reason, of so many clusters.
func rowsSay(reason string, clusters int) func(*v1.AddonSet) error {
	return func(found *v1.AddonSet) error {
		number := 0
		for _, row := range found.Status.Clusters {
			if row.Reason == reason {
				number++
			}
		}
		if number != clusters {
			return fmt.Errorf("%d rows have reason %s, want %d: %+v", number, reason, clusters, found.Status.Clusters)
		}
		return nil
	}
}

// TestAnItemThatWouldMakeAnotherReleaseIsBlocked: an item that is everywhere gets another release name, and has its own again. Red when an
// installation is written, or removed, for what can't be changed, when that is not told of each cluster, and when anything is left of it.
func TestAnItemThatWouldMakeAnotherReleaseIsBlocked(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools")
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	before := w.stateOf("web", amber, birch, cedar)
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons[0].ReleaseName = "other" })
	w.says(of, v1.ReasonBlocked, rowsSay(v1.ReasonImmutableField, 3))
	w.stay("web", amber, birch, cedar)
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons[0].ReleaseName = "" })
	w.says(of, v1.ReasonComplete, rowsSay(v1.ReasonImmutableField, 0), counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	if state := w.stateOf("web", amber, birch, cedar); state != before {
		t.Errorf("they stand otherwise:\n%sthan\n%s", state, before)
	}
}

// TestASetGoesBackByWaves: a set that is everywhere at the newer version asks for the older one, without the word for that and then with it.
// Red when an installation is written without the word, when that is not told of each cluster, and when it does not go back by waves with
// it.
func TestASetGoesBackByWaves(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.0", "two"))
	w.run()
	of := w.set("tools")
	w.has("web", "two", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons[0].AddonRef.Version = "1.0.0" })
	w.says(of, v1.ReasonBlocked, rowsSay(v1.ReasonDowngradeRefused, 3))
	w.stay("web", amber, birch, cedar)
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons[0].Allow = []v1.Permission{v1.PermissionDowngrade} })
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.inOrder("web", amber, birch, cedar)
}

// TestARevertInTheMiddleOfAWaveGoesBackByWaves: what an item is to be is taken back while the second group moves. Red when a cluster that had
// not moved is written, when one that had does not go back, or when the canary is not first in that too.
func TestARevertInTheMiddleOfAWaveGoesBackByWaves(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) { spec.Rollout.MaxConcurrency = new(intstr.FromInt32(1)) })
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.Addons[0].Values = valuesOf(map[string]any{"text": "two"})
		spec.Overrides = []v1.AddonSetOverride{{ // it takes long there
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "1"}}, Addon: "web",
			Values: valuesOf(map[string]any{"replicas": 1}),
		}}
	})
	w.has("web", "two", amber)
	expect.Eventually(t, expect.Patience, func() error {
		if text := w.text(birch, w.now(birch, "web")) + w.text(cedar, w.now(cedar, "web")); text != "twoone" && text != "onetwo" {
			return fmt.Errorf("behind the canary there is %q", text)
		}
		return nil
	})
	moved, behind := birch, cedar
	if w.text(birch, w.now(birch, "web")) == "one" {
		moved, behind = cedar, birch
	}
	before := w.stateOf("web", behind)
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons[0].Values, spec.Overrides = nil, nil })
	w.has("web", "one", amber, moved)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.inOrder("web", amber, moved)
	if state := w.stateOf("web", behind); state != before {
		t.Errorf("what had not moved stands otherwise:\n%sthan\n%s", state, before)
	}
}
