package gitcatalogue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Readers of a catalogue in git can predict the names of its generated ones, and writers of catalogues can use them
// first. Such an add-on waits, the catalogue reports it, and the rest of the commit is applied.

// mostTaken is how many taken names a condition lists; it counts all of them.
const mostTaken = 3

// isTaken says, past the cache, whether a foreign object has the name of a generated catalogue.
func (r *Reconciler) isTaken(ctx context.Context, f *facts, name string) (bool, error) {
	found := &v1.AddonCatalogue{}
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: f.object.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && !isChild(found, f.object), err
}

func isChild(object, parent *v1.AddonCatalogue) bool {
	return object.Labels[v1.LabelRole] == v1.RoleGenerated && metav1.IsControlledBy(object, parent)
}

// stillTaken says, by the cache, whether all names are still taken as when the content was read.
func (r *Reconciler) stillTaken(ctx context.Context, f *facts) bool {
	for name := range f.memory.taken {
		found := &v1.AddonCatalogue{}
		key := client.ObjectKey{Namespace: f.object.Namespace, Name: name}
		if err := r.cached.Get(ctx, key, found, client.UnsafeDisableDeepCopy); err != nil || isChild(found, f.object) {
			return false
		}
	}
	return true
}

// without excludes the add-ons whose names are taken.
func (p *plan) without(taken map[string]string) {
	p.taken = taken
	for _, made := range p.children {
		if taken[made.name] != "" {
			p.versions -= int32(len(made.spec.Addons[0].Versions)) // at most 128 each
			p.added--
		}
	}
	isTaken := func(made child) bool { return taken[made.name] != "" }
	p.children, p.write = slices.DeleteFunc(p.children, isTaken), slices.DeleteFunc(p.write, isTaken)
}

// takenOutcome ends the reconciliation of a commit that was applied except for add-ons whose names are taken.
func (f *facts) takenOutcome() *loop.Outcome {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(f.memory.taken)) {
		texts = append(texts, fmt.Sprintf("add-on %q is left out: AddonCatalogue %q has the name of its generated catalogue, and was not "+
			"generated from this catalogue: delete that AddonCatalogue", f.memory.taken[name], f.object.Namespace+"/"+name))
	}
	return loop.Wait(v1.ConditionFetched, v1.ReasonGeneratedNameTaken, fmt.Sprintf(
		"commit %s is applied, but %s", f.snapshot.Revision, text.First(texts, mostTaken)), recheck)
}

// toAuthored returns the result of the function toAuthored, and the catalogues that wait for the object's name.
func (r *Reconciler) toAuthored(ctx context.Context, object client.Object) []reconcile.Request {
	requests := toAuthored(ctx, object)
	for _, name := range r.memories.waitingFor(object.GetName()) {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// waitingFor are the catalogues that wait for a name.
func (m *memories) waitingFor(name string) []types.NamespacedName {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.waiting[name])
}

// await records for which names a catalogue waits.
func (m *memories) await(catalogue types.NamespacedName, names map[string]string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for name, waiting := range m.waiting {
		if left := slices.DeleteFunc(waiting, func(one types.NamespacedName) bool { return one == catalogue }); len(left) > 0 {
			m.waiting[name] = left
			continue
		}
		delete(m.waiting, name)
	}
	for name := range names {
		m.waiting[name] = append(m.waiting[name], catalogue)
	}
}
