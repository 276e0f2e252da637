package loop

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyStatus applies a field owner's part of the status of an object that also has other writers. Afterwards it
// updates of, which has only the object's metadata, since the object may be large. If of has a UID, ApplyStatus
// changes no other object of its name: the error is conflict, or not found.
func ApplyStatus(ctx context.Context, writer client.Client, owner string, of *metav1.PartialObjectMetadata, status any) error {
	metadata := map[string]any{"namespace": of.Namespace, "name": of.Name}
	if of.UID != "" {
		metadata["uid"] = of.UID
	}
	patch, err := json.Marshal(map[string]any{"apiVersion": of.APIVersion, "kind": of.Kind, "metadata": metadata, "status": status})
	if err != nil {
		return err
	}
	return writer.Status().Patch(ctx, of, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner(owner), client.ForceOwnership)
}
