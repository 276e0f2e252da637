package distributor_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
)

// bulk is a catalogue of 350 KiB.
func (w *world) bulk(name string) *v1.AddonCatalogue {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
	for i := range 7 {
		addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("%s-%d", name, i))}
		for j := range 20 {
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", j), ValuesTemplate: noise(5 << 9)})
		}
		object.Spec.Addons = append(object.Spec.Addons, addon)
	}
	return object
}

func noise(bytes int) string {
	made := make([]byte, bytes)
	for at := range made {
		made[at] = byte('a' + rand.IntN(26))
	}
	return string(made)
}

// stubs are the names of the catalogues that the master's cache holds as stubs.
func (w *world) stubs(master *distributor.Master) map[string]bool {
	w.t.Helper()
	list, found := &v1.AddonCatalogueList{}, map[string]bool{}
	expect.List(w.t, master.GetClient(), list, client.InNamespace(w.platform))
	for i := range list.Items {
		if budget.IsStub(&list.Items[i]) {
			found[list.Items[i].Name] = true
		}
	}
	return found
}

func heap() int64 {
	runtime.GC()
	var found runtime.MemStats
	runtime.ReadMemStats(&found)
	return int64(found.HeapAlloc)
}

// expectHeld waits until the heap has at most limit bytes more than before. Answers that are being read at that moment take memory too.
func (w *world) expectHeld(before, limit int64) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if took := heap() - before; took > limit {
			return fmt.Errorf("%d KiB are held, more than %d KiB", took>>10, limit>>10)
		}
		return nil
	})
}

// No webhook is asked here. Red when catalogues that fill the store fill the manager's memory too, now or after a restart; when the author
// is not told; when catalogues that were there, or small ones, get nothing any more, or lose what seeds have of them after a restart; when
// a stub replaces its catalogue or can't be deleted; or when nothing changes once there is room.
func TestAFloodOfCataloguesIsNotHeldInMemory(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.held = 8 << 20
	stop := w.start()
	early := w.bulk("early")
	early.Spec.Addons = early.Spec.Addons[:2]
	expect.Create(t, w.master, early)
	w.expectCondition(early, v1.ConditionReady, "True", v1.ReasonDistributed)
	const flood = 20
	before := heap()
	for at := range flood {
		expect.Create(t, w.master, w.bulk(fmt.Sprintf("bulk-%02d", at)))
	}
	last := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: fmt.Sprintf("bulk-%02d", flood-1)}}
	w.expectCondition(last, v1.ConditionReady, "False", v1.ReasonTooLarge, "bulk-19", "KiB of memory", "delete catalogues")
	w.expectHeld(before, 2*w.held) // all of them would take about 20 MiB
	late := w.catalogueOf("late", map[string][]string{"web": {"1.0.0"}})
	expect.Create(t, w.master, late)
	w.expectVersions("master", "web", "1.0.0")
	expect.Change(t, w.master, early, func(object *v1.AddonCatalogue) { object.Spec.Priority = 7 })
	w.expectCondition(early, v1.ConditionReady, "True", v1.ReasonDistributed)

	stub := &v1.AddonCatalogue{}
	expect.Get(t, w.running.GetClient(), client.ObjectKeyFromObject(last), stub)
	if err := w.running.GetClient().Update(t.Context(), stub); err == nil || !strings.Contains(err.Error(), "without its content") {
		t.Errorf("a stub replaces its catalogue: %v", err)
	}
	expect.Read(t, w.master, last)
	if len(last.Spec.Addons) != 7 {
		t.Errorf("the last catalogue has %d add-ons", len(last.Spec.Addons))
	}

	// After a restart in less memory what was there is a stub too. The seeds keep what they have of it.
	stop()
	w.held = 1 << 20
	stop = w.start()
	expect.Change(t, w.master, late, func(object *v1.AddonCatalogue) {
		object.Spec.Addons = append(object.Spec.Addons, addonOf("new", "1.0.0"))
	})
	w.expectVersions("master", "new", "1.0.0")
	if held := w.stubs(w.running); len(held) < flood || !held["early"] || held["late"] {
		t.Errorf("stubs of %v", held)
	}
	w.steady(func() error {
		kept := w.merged("early-0")
		return w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept)
	})
	w.expectCondition(early, v1.ConditionReady, "False", v1.ReasonTooLarge)
	stop()
	w.held = 8 << 20
	stop = w.start()

	for at := range flood {
		if at != flood-1 {
			expect.Delete(t, w.master, &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: fmt.Sprintf("bulk-%02d", at)}})
		}
	}
	edits := int32(0)
	expect.Object(t, w.master, last, func(object *v1.AddonCatalogue) error {
		runtime.GC()
		edits++ // a pass looks whether there is room
		expect.Change(t, w.master, late, func(object *v1.AddonCatalogue) { object.Spec.Priority = edits % 1000 })
		return expect.Condition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	})
	expect.Object(t, w.master, w.merged("bulk-19-0"), func(object *v1.AddonCatalogue) error {
		if versions := len(object.Spec.Addons[0].Versions); versions != 20 {
			return fmt.Errorf("%d versions", versions)
		}
		return nil
	})
	expect.Eventually(t, expect.Patience, func() error { // the cache may be behind the last deletion
		if held := w.stubs(w.running); len(held) > 0 {
			return fmt.Errorf("stubs of %v although there is room", held)
		}
		return nil
	})
	stop()
}
