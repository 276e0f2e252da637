package addon_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestOffersWhatFits(t *testing.T) {
	w := newWorld(t)
	older, newer := w.cluster("older", "v1.36.3-gke.100"), w.cluster("newer", "v1.37.1")
	unknown := w.cluster("unknown", "")
	w.merged("prometheus", v1.CatalogueCustom, [2]string{"2.0.0", ">= 1.37"}, [2]string{"1.0.0", ""})
	w.merged("loki", v1.CatalogueCustom, [2]string{"1.0.0", "< 1.37"})
	w.merged("canal", v1.CatalogueCore, [2]string{"3.0.0", ""})
	w.start()
	w.expectOffer(newer, "prometheus: 2.0.0 1.0.0")
	w.expectOffer(unknown, "prometheus: 1.0.0")
	object := w.expectOffer(older, "loki: 1.0.0", "prometheus: 1.0.0")
	want := []v1.ExcludedVersion{
		{Addon: "canal", Version: "3.0.0", Reason: v1.ExcludedCore,
			Message: "core add-ons are installed by the platform and not offered to users"},
		{Addon: "prometheus", Version: "2.0.0", Reason: v1.ExcludedK8sVersion, Message: "needs Kubernetes >= 1.37; it is 1.36.3"},
	}
	if diff := cmp.Diff(want, object.Status.Excluded); diff != "" {
		t.Error(diff)
	}
	if object.Status.Addons != 2 || object.Status.Versions != 2 || object.Status.ExcludedCount != 2 {
		t.Errorf("counts: %+v", object.Status)
	}
	if object.Spec.Addons[0].Description != "for users who choose" || object.Labels[v1.LabelRole] != v1.RoleAvailable {
		t.Errorf("not described or not marked: %+v", object)
	}

	// A new version of the cluster moves the offer, and only that of this cluster.
	before := w.versionOf(availableOf(newer))
	begin := time.Now()
	w.status(older, func(status *kkpv1.ClusterStatus) { status.Versions.ControlPlane = "v1.37.1" })
	w.expectOffer(older, "prometheus: 2.0.0 1.0.0")
	t.Logf("from the version bump to the offer: %s", time.Since(begin))
	if after := w.versionOf(availableOf(newer)); after != before {
		t.Errorf("the other cluster was written: %s, %s", before, after)
	}

	// A changed catalogue reaches those clusters whose offer changes.
	w.status(older, func(status *kkpv1.ClusterStatus) { status.Versions.ControlPlane = "v1.36.3" })
	w.expectOffer(older, "loki: 1.0.0", "prometheus: 1.0.0")
	w.merged("loki", v1.CatalogueCustom, [2]string{"1.0.0", "< 1.37"}, [2]string{"1.1.0", "< 1.37"})
	w.expectOffer(older, "loki: 1.1.0 1.0.0", "prometheus: 1.0.0")
	withdrawn := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "prometheus"}}
	expect.Delete(t, w.seed, withdrawn)
	w.expectOffer(older, "loki: 1.1.0 1.0.0")
	w.expectOffer(newer)
}

func (w *world) versionOf(object client.Object) string {
	w.t.Helper()
	expect.Read(w.t, w.seed, object)
	return object.GetResourceVersion()
}

func TestPutsBackWhatIsEditedOrDeleted(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("edited", "v1.36.3")
	w.merged("vault", v1.CatalogueCustom, [2]string{"1.0.0", ""}, [2]string{"1.1.0", ""})
	stop := w.start()
	const offer = "vault: 1.1.0 1.0.0"
	w.expectOffer(of, offer)
	for _, edit := range []struct {
		why    string
		change func(*v1.AddonCatalogue)
	}{
		{"an add-on more", func(o *v1.AddonCatalogue) {
			o.Spec.Addons = append(o.Spec.Addons, v1.Addon{Name: "evil", Versions: []v1.AddonVersion{{Version: "6"}}})
		}},
		{"a version less", func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Versions = o.Spec.Addons[0].Versions[1:] }},
		{"the label off", func(o *v1.AddonCatalogue) { o.Labels = nil }},
		{"the digest off", func(o *v1.AddonCatalogue) { o.Annotations = nil }},
	} {
		w.edit(of, edit.change)
		object := w.expectOffer(of, offer)
		expect.Object(t, w.seed, object, func(object *v1.AddonCatalogue) error {
			if object.Labels[v1.LabelRole] != v1.RoleAvailable {
				return fmt.Errorf("%s: labels %v", edit.why, object.Labels)
			}
			return nil
		})
	}
	object := w.expectOffer(of, offer)
	expect.Delete(t, w.seed, object)
	w.expectOffer(of, offer)
	for _, edit := range []struct {
		why    string
		change func(*v1.AddonCatalogueStatus)
	}{
		{"a count", func(s *v1.AddonCatalogueStatus) { s.Versions = 99 }},
		{"a reason more", func(s *v1.AddonCatalogueStatus) {
			s.Excluded = append(s.Excluded, v1.ExcludedVersion{Addon: "evil", Version: "6", Reason: v1.ExcludedCore})
		}},
		{"everything off", func(s *v1.AddonCatalogueStatus) { *s = v1.AddonCatalogueStatus{} }},
	} {
		object := w.expectOffer(of, offer)
		want := object.Status.DeepCopy()
		edit.change(&object.Status)
		expect.UpdateStatus(t, w.seed, object)
		expect.Object(t, w.seed, object, func(object *v1.AddonCatalogue) error {
			ignored := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
			if diff := cmp.Diff(want, &object.Status, ignored); diff != "" {
				return fmt.Errorf("%s in the status: %s", edit.why, diff)
			}
			return nil
		})
	}

	// While nobody looked.
	stop()
	w.edit(of, func(o *v1.AddonCatalogue) { o.Spec.Addons = nil })
	w.start()
	w.expectOffer(of, offer)
}

func (w *world) edit(of *kkpv1.Cluster, change func(*v1.AddonCatalogue)) {
	w.t.Helper()
	expect.Change(w.t, w.seed, availableOf(of), change)
}

func TestIdleWritesNothing(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("idle", "v1.36.3")
	w.merged("tempo", v1.CatalogueCustom, [2]string{"1.0.0", ""}, [2]string{"2.0.0", ">= 1.37"})
	stop := w.start()
	w.expectOffer(of, "tempo: 1.0.0")
	before := w.versionOf(availableOf(of))
	same := func() error {
		if after := w.versionOf(availableOf(of)); after != before {
			return fmt.Errorf("written: %s, %s", before, after)
		}
		return nil
	}
	w.steady(same)
	stop()
	w.start()
	// What changes nothing for the cluster writes nothing either, nor does a restart.
	w.status(of, func(status *kkpv1.ClusterStatus) { status.ExtendedHealth.APIServer = kkpv1.HealthUp })
	w.merged("tempo", v1.CatalogueCustom, [2]string{"1.0.0", ""}, [2]string{"2.0.0", ">= 1.37"})
	w.steady(same)
}

func TestLeavesAloneWhatIsNotItsBusiness(t *testing.T) {
	w := newWorld(t)
	w.merged("mimir", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	name := func(name string) string { return fmt.Sprintf("%s-%d", name, worlds) }
	paused, foreign := w.cluster("paused", ""), w.cluster("foreign", "")
	paused.Spec.Pause = true
	foreign.Labels = map[string]string{kkpv1.LabelWorkerName: "somebody"}
	for _, object := range []*kkpv1.Cluster{paused, foreign} {
		expect.Update(t, w.seed, object)
	}
	nameless := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name("nameless")}}
	expect.Create(w.t, w.seed, nameless)
	late := w.bareCluster(name("late"), "v1.36.3")
	ours := w.cluster("ours", "v1.36.3")
	w.start()
	w.expectOffer(ours, "mimir: 1.0.0")
	w.steady(func() error {
		for _, object := range []*kkpv1.Cluster{paused, foreign, late} {
			err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(availableOf(object)), availableOf(object))
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("Cluster %s has a catalogue (%w)", object.Name, err)
			}
		}
		return nil
	})

	// A namespace that comes later is served, and a Cluster that is resumed.
	expect.Create(w.t, w.seed, kit.Namespace("cluster-"+late.Name))
	w.expectOffer(late, "mimir: 1.0.0")
	paused.Spec.Pause = false
	expect.Update(t, w.seed, paused)
	w.expectOffer(paused, "mimir: 1.0.0")
}

func TestTwoClustersWithOneNamespaceGetNothing(t *testing.T) {
	w := newWorld(t)
	w.merged("jaeger", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	first := w.cluster("first", "v1.36.3")
	second := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: first.Name + "-again"}}
	expect.Create(w.t, w.seed, second)
	w.status(second, func(status *kkpv1.ClusterStatus) { status.NamespaceName = first.Status.NamespaceName })
	w.start()
	w.steady(func() error {
		err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(availableOf(first)), availableOf(first))
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace has a catalogue (%w)", err)
		}
		return nil
	})
}

// patience is many times what an edit takes to reach the clusters; test/bench/addon has the bars.
const patience = 30 * time.Second

func TestCatalogueEditReachesClustersFast(t *testing.T) {
	w := newWorld(t)
	var clusters []*kkpv1.Cluster
	for i := range 4 {
		clusters = append(clusters, w.cluster(fmt.Sprintf("fast-%d", i), []string{"v1.36.3", "v1.37.1"}[i%2]))
	}
	w.merged("nats", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	w.start()
	for _, of := range clusters {
		w.expectOffer(of, "nats: 1.0.0")
	}
	var times []time.Duration
	for i := range 5 {
		version := fmt.Sprintf("2.%d.0", i)
		begin := time.Now()
		w.merged("nats", v1.CatalogueCustom, [2]string{version, ""})
		for _, of := range clusters {
			w.expectOffer(of, "nats: "+version)
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	t.Logf("from merged catalogue to all clusters: %v", times)
	if times[2] > patience {
		t.Errorf("median %s", times[2])
	}
}

func TestGoesWithItsCluster(t *testing.T) {
	w := newWorld(t)
	going, staying := w.cluster("going", "v1.36.3"), w.cluster("staying", "v1.36.3")
	w.merged("cortex", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	w.start()
	object := w.expectOffer(going, "cortex: 1.0.0")
	w.expectOffer(staying, "cortex: 1.0.0")
	expect.Delete(t, w.seed, going)
	// Its namespace stays in this test, so it is the garbage collector that takes the catalogue.
	expect.Gone(t, w.seed, object)
	w.expectOffer(staying, "cortex: 1.0.0")
}

func TestTwoWritersOfStatus(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("shared", "v1.36.3")
	w.merged("thanos", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	w.start()
	object := w.expectOffer(of, "thanos: 1.0.0")
	w.applyCore(object, 3)
	before := w.versionOf(availableOf(of))
	w.steady(func() error {
		if after := w.versionOf(availableOf(of)); after != before {
			return fmt.Errorf("the other writer's part was taken for an edit: %s, %s", before, after)
		}
		return nil
	})
	w.merged("thanos", v1.CatalogueCustom, [2]string{"1.1.0", ""})
	object = w.expectOffer(of, "thanos: 1.1.0")
	if object.Status.Core == nil || object.Status.Core.Total != 3 {
		t.Errorf("the other writer's part is gone: %+v", object.Status)
	}
	if err := expect.Condition(object, "AddonsReady", "True", "Ready"); err != nil {
		t.Error(err)
	}
}

// applyCore writes what the core add-on controller writes.
func (w *world) applyCore(of *v1.AddonCatalogue, total int) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"apiVersion":"kubermatic.k8c.io/v1","kind":"AddonCatalogue",
		"metadata":{"namespace":%q,"name":"available"},"status":{"core":{"total":%d},"conditions":[{"type":"AddonsReady",
		"status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, of.Namespace, total)
	err := w.seed.Status().Patch(w.t.Context(), of.DeepCopy(), client.RawPatch(types.ApplyPatchType, []byte(patch)),
		client.FieldOwner("core-addon-controller"))
	expect.NoError(w.t, err)
}

func TestReportsWhatIsOffered(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("told", "v1.36.3")
	w.merged("zipkin", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	w.start()
	w.expectOffer(of, "zipkin: 1.0.0")
	expect.Event(t, w.seed, availableOf(of), v1.EventOffered, "1 version of 1 add-on", "do not fit: 0", "not offered: 0")
	w.merged("zipkin", v1.CatalogueCustom, [2]string{"2.0.0", ""}, [2]string{"2.1.0", ">= 1.37"})
	w.expectOffer(of, "zipkin: 2.0.0")
	expect.Event(t, w.seed, availableOf(of), v1.EventOffered,
		"1 version of 1 add-on", "do not fit: 1", "not offered: 0", "new: zipkin 2.0.0", "gone: zipkin 1.0.0")
}

// Red when each edit of an annotation of merged catalogues has a pass of its own.
func TestEditsThatKeepComingAreGathered(t *testing.T) {
	w := newWorld(t)
	w.start()
	of, object := w.cluster("noted", "1.33.1"), w.merged("web", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	w.expectOffer(of, "web: 1.0.0")
	w.manager.Settle("addon-catalogue")
	before, began := w.manager.Began("addon-catalogue", "", "everything"), time.Now()
	const edits = 200
	for number := range edits {
		expect.Annotate(t, w.seed, object, "example.com/note", fmt.Sprint(number))
	}
	const first = 8 // which come faster than every second
	most := int(time.Since(began)/time.Second) + first
	if runs := w.manager.Began("addon-catalogue", "", "everything") - before; runs > most || runs == 0 {
		t.Errorf("%d edits had %d passes, want at most %d", edits, runs, most)
	}
}
