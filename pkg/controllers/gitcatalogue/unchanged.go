package gitcatalogue

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// unchanged ends a reconciliation of content that was read before.
func (r *Reconciler) unchanged(ctx context.Context, f *facts) *loop.Outcome {
	known := f.memory
	if known.digest != f.snapshot.Digest || known.generation != f.object.Generation || len(known.children) != len(f.have) {
		return nil
	}
	for name, child := range f.have {
		if known.children[name] == "" || known.children[name] != stamp(child) {
			return nil
		}
	}
	if !r.stillTaken(ctx, f) {
		return nil
	}
	return f.finish(ctx)
}
