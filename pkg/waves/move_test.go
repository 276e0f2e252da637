package waves

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// behind is a cluster that is to be written, where a move may take ten minutes.
func behind(changes ...func(*Standing)) Standing {
	found := Standing{Standing: rollout.Standing{State: v1.ClusterBehind}, deadline: 10 * time.Minute}
	for _, change := range changes {
		change(&found)
	}
	return found
}

// TestARefusedClusterHoldsItsPlaceForABoundedTime: an admission webhook refuses what is written to one cluster. Red when the cluster
// is moving for ever, when it is sick before its deadline or without the reason, when it is granted no further try or one at once,
// when such a try takes no place, and when a new revision or a write that is through forgets nothing.
func TestARefusedClusterHoldsItsPlaceForABoundedTime(t *testing.T) {
	var move Move
	expect := func(after time.Duration, state v1.ClusterState, again, holds bool) {
		t.Helper()
		move.Stand(behind(), time.Time{}, noon.Add(after))
		if move.State != state || move.Again != again || move.Holds != holds {
			t.Fatalf("%s later it is %s, again %t, holds %t", after, move.State, move.Again, move.Holds)
		}
	}
	try := func(after time.Duration) {
		move.Begin()
		move.End()
		move.Refuse("web", errors.New("denied the request"), noon.Add(after))
	}
	expect(0, v1.ClusterBehind, false, false)
	move.Grant(noon)
	expect(0, v1.ClusterMoving, false, false)
	try(time.Second)
	try(9 * time.Minute)
	expect(10*time.Minute, v1.ClusterMoving, false, false)
	if !move.Next.Equal(noon.Add(10*time.Minute + time.Second)) {
		t.Errorf("it is looked at again at %s", move.Next)
	}
	expect(10*time.Minute+time.Second, v1.ClusterSick, false, false)
	if move.IsGranted() || move.Trouble.Item != "web" || move.Trouble.Reason != v1.ReasonFailed ||
		move.Trouble.Message != "it can't be written: denied the request" || !move.Next.Equal(noon.Add(14*time.Minute)) {
		t.Errorf("granted %t, tried again at %s: %+v", move.IsGranted(), move.Next, move.Trouble)
	}
	expect(14*time.Minute, v1.ClusterSick, true, false)
	move.Grant(noon.Add(14 * time.Minute))
	expect(14*time.Minute, v1.ClusterSick, false, true)
	try(14 * time.Minute)
	expect(14*time.Minute, v1.ClusterSick, false, false)
	expect(19*time.Minute, v1.ClusterSick, true, false)
	move.Grant(noon.Add(19 * time.Minute))
	move.Void()
	expect(19*time.Minute, v1.ClusterBehind, false, false)
	move.Grant(noon.Add(19 * time.Minute))
	try(20 * time.Minute)
	move.Done()
	expect(40*time.Minute, v1.ClusterBehind, false, false)
}

// TestWhoHoldsAPlace turns red when a cluster counts as behind that is written, or may have been, in whatever revision; or when a place
// is taken back from one.
func TestWhoHoldsAPlace(t *testing.T) {
	late := behind(func(s *Standing) { s.State, s.Again = v1.ClusterSick, true })
	for _, test := range []struct {
		why       string
		found     Standing
		doubtedAt time.Time
		do        func(*Move)
		want      v1.ClusterState
		holds     bool
		isTaken   bool
	}{
		{"nobody", behind(), time.Time{}, func(*Move) {}, v1.ClusterBehind, false, false},
		{"who was granted a move", behind(), time.Time{}, func(m *Move) { m.Grant(noon) }, v1.ClusterMoving, false, true},
		{"who is written, in a new revision too", behind(), time.Time{}, func(m *Move) { m.Grant(noon); m.Begin(); m.Void() }, v1.ClusterMoving, false, false},
		{"a write without an answer, in a new revision too", behind(), noon, func(m *Move) { m.Grant(noon); m.Void() }, v1.ClusterMoving, false, false},
		{"what waits for approval takes none", behind(func(s *Standing) { s.Held = true }), time.Time{}, func(m *Move) { m.Grant(noon) },
			v1.ClusterBehind, false, false},
		{"a sick one that gets what it lacks", late, time.Time{}, func(m *Move) { m.Grant(noon) }, v1.ClusterSick, true, true},
		{"a sick one that may have been written", late, noon, func(*Move) {}, v1.ClusterSick, true, false},
	} {
		var move Move
		move.Stand(test.found, test.doubtedAt, noon)
		test.do(&move)
		move.Stand(test.found, test.doubtedAt, noon)
		if move.State != test.want || move.Holds != test.holds {
			t.Errorf("%s: it is %s, holds %t", test.why, move.State, move.Holds)
		}
		if isTaken := move.TakeBack(); isTaken != test.isTaken {
			t.Errorf("%s: taken back %t", test.why, isTaken)
		}
	}
}

// TestWhichWritesAreUnanswered turns red when a refusal keeps a place as if the write might have been carried out, or when a lost answer does not.
func TestWhichWritesAreUnanswered(t *testing.T) {
	resource := schema.GroupResource{Resource: "addoninstallations"}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errors.New("EOF"), true},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		{apierrors.NewTimeoutError("timeout", 1), true},
		{apierrors.NewForbidden(resource, "web", errors.New("exceeded quota")), false},
		{fmt.Errorf("applying: %w", apierrors.NewInvalid(schema.GroupKind{}, "web", nil)), false},
		{apierrors.NewConflict(resource, "web", errors.New("changed")), false},
		{apierrors.NewTooManyRequests("later", 1), false},
	} {
		if got := IsUnanswered(test.err); got != test.want {
			t.Errorf("%v: %t", test.err, got)
		}
	}
}

// TestTheGuardTellsWhomItConcerns turns red when clusters are looked at again whose removals wait, or don't, as before.
func TestTheGuardTellsWhomItConcerns(t *testing.T) {
	var guard Guard
	removal := func(id string, hasVolumes bool) []rollout.Removal {
		return []rollout.Removal{{ID: id, HasVolumes: hasVolumes}}
	}
	for i := range 10 {
		guard.Note(fmt.Sprint("has-", i), Holding{Installations: 1}, nil)
	}
	guard.Note("a", Holding{Installations: 1}, removal("a", false))
	guard.Note("b", Holding{Installations: 1}, removal("b", true))
	check := func(word, wantLooked, wantHeld string) {
		t.Helper()
		looked, held := guard.Judge(nil, word)
		if fmt.Sprint(looked) != wantLooked || fmt.Sprint(held) != wantHeld {
			t.Errorf("looked at %v, held %v, want %s and %s", looked, held, wantLooked, wantHeld)
		}
	}
	check("", "[a b]", "[b]")
	check("", "[]", "[]")
	guard.Note("c", Holding{Installations: 1}, removal("c", true))
	check("", "[c]", "[c]")
	check(guard.Pending.Word, "[]", "[b c]")
	guard.Note("b", Holding{}, nil)
	check(guard.Pending.Word, "[]", "[]")
	guard.Note("d", Holding{Installations: 1}, removal("d", true))
	check("", "[d]", "[c d]")
	if held := guard.Lift(); fmt.Sprint(held) != "[c d]" || len(guard.Waiting) > 0 {
		t.Errorf("lifted for %v, waiting %v", held, guard.Waiting)
	}
}

// TestTheGuardKnowsWhatClustersKeep: of two clusters one keeps an item, then none does, then one does again. Red when the removal that is left
// goes without approval, when one waits that is not the last, or when the clusters are not named.
func TestTheGuardKnowsWhatClustersKeep(t *testing.T) {
	var guard Guard
	web := Holding{Installations: 1, Keep: []string{"web"}}
	leaving := func(id string) []rollout.Removal { return []rollout.Removal{{ID: id, Item: "web"}} }
	guard.Note("a", web, nil)
	guard.Note("b", Holding{Installations: 1}, leaving("b"))
	check := func(why, want string) {
		t.Helper()
		guard.Judge(nil, "")
		reason, message := guard.Ready(rollout.Decision{Reason: v1.ReasonComplete, Message: "all"})
		if want == "" && reason != v1.ReasonComplete || want != "" && (reason != v1.ReasonRemovalNeedsApproval || !strings.Contains(message, want)) {
			t.Errorf("%s: %s: %s", why, reason, message)
		}
		if want != "" && (guard.Pending == nil || !strings.HasSuffix(want, ": "+strings.Join(guard.Pending.Clusters, ", "))) {
			t.Errorf("%s: status.removal is %+v", why, guard.Pending)
		}
	}
	check("one keeps it", "")
	guard.Note("a", Holding{Installations: 1}, leaving("a"))
	check("none keeps it", "2 removals wait for approval in: a, b")
	guard.Note("b", Holding{}, nil)
	check("one is gone", "1 removal waits for approval in: a")
	guard.Note("c", Holding{Keep: []string{"web"}}, nil)
	check("a new one is to have it", "")
	guard.Note("c", Holding{}, nil)
	check("that is gone", "1 removal waits for approval in: a")
	guard.Note("a", web, nil)
	check("it stays after all", "")
}

// TestAWordIsForWhatItWasShownWith: a removal waits, is approved, and is swapped for another one before it went, by one edit. Red when that
// one goes by the word of the first, in the process that showed it.
func TestAWordIsForWhatItWasShownWith(t *testing.T) {
	var guard Guard
	volume := func(id string) []rollout.Removal { return []rollout.Removal{{ID: id, HasVolumes: true}} }
	for _, cluster := range []string{"a", "b", "c"} {
		guard.Note(cluster, Holding{Installations: 1}, nil)
	}
	guard.Note("a", Holding{Installations: 1}, volume("a"))
	guard.Judge(nil, "")
	word := guard.Pending.Word
	if guard.Judge(nil, word); len(guard.Waiting) != 0 {
		t.Fatalf("with its word %v wait", guard.Waiting)
	}
	guard.Note("a", Holding{Installations: 1}, nil)
	guard.Note("b", Holding{Installations: 1}, volume("b"))
	if guard.Judge(nil, word); !guard.Waiting["b"] || guard.Pending.Word == word {
		t.Errorf("another one goes by the word: waiting %v, %+v", guard.Waiting, guard.Pending)
	}
	var next Guard // of a process that begins: what was shown goes on
	next.Note("b", Holding{Installations: 1}, volume("b"))
	if next.Judge(guard.Pending, guard.Pending.Word); len(next.Waiting) != 0 {
		t.Errorf("after a restart %v wait", next.Waiting)
	}
}

// TestAGrantIsForTheGroupThatMoves turns red when a place stays granted in a group that is not the open one, or when one is taken back
// that is written, or that a sick cluster has after all others.
func TestAGrantIsForTheGroupThatMoves(t *testing.T) {
	var move Move
	move.Stand(behind(), time.Time{}, noon)
	move.Grant(noon)
	if move.Recall(0) || !move.IsGranted() {
		t.Error("it is taken back in the group that moves")
	}
	move.Begin()
	if move.Recall(1) || move.Recall(rollout.NoGroup) {
		t.Error("it is taken back while it is written")
	}
	move.End()
	if !move.Recall(1) || move.IsGranted() {
		t.Error("it stays granted while another group moves")
	}
	var sick Move
	sick.Stand(behind(func(found *Standing) { found.State, found.Again = v1.ClusterSick, true }), time.Time{}, noon)
	sick.Grant(noon)
	if sick.Recall(1) {
		t.Error("a sick cluster's is taken back, which goes by no turn")
	}
}

// TestWhatWasWrittenHoldsItsPlaceUntilItIsCounted: approvals change between the write and the count. Red when Hold takes the objects of
// before the write for the present ones, and so frees a place that is taken; or when the count does not end it.
func TestWhatWasWrittenHoldsItsPlaceUntilItIsCounted(t *testing.T) {
	var move Move
	move.Stand(behind(), time.Time{}, noon)
	move.Grant(noon)
	move.Begin()
	move.Done()
	move.End()
	move.Hold(nil, noon)
	if move.State != v1.ClusterMoving {
		t.Errorf("after its write it is %s", move.State)
	}
	move.Stand(behind(), time.Time{}, noon)
	if move.State != v1.ClusterBehind {
		t.Errorf("counted, it is %s", move.State)
	}
}

// TestADoubtHoldsAPlaceForABoundedTime: a write had no answer, and the API server can't be asked. Red when the place is given to another
// while the write may be under way, when it is held longer than any move takes, or when nobody looks at the end of it.
func TestADoubtHoldsAPlaceForABoundedTime(t *testing.T) {
	var move Move
	move.Stand(behind(), time.Time{}, noon)
	move.Grant(noon)
	move.Begin()
	move.End()
	move.Refuse("web", errors.New("EOF"), noon)
	for _, test := range []struct {
		after time.Duration
		state v1.ClusterState
		holds bool
		next  time.Duration
	}{
		{0, v1.ClusterMoving, false, 10 * time.Minute},
		{11 * time.Minute, v1.ClusterSick, true, 16 * time.Minute},
		{21 * time.Minute, v1.ClusterSick, true, 21*time.Minute + 30*time.Second},
		{21*time.Minute + 30*time.Second, v1.ClusterSick, false, 26 * time.Minute},
	} {
		if at := noon.Add(test.after); test.after > 0 {
			move.Refuse("web", errors.New("EOF"), at)
			move.Stand(behind(func(s *Standing) { s.soak = 90 * time.Second }), noon, at)
		} else {
			move.Stand(behind(), noon, at)
		}
		if move.State != test.state || move.Holds != test.holds || move.Next.Before(noon.Add(test.next)) && test.next > 0 && !test.holds {
			t.Errorf("%s later it is %s, holds %t, looked at again at %s", test.after, move.State, move.Holds, move.Next)
		}
	}
}

// TestWhatIsWrittenAtOnceIsTriedNowAndThen: a cluster takes no place, and can't be written. Red when it is not told as sick once a move's
// time is over, when it is tried more often than every five minutes then, and when it is not tried again.
func TestWhatIsWrittenAtOnceIsTriedNowAndThen(t *testing.T) {
	for why, found := range map[string]Standing{
		"a new one":                      {Standing: rollout.Standing{State: v1.ClusterNew, Group: rollout.NoGroup}, AtOnce: true, deadline: 10 * time.Minute},
		"one whose version does not fit": behind(func(s *Standing) { s.AtOnce, s.Group = true, rollout.NoGroup }),
	} {
		var move Move
		try := func(after time.Duration) {
			t.Helper()
			move.Stand(found, time.Time{}, noon.Add(after))
			if !move.IsGranted() {
				t.Fatalf("%s: %s later it may not be written: %+v", why, after, move.Standing)
			}
			move.Begin()
			move.End()
			move.Refuse("web", errors.New("denied the request"), noon.Add(after))
			move.Stand(found, time.Time{}, noon.Add(after))
		}
		try(0)
		if move.State != found.State || !move.IsGranted() {
			t.Errorf("%s: refused once it is %s, may be written %t", why, move.State, move.IsGranted())
		}
		for after := 10 * time.Minute; after < 30*time.Minute; after += retryInterval {
			try(after)
			if move.State != v1.ClusterSick || move.IsGranted() || move.Trouble.Message != "it can't be written: denied the request" ||
				!move.Next.Equal(noon.Add(after+retryInterval)) {
				t.Errorf("%s: %s later it may be written %t, next at %s: %+v", why, after, move.IsGranted(), move.Next, move.Standing.Standing)
			}
		}
	}
}

// TestWhatIsWrittenAtOnceIsCountedFirst turns red when a cluster that was written at once may be written by what it was before.
func TestWhatIsWrittenAtOnceIsCountedFirst(t *testing.T) {
	var move Move
	unfit := behind(func(s *Standing) { s.AtOnce = true })
	move.Stand(unfit, time.Time{}, noon)
	move.Begin()
	move.End()
	move.Done()
	if move.IsGranted() {
		t.Error("it may be written before it is counted")
	}
	if move.Stand(unfit, time.Time{}, noon); !move.IsGranted() {
		t.Error("counted, it may not be written, and still does not fit")
	}
}
