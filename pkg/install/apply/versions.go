package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// moveVersions moves the entries of managedFields to the version that is written. The API server converts the object
// to the version of each entry, which fails if that version lacks a field or no longer exists. It then refuses the
// write, and drops all entries with any other write; so all are moved at once. Managers and fields do not change.
// Moved says whether any entry was moved.
func moveVersions(ctx context.Context, client calls.Client, it *item) (moved bool, err error) {
	live, err := client.Read(ctx, it.key)
	if err != nil || live == nil || live.UID != it.entry.UID {
		return false, err
	}
	version := it.object.GetAPIVersion()
	operations := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion}}
	for i := range live.ManagedFields {
		if live.ManagedFields[i].APIVersion != version {
			operations = append(operations, map[string]any{
				"op": "replace", "path": fmt.Sprintf("/metadata/managedFields/%d/apiVersion", i), "value": version,
			})
		}
	}
	if len(operations) == 1 {
		return false, nil
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return false, err
	}
	_, err = client.Patch(ctx, it.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("moving the managed fields of %q to version %q: %w", it.key, version, calls.Masked(it.object, err))
	}
	return true, nil
}
