package survey

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// selectedNode is on a claim whose Pod was scheduled; see k8s.io/component-helpers/storage/volume.
const selectedNode = "volume.kubernetes.io/selected-node"

// state is kstatus, except: Jobs are healthy once complete, claims while they await a first Pod, APIServices once
// their backends answer (kstatus doesn't know their condition Available).
func (a *assessor) state(ctx context.Context, live *unstructured.Unstructured) (status.Status, string) {
	result, err := compute(live)
	if err != nil {
		return status.CurrentStatus, ""
	}
	kind := live.GroupVersionKind().GroupKind()
	switch {
	case kind == calls.JobGK && result.Status == status.CurrentStatus && !calls.HasEnded(kind, live) && !isSuspended(live):
		return status.InProgressStatus, "it runs"
	case kind == calls.ClaimGK && result.Status == status.InProgressStatus && a.awaitsConsumer(ctx, live):
		return status.CurrentStatus, ""
	case kind == calls.APIServiceGK && result.Status == status.CurrentStatus:
		return availability(live)
	}
	return result.Status, result.Message
}

// compute is kstatus, except for changes that a workload's owner delays on purpose. A DaemonSet with update strategy
// OnDelete is healthy with Pods of an earlier template, as a StatefulSet is to kstatus and both are to Helm. A paused
// Deployment is healthy once its Pods match the template, as to kubectl, and its message says before that it is paused.
func compute(live *unstructured.Unstructured) (*status.Result, error) {
	kind := live.GroupVersionKind().GroupKind()
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "updateStrategy", "type")
	paused, _, _ := unstructured.NestedBool(live.Object, "spec", "paused")
	paused = paused && kind == deploymentGK
	switch {
	case paused: // its condition Progressing is Unknown
		live = with(live, "spec", func(spec map[string]any) { delete(spec, "progressDeadlineSeconds") })
	case kind == daemonSetGK && strategy == "OnDelete":
		live = with(live, "status", func(reported map[string]any) {
			reported["updatedNumberScheduled"] = reported["desiredNumberScheduled"]
		})
	}
	result, err := status.Compute(live)
	if err == nil && paused && result.Status == status.InProgressStatus {
		result.Message = "it is paused (spec.paused); " + result.Message
	}
	return result, err
}

// with is a copy of an object with a change below a field. If the field is no map it is the object itself.
func with(live *unstructured.Unstructured, field string, change func(map[string]any)) *unstructured.Unstructured {
	below, isMap := live.Object[field].(map[string]any)
	if isMap {
		below = maps.Clone(below)
		change(below)
		live = &unstructured.Unstructured{Object: maps.Clone(live.Object)}
		live.Object[field] = below
	}
	return live
}

func isFinishing(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	return calls.Runs(kind) && calls.HasEnded(kind, live)
}

// availability is an APIService's, by the aggregator's own probe of its backend. Groups that the API server serves
// itself are always available.
func availability(service *unstructured.Unstructured) (status.Status, string) {
	if _, isProxied, _ := unstructured.NestedMap(service.Object, "spec", "service"); !isProxied {
		return status.CurrentStatus, ""
	}
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return status.CurrentStatus, ""
		}
		said, _ := condition["message"].(string)
		return status.InProgressStatus, fmt.Sprintf("it is not available (%v): %s", condition["reason"], ending(said))
	}
	return status.InProgressStatus, "its availability is not checked yet"
}

// ending keeps the end of a message that is too long: an aggregator names the addresses that it tried before their answers.
func ending(message string) string {
	const most = 140
	if len(message) <= most {
		return message
	}
	return "… " + strings.ToValidUTF8(message[len(message)-most:], "")
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
