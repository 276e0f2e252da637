package calls_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

type served []string

func (s served) APIVersions() []string { return s }
func (served) MissingGroups() []string { return nil }

// Red when an unknown kind, an unknown version and an unknown group are told in the same words.
func TestUnserved(t *testing.T) {
	all := served{"v1", "v1/LimitRange", "v1/Pod", "apps/v1", "apps/v1/Deployment", "autoscaling/v1", "autoscaling/v1/HorizontalPodAutoscaler",
		"autoscaling/v2", "autoscaling/v2/HorizontalPodAutoscaler", "cert-manager.io/v1", "cert-manager.io/v1/Certificate"}
	for _, test := range []struct {
		of                   calls.Served
		group, version, kind string
		want                 string
	}{
		{all, "", "v1", "LimitRang", `the user cluster serves no kind "LimitRang" in v1: did you mean "LimitRange"?`},
		{all, "apps", "v1", "deployment", `the user cluster serves no kind "deployment" in apps/v1: did you mean "Deployment"?`},
		{all, "cert-manager.io", "v1", "Certificat", `the user cluster serves no kind "Certificat" in cert-manager.io/v1: did you mean "Certificate"?`},
		{all, "cert-manager.io", "v1", "Issuer", `the user cluster serves no kind "Issuer" in cert-manager.io/v1: correct the kind, or install its CRD or API server`},
		{all, "autoscaling", "v2beta1", "HorizontalPodAutoscaler",
			`the user cluster serves HorizontalPodAutoscaler in autoscaling/v1, autoscaling/v2, and not in autoscaling/v2beta1: change its apiVersion`},
		{all, "extensions", "v1beta1", "Deployment", `the user cluster does not serve extensions/v1beta1: install the CRD or API server of the kind; the object is applied then`},
		{all, "shop.example.com", "v1", "Pod", `the user cluster does not serve shop.example.com/v1: install the CRD or API server of the kind; the object is applied then`},
		{all, "", "v2", "Pod", `the user cluster serves Pod in v1, and not in v2: change its apiVersion`},
		{nil, "shop.example.com", "v1", "Pod", `the user cluster does not serve shop.example.com/v1: install the CRD or API server of the kind; the object is applied then`},
		{served{"", "/", "v1/", "//"}, "", "v1", "Pod", `the user cluster serves no kind "Pod" in v1: correct the kind, or install its CRD or API server`},
	} {
		if got := calls.Unserved(test.of, schema.GroupVersionKind{Group: test.group, Version: test.version, Kind: test.kind}); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
