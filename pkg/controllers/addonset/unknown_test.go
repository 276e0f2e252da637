package addonset_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestACopyThatCantBeGoneByHoldsWhatItMayWant: a client edits the copy of a set, and another set drops a cluster. The
// test fails when the edited copy prevents unrelated removals, when an installation that it claims by its last valid
// spec is removed, when that is not passed to it once the distributor restores it, or is not removed after the
// deletion of the copy.
func TestACopyThatCantBeGoneByHoldsWhatItMayWant(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.useKey()
	w.offers("web", "1.0.0")
	w.offers("logs", "1.0.0")
	item := func(name v1.AddonName) v1.AddonSetItem {
		return v1.AddonSetItem{
			Name: name, AddonRef: v1.AddonReference{Name: name, Version: "1.x"}, TargetNamespace: string(name),
			ReconcileStrategy: v1.ReconcileContinuous,
		}
	}
	tools := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) {
		of.Spec.Priority, of.Spec.Addons = 1, []v1.AddonSetItem{item("web"), item("logs")}
	}))
	other := w.write(w.set("other", atOnce, func(of *v1.AddonSet) { of.Spec.Addons = []v1.AddonSetItem{item("logs")} }))
	w.start()
	w.says(tools, v1.ReasonComplete, current(2))
	w.says(other, v1.ReasonComplete, current(2))

	w.rename(other, "page")
	w.edit(tools, without("0"))
	expect.Eventually(t, expect.Patience, func() error { return w.has(1) })
	w.stays("logs", w.names[0])
	w.troubles(tools, w.names[0], "logs", v1.ReasonSetUnreadable)
	w.write(other)
	w.goesOver("logs", w.names[0], "other")
	w.troubles(tools, w.names[0], "logs", "")

	w.rename(other, "page")
	w.edit(tools, without("0", "1"))
	w.troubles(tools, w.names[1], "logs", v1.ReasonSetUnreadable)
	w.remove(other)
	expect.Object(t, w.seed, copyOf(tools), func(found *v1.AddonSet) error {
		removal := found.Status.Removal
		if removal == nil || removal.Count != 2 {
			return fmt.Errorf("status.removal is %+v", removal)
		}
		tools.Annotations[v1.AnnotationRemovalApproved] = removal.Word
		return nil
	})
	w.write(tools)
	expect.Eventually(t, expect.Patience, func() error {
		if one := w.installed("logs")[w.names[1]]; one != nil {
			return fmt.Errorf("what nobody wants is %+v", one)
		}
		return nil
	})
}

// TestAnEditedCoreCopyHoldsNothing: a Core set has no items, so no installation that a set of type Custom drops can
// belong to it. The test fails when its edited copy prevents removals as one of type Custom does.
func TestAnEditedCoreCopyHoldsNothing(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.useKey()
	w.offers("web", "1.0.0")
	tools := w.write(w.set("tools", atOnce))
	core := w.write(w.set("core", atOnce, func(of *v1.AddonSet) {
		of.Spec.Type, of.Spec.ClusterSelector, of.Spec.Addons = v1.AddonSetCore, &metav1.LabelSelector{}, nil
	}))
	core.Status.Revision = "0a"
	expect.UpdateStatus(t, w.seed, core)
	w.start()
	w.says(tools, v1.ReasonComplete, current(2))
	core.Spec.Priority = 7
	expect.Update(t, w.seed, core)
	w.edit(tools, without("0"))
	expect.Eventually(t, expect.Patience, func() error { return w.has(1) })
}

// rename renames a copy's item, like a client without permission.
func (w *world) rename(of *v1.AddonSet, item v1.AddonName) {
	w.t.Helper()
	expect.Change(w.t, w.seed, copyOf(of), func(found *v1.AddonSet) { found.Spec.Addons[0].Name = item })
}

// remove deletes a copy by force: its finalizer is removed too.
func (w *world) remove(of *v1.AddonSet) {
	w.t.Helper()
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := errors.Join(w.seed.Delete(w.t.Context(), copyOf(of)), w.seed.Patch(w.t.Context(), copyOf(of), free)); err != nil {
		w.t.Fatal(err)
	}
}

// TestACopyWhoseReconciliationFailsHoldsWhatItMayWant: a set drops a cluster. Another set claims the same there, but the first
// reconciliation of its copy fails at its finalizer. The test fails when its possible claims are not noted before:
// then the installation is removed, and installed again.
func TestACopyWhoseReconciliationFailsHoldsWhatItMayWant(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	tools := w.write(w.set("tools", atOnce))
	var isOpen atomic.Bool
	var refused atomic.Int64
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/addonsets/other") && !isOpen.Load() {
				refused.Add(1)
				return kit.Answered(request, http.StatusConflict, []byte(conflict)), nil
			}
			return next.RoundTrip(request)
		})
	})
	w.says(tools, v1.ReasonComplete, current(2))
	before := w.installed("web")[w.names[0]]
	w.write(w.set("other", atOnce, func(of *v1.AddonSet) { of.Spec.Removal = v1.RemovalOrphan }))
	expect.Eventually(t, expect.Patience, func() error {
		if refused.Load() == 0 {
			return errors.New("the copy was not read yet")
		}
		return nil
	})
	w.edit(tools, without("0"))
	w.troubles(tools, w.names[0], "web", v1.ReasonSetUnreadable)
	w.stays("web", w.names[0])
	isOpen.Store(true)
	w.goesOver("web", w.names[0], "other")
	if after := w.installed("web")[w.names[0]]; after.UID != before.UID {
		t.Errorf("it was made again: %s became %s", before.UID, after.UID)
	}
	w.troubles(tools, w.names[0], "web", "")
}

// TestACopyWhoseReconciliationFailsStopsNoOtherSet: a process starts while each reconciliation of one of two copies fails at
// its finalizer. The test fails when the other set is not rolled out until then, without a message.
func TestACopyWhoseReconciliationFailsStopsNoOtherSet(t *testing.T) {
	w := newWorld(t, 2, 0, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	tools := w.write(w.set("tools", atOnce))
	w.write(w.set("stuck", atOnce, func(of *v1.AddonSet) { of.Spec.Addons[0].Name, of.Spec.Addons[0].TargetNamespace = "page", "page" }))
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/addonsets/stuck") {
				return kit.Answered(request, http.StatusConflict, []byte(conflict)), nil
			}
			return next.RoundTrip(request)
		})
	})
	w.says(tools, v1.ReasonComplete, current(2))
	if made := w.installed("page"); len(made) != 0 {
		t.Errorf("the copy that was not taken made %d", len(made))
	}
}

const conflict = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`

// stays fails the test when reconciliations remove an installation.
func (w *world) stays(name, in string) {
	w.t.Helper()
	w.steady(func() error {
		if one := w.installed(name)[in]; one == nil || !one.DeletionTimestamp.IsZero() {
			return fmt.Errorf("installation %q is %+v", name, one)
		}
		return nil
	})
}

// goesOver waits until an installation belongs to a set.
func (w *world) goesOver(name, in, to string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if one := w.installed(name)[in]; one == nil || one.Labels[v1.LabelSet] != to {
			return fmt.Errorf("installation %q is %+v", name, one)
		}
		return nil
	})
}

// troubles waits until a set's status gives that reason for an item in a cluster; empty: none.
func (w *world) troubles(of *v1.AddonSet, in, item, reason string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		got := ""
		for _, one := range found.Status.Clusters {
			if one.Name == in && one.Item == item {
				got = one.Reason
			}
		}
		if got != reason {
			return fmt.Errorf("the reason of item %q in %q is %q, want %q", item, in, got, reason)
		}
		return nil
	})
}
