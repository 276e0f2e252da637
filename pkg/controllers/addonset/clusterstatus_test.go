package addonset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// TestTheStatusOfACluster fails where a rule of "Waves" is broken. A revision began at noon; it is ten past.
func TestTheStatusOfACluster(t *testing.T) {
	one := intstr.FromInt32(1)
	of := setNamed("tools", itemOf("web", "web", "1.x"))
	of.Spec.Rollout = &v1.Rollout{Pace: v1.Pace{MaxConcurrency: &one}}
	standard := offering(entryOf(t, "web", "1.0.0", "1.1.0"))
	moved := func(after time.Duration, sick bool) func(*v1.AddonInstallation) {
		return func(live *v1.AddonInstallation) {
			live.Annotations[v1.AnnotationMoved] = noon.Add(after).Format(time.RFC3339Nano)
			if sick {
				live.Annotations[v1.AnnotationSick] = "true"
			}
		}
	}
	ready := func(status metav1.ConditionStatus, reason string, after time.Duration) func(*v1.AddonInstallation) {
		return func(live *v1.AddonInstallation) {
			live.Status.Conditions = []metav1.Condition{{
				Type: v1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: live.Generation,
				LastTransitionTime: metav1.NewTime(noon.Add(after)),
			}}
		}
	}
	type changes []func(*v1.AddonInstallation)
	for _, test := range []struct {
		why     string
		applied string
		live    changes
		in      func(*place)
		want    v1.ClusterState
		extra   func(waves.ClusterStatus) bool
	}{
		{why: "nothing is there", want: v1.ClusterBehind},
		{why: "younger than the revision", in: func(in *place) { in.created = noon.Add(time.Second) }, want: v1.ClusterNew,
			extra: func(s waves.ClusterStatus) bool { return s.AtOnce && s.Group == rollout.NoGroup }},
		{why: "paused", in: func(in *place) { in.away = v1.ReasonPaused }, want: v1.ClusterAway},
		{why: "an older version, Ready", applied: "1.0.0", live: changes{moved(-time.Hour, false), ready("True", "Ready", -time.Hour)},
			want: v1.ClusterBehind, extra: func(s waves.ClusterStatus) bool { return !s.Sick }},
		{why: "an older version, not Ready", applied: "1.0.0", live: changes{moved(-time.Hour, false), ready("False", "Unhealthy", -time.Hour)},
			want: v1.ClusterBehind, extra: func(s waves.ClusterStatus) bool { return s.Sick }},
		{why: "an older version, out of reach", applied: "1.0.0",
			live: changes{moved(-time.Hour, false), ready("Unknown", v1.ReasonClusterUnreachable, -time.Hour)}, want: v1.ClusterAway},
		{why: "written by an earlier revision and not done", applied: "1.0.0", live: changes{moved(-time.Minute, false)},
			want: v1.ClusterMoving, extra: func(s waves.ClusterStatus) bool { return s.Again }},
		{why: "it has its target and was not moved", applied: "1.1.0", live: changes{moved(-time.Hour, false), ready("True", "Ready", -time.Hour)},
			want: v1.ClusterCurrent},
		{why: "not moved in this revision, and unhealthy now", applied: "1.1.0",
			live: changes{moved(-time.Hour, false), ready("False", "Unhealthy", 9*time.Minute)}, want: v1.ClusterCurrent},
		{why: "moved, and Ready for the soak time", applied: "1.1.0", live: changes{moved(time.Minute, false), ready("True", "Ready", 5*time.Minute)},
			want: v1.ClusterCurrent},
		{why: "moved, and Ready since a moment", applied: "1.1.0", live: changes{moved(time.Minute, false), ready("True", "Ready", 9*time.Minute)},
			want: v1.ClusterMoving, extra: func(s waves.ClusterStatus) bool { return s.Next.Equal(noon.Add(14*time.Minute)) && !s.Again }},
		{why: "moved, and rolled back", applied: "1.1.0", live: changes{moved(time.Minute, false), ready("False", v1.ReasonRolledBack, 2*time.Minute)},
			want: v1.ClusterFailed, extra: func(s waves.ClusterStatus) bool { return s.Trouble.Reason == v1.ReasonRolledBack }},
		{why: "the same, and it was not Ready before", applied: "1.1.0",
			live: changes{moved(time.Minute, true), ready("False", v1.ReasonRolledBack, 2*time.Minute)}, want: v1.ClusterSick},
		{why: "it failed and its target is another by now", applied: "1.0.0",
			live: changes{moved(time.Minute, false), ready("False", v1.ReasonRolledBack, 2*time.Minute)}, want: v1.ClusterFailed},
		{why: "it failed in an earlier revision", applied: "1.0.0",
			live: changes{moved(-time.Minute, false), ready("False", v1.ReasonRolledBack, -time.Second)}, want: v1.ClusterBehind},
		{why: "it failed and is unselected", applied: "1.1.0",
			live: changes{moved(time.Minute, false), ready("False", v1.ReasonRolledBack, 2*time.Minute)},
			in:   func(in *place) { in.labels = map[string]string{"out": "true"} }, want: v1.ClusterBehind,
			extra: func(s waves.ClusterStatus) bool { return len(s.Removals) == 1 }},
	} {
		t.Run(test.why, func(t *testing.T) {
			in := clusterOn("v1.36.3")
			from := offering(entryOf(t, "web", "1.0.0", "1.1.0"))
			if test.applied != "" {
				live := madeBy(t, of, standard, in, test.applied)
				for _, change := range test.live {
					change(live)
				}
				in.live["web"] = observationOf(live)
			}
			if test.in != nil {
				test.in(in)
			}
			selecting := of.DeepCopy()
			selecting.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
				{Key: "out", Operator: metav1.LabelSelectorOpDoesNotExist}}
			sets := reading(t, selecting)
			planned := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(in)
			got := waves.ClusterStatusOf(planned.factsOf(in, v1.RemovalDelete), waves.Course{
				Strategy: sets["tools"].strategy, StartedAt: noon, Now: noon.Add(10 * time.Minute),
			})
			if !planned.counts() || got.State != test.want || test.extra != nil && !test.extra(got) {
				t.Errorf("it is %s, want %s: %+v, by %s", got.State, test.want, got, reported(&planned))
			}
		})
	}
}
