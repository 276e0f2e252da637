package survey

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/calls"
)

// selectedNode is on a claim whose Pod was scheduled; see k8s.io/component-helpers/storage/volume.
const selectedNode = "volume.kubernetes.io/selected-node"

// state is kstatus, except: Jobs are healthy once complete, claims while they await a first Pod.
func (a *assessor) state(ctx context.Context, live *unstructured.Unstructured) (status.Status, string) {
	result, err := status.Compute(live)
	if err != nil {
		return status.CurrentStatus, ""
	}
	kind := live.GroupVersionKind().GroupKind()
	switch {
	case kind == calls.JobGK && result.Status == status.CurrentStatus && !calls.HasEnded(kind, live) && !isSuspended(live):
		return status.InProgressStatus, "it runs"
	case kind == calls.ClaimGK && result.Status == status.InProgressStatus && a.awaitsConsumer(ctx, live):
		return status.CurrentStatus, ""
	}
	return result.Status, result.Message
}

func isFinishing(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	return calls.Runs(kind) && calls.HasEnded(kind, live)
}

func isSuspended(job *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return suspended
}

func (a *assessor) awaitsConsumer(ctx context.Context, claim *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	if class == "" || claim.GetAnnotations()[selectedNode] != "" {
		return false
	}
	live, err := calls.ReadWhole(ctx, a.target.Dynamic.Resource(calls.StorageClasses), calls.Place{Name: class})
	if err != nil {
		return false
	}
	mode, _, _ := unstructured.NestedString(live.Object, "volumeBindingMode")
	return mode == "WaitForFirstConsumer"
}
