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

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/remote"
)

const (
	// maxExplained is how many workloads are explained by their pods, with a list each; maxPods how many pods of one are looked at.
	maxExplained = 5
	maxPods      = 50
	// maxSelector is the length of a selector that pods are listed by, in bytes.
	maxSelector = 2 << 10
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// behind is what a workload tells about its pods.
type behind struct {
	// selector of its pods; "" is none that can be asked for.
	selector string
	// refused says why it can't make any.
	refused string
}

// Explain adds to what is not healthy what the pods of the first workloads among it say: why they wait, which image they can't get, how
// they end. One whose pods fail counts as failing. It costs a list for each; where that fails, the words stay as they are. Of texts
// from the user cluster only such are told as hold no secret of an add-on: reasons, exit codes, images, and the scheduler's words.
func Explain(ctx context.Context, target calls.Target, health Health) Health {
	health.Unhealthy = slices.Clone(health.Unhealthy)
	explained := 0
	for at := range health.Unhealthy {
		note := &health.Unhealthy[at]
		workload, known := health.behind[note.Key]
		if !known || explained == maxExplained || ctx.Err() != nil {
			continue
		}
		explained++
		said, told := sayPods(ctx, target, note.Key.Namespace, workload)
		if !told {
			continue
		}
		note.Message = said.text
		if said.rank >= rankFails && note.Reason != string(status.FailedStatus) {
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

// sayPods says of a workload what the pod says that is worst off.
func sayPods(ctx context.Context, target calls.Target, namespace string, workload behind) (worst podWords, told bool) {
	if workload.selector == "" {
		return podWords{}, false
	}
	list, err := target.Dynamic.Resource(pods).Namespace(namespace).List(
		remote.Within(ctx, "the list", remote.ListTotals), metav1.ListOptions{LabelSelector: workload.selector, Limit: maxPods})
	if err != nil {
		return podWords{}, false
	}
	if len(list.Items) == 0 && workload.refused != "" {
		return podWords{rankFails, "no pod can be made: " + workload.refused}, true
	}
	troubled := 0
	for i := range list.Items[:min(len(list.Items), maxPods)] {
		said := wordsOf(&list.Items[i])
		if said.rank == rankWell {
			continue
		}
		troubled++
		if said.rank > worst.rank {
			worst = said
		}
	}
	if troubled > 1 {
		worst.text += fmt.Sprintf(" (and %d more not ready)", troubled-1)
	}
	return worst, troubled > 0
}

// behindOf is what a workload tells about its pods; known is false for other kinds.
func behindOf(kind schema.GroupKind, live *unstructured.Unstructured) (workload behind, known bool) {
	if !workloadKinds[kind] && kind != calls.JobGK {
		return behind{}, false
	}
	raw, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	if kind.Group == "" { // a ReplicationController's has labels alone
		raw = map[string]any{"matchLabels": raw}
	}
	wanted := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, wanted) != nil {
		return behind{}, false
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil || selector.Empty() || selector.String() == labels.Nothing().String() || len(selector.String()) > maxSelector {
		return behind{}, false
	}
	return behind{selector: selector.String(), refused: refusalOf(live)}, true
}

// refusals are the words that tell why pods are refused without repeating what they hold.
var refusals = []*regexp.Regexp{
	regexp.MustCompile(`violates PodSecurity "[a-z0-9.:]{1,40}"`),
	regexp.MustCompile(`exceeded quota: [a-z0-9.-]{1,100}`),
	regexp.MustCompile(`serviceaccount "[a-z0-9.-]{1,100}" not found`),
	regexp.MustCompile(`no PriorityClass with name [a-z0-9.-]{1,100} was found`),
}

// refusalOf says why a workload can't make pods, as its condition ReplicaFailure tells; "" where it can.
func refusalOf(live *unstructured.Unstructured) string {
	for _, condition := range calls.ConditionsOf(live) {
		if condition.Type == "ReplicaFailure" && condition.Status == metav1.ConditionTrue {
			return withKnown(word(condition.Reason), condition.Message, refusals, "; its events say why")
		}
	}
	return ""
}

// withKnown puts that part of a foreign message behind a word which is known to hold no secret, or else a hint.
func withKnown(said, message string, known []*regexp.Regexp, otherwise string) string {
	for _, pattern := range known {
		if found := pattern.FindString(calls.Excerpt(message)); found != "" {
			return said + ": " + found
		}
	}
	return said + otherwise
}

type podWords struct {
	rank int
	text string
}

// Ranks of what pods say: from rankFails on, they don't get well by waiting alone.
const (
	rankWell = iota
	rankComes
	rankEnded
	rankUnscheduled
	rankFails
)

// wordsOf is what one pod says. One that is being deleted says nothing.
func wordsOf(pod *unstructured.Unstructured) podWords {
	raw, _, _ := unstructured.NestedMap(pod.Object, "status")
	said := corev1.PodStatus{}
	if pod.GetDeletionTimestamp() != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &said) != nil {
		return podWords{}
	}
	worst := phaseWords(&said)
	for _, container := range slices.Concat(said.InitContainerStatuses, said.ContainerStatuses) {
		if words := containerWords(&container); words.rank > worst.rank {
			worst = words
		}
	}
	worst.text = fmt.Sprintf("pod %s %s", calls.CutText(pod.GetName()), worst.text)
	return worst
}

func phaseWords(said *corev1.PodStatus) podWords {
	ready := said.Phase == corev1.PodSucceeded
	for _, condition := range said.Conditions {
		switch {
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			return podWords{rankUnscheduled, fmt.Sprintf("is not scheduled (%s): %s", word(condition.Reason), calls.CutText(condition.Message))}
		case condition.Type == corev1.PodReady:
			ready = ready || condition.Status == corev1.ConditionTrue
		}
	}
	switch {
	case said.Phase == corev1.PodFailed && said.Reason != "":
		return podWords{rankFails, "failed: " + word(said.Reason)}
	case said.Phase == corev1.PodFailed:
		return podWords{rankComes, "failed"}
	case ready:
		return podWords{}
	}
	return podWords{rankComes, fmt.Sprintf("is %s and not ready", word(string(said.Phase)))}
}

// notYet are reasons for which a container waits when all is well.
var notYet = []string{"", "ContainerCreating", "PodInitializing"}

// missing are the words that name what a container needs, and no content.
var missing = []*regexp.Regexp{
	regexp.MustCompile(`(?:secret|configmap) "[a-z0-9.-]{1,100}" not found`),
	regexp.MustCompile(`couldn't find key [A-Za-z0-9._-]{1,100} in (?:Secret|ConfigMap) [a-z0-9.-]{1,63}/[a-z0-9.-]{1,100}`),
}

// containerWords never repeats the messages of a container: they hold what it wrote before it ended, and what it was called with.
func containerWords(container *corev1.ContainerStatus) podWords {
	name, waits := calls.CutText(container.Name), container.State.Waiting
	switch {
	case waits != nil && waits.Reason == "CrashLoopBackOff":
		return podWords{rankFails, fmt.Sprintf("crashes: container %q %s, started %d times (CrashLoopBackOff)",
			name, endOf(container.LastTerminationState.Terminated), max(container.RestartCount, 0)+1)}
	case waits != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, waits.Reason):
		return podWords{rankFails, fmt.Sprintf("waits: container %q can't get image %q (%s)", name, calls.CutText(container.Image), waits.Reason)}
	case waits != nil && !slices.Contains(notYet, waits.Reason):
		return podWords{rankFails, fmt.Sprintf("waits: container %q: %s", name, withKnown(word(waits.Reason), waits.Message, missing, ""))}
	case container.State.Terminated != nil && container.State.Terminated.ExitCode != 0:
		return podWords{rankEnded, fmt.Sprintf("does not run: container %q %s", name, endOf(container.State.Terminated))}
	}
	return podWords{}
}

func endOf(end *corev1.ContainerStateTerminated) string {
	if end == nil {
		return "ended"
	}
	return fmt.Sprintf("ended with exit code %d (%s)", end.ExitCode, word(end.Reason))
}

var aWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,63}$`)

// word is a reason of the user cluster, which is one word.
func word(reason string) string {
	if !aWord.MatchString(reason) {
		return "no reason told"
	}
	return reason
}
