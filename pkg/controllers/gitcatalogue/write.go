package gitcatalogue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue/documents"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// fieldOwner names our writes in managedFields.
const fieldOwner = client.FieldOwner("trellis-gitcatalogue")

// callsAtOnce is the number of calls to the API server at a time.
const callsAtOnce = 8

// rehearse tries every write without effect. What the API server refuses, the schema's rules and admission included, is
// wrong with the commit; a name that somebody else's object has is left out of it.
func (r *Reconciler) rehearse(ctx context.Context, f *facts) loop.Outcome {
	var mutex sync.Mutex
	var invalid documents.InvalidError
	taken := map[string]string{}
	err := each(ctx, f.plan.write, func(ctx context.Context, made child) error {
		_, err := r.put(ctx, f, made, client.DryRunAll)
		if apierrors.IsAlreadyExists(err) {
			isTaken, readErr := r.isTaken(ctx, f, made.name)
			if !isTaken {
				return cmp.Or(readErr, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			taken[made.name] = made.addon
			return nil
		}
		if err == nil || !isRefusal(err) {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		invalid.Problems = append(invalid.Problems, documents.Problem{
			Place: f.content.Place(made.addon, ""), Message: fmt.Sprintf("add-on %q: %s", made.addon, apiReason(err)),
		})
		return nil
	})
	if err != nil {
		return failed("trying the writes of generated catalogues", err)
	}
	if len(invalid.Problems) > 0 {
		slices.SortFunc(invalid.Problems, func(a, b documents.Problem) int { return strings.Compare(a.String(), b.String()) })
		return f.refuse(&invalid)
	}
	f.plan.without(taken)
	return nil
}

// isRefusal says whether the API server refuses an object for what it is.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// write makes and changes generated catalogues.
func (r *Reconciler) write(ctx context.Context, f *facts) loop.Outcome {
	err := each(ctx, f.plan.write, func(ctx context.Context, made child) error {
		object, err := r.put(ctx, f, made)
		if err != nil || stamp(object) == made.digest {
			return err
		}
		// The generation was not foretold right: what changed was metadata only.
		before := object.DeepCopy()
		object.Annotations[v1.AnnotationGeneration] = strconv.FormatInt(object.Generation, 10)
		return r.cached.Patch(ctx, object, client.MergeFrom(before), fieldOwner)
	})
	if err != nil {
		return failed("writing generated catalogues", err)
	}
	return nil
}

// dryRun is an option of both verbs.
type dryRun interface {
	client.CreateOption
	client.UpdateOption
}

func (r *Reconciler) put(ctx context.Context, f *facts, made child, options ...dryRun) (*v1.AddonCatalogue, error) {
	before := f.have[made.name]
	object := made.object(f.object, before, f.snapshot.Revision)
	if before == nil {
		create := []client.CreateOption{fieldOwner}
		for _, option := range options {
			create = append(create, option)
		}
		return object, r.cached.Create(ctx, object, create...)
	}
	update := []client.UpdateOption{fieldOwner}
	for _, option := range options {
		update = append(update, option)
	}
	return object, r.cached.Update(ctx, object, update...)
}

// remove deletes what the commit does not have any more.
func (r *Reconciler) remove(ctx context.Context, f *facts) loop.Outcome {
	return r.drop(ctx, f, f.plan.remove)
}

// removeAll deletes everything that was generated from a catalogue that is not in git any more.
func (r *Reconciler) removeAll(ctx context.Context, f *facts) loop.Outcome {
	return r.drop(ctx, f, slices.Sorted(maps.Keys(f.have)))
}

func (r *Reconciler) drop(ctx context.Context, f *facts, names []string) loop.Outcome {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: f.object.Namespace, Name: name}}
		return client.IgnoreNotFound(r.cached.Delete(ctx, object, client.Preconditions{UID: &f.have[name].UID}))
	})
	if err != nil {
		return failed("deleting generated catalogues", err)
	}
	return nil
}

func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callsAtOnce)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
