package copies

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// managedBy is the value of our managed-by label.
const managedBy = "distributor"

// notOursError: an AddonSet of that name exists on the seed, without any of our marks.
type notOursError struct{ name string }

func (e *notOursError) Error() string {
	return fmt.Sprintf("AddonSet %q exists on the seed and the master did not create it: delete it there", e.name)
}

// unmarkedError: the set is refused, and its copy is not as it was written.
type unmarkedError struct{ name string }

func (e *unmarkedError) Error() string {
	return fmt.Sprintf("the copy of AddonSet %q was changed on the seed and can't be restored, since the set's present spec is refused: "+
		"correct that", e.name)
}

// CarryOut creates, updates and deletes copies by the wanted sets and the orders. It calls failed, by name, for each
// failure.
func (k *Keeper) CarryOut(ctx context.Context, wanted map[string]*Set, orders map[string]Order, failed func(name string, err error)) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		set, order := wanted[name], orders[name]
		if order.UID != set.UID {
			order = Order{}
		}
		var err error
		switch {
		case set.Spec == nil && k.found[name] != nil && !k.found[name].marked:
			err = &unmarkedError{name} // no part of it is marked again
		case order.Delete:
			err = k.remove(ctx, name, set, order)
		default:
			err = k.bring(ctx, name, set, order)
		}
		if err != nil {
			k.markStale(name, "")
			failed(name, err)
		}
	}
}

// bring creates a copy, or replaces it if it differs.
func (k *Keeper) bring(ctx context.Context, name string, set *Set, order Order) error {
	have := k.found[name]
	switch {
	case have == nil && set.Spec == nil: // there is no valid one to keep
		return nil
	case have == nil:
		return k.create(ctx, name, set, order)
	case k.isCurrent(name, set, order, have):
		return nil
	}
	return k.replace(ctx, name, set, order)
}

// isCurrent says whether a copy is as it should be, ignoring the seed's fields.
func (k *Keeper) isCurrent(name string, set *Set, order Order, have *found) bool {
	if set.Spec != nil && have.content != k.contentOf(name, set.Digest) {
		return false
	}
	return maps.Equal(have.labels, labels()) && maps.Equal(have.annotations, k.annotations(name, set, order, have))
}

func labels() map[string]string {
	return map[string]string{v1.LabelRole: v1.RoleCopy, v1.LabelManagedBy: managedBy}
}

// annotations are the wanted ones of a copy. For a refused set they are taken from the present copy: have, or nil.
func (k *Keeper) annotations(name string, set *Set, order Order, have *found) map[string]string {
	object := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Annotations: map[string]string{
		v1.AnnotationDigest: set.Digest, v1.AnnotationSeed: k.seed,
		v1.AnnotationCreated: set.Created.UTC().Format(time.RFC3339),
	}}}
	content := k.contentOf(name, set.Digest)
	gate, removal, confirmed, leaveOut := "", order.RemovalApproved, "", order.LeaveOut
	if order.Generation == set.Generation {
		gate = order.Gate
	}
	if order.Delete {
		confirmed = name
	}
	if have != nil { // texts of other clients are not kept
		if set.Spec == nil || k.believed[name].digest == set.Digest { // an edit may have other groups: they are evaluated again
			gate = cmp.Or(gate, k.believed[name].gate)
		}
		if order.UID == "" {
			removal, confirmed = k.believed[name].removal, k.believed[name].confirmed // a deletion can't be reversed
			leaveOut = k.believed[name].leaveOut
		}
	}
	if have != nil && set.Spec == nil {
		object.Annotations[v1.AnnotationDigest] = have.annotations[v1.AnnotationDigest]
		content = k.contentOf(name, have.annotations[v1.AnnotationDigest])
	}
	for annotation, value := range map[string]string{
		v1.AnnotationGate: gate, v1.AnnotationRemovalApproved: removal, v1.AnnotationConfirmDeletion: confirmed,
		v1.AnnotationLeaveOut: leaveOut,
	} {
		if value != "" {
			object.Annotations[annotation] = value
		}
	}
	object.Annotations[v1.AnnotationMark] = catalogue.SetMark(k.key, object, content)
	return object.Annotations
}

func (k *Keeper) create(ctx context.Context, name string, set *Set, order Order) error {
	object := &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: name, Labels: labels(), Annotations: k.annotations(name, set, order, nil),
		},
		Spec: *set.Spec.DeepCopy(),
	}
	err := k.client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) { // another client removed our labels, or it is not ours
		return k.replace(ctx, name, set, order)
	}
	if err != nil {
		return err
	}
	return k.settle(ctx, object, set)
}

// replaceTries is how often a copy is replaced while the seed's status writes change it.
const replaceTries = 4

// replace writes the whole copy except for the seed's fields: finalizers and status.
func (k *Keeper) replace(ctx context.Context, name string, set *Set, order Order) (err error) {
	for range replaceTries {
		live, failed := k.read(ctx, name)
		switch {
		case failed != nil:
			return failed
		case live == nil && set.Spec == nil:
			return nil
		case live == nil:
			return k.create(ctx, name, set, order)
		case !isOurs(live):
			return &notOursError{name}
		case set.Spec == nil && !k.found[name].marked:
			return &unmarkedError{name}
		}
		live.Labels, live.Annotations = labels(), k.annotations(name, set, order, k.found[name])
		live.OwnerReferences = nil
		if set.Spec != nil {
			live.Spec = *set.Spec.DeepCopy()
		}
		err = k.client.Update(ctx, live)
		if err == nil {
			return k.settle(ctx, live, set)
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// isOurs says whether the distributor wrote an object: it has one of its labels or a mark.
func isOurs(live *v1.AddonSet) bool {
	return live.Labels[v1.LabelRole] == v1.RoleCopy || live.Labels[v1.LabelManagedBy] == managedBy ||
		live.Annotations[v1.AnnotationMark] != ""
}

// settle stores the written copy, and marks the content that the seed stores if it differs from the sent one, for
// example by a default of its CRD.
func (k *Keeper) settle(ctx context.Context, object *v1.AddonSet, set *Set) error {
	if err := k.note(object); err != nil {
		return err
	}
	if set.Spec == nil {
		return nil
	}
	content, key := k.found[object.Name].content, object.Name+" "+set.Digest
	if content == k.contentOf(object.Name, set.Digest) {
		return nil
	}
	delete(k.stored, key)
	if content != set.Digest {
		k.stored[key] = content
	}
	before := object.DeepCopy()
	object.Annotations[v1.AnnotationMark] = catalogue.SetMark(k.key, object, content)
	if err := k.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	return k.note(object)
}

// remove deletes the copy of a set: first it writes so into the marked annotations.
func (k *Keeper) remove(ctx context.Context, name string, set *Set, order Order) error {
	have := k.found[name]
	if have == nil {
		if k.gone[set.UID] {
			return nil
		}
		live, err := k.read(ctx, name) // only an answer of the seed counts
		if err != nil {
			return err
		}
		if live == nil || !isOurs(live) {
			k.gone[set.UID] = true
			return nil
		}
		have = k.found[name]
	}
	if !k.isCurrent(name, set, order, have) {
		if err := k.replace(ctx, name, set, order); err != nil {
			return err
		}
		if have = k.found[name]; have == nil {
			return nil
		}
	}
	if have.deleting {
		return nil
	}
	copied := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}}
	err := k.client.Delete(ctx, copied, client.Preconditions{UID: &have.uid})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	_, err = k.read(ctx, name)
	return err
}
