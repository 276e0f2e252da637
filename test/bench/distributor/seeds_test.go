package distributor

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// The bars of the road to the seeds.
const (
	seeds      = 10
	memoryBar  = 150 << 20
	delayBar   = 1.5
	idleFor    = 15 * time.Second
	rounds     = 7
	longRounds = 10 * time.Minute
)

// BenchmarkSeeds pushes 5,000 versions in 8 catalogues to 10 seeds, all of them real API servers on one etcd, with the
// manager as a process of its own. It edits one version, idles, and then edits with two of the seeds away: one accepts
// connections and never answers, one is gone.
func BenchmarkSeeds(b *testing.B) {
	for b.Loop() {
		w := newPlatform(b, seeds)
		for i := range seeds {
			w.addSeed(seedName(i), w.fleet.Cluster(seedName(i)).Kubeconfig)
		}
		for _, object := range large() {
			object.UID = ""
			expect.Create(w.b, w.master, object)
		}
		begin := time.Now()
		w.startManager("--webhook-bind-address=0")
		w.awaitAll(seeds)
		bar.None(b, "ms-5000-versions-to-10-seeds", milliseconds(time.Since(begin)))
		w.awaitSynced(seeds)

		w.measureIdle()
		w.measureEdit()
		bar.AtMost(b, "MiB-peak-RSS", float64(w.memory()>>20), memoryBar>>20)
		w.measureAbsence()
		bar.None(b, "MiB-peak-RSS-at-the-end", float64(w.memory()>>20))
	}
}

func seedName(i int) string { return fmt.Sprintf("seed-%d", i) }

func milliseconds(of time.Duration) float64 { return float64(of.Milliseconds()) }

// versionsOf are the resourceVersions of the merged catalogues of a seed, by name.
func (w *platformWorld) versionsOf(seed string) map[string]string {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonCatalogueList"))
	expect.List(w.b, w.clients[seed], list, client.InNamespace("addon-catalogue"))
	versions := map[string]string{}
	for _, item := range list.Items {
		versions[item.Name] = item.ResourceVersion
	}
	return versions
}

// awaitAll waits until the first seeds have every add-on.
func (w *platformWorld) awaitAll(count int) {
	w.b.Helper()
	for i := range count {
		expect.Eventually(w.b, longRounds, func() error {
			if have := len(w.versionsOf(seedName(i))); have != catalogues*addonsOfEach {
				return fmt.Errorf("%s has %d add-ons", seedName(i), have)
			}
			return nil
		})
	}
}

// awaitSynced waits until the status of every catalogue says that so many seeds have it.
func (w *platformWorld) awaitSynced(count int32) {
	w.b.Helper()
	for _, object := range large() {
		expect.Eventually(w.b, longRounds, func() error {
			if err := w.master.Get(w.b.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if object.Status.SyncedSeeds != count {
				return fmt.Errorf("%d seeds have %s", object.Status.SyncedSeeds, object.Name)
			}
			return nil
		})
	}
}

// everything is the resourceVersion of each object that the distributor writes.
func (w *platformWorld) everything() map[string]string {
	all := map[string]string{}
	for i := range seeds {
		for name, version := range w.versionsOf(seedName(i)) {
			all[seedName(i)+"/"+name] = version
		}
	}
	var list v1.AddonCatalogueList
	expect.List(w.b, w.master, &list, client.InNamespace(platform))
	for _, item := range list.Items {
		all["master/"+item.Name] = item.ResourceVersion
	}
	return all
}

func changed(before, after map[string]string) []string {
	var names []string
	for name, version := range after {
		if before[name] != version {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// measureIdle counts what is written while nobody asks for anything. Status is told a moment after the last seed.
func (w *platformWorld) measureIdle() {
	before := w.everything()
	expect.Eventually(w.b, time.Minute, func() error {
		now := w.everything()
		written := changed(before, now)
		before = now
		if len(written) > 0 {
			return fmt.Errorf("still written: %v", written)
		}
		return nil
	})
	timer := time.NewTimer(idleFor)
	defer timer.Stop()
	<-timer.C
	written := changed(before, w.everything())
	w.b.Logf("idle wrote %v", written)
	bar.Exactly(w.b, "objects-written-idle", float64(len(written)), 0)
}

// measureEdit changes one version of one add-on and counts what that writes on the seeds.
func (w *platformWorld) measureEdit() {
	before := w.everything()
	took := w.edit(seeds, func(addons []v1.Addon) { addons[0].Versions[3].Deprecated = "changed" })
	w.awaitSynced(seeds)
	written := slices.DeleteFunc(changed(before, w.everything()), func(name string) bool { return name == "master/catalogue-0" })
	w.b.Logf("an edit of one version wrote %v", written)
	bar.Exactly(w.b, "objects-written-per-seed", float64(len(written))/seeds, 1)
	bar.None(w.b, "ms-edit-to-10-seeds", milliseconds(took))
}

var edits int

// edit changes catalogue-0 and gives the time until the first seeds have what its last add-on says.
func (w *platformWorld) edit(count int, change func([]v1.Addon)) time.Duration {
	w.b.Helper()
	edits++
	mark := fmt.Sprintf("edit %d", edits)
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "catalogue-0"}}
	expect.Read(w.b, w.master, object)
	before := object.DeepCopy()
	change(object.Spec.Addons)
	object.Spec.Addons[0].Description = mark
	begin := time.Now()
	// A patch, since status is written at the same time.
	expect.Patch(w.b, w.master, object, client.MergeFrom(before))
	var group errgroup.Group
	for i := range count {
		group.Go(func() error { return w.awaitMark(seedName(i), string(object.Spec.Addons[0].Name), mark) })
	}
	expect.NoError(w.b, group.Wait())
	return time.Since(begin)
}

// awaitMark watches one add-on on a seed until its description is the mark.
func (w *platformWorld) awaitMark(seed, addon, mark string) error {
	ctx, cancel := context.WithTimeout(w.b.Context(), longRounds)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		var object v1.AddonCatalogue
		err := w.clients[seed].Get(ctx, types.NamespacedName{Namespace: "addon-catalogue", Name: addon}, &object)
		if err == nil && object.Spec.Addons[0].Description == mark {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not get %s: %w", seed, mark, ctx.Err())
		case <-ticker.C:
		}
	}
}

// measureAbsence compares the time to eight seeds, each edit changing all 25 add-ons of a catalogue, with and without two
// more seeds that are away.
func (w *platformWorld) measureAbsence() {
	const present = seeds - 2
	for _, i := range []int{present, present + 1} {
		w.dropSeed(seedName(i))
	}
	w.awaitSynced(present)
	without := w.median(present)
	w.addSeed("black-hole", kubeconfigAt(w, fleet.BlackHole(w.b)))
	w.addSeed("gone", kubeconfigAt(w, nobody(w.b)))
	expect.Eventually(w.b, longRounds, func() error {
		object := large()[0]
		if err := w.master.Get(w.b.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if rows := len(object.Status.Seeds); rows != seeds {
			return fmt.Errorf("%d rows", rows)
		}
		return nil
	})
	with := w.median(present)
	ratio := float64(with) / float64(without)
	bar.None(w.b, "ms-to-8-seeds", milliseconds(without))
	bar.None(w.b, "ms-to-8-seeds-two-more-away", milliseconds(with))
	bar.AtMost(w.b, "ratio-two-away", ratio, delayBar)
}

func (w *platformWorld) median(count int) time.Duration {
	var times []time.Duration
	for round := range rounds {
		times = append(times, w.edit(count, func(addons []v1.Addon) {
			for i := range addons {
				addons[i].Versions[0].Deprecated = fmt.Sprintf("%s round %d", time.Now(), round)
			}
		}))
	}
	slices.Sort(times)
	w.b.Logf("to %d seeds: %v", count, times)
	return times[len(times)/2]
}

// nobody is an address where nobody listens.
func nobody(b *testing.B) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(b, err)
	defer listener.Close()
	return listener.Addr().String()
}

func kubeconfigAt(w *platformWorld, address string) []byte {
	seed := w.fleet.Cluster(seedName(0))
	return bytes.ReplaceAll(seed.Kubeconfig, []byte(seed.URL()), []byte("https://"+address))
}

func (w *platformWorld) addSeed(name string, kubeconfig []byte) {
	expect.Create(w.b, w.master, given.Seed(platform, name, kubeconfig)...)
}

func (w *platformWorld) dropSeed(name string) {
	seed := &kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: name}}
	expect.Delete(w.b, w.master, seed)
}
