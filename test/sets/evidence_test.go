package sets_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// pinned waits until an installation asks for one content.
func (w *world) pinned(cluster, name string) {
	w.t.Helper()
	expect.Object(w.t, w.home(cluster), w.installation(cluster, name), func(found *v1.AddonInstallation) error {
		if found.Spec.AddonRef.Digest == "" {
			return fmt.Errorf("%s is not pinned", cluster)
		}
		return nil
	})
}

// asks waits until an installation asks for a version.
func (w *world) asks(cluster, name, version string) {
	w.t.Helper()
	expect.Object(w.t, w.home(cluster), w.installation(cluster, name), func(found *v1.AddonInstallation) error {
		if found.Spec.AddonRef.Version != version {
			return fmt.Errorf("%s asks for version %q", cluster, found.Spec.AddonRef.Version)
		}
		return nil
	})
}

// TestAnOldReadyOpensNothing: nobody works on what was written to the canary, which is Ready since before. Red when condition Ready of
// another generation counts: the others are written.
func TestAnOldReadyOpensNothing(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.runPlatform()
	stop := w.runInstallations()
	of := w.set("tools")
	w.says(of, v1.ReasonComplete)
	stop()
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.0", "two"))
	w.asks(amber, "web", "1.1.0")
	w.stay("web", birch, cedar)
	if canary := w.now(amber, "web"); !meta.IsStatusConditionTrue(canary.Status.Conditions, v1.ConditionReady) {
		t.Error("the canary is not Ready: this shows nothing")
	}
	w.says(of, v1.ReasonRollingOut)
	w.runInstallations()
	w.has("web", "two", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.inOrder("web", amber, birch, cedar)
}

// TestADeadCanaryIsNoEvidence: its API server is killed, a new version comes, and it comes back. Red when a group with nothing but dead
// clusters counts as done, or when what is dead is written to; red too when its return wakes nobody.
func TestADeadCanaryIsNoEvidence(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools")
	w.says(of, v1.ReasonComplete)
	server := fleet.Shared().Cluster(amber)
	server.StopServer()
	w.saysOf(amber, "web", [2]string{v1.ConditionReady, v1.ReasonClusterUnreachable})
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.0", "two"))
	found := w.says(of, v1.ReasonNoEvidence, counts(v1.ClusterCounts{Selected: 3, Behind: 2, Away: 1}))
	if rows := found.Status.Clusters; len(rows) != 1 || rows[0].Name != w.clusters[amber].Name || rows[0].State != v1.ClusterAway {
		t.Errorf("the status lists %+v", rows)
	}
	w.stay("web", birch, cedar)
	if asks := w.now(amber, "web").Spec.AddonRef.Version; asks != "1.0.0" {
		t.Errorf("version %s was written to the dead cluster", asks)
	}
	expect.NoError(t, server.StartServer(t.Context()))
	w.has("web", "two", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.inOrder("web", amber, birch, cedar)
}

// TestPausedAndBrokenClustersBlockNothingAndAreNoSuccess: of the canaries one works, one was broken before and one is paused. Red when
// those two hold the others up or halt them, when they count as done, or when they alone open the next group; red too when an approval
// does not go past that.
func TestPausedAndBrokenClustersBlockNothingAndAreNoSuccess(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	paused := w.seeds["seed"].cluster(placed{cluster: "dusk", ring: "0"})
	w.patch(paused, `{"spec":{"pause":true}}`)
	w.patch(w.clusters[birch], `{"metadata":{"labels":{"ring":"0"}}}`)
	w.run()
	of := w.set("tools")
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 3, Away: 1}))
	const deadline = 30 * time.Second // longer than a move takes where the machine is busy
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: deadline} })
	// What breaks before the edit is observed counts as failed by it.
	w.says(of, v1.ReasonComplete)
	w.patch(w.installation(birch, "web"), `{"spec":{"values":{"replicas":1}}}`) // pods that nobody runs
	w.saysOf(birch, "web", [2]string{v1.ConditionReady, v1.ReasonProgressing})
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 3, Away: 1}))
	since := w.now(birch, "web").Status.LastApplied.Time
	expect.Eventually(t, 2*expect.Patience, func() error { // until then it may still get Ready
		if broken := time.Since(since.Time); broken < deadline+time.Second {
			return fmt.Errorf("it is broken for %s", broken)
		}
		return nil
	})

	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.0", "two"))
	expect.Eventually(t, deadline+expect.Patience, func() error { // the broken one may get Ready until its deadline
		if have := w.text(cedar, w.now(cedar, "web")); have != "two" {
			return fmt.Errorf("cedar has %q", have)
		}
		return nil
	})
	w.has("web", "two", amber, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 2, Sick: 1, Away: 1}))
	w.inOrder("web", amber, cedar)

	w.patch(w.installation(amber, "web"), `{"spec":{"paused":true}}`)
	w.saysOf(amber, "web", [2]string{v1.ConditionReady, v1.ReasonPaused})
	w.offer(v1.CatalogueCustom, "web", w.version("1.1.0", "two"), w.version("1.2.0", "three"))
	expect.Eventually(t, deadline+expect.Patience, func() error {
		now := of.DeepCopy()
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(of), now); err != nil {
			return err
		}
		return expect.Condition(now, v1.ConditionReady, "False", v1.ReasonNoEvidence)
	})
	found := w.says(of, v1.ReasonNoEvidence, counts(v1.ClusterCounts{Selected: 4, Behind: 1, Sick: 1, Away: 2}))
	w.stay("web", cedar)
	w.annotate(of, v1.AnnotationApprove, found.Status.Revision+"/"+v1.GroupRest)
	w.has("web", "three", cedar)
}
