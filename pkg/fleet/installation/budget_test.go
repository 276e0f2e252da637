package installation_test

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
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// usual is an installation as most are, with its status.
func usual(namespace, name string, values int) *v1.AddonInstallation {
	made := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Finalizers: []string{v1.FinalizerCleanupInstallation},
		Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": strings.Repeat("x", 500)},
	}}
	made.Spec = v1.AddonInstallationSpec{
		AddonRef: v1.AddonReference{Name: "web", Version: "1.0.0"}, TargetNamespace: "web",
		Values: &kruntime.RawExtension{Raw: []byte(strings.Repeat("x", values))},
	}
	for _, kind := range []string{v1.ConditionReady, v1.ConditionApplied, "a", "b", "c"} {
		made.Status.Conditions = append(made.Status.Conditions, metav1.Condition{Type: kind, Reason: "Reason", Message: strings.Repeat("x", 80)})
	}
	return made
}

// TestASeedHoldsItsInstallationsWhole turns red when a seed of 20,000 installations, in many namespaces or in one, or of clusters with
// all that they may have, comes to the end of the budget.
func TestASeedHoldsItsInstallationsWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why                       string
		count, perNamespace, size int
	}{
		{"a seed", 20_000, 20, 500}, {"a namespace with many Clusters", 20_000, 20_000, 500}, {"a cluster with all that it may have", 1000, 1000, 16 << 10},
		{"a cluster with large values", 64, 64, 255 << 10},
		{"clusters with all that they may have", 11_000, 1000, 16 << 10},
	} {
		into, held := budget.New[v1.AddonInstallation](installation.Budget()), make([]any, test.count)
		values := usual("", "", test.size).Spec.Values
		for at := range test.count {
			one := usual(fmt.Sprintf("cluster-%d", at/test.perNamespace), fmt.Sprint(at), 0)
			one.Spec.Values = values
			found, err := into.Transform(one)
			if err != nil || budget.IsStub(found.(*v1.AddonInstallation)) {
				t.Fatalf("%s: number %d is a stub, or %v", test.why, at, err)
			}
			held[at] = found
		}
		runtime.KeepAlive(held)
	}
}

// TestAStubLacksWhatUsersWrite turns red when a stub holds values, when one of a set or a Core one lacks what its controller goes by or is
// written again for its lack of values, or when a stub takes nothing of its cluster's share.
func TestAStubLacksWhatUsersWrite(t *testing.T) {
	t.Parallel()
	kind := installation.Budget()
	one, ofSet := usual("a", "one", 9), usual("a", "two", 9)
	ofSet.Labels[v1.LabelSet] = "tools"
	for _, each := range []*v1.AddonInstallation{one, ofSet} {
		each.Spec.ValuesTemplate, each.Spec.ValuesFrom = "x", []v1.ValuesSource{{SecretRef: &v1.KeyReference{Name: "x"}}}
		each.Annotations[v1.AnnotationStub] = fmt.Sprint(17 << 20)
		kind.Strip(each)
	}
	if one.Spec.Values != nil || one.Spec.ValuesFrom != nil || one.Spec.ValuesTemplate != "" || one.Spec.AddonRef.Name != "web" {
		t.Errorf("%+v", one.Spec)
	}
	if ofSet.Spec.Values != nil || ofSet.Spec.ValuesFrom == nil || ofSet.Spec.ValuesTemplate == "" {
		t.Errorf("of a set: %+v", ofSet.Spec)
	}
	wanted := &installation.Intent{}
	wanted.Spec = *ofSet.Spec.DeepCopy()
	wanted.Spec.Values = &kruntime.RawExtension{Raw: []byte(`{"a":1}`)}
	if !installation.IsRight(ofSet, wanted, "") {
		t.Error("a stub is written again for its lack of values")
	}
	delete(ofSet.Annotations, v1.AnnotationStub)
	if installation.IsRight(ofSet, wanted, "") {
		t.Error("values that are missing are right")
	}
	if err := installation.CheckShare(usual("a", "new", 1), []v1.AddonInstallation{*one}); err == nil {
		t.Error("a stub takes nothing of the share")
	}
}
