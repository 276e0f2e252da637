package distributor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// soonAgain is how long a seed that is back may lack something. Its lists are five minutes apart.
const soonAgain = 30 * time.Second

// RS60: A seed that stays on the list is restored from before its catalogues and sets changed. Red when what it lost, or has in an old state,
// comes with the next list only, when anything else is written, or when a seed without sets has to wait.
func TestASeedThatIsRestoredHasWhatItLostWithinSeconds(t *testing.T) {
	for why, hasSets := range map[string]bool{"a seed with sets": true, "a seed without sets": false} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t)
			passed, kubeconfig := proxy(t, "seed")
			w.seed("south", kubeconfig)
			custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}, "stays": {"1.0.0"}})
			expect.Create(w.t, w.master, custom)
			w.start()
			sets := w.newSets(hasSets, "monitoring", "same")
			w.expectVersions("seed", "stays", "1.0.0")
			w.expectVersions("seed", "web", "1.0.0")
			w.expectCopies(sets)
			passed.awaitQuiet(t, 5*time.Second) // marked, too
			had, err := fleet.Shared().Cluster("seed").Backup(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			expect.Change(w.t, w.master, custom, func(custom *v1.AddonCatalogue) {
				custom.Spec.Addons = []v1.Addon{addonOf("web", "1.0.0", "1.1.0"), addonOf("stays", "1.0.0"), addonOf("later", "1.0.0")}
			})
			if hasSets {
				editSet(w, sets[0], func(set *v1.AddonSet) { set.Spec.Priority = 7 })
				sets = append(sets, w.newSets(hasSets, "made")...)
			}
			newest := func() {
				w.expectVersions("seed", "web", "1.1.0", "1.0.0")
				w.expectVersions("seed", "later", "1.0.0")
				w.expectCopies(sets)
			}
			newest()
			passed.written()

			if err := fleet.Shared().Cluster("seed").Restore(t.Context(), had); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			newest()
			if took := time.Since(back); took > soonAgain {
				t.Errorf("it took %s", took)
			}
			passed.awaitQuiet(t, 5*time.Second)
			for _, call := range passed.written() {
				if strings.Contains(call, "stays") || strings.Contains(call, "same") {
					t.Errorf("%s, where nothing changed", call)
				}
			}
		})
	}
}

// newSets makes sets of these names, where a seed is to have some.
func (w *world) newSets(some bool, names ...string) (made []*v1.AddonSet) {
	w.t.Helper()
	if !some {
		return nil
	}
	for _, name := range names {
		set := w.setOf(name)
		expect.Create(w.t, w.master, set)
		made = append(made, set)
	}
	return made
}

func (w *world) expectCopies(sets []*v1.AddonSet) {
	w.t.Helper()
	for _, set := range sets {
		w.expectCopy("south", set, carriedBy(set))
	}
}

// What is known of a seed counts for as long as the watch of it stands. Red when a watch that breaks, or that the seed ends before its time,
// has nobody look at what else the seed has.
func TestASeedIsListedAgainOnceItsWatchEnds(t *testing.T) {
	for why, test := range map[string]struct {
		failure error
		hasSets bool
	}{
		"it breaks":                          {errors.New("broken"), true},
		"it ends in order":                   {nil, true},
		"it breaks, and there are no sets":   {errors.New("broken"), false},
		"it ends, and there are no sets too": {nil, false},
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t)
			passed, kubeconfig := proxy(t, "seed")
			w.seed("south", kubeconfig)
			expect.Create(w.t, w.master, w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}, "stays": {"1.0.0"}}))
			w.start()
			w.expectCopies(w.newSets(test.hasSets, "monitoring"))
			w.expectVersions("seed", "stays", "1.0.0")
			lost := w.expectVersions("seed", "web", "1.0.0")
			w.awaitWatch(passed)
			passed.written()
			expect.Delete(t, w.client("seed"), lost)
			expect.Always(t, time.Second, func() error { // nobody looks yet
				return ignoreFound(w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(lost), w.merged("web")))
			})
			passed.endWatches(test.failure)
			ended := time.Now()
			w.expectVersions("seed", "web", "1.0.0")
			if took := time.Since(ended); took > soonAgain {
				t.Errorf("it took %s", took)
			}
			passed.awaitQuiet(t, 5*time.Second)
			if calls := passed.written(); slices.ContainsFunc(calls, func(call string) bool {
				return strings.Contains(call, "stays") || strings.Contains(call, "monitoring")
			}) {
				t.Errorf("calls %q, where nothing changed", calls)
			}
		})
	}
}

// A seed of before, or a kubeconfig of before, may know no sets. Red when all that it has is listed in each pass for that (setsProblem not kept),
// or when it is not found out once it may.
func TestASeedThatForbidsSetsIsNotListedForThem(t *testing.T) {
	w := newWorld(t)
	passed, kubeconfig := proxy(t, "seed")
	passed.forbid("addonsets")
	w.seed("south", kubeconfig)
	custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	sets := w.newSets(true, "monitoring")
	w.start()
	w.expectVersions("seed", "web", "1.0.0")
	expect.Object(t, w.master, sets[0], func(set *v1.AddonSet) error {
		if len(set.Status.Seeds) != 1 || !strings.Contains(set.Status.Seeds[0].Message, "the seed forbids it") {
			return fmt.Errorf("seeds %+v", set.Status.Seeds)
		}
		return nil
	})
	passed.awaitQuiet(t, 3*time.Second) // before it was known that there are sets, a watch was tried, which asks for a list
	listed, asked := passed.listed("addoncatalogues"), passed.listed("addonsets")
	for _, version := range []string{"2.0.0", "3.0.0", "4.0.0"} {
		expect.Change(w.t, w.master, custom, func(custom *v1.AddonCatalogue) { custom.Spec.Addons = []v1.Addon{addonOf("web", version)} })
		w.expectVersions("seed", "web", version)
	}
	if again := passed.listed("addoncatalogues") - listed; again > 0 {
		t.Errorf("catalogues were listed %d times for sets that may not be", again)
	}
	if passed.listed("addonsets") == asked {
		t.Error("nobody asked for sets again")
	}
	passed.forbid("")
	w.expectCopies(sets)
	w.awaitWatch(passed)
	if passed.listed("addoncatalogues") == listed {
		t.Error("what is known is from before the watch")
	}
}

// ignoreFound turns an answer around: what is missing is right.
func ignoreFound(err error) error {
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		return errors.New("it is there")
	}
	return nil
}

// awaitWatch waits until a seed is watched.
func (w *world) awaitWatch(passed *between) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		passed.mutex.Lock()
		defer passed.mutex.Unlock()
		if len(passed.watches) == 0 {
			return fmt.Errorf("nobody watches")
		}
		return nil
	})
}
