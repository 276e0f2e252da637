package health

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// AG20: Rules that cost much and are looked at without end get a small share of the time, and take none from other clusters.
func TestRulesOfAClusterHaveAShareOfTheTime(t *testing.T) {
	const dear = 90 * time.Millisecond
	clock, each := time.Unix(0, 0), dear
	programs := NewPrograms(func() time.Time {
		clock = clock.Add(each / 2) // half before an evaluation, half in it
		return clock
	})
	rules, about := []v1.HealthRule{{Healthy: `self.status.ready`}}, map[string]any{"status": map[string]any{"ready": true}}
	evaluate := func(cluster string) (status.Status, string) {
		return programs.Look(cluster, rules).Evaluate(t.Context(), 0, about)
	}
	evaluated, began := 0, clock
	for clock.Sub(began) < time.Minute {
		switch state, words := evaluate("bomber"); {
		case state == status.CurrentStatus:
			evaluated++
		case !strings.Contains(words, "the health rules for this cluster used up their budget of 1s"):
			t.Fatalf("it is %s (%s)", state, words)
		}
	}
	most := int((shareAtOnce+time.Minute/sharePart)/(dear/2)) + 1
	if evaluated < most/2 || evaluated > most {
		t.Errorf("%d evaluations within a minute, want about %d", evaluated, most)
	}
	if state, words := evaluate("another"); state != status.CurrentStatus {
		t.Errorf("another cluster's is %s (%s)", state, words)
	}
	clock = clock.Add(sharePart * shareAtOnce)
	if state, words := evaluate("bomber"); state != status.CurrentStatus {
		t.Errorf("after a rest it is %s (%s)", state, words)
	}
	each = 2 * time.Hour // the machine stands still
	evaluate("stopped")
	each = dear
	clock = clock.Add(sharePart * shareAtOnce)
	if state, words := evaluate("stopped"); state != status.CurrentStatus {
		t.Errorf("after one that took hours, and a rest, it is %s (%s)", state, words)
	}
}
