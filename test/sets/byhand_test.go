package sets_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// message waits until Ready of the master's set says so.
func message(want string) func(*v1.AddonSet) error {
	return func(found *v1.AddonSet) error {
		if ready := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionReady); !strings.Contains(ready.Message, want) {
			return fmt.Errorf("it says %q", ready.Message)
		}
		return nil
	}
}

// workload is the ReplicaSet of add-on web in a user cluster.
func (w *world) workload(cluster string) *appsv1.ReplicaSet {
	w.t.Helper()
	found := &appsv1.ReplicaSet{}
	expect.Get(w.t, w.users[cluster], client.ObjectKey{Namespace: w.target, Name: "web"}, found)
	return found
}

// TestAGroupThatSelectsNoClusterOpensNoOther: the label of the canary group has a slip. Red when all clusters move at once, when nothing says
// which group it is, and when an approval does not go past it.
func TestAGroupThatSelectsNoClusterOpensNoOther(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) {
		spec.Rollout.Groups[0].ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rnig": "0"}}
	})
	found := w.says(of, v1.ReasonNoEvidence, counts(v1.ClusterCounts{Selected: 3, Behind: 3}), message(`group "canary" selects no cluster`))
	w.unchanged(soak, func() string {
		for name, cluster := range w.clusters {
			err := w.home(name).Get(t.Context(), client.ObjectKey{Namespace: cluster.Status.NamespaceName, Name: "web"}, &v1.AddonInstallation{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				t.Fatalf("%s has the add-on: %v", name, err)
			}
		}
		return ""
	})
	w.annotate(of, v1.AnnotationApprove, found.Status.Revision+"/"+v1.GroupRest)
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}),
		message(`3 of 3 clusters have the revision; group "canary" selects no cluster`))
}

// TestAnInstallationByHandGoesOverToASetAndBack: the only canary has the add-on by an installation that somebody made, which goes over to the
// set as the message says, and back. Red when the blocked canary opens the next group, when the message does not say how, and when
// an object of the user cluster is made anew on the way, or is not kept reconciled after it.
func TestAnInstallationByHandGoesOverToASetAndBack(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	hand := w.installation(amber, "web")
	hand.Spec.AddonRef, hand.Spec.TargetNamespace = v1.AddonReference{Name: "web", Version: "1.0.0"}, w.target
	expect.Create(t, w.home(amber), hand)
	w.has("web", "one", amber)
	workload, settings := w.workload(amber), w.settings(amber, hand)
	isSame := func(when string) {
		t.Helper()
		if now := w.workload(amber); now.UID != workload.UID || now.Generation != workload.Generation {
			t.Errorf("%s: the ReplicaSet is %s in generation %d, was %s in %d", when, now.UID, now.Generation, workload.UID, workload.Generation)
		}
		if now := w.settings(amber, hand); now.UID != settings.UID {
			t.Errorf("%s: the ConfigMap is %s, was %s", when, now.UID, settings.UID)
		}
	}
	of := w.set("tools", func(spec *v1.AddonSetSpec) { spec.Addons[0].Allow = []v1.Permission{v1.PermissionAdopt} })
	found := w.says(of, v1.ReasonNoEvidence, counts(v1.ClusterCounts{Selected: 3, Behind: 2, Blocked: 1}),
		message(`no cluster of group "canary" has this revision: 1 is blocked`))
	if rows := found.Status.Clusters; len(rows) != 1 || rows[0].Reason != v1.ReasonNameTaken ||
		!strings.Contains(rows[0].Message, "deletionPolicy Orphan") || !strings.Contains(rows[0].Message, "allow: [Adopt]") {
		t.Errorf("the status lists %+v", rows)
	}

	w.patch(hand, `{"spec":{"deletionPolicy":"Orphan"}}`)
	expect.Delete(t, w.home(amber), hand)
	w.has("web", "one", birch, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}), message("3 of 3 clusters have the revision"))
	made := w.now(amber, "web")
	if made.Labels[v1.LabelSet] != of.Name || made.UID == hand.UID {
		t.Errorf("the installation is %s of set %q", made.UID, made.Labels[v1.LabelSet])
	}
	isSame("with the set")

	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Removal = v1.RemovalRelease })
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "ring", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"0"}}}
	})
	expect.Object(t, w.home(amber), w.installation(amber, "web"), func(found *v1.AddonInstallation) error {
		if set := found.Labels[v1.LabelSet]; set != "" || found.Spec.AddonRef.Digest != "" {
			return fmt.Errorf("it is of set %q, pinned to %q", set, found.Spec.AddonRef.Digest)
		}
		return nil
	})
	w.has("web", "one", amber)
	if now := w.now(amber, "web"); now.UID != made.UID {
		t.Errorf("the installation was made anew")
	}
	isSame("by hand again")
	w.patch(w.installation(amber, "web"), `{"spec":{"values":{"text":"own"}}}`)
	w.has("web", "own", amber)
	isSame("with values of its own")
}
