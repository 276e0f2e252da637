package sets_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// RS03: The master dies, its API server too, while a set rolls: both seeds go as far as their last gate and no further, what is there
// stays Ready and is repaired, and a cluster that comes back within the gate is rolled. What the master said is as old as it says, and
// it hears of the rest once it is back. Red when a group opens that the master did not open, and when a seed that is cut off does nothing.
func TestSeedsWithoutAMasterGoOnWithinTheirLastGate(t *testing.T) {
	w, of := newRegions(t)
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Rollout.Groups[0].Soak = &metav1.Duration{Duration: time.Hour} })
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "two"))
	w.has("web", "two", amber, birch)
	w.loseMaster()
	w.repaired("web", "two", amber, birch)
	w.repaired("web", "one", cedar, dune)
	w.stay("web", everywhere...)

	w.startServer(masterServer)
	w.startMaster()
	away := fleet.Shared().Cluster(dune)
	away.StopServer()
	w.saysOf(dune, "web", [2]string{v1.ConditionReady, v1.ReasonClusterUnreachable})
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Rollout.Groups[0].Soak = nil })
	w.has("web", "two", cedar)
	said := w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 3, Away: 1}))
	w.loseMaster()
	w.startServer(dune)
	w.has("web", "two", dune)
	w.repaired("web", "two", everywhere...)
	expect.Object(t, w.seeds[south].client, w.copyOf(of), func(found *v1.AddonSet) error {
		if now := found.Status.Counts; now == nil || now.Current != 2 {
			return fmt.Errorf("its counts are %+v", now)
		}
		return expect.Condition(found, v1.ConditionReady, "True", v1.ReasonComplete)
	})

	w.startServer(masterServer)
	found := of.DeepCopy()
	expect.Get(t, w.master, client.ObjectKeyFromObject(of), found)
	if since := found.Status.Conditions[0].LastTransitionTime; found.ResourceVersion != said.ResourceVersion ||
		!since.Time.Before(movedAt(t, w.now(dune, "web"))) {
		t.Errorf("what the master said last is of %s: %+v", since, found.Status)
	}
	w.startMaster()
	w.rolled(of, "two")
}

// RS21: A seed is taken off the list, a set rolls without it, and it is listed again. Nothing is deleted, made anew or written in its user
// clusters meanwhile; then they follow by waves, in the objects that they have, and only what the change is about is written. Red when
// what the seed has of the set goes with it, and when it follows at once.
func TestASeedThatIsListedAgainKeepsItsUserClusters(t *testing.T) {
	w, of := newRegions(t)
	left := []string{birch, dune}
	made, objects := w.uids("web", left...), w.objects(asRolled, w.target, left...)
	w.seeds[south].unlist()
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "two"))
	w.has("web", "two", amber, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	w.stay("web", left...)
	w.objectsStay(w.target, left...)
	w.has("web", "one", left...)

	w.seeds[south].list()
	w.has("web", "two", left...)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	w.inOrder("web", birch, dune)
	w.expectSame("installations", made, w.uids("web", left...))
	w.expectSame("objects", objects, w.objects(asRolled, w.target, left...))
}
