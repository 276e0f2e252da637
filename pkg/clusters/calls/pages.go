package calls

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

const (
	pageSize = 500
	// maxToken bounds a page's token, in bytes: the API server's own has a name and a namespace.
	maxToken = 4 << 10
)

// Page has the figures of a page that EachPage needs; Next is "" on the last one, Fields the size of its field sets.
type Page struct {
	Items  int
	Next   string
	Fields int
}

// EachPage requests all pages. A list beyond remote.ListTotals is a MisbehavesError. Pages are counted here too,
// since a Target may have other clients than those of package remote.
func EachPage(ctx context.Context, selector string, ask func(context.Context, metav1.ListOptions) (Page, error)) error {
	within, cancel := context.WithTimeout(remote.Within(ctx, "the list", remote.ListTotals), remote.ListTotals.Time)
	defer cancel()
	err := askPages(within, metav1.ListOptions{LabelSelector: selector, Limit: pageSize}, ask)
	if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		return Misbehaves("a list takes more than %s", remote.ListTotals.Time)
	}
	return err
}

func askPages(ctx context.Context, options metav1.ListOptions, ask func(context.Context, metav1.ListOptions) (Page, error)) error {
	listed, fields, tokens := 0, int64(0), []string{}
	for range remote.ListTotals.Calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := ask(ctx, options)
		if err != nil {
			return err
		}
		listed, fields = listed+page.Items, fields+int64(page.Fields)
		switch {
		case listed > remote.ListTotals.Items:
			return Misbehaves("a list has more than %d items", remote.ListTotals.Items)
		case fields > remote.ListTotals.Bytes:
			return Misbehaves("the items of a list have more than %d MiB of fields", remote.ListTotals.Bytes>>20)
		case page.Next == "":
			return nil
		case len(page.Next) > maxToken:
			return Misbehaves("the token of a list's next page has %d bytes", len(page.Next))
		case slices.Contains(tokens, page.Next):
			return Misbehaves("a list repeats an earlier page")
		}
		tokens = append(tokens, page.Next)
		options.Continue = page.Next
	}
	return Misbehaves("a list has more than %d pages", remote.ListTotals.Calls)
}
