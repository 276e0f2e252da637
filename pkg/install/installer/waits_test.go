package installer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

func TestUnfinished(t *testing.T) {
	waiting := []calls.Note{{Reason: v1.ReasonWaitingForStage, Message: "CRD a", Cause: v1.ReasonBeingDeleted}, {Reason: v1.ReasonWaitingForStage, Message: "CRD b"}}
	refused := []calls.Note{{Reason: v1.ReasonObjectExists, Message: "ConfigMap x exists", Cause: v1.ReasonObjectOfOthers}}
	for _, test := range []struct {
		why      string
		progress apply.Progress
		want     *loop.Outcome
	}{
		{
			"what waits for itself is looked at soon", apply.Progress{Waiting: waiting},
			&loop.Outcome{Kind: loop.Waiting, Condition: v1.ConditionApplied, Reason: "WaitingForStage", Message: "CRD a (and 1 more)", Cause: v1.ReasonBeingDeleted, Recheck: stageRecheck},
		},
		{
			"a refusal says more than a wait", apply.Progress{Waiting: waiting, Refused: refused},
			&loop.Outcome{Kind: loop.Waiting, Condition: v1.ConditionApplied, Reason: "ObjectExists", Message: "ConfigMap x exists", Cause: v1.ReasonObjectOfOthers, Recheck: RefusedRecheck},
		},
		{
			"what did not have its turn is looked at soon, whatever else is refused",
			apply.Progress{Waiting: []calls.Note{{Reason: v1.ReasonProgressing, Message: "c waits"}}, Refused: refused},
			&loop.Outcome{Kind: loop.Waiting, Condition: v1.ConditionApplied, Reason: "ObjectExists", Message: "ConfigMap x exists", Cause: v1.ReasonObjectOfOthers, Recheck: stageRecheck},
		},
		{
			"a missing namespace is somebody's to make", apply.Progress{Waiting: []calls.Note{{Reason: v1.ReasonNamespaceMissing, Message: "m"}}},
			&loop.Outcome{Kind: loop.Waiting, Condition: v1.ConditionApplied, Reason: "NamespaceMissing", Message: "m", Recheck: RefusedRecheck},
		},
		{
			"one that may be ours was taken away: it is written in the next pass",
			apply.Progress{Unchanged: 1, Waiting: []calls.Note{{Reason: v1.ReasonNamespaceMissing, Message: "m"}}},
			&loop.Outcome{Kind: loop.Checkpoint, Recheck: loop.AtOnce, Condition: v1.ConditionApplied, Reason: "NamespaceMissing", Message: "m"},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			if diff := cmp.Diff(test.want, unfinished(test.progress, 1)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStageWaitGrowsWhileNothingIsWritten(t *testing.T) {
	m := &State{}
	for range 30 {
		m.countStage(2)
	}
	if got := stageWait(m.stageRuns); got != SlowestRecheck {
		t.Errorf("after 30 passes in vain the wait is %s", got)
	}
	if m.countStage(3); stageWait(m.stageRuns) != stageRecheck {
		t.Errorf("after progress the wait is %s", stageWait(m.stageRuns))
	}
}

func TestRepairsCountAsAFightOnlyInARow(t *testing.T) {
	begin := time.Now()
	count := repairCount{}
	for i := range fightRepairs {
		count = counted(count, begin.Add(time.Duration(i)*time.Minute), time.Minute)
	}
	if count.count != fightRepairs {
		t.Errorf("%d repairs a minute apart count as %d", fightRepairs, count.count)
	}
	if later := counted(count, begin.Add(time.Hour), time.Minute); later.count != 1 {
		t.Errorf("a repair long after counts as number %d", later.count)
	}
}

func TestUnhealthyAfterTheDeadline(t *testing.T) {
	applied := time.Now()
	record := &revision.Record{Time: metav1.NewTime(applied), Timeout: metav1.Duration{Duration: time.Minute}}
	health := &survey.Health{Total: 3, Healthy: 2, InProgress: true, Unhealthy: []calls.Note{{Cause: v1.ReasonUnschedulable}}}
	for _, test := range []struct {
		why    string
		now    time.Time
		reason string
	}{
		{"within the timeout", applied.Add(time.Second), v1.ReasonProgressing},
		{"past it", applied.Add(2 * time.Minute), v1.ReasonTimeout},
	} {
		t.Run(test.why, func(t *testing.T) {
			run := &Run{State: &State{Record: record}, Now: test.now, Health: health}
			if got := run.Unhealthy(); got.Reason != test.reason || got.Cause != v1.ReasonUnschedulable {
				t.Errorf("got %+v, want reason %q", got, test.reason)
			}
		})
	}
}

// RS05: Objects that a user cluster refuses are retried at growing intervals, up to five minutes. It fails if a refused
// object is retried every minute forever.
func TestRefusedObjectIsTriedEveryFiveMinutes(t *testing.T) {
	refused := apply.Progress{Refused: []calls.Note{{Reason: v1.ReasonObjectInvalid, Message: "field spec.ports is required"}}}
	var last time.Duration
	for runs := range 40 {
		wait := unfinished(refused, runs+1).Recheck
		if wait < last || wait > 5*time.Minute {
			t.Fatalf("pass %d waits %s after %s", runs+1, wait, last)
		}
		last = wait
	}
	if last != 5*time.Minute {
		t.Errorf("after 40 passes it waits %s", last)
	}
}

// A kind that others provide may be missing permanently. It fails if all waiting objects are retried every 15 seconds
// forever, each time with all lists of a comparison.
func TestKindsThatStayAwayAreLookedForRarely(t *testing.T) {
	for reason, want := range map[string]time.Duration{
		v1.ReasonKindNotServed: SlowestRetry, v1.ReasonWaitingForStage: SlowestRecheck,
		v1.ReasonNamespaceTerminating: SlowestRecheck, v1.ReasonObjectInvalid: RefusedRecheck,
	} {
		notes := []calls.Note{{Reason: reason}}
		if got := repairWait(notes, maxRuns); got != want {
			t.Errorf("%s: after many passes it waits %s, want %s", reason, got, want)
		}
		if first := repairWait(notes, 0); want != RefusedRecheck && first > time.Second {
			t.Errorf("%s: at first it waits %s", reason, first)
		}
	}
}

// TestANamespaceThatCanNotBeListedIsLookedAtRarely fails if checks of a namespace in which kinds can't be listed follow
// each other within seconds.
func TestANamespaceThatCanNotBeListedIsLookedAtRarely(t *testing.T) {
	now := time.Now()
	run := &Run{State: &State{}, Now: now, Asked: Asked{RemovedSince: now}}
	left := ownership.Inventory{{Key: ownership.Key{Kind: "Namespace", Name: "a"}}}
	stop := run.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked}, {Reason: removal.ReasonUnlisted}})
	if stop.Recheck != SlowestRecheck || stop.Reason != v1.ReasonRemoving {
		t.Errorf("got %+v", stop)
	}
	if stop = run.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked}}); stop.Recheck > slowestRemovalRecheck {
		t.Errorf("what goes is looked at after %s", stop.Recheck)
	}
	run.Now = now.Add(removalBlocked + time.Second)
	stop = run.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked, Cause: v1.ReasonBeingDeleted}})
	if stop.Reason != v1.ReasonRemovalBlocked || stop.Cause != v1.ReasonBeingDeleted {
		t.Errorf("what does not go is told by %+v", stop)
	}
	run.Now = now.Add(-24 * time.Hour) // or the API server's clock is ahead
	if stop = run.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked}}); stop.Reason != v1.ReasonRemovalBlocked {
		t.Errorf("by a clock that is a day behind it is told by %+v", stop)
	}
}

func TestPreviousRelease(t *testing.T) {
	web := func(name string) *helmrelease.Release {
		return &helmrelease.Release{Name: name, Namespace: "web", Manifest: "…"}
	}
	gone := &helmrelease.Release{Name: "old", Namespace: "web"}
	for _, test := range []struct {
		why      string
		previous *revision.Record
		next     *helmrelease.Release
		want     *helmrelease.Release
	}{
		{"the first revision", nil, web("a"), nil},
		{"the same release goes on", &revision.Record{Helm: web("a")}, web("a"), nil},
		{"another method", &revision.Record{Helm: web("old")}, nil, gone},
		{"another name", &revision.Record{Helm: web("old")}, web("a"), gone},
		{"what could not be removed yet is kept in mind", &revision.Record{Previous: gone}, nil, gone},
	} {
		t.Run(test.why, func(t *testing.T) {
			if diff := cmp.Diff(test.want, previousRelease(test.previous, test.next)); diff != "" {
				t.Errorf("former release (-want +got):\n%s", diff)
			}
		})
	}
}
