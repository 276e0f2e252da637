package health

import (
	"testing"
	"time"
)

// TestBeat (AG21) turns red when a Lease is stale by another clock than ours, or is not by ours.
func TestBeat(t *testing.T) {
	const staleAfter = time.Minute
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	type look struct {
		after   time.Duration // since the look before
		renewed time.Duration // from the first look; 0: there is no Lease
		stale   bool
		missing bool
	}
	for name, looks := range map[string][]look{
		"renewed":             {{0, -time.Second, false, false}, {50 * time.Second, 40 * time.Second, false, false}, {50 * time.Second, 90 * time.Second, false, false}},
		"stops":               {{0, -time.Second, false, false}, {60 * time.Second, -time.Second, false, false}, {time.Second, -time.Second, true, false}},
		"comes back":          {{0, -time.Second, false, false}, {61 * time.Second, -time.Second, true, false}, {time.Second, 62 * time.Second, false, false}},
		"in the future":       {{0, time.Hour, false, false}, {61 * time.Second, time.Hour, true, false}},
		"in the past":         {{0, -4 * time.Minute, false, false}, {30 * time.Second, -210 * time.Second, false, false}},
		"long ago":            {{0, -time.Hour, true, false}, {time.Second, -time.Hour, true, false}, {time.Second, -time.Hour + time.Minute, false, false}},
		"jumps back":          {{0, -time.Second, false, false}, {50 * time.Second, -time.Hour, false, false}, {61 * time.Second, -time.Hour, true, false}},
		"deleted":             {{0, -time.Second, false, false}, {time.Second, 0, false, true}, {time.Hour, 0, false, true}},
		"deleted, then again": {{0, -time.Second, false, false}, {time.Second, 0, false, true}, {time.Second, 2 * time.Second, false, false}},
		"an old one again":    {{0, 0, false, true}, {time.Second, -time.Hour, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			beat, at := Beat{}, now
			for number, one := range looks {
				at = at.Add(one.after)
				renewed := time.Time{}
				if one.renewed != 0 {
					renewed = now.Add(one.renewed)
				}
				beat = beat.See(renewed, at, now, staleAfter)
				if stale, missing := beat.IsStale(at, staleAfter), beat.IsMissing(); stale != one.stale || missing != one.missing {
					t.Errorf("look %d: stale %t, missing %t; want %t, %t", number, stale, missing, one.stale, one.missing)
				}
			}
		})
	}
}

// TestAnotherRevisionAwaitsItsBeat turns red when a Lease that was renewed before a revision was applied shows that this one is alive.
func TestAnotherRevisionAwaitsItsBeat(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if NewBeat().See(time.Time{}, now, now, time.Minute).See(now, now, now, time.Minute).IsAwaited() {
		t.Error("a Lease that comes after the revision waits for a second renewal")
	}
	beat := NewBeat()
	for _, at := range []time.Duration{0, time.Second, time.Hour} {
		if beat = beat.See(now, now.Add(at), now, time.Minute); !beat.IsAwaited() {
			t.Errorf("after %s one that did not move counts", at)
		}
	}
	later := now.Add(time.Hour)
	if beat = beat.See(later, later, now, time.Minute); beat.IsAwaited() || beat.IsStale(later, time.Minute) {
		t.Error("one that moved does not count")
	}
}

// TestAnOutageIsNoSilence turns red when a Lease is stale since nobody could renew it: the user cluster did not answer.
func TestAnOutageIsNoSilence(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	back := now.Add(time.Hour)
	beat := Beat{}.See(now, now, now, time.Minute).See(now, back, back, time.Minute)
	if beat.IsStale(back, time.Minute) || !beat.IsStale(back.Add(61*time.Second), time.Minute) {
		t.Errorf("after an outage it is %+v", beat)
	}
	dead := Beat{}.See(now, now, now, time.Minute).See(now, now.Add(2*time.Minute), now, time.Minute)
	if dead = dead.See(now, back, back, time.Minute); !dead.IsStale(back, time.Minute) {
		t.Error("one that was stale before is not")
	}
}

// TestALeaseIsReadTwiceWithinItsTime turns red when it is read more often, or not before it is stale.
func TestALeaseIsReadTwiceWithinItsTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if next := (Beat{}).Next(now, time.Minute); next != 0 {
		t.Errorf("one that nobody read waits %s", next)
	}
	beat := Beat{}.See(now, now, now, time.Minute)
	for after, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 10 * time.Second: 20 * time.Second, 30 * time.Second: 0, time.Hour: 0} {
		if next := beat.Next(now.Add(after), time.Minute); next != want {
			t.Errorf("after %s it waits %s, want %s", after, next, want)
		}
	}
}
