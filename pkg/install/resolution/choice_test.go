package resolution_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// TestNothingIsChosenThatCanNotBeInstalled fails when an add-on that can't be installed is chosen: the controller
// would refuse it later, although the upgrade check reports that it moves.
func TestNothingIsChosenThatCanNotBeInstalled(t *testing.T) {
	t.Parallel()
	empty := entryOf(t, v1.CatalogueCustom, offered{"2.0.0", "", ""}, offered{"1.0.0", "", ""})
	newest, _ := empty.Version("2.0.0")
	newest.Template, newest.Source = nil, nil
	ruled := asking("", "1.0.0")
	ruled.Installation.Spec.CoreAddon = true
	ruled.Installation.Annotations = map[string]string{v1.AnnotationCoreOrigin: v1.OriginRule}
	listed := asking("", "1.0.0")
	listed.Installation.Spec.CoreAddon = true
	full := func(kind v1.CatalogueType) *catalogue.Entry { return entryOf(t, kind, offered{"2.0.0", "", ""}) }
	for _, test := range []struct {
		why             string
		request         resolution.Request
		entry           *catalogue.Entry
		version, reason string
	}{
		{"no add-on", asking("", ""), nil, "", v1.ReasonAddonUnknown},
		{"an add-on that went", asking("", "1.0.0"), nil, "", v1.ReasonWithdrawn},
		{"a version without content", asking("", "1.0.0"), empty, "", v1.ReasonVersionUnknown},
		{"another version of the same add-on", asking("1.0.0", ""), empty, "1.0.0", ""},
		{"what a rule asks for, of a Custom catalogue", ruled, full(v1.CatalogueCustom), "", v1.ReasonAddonUnknown},
		{"what a rule asks for", ruled, full(v1.CatalogueCore), "2.0.0", ""},
		{"what the platform's list asks for, of a Custom catalogue", listed, full(v1.CatalogueCustom), "2.0.0", ""},
	} {
		choice, refusal := test.request.Choose(test.entry)
		version, reason := "", ""
		if choice.Version != nil {
			version = choice.Version.Version
		}
		if refusal != nil {
			reason = refusal.Reason()
		}
		if version != test.version || reason != test.reason {
			t.Errorf("%s: got version %q, refusal %v; want %q, reason %q", test.why, version, refusal, test.version, test.reason)
		}
		if test.entry == nil {
			continue // the check describes installed versions in another way
		}
		finding := resolution.CheckUpgrade(func(string) *catalogue.Entry { return test.entry }, []resolution.Request{test.request}, "")[0]
		if chosen := finding.Version; (finding.Reason == "") != (chosen != nil) || chosen != nil && refusal == nil && chosen.Version != version {
			t.Errorf("%s: the upgrade check says %+v", test.why, finding)
		}
		if refusal != nil && finding.Outcome == resolution.OutcomeMoves {
			t.Errorf("%s: the upgrade check has it move to %v", test.why, finding.Version)
		}
	}
}
