package calls_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// TestRefusalsThatAClusterMayHaveOfItsOwn turns red when a refusal that any user of a cluster can cause is taken for the add-on's, or one of
// the add-on for the cluster's, and when words of a webhook choose another cause than the webhook.
func TestRefusalsThatAClusterMayHaveOfItsOwn(t *testing.T) {
	forbidden := func(words string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New(words))
	}
	for words, test := range map[string]struct {
		err  error
		want string
	}{
		"a quota":                       {forbidden("exceeded quota: small, requested: services=1"), v1.ReasonQuotaExceeded},
		"a quota for what nobody asks":  {forbidden("failed quota: small: must specify limits.cpu"), v1.ReasonQuotaExceeded},
		"a LimitRange":                  {forbidden("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"), v1.ReasonLimitRange},
		"a ratio":                       {forbidden("cpu max limit to request ratio per Container is 2, but provided ratio is 4"), v1.ReasonLimitRange},
		"a standard":                    {forbidden(`violates PodSecurity "restricted:latest": runAsNonRoot != true`), v1.ReasonPodSecurity},
		"a policy":                      {forbidden("ValidatingAdmissionPolicy 'none' with binding 'all' denied request: no"), v1.ReasonPolicyDenied},
		"a webhook that does not come":  {apierrors.NewInternalError(errors.New(`failed calling webhook "a.example.com": EOF`)), v1.ReasonWebhookRefused},
		"rights":                        {forbidden("User \"trellis\" cannot patch resource"), ""},
		"an account that is missing":    {forbidden(`error looking up service account web/web: serviceaccount "web" not found`), ""},
		"what is no answer":             {errors.New("exceeded quota: small"), ""},
		"an object that is wrong":       {apierrors.NewBadRequest("spec.ports: Required value"), ""},
		"a webhook that tells of quota": {apierrors.NewBadRequest(`admission webhook "a.example.com" denied the request: exceeded quota: b`), v1.ReasonWebhookRefused},
	} {
		for _, err := range []error{test.err, fmt.Errorf("applying it: %w", test.err)} {
			if got := calls.CauseOf(err); got != test.want {
				t.Errorf("%s: %q, want %q", words, got, test.want)
			}
		}
	}
}
