package charts

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/golden"
)

// coreCatalogue are values of the master's chart with KKP's add-ons.
func coreCatalogue(more map[string]any) map[string]any {
	values := map[string]any{"enabled": true}
	maps.Copy(values, more)
	return map[string]any{"coreCatalogue": values}
}

// withKKPAddons has both catalogues, for two releases of KKP, of a registry of the platform's own.
var withKKPAddons = rendering{chart: "trellis-master", why: "with KKP's add-ons", values: coreCatalogue(map[string]any{
	"optional": true,
	"image":    map[string]any{"repository": "registry.example.com:5000/kkp/addons", "secretRef": "registry", "caSecretRef": "registry-ca"},
	"versions": map[string]any{
		"2.26.13": nil, "2.27.12": nil, "2.28.13": nil, "2.29.10": nil, "2.30.6": nil, "2.31.0": "v2.31.0-acme@" + digest,
	},
})}

// What the catalogues are is read by people when it changes. Red when an add-on that the image of a release has no more is in its version.
func TestKKPCataloguesAreAsReviewed(t *testing.T) {
	files, err := renderFiles(load(t, withKKPAddons.chart), withKKPAddons.values)
	if err != nil {
		t.Fatal(err)
	}
	golden.Match(t, "testdata/golden/kkp-catalogues.yaml", strings.TrimSpace(files["trellis-master/templates/kkp-catalogues.yaml"])+"\n")
}

// An API server takes both, as they are with the chart's own versions too. Red when a rule of the kind refuses one.
func TestKKPCataloguesAreTaken(t *testing.T) {
	c := connect(t)
	plain := rendering{chart: withKKPAddons.chart, why: "with KKP's add-ons as they are", values: coreCatalogue(map[string]any{"optional": true})}
	for _, r := range []rendering{withKKPAddons, plain} {
		found := 0
		_, objects := render(t, r)
		for _, object := range objects {
			if object.GetKind() != "AddonCatalogue" {
				continue
			}
			found++
			// As a dry run: managers of other tests would follow it.
			if err := client.WithFieldValidation(c, "Strict").Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Errorf("%s: %s is refused: %v", r, object.GetName(), err)
			}
		}
		if found != 2 {
			t.Errorf("%s: %d catalogues", r, found)
		}
	}
}

// Each mistake is refused when the chart is installed, and what is not asked for is not there. Red when a mistake is taken.
func TestMistakesAboutKKPAddonsAreRefused(t *testing.T) {
	versions := func(version string, tag any) map[string]any {
		return coreCatalogue(map[string]any{"versions": map[string]any{version: tag}})
	}
	for _, test := range []struct {
		why, says string
		values    map[string]any
	}{
		{"a pre-release, which no rule would choose", "versions", versions("2.32.0-rc.1", "v2.32.0-rc.1")},
		{"a version with a v", "versions", versions("v2.31.0", "v2.31.0")},
		{"a release without its patch", "versions", versions("2.31", "v2.31.0")},
		{"no tag", "versions", versions("2.31.0", "")},
		{"a tag that is an image", "versions", versions("2.31.0", "quay.io/kubermatic/addons:v2.31.0")},
		{"an old KKP", "2.25", versions("2.24.9", "v2.24.9")},
		{"a repository with a tag", "repository", coreCatalogue(map[string]any{"image": map[string]any{"repository": "a/b:v1"}})},
		{"an unknown key", "tag", coreCatalogue(map[string]any{"image": map[string]any{"tag": "v2.31.0"}})},
	} {
		if _, err := renderFiles(load(t, "trellis-master"), test.values); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
	for why, r := range map[string]rendering{
		"nothing is asked for":       {chart: "trellis-master"},
		"the optional alone are not": {chart: "trellis-master", values: map[string]any{"coreCatalogue": map[string]any{"optional": true}}},
	} {
		_, objects := render(t, r)
		if found := cataloguesOf(objects); len(found) > 0 {
			t.Errorf("%s: there are %v", why, found)
		}
	}
}

func cataloguesOf(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		if object.GetKind() == "AddonCatalogue" {
			names = append(names, object.GetName())
		}
	}
	return names
}
