package helmrelease_test

import (
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
)

func TestAReleaseHasItsItemsNameOutsideOfKKP(t *testing.T) {
	prod := target.Ref{Kind: target.KindClusterAPI, Namespace: "team", Name: "prod-1"}
	chart := &v1.Template{Method: v1.MethodHelm}
	for _, test := range []struct {
		why, item, want string
		of              target.Ref
		by              *v1.Template
	}{
		{"a chart", "cilium", "cilium", prod, chart},
		{"KKP's stay as they are", "cilium", "", target.Ref{Kind: target.KindKKP, Name: "prod-1"}, chart},
		{"manifests", "cilium", "", prod, &v1.Template{Method: v1.MethodGoTemplate}},
		{"an add-on that no catalogue has", "cilium", "", prod, nil},
		{"the catalogue names the release", "cilium", "", prod, &v1.Template{Method: v1.MethodHelm, Helm: &v1.HelmOptions{ReleaseName: "net"}}},
		{"what is too long is cut as ever", strings.Repeat("a", 60), helmrelease.NameFor(strings.Repeat("a", 60)), prod, chart},
		{"a dot can't be in the field", "web.eu", "", prod, chart},
	} {
		if got := helmrelease.NameForItem(test.of, test.item, test.by); got != test.want {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
}
