package gitcatalogue_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a commit fills the master beyond what all Custom catalogues may have, or when what it had before goes, or nothing comes any more.
func TestACommitBeyondTheTotalsIsNotTaken(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"crowd-1", "crowd-2"} { // 9,985 versions each
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
		for i := range 80 {
			addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("%s-%d", name, i))}
			for j := range min(128, 9_985-i*128) {
				addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", j)})
			}
			if len(addon.Versions) > 0 {
				object.Spec.Addons = append(object.Spec.Addons, addon)
			}
		}
		expect.Create(w.t, w.client, object)
	}
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectAddons(object, first, "loki", "1.0.0")

	pairs := []string{"loki", "2.0.0"}
	for i := range 30 {
		pairs = append(pairs, fmt.Sprintf("more-%d", i), "1.0.0")
	}
	w.commit(map[string]string{"a.yaml": file(pairs...)})
	w.look(object)
	reported := w.expectFetched(object, "False", v1.ReasonTooLarge)
	if !strings.Contains(reported, "all Custom catalogues together would have more than 20000 versions") || !strings.Contains(reported, "of commit "+first+" stay") {
		t.Error(reported)
	}
	w.expectAddons(object, first, "loki", "1.0.0")

	last := w.commit(map[string]string{"a.yaml": file(pairs[:40]...)})
	w.look(object)
	w.expectAddons(object, last, pairs[:40]...)
}

// quota sets how many catalogues there may be and are, as the controller of a ResourceQuota does, which this API server lacks. The API server
// goes by it when limit returns.
func (w *world) quota() (limit func(most, used string)) {
	const counted = "count/addoncatalogues.kubermatic.k8c.io"
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "trellis"}}
	return func(most, used string) {
		hard := corev1.ResourceList{counted: resource.MustParse(most)}
		expect.Put(w.t, w.client, quota, func(quota *corev1.ResourceQuota) { quota.Spec.Hard = hard })
		before := quota.DeepCopy()
		quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{counted: resource.MustParse(used)}}
		expect.PatchStatus(w.t, w.client, quota, client.MergeFrom(before))
		expect.Eventually(w.t, expect.Patience, func() error { // until the API server goes by it
			one := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "one"}, Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom}}
			if err := w.client.Create(w.t.Context(), one, client.DryRunAll); apierrors.IsForbidden(err) != (most == used) {
				return fmt.Errorf("of %s catalogues there are %s, and a creation ends with: %w", most, used, err)
			}
			return nil
		})
	}
}

// Red when a commit with more new add-ons than a ResourceQuota has room for changes what is there, is called invalid or complete, does not
// say what to do, or is not completely applied once there is room.
func TestACommitBeyondAQuotaIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectAddons(object, first, "loki", "1.0.0")
	limit := w.quota()
	limit("2", "2")
	second := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0", "a", "1.0.0", "b", "1.0.0", "c", "1.0.0")})
	limit("4", "2")
	expect.Eventually(t, expect.Patience, func() error {
		w.look(object)
		if found := w.children(object); len(found) != 3 {
			return fmt.Errorf("there are %d add-ons", len(found))
		}
		return nil
	})
	w.expectFetched(object, "False", v1.ReasonTooLarge, "commit "+second+" is not completely applied", "exceeded quota", "raise the quota")
	w.steady(func() error {
		found := w.children(object)
		if len(found) != 3 || found["loki"].Spec.Addons[0].Versions[0].Version != "1.0.0" {
			return fmt.Errorf("there are %d add-ons, loki %+v", len(found), found["loki"])
		}
		expect.Read(w.t, w.client, object)
		return expect.Condition(object, v1.ConditionFetched, "False", v1.ReasonTooLarge, "is not completely applied")
	})
	limit("5", "4")
	expect.Object(t, w.client, object, func(object *v1.AddonCatalogue) error {
		if object.Status.Revision != second {
			w.look(object)
			return fmt.Errorf("it is at %s", object.Status.Revision)
		}
		return nil
	})
	w.expectAddons(object, second, "loki", "2.0.0", "a", "1.0.0", "b", "1.0.0", "c", "1.0.0")
	w.expectFetched(object, "True", v1.ReasonFetched)
}
