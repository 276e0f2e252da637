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
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// behind is a cluster with a pending write, whose move may take ten minutes.
func behind(changes ...func(*ClusterStatus)) ClusterStatus {
	found := ClusterStatus{ClusterStatus: rollout.ClusterStatus{State: v1.ClusterBehind}, deadline: 10 * time.Minute}
	for _, change := range changes {
		change(&found)
	}
	return found
}

// TestARefusedClusterHoldsItsPlaceForABoundedTime: an admission webhook refuses writes to one cluster. The test fails
// when the cluster is moving forever, when it is sick before its deadline or without the reason, when it is granted
// no retry or one at once, when a retry takes no place, and when a new revision or a successful write does not reset
// this.
func TestARefusedClusterHoldsItsPlaceForABoundedTime(t *testing.T) {
	var move Move
	expect := func(after time.Duration, state v1.ClusterState, again, holds bool) {
		t.Helper()
		move.SetStatus(behind(), time.Time{}, noon.Add(after))
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

// TestWhoHoldsAPlace fails when a cluster counts as behind that is being written, or may have been, in any revision;
// or when the place of such a cluster is taken back.
func TestWhoHoldsAPlace(t *testing.T) {
	late := behind(func(s *ClusterStatus) { s.State, s.Again = v1.ClusterSick, true })
	for _, test := range []struct {
		why          string
		found        ClusterStatus
		unknownSince time.Time
		do           func(*Move)
		want         v1.ClusterState
		holds        bool
		isTaken      bool
	}{
		{"nobody", behind(), time.Time{}, func(*Move) {}, v1.ClusterBehind, false, false},
		{"who was granted a move", behind(), time.Time{}, func(m *Move) { m.Grant(noon) }, v1.ClusterMoving, false, true},
		{"who is written, in a new revision too", behind(), time.Time{}, func(m *Move) { m.Grant(noon); m.Begin(); m.Void() }, v1.ClusterMoving, false, false},
		{"a write without an answer, in a new revision too", behind(), noon, func(m *Move) { m.Grant(noon); m.Void() }, v1.ClusterMoving, false, false},
		{"what waits for approval takes none", behind(func(s *ClusterStatus) { s.Held = true }), time.Time{}, func(m *Move) { m.Grant(noon) },
			v1.ClusterBehind, false, false},
		{"a sick one that gets what it lacks", late, time.Time{}, func(m *Move) { m.Grant(noon) }, v1.ClusterSick, true, true},
		{"a sick one that may have been written", late, noon, func(*Move) {}, v1.ClusterSick, true, false},
	} {
		var move Move
		move.SetStatus(test.found, test.unknownSince, noon)
		test.do(&move)
		move.SetStatus(test.found, test.unknownSince, noon)
		if move.State != test.want || move.Holds != test.holds {
			t.Errorf("%s: it is %s, holds %t", test.why, move.State, move.Holds)
		}
		if isTaken := move.Revoke(); isTaken != test.isTaken {
			t.Errorf("%s: taken back %t", test.why, isTaken)
		}
	}
}

// TestWhichWritesAreUnanswered fails when a refusal keeps a place like a write that may have been applied, or when a
// lost answer does not.
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

// TestTheGuardReportsWhomItConcerns fails when clusters are evaluated again although their removals wait, or don't, as
// before.
func TestTheGuardReportsWhomItConcerns(t *testing.T) {
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
		looked, held := guard.Evaluate(nil, word)
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

// TestTheGuardKnowsWhatClustersKeep: of two clusters one keeps an item, then none does, then one does again. The test
// fails when the last removal needs no approval, when one waits that is not the last, or when the clusters are not
// named.
func TestTheGuardKnowsWhatClustersKeep(t *testing.T) {
	var guard Guard
	web := Holding{Installations: 1, Keep: []string{"web"}}
	leaving := func(id string) []rollout.Removal { return []rollout.Removal{{ID: id, Item: "web"}} }
	guard.Note("a", web, nil)
	guard.Note("b", Holding{Installations: 1}, leaving("b"))
	check := func(why, want string) {
		t.Helper()
		guard.Evaluate(nil, "")
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

// TestATokenIsForWhatItWasShownWith: a removal waits, is approved, and one edit replaces it by another removal before
// it is done. The test fails when the approval of the first applies to the second, in the process that showed it.
func TestATokenIsForWhatItWasShownWith(t *testing.T) {
	var guard Guard
	volume := func(id string) []rollout.Removal { return []rollout.Removal{{ID: id, HasVolumes: true}} }
	for _, cluster := range []string{"a", "b", "c"} {
		guard.Note(cluster, Holding{Installations: 1}, nil)
	}
	guard.Note("a", Holding{Installations: 1}, volume("a"))
	guard.Evaluate(nil, "")
	word := guard.Pending.Word
	if guard.Evaluate(nil, word); len(guard.Waiting) != 0 {
		t.Fatalf("with its word %v wait", guard.Waiting)
	}
	guard.Note("a", Holding{Installations: 1}, nil)
	guard.Note("b", Holding{Installations: 1}, volume("b"))
	if guard.Evaluate(nil, word); !guard.Waiting["b"] || guard.Pending.Word == word {
		t.Errorf("another one goes by the word: waiting %v, %+v", guard.Waiting, guard.Pending)
	}
	var next Guard // of a process that starts: the shown status stays valid
	next.Note("b", Holding{Installations: 1}, volume("b"))
	if next.Evaluate(guard.Pending, guard.Pending.Word); len(next.Waiting) != 0 {
		t.Errorf("after a restart %v wait", next.Waiting)
	}
}

// TestAGrantIsForTheGroupThatMoves fails when a place stays granted in a group that is not the open one, or when the
// place is taken back of a cluster that is being written, or of a sick cluster that moves after all others.
func TestAGrantIsForTheGroupThatMoves(t *testing.T) {
	var move Move
	move.SetStatus(behind(), time.Time{}, noon)
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
	sick.SetStatus(behind(func(found *ClusterStatus) { found.State, found.Again = v1.ClusterSick, true }), time.Time{}, noon)
	sick.Grant(noon)
	if sick.Recall(1) {
		t.Error("a sick cluster's is taken back, which goes by no turn")
	}
}

// TestWhatWasWrittenHoldsItsPlaceUntilItIsCounted: approvals change between the write and the count. The test fails
// when Hold uses the objects from before the write, and so frees a place that is taken; or when the count does not
// end this.
func TestWhatWasWrittenHoldsItsPlaceUntilItIsCounted(t *testing.T) {
	var move Move
	move.SetStatus(behind(), time.Time{}, noon)
	move.Grant(noon)
	move.Begin()
	move.Done()
	move.End()
	move.Hold(nil, noon)
	if move.State != v1.ClusterMoving {
		t.Errorf("after its write it is %s", move.State)
	}
	move.SetStatus(behind(), time.Time{}, noon)
	if move.State != v1.ClusterBehind {
		t.Errorf("counted, it is %s", move.State)
	}
}

// TestAnUnknownWriteHoldsAPlaceForABoundedTime: a write had no answer, and the API server can't be asked. The test fails when
// another cluster gets the place while the write may be under way, when it is held longer than any move takes, or
// when its end starts no evaluation.
func TestAnUnknownWriteHoldsAPlaceForABoundedTime(t *testing.T) {
	var move Move
	move.SetStatus(behind(), time.Time{}, noon)
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
			move.SetStatus(behind(func(s *ClusterStatus) { s.soak = 90 * time.Second }), noon, at)
		} else {
			move.SetStatus(behind(), noon, at)
		}
		if move.State != test.state || move.Holds != test.holds || move.Next.Before(noon.Add(test.next)) && test.next > 0 && !test.holds {
			t.Errorf("%s later it is %s, holds %t, looked at again at %s", test.after, move.State, move.Holds, move.Next)
		}
	}
}

// TestWhatIsWrittenAtOnceIsTriedNowAndThen: a cluster takes no place, and can't be written. The test fails when it is
// not reported as sick after the time of a move, when it is then retried more often than every five minutes, and when
// it is not retried.
func TestWhatIsWrittenAtOnceIsTriedNowAndThen(t *testing.T) {
	for why, found := range map[string]ClusterStatus{
		"a new one":                      {ClusterStatus: rollout.ClusterStatus{State: v1.ClusterNew, Group: rollout.NoGroup}, AtOnce: true, deadline: 10 * time.Minute},
		"one whose version does not fit": behind(func(s *ClusterStatus) { s.AtOnce, s.Group = true, rollout.NoGroup }),
	} {
		var move Move
		try := func(after time.Duration) {
			t.Helper()
			move.SetStatus(found, time.Time{}, noon.Add(after))
			if !move.IsGranted() {
				t.Fatalf("%s: %s later it may not be written: %+v", why, after, move.ClusterStatus)
			}
			move.Begin()
			move.End()
			move.Refuse("web", errors.New("denied the request"), noon.Add(after))
			move.SetStatus(found, time.Time{}, noon.Add(after))
		}
		try(0)
		if move.State != found.State || !move.IsGranted() {
			t.Errorf("%s: refused once it is %s, may be written %t", why, move.State, move.IsGranted())
		}
		for after := 10 * time.Minute; after < 30*time.Minute; after += retryInterval {
			try(after)
			if move.State != v1.ClusterSick || move.IsGranted() || move.Trouble.Message != "it can't be written: denied the request" ||
				!move.Next.Equal(noon.Add(after+retryInterval)) {
				t.Errorf("%s: %s later it may be written %t, next at %s: %+v", why, after, move.IsGranted(), move.Next, move.ClusterStatus.ClusterStatus)
			}
		}
	}
}

// TestWhatIsWrittenAtOnceIsCountedFirst fails when a cluster that was written at once may be written again by its
// state from before.
func TestWhatIsWrittenAtOnceIsCountedFirst(t *testing.T) {
	var move Move
	unfit := behind(func(s *ClusterStatus) { s.AtOnce = true })
	move.SetStatus(unfit, time.Time{}, noon)
	move.Begin()
	move.End()
	move.Done()
	if move.IsGranted() {
		t.Error("it may be written before it is counted")
	}
	if move.SetStatus(unfit, time.Time{}, noon); !move.IsGranted() {
		t.Error("counted, it may not be written, and still does not fit")
	}
}
