package survey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// FoundLimits limit the result of OfRelease, in bytes as JSON.
type FoundLimits struct{ Total, Object int }

// FoundError says that a release exceeds FoundLimits.
type FoundError struct {
	Release   string
	Object    *ownership.Key
	Have, Max int
}

func (e *FoundError) Error() string {
	whose := fmt.Sprintf("release %q has", e.Release)
	if e.Object != nil {
		whose = fmt.Sprintf("object %q of release %q has", *e.Object, e.Release)
	}
	return fmt.Sprintf("%s %d bytes for function lookup, at most %d are allowed: delete objects that the chart does not look up, or make "+
		"them smaller",
		whose, e.Have, e.Max)
}

// OfRelease reads objects that a Helm release claims, if they carry its marks, without status, resource version,
// generation and managed fields. Any user who can write a release's record chooses the objects to read: beyond the
// limits it returns a *FoundError.
func OfRelease(
	ctx context.Context, target calls.Target, claimed ownership.Inventory, marks ownership.HelmMarks, limits FoundLimits,
) ([]*unstructured.Unstructured, error) {
	kinds := &calls.Kinds{Mapper: target.Mapper}
	numbers := make([]int, len(claimed))
	for i := range numbers {
		numbers[i] = i
	}
	collected := &lookupObjects{release: marks.ReleaseName, limits: limits, objects: make([]*unstructured.Unstructured, len(claimed))}
	err := calls.Each(ctx, numbers, func(ctx context.Context, i int) error {
		live, err := readOfRelease(ctx, target, kinds, claimed[i], marks)
		if err != nil || live == nil {
			return err
		}
		return collected.add(i, live)
	})
	if limit, ok := errors.AsType[*FoundError](err); ok {
		return nil, limit
	}
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, live := range collected.objects {
		if live != nil {
			found = append(found, live)
		}
	}
	return found, nil
}

// lookupObjects collects objects within the limits.
type lookupObjects struct {
	release string
	limits  FoundLimits

	mutex   sync.Mutex
	bytes   int
	objects []*unstructured.Unstructured
}

func (k *lookupObjects) add(i int, live *unstructured.Unstructured) error {
	text, err := json.Marshal(live.Object)
	if err != nil {
		return fmt.Errorf("encoding %q: %w", ownership.KeyOf(live), err)
	}
	if len(text) > k.limits.Object {
		key := ownership.KeyOf(live)
		return &FoundError{Object: &key, Release: k.release, Have: len(text), Max: k.limits.Object}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if have := k.bytes + len(text); have > k.limits.Total {
		return &FoundError{Release: k.release, Have: have, Max: k.limits.Total}
	}
	k.bytes, k.objects[i] = k.bytes+len(text), live
	return nil
}

func readOfRelease(
	ctx context.Context, target calls.Target, kinds *calls.Kinds, claimed ownership.Entry, marks ownership.HelmMarks,
) (*unstructured.Unstructured, error) {
	if calls.NameProblem(claimed.Key) {
		return nil, nil
	}
	where, served, err := kinds.Known(claimed.Key, claimed.Version)
	if err != nil || !served {
		return nil, err
	}
	at := calls.Place{Name: claimed.Name}
	if where.Namespaced {
		at.Namespace = cmp.Or(claimed.Namespace, marks.ReleaseNamespace)
	}
	live, err := calls.ReadWhole(ctx, calls.DynamicOf(target, where, at.Namespace), at)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", claimed.Key, err)
	}
	if !marks.AreOn(live.GetAnnotations()) {
		return nil, nil
	}
	delete(live.Object, "status")
	live.SetManagedFields([]metav1.ManagedFieldsEntry(nil))
	live.SetResourceVersion("")
	live.SetGeneration(0)
	return live, nil
}
