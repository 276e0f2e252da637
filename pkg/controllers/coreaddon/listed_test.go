package coreaddon

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
)

// read is a cache with the custom list, and copies of sets.
type read struct {
	client.Client
	list   *corev1.ConfigMap
	copies []v1.AddonSet
}

// Get implements client.Reader.
func (r *read) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.list.DeepCopyInto(into.(*corev1.ConfigMap))
	return nil
}

// List implements client.Reader.
func (r *read) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if sets, is := into.(*v1.AddonSetList); is {
		sets.Items = r.copies
	}
	return nil
}

// TestWhatIsListedIsReportedWithTheSetInForce: Listed returns the set by the rules of a reconciliation. The test fails
// where a set that is being deleted is not returned while a reconciliation still uses it, where one is whose deletion
// was confirmed, and where Listed reports a refused list, or prevents the reconciliation from reporting it.
func TestWhatIsListedIsReportedWithTheSetInForce(t *testing.T) {
	gone, labels := metav1.Now(), map[string]string{v1.LabelRole: v1.RoleCopy}
	made := func(name string, change func(*v1.AddonSet)) v1.AddonSet {
		one := v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: v1.AddonSetSpec{Type: v1.AddonSetCore}}
		change(&one)
		return one
	}
	deleted := func(one *v1.AddonSet) {
		one.DeletionTimestamp, one.Finalizers = &gone, []string{v1.FinalizerCleanupSet}
	}
	confirmed := func(one *v1.AddonSet) {
		deleted(one)
		one.Annotations = map[string]string{v1.AnnotationConfirmDeletion: one.Name}
	}
	found, recorder := &read{list: configMap("1", goodList)}, events.NewFakeRecorder(8)
	r := New(Dependencies{Client: found, Marks: mergedcatalogue.New(logr.Discard()), Recorder: recorder, Clock: clock.RealClock{}})
	r.list = found
	of := target.Description{Ref: target.Ref{Kind: target.KindClusterAPI, Namespace: "team", Name: "elm"}}
	for _, test := range []struct {
		why    string
		copies []v1.AddonSet
		want   string
	}{
		{"none", nil, ""},
		{"one", []v1.AddonSet{made("core", func(*v1.AddonSet) {})}, "core"},
		{"one that is being deleted", []v1.AddonSet{made("core", deleted)}, "core"},
		{"its deletion was confirmed", []v1.AddonSet{made("core", confirmed)}, ""},
		{"one that somebody else keeps", []v1.AddonSet{made("core", func(one *v1.AddonSet) { one.DeletionTimestamp = &gone })}, ""},
		{"one of another type", []v1.AddonSet{made("tools", func(one *v1.AddonSet) { one.Spec.Type = v1.AddonSetCustom })}, ""},
	} {
		found.copies = test.copies
		listed, by, err := r.Listed(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		if ref, isListed := listed["elm.kube-proxy"]; len(listed) != 1 || !isListed || ref.Version != "v1.36.3" {
			t.Errorf("%s: listed are %+v", test.why, listed)
		}
		if is := by != nil; is != (test.want != "") || is && by.Name != test.want {
			t.Errorf("%s: the set is %+v", test.why, by)
		}
	}
	found.list = configMap("2", "- {")
	if _, _, err := r.Listed(t.Context(), of); err != nil || len(recorder.Events) != 0 {
		t.Errorf("%d events, %v", len(recorder.Events), err)
	}
	if _, err := r.readCoreList(t.Context()); err != nil || len(recorder.Events) != 1 {
		t.Errorf("a pass tells %d times, %v", len(recorder.Events), err)
	}
}
