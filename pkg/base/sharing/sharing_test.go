package sharing

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// decoded is an installation as a watch brings it, in memory of its own.
func decoded(t *testing.T, cluster string, change func(*v1.AddonInstallation)) *v1.AddonInstallation {
	t.Helper()
	made := &v1.AddonInstallation{}
	made.Namespace, made.Name, made.Finalizers = "cluster-"+cluster, "web", []string{"test"}
	made.Labels = map[string]string{v1.LabelManagedBy: v1.ManagedBySets, v1.LabelSet: "tools"}
	made.Annotations = map[string]string{v1.AnnotationDigest: "sha256:1", v1.AnnotationMoved: cluster}
	made.Spec = v1.AddonInstallationSpec{
		AddonRef: v1.AddonReference{Name: "web", Version: "1.0.0"}, TargetNamespace: "web",
		Values: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)},
	}
	made.Status = v1.AddonInstallationStatus{
		Version: "1.0.0", LastApplied: &v1.AppliedState{Addon: "web", Version: "1.0.0", Inputs: cluster},
		Conditions: []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady, Message: "all is well"}},
	}
	if change != nil {
		change(made)
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	found := &v1.AddonInstallation{}
	if err := json.Unmarshal(text, found); err != nil {
		t.Fatal(err)
	}
	return found
}

func held(t *testing.T, by *Installations, one *v1.AddonInstallation) *v1.AddonInstallation {
	t.Helper()
	found, err := by.Transform(one)
	if err != nil {
		t.Fatal(err)
	}
	return found.(*v1.AddonInstallation)
}

// TestWhatIsAlikeIsHeldOnce turns red when two installations of a set have memory of their own for what they have alike, or when what one
// says is changed by that, or who manages fields is kept.
func TestWhatIsAlikeIsHeldOnce(t *testing.T) {
	by := NewInstallations()
	birch, oak := decoded(t, "birch", nil), decoded(t, "oak", nil)
	wanted := oak.DeepCopy()
	oak.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	birch, oak = held(t, by, birch), held(t, by, oak)
	if !equality.Semantic.DeepEqual(wanted, oak) {
		t.Errorf("it says something else by now:\n%+v\n%+v", wanted, oak)
	}
	if reflect.ValueOf(birch.Labels).Pointer() != reflect.ValueOf(oak.Labels).Pointer() {
		t.Error("labels are held twice")
	}
	if birch.Spec.Values != oak.Spec.Values {
		t.Error("values are held twice")
	}
	for what, pair := range map[string][2]string{
		"the digest":    {birch.Annotations[v1.AnnotationDigest], oak.Annotations[v1.AnnotationDigest]},
		"the add-on":    {string(birch.Spec.AddonRef.Name), string(oak.Spec.AddonRef.Name)},
		"the version":   {birch.Status.LastApplied.Version, oak.Status.LastApplied.Version},
		"a condition":   {birch.Status.Conditions[0].Message, oak.Status.Conditions[0].Message},
		"the finalizer": {birch.Finalizers[0], oak.Finalizers[0]},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s is held twice", what)
		}
	}
	again := held(t, by, oak) // as informers do at times
	if !equality.Semantic.DeepEqual(wanted, again) {
		t.Error("a second pass changes it")
	}
}

// TestWhatDiffersIsNotShared turns red when an installation gets labels or values of another.
func TestWhatDiffersIsNotShared(t *testing.T) {
	by := NewInstallations()
	for _, change := range []func(*v1.AddonInstallation){
		func(*v1.AddonInstallation) {},
		func(one *v1.AddonInstallation) { one.Labels = nil },
		func(one *v1.AddonInstallation) { one.Labels = map[string]string{v1.LabelManagedBy: v1.ManagedBySets} },
		func(one *v1.AddonInstallation) { one.Labels[v1.LabelSet] = "" },
		func(one *v1.AddonInstallation) { one.Labels["x"] = strings.Repeat("y", 2000) },
		func(one *v1.AddonInstallation) { one.Spec.Values = nil },
		func(one *v1.AddonInstallation) { one.Spec.Values.Raw = []byte(`{"replicas": 1}`) },
		func(one *v1.AddonInstallation) {
			one.Spec.Values.Raw = []byte(`{"a":"` + strings.Repeat("y", 9000) + `"}`)
		},
		func(one *v1.AddonInstallation) { one.Annotations = nil },
		func(one *v1.AddonInstallation) { one.Status = v1.AddonInstallationStatus{} },
	} {
		one := decoded(t, "birch", change)
		wanted := one.DeepCopy()
		if found := held(t, by, one); !equality.Semantic.DeepEqual(wanted, found) {
			t.Errorf("it says something else by now:\n%+v\n%+v", wanted, found)
		}
	}
}

// TestWhatTenantsInventHasNoMoreSpace turns red when texts, labels and values that nobody else has are kept without a bound.
func TestWhatTenantsInventHasNoMoreSpace(t *testing.T) {
	by := NewInstallations()
	for i := range mostTexts + 100 {
		one := decoded(t, "birch", func(one *v1.AddonInstallation) {
			for at := range i / (mostTexts + 99) * mostTexts { // of the last one
				one.Annotations[fmt.Sprintf("%d-%d", i, at)] = ""
			}
			one.Labels["x"], one.Spec.AddonRef.Version = fmt.Sprint(i), fmt.Sprint(i)
			one.Spec.Values.Raw = fmt.Appendf(nil, `{"a":%d}`, i)
		})
		held(t, by, one)
	}
	if by.texts.Len() > mostTexts || by.labels.Len() > mostLabels || by.values.Len() > mostValues {
		t.Errorf("%d texts, %d labels and %d values are kept", by.texts.Len(), by.labels.Len(), by.values.Len())
	}
}
