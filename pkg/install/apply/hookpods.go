package apply

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

var events = corev1.SchemeGroupVersion.WithResource("events")

const (
	// failedCreate is the reason of the Job controller's events about refused Pods.
	failedCreate = "FailedCreate"
	// maxEvents is how many events of one Job are read. Newer ones are not read.
	maxEvents = 20
)

// hasNoPod says whether a Job has no Pod and had none, according to its status.
func hasNoPod(live *unstructured.Unstructured) bool {
	for _, count := range []string{"active", "succeeded", "failed", "terminating"} {
		if number, _, _ := unstructured.NestedInt64(live.Object, "status", count); number > 0 {
			return false
		}
	}
	for _, ended := range []string{"succeeded", "failed"} {
		if uids, _, _ := unstructured.NestedSlice(live.Object, "status", "uncountedTerminatedPods", ended); len(uids) > 0 {
			return false
		}
	}
	return true
}

// WithoutPod says that a running Job of a hook has no Pod, and gives the cause if one is visible: the last event
// about the Job, or its service account. It costs a list, and a read.
func WithoutPod(ctx context.Context, target calls.Target, hook Hook, uid types.UID) (why calls.Refusal) {
	const missing = "it has no Pod"
	if refused := lastRefusal(ctx, target, hook, uid); refused.Text != "" {
		return calls.Refusal{Text: missing + ": " + refused.Text, Cause: refused.Cause}
	}
	if noPlace, ok := errors.AsType[*NoPlaceError](CheckAccount(ctx, target, hook)); ok {
		return calls.Refusal{Text: missing + ": " + noPlace.Problem}
	}
	return calls.Refusal{Text: missing}
}

// lastRefusal is empty if no event says that a Pod was refused, or if events can't be read.
func lastRefusal(ctx context.Context, target calls.Target, hook Hook, uid types.UID) (found calls.Refusal) {
	_, at, err := hook.client(target)
	if err != nil {
		return found
	}
	list, err := target.Dynamic.Resource(events).Namespace(at.Namespace).List(
		remote.Within(ctx, "the list", remote.ListTotals), metav1.ListOptions{Limit: maxEvents, FieldSelector: fields.Set{
			"involvedObject.uid": string(uid), "reason": failedCreate,
		}.String()})
	if err != nil {
		return found
	}
	last := ""
	for i := range list.Items {
		event := list.Items[i].Object
		message, _, _ := unstructured.NestedString(event, "message")
		seen, _, _ := unstructured.NestedString(event, "lastTimestamp") // RFC 3339 times sort as text
		if found.Text == "" || seen > last {
			last, found = seen, calls.PodRefusal(failedCreate, strings.TrimPrefix(calls.Excerpt(message), "Error creating: "))
		}
	}
	return found
}
