package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// pageSize of lists.
	pageSize = 500
	// maxPages ends lists that never do: the API server is not ours.
	maxPages = 400
)

// EndlessListError says that an API server gave more pages of a list than any cluster of ours has.
type EndlessListError struct{}

func (*EndlessListError) Error() string { return "the list does not end" }

// eachPage asks for page after page; ask returns the token of the next one, "" for the last.
func eachPage(ctx context.Context, selector string, ask func(context.Context, metav1.ListOptions) (next string, err error)) error {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for range maxPages {
		next, err := ask(ctx, options)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
	return &EndlessListError{}
}
