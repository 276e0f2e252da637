package catalogue_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestSelectPrefersWhatFitsTheNextVersionToo: Before an upgrade, a range selects a version that fits before and after
// it: never a lower one, and none that does not fit now. The test fails when the next versions exclude a version,
// when a higher version that does not fit them is chosen, and when the installed version is replaced by a lower one.
func TestSelectPrefersWhatFitsTheNextVersionToo(t *testing.T) {
	t.Parallel()
	bridged := []offered{{"1.0.0", "< 1.37", ""}, {"1.1.0", ">= 1.36, < 1.38", ""}, {"1.2.0", ">= 1.36, < 1.39", ""},
		{"1.3.0", "< 1.37", ""}, {"2.0.0", ">= 1.37", ""}}
	strict := []offered{{"1.36.0", "~1.36", ""}, {"1.37.0", "~1.37", ""}}
	for _, test := range []struct {
		why               string
		versions          []offered
		next              []string
		wanted, installed string
		want              string
	}{
		{why: "without an upgrade", versions: bridged, want: "1.3.0"},
		{why: "it fits both", versions: bridged, next: []string{"v1.37.1"}, installed: "1.0.0", want: "1.2.0"},
		{why: "it fits the most of a chain", versions: bridged, next: []string{"v1.37.1", "v1.38.0"}, want: "1.2.0"},
		{why: "never down", versions: bridged, next: []string{"v1.37.1"}, installed: "1.3.0", want: "1.3.0"},
		{why: "an exact version is no range", versions: bridged, next: []string{"v1.37.1"}, wanted: "1.3.0", want: "1.3.0"},
		{why: "nothing fits both", versions: strict, next: []string{"v1.37.1"}, want: "1.36.0"},
		{why: "a next version that is none", versions: bridged, next: []string{"soon"}, want: "1.3.0"},
	} {
		entry := entryOf(t, v1.CatalogueCustom, test.versions...)
		platform := catalogue.Platform{K8sVersion: "v1.36.3", Next: test.next}
		got, refusal := catalogue.Select(entry, test.wanted, test.installed, platform, catalogue.SelectOptions{})
		switch {
		case refusal != nil:
			t.Errorf("%s: %v", test.why, refusal)
		case got.Version.Version != test.want:
			t.Errorf("%s: chose %q, want %q", test.why, got.Version.Version, test.want)
		}
	}
}
