package rendering

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// TestOwnKindsAreNoCapability fails when a chart is rendered again because its own kinds are served now.
func TestOwnKindsAreNoCapability(t *testing.T) {
	versions := []string{"apps/v1", "apps/v1/Deployment", "example.com/v1", "example.com/v1/Widget", "sub.example.com/v1", "v1", "v1/Pod"}
	inventory := ownership.Inventory{
		{Key: ownership.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}},
		{Key: ownership.Key{Group: "apps", Kind: "Deployment", Name: "web.apps"}},
	}
	want := []string{"apps/v1", "apps/v1/Deployment", "sub.example.com/v1", "v1", "v1/Pod"}
	if diff := cmp.Diff(want, withoutOwn(versions, inventory.DefinedGroups())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAsksForCapabilities(t *testing.T) {
	for _, test := range []struct {
		why  string
		file string
		want bool
	}{
		{"a template of the chart", "templates/deployment.yaml", true},
		{"a template of a dependency", "charts/sub/templates/x.yaml", true},
		{"the README does not count", "README.md", false},
	} {
		t.Run(test.why, func(t *testing.T) {
			chart := fstest.MapFS{test.file: {Data: []byte("{{ .Capabilities.KubeVersion }}")}}
			got, err := asksForCapabilities(chart)
			if err != nil || got != test.want {
				t.Errorf("got %t, %v; want %t", got, err, test.want)
			}
		})
	}
}
