package installation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// RS39: Where the clock is set back, a move is not older than its revision, so that what comes of it counts. Red besides when what its
// users broke long ago counts as Ready before, or when a second write of a move forgets what was before the first.
func TestStampsOfAMove(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	live := func(ready metav1.ConditionStatus, annotations map[string]string) *v1.AddonInstallation {
		made := &v1.AddonInstallation{}
		made.Annotations = annotations
		made.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: ready, Reason: "Any"}}
		return made
	}
	movedAt := func(at time.Time) string { return at.Format(time.RFC3339Nano) }
	for _, test := range []struct {
		why  string
		at   time.Time
		live *v1.AddonInstallation
		want map[string]string
	}{
		{"made", began.Add(time.Hour), nil, map[string]string{v1.AnnotationMoved: movedAt(began.Add(time.Hour))}},
		{"the clock was set back", began.Add(-time.Hour), nil, map[string]string{v1.AnnotationMoved: movedAt(began)}},
		{
			"Ready before", began, live(metav1.ConditionTrue, nil),
			map[string]string{v1.AnnotationMoved: movedAt(began)},
		},
		{
			"not Ready before", began, live(metav1.ConditionFalse, nil),
			map[string]string{v1.AnnotationMoved: movedAt(began), v1.AnnotationSick: "true"},
		},
		{
			"in the middle of a move of what was Ready", began,
			live(metav1.ConditionFalse, map[string]string{v1.AnnotationMoved: movedAt(began.Add(-time.Minute))}),
			map[string]string{v1.AnnotationMoved: movedAt(began)},
		},
		{
			"in the middle of a move of what was not", began,
			live(metav1.ConditionFalse, map[string]string{v1.AnnotationMoved: movedAt(began.Add(-time.Minute)), v1.AnnotationSick: "true"}),
			map[string]string{v1.AnnotationMoved: movedAt(began), v1.AnnotationSick: "true"},
		},
		{
			"its move is long over, and its users broke it", began,
			live(metav1.ConditionFalse, map[string]string{v1.AnnotationMoved: movedAt(began.Add(-24 * time.Hour))}),
			map[string]string{v1.AnnotationMoved: movedAt(began), v1.AnnotationSick: "true"},
		},
		{
			"the same, by an edit that was applied just now", began,
			func() *v1.AddonInstallation {
				broken := live(metav1.ConditionFalse, map[string]string{v1.AnnotationMoved: movedAt(began.Add(-24 * time.Hour))})
				at := metav1.NewTime(began.Add(-time.Minute))
				broken.Status.LastApplied = &v1.AppliedState{Time: &at}
				return broken
			}(),
			map[string]string{v1.AnnotationMoved: movedAt(began), v1.AnnotationSick: "true"},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			move := installation.Move{At: test.at, StartedAt: began, Pace: installation.Pace{Soak: time.Minute, Deadline: time.Hour}}
			if diff := cmp.Diff(test.want, move.Stamps(test.live)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
