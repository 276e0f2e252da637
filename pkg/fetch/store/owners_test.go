package store_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// TestFetchesDisplaceNothingOfOwnersWithLess fails when fetches of an owner whose content is all being read displace
// that of an owner with less.
func TestFetchesDisplaceNothingOfOwnersWithLess(t *testing.T) {
	source := &greedy{content: 4}
	bubble(t, store.Options{MaxBytes: 30 * chunk}, source, func(t *testing.T, opened *store.Store) {
		small := []fetch.Reference{of("small", 0), of("small", 1)}
		for _, reference := range small {
			if _, err := settle(opened, reference); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // so that the store notices that it is no longer read
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

// TestWhatIsBeingFetchedCountsToItsOwner fails when running fetches do not count for their owner: one fetch would
// displace all others' content.
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

// TestASlowFetchLeavesHalfOfTheSpace fails when the oldest fetch, which never continues, blocks all others in a store
// that is not larger than one fetch.
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

// TestWhatIsLookedAtGrowsNoMore fails when space stays reserved for a try that already has all of its content.
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

// TestLooksForReadersTakeAPartOfTheTime fails when a store that needs space searches for readers that ended all the
// time.
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

// TestSlowSourcesOfAnOwnerHoldUpNoOther fails when slow sources of one owner take all jobs, or their queue precedes
// the first source of another owner.
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
		for i := range 50 { // a second owner takes the last place
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

// TestASourceOfSeveralOwnersHasTheTurnOfEach fails when a source that several owners have is checked only in the turn
// of the first: an owner with many slow sources could name another owner's source earlier, which would then wait
// behind all of them.
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

// TestWhoAsksForAnotherReferenceLeavesThePreviousOne fails when the store keeps checking references that are no longer
// requested: an author who edits a catalogue's repository in a loop leaves one with each edit.
func TestWhoAsksForAnotherReferenceLeavesThePreviousOne(t *testing.T) {
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
		if entries := opened.Entries(); entries != 8 { // 7 of them are being checked
			t.Errorf("the store has %d references after an edit of each", entries)
		}
		<-time.After(6 * time.Minute)
		if entries := opened.Entries(); entries != 2 {
			t.Errorf("the store has %d references, want those that are asked for", entries)
		}
	})
}

// TestWhoIsNotWokenEndsNoSubscription fails when a Get without wake, as for a preview, ends the subscription of its name to another
// reference, so that nothing wakes an installation whose content has come.
func TestWhoIsNotWokenEndsNoSubscription(t *testing.T) {
	bubble(t, store.Options{MaxBytes: 1000 * chunk}, &greedy{content: 1}, func(t *testing.T, opened *store.Store) {
		woken := 0
		if _, err := opened.Get(of("quick", 0), "x", func() { woken++ }); !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
		if _, err := opened.Get(of("quick", 1), "x", nil); !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
		synctest.Wait()
		if woken != 1 {
			t.Errorf("it is woken %d times", woken)
		}
	})
}

// TestContentsOfAnOwnerAreDecodedInTurns fails when more contents of one owner are decoded concurrently than its
// share of the processor, or those of another owner wait for them.
func TestContentsOfAnOwnerAreDecodedInTurns(t *testing.T) {
	var (
		mutex    sync.Mutex
		decoding = map[string]int{}
		most     int
		goOn     chan struct{}
	)
	source := &greedy{content: 1}
	source.decode = func(owner string) {
		mutex.Lock()
		decoding[owner]++
		most = max(most, decoding[owner])
		mutex.Unlock()
		if owner == "slow" {
			<-goOn
		}
		mutex.Lock()
		defer mutex.Unlock()
		decoding[owner]--
	}
	bubble(t, store.Options{MaxBytes: 1000 * chunk}, source, func(t *testing.T, opened *store.Store) {
		goOn = make(chan struct{})
		for i := range 7 {
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
		if opened.Stats().Fetches != 8 || most != 2 {
			t.Errorf("of %d contents of an owner that are fetched %d are decoded at a time, want 2", opened.Stats().Fetches-1, most)
		}
		close(goOn)
		for i := range 7 {
			if _, err := settle(opened, of("slow", i)); err != nil {
				t.Errorf("one that waited: %v", err)
			}
		}
		if most != 2 {
			t.Errorf("%d were decoded at a time", most)
		}
	})
}
