package addoninstallation_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/test/expect"
)

// No webhook is called here. It fails if installations that fill the store also fill the manager's memory, now or after
// a restart; if their creators get no message; if existing installations, those of other clusters or Core add-ons stop;
// if one that exceeds the memory after a restart is removed, or overwritten by its stub; if a stub can't be deleted; or
// if nothing changes once there is space.
func TestAFloodOfInstallationsIsNotHeldInMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.held, w.driftInterval = 10<<20, time.Second
	w.publish("web", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.publish("network", kubermaticv1.CatalogueCore, offered{version: "1.0.0"})
	stop := w.startUntil()
	first := w.request("first", "web", "")
	w.expectReady(first, kubermaticv1.ReasonReady)
	large := &kruntime.RawExtension{Raw: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", 255<<10))}
	const flood = 24
	var last *kubermaticv1.AddonInstallation
	made := func(at int) *kubermaticv1.AddonInstallation {
		one := &kubermaticv1.AddonInstallation{}
		one.Namespace, one.Name = w.namespace, fmt.Sprintf("l%02d", at)
		one.Spec = kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: "web"}, TargetNamespace: w.unique("large"), CreateNamespace: true, Values: large,
		}
		one.Spec.Paused = at != flood-1
		return one
	}
	for at := range flood {
		last = made(at)
		w.create(last)
	}
	w.expectReady(last, kubermaticv1.ReasonLimitExceeded, "KiB of the manager's memory", "delete installations")
	held := &kubermaticv1.AddonInstallationList{}
	expect.List(t, w.manager.GetClient(), held, client.InNamespace(w.namespace))
	sum, stubs := 0, 0
	for i := range held.Items {
		if one := &held.Items[i]; one.Spec.Values != nil {
			sum += len(one.Spec.Values.Raw)
		} else if budget.IsStub(one) {
			stubs++
		}
	}
	if int64(sum) > w.held/2 || stubs < flood/2 {
		t.Errorf("the cache has %d KiB of values, and %d stubs", sum>>10, stubs)
	}
	core := &kubermaticv1.AddonInstallation{}
	core.Namespace, core.Name = w.namespace, "z-network"
	core.Spec = kubermaticv1.AddonInstallationSpec{
		AddonRef: kubermaticv1.AddonReference{Name: "network"}, TargetNamespace: w.unique("network"), CreateNamespace: true, CoreAddon: true,
	}
	w.create(core)
	w.expectReady(core, kubermaticv1.ReasonReady)
	late := w.request("late", "web", "")
	w.expectReady(late, kubermaticv1.ReasonReady)

	// After a restart with less memory, running installations are held as stubs, and continue.
	stop()
	w.held = 64 << 10
	stop = w.startUntil()
	w.expectReady(first, kubermaticv1.ReasonLimitExceeded)
	w.expectReady(core, kubermaticv1.ReasonReady)
	if first.Status.LastApplied == nil || first.Spec.AddonRef.Name != "web" {
		t.Errorf("it was written over: %+v", first)
	}
	for _, object := range w.configMaps(first.Spec.TargetNamespace) { // the installed objects are maintained
		expect.Delete(t, w.seed, &object)
	}
	expect.Eventually(t, expect.Patience, func() error {
		if found := w.configMaps(first.Spec.TargetNamespace); len(found) == 0 {
			return errors.New("what was deleted in the user cluster is not back")
		}
		return nil
	})
	w.expectReady(first, kubermaticv1.ReasonLimitExceeded)
	expect.Read(t, w.seed, last)
	if last.Spec.Values == nil {
		t.Error("values were written over by a stub")
	}
	expect.Delete(t, w.seed, late)
	expect.Gone(t, w.seed, late)
	stop()

	w.held = 16 << 20
	w.start()
	w.expectReady(first, kubermaticv1.ReasonReady)
	for at := range flood - 1 {
		expect.Delete(t, w.seed, made(at))
	}
	rounds := 0
	expect.Object(t, w.seed, last, func(object *kubermaticv1.AddonInstallation) error {
		runtime.GC()
		rounds++
		w.annotate(last, kubermaticv1.AnnotationReconcileAt, fmt.Sprint(rounds))
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}
