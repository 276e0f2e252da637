package sets_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// cordoned makes the pod of an add-on, of which the scheduler of its user cluster says that the only node is cordoned, until the installation
// says so.
func (w *world) cordoned(cluster string) {
	w.t.Helper()
	user := w.users[cluster]
	expect.Create(w.t, user, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.target, Name: "default"}}, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.target, Name: "web-1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
		},
	})
	expect.Eventually(w.t, 2*expect.Patience, func() error {
		var pods corev1.PodList
		if err := user.List(w.t.Context(), &pods, client.InNamespace(w.target), client.MatchingLabels{"app": "web"}); err != nil {
			return err
		}
		for i := range pods.Items {
			pods.Items[i].Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/1 nodes are available: 1 node(s) were unschedulable.",
			}}
			if err := user.Status().Update(w.t.Context(), &pods.Items[i]); err != nil {
				return err
			}
		}
		ready := meta.FindStatusCondition(w.now(cluster, "web").Status.Conditions, v1.ConditionReady)
		if !strings.Contains(ready.Message, "is not scheduled (Unschedulable)") {
			return fmt.Errorf("of %d pods it says %s", len(pods.Items), ready.Message)
		}
		return nil
	})
}

// TestACordonedCanaryHaltsNobody: the users of the one canary cordon its node, and a revision rolls. The set waits for an approval and names the cluster; with a good
// cluster in the group the next one opens; and an admin leaves the sick one out, with a name that is misspelt. Red when the set halts, when
// the others are written before anything shows that the revision works, and when neither cluster nor misspelt name is told.
func TestACordonedCanaryHaltsNobody(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	const deadline = 30 * time.Second
	of := w.set("tools", func(spec *v1.AddonSetSpec) { spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: deadline} })
	w.says(of, v1.ReasonComplete)
	sick := w.clusters[amber].Name
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.Addons[0].Values = valuesOf(map[string]any{"text": "two"})
		spec.Overrides = []v1.AddonSetOverride{{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.FactName: sick}}, Addon: "web",
			Values: valuesOf(map[string]any{"replicas": 1}),
		}}
	})
	w.cordoned(amber)
	expect.Eventually(t, deadline+expect.Patience, func() error {
		now := of.DeepCopy()
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(of), now); err != nil {
			return err
		}
		return expect.Condition(now, v1.ConditionReady, "False", v1.ReasonNoEvidence)
	})
	found := w.says(of, v1.ReasonNoEvidence, counts(v1.ClusterCounts{Selected: 3, Behind: 2, Sick: 1}))
	said := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionReady).Message
	if !strings.Contains(said, sick+": "+v1.ReasonUnschedulable) {
		t.Errorf("it names nobody: %s", said)
	}
	w.stay("web", birch, cedar)

	w.patch(w.clusters[birch], `{"metadata":{"labels":{"ring":"0"}}}`)
	w.has("web", "two", birch, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 2, Sick: 1}))
	w.inOrder("web", birch, cedar)

	w.annotate(of, v1.AnnotationLeaveOut, sick+",brich")
	w.says(of, v1.ReasonComplete, func(found *v1.AddonSet) error {
		message := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionReady).Message
		if row := found.Status.Clusters[0]; row.Reason != v1.ReasonLeftOut || !strings.Contains(message, "brich") || strings.Contains(message, sick) {
			return fmt.Errorf("it says %s of %+v", message, row)
		}
		return nil
	})
}
