package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// has is a set with so many installations, of items that no removal names.
func has(installations int) rollout.Holdings { return rollout.Holdings{Installations: installations} }

// removals are those from number from to number before; some have volumes.
func removals(from, before int, volumes ...int) (made []rollout.Removal) {
	for i := from; i < before; i++ {
		removal := rollout.Removal{ID: fmt.Sprintf("uid-%d", i)}
		for _, one := range volumes {
			removal.HasVolumes = removal.HasVolumes || one == i
		}
		made = append(made, removal)
	}
	return made
}

// TestWhichRemovalsWait fails when many removals begin without approval, a few wait, or volumes are ignored.
func TestWhichRemovalsWait(t *testing.T) {
	for _, test := range []struct {
		why           string
		removals      []rollout.Removal
		have, waiting int
	}{
		{"nothing", nil, 10, 0},
		{"2 of 10 go", removals(0, 2), 10, 0},
		{"6 of 10 wait", removals(0, 6), 10, 6},
		{"five go, however few there are", removals(0, 5), 5, 0},
		{"half of them go", removals(0, 50), 100, 0},
		{"more than half wait", removals(0, 51), 100, 51},
		{"all", removals(0, 6), 6, 6},
		{"volumes wait by themselves", removals(0, 2, 1), 10, 1},
		{"and with many", removals(0, 6, 1, 2), 10, 6},
	} {
		got := rollout.GuardRemovals(test.removals, has(test.have), rollout.GuardedRemovals{}, "")
		if len(got.Waiting) != test.waiting || (got.Pending != nil) != (test.waiting > 0) {
			t.Errorf("%s: %d wait, %+v", test.why, len(got.Waiting), got.Pending)
			continue
		}
		if got.Pending == nil {
			continue
		}
		if int(got.Pending.Count) != test.waiting || len(got.Pending.Word) > 64 {
			t.Errorf("%s: %+v", test.why, got.Pending)
		}
		if approved := rollout.GuardRemovals(test.removals, has(test.have), got, got.Pending.Word); len(approved.Waiting) > 0 {
			t.Errorf("%s: %d wait with the word", test.why, len(approved.Waiting))
		}
	}
}

// TestTheLastOfAnItemWaits fails when the last installations of an item are removed without approval, when others
// wait, or when removals without an item do.
func TestTheLastOfAnItemWaits(t *testing.T) {
	of := func(items ...string) (made []rollout.Removal) {
		for i, item := range items {
			made = append(made, rollout.Removal{ID: fmt.Sprintf("uid-%d", i), Item: item})
		}
		return made
	}
	for _, test := range []struct {
		why     string
		leaving []rollout.Removal
		keep    map[string]int
		want    string
	}{
		{"the only one", of("web"), nil, "uid-0"},
		{"all of a few", of("web", "web", "web"), nil, "uid-0 uid-1 uid-2"},
		{"all but one", of("web", "web"), map[string]int{"web": 1}, ""},
		{"one item of two", of("web", "logs"), map[string]int{"web": 3}, "uid-1"},
		{"an item that got another name", of("web"), map[string]int{"wep": 1}, "uid-0"},
		{"a whole set", of("web", "logs"), map[string]int{}, "uid-0 uid-1"},
		{"what goes for other reasons", of("", ""), nil, ""},
	} {
		before := rollout.GuardRemovals(test.leaving, rollout.Holdings{Installations: 9, Keep: test.keep}, rollout.GuardedRemovals{}, "")
		if got := strings.Join(slices.Sorted(maps.Keys(before.Waiting)), " "); got != test.want {
			t.Errorf("%s: %q wait, want %q", test.why, got, test.want)
		}
		if before.Pending == nil {
			continue
		}
		after := rollout.GuardRemovals(test.leaving, rollout.Holdings{Installations: 9, Keep: test.keep}, before, before.Pending.Word)
		if len(after.Waiting) != 0 {
			t.Errorf("%s: with the token %v wait", test.why, after.Waiting)
		}
	}
}

// TestWaitingRemovalsAreNamed fails when a text counts or names other clusters than those that wait.
func TestWaitingRemovalsAreNamed(t *testing.T) {
	for want, names := range map[string][]string{
		"0 removals wait for approval":                              nil, // a seed that names none
		"2 removals wait for approval":                              {"", ""},
		"3 removals wait for approval in: a":                        {"", "a", ""},
		"1 removal waits for approval in: amber":                    {"amber"},
		"2 removals wait for approval in: a, b":                     {"a", "b"},
		"6 removals wait for approval in: a, b, c, d, e and others": {"a", "b", "c", "d", "e", "f"},
	} {
		if got := rollout.WaitingText(len(names), names); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAnApprovalCoversWhatWasShown fails when a token covers more than was shown, changes while removals continue, or is
// valid another time.
func TestAnApprovalCoversWhatWasShown(t *testing.T) {
	shown := rollout.GuardRemovals(removals(0, 60), has(100), rollout.GuardedRemovals{}, "").Pending
	word := shown.Word
	for left := 60; left >= 45; left -= 5 { // ten at a time; the status is written after each
		got := rollout.GuardRemovals(removals(60-left, 60), has(40+left), rollout.GuardedRemovals{Pending: shown}, word)
		if len(got.Waiting) > 0 {
			t.Fatalf("with %d left %d wait", left, len(got.Waiting))
		}
		if shown = got.Pending; shown == nil || shown.Word != word || int(shown.Count) != left {
			t.Fatalf("with %d left the status has %+v", left, shown)
		}
	}
	if got := rollout.GuardRemovals(removals(20, 70), has(60), rollout.GuardedRemovals{Pending: shown}, word); len(got.Waiting) != 50 || got.Pending.Word == word {
		t.Errorf("more than was left: %d wait, %+v", len(got.Waiting), got.Pending)
	}
	if got := rollout.GuardRemovals(removals(60, 80), has(30), rollout.GuardedRemovals{}, word); len(got.Waiting) != 20 || got.Pending.Word == word {
		t.Errorf("another time: %d wait, %+v", len(got.Waiting), got.Pending)
	}
	again := rollout.GuardRemovals(removals(0, 60), has(100), rollout.GuardedRemovals{}, "").Pending
	if again.Word != word {
		t.Errorf("after a restart before the status was written the word is %s, not %s", again.Word, word)
	}
	for _, wrong := range []string{"60", "true", strings.ToUpper(word), word + " ", strings.Repeat(word, 10000)} {
		if got := rollout.GuardRemovals(removals(0, 60), has(100), rollout.GuardedRemovals{}, wrong); len(got.Waiting) != 60 {
			t.Errorf("%.20q lets %d go", wrong, 60-len(got.Waiting))
		}
	}
}

// TestAnApprovalCoversNothingElse: An approved token is for the removals that were shown with it: an edit reverts these
// and unselects as many other clusters, before any was removed. The test fails when the token applies to those.
func TestAnApprovalCoversNothingElse(t *testing.T) {
	shown := rollout.GuardRemovals(removals(0, 1, 0), has(10), rollout.GuardedRemovals{}, "")
	word := shown.Pending.Word
	if same := rollout.GuardRemovals(removals(0, 1, 0), has(10), shown, word); len(same.Waiting) != 0 || same.Pending.Word != word {
		t.Errorf("what was shown: %d wait, %+v", len(same.Waiting), same.Pending)
	} else if other := rollout.GuardRemovals(removals(1, 2, 1), has(10), same, word); len(other.Waiting) != 1 || other.Pending.Word == word {
		t.Errorf("another one: %d wait, %+v", len(other.Waiting), other.Pending)
	}
	many := rollout.GuardRemovals(removals(0, 10), has(10), rollout.GuardedRemovals{}, "")
	word = many.Pending.Word
	fewer := rollout.GuardRemovals(removals(3, 10), has(7), many, word)
	if len(fewer.Waiting) != 0 || fewer.Pending.Count != 7 {
		t.Errorf("of what was shown: %d wait, %+v", len(fewer.Waiting), fewer.Pending)
	}
	if other := rollout.GuardRemovals(removals(4, 11), has(7), fewer, word); len(other.Waiting) != 7 || other.Pending.Word == word {
		t.Errorf("one of seven is another: %d wait, %+v", len(other.Waiting), other.Pending)
	}
}

// TestTheFleetsToken fails when a token of a seed is left out or differs from the seed's, when an invalid one is
// shown, or when waiting removals of a seed that does not count are.
func TestTheFleetsToken(t *testing.T) {
	row := func(seed, word string, count int32) rollout.Row {
		return rollout.Row{Seed: seed, Removal: &v1.PendingRemoval{Word: word, Count: count, Clusters: []string{"of-" + seed}}}
	}
	word := func(rows ...rollout.Row) *v1.PendingRemoval {
		fleet := rollout.Fleet{Counted: rows}
		return fleet.Removal()
	}
	if got := word(rollout.Row{Seed: "a"}, row("b", "6-x", 6)); got == nil || !cmp.Equal(*got, v1.PendingRemoval{Word: "6-x", Count: 6, Clusters: []string{"of-b"}}) {
		t.Errorf("of one: %+v", got)
	}
	both, turned := word(row("a", "7-y", 7), row("b", "6-x", 6)), word(row("b", "6-x", 6), row("a", "7-y", 7))
	if both == nil || both.Count != 13 || both.Word != "7-y,6-x" || turned.Word != both.Word || !slices.Equal(both.Clusters, []string{"of-a", "of-b"}) {
		t.Errorf("of two: %+v, %+v", both, turned)
	}
	if fewer := word(row("a", "7-y", 4), row("b", "6-x", 6)); fewer.Count != 10 || fewer.Word != both.Word {
		t.Errorf("while they become fewer the word is %+v", fewer)
	}
	for _, odd := range []string{"", "a\nb", "a,b", "a b", "$(a)", "A", strings.Repeat("x", 65)} {
		if got := word(row("a", odd, 6), row("b", "6-x", 6)); got.Word != "6-x" || got.Count != 6 {
			t.Errorf("%.10q: %+v", odd, got)
		}
		if rollout.Approves(odd, odd) {
			t.Errorf("%.10q approves", odd)
		}
	}
	if got := word(row("a", "1-x", -7), row("b", "1-y", 1<<31-1), row("c", "1-z", 9)); got.Count != 1<<31-1 {
		t.Errorf("odd counts: %+v", got)
	}
	var many []rollout.Row
	for i := range 40 {
		many = append(many, row(fmt.Sprintf("seed-%02d", i), strings.Repeat("x", 64), 2))
	}
	if got := word(many...); len(got.Word) > 1024 || got.Count != 2*15 || len(got.Clusters) != rollout.RemovalClusters {
		t.Errorf("of many: %d bytes, count %d, clusters %v", len(got.Word), got.Count, got.Clusters)
	}
	made := strategy(t, &v1.Rollout{Pace: v1.Pace{ProgressDeadline: within(30)}})
	here, away := rowOf(t, made, "a", "current"), rowOf(t, made, "b", "current")
	here.Removal, away.Removal = &v1.PendingRemoval{Word: "6-x", Count: 6}, &v1.PendingRemoval{Word: "7-y", Count: 7}
	away.State, away.Since = rollout.RowUnreached, time.Unix(0, 0).Add(-30*time.Minute)
	fleet := rollout.SelectRows(made, []rollout.Row{here, away}, time.Unix(0, 0))
	if got := fleet.Removal(); got == nil || got.Word != "6-x" || got.Count != 6 {
		t.Errorf("of one that counts and one that is left out: %+v", got)
	}
}
