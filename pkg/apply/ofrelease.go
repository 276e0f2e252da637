package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// OfRelease reads the objects that a Helm release claims, as they stand in the user cluster. What it claims is not believed: an
// object without Helm's marks of that release is somebody else's. Kinds that are not served have no objects. What changes by itself
// is left out: status, resource version, generation and managed fields.
func OfRelease(ctx context.Context, target Target, claimed Inventory, marks HelmMarks) ([]*unstructured.Unstructured, error) {
	kinds := &kinds{mapper: target.Mapper}
	numbers := make([]int, len(claimed))
	for i := range numbers {
		numbers[i] = i
	}
	read := make([]*unstructured.Unstructured, len(claimed))
	err := each(ctx, numbers, func(ctx context.Context, i int) (err error) {
		read[i], err = readOfRelease(ctx, target, kinds, claimed[i], marks)
		return err
	})
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, live := range read {
		if live != nil {
			found = append(found, live)
		}
	}
	return found, nil
}

func readOfRelease(ctx context.Context, target Target, kinds *kinds, claimed Entry, marks HelmMarks) (*unstructured.Unstructured, error) {
	if nameProblem(claimed.Key) {
		return nil, nil
	}
	where, served, err := kinds.known(claimed.Key, claimed.Version)
	if err != nil || !served {
		return nil, err
	}
	at := place{name: claimed.Name}
	var client dynamic.ResourceInterface = target.Dynamic.Resource(where.GroupVersionResource)
	if where.namespaced {
		if at.namespace = claimed.Namespace; at.namespace == "" {
			at.namespace = marks.ReleaseNamespace
		}
		client = target.Dynamic.Resource(where.GroupVersionResource).Namespace(at.namespace)
	}
	live, err := readWhole(ctx, client, at)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", claimed.Key, err)
	}
	annotations := live.GetAnnotations()
	if annotations[helmReleaseAnnotation] != marks.ReleaseName || annotations[helmNamespaceAnnotation] != marks.ReleaseNamespace {
		return nil, nil
	}
	delete(live.Object, "status")
	live.SetManagedFields([]metav1.ManagedFieldsEntry(nil))
	live.SetResourceVersion("")
	live.SetGeneration(0)
	return live, nil
}
