package store_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// Red when fetches of an owner whose own content is all being read displace that of an owner with less.
func TestFetchesDisplaceNothingOfOwnersWithLess(t *testing.T) {
	source := &greedy{content: 4}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		small := []fetch.Reference{of("small", 0), of("small", 1)}
		for _, reference := range small {
			if _, err := settle(opened, reference); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // so that the store sees that it is not read any more
		}
		var read []fetch.Snapshot
		for i := range 10 {
			snapshot, err := settle(opened, of("large", i))
			if err != nil {
				if !errors.Is(err, fetch.ErrNoSpace) {
					t.Fatal(err)
				}
				break
			}
			read = append(read, snapshot)
		}
		if len(read) < 4 || len(read) > 5 {
			t.Errorf("the large owner could take %d contents", len(read))
		}
		if left := kept(opened, small...); len(left) < 2 {
			t.Errorf("of the small owner %v are kept", left)
		}
		runtime.KeepAlive(read)
	})
}

// Red when what is being fetched does not count to what its owner has: one fetch displaces all others' content.
func TestWhatIsBeingFetchedCountsToItsOwner(t *testing.T) {
	source := &greedy{content: 4}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		small := []fetch.Reference{of("small", 0), of("small", 1)}
		for _, reference := range small {
			if _, err := settle(opened, reference); err != nil {
				t.Fatal(err)
			}
		}
		source.content = 29
		if _, err := settle(opened, of("large", 0)); !errors.Is(err, fetch.ErrNoSpace) {
			t.Errorf("got %v", err)
		}
		if left := kept(opened, small...); len(left) < 2 {
			t.Errorf("of the small owner %v are kept", left)
		}
	})
}

// Red when the oldest fetch, that never goes on, keeps out all others of a store that is not larger than one fetch.
func TestASlowFetchLeavesHalfOfTheSpace(t *testing.T) {
	source := &greedy{content: 12, stuck: "slow"}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		if _, err := opened.Get(of("slow", 0), "x", nil); !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := settle(opened, of("other", 0)); err != nil {
			t.Error(err)
		}
	})
}

// Red when space stays reserved for a try that has all of its content already.
func TestWhatIsLookedAtGrowsNoMore(t *testing.T) {
	source := &greedy{content: 12}
	bubble(t, store.Options{MaxBytes: 40 * chunk}, source, func(t *testing.T, opened *store.Store) {
		came, end := make(chan error, 6), make(chan struct{})
		defer close(end)
		for i := range 3 {
			go func() {
				came <- opened.Try(t.Context(), of("tried", i), func(context.Context, fetch.Snapshot) error {
					came <- nil
					<-end
					return nil
				})
			}()
			if err := <-came; err != nil {
				t.Errorf("beside %d that are looked at: %v", i, err)
			}
		}
	})
}

// Red when a store that needs space looks for readers that ended all of the time.
func TestLooksForReadersTakeAPartOfTheTime(t *testing.T) {
	source := &greedy{content: 20}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		looks := 0
		opened.SetCollect(func() time.Duration { looks++; return time.Second })
		read, err := settle(opened, of("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := settle(opened, of("a", 1)); !errors.Is(err, fetch.ErrNoSpace) {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(began); looks < 1 || looks > 1+int(took/(10*time.Second)) {
			t.Errorf("%d looks of a second in %s", looks, took)
		}
		runtime.KeepAlive(read)
	})
}

// Red when slow sources of one owner take all jobs, or their queue goes before the first source of another owner.
func TestSlowSourcesOfAnOwnerHoldUpNoOther(t *testing.T) {
	source := &greedy{content: 1, stuck: "slow"}
	bubble(t, store.Options{MaxBytes: 1000 * chunk}, source, func(t *testing.T, opened *store.Store) {
		for i := range 50 {
			if _, err := opened.Get(of("slow", i), "x", nil); !errors.Is(err, fetch.ErrPending) {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		began := time.Now()
		if _, err := settle(opened, of("other", 0)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("another owner waited %s", took)
		}
		if running := opened.Stats().Fetches; running != 8 {
			t.Errorf("%d fetches began, want 7 and one", running)
		}
		for i := range 50 { // one of a second owner takes the last place
			if _, err := opened.Get(of("slower", i), "x", nil); !errors.Is(err, fetch.ErrPending) {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, err := settle(opened, of("third", 0)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 6*time.Minute {
			t.Errorf("the third owner waited %s, longer than the jobs that ran", took)
		}
	})
}

// Red when a source that several owners have is checked in the turn of the first alone: who has many slow sources, and names one of
// another owner's before, would make that wait behind all of them.
func TestASourceOfSeveralOwnersHasTheTurnOfEach(t *testing.T) {
	source := &greedy{content: 1, stuck: "slow"}
	bubble(t, store.Options{MaxBytes: 1000 * chunk}, source, func(t *testing.T, opened *store.Store) {
		for i := range 50 {
			if _, err := opened.Get(of("slow", i), "x", nil); !errors.Is(err, fetch.ErrPending) {
				t.Fatal(err)
			}
		}
		shared := of("shared", 0)
		shared.Owner = "slow"
		if _, err := opened.Get(shared, "x", nil); !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		shared.Owner = "other"
		if _, err := settle(opened, shared); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("another owner waited %s", took)
		}
	})
}

// Red when the store goes on with references that nobody asks for any more: an author who edits a catalogue's repository in a loop leaves
// one with each edit.
func TestWhoAsksForAnotherReferenceLeavesTheFormerOne(t *testing.T) {
	source := &greedy{content: 1, stuck: "slow"}
	bubble(t, store.Options{MaxBytes: 1000 * chunk}, source, func(t *testing.T, opened *store.Store) {
		if _, err := opened.Get(of("slow", 0), "y", func() {}); !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
		for i := range 100 {
			if _, err := opened.Get(of("slow", i), "x", func() {}); !errors.Is(err, fetch.ErrPending) {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if entries := opened.Entries(); entries != 8 { // of them 7 are being checked
			t.Errorf("the store has %d references after an edit of each", entries)
		}
		<-time.After(6 * time.Minute)
		if entries := opened.Entries(); entries != 2 {
			t.Errorf("the store has %d references, want those that are asked for", entries)
		}
	})
}
