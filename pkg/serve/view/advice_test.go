package view_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/test/golden"
)

// table is the page's copy of the reasons.
var table = regexp.MustCompile(`(?m)^\| condition \| reason \| means \| what to do \|\n(?:\|.*\n)+`)

// Red when the page about AddonInstallations has another table of reasons than the command; -update writes the page.
func TestThePageHasTheReasons(t *testing.T) {
	const page = "../../../docs/spec/addoninstallation.md"
	text, err := os.ReadFile(page)
	if err != nil || !table.Match(text) {
		t.Fatalf("the page has no table of reasons: %v", err)
	}
	reasons, err := os.ReadFile("reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	golden.Match(t, page, string(table.ReplaceAllLiteral(text, reasons)))
}

// Red when a row of several reasons, a condition above it, or a link is read wrongly.
func TestAdviceOfReasons(t *testing.T) {
	for _, test := range []struct{ why, condition, reason, means, do string }{
		{"the first row of a condition", v1.ConditionReady, v1.ReasonReady, "everything is applied", ""},
		{"a row below it", v1.ConditionReady, v1.ReasonPaused, "spec.paused", "unset the field"},
		{"a reason of another condition", v1.ConditionReady, v1.ReasonAddonUnknown, "no catalogue has the add-on", "check `addonRef.name`"},
		{"a row of several", v1.ConditionCompatible, v1.ExcludedK8sVersion, "does not fit", "choose the version"},
		{"a link", v1.ConditionReady, v1.ReasonClusterSwapped, "another user cluster", "or confirm the cluster"},
		{"an unknown reason", v1.ConditionReady, "None", "", ""},
	} {
		got := view.AdviceOn(test.condition, test.reason)
		if !strings.Contains(got.Means, test.means) || !strings.Contains(got.Do, test.do) || test.means == "" && got.Means != "" {
			t.Errorf("%s: got %+v", test.why, got)
		}
	}
}
