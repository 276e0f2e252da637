package distributor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// crowd is a catalogue with 9,856 versions, almost the share of one author.
func (w *world) crowd(name string) *v1.AddonCatalogue {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
	for i := range 77 {
		addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("%s-%d", name, i))}
		for j := range 128 {
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", j)})
		}
		object.Spec.Addons = append(object.Spec.Addons, addon)
	}
	return object
}

// Red when one author's catalogues fill every seed, when what is left out is not told, when it is another one after a restart, or because an
// older one grew, or is written over and over, when others get nothing any more, and when it does not come once there is room.
func TestCataloguesBeyondTheTotalsAreLeftOut(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	stop := w.start()
	aged := w.catalogueOf("aged", map[string][]string{"aged": {"1.0.0"}})
	expect.Create(w.t, w.master, aged)
	w.expectVersions("master", "aged", "1.0.0")
	first, second, third := w.crowd("crowd-1"), w.crowd("crowd-2"), w.crowd("crowd-3")
	for _, object := range []*v1.AddonCatalogue{first, second, third} {
		expect.Create(w.t, w.master, object)
	}
	third = w.expectCondition(third, v1.ConditionReady, "False", v1.ReasonTooLarge)
	reported := third.Status.Conditions[slices.IndexFunc(third.Status.Conditions,
		func(one metav1.Condition) bool { return one.Type == v1.ConditionReady })].Message
	if !strings.Contains(reported, `catalogue "crowd-3" is not merged: with it, all Custom catalogues that come before it`) {
		t.Error(reported)
	}
	w.expectCondition(second, v1.ConditionReady, "True", v1.ReasonDistributed)
	small := w.catalogueOf("small", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, small)
	w.expectVersions("master", "web", "1.0.0")
	stays := func() error {
		now := &v1.AddonCatalogue{}
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(third), now); err != nil {
			return err
		}
		if now.ResourceVersion != third.ResourceVersion {
			return fmt.Errorf("it is written again: %v", now.Status.Conditions)
		}
		return client.IgnoreNotFound(absent(w, "crowd-3-0"))
	}
	w.steady(stays)

	// One that was there first grows past admission: that takes nobody's place, while the manager runs and after a restart.
	expect.Change(w.t, w.master, aged, func(object *v1.AddonCatalogue) {
		var versions []string
		for i := range 128 {
			versions = append(versions, fmt.Sprintf("1.%d.0", i))
		}
		for i := range 3 {
			object.Spec.Addons = append(object.Spec.Addons, addonOf(fmt.Sprintf("aged-%d", i), versions...))
		}
	})
	w.expectCondition(aged, v1.ConditionReady, "False", v1.ReasonTooLarge)
	stay := func() error {
		kept := w.merged("crowd-2-0")
		return errors.Join(stays(), client.IgnoreNotFound(absent(w, "aged-0")), w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	}
	w.steady(stay)
	stop()
	w.start()
	w.steady(stay)
	expect.Change(w.t, w.master, aged, func(object *v1.AddonCatalogue) { object.Spec.Addons = object.Spec.Addons[:1] })
	w.expectCondition(aged, v1.ConditionReady, "True", v1.ReasonDistributed)
	expect.Delete(t, w.master, first)
	w.expectCondition(third, v1.ConditionReady, "True", v1.ReasonDistributed)
	expect.Object(t, w.master, w.merged("crowd-3-76"), func(object *v1.AddonCatalogue) error {
		if len(object.Spec.Addons[0].Versions) != 128 {
			return fmt.Errorf("%d versions", len(object.Spec.Addons[0].Versions))
		}
		return nil
	})
}

// absent is an error where a seed has an add-on.
func absent(w *world, addon string) error {
	err := w.master.Get(w.t.Context(), client.ObjectKeyFromObject(w.merged(addon)), w.merged(addon))
	if err == nil {
		return fmt.Errorf("the seed has %s", addon)
	}
	return err
}
