package crds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/text"
)

const (
	// perPage bounds an answer with metadata of objects.
	perPage = 500
	// longestRefusal is how much is told of one, in bytes.
	longestRefusal = 400
)

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

// rewriting is what came of writing the objects of a kind as they are.
type rewriting struct {
	// count is how many there were.
	count int
	// refused says of each object that stayed as it was which it is, and why.
	refused []string
}

// rewrite has each object of a kind written as it is, where some may be stored in another version
// than the present one, and then says in the CRD's status that none is any more, unless one was
// refused. What a run did before it was cut off costs the next one a call each, and no write: an API
// server stores nothing anew that would be the same.
func rewrite(ctx context.Context, c client.Client, crd *unstructured.Unstructured) (rewriting, error) {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	now := storageVersion(crd)
	if now == "" || len(stored) == 0 || len(stored) == 1 && stored[0] == now {
		return rewriting{}, nil
	}
	done, err := touchAll(ctx, c, kindOf(crd, now))
	if err != nil {
		return done, fmt.Errorf("rewriting what CRD %q stores in %q: %w", crd.GetName(), stored, err)
	}
	if len(done.refused) > 0 {
		return done, nil
	}
	// With the resourceVersion: who changed the CRD meanwhile may have changed what is stored.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.GetResourceVersion()},
		"status":   map[string]any{"storedVersions": []string{now}},
	})
	if err != nil {
		return done, err
	}
	if err := c.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return done, fmt.Errorf("writing the stored versions of CRD %q: %w", crd.GetName(), err)
	}
	return done, nil
}

func kindOf(crd *unstructured.Unstructured, version string) schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// touchAll sends an empty patch to each object of a kind, page by page, and goes on over those that
// are refused. A list that took too long is continued at a later moment: what was made in between is
// stored in the present version anyway.
func touchAll(ctx context.Context, c client.Client, of schema.GroupVersionKind) (done rewriting, err error) {
	for next, more := "", true; more; more = next != "" {
		var page metav1.PartialObjectMetadataList
		page.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
		err := c.List(ctx, &page, client.Limit(perPage), client.Continue(next))
		if later := continued(err); later != "" {
			next = later
			continue
		}
		if err != nil {
			return done, fmt.Errorf("listing %s: %w", of.Kind, err)
		}
		for i := range page.Items {
			err := touch(ctx, c, &page.Items[i], of)
			if isRefusal(err) {
				done.refused = append(done.refused, text.Cut(text.Line(err.Error()), longestRefusal))
				continue
			}
			if err != nil {
				return done, err
			}
		}
		done.count, next = done.count+len(page.Items), page.Continue
	}
	return done, nil
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

// isRefusal says whether an answer is about the one object that was sent, as those of policies,
// schemas and webhooks are, and that of etcd about its size, and not about the caller or the API
// server.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code <= http.StatusInternalServerError
	}
}

// continued is where a list goes on that expired; "" where it does not.
func continued(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
