package coreaddon

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/charts"
)

// shipped is the optional Core catalogue of the master's chart, with these values.
func shipped(t *testing.T, values map[string]any) *kubermaticv1.AddonCatalogue {
	t.Helper()
	values["enabled"] = true
	_, objects, err := charts.Render("trellis-master", "kubermatic", map[string]any{"coreCatalogue": values})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "AddonCatalogue" {
			continue
		}
		found := &kubermaticv1.AddonCatalogue{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, found, true); err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Fatal("the chart has no AddonCatalogue")
	return nil
}

// TestTheChartsCatalogueHasWhatTheRulesName: The add-ons that rules name exist: the chart's Core catalogue has every
// add-on of the rules, and no other, since no rule could install that one. The test fails when a row of
// kkp-addons.yaml is removed, or a rule is added alone.
func TestTheChartsCatalogueHasWhatTheRulesName(t *testing.T) {
	found := shipped(t, map[string]any{})
	if found.Spec.Type != kubermaticv1.CatalogueCore {
		t.Errorf("it is of type %q", found.Spec.Type)
	}
	if _, err := catalogue.Read(found); err != nil {
		t.Errorf("it is refused: %v", err)
	}
	var named, offered []string
	for _, rule := range rules() {
		named = append(named, rule.addon)
	}
	for _, addon := range found.Spec.Addons {
		offered = append(offered, string(addon.Name))
	}
	slices.Sort(named)
	slices.Sort(offered)
	if diff := cmp.Diff(named, offered); diff != "" {
		t.Errorf("add-ons (-of the rules +of the catalogue):\n%s", diff)
	}
}

// TestTheChartsCatalogueFollowsKKP: A cluster gets the add-ons of its KKP release, and follows it. The test fails
// when a range includes the next release, excludes pre-releases of its own, or an add-on is offered that the image of
// its release no longer has.
func TestTheChartsCatalogueFollowsKKP(t *testing.T) {
	const cluster = "1.34.1"
	for _, test := range []struct {
		why, kkp, addon, installed, want string
	}{
		{"the release's own", "v2.31.0", "canal", "", "2.31.0"},
		{"a later patch release of it", "v2.31.7", "canal", "", "2.31.0"},
		{"a build between two", "v2.31.0-3-g2974df5", "canal", "", "2.31.0"},
		{"a pre-release", "v2.31.0-rc.1", "canal", "", "2.31.0"},
		{"of two for one release the higher", "v2.30.1", "csi", "", "2.30.6"},
		{"KKP was upgraded", "v2.31.0", "kube-proxy", "2.30.6", "2.31.0"},
		{"the last release with the folder", "v2.25.3", "cilium", "", "2.25.18"},
		{"the first without", "v2.26.0", "cilium", "", ""},
		{"a release that the catalogue does not know yet", "v2.32.0", "canal", "2.31.0", ""},
		{"a pre-release of that one", "v2.32.0-alpha.1", "canal", "2.31.0", ""},
	} {
		all := shipped(t, map[string]any{"versions": map[string]any{"2.30.5": "v2.30.5"}})
		at := slices.IndexFunc(all.Spec.Addons, func(addon kubermaticv1.Addon) bool { return string(addon.Name) == test.addon })
		all.Spec.Addons = all.Spec.Addons[at : at+1]
		entry, err := catalogue.NewEntry(all)
		if err != nil {
			t.Fatal(err)
		}
		platform := catalogue.Platform{KKPVersion: test.kkp, K8sVersion: cluster}
		selection, refusal := catalogue.Select(entry, "", test.installed, platform, catalogue.SelectOptions{Core: true})
		got := ""
		if refusal == nil {
			got = selection.Version.Version
		}
		if got != test.want {
			t.Errorf("%s: %s under %s gets %q (%v), expected %q", test.why, test.addon, test.kkp, got, refusal, test.want)
		}
	}
}
