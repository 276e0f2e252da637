package sets_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// RS60: A master is restored from before content changed and another set was made. User clusters go back to the content, by waves, in the
// objects that they have; what the other set made stays whole, and is that set's again once somebody makes it again. Red when a copy goes
// that the master does not know.
func TestARestoredMasterRemovesNothingFromUserClusters(t *testing.T) {
	w, of := newRegions(t)
	restore := w.backup(masterServer)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "two"))
	w.rolled(of, "two")
	later := w.more()
	w.has("more", "two", everywhere...)
	w.says(later, v1.ReasonComplete)
	made, objects := w.uids("web", everywhere...)+w.uids("more", everywhere...), w.objects(asRolled, w.target, everywhere...)
	others := w.objects(asRolled, w.target+"-more", everywhere...)

	w.program.Kill()
	restore()
	w.startMaster()
	w.rolled(of, "one")
	for _, one := range w.seeds {
		copied := w.copyOf(later)
		err := one.client.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)
		if err != nil || !copied.DeletionTimestamp.IsZero() {
			t.Errorf("the copy on %s is %+v: %v", one.name, copied.ObjectMeta, err)
		}
	}
	w.has("more", "one", amber, birch) // nobody opens the next group of a set that the master does not know
	w.objectsStay(w.target+"-more", everywhere...)
	w.has("more", "two", cedar, dune)
	w.says(w.more(), v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	w.has("more", "one", everywhere...)
	w.expectSame("objects of the other set", others, w.objects(asRolled, w.target+"-more", everywhere...))
	w.expectSame("objects", objects, w.objects(asRolled, w.target, everywhere...))
	w.expectSame("installations", made, w.uids("web", everywhere...)+w.uids("more", everywhere...))
}

// RS60: A seed that is off the list meanwhile is restored, with the records of what it applied, from before content changed and another set
// was made. Nothing that is newer than the backup goes from its user clusters: they follow by waves, in the objects that they have, those
// that the seed does not know of too. Red when all follow at once, and when what no record knows is removed or made anew.
func TestARestoredSeedRemovesNothingFromUserClusters(t *testing.T) {
	w, of := newRegions(t)
	restored := []string{birch, dune}
	made, restore := w.uids("web", restored...), w.backup(southServer)
	w.offer(v1.CatalogueCustom, "web", w.version("1.1.0", "two", func(version *v1.AddonVersion) {
		version.Values = valuesOf(map[string]any{"text": "two", "replicas": 0, "more": true})
	}))
	w.rolled(of, "two")
	w.says(w.more(), v1.ReasonComplete)
	w.has("more", "two", everywhere...)
	exceptions := func(object client.Object) string {
		if object.GetName() == "settings" {
			return "" // they are deleted below
		}
		return asMade(object)
	}
	newer, others := w.objects(exceptions, w.target, restored...), w.objects(asMade, w.target+"-more", restored...)

	south := w.seeds[south]
	south.unlist()
	south.stop()
	restore()
	south.run()
	w.repaired("web", "one", restored...) // by the backup
	w.expectSame("objects", newer, w.objects(exceptions, w.target, restored...))
	w.expectSame("objects of the other set", others, w.objects(asMade, w.target+"-more", restored...))
	south.list()
	w.has("web", "two", everywhere...)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	w.inOrder("web", birch, dune)
	for _, cluster := range restored {
		expect.Object(t, south.client, w.installation(cluster, "more"), func(*v1.AddonInstallation) error { return nil })
	}
	w.has("more", "two", restored...)
	w.expectSame("installations", made, w.uids("web", restored...))
	w.expectSame("objects", newer, w.objects(exceptions, w.target, restored...))
	w.expectSame("objects of the other set", others, w.objects(asMade, w.target+"-more", restored...))
}

// soonAgain is how long a seed that is back may lack what the master has for it. Its lists are five minutes apart.
const soonAgain = 2 * time.Minute

// RS60: A seed that stays on the list is restored in the same way. Within seconds it has catalogues and copies again, and its user clusters
// follow by waves, in the objects that they have. Red when what the seed lost comes with the next list only.
func TestARestoredSeedThatStaysOnTheListHasWhatItLostWithinSeconds(t *testing.T) {
	w, of := newRegions(t)
	restored := []string{birch, dune}
	made, restore := w.uids("web", restored...), w.backup(southServer)
	w.offer(v1.CatalogueCustom, "web", w.version("1.1.0", "two"))
	w.rolled(of, "two")
	later := w.more()
	w.says(later, v1.ReasonComplete)
	w.has("more", "two", everywhere...)
	newer, others := w.objects(asMade, w.target, restored...), w.objects(asMade, w.target+"-more", restored...)

	south := w.seeds[south]
	south.stop()
	restore()
	back := time.Now()
	merged := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "web"}}
	expect.Object(t, south.client, merged, func(found *v1.AddonCatalogue) error {
		if version := found.Spec.Addons[0].Versions[0].Version; version != "1.1.0" {
			return fmt.Errorf("the seed has version %s", version)
		}
		return nil
	})
	expect.Object(t, south.client, w.copyOf(later), func(*v1.AddonSet) error { return nil })
	if took := time.Since(back); took > soonAgain {
		t.Errorf("what the seed lost was there after %s", took)
	}
	south.run()
	w.has("web", "two", everywhere...)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	w.inOrder("web", birch, dune)
	w.says(later, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 4, Current: 4}))
	w.has("more", "two", restored...)
	w.expectSame("installations", made, w.uids("web", restored...))
	w.expectSame("objects", newer, w.objects(asMade, w.target, restored...))
	w.expectSame("objects of the other set", others, w.objects(asMade, w.target+"-more", restored...))
}
