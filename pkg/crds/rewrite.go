package crds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// perPage bounds an answer with metadata of objects.
const perPage = 500

// storageVersion is the one that an API server writes; "" for none.
func storageVersion(crd *unstructured.Unstructured) string {
	for _, version := range versionsIn(crd) {
		if version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// rewrite has each object of a kind written as it is, where some may be stored in another version
// than the present one, and then says in the CRD's status that none is any more. It says how many
// objects there were. What a run did before it was cut off costs the next one a call each, and no
// write: an API server stores nothing anew that would be the same.
func rewrite(ctx context.Context, c client.Client, crd *unstructured.Unstructured) (int, error) {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	now := storageVersion(crd)
	if now == "" || len(stored) == 0 || len(stored) == 1 && stored[0] == now {
		return 0, nil
	}
	count, err := touchAll(ctx, c, kindOf(crd, now))
	if err != nil {
		return count, fmt.Errorf("rewriting what CRD %q stores in %q: %w", crd.GetName(), stored, err)
	}
	// With the resourceVersion: who changed the CRD meanwhile may have changed what is stored.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.GetResourceVersion()},
		"status":   map[string]any{"storedVersions": []string{now}},
	})
	if err != nil {
		return count, err
	}
	if err := c.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return count, fmt.Errorf("writing the stored versions of CRD %q: %w", crd.GetName(), err)
	}
	return count, nil
}

func kindOf(crd *unstructured.Unstructured, version string) schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// touchAll sends an empty patch to each object of a kind, page by page. A list that took too long is
// continued at a later moment: what was made in between is stored in the present version anyway.
func touchAll(ctx context.Context, c client.Client, of schema.GroupVersionKind) (count int, err error) {
	for next, more := "", true; more; more = next != "" {
		var page metav1.PartialObjectMetadataList
		page.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
		err := c.List(ctx, &page, client.Limit(perPage), client.Continue(next))
		if later := continued(err); later != "" {
			next = later
			continue
		}
		if err != nil {
			return count, fmt.Errorf("listing %s: %w", of.Kind, err)
		}
		for i := range page.Items {
			if err := touch(ctx, c, &page.Items[i], of); err != nil {
				return count, err
			}
		}
		count, next = count+len(page.Items), page.Continue
	}
	return count, nil
}

// touch writes an object as it is. One that is gone needs nothing.
func touch(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata, of schema.GroupVersionKind) error {
	object.SetGroupVersionKind(of)
	err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}")))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing %s %q: %w", of.Kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// continued is where a list goes on that expired; "" where it does not.
func continued(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
