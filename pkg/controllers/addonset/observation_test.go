package addonset

import (
	"maps"
	"slices"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// filled is a cache with all objects.
type filled struct{ toolscache.Indexer }

func (f filled) HasSynced() bool                { return true }
func (f filled) GetIndexer() toolscache.Indexer { return f.Indexer }

func webIn(namespace, resourceVersion, digest string) *v1.AddonInstallation {
	made := &v1.AddonInstallation{}
	made.Namespace, made.Name, made.ResourceVersion = namespace, "web", resourceVersion
	made.Annotations = map[string]string{v1.AnnotationDigest: digest}
	return made
}

// TestAnObservationIsOfTheCache fails when a walk plans with a previous state of an installation in the cache, or
// with a deleted one, before or after its event; when an unchanged one is extracted again; or when its sight stays in
// memory.
func TestAnObservationIsOfTheCache(t *testing.T) {
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	from := caches{installations: filled{indexer}}
	there := func(want map[string]string) {
		t.Helper()
		all, err := from.all()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != len(want) || len(from.observations.byObject) != len(want) {
			t.Errorf("%d clusters and %d sights are kept, want %d", len(all), len(from.observations.byObject), len(want))
		}
		for namespace, digest := range want {
			of := target.Ref{Kind: target.KindKKP, Namespace: namespace, Name: namespace}
			alone, err := from.in(of)
			if err != nil {
				t.Fatal(err)
			}
			for how, found := range map[string]byName{"among all": all[cluster.KeyOf(of)], "alone": alone} {
				if len(found) != 1 || found["web"].digest != digest {
					t.Errorf("%s, %s has %v, want %s", namespace, how, slices.Collect(maps.Values(found)), digest)
				}
			}
		}
	}
	birch, oak := webIn("birch", "1", "old"), webIn("oak", "2", "old")
	put := func(one *v1.AddonInstallation) {
		t.Helper()
		if err := indexer.Update(one); err != nil {
			t.Fatal(err)
		}
	}
	put(birch)
	put(oak)
	there(map[string]string{"birch": "old", "oak": "old"})
	before := from.observations.byObject[oak]

	put(webIn("birch", "3", "new")) // its event has not arrived yet
	there(map[string]string{"birch": "new", "oak": "old"})
	from.observations.forget(birch)
	there(map[string]string{"birch": "new", "oak": "old"})
	if from.observations.byObject[oak] != before {
		t.Error("what is as before was looked at again")
	}

	newer := webIn("oak", "4", "new")
	put(newer)
	from.observations.forget(oak) // its event arrived first
	there(map[string]string{"birch": "new", "oak": "new"})

	if err := indexer.Delete(newer); err != nil {
		t.Fatal(err)
	}
	there(map[string]string{"birch": "new"}) // its event has not arrived yet
}

// TestWhatIsGoneIsNotKept fails when an installation that is deleted, or was listed again, stays in memory if no walk
// follows: its event has another object than the cache had.
func TestWhatIsGoneIsNotKept(t *testing.T) {
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	r := &Reconciler{}
	r.caches.installations = filled{indexer}
	of := target.Ref{Kind: target.KindKKP, Namespace: "birch", Name: "birch"}
	look := func() {
		t.Helper()
		if _, err := r.caches.in(of); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(when string, want int) {
		t.Helper()
		if observations := r.caches.observations; len(observations.byObject) != want || len(observations.byCluster) != min(want, 1) {
			t.Errorf("%s, %d are kept of %d clusters, want %d", when, len(observations.byObject), len(observations.byCluster), want)
		}
	}
	for _, one := range []*v1.AddonInstallation{webIn("birch", "1", "old"), webIn("birch", "1", "old")} { // as a list does
		if err := indexer.Update(one); err != nil {
			t.Fatal(err)
		}
		look()
	}
	kept("listed again", 1)
	before, after := webIn("birch", "1", "old"), webIn("birch", "2", "new")
	if err := indexer.Update(before); err != nil {
		t.Fatal(err)
	}
	look()
	r.installationChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	kept("changed", 0)
	if err := indexer.Update(after); err != nil {
		t.Fatal(err)
	}
	look()
	kept("looked at", 1)
	r.installationChanged().Delete(event.DeleteEvent{Object: after.DeepCopy()})
	kept("gone", 0)
}

// TestWhatWasWrittenIsOverWhatIsShared fails when a plan ignores a written installation of a cluster, or when one
// changes the cache.
func TestWhatWasWrittenIsOverWhatIsShared(t *testing.T) {
	key, written := cluster.Key{Namespace: "birch"}, waves.Written{}
	shared := byName{"web": observationOf(webIn("birch", "1", "old"))}
	if found := shared.with(written, key); len(found) != 1 || found["web"] != shared["web"] {
		t.Errorf("nothing was written, and it is %v", found)
	}
	written.Put(key, webIn("birch", "2", "new"), false, noon)
	other := webIn("birch", "3", "other")
	other.Name = "other"
	written.Put(key, other, false, noon)
	found := shared.with(written, key)
	if len(found) != 2 || found["web"].digest != "new" || found["other"].digest != "other" {
		t.Errorf("two were written, and it is %v", found)
	}
	written.Put(key, webIn("birch", "2", "new"), true, noon)
	if found := shared.with(written, key); !found["web"].report.IsGoing {
		t.Error("one was deleted, and it is not going")
	}
	if len(shared) != 1 || shared["web"].digest != "old" || shared["web"].report.IsGoing {
		t.Error("what the cache has was changed")
	}
	if found := (byName)(nil).with(written, key); len(found) != 1 || found["other"] == nil {
		t.Errorf("the cache has nothing, one was made and one is gone, and it is %v", found)
	}
}

// TestInstallationsThatNameTheirClusterAreAmongThoseThatNameNone fails when those of KKP that name their Cluster are
// left out, or are added to the cache.
func TestInstallationsThatNameTheirClusterAreAmongThoseThatNameNone(t *testing.T) {
	of := target.Ref{Kind: target.KindKKP, Namespace: "cluster-birch", Name: "birch"}
	own, named := cluster.KeysOf(of)[0], cluster.KeysOf(of)[1]
	web, other := observationOf(webIn("cluster-birch", "1", "own")), observationOf(webIn("cluster-birch", "2", "named"))
	shared := map[cluster.Key]byName{own: {"web": web}, named: {"other": other}}
	for range 2 {
		if found := allOf(of, shared); len(found) != 2 || found["web"] != web || found["other"] != other {
			t.Errorf("it is %v", found)
		}
	}
	if len(shared[own]) != 1 || len(shared[named]) != 1 {
		t.Error("what the cache has was changed")
	}
	delete(shared, own)
	if found := allOf(of, shared); len(found) != 1 || found["other"] != other {
		t.Errorf("all name it, and it is %v", found)
	}
}
