package distributor_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// RS05: The etcd of a seed is full: status.seeds says so, and the other seed gets updates. The full seed gets them once its etcd has space.
// Red when the status has an HTTP status alone, and when the full seed loses an add-on whose type changes: a deletion is taken, and no creation.
func TestASeedWhoseEtcdIsFullIsReportedAndHoldsNobodyUp(t *testing.T) {
	small, full := fleet.Small(t, "full")
	w := newWorld(t)
	w.reach("full", full)
	w.seed("full", full.Kubeconfig)
	w.seed("south", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}, "old": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	both := func(versions ...string) {
		t.Helper()
		w.expectVersions("full", "web", versions...)
		w.expectVersions("seed", "web", versions...)
	}
	both("1.0.0")
	w.expectVersions("full", "old", "1.0.0")
	expect.NoError(t, small.FillEtcd(t.Context()))
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) {
		object.Spec.Addons = []v1.Addon{addonOf("web", "1.1.0"), addonOf("old", "1.0.0")}
	})
	w.expectVersions("seed", "web", "1.1.0")
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		for _, row := range object.Status.Seeds {
			if row.Name == "full" && !row.Synced && strings.Contains(row.Message, "etcd has no space left") {
				return nil
			}
		}
		return fmt.Errorf("seeds %+v", object.Status.Seeds)
	})
	before := w.expectVersions("full", "web", "1.0.0")
	core := w.catalogueOf("core", map[string][]string{"web": {"2.0.0"}})
	core.Spec.Type = v1.CatalogueCore
	expect.Create(w.t, w.master, core)
	w.expectVersions("seed", "web", "2.0.0")
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("new", "1.0.0")} })
	expect.Gone(t, w.client("full"), w.merged("old")) // a pass deletes after it has tried all writes
	if now := w.expectVersions("full", "web", "1.0.0"); now.UID != before.UID || now.Spec.Type != v1.CatalogueCustom {
		t.Errorf("web was made again on the full seed, with type %s", now.Spec.Type)
	}
	expect.NoError(t, small.FreeEtcd(t.Context()))
	both("2.0.0")
}
