package seed

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Red when sources are given to a part of the seeds before all were asked, when a seed that gives no
// sign keeps its share, or one that does loses it.
func TestCheckersThatGiveNoSignLoseTheirShare(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	checkers := NewCheckers(clock, time.Minute)
	expect := func(want string, all bool) {
		t.Helper()
		if names, asked := checkers.Names(); fmt.Sprint(names) != want || asked != all {
			t.Errorf("checkers are %v, all %t; want %s, %t", names, asked, want, all)
		}
	}
	checkers.Only([]string{"north", "south", "away"})
	checkers.saw("north", "1")
	if checkers.tried("north") || checkers.tried("away") {
		t.Error("all are asked, but for south")
	}
	expect("[]", false)
	checkers.saw("south", "1")
	if !checkers.tried("south") || checkers.tried("south") {
		t.Error("south is not the last one that was asked, once")
	}
	expect("[north south]", true)
	clock.Step(10 * time.Minute)
	checkers.saw("north", "2")
	checkers.saw("south", "1")
	clock.Step(6 * time.Minute)
	expect("[north]", true)
	checkers.saw("south", "2")
	expect("[north south]", true)
	checkers.forget("south")
	expect("[north]", true)
	checkers.Only([]string{"north", "new"})
	expect("[]", false)
	checkers.tried("new")
	expect("[north]", true)
}

// Red when a seed that is new has no time for its first report, when one that was there before has more, or when it never ends.
func TestFirstReportsAreAwaited(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	checkers := NewCheckers(clock, time.Minute)
	expect := func(want time.Duration) {
		t.Helper()
		if got := checkers.Awaited(); got != want {
			t.Errorf("reports are awaited for %s, want %s", got, want)
		}
	}
	checkers.Only([]string{"north"})
	expect(time.Minute)
	clock.Step(40 * time.Second)
	checkers.Only([]string{"north"})
	expect(20 * time.Second)
	clock.Step(time.Hour)
	expect(0)
	checkers.Only([]string{"north", "south"})
	expect(time.Minute)
	checkers.Only([]string{"south"})
	clock.Step(time.Minute)
	expect(0)
}
