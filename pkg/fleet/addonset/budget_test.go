package addonset_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// Red when the master's cache has no room for as many sets as a platform may have, each as large as it may be; when it holds the content of
// other namespaces, or of sets beyond that; when a flood makes a stub of a Core set; or when a stub does not tell which Core set comes first.
func TestWhatAPlatformMayHaveOfSetsIsHeldWhole(t *testing.T) {
	t.Parallel()
	into := budget.New[v1.AddonSet](addonset.Budget("kubermatic"))
	var held []any
	hold := func(namespace, name string, change ...func(*v1.AddonSet)) *v1.AddonSet {
		made := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
		made.Spec = v1.AddonSetSpec{Type: v1.AddonSetCustom, Priority: 7, ClusterSelector: &metav1.LabelSelector{}, Rollout: &v1.Rollout{}}
		for at := range 64 {
			made.Spec.Addons = append(made.Spec.Addons, v1.AddonSetItem{
				Name: v1.AddonName(fmt.Sprintf("web-%d", at)), AddonRef: v1.AddonReference{Name: "web"},
				Values: &kruntime.RawExtension{Raw: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", addonset.MaxBytes/64-100))},
			})
		}
		for _, set := range change {
			set(made)
		}
		found, err := into.Transform(made)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, found)
		return found.(*v1.AddonSet)
	}
	core := func(set *v1.AddonSet) { set.Spec.Type = v1.AddonSetCore }
	for at := range addonset.MaxSets {
		if one := hold("kubermatic", fmt.Sprint(at)); budget.IsStub(one) || addonset.Validate(one) != nil {
			t.Fatalf("set %d is a stub, or %v", at, addonset.Validate(one))
		}
	}
	for at := range 100 {
		hold("kubermatic", fmt.Sprintf("beyond-%d", at))
	}
	beyond := hold("kubermatic", "beyond")
	if !budget.IsStub(beyond) || beyond.Spec.Addons != nil || beyond.Spec.Rollout != nil || beyond.Spec.ClusterSelector != nil {
		t.Error("a set beyond that is held whole")
	}
	if beyond.Spec.Type != v1.AddonSetCustom || beyond.Spec.Priority != 7 {
		t.Errorf("a stub has %+v", beyond.Spec)
	}
	if budget.IsStub(hold("kubermatic", "core", core)) {
		t.Error("a Core set is a stub")
	}
	if !budget.IsStub(hold("other", "core", core)) {
		t.Error("a set of another namespace is whole")
	}
	runtime.KeepAlive(held)
}
