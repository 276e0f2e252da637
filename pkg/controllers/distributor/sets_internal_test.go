package distributor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// Red when more sets than a platform may have are copied, or when a new one takes the place of one that was there before.
func TestOfTooManySetsTheOldestCount(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []v1.AddonSet
	for i := range addonset.MaxSets + 2 {
		made := v1.AddonSet{}
		made.Namespace, made.Name, made.UID = "platform", fmt.Sprintf("set-%03d", i), types.UID(fmt.Sprint(i))
		made.CreationTimestamp = metav1.NewTime(began.Add(-time.Duration(i/2) * time.Second)) // two of each second
		all = append(all, made)
	}
	elsewhere := v1.AddonSet{}
	elsewhere.Namespace, elsewhere.UID = "default", "elsewhere"
	all = append(all, elsewhere)
	if beyond := youngest(all, "platform"); len(beyond) != 2 || !beyond["0"] || !beyond["1"] {
		t.Errorf("beyond the number are %v", beyond)
	}
	slices.Reverse(all)
	if beyond := youngest(all[3:], "platform"); len(beyond) != 0 {
		t.Errorf("of as many as may be, these are beyond: %v", beyond)
	}
}

// Red when a stub is judged by what it lacks, when Secrets that its copies need go, when nothing looks for room, or when a set is not read
// once it is whole.
func TestAStubOfASetIsNotEvaluated(t *testing.T) {
	t.Parallel()
	r := &Reconciler{
		options: Options{Namespace: "platform"}, master: &Master{HeldSets: budget.New[v1.AddonSet](addonset.Budget("platform"))},
	}
	set := v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "tools", UID: "tools", Generation: 3}}
	set.Finalizers = []string{v1.FinalizerCleanupSet}
	set.Spec.ClusterSelector = &metav1.LabelSelector{}
	set.Spec.Addons = []v1.AddonSetItem{{Name: "web", AddonRef: v1.AddonReference{Name: "web"}}}
	read := func(one v1.AddonSet) *facts {
		t.Helper()
		f := &facts{allSets: []v1.AddonSet{one}}
		if outcome := r.readSets(t.Context(), f); outcome != nil {
			t.Fatal(outcome)
		}
		f.valuesSets = map[string]map[types.UID]bool{}
		valuesNamed(f)
		return f
	}
	before := read(set)
	stub := *set.DeepCopy()
	stub.Annotations, stub.Spec = map[string]string{v1.AnnotationStub: "1048576"}, v1.AddonSetSpec{Type: v1.AddonSetCustom}
	for range 2 {
		f := read(stub)
		found := f.setFindings["tools"]
		if found.Reason != v1.ReasonTooLarge || found.Run != before.setFindings["tools"].Run || f.recheck != spaceRecheck || !f.secrets.HoldValues {
			t.Errorf("%+v, next pass in %s, Secrets are held: %t", found, f.recheck, f.secrets.HoldValues)
		}
		if wanted := f.sets["tools"]; wanted == nil || wanted.Spec != nil {
			t.Errorf("its copies: %+v", wanted)
		}
	}
	after := read(set)
	if found := after.setFindings["tools"]; found.Refusal != "" || after.sets["tools"].Digest != before.sets["tools"].Digest || after.recheck != 0 {
		t.Errorf("once it is whole: %+v", found)
	}
}
