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

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/remote"
)

var events = corev1.SchemeGroupVersion.WithResource("events")

const (
	// failedCreate is the reason of the Job controller's events about Pods that are refused.
	failedCreate = "FailedCreate"
	// maxEvents about one Job are read; of more, the newer ones are not.
	maxEvents = 20
)

// hasNoPod says whether a Job has no Pod and had none, as far as its controller says.
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

// WithoutPod says that a Job of a hook, which runs, has no Pod, and why, as far as that can be seen: by
// the last event about it, or by its account. It costs a list, and a read.
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

// lastRefusal is empty where no event says that a Pod was refused, and where events can't be read.
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
		seen, _, _ := unstructured.NestedString(event, "lastTimestamp") // RFC 3339: the order is that of the letters
		if found.Text == "" || seen > last {
			last, found = seen, calls.PodRefusal(failedCreate, strings.TrimPrefix(calls.Excerpt(message), "Error creating: "))
		}
	}
	return found
}
