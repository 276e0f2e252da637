package calls

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/remote"
)

const (
	// pageSize of lists.
	pageSize = 500
	// maxToken is the length of the token that a page ends with, in bytes: the API server's own has a name and a namespace.
	maxToken = 4 << 10
)

// Page is what EachPage needs of a page: how many items it had, the token of the next one, "" for the last, and the size of its
// field sets where they are looked at.
type Page struct {
	Items  int
	Next   string
	Fields int
}

// EachPage asks for page after page. A list that does not come to its end, by remote.ListTotals, is a MisbehavesError: a
// Target may have other clients than those of package remote, so pages are counted here too.
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
			return Misbehaves("a list comes back to a page that it had before")
		}
		tokens = append(tokens, page.Next)
		options.Continue = page.Next
	}
	return Misbehaves("a list has more than %d pages", remote.ListTotals.Calls)
}
