package remote

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Totals bound several calls together; 0: no limit.
type Totals struct {
	// Items are the elements of all pages.
	Calls, Items int
	Bytes        int64
	// Time from the first call to the last byte.
	Time time.Duration
}

// ListTotals are for all pages of one list.
var ListTotals = Totals{Calls: 400, Items: 100_000, Bytes: 256 << 20, Time: 2 * time.Minute}

// PassTotals are for one pass over an installation; its queue bounds the time.
var PassTotals = Totals{Calls: 20_000, Items: 500_000, Bytes: 1 << 30}

// ledger adds up the costs of calls, also in the ledger above.
type ledger struct {
	what   string
	totals Totals
	above  *ledger
	begun  time.Time

	mutex sync.Mutex
	calls int
	items int
	bytes int64
}

type ledgerKey struct{}

// Within makes all calls with the returned context count together: beyond the totals they fail with
// a MisbehavesError. What names them in it: "the list of ConfigMaps". A nested ledger counts in
// both.
func Within(ctx context.Context, what string, totals Totals) context.Context {
	above, _ := ctx.Value(ledgerKey{}).(*ledger)
	return context.WithValue(ctx, ledgerKey{}, &ledger{what: what, totals: totals, above: above, begun: time.Now()})
}

func ledgerOf(ctx context.Context) *ledger {
	found, _ := ctx.Value(ledgerKey{}).(*ledger)
	return found
}

// charge adds to a ledger and those above, and says which limit was exceeded, or "".
func (l *ledger) charge(calls, items int, bytes int64) string {
	for ; l != nil; l = l.above {
		if beyond := l.add(calls, items, bytes); beyond != "" {
			return beyond
		}
	}
	return ""
}

func (l *ledger) add(calls, items int, bytes int64) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.calls, l.items, l.bytes = l.calls+calls, l.items+items, l.bytes+bytes
	switch most := l.totals; {
	case most.Calls > 0 && l.calls > most.Calls:
		return fmt.Sprintf("%s does not end after %d calls", l.what, most.Calls)
	case most.Items > 0 && l.items > most.Items:
		return fmt.Sprintf("%s has more than %d items", l.what, most.Items)
	case most.Bytes > 0 && l.bytes > most.Bytes:
		return fmt.Sprintf("%s has more than %d MiB", l.what, most.Bytes>>20)
	case most.Time > 0 && time.Since(l.begun) > most.Time:
		return fmt.Sprintf("%s takes longer than %s", l.what, most.Time)
	}
	return ""
}
