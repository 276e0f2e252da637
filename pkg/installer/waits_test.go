package installer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

func TestUnfinished(t *testing.T) {
	waiting := []calls.Note{{Reason: v1.ReasonWaitingForStage, Message: "CRD a", Cause: v1.ReasonBeingDeleted}, {Reason: v1.ReasonWaitingForStage, Message: "CRD b"}}
	refused := []calls.Note{{Reason: v1.ReasonObjectExists, Message: "ConfigMap x exists", Cause: v1.ReasonObjectOfOthers}}
	for _, test := range []struct {
		why      string
		progress apply.Progress
		want     *Stop
	}{
		{
			"what waits for itself is looked at soon", apply.Progress{Waiting: waiting},
			&Stop{About: AboutApply, Reason: "WaitingForStage", Message: "CRD a (and 1 more)", Cause: v1.ReasonBeingDeleted, Recheck: stageRecheck},
		},
		{
			"a refusal says more than a wait", apply.Progress{Waiting: waiting, Refused: refused},
			&Stop{About: AboutApply, Reason: "ObjectExists", Message: "ConfigMap x exists", Cause: v1.ReasonObjectOfOthers, Recheck: RefusedRecheck},
		},
		{
			"what did not have its turn is looked at soon, whatever else is refused",
			apply.Progress{Waiting: []calls.Note{{Reason: v1.ReasonProgressing, Message: "c waits"}}, Refused: refused},
			&Stop{About: AboutApply, Reason: "ObjectExists", Message: "ConfigMap x exists", Cause: v1.ReasonObjectOfOthers, Recheck: stageRecheck},
		},
		{
			"a missing namespace is somebody's to make", apply.Progress{Waiting: []calls.Note{{Reason: v1.ReasonNamespaceMissing, Message: "m"}}},
			&Stop{About: AboutApply, Reason: "NamespaceMissing", Message: "m", Recheck: RefusedRecheck},
		},
		{
			"one that may be ours was taken away: it is written in the next pass",
			apply.Progress{Unchanged: 1, Waiting: []calls.Note{{Reason: v1.ReasonNamespaceMissing, Message: "m"}}},
			&Stop{Kind: Checkpoint, About: AboutApply, Reason: "NamespaceMissing", Message: "m"},
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
	if got := stageWait(m.stagePasses); got != SlowestRecheck {
		t.Errorf("after 30 passes in vain the wait is %s", got)
	}
	if m.countStage(3); stageWait(m.stagePasses) != stageRecheck {
		t.Errorf("after progress the wait is %s", stageWait(m.stagePasses))
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
			pass := &Pass{State: &State{Record: record}, Now: test.now, Health: health}
			if got := pass.Unhealthy(); got.Reason != test.reason || got.Cause != v1.ReasonUnschedulable {
				t.Errorf("got %+v, want reason %q", got, test.reason)
			}
		})
	}
}

// RS05: What a user cluster refuses is tried at longer and longer intervals, at last every five
// minutes. Red when a refused object is tried every minute for ever.
func TestRefusedObjectIsTriedEveryFiveMinutes(t *testing.T) {
	refused := apply.Progress{Refused: []calls.Note{{Reason: v1.ReasonObjectInvalid, Message: "field spec.ports is required"}}}
	var last time.Duration
	for passes := range 40 {
		wait := unfinished(refused, passes+1).Recheck
		if wait < last || wait > 5*time.Minute {
			t.Fatalf("pass %d waits %s after %s", passes+1, wait, last)
		}
		last = wait
	}
	if last != 5*time.Minute {
		t.Errorf("after 40 passes it waits %s", last)
	}
}

// A kind that others bring may stay away for good. Red when whatever waits is tried every 15
// seconds for ever, each time with all lists of a comparison.
func TestKindsThatStayAwayAreLookedForRarely(t *testing.T) {
	for reason, want := range map[string]time.Duration{
		v1.ReasonKindNotServed: SlowestRetry, v1.ReasonWaitingForStage: SlowestRecheck,
		v1.ReasonNamespaceTerminating: SlowestRecheck, v1.ReasonObjectInvalid: RefusedRecheck,
	} {
		notes := []calls.Note{{Reason: reason}}
		if got := repairWait(notes, maxPasses); got != want {
			t.Errorf("%s: after many passes it waits %s, want %s", reason, got, want)
		}
		if first := repairWait(notes, 0); want != RefusedRecheck && first > time.Second {
			t.Errorf("%s: at first it waits %s", reason, first)
		}
	}
}

// Red when each look at a namespace in which kinds can't be listed follows the one before within seconds.
func TestANamespaceThatCanNotBeListedIsLookedAtRarely(t *testing.T) {
	now := time.Now()
	pass := &Pass{State: &State{}, Now: now, Asked: Asked{RemovedSince: now}}
	left := ownership.Inventory{{Key: ownership.Key{Kind: "Namespace", Name: "a"}}}
	stop := pass.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked}, {Reason: removal.ReasonUnlisted}})
	if stop.Recheck != SlowestRecheck || stop.Reason != v1.ReasonRemoving {
		t.Errorf("got %+v", stop)
	}
	if stop = pass.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked}}); stop.Recheck > slowestRemovalRecheck {
		t.Errorf("what goes is looked at after %s", stop.Recheck)
	}
	pass.Now = now.Add(removalBlocked + time.Second)
	stop = pass.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked, Cause: v1.ReasonBeingDeleted}})
	if stop.Reason != v1.ReasonRemovalBlocked || stop.Cause != v1.ReasonBeingDeleted {
		t.Errorf("what does not go is told by %+v", stop)
	}
	pass.Now = now.Add(-24 * time.Hour) // or the API server's clock is ahead
	if stop = pass.removing(left, []calls.Note{{Reason: v1.ReasonRemovalBlocked}}); stop.Reason != v1.ReasonRemovalBlocked {
		t.Errorf("by a clock that is a day behind it is told by %+v", stop)
	}
}

func TestFormerRelease(t *testing.T) {
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
		{"what could not be removed yet is kept in mind", &revision.Record{Former: gone}, nil, gone},
	} {
		t.Run(test.why, func(t *testing.T) {
			if diff := cmp.Diff(test.want, formerRelease(test.previous, test.next)); diff != "" {
				t.Errorf("former release (-want +got):\n%s", diff)
			}
		})
	}
}
