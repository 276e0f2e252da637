package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// HookState is the state of a hook's object.
type HookState struct {
	UID types.UID
	// Ours says that a hook of this installation created it. Run is the attempt.
	Ours bool
	Run  string
	// Applied says that it still is an object of the add-on itself.
	Applied bool
	// Obstacle says why no hook may ever replace an object that is not Ours; "" if one may.
	Obstacle string
	// Created is its creation time, by the API server's clock.
	Created           time.Time
	Deleting, Running bool
	// Ended says that it succeeded, Failed that it never will succeed. Other kinds succeed by existing.
	Ended, Failed bool
	// IsWithoutPod says that a running Job has no Pod, and had none.
	IsWithoutPod bool
	Message      string
}

// ReadHook reads a hook's object. Errors: NoPlaceError, or the API server's.
func ReadHook(ctx context.Context, target calls.Target, owner ownership.Owner, hook Hook) (HookState, error) {
	client, at, err := hook.client(target)
	if err != nil {
		return HookState{}, err
	}
	live, err := calls.ReadWhole(ctx, client, at)
	if apierrors.IsNotFound(err) {
		return HookState{}, nil
	}
	if err != nil {
		return HookState{}, fmt.Errorf("reading hook %q: %w", hook.Key(), err)
	}
	return hookStateOf(live, owner, hook.Release), nil
}

func hookStateOf(live *unstructured.Unstructured, owner ownership.Owner, release *ownership.HelmMarks) HookState {
	kind := live.GroupVersionKind().GroupKind()
	found := ownership.Of(live, ownership.Question{Owner: owner, Release: release})
	state := HookState{
		UID: live.GetUID(), Ours: found.IsHook(), Run: live.GetAnnotations()[kubermaticv1.AnnotationHookRun],
		Applied: found.IsApplied(), Obstacle: reasonToKeep(live, found, release != nil),
		Created: live.GetCreationTimestamp().Time, Deleting: live.GetDeletionTimestamp() != nil, Running: isRunning(kind, live),
	}
	switch {
	case calls.Runs(kind) && calls.HasEnded(kind, live):
		state.Ended = true
	case calls.Runs(kind):
		state.Failed, state.Message = hasFailed(kind, live)
		state.IsWithoutPod = kind == calls.JobGK && !state.Failed && !state.Deleting && !isSuspended(live) && hasNoPod(live)
	default:
		state.Ended = !state.Deleting
	}
	if state.Deleting && !state.Failed {
		state.Message = "it is being deleted" + calls.HeldBy(live.GetFinalizers())
	}
	return state
}

// reasonToKeep says why no hook may replace an object. A hook of go-template never replaces Helm's, which name no release.
func reasonToKeep(live metav1.Object, found ownership.Ownership, isOfRelease bool) string {
	annotations := live.GetAnnotations()
	switch found.Obstacle() {
	case ownership.OfAnother:
		return "it belongs to another installation"
	case ownership.OfTheAddon:
		return "it is an object of the add-on itself, not of a hook"
	case ownership.NoHook:
		return "it is not a hook"
	case ownership.OfAnotherRelease:
		return fmt.Sprintf("it belongs to Helm release %q in namespace %q",
			calls.CutText(annotations[ownership.HelmReleaseAnnotation]), calls.CutText(annotations[ownership.HelmNamespaceAnnotation]))
	}
	if !isOfRelease && !found.IsHook() {
		return "it is a hook of a Helm release"
	}
	return ""
}

func hasFailed(kind schema.GroupKind, live *unstructured.Unstructured) (failed bool, message string) {
	if kind == calls.PodGK {
		return hasPodFailed(live)
	}
	for _, condition := range calls.ConditionsOf(live) {
		if condition.Type == "Failed" && condition.Status == metav1.ConditionTrue {
			return true, calls.CutText(condition.Reason + ": " + condition.Message)
		}
	}
	if isSuspended(live) {
		return false, "it is suspended"
	}
	// The Job's own controller replaces a Pod that was evicted or failed.
	if lost, _, _ := unstructured.NestedInt64(live.Object, "status", "failed"); lost > 0 {
		return false, fmt.Sprintf("it runs; Pods of it that failed: %d", lost)
	}
	return false, "it runs"
}

// hasPodFailed returns reason and message: only the reason shows that a Pod was evicted.
func hasPodFailed(live *unstructured.Unstructured) (failed bool, message string) {
	word := func(field string) string {
		said, _, _ := unstructured.NestedString(live.Object, "status", field)
		return said
	}
	if phase := word("phase"); phase != "Failed" {
		return false, "the Pod is " + calls.CutText(phase)
	}
	message = "the Pod failed"
	for _, said := range []string{word("reason"), word("message")} {
		if said != "" {
			message += ": " + calls.CutText(said)
		}
	}
	return true, message
}

func isSuspended(live *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	return suspended
}

// isRunning says whether a container runs. A Pod that can't be started does not.
func isRunning(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	if kind == calls.PodGK {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return phase == "Running"
	}
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "ready")
	return ready > 0
}
