package addoninstallation_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/test/expect"
)

const day = 24 * time.Hour

// until sets the clock to a time before the end of the first credential. The API server's clock does not change, so
// each later credential ends little later.
func until(end time.Duration, clock *atomic.Int64) { clock.Store(int64((day - end).Seconds())) }

// departing installs an agent that cleans up on the hub before its removal, with a clock for its credentials.
func departing(t *testing.T) (*world, *kubermaticv1.AddonInstallation, *atomic.Int64) {
	t.Helper()
	w := agentWorld(t)
	w.renderers = bothMethods()
	version := w.templated("1.0.0", map[string]string{"settings.yaml": templateSettings, "a.yaml": templateJob("farewell", "pre-delete", "")})
	asked := tokenFor("hub", reading("configmaps"))
	asked.Lifetime.Duration = day
	version.Template.Access = []kubermaticv1.Access{asked}
	w.offer("agent", kubermaticv1.CatalogueCustom, version)
	clock := &atomic.Int64{}
	w.keeper = func(keeper addoninstallation.Access) addoninstallation.Access { return later{keeper, clock} }
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	return w, object, clock
}

// token is the agent's current token.
func (w *world) token(object *kubermaticv1.AddonInstallation) string {
	w.t.Helper()
	secret := hubSecret(object, "hub")
	expect.Read(w.t, w.seed, secret)
	return string(secret.Data["token"])
}

// renewed waits for a token that differs from the previous one, and that the hub accepts.
func (w *world) renewed(object *kubermaticv1.AddonInstallation, previous string) string {
	w.t.Helper()
	expect.Object(w.t, w.seed, hubSecret(object, "hub"), func(now *corev1.Secret) error {
		if string(now.Data["token"]) == previous {
			return errors.New("the token is the former")
		}
		return nil
	})
	if err := w.bearer(object, "hub").List(w.t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		w.t.Errorf("the credential is refused: %v", err)
	}
	return w.token(object)
}

// AG17: The credential is renewed while hooks before a removal run and are retried, and no longer once objects are
// removed.
func TestARenewalGoesOnUntilObjectsAreRemoved(t *testing.T) {
	t.Parallel()
	w, object, clock := departing(t)
	w.holdSettings(object, true)
	first, ended := w.token(object), object.Status.Access[0].Expires.Time
	w.delete(object)
	running := w.awaitJob(object, "farewell")
	until(time.Hour, clock)
	second := w.renewed(object, first)
	w.end(running, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonRemovalBlocked, "farewell")
	until(5*time.Minute, clock)
	third := w.renewed(object, second)
	expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if now := object.Status.Access[0].Expires.Time; !now.After(ended) {
			return fmt.Errorf("by the status it ends at %s", now)
		}
		return nil
	})
	w.end(w.awaitJob(object, "farewell", running.UID), true)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
	expect.Object(t, w.seed, settings, func(settings *corev1.ConfigMap) error {
		if settings.DeletionTimestamp == nil {
			return errors.New("it is not removed yet")
		}
		return nil
	})
	until(30*time.Second, clock)
	for range 3 { // reconciliations of the remaining objects
		w.afterAnother(object)
	}
	if w.token(object) != third {
		t.Error("it is renewed while objects are removed")
	}
	w.holdSettings(object, false)
	expect.Gone(t, w.seed, object)
	w.expectNothingMade(object)
}

// TestARemovalReportsThatACredentialIsNotRenewed fails if a removal whose hooks run does not report a Secret whose
// credential can't be renewed (the message of ApplySecrets, left out of preDelete).
func TestARemovalReportsThatACredentialIsNotRenewed(t *testing.T) {
	t.Parallel()
	w, object, clock := departing(t)
	w.delete(object)
	running := w.awaitJob(object, "farewell")
	w.delete(hubSecret(object, "hub"))
	foreign := hubSecret(object, "hub")
	w.create(foreign)
	until(time.Hour, clock)
	w.expectSummary(object, "False", kubermaticv1.ReasonRemoving, "it runs")
	w.expectSummary(object, "False", kubermaticv1.ReasonRemoving, `Secret "agent-hub"`, foreign.Namespace, "did not create it")
	w.delete(foreign)
	w.end(running, true)
	expect.Gone(t, w.seed, object)
}

// TestARenewalInARemovalWithoutARecord fails if an agent's objects stay because a user deleted its records, and the
// Secret that a renewal recreated could not be recorded (the case errGone taken out of ApplySecrets).
func TestARenewalInARemovalWithoutARecord(t *testing.T) {
	t.Parallel()
	w, object, clock := departing(t)
	previous := w.token(object)
	w.dropRecords()
	w.delete(object)
	running := w.awaitJob(object, "farewell")
	w.delete(hubSecret(object, "hub"))
	until(time.Hour, clock)
	w.renewed(object, previous)
	w.end(running, true)
	expect.Gone(t, w.seed, object)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
	w.expectNothingMade(object)
}

// TestRevisionsThatNeverWorkHaveABoundedNumberOfCredentials fails without step revoke-surplus: 24 live credentials stay
// while no version works; and if those of the working version are revoked.
func TestRevisionsThatNeverWorkHaveABoundedNumberOfCredentials(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	var versions []kubermaticv1.AddonVersion
	for number := range 6 {
		var asked []kubermaticv1.Access
		for place := range 4 {
			asked = append(asked, tokenFor(fmt.Sprintf("hub-%d-%d", number, place), reading("configmaps")))
		}
		version := w.agent(fmt.Sprintf("%d.0.0", number), asked...)
		if number > 0 {
			version.Template.Health = &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthByLease} // the Lease is never renewed
		}
		versions = append(versions, version)
	}
	w.offer("agent", kubermaticv1.CatalogueCustom, versions...)
	w.start()
	object := w.install("agent", "0.0.0")
	w.ready(object)
	has := func(number int, want bool) error {
		for place := range 4 {
			name := fmt.Sprintf("hub-%d-%d", number, place)
			isHeld := w.has(&corev1.ServiceAccount{}, w.namespace, "addon-agent-agent-"+name)
			if isThere := w.has(&corev1.Secret{}, object.Spec.TargetNamespace, "agent-"+name); isHeld != want || isThere != want {
				return fmt.Errorf("credential %q: %t on the seed, %t in the user cluster, want %t", name, isHeld, isThere, want)
			}
		}
		return nil
	}
	for number := range versions {
		w.want(object, fmt.Sprintf("%d.0.0", number))
		expect.Eventually(t, expect.Patience, func() error { return has(number, true) })
	}
	for number := range versions {
		expect.Eventually(t, expect.Patience, func() error { return has(number, number != 1) })
	}
}
