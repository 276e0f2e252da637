package apply

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/remote"
)

const (
	// pageSize of lists.
	pageSize = 500
	// maxToken is the length of the token that a page ends with, in bytes: the API server's own has a name and a namespace.
	maxToken = 4 << 10
)

// listTotals are what one list may come to: far more than a cluster of ours has, and an end for lists that never have one. The
// clients of package remote hold answers to the same totals as they come; a Target may have other clients, so pages are counted too.
var listTotals = remote.ListTotals

// aPage is what eachPage needs of a page: how many items it had, the token of the next one, "" for the last, and the size of its
// field sets where they are looked at.
type aPage struct {
	items  int
	next   string
	fields int
}

// eachPage asks for page after page. A list that does not come to its end is a MisbehavesError.
func eachPage(ctx context.Context, selector string, ask func(context.Context, metav1.ListOptions) (aPage, error)) error {
	within, cancel := context.WithTimeout(remote.Within(ctx, "the list", listTotals), listTotals.Time)
	defer cancel()
	err := askPages(within, metav1.ListOptions{LabelSelector: selector, Limit: pageSize}, ask)
	if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		return misbehaves("a list takes more than %s", listTotals.Time)
	}
	return err
}

func askPages(
	ctx context.Context, options metav1.ListOptions, ask func(context.Context, metav1.ListOptions) (aPage, error),
) error {
	listed, fields, tokens := 0, int64(0), []string{}
	for range listTotals.Calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := ask(ctx, options)
		if err != nil {
			return err
		}
		listed, fields = listed+page.items, fields+int64(page.fields)
		switch {
		case listed > listTotals.Items:
			return misbehaves("a list has more than %d items", listTotals.Items)
		case fields > listTotals.Bytes:
			return misbehaves("the items of a list have more than %d MiB of fields", listTotals.Bytes>>20)
		case page.next == "":
			return nil
		case len(page.next) > maxToken:
			return misbehaves("the token of a list's next page has %d bytes", len(page.next))
		case slices.Contains(tokens, page.next):
			return misbehaves("a list comes back to a page that it had before")
		}
		tokens = append(tokens, page.next)
		options.Continue = page.next
	}
	return misbehaves("a list has more than %d pages", listTotals.Calls)
}

// allowance is how many bytes lists may keep of what they list. It may be used by many goroutines.
type allowance struct{ left atomic.Int64 }

func newAllowance(bytes int64) *allowance {
	a := &allowance{}
	a.left.Store(bytes)
	return a
}

// take takes so many, and says whether there were as many left.
func (a *allowance) take(bytes int) bool {
	if a.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	a.giveBack(bytes)
	return false
}

func (a *allowance) giveBack(bytes int) { a.left.Add(int64(bytes)) }

// errKeptTooMuch ends lists whose items are too large together.
func errKeptTooMuch() error { return misbehaves("its lists have more than can be kept of them") }

// turn lets one goroutine at a time go on; waiting for it ends with the context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) leave() { <-t }
