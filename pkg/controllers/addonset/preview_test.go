package addonset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/test/expect"
)

// lines are the changes of a preview in one line each, with the numbers of clusters.
func (w *world) lines(of view.SetPreview) (found []string) {
	for _, group := range of.Groups {
		found = append(found, fmt.Sprintf("%s: %d selected, %d differ", group.Name, group.Selected, group.Differing))
	}
	for _, one := range of.Clusters {
		for _, change := range one.Changes {
			found = append(found, fmt.Sprintf("%s %d %s %s %s>%s %s", one.Group, slices.Index(w.names, one.Name), change.Change, change.Item, change.From,
				change.To, change.Reason))
		}
	}
	return found
}

// A preview of a set says what the set then does, in each cluster and group, and neither writes nor remembers anything. Red when it plans with
// the live set in place of the asked one (competitors), when a blocked item is left out, when what leaves the selector stays, and when the
// controller follows the asked spec.
func TestAPreviewOfASetIsWhatItDoes(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.offers("web", "1.0.0", "1.1.0")
	w.offers("db", "2.0.0 <1.20")
	asked := w.set("tools")
	asked.Spec.Addons[0].AddonRef.Version = "1.0.0"
	w.start()
	preview := func(asked *v1.AddonSet, isLive bool) (found view.SetPreview) {
		t.Helper()
		var live *v1.AddonSet
		if isLive {
			live = expect.Object(t, w.seed, copyOf(asked), func(*v1.AddonSet) error { return nil })
		}
		expect.Eventually(t, expect.Patience, func() (err error) { // the sets are read first
			found, err = w.controller.Preview(t.Context(), live, asked)
			return err
		})
		return found
	}
	made := preview(asked, false)
	want := []string{
		"canary: 1 selected, 1 differ", "rest: 2 selected, 2 differ",
		"canary 0 Install web >1.0.0 ", "rest 1 Install web >1.0.0 ", "rest 2 Install web >1.0.0 ",
	}
	if diff := cmp.Diff(want, w.lines(made)); diff != "" || len(made.Counts) != 1 || made.Counts[v1.ChangeInstall] != 3 {
		t.Errorf("a new set (-want +got):\n%s%+v", diff, made.Counts)
	}
	if found := w.installed("web"); len(found) > 0 {
		t.Fatalf("a preview writes %v", found)
	}
	atOnce(asked)
	w.open(w.write(asked), 1)
	w.says(asked, v1.ReasonComplete, current(3))
	if again := preview(asked, true); len(again.Clusters) > 0 {
		t.Errorf("of the set as it is: %+v", again)
	}

	changed := asked.DeepCopy()
	changed.Spec.Addons[0].AddonRef.Version = "1.1.0"
	changed.Spec.Addons = append(changed.Spec.Addons, v1.AddonSetItem{
		Name: "db", AddonRef: v1.AddonReference{Name: "db", Version: "2.0.0"}, TargetNamespace: "db", ReconcileStrategy: v1.ReconcileContinuous,
	})
	changed.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "number", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"2"}},
	}
	want = []string{
		"rest: 2 selected, 3 differ",
		"rest 0 Blocked db > " + "Incompatible", "rest 0 Update web 1.0.0>1.1.0 ",
		"rest 1 Blocked db > " + "Incompatible", "rest 1 Update web 1.0.0>1.1.0 ", "rest 2 Remove web 1.0.0> ",
	}
	made = preview(changed, true)
	if diff := cmp.Diff(want, w.lines(made)); diff != "" {
		t.Errorf("a change (-want +got):\n%s", diff)
	}
	w.quiet()
	if at := w.at("1.0.0"); len(at) != 3 {
		t.Errorf("after a preview only %q have the version", at)
	}
	changed.Spec.ClusterSelector.MatchExpressions[0].Operator = "Near"
	if _, err := w.controller.Preview(t.Context(), nil, changed); err == nil {
		t.Error("a wrong selector is not refused")
	}
}
