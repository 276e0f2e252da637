package turns_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/trellis-addons/trellis/pkg/base/turns"
)

// queue has those that asked for a turn, who tell it when theirs begins.
type queue struct {
	t     *testing.T
	turns *turns.Turns
	ends  map[string]func()
	begin chan string
}

func newQueue(t *testing.T, of *turns.Turns) *queue {
	return &queue{t: t, turns: of, ends: map[string]func(){}, begin: make(chan string, 100)}
}

// ask for a turn: the name begins with its owner.
func (q *queue) ask(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() {
			end, err := q.turns.Take(ctx, name[:1])
			if err != nil {
				name = fmt.Sprintf("%s: %v", name, err)
			}
			q.ends[name] = end // one at a time: each waits until all others do
			q.begin <- name
		}()
		synctest.Wait()
	}
}

// expect these to have begun since the last time, in any order.
func (q *queue) expect(names ...string) {
	q.t.Helper()
	synctest.Wait()
	var have []string
	for len(q.begin) > 0 {
		have = append(have, <-q.begin)
	}
	if fmt.Sprint(have) != fmt.Sprint(names) {
		q.t.Errorf("%q have a turn now, want %q", have, names)
	}
}

func (q *queue) end(name string) {
	q.ends[name]()
	synctest.Wait()
}

// AC91: Of those who wait for few turns, the owner that has the fewest is next. Red when more have one than may, when an owner with more
// turns than another is next, one that had more while both waited (rank), or one that came later of one owner.
func TestTheOwnerOfTheFewestTurnsIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, &turns.Turns{Most: 2})
		q.ask(t.Context(), "a1", "a2", "a3", "a4", "b1", "b2", "c1")
		q.expect("a1", "a2")
		for _, next := range []struct{ ends, begins string }{{"a1", "b1"}, {"a2", "c1"}, {"b1", "a3"}, {"c1", "b2"}, {"a3", "a4"}} {
			q.end(next.ends)
			q.expect(next.begins)
		}
		q.end("b2")
		q.end("b2")
		q.expect()
		q.ask(t.Context(), "d1", "d2")
		q.expect("d1")
		q.end("a4")
		q.end("d1")
		q.expect("d2")
		q.end("d2")
	})
}

// TestOneOwnerHasFewTurns turns red when an owner has more turns than each may have, or keeps others from theirs.
func TestOneOwnerHasFewTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, &turns.Turns{Each: 1})
		q.ask(t.Context(), "a1", "a2", "b1")
		q.expect("a1", "b1")
		q.end("b1")
		q.expect()
		q.end("a1")
		q.expect("a2")
		q.end("a2")
	})
}

// TestWhoGivesUpHoldsUpNobody turns red when someone waits after the context ended, or has a place or a turn afterwards.
func TestWhoGivesUpHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, &turns.Turns{Most: 1})
		q.ask(t.Context(), "a1")
		ctx, giveUp := context.WithCancelCause(t.Context())
		q.ask(ctx, "b1")
		q.ask(t.Context(), "c1")
		q.expect("a1")
		giveUp(errors.New("its time is over"))
		q.expect("b1: its time is over")
		q.end("a1")
		q.expect("c1")
		q.end("c1")
	})
}
