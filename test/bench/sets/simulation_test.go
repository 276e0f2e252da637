package sets_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// clusters is the size of TestARollOutWritesWhatChangesOnce.
var clusters = flag.Int("clusters", 300, "how many Clusters the simulation has; 5000 is what the bar is set on")

// quiet is how long no write may follow what is no change.
const quiet = 5 * time.Second

// Three hundred clusters, for every day. Red when an installation is written twice or without need, when the status is written with each
// event, when a restart writes, and when more clusters move than may, or a later group before its time.
func TestARollOutWritesWhatChangesOnce(t *testing.T) {
	long.Skip(t, "fleet-sizes", "it takes hundreds of Clusters")
	if *clusters >= large {
		simulate(t, fiveThousand.of(*clusters))
		return
	}
	simulate(t, size{
		clusters: *clusters, soak: time.Second, takes: 500 * time.Millisecond, rest: 10 * time.Second,
		places: [4]intstr.IntOrString{intstr.FromInt32(1), intstr.FromString("25%"), intstr.FromString("15%"), intstr.FromString("10%")},
	})
}

// large is from how many Clusters on the places are those of 5,000, and the soak is longer.
const large = 2000

// fiveThousand is the size that the bar is set on.
var fiveThousand = size{
	clusters: 5000, soak: 5 * time.Second, rest: time.Minute,
	places: [4]intstr.IntOrString{intstr.FromInt32(5), intstr.FromString("10%"), intstr.FromString("5%"), intstr.FromString("3%")},
}

func (s size) of(clusters int) size {
	s.clusters = clusters
	return s
}

// BenchmarkFiveThousandClusters is the same with 5,000 clusters: 15,000 creates, 15,000 patches for new content of all, 5,000 for an edit
// of one item, and nothing for what changes none.
func BenchmarkFiveThousandClusters(b *testing.B) {
	for b.Loop() {
		simulate(b, fiveThousand)
	}
}

func simulate(t testing.TB, size size) {
	p := newPlatform(t, size)
	p.copies.KeepOpen(t, setName, len(size.places))
	revision := p.roll(t, "created", "", addons, func() { p.copies.Put(t, setName, p.spec()) })
	revision = p.roll(t, "new content of all", revision, addons, func() { p.publishAll(t) })
	revision = p.roll(t, "one item edited", revision, addons[2:], func() {
		p.copies.Edit(t, setName, func(spec *v1.AddonSetSpec) { spec.Addons[2].Values = values(2) })
	})

	p.none(t, "rollout edited", revision, func() {
		one := intstr.FromInt32(1)
		p.copies.Edit(t, setName, func(spec *v1.AddonSetSpec) { spec.Rollout.MaxFailures = &one })
		p.seen(t, func(set *v1.AddonSet) bool { return set.Status.ObservedGeneration == set.Generation })
	})
	p.none(t, "a version out of range", revision, func() {
		p.republish(t, version("1.0.0", "second"), version("2.0.0", "third"))
	})
	p.none(t, "a deprecation", revision, func() {
		deprecated := version("1.0.0", "second")
		deprecated.Deprecated = "use 2.0.0"
		p.republish(t, deprecated, version("2.0.0", "third"))
	})
	p.none(t, "a restart", revision, func() {
		p.process.Kill()
		p.start(t)
		before := p.gate.Counts(manager)
		expect.Eventually(t, patience, func() error { // it lists everything, and then it is quiet
			now := p.gate.Counts(manager)
			if now == before || now.Reads < before.Reads+4 {
				return fmt.Errorf("it has made %d requests", now.Reads-before.Reads)
			}
			return p.process.Failure()
		})
	})
	begin, mark := time.Now(), p.log.Mark()
	expect.Always(t, size.rest, func() error { return p.process.Failure() })
	p.expectWritten(t, fmt.Sprintf("%s of rest", size.rest), mark, begin)
	if all := p.log.Count(mark); all.Statuses+all.Others > 0 {
		t.Errorf("at rest %+v were written: %v", all, p.log.Since(mark))
	}
}

// roll has a change roll over all clusters and compares what is written. It gives the revision.
func (p *platform) roll(t testing.TB, story, before string, items []string, change func()) string {
	t.Helper()
	p.moves.Begin(len(items), p.names...)
	begin, mark := time.Now(), p.log.Mark()
	change()
	revision := p.settled(t, before)
	p.expectWritten(t, story, mark, begin, items...)
	if peaks, limits := p.moves.Peaks(), p.limits(); !slices.Equal(peaks, limits) {
		t.Errorf("%s: %v clusters of the groups moved at once, %v may", story, peaks, limits)
	}
	return revision
}

// none has something happen that changes no installation.
func (p *platform) none(t testing.TB, story, revision string, happen func()) {
	t.Helper()
	p.moves.Begin(0)
	begin, mark := time.Now(), p.log.Mark()
	happen()
	expect.Always(t, quiet, func() error { return p.process.Failure() })
	p.expectWritten(t, story, mark, begin)
	if now := p.copies.Get(t, setName).Status.Revision; now != revision {
		t.Errorf("%s: the revision is %q, and was %q", story, now, revision)
	}
}

// publishAll gives all versions other content at once: the set is paused meanwhile, since each catalogue by itself is a change.
func (p *platform) publishAll(t testing.TB) {
	t.Helper()
	p.copies.Edit(t, setName, func(spec *v1.AddonSetSpec) { spec.Paused = true })
	p.seen(t, func(set *v1.AddonSet) bool {
		return expect.Condition(set, v1.ConditionReady, "False", v1.ReasonPaused) == nil
	})
	for _, addon := range addons {
		p.copies.Publish(t, addon, version("1.0.0", "second"))
	}
	p.seen(t, func(set *v1.AddonSet) bool {
		var pending int32
		for _, change := range set.Status.Pending {
			pending += change.Clusters
		}
		return int(pending) == len(addons)*p.clusters
	})
	p.copies.Edit(t, setName, func(spec *v1.AddonSetSpec) { spec.Paused = false })
}

// republish changes the catalogue of the first item, and waits until the set has seen it.
func (p *platform) republish(t testing.TB, versions ...v1.AddonVersion) {
	t.Helper()
	before := p.copies.Get(t, setName).Status.Catalogues
	p.copies.Publish(t, addons[0], versions...)
	p.seen(t, func(set *v1.AddonSet) bool { return set.Status.Catalogues != before })
}

func (p *platform) seen(t testing.TB, holds func(*v1.AddonSet) bool) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		set := p.copies.Get(t, setName)
		if !holds(set) {
			return fmt.Errorf("the set's status is %+v", set.Status)
		}
		return p.process.Failure()
	})
}
