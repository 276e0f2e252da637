package distributor

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Red when seeds lose what was generated from a repository before a catalogue of its name was read, or before the time is over; when it stays
// for longer, and when no pass follows at the end of the time.
func TestSeedsKeepARepositoryForABoundedTime(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	expect := func(why string, after, recheck time.Duration, want ...string) {
		t.Helper()
		a.clock.Step(after)
		f := &facts{}
		if outcome := a.r.readAll(t.Context(), f, slices.Clone(a.all)); outcome != nil {
			t.Fatal(outcome)
		}
		f.recheck = 0 // of the pace
		held := slices.Collect(maps.Keys(a.r.returning(f)))
		if !slices.Equal(held, want) || f.recheck != recheck {
			t.Errorf("%s: %v stay, want %v; the next pass is in %s, want %s", why, held, want, f.recheck, recheck)
		}
	}
	inGit := func(uid types.UID, revision string) func(*v1.AddonCatalogue) {
		return func(object *v1.AddonCatalogue) {
			object.UID, object.CreationTimestamp = uid, metav1.NewTime(a.clock.Now())
			object.Spec.Git, object.Status.Revision = &v1.CatalogueGit{Remote: "https://git.example.com/team.git"}, revision
		}
	}
	a.put("team", 0, 0, inGit("1", "abc"))
	expect("it was read", 0, 0)
	a.drop("team")
	expect("it is gone", time.Hour, 30*time.Second, "team")
	expect("it is gone", 29*time.Second, time.Second, "team")
	expect("it is gone for good", time.Second, 0)

	a.put("team", 0, 0, inGit("2", ""))
	expect("it is made again", 0, 10*time.Minute, "team")
	expect("it is not read", 9*time.Minute, time.Minute, "team")
	expect("it is never read", time.Minute, 0)
	a.drop("team")
	expect("it is gone", 0, 30*time.Second, "team")
	a.put("team", 0, 0, inGit("3", "def"))
	expect("another one was read", time.Second, 0)

	a.r.pace.debts = map[account]debt{newcomers: {bytes: 1 << 40}}
	a.put("team-web", 1, 1, generatedFrom("team"))
	expect("one of its add-ons waits", 0, 10*time.Minute-time.Second, "team")
	a.r.pace.debts = nil
	expect("all were read", 0, 0)

	a.drop("team-web")
	expect("a commit took it out", 0, 0)
	a.drop("team")
	expect("it is gone", 0, 30*time.Second, "team")
	a.put("team", 1, 1, func(object *v1.AddonCatalogue) { object.UID = "4" })
	expect("one that is not in git is in its place", 0, 0)
	a.drop("team")
	expect("what people write goes at once", 0, 0)
}
