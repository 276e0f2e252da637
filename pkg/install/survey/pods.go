package survey

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

const (
	// maxExplained is how many workloads are explained, with a list each, by the first maxPods pods.
	maxExplained = 5
	maxPods      = 50
	maxSelector  = 2 << 10
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

type podOwner struct {
	selector string
	refused  calls.Refusal
}

// Explain adds the reasons of their pods to the first unhealthy workloads, with a list each; if that fails, nothing
// changes. A workload with failed pods counts as failing. Only texts that can't contain a secret are repeated:
// reasons, exit codes, images, and the scheduler's message.
func Explain(ctx context.Context, target calls.Target, health Health) Health {
	health.Unhealthy = slices.Clone(health.Unhealthy)
	explained := 0
	for at := range health.Unhealthy {
		note := &health.Unhealthy[at]
		workload, known := health.podOwner[note.Key]
		if !known || explained == maxExplained || ctx.Err() != nil {
			continue
		}
		explained++
		reported, ok := worstPod(ctx, target, note.Key.Namespace, workload)
		if !ok {
			continue
		}
		note.Message, note.Cause = reported.text, reported.cause
		if reported.rank >= rankFailed && note.Reason != string(status.FailedStatus) {
			note.Reason = string(status.FailedStatus)
			health.Failing++
		}
	}
	slices.SortStableFunc(health.Unhealthy, func(a, b calls.Note) int { return failedFirst(a) - failedFirst(b) })
	return health
}

func failedFirst(note calls.Note) int {
	if note.Reason == string(status.FailedStatus) {
		return 0
	}
	return 1
}

func worstPod(ctx context.Context, target calls.Target, namespace string, workload podOwner) (worst podReport, ok bool) {
	if workload.selector == "" {
		return podReport{}, false
	}
	list, err := target.Dynamic.Resource(pods).Namespace(namespace).List(
		remote.Within(ctx, "the list", remote.ListTotals), metav1.ListOptions{LabelSelector: workload.selector, Limit: maxPods})
	if err != nil {
		return podReport{}, false
	}
	if len(list.Items) == 0 && workload.refused.Text != "" {
		return podReport{rankFailed, "no pod can be created: " + workload.refused.Text, workload.refused.Cause}, true
	}
	troubled := 0
	for i := range list.Items[:min(len(list.Items), maxPods)] {
		reported := podReportOf(&list.Items[i])
		if reported.rank == rankReady {
			continue
		}
		troubled++
		if reported.rank > worst.rank {
			worst = reported
		}
	}
	if worst.rank < rankUnscheduled && workload.refused.Text != "" { // the existing pods may be of the previous version
		return podReport{rankFailed, "no further pod can be created: " + workload.refused.Text, workload.refused.Cause}, true
	}
	if troubled > 1 {
		worst.text += fmt.Sprintf(" (and %d more not ready)", troubled-1)
	}
	return worst, troubled > 0
}

func podOwnerOf(kind schema.GroupKind, live *unstructured.Unstructured) (workload podOwner, known bool) {
	if !workloadKinds[kind] && kind != calls.JobGK {
		return podOwner{}, false
	}
	raw, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	if kind.Group == "" { // a ReplicationController has labels only
		raw = map[string]any{"matchLabels": raw}
	}
	wanted := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, wanted) != nil {
		return podOwner{}, false
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil || selector.Empty() || selector.String() == labels.Nothing().String() || len(selector.String()) > maxSelector {
		return podOwner{}, false
	}
	return podOwner{selector: selector.String(), refused: refusalOf(live)}, true
}

func refusalOf(live *unstructured.Unstructured) calls.Refusal {
	for _, condition := range calls.ConditionsOf(live) {
		if condition.Type == "ReplicaFailure" && condition.Status == metav1.ConditionTrue {
			return calls.PodRefusal(condition.Reason, condition.Message)
		}
	}
	return calls.Refusal{}
}

type podReport struct {
	rank int
	// text is for users; cause is the cause in the user cluster.
	text, cause string
}

// Ranks of reports. From rankFailed on, waiting alone does not help.
const (
	rankReady = iota
	rankStarting
	rankEnded
	rankUnscheduled
	rankFailed
)

func podReportOf(pod *unstructured.Unstructured) podReport {
	raw, _, _ := unstructured.NestedMap(pod.Object, "status")
	reported := corev1.PodStatus{}
	if pod.GetDeletionTimestamp() != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &reported) != nil {
		return podReport{}
	}
	worst := phaseReport(&reported)
	for _, container := range slices.Concat(reported.InitContainerStatuses, reported.ContainerStatuses) {
		if words := containerReport(&container); words.rank > worst.rank {
			worst = words
		}
	}
	worst.text = fmt.Sprintf("pod %s %s", calls.CutText(pod.GetName()), worst.text)
	return worst
}

func phaseReport(reported *corev1.PodStatus) podReport {
	ready := reported.Phase == corev1.PodSucceeded
	for _, condition := range reported.Conditions {
		switch {
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			return podReport{
				rankUnscheduled, fmt.Sprintf("is not scheduled (%s): %s", calls.ReasonWord(condition.Reason), calls.CutText(condition.Message)),
				unscheduledBy(condition),
			}
		case condition.Type == corev1.PodReady:
			ready = ready || condition.Status == corev1.ConditionTrue
		}
	}
	switch {
	case reported.Phase == corev1.PodFailed && reported.Reason != "":
		return podReport{rank: rankFailed, text: "failed: " + calls.ReasonWord(reported.Reason)}
	case reported.Phase == corev1.PodFailed:
		return podReport{rank: rankStarting, text: "failed"}
	case ready:
		return podReport{}
	}
	return podReport{rank: rankStarting, text: fmt.Sprintf("is %s and not ready", calls.ReasonWord(string(reported.Phase)))}
}

// tooLarge is the scheduler's message for requests above any node: nodes lack only capacity, and preemption helps on none.
var tooLarge = regexp.MustCompile(`^0/\d+ nodes are available: (?:\d+ Insufficient [^ ,]+, )*\d+ Insufficient [^ ,]+\. ` +
	`.*preemption: 0/\d+ nodes are available: \d+ Preemption is not helpful for scheduling\.`)

// unscheduledBy is the cause in the user cluster of a pod that is not scheduled.
func unscheduledBy(scheduled corev1.PodCondition) string {
	switch {
	case scheduled.Reason == corev1.PodReasonSchedulingGated:
		return kubermaticv1.ReasonSchedulingGated
	case scheduled.Reason != corev1.PodReasonUnschedulable:
		return ""
	case tooLarge.MatchString(calls.Excerpt(scheduled.Message)):
		return kubermaticv1.ReasonRequestsTooLarge
	}
	return kubermaticv1.ReasonUnschedulable
}

var startingReasons = []string{"", "ContainerCreating", "PodInitializing"}

// missing is the part of a message that names a missing object and no content.
var missing = regexp.MustCompile(`(?:secret|configmap) "[a-z0-9.-]{1,100}" not found|` +
	`couldn't find key [A-Za-z0-9._-]{1,100} in (?:Secret|ConfigMap) [a-z0-9.-]{1,63}/[a-z0-9.-]{1,100}`)

// containerReport repeats no messages, since they can contain the container's output and arguments.
func containerReport(container *corev1.ContainerStatus) podReport {
	name, waits := calls.CutText(container.Name), container.State.Waiting
	switch {
	case waits != nil && waits.Reason == "CrashLoopBackOff":
		return podReport{rank: rankFailed, text: fmt.Sprintf("crashes: container %q %s, started %d times (CrashLoopBackOff)",
			name, endOf(container.LastTerminationState.Terminated), max(container.RestartCount, 0)+1)}
	case waits != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, waits.Reason):
		return podReport{
			rank: rankFailed, text: fmt.Sprintf("waits: container %q can't get image %q (%s)", name, calls.CutText(container.Image), waits.Reason),
		}
	case waits != nil && !slices.Contains(startingReasons, waits.Reason):
		words := fmt.Sprintf("waits: container %q: %s", name, calls.ReasonWord(waits.Reason))
		if found := missing.FindString(calls.Excerpt(waits.Message)); found != "" {
			words += ": " + found
		}
		return podReport{rank: rankFailed, text: words}
	case container.State.Terminated != nil && container.State.Terminated.ExitCode != 0:
		return podReport{rank: rankEnded, text: fmt.Sprintf("does not run: container %q %s", name, endOf(container.State.Terminated))}
	}
	return podReport{}
}

func endOf(end *corev1.ContainerStateTerminated) string {
	if end == nil {
		return "ended"
	}
	return fmt.Sprintf("ended with exit code %d (%s)", end.ExitCode, calls.ReasonWord(end.Reason))
}
