package gitcatalogue

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// fieldOwner is the field manager of this controller's writes.
const fieldOwner = client.FieldOwner("trellis-gitcatalogue")

const callsAtOnce = 8

// write writes new catalogues first: if a quota does not allow all of them, existing ones stay as they are.
func (r *Reconciler) write(ctx context.Context, f *facts) *loop.Outcome {
	if len(f.plan.write) > 0 && f.memory.writing != f.snapshot.Revision {
		r.rest(f)
		f.memory.writing = f.snapshot.Revision
	}
	isNew := func(made child) bool { return f.have[made.name] == nil }
	isThere := func(made child) bool { return !isNew(made) }
	for _, skip := range []func(child) bool{isThere, isNew} {
		err := each(ctx, slices.DeleteFunc(slices.Clone(f.plan.write), skip), func(ctx context.Context, made child) error {
			object, err := r.put(ctx, f, made)
			if err != nil || stamp(object) == made.digest {
				return err
			}
			// The generation was not as expected: only metadata changed.
			before := object.DeepCopy()
			object.Annotations[v1.AnnotationGeneration] = strconv.FormatInt(object.Generation, 10)
			return r.cached.Patch(ctx, object, client.MergeFrom(before), fieldOwner)
		})
		if isBeyondQuota(err) {
			return r.beyondQuota(f, err)
		}
		if err != nil {
			return failed("writing generated catalogues", err)
		}
	}
	return nil
}

// put creates or updates a generated catalogue; dryRun is as in client.CreateOptions.
func (r *Reconciler) put(ctx context.Context, f *facts, made child, dryRun ...string) (*v1.AddonCatalogue, error) {
	before := f.have[made.name]
	object := made.object(f.object, before, f.snapshot.Revision)
	if before == nil {
		return object, r.cached.Create(ctx, object, &client.CreateOptions{DryRun: dryRun}, fieldOwner)
	}
	return object, r.cached.Update(ctx, object, &client.UpdateOptions{DryRun: dryRun}, fieldOwner)
}

func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callsAtOnce)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
