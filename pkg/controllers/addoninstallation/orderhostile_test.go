package addoninstallation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/test/expect"
)

// countRuns makes the controller count its reconciliations, before its start.
func (w *world) countRuns() *runs {
	counted := &runs{count: map[string]int{}}
	w.client = func(c client.Client) client.Client {
		counted.Client = c
		return counted
	}
	return counted
}

// sum is the number of reconciliations of all installations except the given ones.
func (p *runs) sum(but ...string) (sum int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for name, count := range p.count {
		if !slices.Contains(but, name) {
			sum += count
		}
	}
	return sum
}

// countHeld is the number of installations of the cluster with that reason.
func (w *world) countHeld(reason string) (held int) {
	w.t.Helper()
	var list kubermaticv1.AddonInstallationList
	expect.List(w.t, w.seed, &list, client.InNamespace(w.namespace))
	for i := range list.Items {
		if expect.Condition(&list.Items[i], kubermaticv1.ConditionApplied, "False", reason) == nil {
			held++
		}
	}
	return held
}

// A tenant has 500 installations that depend on each other, 16 by each: a closed chain. It fails if members are not
// named, if each change of one wakes all others (awaiting notes all of them: some 100,000 reconciliations), or if
// another cluster waits for them.
func TestFiveHundredThatDependOnEachOther(t *testing.T) {
	t.Parallel()
	count := 500
	if testing.Short() { // fewer are enough
		count = 100
	}
	w := newWorld(t)
	w.concurrency = 4
	counted := w.countRuns()
	neighbour := w.addNeighbour()
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	name := func(number int) string { return fmt.Sprintf("i%03d", number%count) }
	for i := range count {
		var others []string
		for far := range 16 {
			others = append(others, name(i+far+1))
		}
		w.request(name(i), "plain", "", others...)
	}
	w.start()
	beside := w.installIn(neighbour, "beside", "plain")
	expect.Eventually(t, 4*time.Minute, func() error {
		if held := w.countHeld(kubermaticv1.ReasonDependencyCycle); held != count {
			return fmt.Errorf("%d of %d are told that they are in a circle", held, count)
		}
		return nil
	})
	w.expectReady(beside, kubermaticv1.ReasonReady)
	if made := counted.sum("beside"); made > 12*count {
		t.Errorf("%d passes over %d installations that hold each other", made, count)
	} else {
		t.Logf("%d passes over %d installations that hold each other", made, count)
	}
}

// A flapping status wakes only the installations that wait for it, once for each change. It fails if every change of a
// neighbour wakes all that wait (awaiting.of without Contains), or if irrelevant changes do (OrderStateOf with the
// resourceVersion).
func TestANeighbourThatFlapsWakesThoseThatWaitForIt(t *testing.T) {
	t.Parallel()
	const waiting, flaps = 10, 12
	w := newWorld(t)
	counted := w.countRuns()
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	paused := func(name string) *kubermaticv1.AddonInstallation {
		object := w.request(name, "plain", "")
		w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
		return object
	}
	flapping, resting := paused("flapping"), paused("resting")
	for i := range waiting {
		w.request(fmt.Sprintf("waiting-%d", i), "plain", "", "flapping", "resting")
		w.request(fmt.Sprintf("other-%d", i), "plain", "", "resting")
	}
	w.start()
	w.expectReady(flapping, kubermaticv1.ReasonPaused)
	w.expectReady(resting, kubermaticv1.ReasonPaused)
	expect.Eventually(t, expect.Patience, func() error {
		if held := w.countHeld(kubermaticv1.ReasonWaitingForOrder); held != 2*waiting {
			return fmt.Errorf("%d wait", held)
		}
		return nil
	})
	var last *kubermaticv1.AddonInstallation
	for i := range waiting { // their initial reconciliations are over
		last = &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("waiting-%d", i)}}
		w.afterwards(last, func() { w.label(last) })
	}
	settled, others := counted.sum(), counted.of("other-0")
	report := func(change func(*kubermaticv1.AddonInstallation)) {
		expect.ChangeStatus(t, w.seed, flapping, change)
	}
	for i := range flaps {
		state := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2]
		report(func(object *kubermaticv1.AddonInstallation) {
			conditions.Set(&object.Status.Conditions, metav1.Condition{
				Type: kubermaticv1.ConditionReady, Status: state, Reason: "Flaps", ObservedGeneration: object.Generation,
			})
		})
		report(func(object *kubermaticv1.AddonInstallation) { object.Status.Failures++ }) // irrelevant to others
	}
	w.expectReady(last, kubermaticv1.ReasonWaitingForOrder, `"resting"`)
	if made := counted.sum(); made-settled > 4*waiting {
		t.Errorf("%d passes for %d changes that %d wait for, of one of two that are not ready", made-settled, flaps, waiting)
	}
	if after := counted.of("other-0"); after != others {
		t.Errorf("one that does not wait for it had %d passes", after-others)
	}
	if meta.IsStatusConditionTrue(last.Status.Conditions, kubermaticv1.ConditionApplied) {
		t.Error("it was applied")
	}
}

// A chain of hundreds, whose last member was created first, is applied in its order. It fails if the end of one does
// not wake the next, or only its recheck does.
func TestALongChainIsAppliedInItsOrder(t *testing.T) {
	t.Parallel()
	count := 120
	if testing.Short() {
		count = 40
	}
	w := newWorld(t)
	counted := w.countRuns()
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	var chain []*kubermaticv1.AddonInstallation
	for i := range count {
		chain = append(chain, w.request(fmt.Sprintf("i%03d", i), "plain", "", fmt.Sprintf("i%03d", i+1)))
	}
	w.start()
	expect.Eventually(t, 2*time.Minute, func() error {
		if held := w.countHeld(kubermaticv1.ReasonWaitingForOrder) + w.countHeld(kubermaticv1.ReasonDependencyMissing); held != count {
			return fmt.Errorf("%d wait", held)
		}
		return nil
	})
	w.request(fmt.Sprintf("i%03d", count), "plain", "")
	expect.Eventually(t, 4*time.Minute, func() error {
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(chain[0]), chain[0]); err != nil {
			return err
		}
		return expect.Condition(chain[0], kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
	for i := count - 1; i > 0; i-- {
		before := expect.Object(t, w.seed, chain[i], func(*kubermaticv1.AddonInstallation) error { return nil })
		after := expect.Object(t, w.seed, chain[i-1], func(*kubermaticv1.AddonInstallation) error { return nil })
		if after.Status.LastApplied.Time.Before(before.Status.LastApplied.Time) {
			t.Errorf("%s was applied before %s", after.Name, before.Name)
		}
	}
	if made := counted.sum(); made > 45*count {
		t.Errorf("%d passes over a chain of %d", made, count)
	} else {
		t.Logf("%d passes over a chain of %d", made, count)
	}
}
