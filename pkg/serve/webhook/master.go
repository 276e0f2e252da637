package webhook

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// master reads one object by name past caches, and lists from a cache.
type master struct {
	client.Reader
	lists client.Reader
}

// Master returns the reader of the webhooks on the master. A request of an author must not cost the API server a list of all catalogues:
// lists come from the cache of the controllers, without copies, and may be a moment old. The caller must not change listed objects.
func Master(lists, objects client.Reader) client.Reader { return master{objects, lists} }

// List implements client.Reader.
func (m master) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return m.lists.List(ctx, list, append(slices.Clip(options), client.UnsafeDisableDeepCopy)...)
}
