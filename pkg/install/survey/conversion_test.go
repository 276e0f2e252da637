package survey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/lab"
)

// RS25: A kind whose conversion webhook is down blocks nothing else. It fails if calls.IsKindTrouble is always false:
// one kind's conversion webhook would block health and drift of all others.
func TestBrokenConversionHoldsNothingElseUp(t *testing.T) {
	l := lab.New(t)
	objects := l.Prepare(lab.Widgets)
	inventory := l.Install(objects, nil)
	l.BreakConversion()
	at := slices.IndexFunc(inventory, func(entry ownership.Entry) bool { return entry.Kind == "Widget" })
	inventory[at].Version = "v2"
	l.Delete(lab.ConfigMaps, l.Unique, "settings")

	l.Eventually("the custom resource can't be converted", func() bool {
		return strings.Contains(states(l.Assess(inventory)), "Widget:Unknown")
	})
	if got := driftReasons(l.Drift(inventory)); got != "Missing FieldsLost" {
		t.Errorf("got drift %q, want the missing ConfigMap and the edited definition", got)
	}
}
