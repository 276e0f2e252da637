package sets_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// RS39: A set rolled by a clock that was an hour ahead, so that its moves are of an hour from now. Once the clock is right, content that is
// broken halts at the canary, the others keep what they have, and the fix rolls, the canary first. Red when a revision begins by the one
// before, an hour from now, where it was an hour ahead.
func TestAClockThatIsSetBackHoldsNoUserClusterUp(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.runMaster()
	one := w.seeds["seed"]
	one.clock = ahead{}
	stop := one.run()
	of := w.set("tools")
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	stop()
	for _, cluster := range []string{amber, birch, cedar} {
		if at := movedAt(t, w.now(cluster, "web")); time.Until(at) < wrongBy/2 {
			t.Errorf("%s was written at %s: this shows nothing", cluster, at)
		}
	}

	one.clock = nil
	one.run()
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.broken("1.1.0", "two"))
	w.says(of, v1.ReasonHalted)
	w.saysOf(amber, "web", [2]string{v1.ConditionReady, v1.ReasonRolledBack})
	w.stay("web", birch, cedar)
	w.has("web", "one", birch, cedar)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.1", "three"))
	w.has("web", "three", amber, birch, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.inOrder("web", amber, birch, cedar)
}

// RS39: The clock is an hour ahead in the middle of a roll-out, and right from then on. The user clusters that did not move yet keep what
// they have, for nobody can tell for how long the canary has been Ready, and the next content rolls, the canary first. Red when a revision
// begins by the one before, an hour from now, where it was an hour ahead.
func TestAClockThatIsSetBackInTheMiddleOfARollOutMovesNobodyEarly(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.runMaster()
	one := w.seeds["seed"]
	stop := one.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) { spec.Rollout.Soak = &metav1.Duration{Duration: 10 * soak} })
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	stop()

	one.clock = ahead{}
	stop = one.run()
	w.offer(v1.CatalogueCustom, "web", w.version("1.1.0", "two"))
	w.has("web", "two", amber)
	stop()
	one.clock = nil
	one.run()
	if at := movedAt(t, w.now(amber, "web")); time.Until(at) < wrongBy/2 {
		t.Errorf("%s was written at %s: this shows nothing", amber, at)
	}
	w.says(of, v1.ReasonRollingOut)
	w.unchanged(11*soak, func() string { return w.text(birch, w.now(birch, "web")) + " " + w.text(cedar, w.now(cedar, "web")) })
	for _, cluster := range []string{birch, cedar} {
		if text := w.text(cluster, w.now(cluster, "web")); text != "one" {
			t.Errorf("%s has %q", cluster, text)
		}
	}
	w.offer(v1.CatalogueCustom, "web", w.version("1.1.1", "three"))
	w.has("web", "three", amber, birch, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.inOrder("web", amber, birch, cedar)
}

// wrongBy is how far the clock is ahead.
const wrongBy = time.Hour

// ahead is a clock that is wrong.
type ahead struct{ clock.RealClock }

// Now implements clock.PassiveClock.
func (ahead) Now() time.Time { return time.Now().Add(wrongBy) }

// Since implements clock.PassiveClock.
func (a ahead) Since(at time.Time) time.Duration { return a.Now().Sub(at) }
