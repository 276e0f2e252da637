package coreaddon_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestARemovalThatIsRefusedHoldsNothingElse: an admission webhook of another client refuses the deletion of an
// installation out of the set. The test fails when the other core add-ons of the cluster are not corrected meanwhile,
// when nothing reports it, or when it is not deleted once that is allowed.
func TestARemovalThatIsRefusedHoldsNothingElse(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("refused")
	w.merged(v1.CatalogueCustom, "prometheus")
	w.merged(v1.CatalogueCustom, "loki")
	const monitoring = `{name: monitoring, addonRef: {name: prometheus}, targetNamespace: monitoring}`
	w.listed(`[` + monitoring + `, {name: logs, addonRef: {name: loki}, targetNamespace: logs}]`)
	var refusals atomic.Int64
	var mayGo atomic.Bool
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodDelete || !strings.HasSuffix(request.URL.Path, "/addoninstallations/logs") || mayGo.Load() {
				return next.RoundTrip(request)
			}
			refusals.Add(1)
			return kit.Answered(request, http.StatusForbidden,
				[]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a webhook says no"}`)), nil
		})
	})
	w.exists(of, "monitoring")
	w.exists(of, "logs")
	w.listed(`[` + monitoring + `]`)
	expect.Eventually(t, expect.Patience, func() error {
		if refusals.Load() == 0 {
			return errors.New("nothing was to be deleted yet")
		}
		return nil
	})
	expect.Change(w.t, w.seed, installationOf(of, "monitoring"), func(i *v1.AddonInstallation) { i.Spec.Paused = true })
	expect.Object(t, w.seed, installationOf(of, "monitoring"), func(found *v1.AddonInstallation) error {
		if found.Spec.Paused {
			return errors.New("it is paused")
		}
		return nil
	})
	expect.Object(t, w.seed, availableOf(of), func(found *v1.AddonCatalogue) error {
		if err := expect.Condition(found, v1.ConditionAddonsReady, "False", v1.ReasonFailed); err != nil {
			return err
		}
		if reported := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionAddonsReady).Message; !strings.Contains(reported, "a webhook says no") {
			return fmt.Errorf("it is told as %q", reported)
		}
		return nil
	})
	mayGo.Store(true)
	expect.Gone(t, w.seed, installationOf(of, "logs"))
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }
