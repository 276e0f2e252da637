package distributor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// newSmall is a cluster with an etcd of its own, which has enough for an API server and is soon full.
func newSmall(t *testing.T, name string) (*fleet.Fleet, *fleet.Cluster) {
	t.Helper()
	small, err := fleet.Start(t.Context(), fleet.Options{Clusters: []fleet.ClusterOptions{{Name: name}}, EtcdQuota: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Stop)
	return small, small.Cluster(name)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// RS05: The etcd of a seed is full: that is told, the other seed gets what is new, and with room again this one does, without anybody's hand.
// Red when the status has an HTTP status alone.
func TestASeedWhoseEtcdIsFullIsToldAndHoldsNobodyUp(t *testing.T) {
	small, full := newSmall(t, "full")
	w := newWorld(t)
	w.reach("full", full)
	w.seed("full", full.Kubeconfig)
	w.seed("south", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}})
	w.create(w.master, custom)
	both := func(versions ...string) {
		t.Helper()
		w.expectVersions("full", "web", versions...)
		w.expectVersions("seed", "web", versions...)
	}
	both("1.0.0")
	must(t, small.FillEtcd(t.Context()))
	edit(w, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("web", "1.1.0")} })
	w.expectVersions("seed", "web", "1.1.0")
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		for _, row := range object.Status.Seeds {
			if row.Name == "full" && !row.Synced && strings.Contains(row.Message, "etcd has no space left") {
				return nil
			}
		}
		return fmt.Errorf("seeds %+v", object.Status.Seeds)
	})
	w.expectVersions("full", "web", "1.0.0")
	must(t, small.FreeEtcd(t.Context()))
	both("1.1.0")
}

// RS05: The etcd of the master is full: what a seed loses it gets all the same, nobody tries to write a status without a pause, and with
// room again the master goes on, without anybody's hand. Red when a pass that can't write the status ends before the seeds' workers have their
// tasks.
func TestAMasterWhoseEtcdIsFullServesItsSeeds(t *testing.T) {
	small, master := newSmall(t, "full-master")
	w := newWorldOn(t, master)
	w.seed("south", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}})
	w.create(w.master, custom)
	w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
	had := w.expectVersions("seed", "web", "1.0.0")

	must(t, small.FillEtcd(t.Context()))
	before := w.manager.All("distributor")
	expect.Delete(t, w.client("seed"), w.merged("web"))
	expect.Object(t, w.client("seed"), w.merged("web"), func(object *v1.AddonCatalogue) error {
		if object.UID == had.UID {
			return errors.New("it is the one of before")
		}
		return nil
	})
	if passes := w.manager.All("distributor") - before; passes > 30 {
		t.Errorf("%d passes", passes)
	}
	must(t, small.FreeEtcd(t.Context()))
	edit(w, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("web", "1.1.0")} })
	w.expectVersions("seed", "web", "1.1.0")
	w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
}
