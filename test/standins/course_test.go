package standins

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// step is a moment of an installation.
type step struct {
	why string
	// after is since the step before; version, where it is not "", is asked for from now on.
	after   time.Duration
	version string
	act     Act
	// want is Ready's reason, the version and since when it was applied and Ready is what it is, in seconds of the whole story.
	reason, installed string
	applied, changed  int
	wait              time.Duration
}

const never = -1

var (
	slow  = Act{Takes: 10 * time.Second}
	flaps = Act{Flaps: time.Minute}
	back  = Act{Fate: RollsBack, Takes: 5 * time.Second}
)

var stories = map[string][]step{
	"works at once": {
		{why: "a first installation", version: "1.0.0", reason: "Ready", installed: "1.0.0"},
		{why: "an update within one pass", after: time.Minute, version: "2.0.0", reason: "Ready", installed: "2.0.0", applied: 60},
	},
	"works later": {
		{why: "it begins", version: "1.0.0", act: slow, reason: "Progressing", installed: "1.0.0", wait: 10 * time.Second},
		{why: "it is not there yet", after: 9 * time.Second, act: slow, reason: "Progressing", installed: "1.0.0", wait: time.Second},
		{why: "it is there", after: time.Second, act: slow, reason: "Ready", installed: "1.0.0", changed: 10},
		{why: "an update begins", after: 10 * time.Second, version: "2.0.0", act: slow, reason: "Progressing", installed: "2.0.0",
			applied: 20, changed: 20, wait: 10 * time.Second},
	},
	"rolled back": {
		{why: "a first installation", version: "1.0.0", reason: "Ready", installed: "1.0.0"},
		{why: "the upgrade", after: time.Minute, version: "2.0.0", act: back, reason: "Progressing", installed: "2.0.0",
			applied: 60, changed: 60, wait: 5 * time.Second},
		{why: "it fails", after: 5 * time.Second, act: back, reason: "RolledBack", installed: "1.0.0", applied: 65, changed: 60},
		{why: "it is not tried again", after: 5 * time.Second, reason: "RolledBack", installed: "1.0.0", applied: 65, changed: 60},
		{why: "the fix", after: 5 * time.Second, version: "2.0.1", reason: "Ready", installed: "2.0.1", applied: 75, changed: 75},
	},
	"first one fails": {
		{why: "it begins", version: "1.0.0", act: back, reason: "Progressing", installed: "1.0.0", wait: 5 * time.Second},
		{why: "nothing to go back to", after: 5 * time.Second, act: back, reason: "Timeout", installed: "1.0.0"},
	},
	"hangs": {
		{why: "it begins", version: "1.0.0", act: Act{Fate: Hangs}, reason: "Progressing", installed: "1.0.0"},
		{why: "mended", after: time.Minute, reason: "Ready", installed: "1.0.0", changed: 60},
	},
	"refused": {
		{why: "a first installation", version: "1.0.0", reason: "Ready", installed: "1.0.0"},
		{why: "an upgrade is refused", after: time.Minute, version: "2.0.0", act: Act{Fate: Refused}, reason: "ObjectInvalid",
			installed: "1.0.0", changed: 60},
	},
	"dead and back": {
		{why: "a first installation", version: "1.0.0", reason: "Ready", installed: "1.0.0"},
		{why: "dead", after: time.Minute, act: Act{Fate: Unreachable}, reason: "ClusterUnreachable", installed: "1.0.0", changed: 60},
		{why: "an upgrade meanwhile", after: time.Minute, version: "2.0.0", act: Act{Fate: Unreachable}, reason: "ClusterUnreachable",
			installed: "1.0.0", changed: 60},
		{why: "back", after: time.Minute, reason: "Ready", installed: "2.0.0", applied: 180, changed: 180},
	},
	"waits": {
		{why: "for the order", version: "1.0.0", act: Act{Fate: Waits, Reason: "WaitingForOrder"}, reason: "WaitingForOrder", applied: never},
		{why: "it may", after: time.Minute, reason: "Ready", installed: "1.0.0", applied: 60, changed: 60},
	},
	"flaps": {
		{why: "Ready", version: "1.0.0", act: flaps, reason: "Ready", installed: "1.0.0", wait: time.Minute},
		{why: "not any more", after: time.Minute, act: flaps, reason: "Unhealthy", installed: "1.0.0", changed: 60, wait: time.Minute},
		{why: "and again", after: time.Minute, act: flaps, reason: "Ready", installed: "1.0.0", changed: 120, wait: time.Minute},
	},
}

// What is played is what the real controller writes. Red when a rollback says the version that failed, when an old Ready is given
// a new time, or when what is unreachable loses what it knew.
func TestCourses(t *testing.T) {
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
			now, installation := begin, &v1.AddonInstallation{}
			played := courseOf(installation)
			for _, step := range steps {
				now = now.Add(step.after)
				if step.version != "" {
					installation.Spec.AddonRef.Version = step.version
					installation.Generation++
				}
				before := ready(installation)
				wait := played.follow(installation, step.act, now)
				stamp(installation, before, now)
				step.expect(t, installation, wait, begin)
			}
		})
	}
}

func ready(installation *v1.AddonInstallation) metav1.Condition {
	if found := meta.FindStatusCondition(installation.Status.Conditions, v1.ConditionReady); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// stamp gives Ready the story's time where its status changed.
func stamp(installation *v1.AddonInstallation, before metav1.Condition, now time.Time) {
	found := meta.FindStatusCondition(installation.Status.Conditions, v1.ConditionReady)
	if found.Status != before.Status {
		found.LastTransitionTime = metav1.NewTime(now)
	}
}

func (s step) expect(t *testing.T, installation *v1.AddonInstallation, wait time.Duration, begin time.Time) {
	t.Helper()
	found, applied := ready(installation), -1
	if last := installation.Status.LastApplied; last != nil {
		applied = int(last.Time.Sub(begin).Seconds())
		if last.Version != s.installed {
			t.Errorf("%s: %q was applied last, want %q", s.why, last.Version, s.installed)
		}
	}
	if found.Reason != s.reason || installation.Status.Version != s.installed || wait != s.wait {
		t.Errorf("%s: Ready is %s, version %q, for %s; want %s, %q, %s",
			s.why, found.Reason, installation.Status.Version, wait, s.reason, s.installed, s.wait)
	}
	if changed := int(found.LastTransitionTime.Sub(begin).Seconds()); changed != s.changed || applied != s.applied {
		t.Errorf("%s: Ready changed after %d s, applied after %d s; want %d and %d", s.why, changed, applied, s.changed, s.applied)
	}
	if found.ObservedGeneration != installation.Generation || installation.Status.ObservedGeneration != installation.Generation {
		t.Errorf("%s: the status speaks of generation %d, Ready of %d, of %d", s.why, installation.Status.ObservedGeneration,
			found.ObservedGeneration, installation.Generation)
	}
}

// The choice follows from names and seed alone. Red when the hash leaves something out, or is none.
func TestShares(t *testing.T) {
	count := func(seed string) (chosen int) {
		half := Share(seed, 20)
		for i := range 5000 {
			one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: NamespaceOf(Name(i))}}
			if half(one) {
				chosen++
			}
			if half(one) != Share(seed, 20)(one) {
				t.Fatal("the same question has two answers")
			}
		}
		return chosen
	}
	for _, seed := range []string{"a", "b", "c"} {
		if chosen := count(seed); chosen < 800 || chosen > 1200 {
			t.Errorf("%d of 5000 are 20 %%, by seed %q", chosen, seed)
		}
	}
}
