package gitcatalogue

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

func (r *Reconciler) remove(ctx context.Context, f *facts) *loop.Outcome {
	return r.drop(ctx, f, f.plan.remove)
}

// removeAll deletes all generated catalogues of a catalogue that is not in git any more.
func (r *Reconciler) removeAll(ctx context.Context, f *facts) *loop.Outcome {
	return r.drop(ctx, f, slices.Sorted(maps.Keys(f.have)))
}

func (r *Reconciler) drop(ctx context.Context, f *facts, names []string) *loop.Outcome {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: f.object.Namespace, Name: name}}
		return client.IgnoreNotFound(r.cached.Delete(ctx, object, client.Preconditions{UID: &f.have[name].UID}))
	})
	if err != nil {
		return failed("deleting generated catalogues", err)
	}
	return nil
}
