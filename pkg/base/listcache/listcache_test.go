package listcache

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// book is a namespace whose lists are counted.
type book struct {
	entries map[string][]int
	partial bool
	err     error
	lists   int
}

func (b *book) list() (map[string][]int, bool, error) {
	b.lists++
	return maps.Clone(b.entries), b.partial, b.err
}

// Red when each name is listed for itself, when a list is believed for ever, or when Changed does
// nothing.
func TestOneListAnswersForAllNames(t *testing.T) {
	now := time.Now()
	l := New(func() time.Time { return now })
	b := &book{entries: map[string][]int{"a": {1}}}
	expect := func(why, name string, revisions int, sure bool, lists int) {
		t.Helper()
		got, gotSure, err := l.Find(t.Context(), "one", name, b.list)
		if err != nil || len(got) != revisions || gotSure != sure || b.lists != lists {
			t.Errorf("%s: got %v, sure %t, after %d lists, %v; want %d, %t, %d", why, got, gotSure, b.lists, err, revisions, sure, lists)
		}
	}
	expect("the first look lists", "a", 1, true, 1)
	expect("a second name is not on it", "b", 0, true, 1)
	l.Changed("one", "b")
	expect("what was written since is not answered for", "b", 0, false, 1)
	expect("others are", "a", 1, true, 1)
	b.entries["b"] = []int{2, 1}
	now = now.Add(maxAge)
	expect("an old list is made anew", "b", 2, true, 2)
	b.partial, now = true, now.Add(maxAge)
	expect("a list with a part of the names answers for none", "a", 1, false, 3)
	b.err, now = errors.New("gone"), now.Add(maxAge)
	if _, _, err := l.Find(t.Context(), "one", "a", b.list); !errors.Is(err, b.err) {
		t.Errorf("got %v, want what the list says", err)
	}
	b.err, b.partial = nil, false
	expect("a failed list is not kept", "a", 1, true, 5)
	if _, _, err := l.Find(t.Context(), "two", "a", b.list); err != nil || b.lists != 6 {
		t.Errorf("another namespace: %d lists, %v", b.lists, err)
	}
	now = now.Add(maxAge)
	expect("the first namespace again", "a", 1, true, 7)
	if len(l.byNamespace) != 1 {
		t.Errorf("%d namespaces are kept, want the one that was asked for last", len(l.byNamespace))
	}
}

// Red when a list is begun for each that waits, also where it takes longer than it is believed;
// when what is written while it is made counts as listed; or when a look outlives its context.
func TestManyWaitForOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(time.Now)
		b, answer := &book{}, make(chan struct{})
		slow := func() (map[string][]int, bool, error) {
			<-answer
			<-time.After(2 * maxAge) // of the bubble, which costs none
			return b.list()
		}
		ends := make(chan bool, 6)
		for range 5 {
			go func() {
				_, sure, err := l.Find(t.Context(), "one", "a", slow)
				ends <- sure && err == nil
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := l.Find(ctx, "one", "a", slow); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a look whose context ended", err)
		}
		l.Changed("one", "b")
		close(answer)
		go func() {
			_, sure, err := l.Find(t.Context(), "one", "b", slow)
			ends <- !sure && err == nil
		}()
		for range 6 {
			if !<-ends {
				t.Error("a look was not answered, or what was written meanwhile was")
			}
		}
		if b.lists != 1 {
			t.Errorf("%d lists, want one", b.lists)
		}
	})
}
