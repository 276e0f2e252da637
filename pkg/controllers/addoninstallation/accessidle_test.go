package addoninstallation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestAPausedInstallationRestsUntilItsRenewal fails if a paused installation is reconciled several times a second once
// its next comparison is due, which is not made while it is paused (the case of spec.paused taken out of
// restUntilSurvey): with a credential, and with a refused one.
func TestAPausedInstallationRestsUntilItsRenewal(t *testing.T) {
	t.Parallel()
	for why, revokes := range map[string]bool{"granted": false, "refused": true} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := agentWorld(t)
			w.clock = kit.RunningClock(t)
			w.publish("busy", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
			w.start()
			busy := w.install("busy", "")
			w.ready(busy)
			object := w.install("agent", "")
			w.ready(object)
			w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
			w.expectSummary(object, "False", kubermaticv1.ReasonPaused, "")
			if revokes {
				w.shrinkList()
				w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, "")
			}
			w.afterAnother(object) // reconciliations caused by the edits are over
			began := w.begun(object)
			for range 10 { // a comparison is due each second
				w.clock.Step(time.Second)
				w.afterAnother(busy)
			}
			if more := w.begun(object) - began; more > 4 {
				t.Errorf("%d passes beside ten of one that is not paused", more)
			}
		})
	}
}

// shrinkList removes everything from the platform's list for agents.
func (w *world) shrinkList() {
	w.t.Helper()
	listed := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("agents-custom-%s-configmaps", w.id)}}
	expect.Read(w.t, w.seed, listed)
	listed.Rules = nil
	expect.Update(w.t, w.seed, listed)
}

// AG07, AG09: Rights that the platform no longer lists, and credentials that annotation rotate-at ends, are revoked
// also in a removal that the user cluster holds.
func TestRightsEndWhileARemovalIsHeld(t *testing.T) {
	t.Parallel()
	for why, test := range map[string]struct {
		end     func(w *world, object *kubermaticv1.AddonInstallation)
		isEnded func(error) bool
	}{
		"the list shrinks": {func(w *world, _ *kubermaticv1.AddonInstallation) { w.shrinkList() }, apierrors.IsForbidden},
		"rotate-at": {func(w *world, object *kubermaticv1.AddonInstallation) {
			w.annotate(object, kubermaticv1.AnnotationRotateAt, "now")
		}, apierrors.IsUnauthorized},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := agentWorld(t)
			w.start()
			object := w.install("agent", "")
			w.ready(object)
			bearer := w.bearer(object, "hub")
			w.holdSettings(object, true)
			w.delete(object)
			w.expectSummary(object, "False", kubermaticv1.ReasonRemoving, "settings")
			test.end(w, object)
			expect.Eventually(t, 20*time.Second, func() error {
				if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); !test.isEnded(err) {
					return fmt.Errorf("the agent is answered with %v", err)
				}
				return nil
			})
			w.holdSettings(object, false)
			expect.Gone(t, w.seed, object)
			w.expectNothingMade(object)
		})
	}
}

// blind is a keeper whose cache shows no created objects.
type blind struct{ addoninstallation.Access }

func (blind) RevokeAll(context.Context, string, string) error { return nil }

// AG10: For an installation that is released with deletionPolicy Orphan, recorded credentials are revoked too, even if
// a cache does not show them yet.
func TestOrphansLoseWhatTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.keeper = func(keeper addoninstallation.Access) addoninstallation.Access { return blind{keeper} }
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan })
	w.delete(object)
	expect.Gone(t, w.seed, object)
	w.expectNothingMade(object)
}
