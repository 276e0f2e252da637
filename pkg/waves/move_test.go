package waves

import (
	"errors"
	"fmt"
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
		move.Stand(behind(), false, noon.Add(after))
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
		why     string
		found   Standing
		doubted bool
		do      func(*Move)
		want    v1.ClusterState
		holds   bool
		isTaken bool
	}{
		{"nobody", behind(), false, func(*Move) {}, v1.ClusterBehind, false, false},
		{"who was granted a move", behind(), false, func(m *Move) { m.Grant(noon) }, v1.ClusterMoving, false, true},
		{"who is written, in a new revision too", behind(), false, func(m *Move) { m.Grant(noon); m.Begin(); m.Void() }, v1.ClusterMoving, false, false},
		{"a write without an answer, in a new revision too", behind(), true, func(m *Move) { m.Grant(noon); m.Void() }, v1.ClusterMoving, false, false},
		{"what waits for approval takes none", behind(func(s *Standing) { s.Held = true }), false, func(m *Move) { m.Grant(noon) },
			v1.ClusterBehind, false, false},
		{"a sick one that gets what it lacks", late, false, func(m *Move) { m.Grant(noon) }, v1.ClusterSick, true, true},
		{"a sick one that may have been written", late, true, func(*Move) {}, v1.ClusterSick, true, false},
	} {
		var move Move
		move.Stand(test.found, test.doubted, noon)
		test.do(&move)
		move.Stand(test.found, test.doubted, noon)
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
		guard.Note(fmt.Sprint("has-", i), 1, nil)
	}
	guard.Note("a", 1, removal("a", false))
	guard.Note("b", 1, removal("b", true))
	check := func(word, wantLooked, wantHeld string) {
		t.Helper()
		looked, held := guard.Judge(nil, word)
		if fmt.Sprint(looked) != wantLooked || fmt.Sprint(held) != wantHeld {
			t.Errorf("looked at %v, held %v, want %s and %s", looked, held, wantLooked, wantHeld)
		}
	}
	check("", "[a b]", "[b]")
	check("", "[]", "[]")
	guard.Note("c", 1, removal("c", true))
	check("", "[c]", "[c]")
	check(guard.Pending.Word, "[]", "[b c]")
	guard.Note("b", 0, nil)
	check(guard.Pending.Word, "[]", "[]")
	guard.Note("d", 1, removal("d", true))
	check("", "[d]", "[c d]")
	if held := guard.Lift(); fmt.Sprint(held) != "[c d]" || len(guard.Waiting) > 0 {
		t.Errorf("lifted for %v, waiting %v", held, guard.Waiting)
	}
}

// TestWhatWasWrittenHoldsItsPlaceUntilItIsCounted: approvals change between the write and the count. Red when Hold takes the objects of
// before the write for the present ones, and so frees a place that is taken; or when the count does not end it.
func TestWhatWasWrittenHoldsItsPlaceUntilItIsCounted(t *testing.T) {
	var move Move
	move.Stand(behind(), false, noon)
	move.Grant(noon)
	move.Begin()
	move.Done()
	move.End()
	move.Hold(nil, noon)
	if move.State != v1.ClusterMoving {
		t.Errorf("after its write it is %s", move.State)
	}
	move.Stand(behind(), false, noon)
	if move.State != v1.ClusterBehind {
		t.Errorf("counted, it is %s", move.State)
	}
}
