package distributor

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// returnsWithin is how long after the start a catalogue that was not seen yet gives nothing up: a restore brings objects one by one.
const returnsWithin = 10 * time.Minute

// owners knows whose the add-ons of Custom catalogues are, as ConfigMap v1.ConfigMapOwners has it. It is read once: only we write it.
type owners struct {
	// stored is nil until it was read.
	stored catalogue.Owners
	// adopt says that what was read is not whole.
	adopt bool
	// unkept says that a merge may have other owners than are stored.
	unkept bool
	readAt time.Time
	// seen are the authors of catalogues that existed since then.
	seen map[string]bool
}

// own finds what decides whose add-ons are.
func (r *Reconciler) own(ctx context.Context, f *facts) loop.Outcome {
	if err := r.readOwners(ctx); err != nil {
		return failed(err)
	}
	f.claims = catalogue.Claims{
		Owners: r.owners.stored, Adopt: r.owners.adopt, Held: map[string]bool{},
		TakeOver: map[string]map[string]bool{}, LeftOut: map[string]map[string]bool{},
	}
	children := map[types.UID]int{}
	for _, reading := range f.readings {
		children[reading.parent()]++
	}
	for _, reading := range f.readings {
		if reading.reason != v1.ReasonWrongNamespace {
			r.claim(f, reading, children[reading.object.UID])
		}
	}
	r.awaitOwners(f)
	return nil
}

// claim adds what one catalogue says, of which so many others were generated.
func (r *Reconciler) claim(f *facts, reading *reading, children int) {
	object, author := reading.object, catalogue.Author(reading.object)
	r.owners.seen[author] = true
	if reading.isHeld() || object.Spec.Git != nil && (!isFetched(object) || int(object.Status.Addons) != children) {
		f.claims.Held[author] = true
	}
	if object.Annotations[v1.AnnotationTakeOver] != "" && object.Labels[v1.LabelRole] == "" {
		f.claims.TakeOver[author] = catalogue.TakesOver(object)
	}
	if f.claims.Adopt && f.claims.LeftOut[author] == nil {
		f.claims.LeftOut[author] = map[string]bool{}
	}
	if f.claims.Adopt {
		addLeftOut(f.claims.LeftOut[author], object)
	}
}

// addLeftOut adds the add-ons that were another's when the status of a catalogue was written. Of a list that was cut they may be any.
func addLeftOut(leftOut map[string]bool, object *v1.AddonCatalogue) {
	for _, conflict := range object.Status.Conflicts {
		if conflict.Reason == v1.ReasonOwnedByOther {
			leftOut[conflict.Addon] = true
		}
	}
	if len(leftOut) > 0 && int(object.Status.ConflictCount) > len(object.Status.Conflicts) {
		for i := range object.Spec.Addons {
			leftOut[string(object.Spec.Addons[i].Name)] = true
		}
	}
}

// isFetched says whether a catalogue in git has the content of its repository.
func isFetched(object *v1.AddonCatalogue) bool {
	return meta.IsStatusConditionTrue(object.Status.Conditions, v1.ConditionFetched)
}

// awaitOwners holds owners that were not seen since the start, for a while.
func (r *Reconciler) awaitOwners(f *facts) {
	left := returnsWithin - r.options.Clock.Since(r.owners.readAt)
	if left <= 0 {
		return
	}
	for _, all := range r.owners.stored {
		for _, owner := range all {
			if !r.owners.seen[owner] {
				f.claims.Held[owner], f.recheck = true, left
			}
		}
	}
}

// readOwners reads what an earlier leader kept.
func (r *Reconciler) readOwners(ctx context.Context) error {
	if r.owners.stored != nil {
		return nil
	}
	kept, err := r.keptOwners(ctx)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapOwners, err)
	}
	stored, whole := catalogue.DecodeOwners(kept.Data)
	if !whole {
		log.FromContext(ctx).Info("owners of add-ons can't be read, and are found again by precedence", "configMap", v1.ConfigMapOwners)
	}
	r.owners = owners{stored: stored, adopt: err != nil || !whole, readAt: r.options.Clock.Now(), seen: map[string]bool{}}
	return nil
}

func (r *Reconciler) keptOwners(ctx context.Context) (*corev1.ConfigMap, error) {
	kept := &corev1.ConfigMap{}
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: v1.ConfigMapOwners}, kept)
	return kept, err
}

// keepOwners writes whose the add-ons are, before any seed gets what follows from it. After a merge it looks whether that is still
// there. What fails is tried again before anything else is done.
func (r *Reconciler) keepOwners(ctx context.Context, f *facts) loop.Outcome {
	r.owners.unkept = r.owners.unkept || f.mergedAnew
	if !r.owners.unkept {
		return nil
	}
	if err := r.writeOwners(ctx, f.merged.Owners.Encode()); err != nil {
		return failed(fmt.Errorf("writing ConfigMap %q: %w", v1.ConfigMapOwners, err))
	}
	r.owners.stored, r.owners.adopt, r.owners.unkept = f.merged.Owners, false, false
	// Merged again with these, the sources give the same.
	r.merger.claims.Owners, r.merger.claims.Adopt = f.merged.Owners, false
	r.merger.claims.LeftOut = map[string]map[string]bool{}
	return nil
}

func (r *Reconciler) writeOwners(ctx context.Context, data map[string]string) error {
	kept, err := r.keptOwners(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return r.cached.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapOwners}, Data: data,
		})
	case err != nil || maps.Equal(kept.Data, data):
		return err
	}
	kept.Data = data
	return r.cached.Update(ctx, kept)
}
