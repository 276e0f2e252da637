package sets_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
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
