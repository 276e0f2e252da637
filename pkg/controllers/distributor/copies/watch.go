package copies

import (
	"context"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

const (
	// watchFor is how long one watch lasts; the next one continues from its last event.
	watchFor = 5 * time.Minute
	// watchAtLeast is how long a server lets a requested watch last. One that ends sooner is broken, even if it ends
	// without an error: a server that shuts down ends watches in this way, and its successor may have an earlier state.
	watchAtLeast = watchFor - 5*time.Second
)

// EndedError: the seed ended a watch before its timeout.
type EndedError struct{}

func (e *EndedError) Error() string { return "the seed's API server ended a watch before its timeout" }

// Forget makes the next Read read all copies again.
func (k *Keeper) Forget() { clear(k.found) }

// Unlist marks the copies as not listed: Follow then begins at the seed's present state.
func (k *Keeper) Unlist() { k.listed, k.from = false, "" }

// Follow watches the copies from the state of the last List, until the context ends or the watch breaks. After a break,
// the data in memory may be of a state that the seed has lost. If List was not called, it begins at the seed's present
// state. It calls wake after each change, which must not block.
func (k *Keeper) Follow(server *remote.Client, wake func()) func(ctx context.Context) error {
	path := "/apis/" + v1.GroupVersion.String() + "/namespaces/" + k.namespace + "/addonsets"
	from := k.from
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			began := time.Now()
			err := server.Watch(ctx, path, from, watchFor, func(change remote.Change) {
				from = change.ResourceVersion
				if change.Name != "" {
					k.Changed(change.Name, change.ResourceVersion)
					wake()
				}
			})
			if err != nil {
				return err
			}
			if ctx.Err() == nil && time.Since(began) < watchAtLeast {
				return &EndedError{}
			}
		}
		return nil
	}
}
