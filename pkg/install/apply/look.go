package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// place identifies objects of one kind in one namespace.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

// lookup looks for the new objects of one place. brought: the revision itself contains the CRD or APIService of the
// kind.
type lookup struct {
	client  calls.Client
	items   []*item
	brought bool
}

// mayWrite says whether the rollout may write: namespaces exist and, with LookFirst, all kinds are served and all new
// names are free, or would become ours. Otherwise items have notes.
func (r *Rollout) mayWrite(ctx context.Context, w *writer) (bool, error) {
	if err := r.checkNamespaces(ctx, w); err != nil || blocked(r.items) {
		return false, err
	}
	if r.looked || !r.options.LookFirst {
		return true, nil
	}
	err := r.look(ctx, w)
	r.looked = err == nil
	for _, it := range r.items {
		if it.note != nil {
			it.note.Message += "; nothing of this revision is written until then"
			r.looked = false
		}
	}
	return r.looked, err
}

// look checks kinds first, which takes no calls, and names only if all kinds are served. In a namespace that does not
// exist all names are free.
func (r *Rollout) look(ctx context.Context, w *writer) error {
	lookups, err := r.lookups(w)
	if err != nil || slices.ContainsFunc(r.items, func(it *item) bool { return it.note != nil }) {
		return err
	}
	first := place{kind: calls.NamespaceKind}
	if namespaces := lookups[first]; namespaces != nil {
		found, err := w.lookAt(ctx, namespaces)
		if err != nil {
			return err
		}
		delete(lookups, first)
		maps.DeleteFunc(lookups, func(at place, _ *lookup) bool {
			return !found[at.namespace] && slices.ContainsFunc(namespaces.items, func(it *item) bool { return it.key.Name == at.namespace })
		})
	}
	return calls.Each(ctx, slices.Collect(maps.Values(lookups)), func(ctx context.Context, of *lookup) error {
		_, err := w.lookAt(ctx, of)
		return err
	})
}

// lookups has all objects that the inventory lacks, by place. Items of unserved kinds get notes.
func (r *Rollout) lookups(w *writer) (map[place]*lookup, error) {
	lookups, registered := map[place]*lookup{}, registeredVersions(r.items)
	for _, it := range r.items {
		r.setNamespace(w, it)
		kind := it.object.GroupVersionKind()
		client, served, err := w.client(it)
		switch {
		case err != nil:
			return nil, err
		case !served && registered[kind.GroupVersion()]:
			it.note = nil
			continue
		case !served || it.entry.UID != "":
			continue
		}
		at := place{kind, it.key.Namespace}
		if lookups[at] == nil {
			_, declared := r.declared[kind]
			lookups[at] = &lookup{client: client, brought: declared || registered[kind.GroupVersion()]}
		}
		lookups[at].items = append(lookups[at].items, it)
	}
	return lookups, nil
}

// registeredVersions are the versions that APIServices among the objects register.
func registeredVersions(items []*item) map[schema.GroupVersion]bool {
	versions := map[schema.GroupVersion]bool{}
	for _, it := range items {
		if it.key.GroupKind() == calls.APIServiceGK {
			group, _, _ := unstructured.NestedString(it.object.Object, "spec", "group")
			version, _, _ := unstructured.NestedString(it.object.Object, "spec", "version")
			versions[schema.GroupVersion{Group: group, Version: version}] = true
		}
	}
	return versions
}

// lookAt decides about the objects of a place as a write would, without a write; found has the names that exist. A kind
// that the revision brings may not be served yet: then the write decides.
func (w *writer) lookAt(ctx context.Context, of *lookup) (found map[string]bool, err error) {
	keys := make([]ownership.Key, len(of.items))
	for i, it := range of.items {
		keys[i] = it.key
	}
	there, err := of.client.ReadNamed(ctx, keys)
	switch {
	case apierrors.IsMethodNotSupported(err), of.brought && calls.IsAnswer(err):
		return nil, nil
	case apierrors.IsNotFound(err): // the mapper has a kind that is no longer served
		for _, it := range of.items {
			w.explainNotFound(it)
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for %q: %w", keys[0], err)
	}
	found = map[string]bool{}
	for _, it := range of.items {
		live := there[it.key.Name]
		if live == nil {
			continue
		}
		tried := *it
		if _, err := w.evaluate(ctx, &tried, live); err != nil {
			return nil, err
		}
		it.note, it.waiting, found[it.key.Name] = tried.note, tried.waiting, true
	}
	return found, nil
}
