package sets_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

// many is the size of BenchmarkTenThousandClusters.
var many = flag.Int("many", 10000, "how many Clusters BenchmarkTenThousandClusters has; a tenth is looked at first")

// The bars. That of an event is what it costs with all Clusters, against a tenth of them.
const (
	editBar  = 250 * time.Millisecond
	eventBar = 1.5
	bytesBar = 4096
)

const (
	// itemsOfLarge is how many items the set has.
	itemsOfLarge = 5
	// edits that are measured.
	edits = 5
	// longAgo is when the clusters were moved that all are copies of: no soak and no deadline lasts so long.
	longAgo = 48 * time.Hour
	// events of installations are measured together, so many times, in so many clusters.
	events, rounds, eventful = 500, 7, 50
)

// BenchmarkTenThousandClusters is what a set costs the controller's process in a large seed: an edit, an event, and memory. The controller runs in
// this process, over a real API server, and what makes the edit is counted too. Processor time is the process's own without the
// collector's, which allocated bytes tell of.
func BenchmarkTenThousandClusters(b *testing.B) {
	for b.Loop() {
		l := newLarge(b)
		for _, clusters := range []int{*many / 10, *many} {
			l.grow(b, clusters)
			l.run(b)
		}
	}
}

// largeSeed is a seed with many Clusters that have all that a set wants: copies of the first.
type largeSeed struct {
	config *rest.Config
	backup backup
	copies standins.Copies
	// models are the first Cluster and its installations.
	models   []fleet.Record
	clusters int
	// edited is how often the set's values were changed, by now.
	edited int
	// perEvent is what one event cost last.
	perEvent time.Duration
}

func newLarge(b *testing.B) *largeSeed {
	b.Helper()
	own := fleet.ForTest(b, fleet.ClusterOptions{Name: "large"})
	config := own.Cluster("large").Config
	made := standins.NewClusters(b, config)
	l := &largeSeed{config: config, backup: backup{url: own.EtcdURL()}, copies: standins.Copies{Client: made.Client(), Namespace: namespace}}
	expect.Create(b, made.Client(), world.Namespace(namespace))
	var versions []v1.AddonVersion
	for i := range 20 {
		one := version(fmt.Sprintf("1.%d.0", i), "first")
		if i%3 == 0 {
			one.Constraints = &v1.Constraints{KKPVersion: ">= 2.28", K8sVersion: v1.VersionRange(fmt.Sprintf(">= 1.%d, < 2", 20+i%5))}
		}
		versions = append(versions, one)
	}
	for i := range itemsOfLarge {
		l.copies.Publish(b, addonOf(i), versions...)
	}
	name := made.Make(b, standins.Shape{Count: 1})[0]
	endings := []string{"/clusters/" + name}
	l.clusters = 1
	running := l.start(b)
	l.copies.Put(b, setName, l.spec())
	for i := range itemsOfLarge {
		found := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: standins.NamespaceOf(name), Name: addonOf(i)}}
		expect.Object(b, made.Client(), found, func(*v1.AddonInstallation) error { return nil })
		endings = append(endings, "/addoninstallations/"+found.Namespace+"/"+found.Name)
	}
	running.Stop()
	for i := range itemsOfLarge {
		l.install(b, name, addonOf(i))
	}
	l.forget(b)
	l.models = l.backup.records(b, append(endings, "/namespaces/"+standins.NamespaceOf(name))...)
	whole := world.Namespace(standins.NamespaceOf(name))
	expect.Read(b, l.copies.Client, whole)
	whole.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}
	text, err := json.Marshal(whole) // an API server reads JSON too
	expect.NoError(b, err)
	l.models[len(l.models)-1].Value = text
	return l
}

func addonOf(item int) string { return fmt.Sprintf("addon-%d", item) }

// spec is a set of five items on all clusters, one cluster at a time.
func (l *largeSeed) spec() v1.AddonSetSpec {
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	spec := v1.AddonSetSpec{
		ClusterSelector: &metav1.LabelSelector{},
		Rollout: &v1.Rollout{Pace: v1.Pace{
			MaxConcurrency: &one, MaxFailures: &none, Soak: &metav1.Duration{Duration: time.Hour},
			ProgressDeadline: &metav1.Duration{Duration: 10 * time.Hour},
		}},
	}
	for i := range itemsOfLarge {
		spec.Addons = append(spec.Addons, v1.AddonSetItem{
			Name: v1.AddonName(addonOf(i)), AddonRef: v1.AddonReference{Name: v1.AddonName(addonOf(i)), Version: "1.x"},
			TargetNamespace: addonOf(i), CreateNamespace: true, Values: values(1),
		})
	}
	return spec
}

// install is what the installation controller says of what it installed two days ago, which is when the set moved it: no move is under way
// that long.
func (l *largeSeed) install(b *testing.B, name, item string) {
	b.Helper()
	found := &v1.AddonInstallation{}
	expect.Get(b, l.copies.Client, client.ObjectKey{Namespace: standins.NamespaceOf(name), Name: item}, found)
	// Long ago: what was written a moment ago is moving, and would be written again, all at once.
	ref, at := found.Spec.AddonRef, metav1.NewTime(found.CreationTimestamp.Add(-longAgo))
	found.Annotations[v1.AnnotationMoved] = at.UTC().Format(time.RFC3339Nano)
	expect.Update(b, l.copies.Client, found)
	found.Status = v1.AddonInstallationStatus{
		ObservedGeneration: found.Generation, Version: ref.Version, Objects: &v1.ObjectCounts{Total: 1, Healthy: 1, Summary: "1/1"},
		LastApplied: &v1.AppliedState{Addon: item, Version: ref.Version, EntryDigest: ref.Digest, Inputs: "1", Objects: "2", Time: &at},
	}
	for _, one := range []struct{ kind, reason string }{
		{v1.ConditionCompatible, v1.ReasonCompatible}, {v1.ConditionValuesResolved, v1.ReasonValuesResolved},
		{v1.ConditionFetched, v1.ReasonFetched}, {v1.ConditionRendered, v1.ReasonRendered}, {v1.ConditionApplied, v1.ReasonApplied},
		{v1.ConditionHealthy, v1.ReasonHealthy}, {v1.ConditionReady, v1.ReasonReady},
	} {
		meta.SetStatusCondition(&found.Status.Conditions, metav1.Condition{
			Type: one.kind, Status: metav1.ConditionTrue, Reason: one.reason, ObservedGeneration: found.Generation, LastTransitionTime: at,
		})
	}
	expect.UpdateStatus(b, l.copies.Client, found)
}

// forget takes the copy away while no controller runs.
func (l *largeSeed) forget(b *testing.B) {
	b.Helper()
	found := l.copies.Get(b, setName)
	expect.Merge(b, l.copies.Client, found, []byte(`{"metadata":{"finalizers":null}}`))
	l.copies.Delete(b, setName)
}

// grow to so many clusters, of twelve versions of Kubernetes.
func (l *largeSeed) grow(b *testing.B, clusters int) {
	b.Helper()
	for ; l.clusters < clusters; l.clusters++ {
		l.put(b, standins.Name(l.clusters), l.models)
	}
	l.backup.flush(b)
	l.caughtUp(b)
}

// put copies of models for a cluster.
func (l *largeSeed) put(b *testing.B, name string, models []fleet.Record) {
	b.Helper()
	kubernetes := fmt.Sprintf("v1.%d.%d", 35+l.clusters%12/4, l.clusters%4+2)
	for _, model := range models {
		l.backup.add(b, model, standins.Name(0), name, standins.Kubernetes, kubernetes)
	}
}

// restore what the edits wrote, while no controller runs: all clusters have what the set wants again.
func (l *largeSeed) restore(b *testing.B) {
	b.Helper()
	var list v1.AddonInstallationList
	expect.List(b, l.copies.Client, &list)
	written := map[string]bool{}
	for i := range list.Items {
		if list.Items[i].Generation > 1 {
			written[standins.ClusterOf(list.Items[i].Namespace)] = true
		}
	}
	for name := range written {
		l.put(b, name, l.models[1:1+itemsOfLarge])
	}
	l.backup.flush(b)
	l.caughtUp(b)
}

// caughtUp waits until the API server's watch caches have all that was put beside it. Objects of one
// transaction have one revision: a list of a cache that has some of them would say so, and a watch
// from there would not bring the others. A later revision does not come before them.
func (l *largeSeed) caughtUp(b *testing.B) {
	b.Helper()
	expect.Create(b, l.copies.Client, world.Namespace(fmt.Sprintf("after-%d", l.backup.number)))
	for _, list := range []client.ObjectList{&kkpv1.ClusterList{}, &v1.AddonInstallationList{}} {
		expect.List(b, l.copies.Client, list, client.Limit(1))
	}
}

// controller is one that runs.
type controller struct {
	*world.Manager
	// statuses are writes of the set's status.
	statuses atomic.Int64
}

func (l *largeSeed) start(b *testing.B) *controller {
	b.Helper()
	made, reach := &controller{}, rest.CopyConfig(l.config)
	reach.Wrap(func(next http.RoundTripper) http.RoundTripper { return tripper{next, made} })
	made.Manager = world.Seed(b, reach, namespace)
	made.SetUp(addonset.New(wiring.AddonSet(made.Seed, mergedcatalogue.New(logr.Discard()), addonset.Options{CatalogueNamespace: namespace})))
	made.Run()
	expect.Eventually(b, patience, func() error { // the controller's watches fill the caches
		var clusters kkpv1.ClusterList
		var installations v1.AddonInstallationList
		if err := errors.Join(made.GetClient().List(b.Context(), &clusters), made.GetClient().List(b.Context(), &installations)); err != nil {
			return err
		}
		if len(clusters.Items) != l.clusters || l.models != nil && len(installations.Items) != l.clusters*itemsOfLarge {
			return fmt.Errorf("the caches have %d Clusters and %d installations", len(clusters.Items), len(installations.Items))
		}
		return nil
	})
	return made
}

// tripper counts writes of the status of sets that were answered.
type tripper struct {
	next http.RoundTripper
	of   *controller
}

// RoundTrip implements http.RoundTripper.
func (t tripper) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if path := request.URL.Path; request.Method == http.MethodPatch && strings.Contains(path, "/addonsets/") && strings.HasSuffix(path, "/status") {
		t.of.statuses.Add(1)
	}
	return response, err
}

// run measures everything at the present size.
func (l *largeSeed) run(b *testing.B) {
	b.Helper()
	writing := l.toggled(b)
	running := l.start(b)
	calm(b)
	without := heap()
	l.copies.Put(b, setName, l.spec())
	l.settled(b, func(counts *v1.ClusterCounts) bool { return int(counts.Current) == l.clusters })
	calm(b)
	current := heap()
	l.compare(b, writing)
	var decided []use
	for range edits {
		decided = append(decided, l.edit(b, running))
	}
	calm(b)
	behind := heap()
	slices.SortFunc(decided, func(a, b use) int { return cmp.Compare(a.time, b.time) })
	median := decided[len(decided)/2]
	b.Logf("%d clusters: an edit of %d items costs %s of processor time (from %s to %s) and %.1f MiB",
		l.clusters, itemsOfLarge, median.time, decided[0].time, decided[len(decided)-1].time, median.bytes/(1<<20))
	each := func(with uint64) float64 { return (float64(with) - float64(without)) / float64(l.clusters) }
	b.Logf("%d clusters: beside caches of %d MiB, a set has %.0f bytes for each cluster, and %.0f while all are behind",
		l.clusters, without>>20, each(current), each(behind))
	bar.AtMost(b, "bytes/cluster", max(each(behind), each(current)), bytesBar)
	if l.clusters == *many {
		bar.Time(b, "cpu-ms/edit", float64(median.time.Microseconds())/1000, float64(editBar.Milliseconds()))
		bar.None(b, "bytes/edit", median.bytes)
	}
	running.Stop()
	l.forget(b)
	l.restore(b)
}

// compare what an event costs with what it did before. Writing is what makes the events.
func (l *largeSeed) compare(b *testing.B, writing time.Duration) {
	b.Helper()
	before := l.perEvent
	l.perEvent = (l.toggled(b) - writing) / events
	b.Logf("%d clusters: an event of an installation costs %s of processor time, less what makes it (%s)",
		l.clusters, l.perEvent, writing/events)
	if before == 0 {
		return
	}
	ratio := float64(l.perEvent) / float64(before)
	bar.None(b, "cpu-us/event", float64(l.perEvent.Nanoseconds())/1000)
	bar.AtMost(b, "event-ratio", ratio, eventBar)
}

// toggled is the processor time that it takes when installations cease to be Ready and are so again, less what the process does without:
// the median of a few rounds. How their clusters stand changes each time, and nothing is to be moved.
func (l *largeSeed) toggled(b *testing.B) time.Duration {
	b.Helper()
	var found []time.Duration
	for range rounds {
		began := time.Now()
		spent := measured(b, func() {
			for i := range events {
				l.report(b, standins.Name(1+i%eventful), i/eventful%2 == 1)
			}
			calm(b)
		})
		took := time.Since(began)
		idle := measured(b, func() { <-time.After(took) })
		found = append(found, spent.time-idle.time)
	}
	slices.Sort(found)
	return found[len(found)/2]
}

// report of an installation whether it is Ready.
func (l *largeSeed) report(b *testing.B, cluster string, isReady bool) {
	b.Helper()
	ready := metav1.Condition{
		Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonUnhealthy, ObservedGeneration: 1,
		LastTransitionTime: metav1.Now(),
	}
	if isReady {
		ready.Status, ready.Reason = metav1.ConditionTrue, v1.ReasonReady
	}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{ready}}})
	expect.NoError(b, err)
	about := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: standins.NamespaceOf(cluster), Name: addonOf(0)}}
	expect.PatchStatus(b, l.copies.Client, about, client.RawPatch(types.MergePatchType, text))
}

// edit changes the values of all items, and gives what the controller needs until the status is there. The one cluster that may move is
// written meanwhile.
func (l *largeSeed) edit(b *testing.B, running *controller) use {
	b.Helper()
	before := running.statuses.Load()
	began := time.Now()
	spent := measured(b, func() {
		l.edited++
		l.copies.Edit(b, setName, func(spec *v1.AddonSetSpec) {
			for i := range spec.Addons {
				spec.Addons[i].Values = values(1 + l.edited)
			}
		})
		l.written(b, running, before)
	})
	took := time.Since(began)
	l.settled(b, func(counts *v1.ClusterCounts) bool { return int(counts.Behind+counts.Moving) == l.clusters })
	calm(b)
	idle := measured(b, func() { <-time.After(took) }) // what the process does without an edit, for as long
	return use{time: spent.time - idle.time, bytes: spent.bytes - idle.bytes}
}

// written waits for the revision in the status, and then the counts.
func (l *largeSeed) written(b *testing.B, running *controller, before int64) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		if made := running.statuses.Load() - before; made < 2 {
			return fmt.Errorf("%d writes of the status", made)
		}
		return nil
	})
}

func (l *largeSeed) settled(b *testing.B, holds func(*v1.ClusterCounts) bool) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		set := l.copies.Get(b, setName)
		if set.Status.ObservedGeneration != set.Generation || set.Status.Counts == nil || !holds(set.Status.Counts) {
			return fmt.Errorf("generation %d of %d, counts %+v", set.Status.ObservedGeneration, set.Generation, set.Status.Counts)
		}
		return nil
	})
}

// use is what a piece of work costs this process.
type use struct {
	time  time.Duration
	bytes float64
}

// measured without the collector: whether it runs meanwhile is chance, and how often follows from the bytes.
func measured(b *testing.B, work func()) use {
	b.Helper()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before, bytes := spent(b), allocated()
	work()
	return use{time: spent(b) - before, bytes: float64(allocated() - bytes)}
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	expect.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func allocated() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.TotalAlloc
}

// heap is what is in use after the collector, which empties pools at its second run.
func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// calm waits until this process has done next to nothing for half a second.
func calm(b *testing.B) {
	b.Helper()
	last, at := spent(b), time.Now()
	expect.Eventually(b, patience, func() error {
		if time.Since(at) < 500*time.Millisecond {
			return fmt.Errorf("not half a second since the last look")
		}
		now := spent(b)
		used := now - last
		last, at = now, time.Now()
		if used > 25*time.Millisecond {
			return fmt.Errorf("%s were used in half a second", used)
		}
		return nil
	})
}
